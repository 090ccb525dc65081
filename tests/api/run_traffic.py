#!/usr/bin/env python3
"""What one kernel moves: softmax, norms, gelu and elementwise chains whose row fits on the chip are one launch of one phase, keep
nothing in the device's memory between, and their slices move at most 1.05 of the bytes of their inputs and outputs. Counted from
the slices that the launches of a run take, on models made here, at several sizes of one compile each.
"""
import os
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, run  # noqa: E402

MOST = 1.05
random = np.random.default_rng(7)


def some(*shape):
    return random.standard_normal(shape).astype(np.float32)


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


# name: nodes, inputs with their dims (a number is known when the model is compiled), constants, sizes to run
CASES = {
    "softmax": ([node("Softmax", "x", "y")], {"x": ("M", "N")}, {}, [(1, 7), (100, 768), (300, 1000)]),
    "softmax of scaled and masked rows": (
        [node("Mul", "x s", "a"), node("Add", "a m", "b"), node("Softmax", "b", "y")],
        {"x": ("M", "N"), "m": ("M", "N")}, {"s": np.float32(0.125)}, [(96, 512), (33, 100)]),
    "layer norm": ([node("LayerNormalization", "x g b", "y")], {"x": ("M", 768)}, {"g": some(768), "b": some(768)},
                   [(1,), (64,), (200,), (513,)]),
    "layer norm, sizes known": ([node("LayerNormalization", "x g b", "y")], {"x": (48, 1024)},
                                {"g": some(1024), "b": some(1024)}, [()]),
    "rms norm": ([node("Mul", "x x", "q"), node("ReduceMean", "q a", "m"), node("Add", "m e", "n"), node("Sqrt", "n", "r"),
                  node("Div", "x r", "z"), node("Mul", "z w", "y")], {"x": ("M", 512)},
                 {"a": np.array([-1]), "e": np.float32(1e-5), "w": some(512)}, [(1,), (150,), (1000,)]),
    "gelu": ([node("Gelu", "x", "y")], {"x": ("B", "S", 384)}, {}, [(1, 1), (2, 77)]),
    "gelu written out": ([node("Div", "x r", "a"), node("Erf", "a", "b"), node("Add", "b o", "c"), node("Mul", "x c", "d"),
                          node("Mul", "d h", "y")], {"x": ("M", "N")},
                         {"r": np.float32(2 ** 0.5), "o": np.float32(1), "h": np.float32(0.5)}, [(1, 3000), (100, 768)]),
    "silu": ([node("Sigmoid", "x", "s"), node("Mul", "x s", "y")], {"x": ("M", 768)}, {}, [(1,), (100,)]),
    "swiglu": ([node("Sigmoid", "x", "s"), node("Mul", "x s", "t"), node("Mul", "t u", "y")],
               {"x": ("M", 768), "u": ("M", 768)}, {}, [(5,), (100,)]),
    "bias and gelu": ([node("Add", "x b", "a"), node("Gelu", "a", "y")], {"x": ("B", "S", 768)}, {"b": some(768)},
                      [(1, 1), (2, 50), (4, 256)]),
    "chain of five": ([node("Add", "x z", "a"), node("Mul", "a x", "b"), node("Relu", "b", "c"), node("Sub", "c z", "d"),
                       node("Tanh", "d", "y")], {"x": ("N",), "z": ("N",)}, {}, [(1,), (100000,)]),
}


def write_model(case, path):
    nodes, inputs, constants, _ = case
    rank = max(len(dims) for dims in inputs.values())
    graph = helper.make_graph(
        nodes, "case", [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n, dims in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=8), path)


def write_inputs(case, sizes, folder):
    names = []
    for dims in case[1].values():
        names += [d for d in dims if isinstance(d, str) and d not in names]
    values = dict(zip(names, sizes))
    os.makedirs(folder)
    for i, dims in enumerate(case[1].values()):
        with open(os.path.join(folder, f"input_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(some(*[values.get(d, d) for d in dims])).SerializeToString())


def why_not(model, data):
    """What is wrong with a run, or None."""
    done = run("uir-traffic", model, "vm", data, timeout=120)
    if done.returncode:
        return done.stderr.strip()
    *launches, arena = [line.split() for line in done.stdout.splitlines()]
    if len(launches) != 1:
        return f"{len(launches)} launches"
    _, phases, tensors, slices = map(int, launches[0][:4])
    if phases != 1:
        return f"{phases} phases"
    if int(arena[1]):
        return f"{arena[1]} bytes between phases"
    if not 0 < slices <= MOST * tensors:
        return f"moves {slices} bytes, its tensors are {tensors}"
    return None


def main():
    suite = Suite()
    with tempfile.TemporaryDirectory(prefix="uir-traffic-") as scratch:
        for number, (name, case) in enumerate(CASES.items()):
            model = os.path.join(scratch, f"{number}.onnx")
            write_model(case, model)
            for sizes in case[3]:
                data = os.path.join(scratch, f"{number}-" + "x".join(map(str, sizes)))
                write_inputs(case, sizes, data)
                why = why_not(model, data)
                suite.tell(why is None, f"{name} {sizes}: {why}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
