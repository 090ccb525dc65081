#!/usr/bin/env python3
"""Compile time against the layers of blocks in which each Concat takes all outputs before it, as in a DenseNet.

    layers.py [FORM...] [--layers 10 20 40 80 160] [--device vm cpu] [--bin DIR]

FORM: bare (1x1 convolutions alone), relu (an activation between), norm (batch normalisation and activation between), wide (one
Concat of as many inputs). Pieces are the operands of all Concats. Seconds are processor time of a cold start to the first output,
compilers included. `growth` is the time per piece beside that of 20 layers: at most 2 is wanted. Exit 1 where it is more.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GROWTH, SIZE, BASE, MOST = 4, 8, 20, 2


def tensor(name, array):
    return numpy_helper.from_array(np.asarray(array, np.float32), name)


def normalisation(i, x, channels, g, weights):
    names = [f"{part}{i}" for part in ("scale", "bias", "mean", "variance")]
    weights += [tensor(name, g.uniform(0.5, 1, channels)) for name in names]
    return helper.make_node("BatchNormalization", [x, *names], [f"norm{i}"])


def block(layers, between):
    """Nodes, weights, inputs and output of a block of so many layers; what stands between Concat and convolution."""
    g, nodes, weights, values, channels = np.random.default_rng(42), [], [], ["x"], 2 * GROWTH
    for i in range(layers):
        last = f"concat{i}"
        nodes.append(helper.make_node("Concat", values, [last], axis=1))
        if "norm" in between:
            nodes.append(normalisation(i, last, channels, g, weights))
            last = f"norm{i}"
        if "relu" in between:
            nodes.append(helper.make_node("Relu", [last], [f"relu{i}"]))
            last = f"relu{i}"
        weights.append(tensor(f"w{i}", g.uniform(-1, 1, (GROWTH, channels, 1, 1)) / channels))
        nodes.append(helper.make_node("Conv", [last, f"w{i}"], [f"y{i}"]))
        values, channels = values + [f"y{i}"], channels + GROWTH
    return nodes, weights, {"x": [1, 2 * GROWTH, SIZE, SIZE]}, values[-1]


def wide(count):
    inputs = {f"x{i}": [1, GROWTH, SIZE, SIZE] for i in range(count)}
    return [helper.make_node("Concat", list(inputs), ["y"], axis=1)], [], inputs, "y"


FORMS = {"bare": lambda n: block(n, ()), "relu": lambda n: block(n, ("relu",)), "norm": lambda n: block(n, ("norm", "relu")),
         "wide": wide}


def write(form, layers, path):
    """The number of pieces."""
    nodes, weights, inputs, output = FORMS[form](layers)
    graph = helper.make_graph(nodes, form, [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
                              [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)], weights)
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return sum(len(n.input) for n in nodes if n.op_type == "Concat")


def measure(program, model, device):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([program, model, "--device", device, "--no-cache", "--quiet", *(["--no-vm"] if device == "cpu" else [])],
                   check=True, stdin=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("forms", nargs="*", metavar="FORM", help="of " + ", ".join(FORMS) + " (default: all)")
    parser.add_argument("--layers", type=int, nargs="+", default=[10, 20, 40, 80, 160])
    parser.add_argument("--device", nargs="+", default=["vm", "cpu"])
    parser.add_argument("--bin", default=os.environ.get("UIR_BIN", os.path.join(ROOT, "build", "release", "bin")))
    arguments = parser.parse_args()
    unknown = [form for form in arguments.forms if form not in FORMS]
    if unknown:
        parser.error(f"there is no form {unknown[0]}; there are: {', '.join(FORMS)}")
    over = 0
    print("form  device  layers  pieces   seconds  ms a piece  growth")
    for form in arguments.forms or FORMS:
        for device in arguments.device:
            base = None
            for layers in sorted({*arguments.layers, BASE}):
                with tempfile.TemporaryDirectory(prefix="uir-bench-") as scratch:
                    path = os.path.join(scratch, "model.onnx")
                    pieces = write(form, layers, path)
                    seconds = measure(os.path.join(arguments.bin, "uir-run"), path, device)
                each = seconds / pieces
                base = each if layers == BASE else base
                growth = f"{each / base:6.2f}" if base else ""
                over += base is not None and each > MOST * base
                print(f"{form:<5} {device:<6} {layers:7} {pieces:7} {seconds:9.2f} {each * 1e3:11.3f}  {growth}", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
