#!/usr/bin/env python3
"""No elements, no work: a result without elements is given at once, however long its other axes are, by the VM and by
compiled kernels; by the interpreter as well, unless what lies between has more elements than memory.

Each model runs with a free axis of 5 elements and with one of 2^40: the result that is empty with 5 has 2^40 in its
place and is empty too, and nobody walks along it. What is refused with 5 is refused then.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import BAD_FILE, FAILED, RAN, RUN, expect, make_model, run, run_tests, save, value  # noqa: E402

SHORT, LONG, HANGS_S = 5, 2 ** 40, 60
ENGINES = {"interpreter": ["--device", "interpreter"], "vm": ["--device", "vm"], "cpu": ["--device", "cpu", "--no-vm"]}
COMPILED = {"Softmax", "CumSum", "Concat", "Transpose", "MatMul"}  # the others' kernels differ in nothing that matters
N = None  # the free axis
node = helper.make_node
THREE = [(N, 0, 3), (0, N, 3), (3, N, 0), (0, 3, N), (N, 3, 0), (3, 0, N)]
SHAPES = {"LSTM": [(N, 0, 3), (N, 3, 0)]}  # of a long batch the state is as long, and memory ends


def integers(*values):
    return np.array(values, np.int64)


def zeros(*shape):
    return np.zeros(shape, np.float32)


def along(op, **attributes):
    return lambda axis: ([node(op, ["x"], ["y"], axis=axis, **attributes)], {})


# A maker for each operator: of the axis, nodes and constants. Its result is "y".
MAKERS = {
    "Relu": lambda axis: ([node("Relu", ["x"], ["y"])], {}),
    "Add": lambda axis: ([node("Add", ["x", "b"], ["y"])], {"b": zeros(1)}),
    "Softmax": along("Softmax"),
    "LogSoftmax": along("LogSoftmax"),
    "LpNormalization": along("LpNormalization"),
    "Flatten": along("Flatten"),
    "Split": lambda axis: ([node("Split", ["x"], ["y", "z"], axis=axis, num_outputs=2)], {}),
    "Concat": lambda axis: ([node("Concat", ["x", "x"], ["y"], axis=axis)], {}),
    "Gather": lambda axis: ([node("Gather", ["x", "i"], ["y"], axis=axis)], {"i": integers(0, 1)}),
    "TopK": lambda axis: ([node("TopK", ["x", "k"], ["y", "i"], axis=axis)], {"k": integers(2)}),
    "ArgMax": lambda axis: ([node("ArgMax", ["x"], ["y"], axis=axis)], {}),
    "ReduceSum": lambda axis: ([node("ReduceSum", ["x", "a"], ["y"])], {"a": integers(axis)}),
    "ReduceLogSumExp": lambda axis: ([node("ReduceLogSumExp", ["x", "a"], ["y"])], {"a": integers(axis)}),
    "CumSum": lambda axis: ([node("CumSum", ["x", "a"], ["y"])], {"a": np.int64(axis)}),
    "LayerNormalization": lambda axis: ([node("LayerNormalization", ["x", "s"], ["y"], axis=axis)], {"s": zeros(1)}),
    "Slice": lambda axis: ([node("Slice", ["x", "s", "e", "a", "t"], ["y"])],
                           {"s": integers(-1), "e": integers(-2 ** 62), "a": integers(axis), "t": integers(-1)}),
    "Transpose": lambda axis: ([node("Transpose", ["x"], ["y"], perm=[(axis + k) % 3 for k in range(3)])], {}),
    "Tile": lambda axis: ([node("Tile", ["x", "r"], ["y"])], {"r": integers(*np.roll([3, 1, 2], axis))}),
    "Pad": lambda axis: ([node("Pad", ["x", "p", "", "a"], ["y"])], {"p": integers(1, 1), "a": integers(axis)}),
    "Expand": lambda axis: ([node("Expand", ["x", "r"], ["y"])], {"r": integers(2, 1, 1, 1)}),
    "NonZero": lambda axis: ([node("NonZero", ["x"], ["y"])], {}),
    "Where": lambda axis: ([node("Cast", ["x"], ["c"], to=TensorProto.BOOL), node("Where", ["c", "x", "x"], ["y"])], {}),
    "ScatterElements": lambda axis: ([node("Cast", ["x"], ["i"], to=TensorProto.INT64),
                                      node("ScatterElements", ["x", "i", "x"], ["y"], axis=axis)], {}),
    "MatMul": lambda axis: ([node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("MatMul", ["x", "t"], ["y"])], {}),
    "LSTM": lambda axis: ([node("LSTM", ["x", "w", "v"], ["y"], hidden_size=2)],
                          {"w": zeros(1, 8, 3), "v": zeros(1, 8, 2)}),
    "several": lambda axis: ([node("Relu", ["x"], ["r"]), node("Softmax", ["r"], ["s"], axis=axis),
                              node("Add", ["s", "x"], ["y"])], {}),
}


def shape_of(engine, path, shape, extra=()):
    """What the engine gives: its exit code and the shape of the result, if any. A value of more elements than a run may
    have is no fault of the file: FAILED, as where memory ends."""
    words = "x".join(str(d) for d in shape)
    try:
        done = run(RUN, path, *ENGINES[engine], "--no-cache", "--quiet", "--json", "--shape", f"x={words}", *extra,
                   timeout=HANGS_S)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{engine} hangs at {words}") from None
    expect(done.returncode in (RAN, BAD_FILE, FAILED), f"{engine} at {words}", done)
    if done.returncode == BAD_FILE and "--limit-elements" in done.err:
        return FAILED, None
    return done.returncode, json.loads(done.out)["outputs"][0]["shape"] if done.returncode == RAN else None


def check(name, axis):
    nodes, constants = MAKERS[name](axis)
    kept = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    output = helper.make_empty_tensor_value_info("y")
    with tempfile.TemporaryDirectory() as folder:
        path = save(make_model(nodes, [value("x", ["a", "b", "c"])], [output], kept), os.path.join(folder, "m.onnx"))
        for shape in SHAPES.get(name, THREE):
            short, long = ([size if d is N else d for d in shape] for size in (SHORT, LONG))
            code, empty = shape_of("interpreter", path, short)
            if code == RAN and np.prod(empty):
                continue  # with the long axis it is as long, and memory ends
            for engine in ENGINES if name in COMPILED and axis == 1 else ("interpreter", "vm"):
                got, found = shape_of(engine, path, long)
                if code == RAN:
                    expect(got == RAN or engine == "interpreter" and got == FAILED, f"{name} by {engine} at {long}: {got}")
                    expect(got != RAN or 0 in found and len(found) == len(empty), f"{name} by {engine}: {found}")
                else:
                    expect(got != RAN, f"{name} by {engine} at {long} gives {found}; at {short} it is refused")


def check_suppression():
    """Boxes of none, of very many classes."""
    with tempfile.TemporaryDirectory() as folder:
        graph = [node("NonMaxSuppression", ["b", "x", "m"], ["y"])]
        kept = [numpy_helper.from_array(zeros(1, 0, 4), "b"), numpy_helper.from_array(integers(3), "m")]
        path = save(make_model(graph, [value("x", [1, "classes", 0])], [helper.make_empty_tensor_value_info("y")], kept),
                    os.path.join(folder, "m.onnx"))
        for engine in ("interpreter", "vm"):
            expect(shape_of(engine, path, [1, LONG, 0]) == (RAN, [0, 3]), f"{engine} finds boxes")


if __name__ == "__main__":
    tests = {f"test_{name}_{axis}": lambda name=name, axis=axis: check(name, axis) for name in MAKERS for axis in range(3)}
    tests["test_NonMaxSuppression"] = check_suppression
    sys.exit(run_tests(tests))
