"""Models made here, in the onnx suite's layout, run by conformance_suite on the interpreter, the VM and (each twelfth) the CPU: what the
suite has no test of. The cases are in made_*.py, each with what ONNX Runtime or NumPy says; hostile ones must end with
an error and a message. Writes to build/made. `run_made.py TEXT` runs the cases whose name holds the text."""
import importlib
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import ROOT, Suite, read_counts, run  # noqa: E402

OUT = os.path.join(ROOT, "build", "made")
MODULES = ("made_opsets", "made_text", "made_ml", "made_svm", "made_skl", "made_branches",
           "made_remainder", "made_microsoft", "made_lengths")
ENGINES = (["--device", "interpreter"], ["--device", "vm"], ["--device", "cpu", "--compiled", "--every", "24"])


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


def run_engines(suite):
    for engine in ENGINES:
        result = run("conformance_suite", "--data", os.path.join(OUT, "cases"), "--timeout", "120", *engine, cwd=ROOT)
        for line in result.stdout.splitlines():
            if line.startswith(("FAILED", "skip")):
                print(f"{engine[1]}: {line}")
        counts = read_counts(result.stdout)
        if counts:
            passed, failed, skipped = counts
            suite.add(passed, failed + skipped)  # a case made here has a rule: none may be left out
        else:
            suite.tell(False, f"{engine[1]}: the suite ended with {result.returncode} and no sum")


def run_hostile(suite, cases):
    folder = os.path.join(OUT, "hostile")
    os.makedirs(folder)
    for name, model in cases:
        path = os.path.join(folder, name + ".onnx")
        onnx.save(model, path)
        result = run("uir-run", path, "--device", "interpreter", timeout=60)
        suite.tell(result.returncode in (3, 4) and "error:" in result.stderr,
                   f"{name}: exit {result.returncode}: {result.stderr[-300:]}")


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
    suite = Suite()
    run_engines(suite)
    run_hostile(suite, hostile)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
