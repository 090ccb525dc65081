#!/usr/bin/env python3
"""The onnx suite's tests by uir-run, each with its inputs alone in a folder of its own, which is empty where the model takes
none: it runs, and gives the outputs that the test expects in number. Those without inputs, and each twelfth of the others
(--all: every one).

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import os
import shutil
import sys
import tempfile

import onnx

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, run  # noqa: E402

DATA = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
EVERY = 12
LEAST_WITHOUT_INPUTS = 5
# What has no rule, and says so.
REFUSED = {"test_gradient_of_add", "test_gradient_of_add_and_mul"}


def check(folder, scratch):
    """What is wrong, or None. Of strings, sequences and optionals the outputs are saved as .pb as well."""
    data, saved = os.path.join(scratch, "data"), os.path.join(scratch, "saved")
    os.mkdir(data)
    for path in glob.glob(os.path.join(folder, "test_data_set_0", "input_*.pb")):
        shutil.copy(path, data)
    done = run("uir-run", os.path.join(folder, "model.onnx"), "--data", data, "--device", "interpreter", "--quiet", "--save", saved,
               timeout=120)
    if os.path.basename(folder) in REFUSED:
        return None if done.returncode == 4 else f"exit {done.returncode}, 4 was expected"
    expected = len(glob.glob(os.path.join(folder, "test_data_set_0", "output_*.pb")))
    given = len(os.listdir(saved)) if os.path.isdir(saved) else 0
    if done.returncode == 0 and given >= expected:
        return None
    return f"exit {done.returncode}, {given} of {expected} outputs: {(done.stderr or done.stdout)[:300]}"


def main():
    folders = sorted(os.path.dirname(p) for p in glob.glob(os.path.join(DATA, "*", "*", "test_data_set_0")))
    bare = [f for f in folders if not glob.glob(os.path.join(f, "test_data_set_0", "input_*.pb"))]
    rest = [f for f in folders if f not in bare]
    chosen = bare + (rest if "--all" in sys.argv[1:] else rest[::EVERY])
    suite = Suite()
    if len(bare) < LEAST_WITHOUT_INPUTS:
        suite.tell(False, f"{len(bare)} tests have no inputs, {LEAST_WITHOUT_INPUTS} are known")
    for folder in chosen:
        with tempfile.TemporaryDirectory(prefix="uir inputs ") as scratch:
            wrong = check(folder, scratch)
        suite.tell(wrong is None, f"{os.path.relpath(folder, DATA)}: {wrong}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
