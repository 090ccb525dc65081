"""What the suites of OpenCL devices share: whether the system has one, and a folder for what PoCL compiles.

In: uir-run in $UIR_BIN.
"""
import contextlib
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from suite import BIN, ROOT, Suite, run  # noqa: E402

NO_DEVICE = "needs opencl: a device that the OpenCL library finds"
CHIPS = ("gpu", "cpu")


def has_device():
    return re.search(r"^opencl\n  chips: gpu, cpu$", run("uir-run", "--list-devices").stdout, re.M) is not None


@contextlib.contextmanager
def folder():
    """A folder of the suite's own, with PoCL's cache in it, which is new and empty."""
    with tempfile.TemporaryDirectory(prefix="uir-opencl-") as path:
        os.environ["POCL_CACHE_DIR"] = os.path.join(path, "pocl")
        os.mkdir(os.environ["POCL_CACHE_DIR"])
        yield path


def run_on_device(program, *words, env=None):
    """The exit status of a program that prints a suite's lines; without a device it is skipped."""
    if not has_device():
        suite = Suite()
        suite.skip(NO_DEVICE)
        return suite.end()
    with folder():
        return subprocess.run([os.path.join(BIN, program), *words], cwd=ROOT, stdin=subprocess.DEVNULL,
                              env={**os.environ, **(env or {})}).returncode
