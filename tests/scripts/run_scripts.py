#!/usr/bin/env python3
"""The scripts of script/ and what they rest on: one builder of a folder at a time, the same flags whoever builds, and a
runner that takes nothing run for a failure.

In: the checkout and the build beside $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import runner  # noqa: E402
import suite  # noqa: E402
from suite import BIN, ROOT, run_tests  # noqa: E402

BUILD = os.path.dirname(os.path.abspath(BIN))
LOCK = os.path.join(ROOT, "script", "lock")


def test_one_builds_at_a_time():
    with tempfile.TemporaryDirectory() as folder:
        said, lock = os.path.join(folder, "said"), os.path.join(folder, "made", "lock")
        command = [LOCK, lock, "sh", "-c", f"echo begin >>'{said}'; sleep 0.3; echo end >>'{said}'"]
        running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
        waited = [p.communicate(timeout=60)[1] for p in running]
        assert all(p.returncode == 0 for p in running), waited
        with open(said, encoding="utf-8") as f:
            assert f.read().split() == ["begin", "end"] * 3, "two ran at once"
        assert sum("waiting for another script" in text for text in waited) == 2, waited
        # Whoever holds it may be killed: what is left over locks nothing.
        holder = subprocess.Popen([LOCK, lock, "sleep", "60"])
        holder.kill()
        holder.wait()
        subprocess.run([LOCK, lock, "true"], check=True, timeout=30)
    assert subprocess.run([LOCK, "/tmp/x", "/absent"], capture_output=True).returncode != 0
    for script in ("run", "campaign"):
        with open(os.path.join(ROOT, "script", script), encoding="utf-8") as f:
            text = f.read()
        for line in text.splitlines():
            if re.search(r"\b(ninja -C|cmake --preset)", line.split("#")[0]):
                assert "script/lock" in line, f"script/{script} builds without the lock: {line}"


def flags_of(folder):
    with open(os.path.join(folder, "build.ninja"), encoding="utf-8") as f:
        return set(re.findall(r"^  FLAGS = (.*)$", f.read(), re.M))


def test_the_same_flags_whoever_builds():
    """What `cmake --preset release` says, and so script/run, is how this build was made: nothing is built again."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["cmake", "--preset", "release", "-B", folder], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        mine, theirs = flags_of(BUILD), flags_of(folder)
        assert theirs and mine == theirs, f"{sorted(mine ^ theirs)}"


