"""The onnx suite's node tests in other clothes, run by conformance_suite: what a rule decides from shapes and constants must
come out the same when it learns them at another time.

  symbolic   every extent of every tensor input of rank 2 and up is a symbol
  lists      integer and boolean inputs of rank 0 and 1 (axes, starts, pads, sizes ..) are constants
  constant   every input is a constant: the whole model folds

Function bodies (`_expanded`) are left out: they are the same rules again. Writes to build/variants."""
import glob
import os
import re
import shutil
import subprocess
import sys

import onnx
from onnx import TensorProto

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
OUT = os.path.join(ROOT, "build", "variants")
LISTS = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)


def tensor_type(value):
    return value.type.tensor_type if value.type.HasField("tensor_type") else None


def make_symbolic(model):
    count = 0
    for value in model.graph.input:
        kind = tensor_type(value)
        if kind is None or len(kind.shape.dim) < 2:
            continue
        for dim in kind.shape.dim:
            dim.Clear()
            dim.dim_param = f"D{count}"
            count += 1
    return list(enumerate(model.graph.input)) if count else None


def make_constant(model, folder, lists_only):
    """Turns inputs into initializers; returns those that stay, with their numbers, or None when nothing changed."""
    stay, made = [], []
    for number, value in enumerate(model.graph.input):
        kind = tensor_type(value)
        wanted = kind is not None and kind.elem_type != TensorProto.STRING
        if lists_only:
            wanted = wanted and kind.elem_type in LISTS and len(kind.shape.dim) < 2
        if not wanted:
            stay.append((number, value))
            continue
        tensor = TensorProto()
        with open(os.path.join(folder, "test_data_set_0", f"input_{number}.pb"), "rb") as f:
            tensor.ParseFromString(f.read())
        tensor.name = value.name
        made.append(tensor)
    values = [value for _, value in stay]
    del model.graph.input[:]
    model.graph.input.extend(values)
    model.graph.initializer.extend(made)
    return stay if made else None


def write(variant, name):
    folder = os.path.join(DATA, name)
    model = onnx.load(os.path.join(folder, "model.onnx"))
    stay = make_symbolic(model) if variant == "symbolic" else make_constant(model, folder, variant == "lists")
    if stay is None:
        return
    for value in model.graph.output:
        if tensor_type(value) is not None:
            value.type.tensor_type.ClearField("shape")
    target = os.path.join(OUT, variant, "node", name)
    data = os.path.join(target, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(target, "model.onnx"))
    for new, (old, _) in enumerate(stay):
        os.symlink(os.path.join(folder, "test_data_set_0", f"input_{old}.pb"), os.path.join(data, f"input_{new}.pb"))
    for path in glob.glob(os.path.join(folder, "test_data_set_0", "output_*.pb")):
        os.symlink(path, os.path.join(data, os.path.basename(path)))


def main():
    program = os.path.join(os.environ.get("UIR_BIN", os.path.join(ROOT, "build", "release", "bin")), "conformance_suite")
    totals = [0, 0, 0]
    for variant in ("symbolic", "lists", "constant"):
        shutil.rmtree(os.path.join(OUT, variant), ignore_errors=True)
        for name in sorted(os.listdir(DATA)):
            if not name.endswith("_expanded") and "_expanded_" not in name:
                write(variant, name)
        result = subprocess.run([program, "--data", os.path.join(OUT, variant), "--timeout", "120"],
                                capture_output=True, text=True, cwd=ROOT, check=False)
        for line in result.stdout.splitlines():
            if line.startswith("FAILED"):
                print(f"{variant}: {line}")
        found = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", result.stdout, re.M)
        if not found:
            print(f"{variant}: the suite ended with {result.returncode} and no sum")
            totals[1] += 1
            continue
        print(f"{variant}: {found[-1][0]} passed, {found[-1][1]} fail, {found[-1][2]} unsupported or random")
        totals = [total + int(number) for total, number in zip(totals, found[-1])]
    if totals[2]:
        print(f"skip: {totals[2]} variants: unsupported or random, as conformance_suite lists them")
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    sys.exit(totals[1] != 0)


main()
