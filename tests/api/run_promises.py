#!/usr/bin/env python3
"""Holds tests/api/promises.txt to the public header and to the tests: every function and every structure that grows is in
a row, every name in a row is the header's, and every test that a row names is there and runs.

In: the checkout. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import ROOT, Suite  # noqa: E402


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def public_names():
    text = read("include/uir/uir.h") + read("include/uir/device.h")
    functions = set(re.findall(r"^UIR_API [^;]*?\b(uir_\w+)\(", text, re.M))
    structures = set(re.findall(r"^typedef struct (uir_\w+) {\s*size_t struct_size;", text, re.M))
    return functions | structures


def runs(test):
    """Whether the file has the test, and runs it."""
    path, name = test.split(":")
    if not os.path.isfile(os.path.join(ROOT, path)):
        return False
    text = read(path)
    if path.endswith(".py"):
        return re.search(rf"^def {name}\(", text, re.M) is not None
    return re.search(rf"^static void {name}\(void \*\*", text, re.M) is not None and \
        re.search(rf"cmocka_unit_test(_\w+)?\({name}\b", text) is not None


def main():
    names, told, suite = public_names(), set(), Suite()
    for number, line in enumerate(read("tests/api/promises.txt").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 3 or not all(cells):
            suite.tell(False, f"line {number}: it is not names | promise | tests")
            continue
        subjects, tests = cells[0].split(), cells[2].split()
        told |= set(subjects)
        wrong = [s for s in subjects if s not in names and s not in ("uir.h", "UIR_INIT")] + [t for t in tests if not runs(t)]
        suite.tell(not wrong, f"line {number}: there is no {', '.join(wrong)}")
    for name in sorted(names - told):
        suite.tell(False, f"{name}: no row of promises.txt is about it")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
