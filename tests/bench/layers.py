#!/usr/bin/env python3
"""Compile time against the pieces of concatenations, sums and splits: blocks in which each takes all outputs before it.

    layers.py [FORM...] [--layers 10 20 40 80 160] [--device vm cpu] [--bin DIR]

FORM: bare (1x1 convolutions alone), relu (an activation between), norm (batch normalisation and activation between); concat,
sum (one Concat or Sum of as many inputs); residual, chain, newest (each layer sums all values before it, and a convolution or
activation follows; newest: the latest value first); split, parts (one Split into as many outputs; each through an activation,
or all summed). Pieces are the operands of Concats and Sums and the results of Splits. Seconds are processor time of a cold
start to the first output, compilers included. `growth` is the time per piece beside that of 20 layers or pieces: at most 2 is
wanted. Exit 1 where it is more.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN  # noqa: E402

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
    return nodes, weights, {"x": [1, 2 * GROWTH, SIZE, SIZE]}, values[-1:]


def residual(layers, convolved, newest_first=False):
    """A chain in which each layer adds all values before it; what is summed is convolved, or an activation taken of it.
    With the newest value first no two sums have a part in common."""
    g, nodes, weights, values = np.random.default_rng(42), [], [], ["x"]
    for i in range(layers):
        nodes.append(helper.make_node("Sum", values[::-1] if newest_first else values, [f"sum{i}"]))
        if convolved:
            weights.append(tensor(f"w{i}", g.uniform(-1, 1, (GROWTH, GROWTH, 1, 1)) / GROWTH / (i + 1)))
            nodes.append(helper.make_node("Conv", [f"sum{i}", f"w{i}"], [f"y{i}"]))
        else:
            nodes.append(helper.make_node("Tanh", [f"sum{i}"], [f"y{i}"]))
        values.append(f"y{i}")
    return nodes, weights, {"x": [1, GROWTH, SIZE, SIZE]}, values[-1:]


def many_to_one(op, count, **attributes):
    inputs = {f"x{i}": [1, GROWTH, SIZE, SIZE] for i in range(count)}
    return [helper.make_node(op, list(inputs), ["y"], **attributes)], [], inputs, ["y"]


def split(count, together):
    """One Split into so many parts, each an output through an activation of its own, or all summed."""
    parts = [f"part{i}" for i in range(count)]
    nodes = [helper.make_node("Split", ["x"], parts, axis=1)]
    if together:
        nodes.append(helper.make_node("Sum", parts, ["y"]))
    else:
        nodes += [helper.make_node("Relu", [part], [f"y{i}"]) for i, part in enumerate(parts)]
    return nodes, [], {"x": [1, count * GROWTH, SIZE, SIZE]}, ["y"] if together else [f"y{i}" for i in range(count)]


FORMS = {
    "bare": lambda n: block(n, ()),
    "relu": lambda n: block(n, ("relu",)),
    "norm": lambda n: block(n, ("norm", "relu")),
    "concat": lambda n: many_to_one("Concat", n, axis=1),
    "sum": lambda n: many_to_one("Sum", n),
    "residual": lambda n: residual(n, True),
    "chain": lambda n: residual(n, False),
    "newest": lambda n: residual(n, False, True),
    "split": lambda n: split(n, False),
    "parts": lambda n: split(n, True),
}


def save(name, graph, path):
    """Nodes, weights, inputs and outputs as a model."""
    nodes, weights, inputs, outputs = graph
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs], weights)
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write(form, layers, path):
    """The number of pieces."""
    graph = FORMS[form](layers)
    nodes = graph[0]
    save(form, graph, path)
    return sum(len(n.input) for n in nodes if n.op_type in ("Concat", "Sum")) + sum(len(n.output) for n in nodes if n.op_type == "Split")


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
    parser.add_argument("--bin", default=BIN)
    arguments = parser.parse_args()
    unknown = [form for form in arguments.forms if form not in FORMS]
    if unknown:
        parser.error(f"there is no form {unknown[0]}; there are: {', '.join(FORMS)}")
    over = 0
    print("form     device  layers  pieces   seconds  ms a piece  growth")
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
                print(f"{form:<8} {device:<6} {layers:7} {pieces:7} {seconds:9.2f} {each * 1e3:11.3f}  {growth}", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
