"""Models made here, in the onnx suite's layout, run by conformance_suite on the interpreter, the VM and (each twelfth) the CPU: what the
suite has no test of. The cases are in made_*.py, each with what ONNX Runtime or NumPy says; hostile ones must end with
an error and a message. Writes to build/made. `run_made.py TEXT` runs the cases whose name holds the text."""
import importlib
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, "build", "made")
BIN = os.environ.get("UIR_BIN", os.path.join(ROOT, "build", "release", "bin"))
MODULES = ("made_opsets", "made_text", "made_ml", "made_svm", "made_skl", "made_branches",
           "made_remainder", "made_microsoft", "made_lengths")
ENGINES = (["--device", "interpreter"], ["--device", "vm"], ["--device", "cpu", "--compiled", "--every", "12"])


def to_proto(value):
    """A value as the protobuf message of a data file."""
    return numpy_helper.from_array(np.asarray(value))


def write(name, model, inputs, outputs):
    folder = os.path.join(OUT, "cases", "node", name)
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for kind, values in (("input", inputs), ("output", outputs)):
        for i, value in enumerate(values):
            if value is None:
                continue
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                file.write(to_proto(value).SerializeToString())


def run_engines():
    totals = [0, 0, 0]
    for engine in ENGINES:
        command = [os.path.join(BIN, "conformance_suite"), "--data", os.path.join(OUT, "cases"), "--timeout", "120"]
        result = subprocess.run(command + engine, capture_output=True, text=True, cwd=ROOT, check=False)
        for line in result.stdout.splitlines():
            if line.startswith(("FAILED", "skip")):
                print(f"{engine[1]}: {line}")
        found = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", result.stdout, re.M)
        if not found:
            print(f"{engine[1]}: the suite ended with {result.returncode} and no sum")
            totals[1] += 1
            continue
        totals = [total + int(number) for total, number in zip(totals, found[-1])]
    # A case made here has a rule: none may be left out.
    return totals[0], totals[1] + totals[2]


def run_hostile(cases):
    passed, failed = 0, 0
    folder = os.path.join(OUT, "hostile")
    os.makedirs(folder)
    for name, model in cases:
        path = os.path.join(folder, name + ".onnx")
        onnx.save(model, path)
        result = subprocess.run([os.path.join(BIN, "uir-run"), path, "--device", "interpreter"], capture_output=True,
                                text=True, timeout=60, check=False)
        good = result.returncode in (3, 4) and "error:" in result.stderr
        passed, failed = passed + good, failed + (not good)
        if not good:
            print(f"FAILED {name}: exit {result.returncode}: {result.stderr[-300:]}")
    return passed, failed


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    shutil.rmtree(OUT, ignore_errors=True)
    hostile = []
    for module in MODULES:
        cases = importlib.import_module(module)
        for name, model, inputs, outputs in cases.cases():
            if wanted in name:
                write(name, model, inputs, outputs)
        hostile += [case for case in getattr(cases, "hostile", list)() if wanted in case[0]]
    passed, failed = run_engines()
    more_passed, more_failed = run_hostile(hostile)
    print(f"{passed + more_passed} passed, {failed + more_failed} failed, 0 skipped")
    sys.exit(failed + more_failed != 0)


main()