def test_release_refuses():
    """A release of a made-up checkout: each thing that is missing is named, and then the tag, the archive and its checksum are made."""
    with tempfile.TemporaryDirectory() as root:
        def put(name, text, mode=0o644):
            os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
            with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(os.path.join(root, name), mode)

        def release(*arguments):
            return subprocess.run([os.path.join(root, "script", "release"), *arguments], capture_output=True, text=True)

        def git(*arguments):
            return subprocess.run(["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True, capture_output=True, text=True).stdout

        with open(os.path.join(ROOT, "script", "release"), encoding="utf-8") as f:
            put("script/release", f.read(), 0o755)
        put("script/test", "#!/bin/sh\nexit $(cat result)\n", 0o755)
        put("result", "1\n")
        put(".gitignore", "build/\n")
        put("CMakeLists.txt", "project(uir VERSION 1.2.3 LANGUAGES C)\n")
        put("CHANGELOG.md", "## 1.2.3 (unreleased)\n")
        git("init", "-q")
        git("config", "user.name", "a")
        git("config", "user.email", "a@b")
        for arguments, words in (((), "usage"), (("1.2",), "usage"), (("1.2.3x",), "no version"), (("1.2.3", "--slow"), "--slow"), (("1.2.4",), "CMakeLists.txt"),
                                 (("1.2.3",), "CHANGELOG.md")):
            done = release(*arguments)
            assert done.returncode == 2 and words in done.stderr, f"{arguments}: {done.returncode} {done.stderr}"
        put("CHANGELOG.md", "## 1.2.3 (2026-01-02)\n")
        assert "commit" in release("1.2.3").stderr
        git("add", "-A")
        git("commit", "-qm", "a")
        assert release("1.2.3").returncode == 1 and not git("tag"), "a failed test stops a release"
        put("result", "0\n")
        git("commit", "-qam", "b")
        done = release("1.2.3", "--fast")
        assert done.returncode == 0, done.stderr
        assert git("tag").split() == ["v1.2.3"]
        subprocess.run(["sha256sum", "-c", "uir-1.2.3.tar.gz.sha256"], cwd=os.path.join(root, "build"), check=True, capture_output=True)
        assert "released once" in release("1.2.3").stderr


def counts_of(text, code=0):
    """How the runner takes a suite that says `text`."""
    r = runner.Runner("fast")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "suite.sh")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\nprintf '%s' '{text}'\nexit {code}\n")
        os.chmod(path, 0o700)
        r.log = lambda name: os.path.join(folder, name + ".log")
        r.report.say = lambda text: None
        r.report.record = lambda name, counts, *more, **others: r.report.total.add(counts)
        r.suite(runner.Suite("made-up", "fast", False, False, [path]), {})
    total = r.report.total
    return total.passed, total.failed, total.skipped


def requiring(names):
    """While it is entered, $UIR_REQUIRE is `names`, whatever the runner was given."""
    return unittest.mock.patch.dict(os.environ, {"UIR_REQUIRE": names})


def test_nothing_run_is_a_failure():
    for text, code, expected in (("3 passed, 0 failed, 1 skipped\n", 0, (3, 0, 1)), ("0 passed, 0 failed, 2 skipped\n", 0, (0, 0, 2)),
                                 ("0 passed, 0 failed, 0 skipped\n", 0, (0, 1, 0)), ("0 passed, 0 failed\n", 0, (0, 1, 0)),
                                 ("fine\n", 0, (0, 1, 0)), ("3 passed, 0 failed, 0 skipped\n", 1, (3, 1, 0)),
                                 ("3 passed, 2 failed, 0 skipped\n", 1, (3, 2, 0))):
        assert counts_of(text, code) == expected, f"{text!r}: {counts_of(text, code)} instead of {expected}"
    text = "skip: needs onnx: it is missing\nskip: needs models: none\n1 passed, 0 failed, 2 skipped\n"
    for required, expected in (("", (1, 0, 2)), ("onnx", (1, 1, 1)), ("models,onnx", (1, 2, 0)), ("other", (1, 0, 2))):
        with requiring(required):
            assert counts_of(text) == expected, f"UIR_REQUIRE={required}: {counts_of(text)} instead of {expected}"
    import xml.etree.ElementTree as tree
    for output, expected in (("0 passed, 0 failed, 0 skipped\n", (0, 1, 0)), ("[  PASSED  ] 0 test(s).\n", (0, 1, 0)),
                             ("[  PASSED  ] 2 test(s).\n", (2, 0, 0)), ("", (1, 0, 0))):
        case = tree.fromstring(f"<testcase status='run'><system-out>{output}</system-out></testcase>")
        counts = runner.Runner.count_case(case, [])
        assert (counts.passed, counts.failed, counts.skipped) == expected, f"{output!r}: {counts}"
    case = tree.fromstring(f"<testcase status='run'><system-out>{text}</system-out></testcase>")
    with requiring("models"):
        counts = runner.Runner.count_case(case, [])
    assert (counts.passed, counts.failed, counts.skipped) == (1, 1, 1), f"a required skip of ctest: {counts}"


def test_no_suite_passes_over_a_missing_module():
    """script/test set build/venv up: a module that cannot be imported is a failure, no reason to skip."""
    for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
        for name in names:
            if not name.endswith(".py") or os.path.join(folder, name) == os.path.abspath(__file__):
                continue
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                text = f.read()
            found = re.search(r"except (ImportError|ModuleNotFoundError)[^\n]*\n(\s+[^\n]*\n){0,3}?\s+print\([^\n]*skip", text)
            assert not found, f"{name} skips where a module is missing"


def test_a_suite_in_python_ends_alike():
    """What suite.py prints is what the runner reads; nothing run and a failure are its exit status."""
    def lacks():
        raise suite.Lacking("needs models: none")

    def fails():
        raise AssertionError("wrong")

    tests = {"test_fails": fails, "test_lacks": lacks, "test_passes": lambda: None, "other": fails}
    for words, required, code, expected in (([], "", 1, (1, 1, 1)), ([], "models", 1, (1, 2, 0)), (["passes"], "", 0, (1, 0, 0)),
                                            (["lacks"], "", 0, (0, 0, 1)), (["lacks"], "models", 0, (0, 1, 0)), (["none"], "", 1, (0, 1, 0))):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), requiring(required):
            status = suite.run_tests(tests, words)
            counts = counts_of(said.getvalue(), status)
        assert status == code and counts == expected, f"{words} with {required or 'nothing'} required: exit {status}, {counts}\n{said.getvalue()}"


def test_shards_have_each_test_once():
    for count in (1, 2, 3, 7):
        ran = []
        tests = {f"test_{name}": lambda name=name: ran.append(name) for name in "abcde"}
        for number in range(1, count + 1):
            with unittest.mock.patch.object(sys, "argv", ["suite", "--shard", f"{number}/{count}"]), contextlib.redirect_stdout(io.StringIO()):
                suite.run_tests(tests)
        assert sorted(ran) == list("abcde"), f"{count} shards: {ran}"
    for text in ("0/2", "3/2", "1", "1/0", "-1/2", "a/b"):
        said = io.StringIO()
        with unittest.mock.patch.object(sys, "argv", ["suite", "--shard=" + text]), contextlib.redirect_stderr(said):
            try:
                suite.run_tests({"test_a": lambda: None})
            except SystemExit as end:
                assert end.code == 2 and "K/N" in said.getvalue(), f"{text}: exit {end.code}\n{said.getvalue()}"
            else:
                raise AssertionError(f"--shard {text} was taken")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
