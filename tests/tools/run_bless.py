#!/usr/bin/env python3
"""Golden texts that are blessed become what comes out, and nothing else of their files changes.

In: the rows of kind `bless` of tests/campaigns.txt, the programs in $UIR_BIN. Out: `N passed, M failed, S skipped`.
"""
import glob
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import ROOT, Suite, run  # noqa: E402


def rows():
    with open(os.path.join(ROOT, "tests", "campaigns.txt"), encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if words[:1] == ["bless"]:
                yield words[1], words[2], sorted(p for w in words[4:] for p in glob.glob(os.path.join(ROOT, w)))


def spoil(text):
    """Each expected text loses its last line and gets another."""
    sections = re.split(r"(?m)^(?=# )", text)
    spoiled = [s.rsplit("\n", 2)[0] + "\nnothing like it\n" if s.startswith("# expect\n") else s for s in sections]
    return "".join(spoiled), sum(a != b for a, b in zip(sections, spoiled))


def check(program, files):
    with tempfile.TemporaryDirectory(prefix="uir-bless-") as folder:
        copies, total = [], 0
        for path in files:
            copies.append(os.path.join(folder, os.path.basename(path)))
            with open(path, encoding="utf-8") as f:
                text, count = spoil(f.read())
            with open(copies[-1], "w", encoding="utf-8") as f:
                f.write(text)
            total += count
        if not total:
            return "no expected text was found"
        done = run(program, "--bless", *copies, cwd=ROOT)
        if done.returncode:
            return f"exit {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"
        for path, copy in zip(files, copies):
            with open(path, encoding="utf-8") as a, open(copy, encoding="utf-8") as b:
                if a.read() != b.read():
                    return f"{os.path.relpath(path, ROOT)} is another file than before"
    return None


def main():
    suite = Suite()
    for name, program, files in rows():
        problem = check(program, files) if files else "it names no files"
        suite.tell(not problem, f"{name}: {problem}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
