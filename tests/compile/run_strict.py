#!/usr/bin/env python3
"""Small models with what exporters write of it that kernels found hard: each runs wholly by kernels.

A case is a model with inputs that it takes, and inputs that it must refuse with what the message says. The expected
outputs come from onnx's own reference, or stand beside the inputs. Every stage is held to the one before by --check.

  run_strict.py [--device NAME] [CASE]...     default: vm; cases by their names
"""
import os
import re
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
import onnx

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cli  # noqa: E402

F, I = TensorProto.FLOAT, TensorProto.INT64


def values(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model(nodes, inputs, outputs, weights=None):
    """Inputs and outputs are (name, type, dims)."""
    info = [[helper.make_tensor_value_info(*v) for v in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "strict", *info,
                              [numpy_helper.from_array(v, k) for k, v in (weights or {}).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


CASES = []


def case(function):
    CASES.append((function.__name__, function))
    return function


@case
def channels_of_the_run():
    """What the weights demand of a size of the input is checked when it is known."""
    m = model([helper.make_node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
               helper.make_node("Conv", ["t", "w"], ["y"], "conv0", pads=[1, 1, 1, 1])],
              [("x", F, ["N", 5, 6, "C"])], [("y", F, ["N", 4, 5, 6])], {"w": values(4, 8, 3, 3)})
    return m, [[values(1, 5, 6, 8)], [values(3, 5, 6, 8)]], [([values(1, 5, 6, 9)], ["conv0", "Conv"])]


@case
def channels_in_groups():
    m = model([helper.make_node("Conv", ["x", "w"], ["y"], "conv0", group=2, pads=[1, 1, 1, 1])],
              [("x", F, [2, "C", 5, 6])], [("y", F, [2, 4, 5, 6])], {"w": values(4, 3, 3, 3)})
    return m, [[values(2, 6, 5, 6)]], [([values(2, 8, 5, 6)], ["conv0"])]


@case
def product_after_computed_shapes():
    """Neither side of the sum is known before the shapes are data."""
    m = model([helper.make_node("Reshape", ["x", "s"], ["t"]), helper.make_node("Reshape", ["z", "q"], ["u"]),
               helper.make_node("MatMul", ["t", "u"], ["y"], "product")],
              [("x", F, ["A", "B"]), ("z", F, ["D", "E"]), ("s", I, [3]), ("q", I, [3])],
              [("y", F, [None, None, None])])
    good = [values(6, 8), values(4, 24), np.array([2, 3, 8]), np.array([2, 8, 6])]
    empty = [values(0, 8), values(0, 24), np.array([0, 3, 8]), np.array([0, 8, 6])]
    bad = [values(6, 8), values(4, 24), np.array([2, 3, 8]), np.array([2, 6, 8])]
    # Without an element the two are no more equal.
    bad_empty = [values(0, 8), values(0, 24), np.array([0, 3, 8]), np.array([0, 7, 6])]
    return m, [good, empty], [(bad, ["product", "MatMul"]), (bad_empty, ["product", "is 7 and must be 8"])]


@case
def product_with_weights():
    """A reshape computes its -1: the weights' rows say what it is."""
    m = model([helper.make_node("Shape", ["x"], ["sx"]), helper.make_node("ReduceMax", ["i"], ["n"], keepdims=1),
               helper.make_node("Concat", ["n", "minus"], ["s"], axis=0),
               helper.make_node("Reshape", ["x", "s"], ["t"]), helper.make_node("MatMul", ["t", "w"], ["y"], "product")],
              [("x", F, ["A", "B"]), ("i", I, ["I"])], [("y", F, [None, 3])],
              {"w": values(4, 3), "minus": np.array([-1], np.int64)})
    x = values(6, 8)
    return (m, [[x, np.array([3, 12, 1])], [values(4, 4), np.array([4])]],
            [([x, np.array([6])], ["product", "MatMul"])])


@case
def attention_of_shared_queries():
    """One set of queries for all windows: its product has windows and keys as columns, which no attention streams."""
    nodes = [helper.make_node("Unsqueeze", ["q", "one"], ["q1"]), helper.make_node("Expand", ["q1", "to"], ["q2"]),
             helper.make_node("Reshape", ["q2", "flat"], ["q3"]), helper.make_node("Reshape", ["k", "flat"], ["k3"]),
             helper.make_node("Reshape", ["v", "flat"], ["v3"]),
             helper.make_node("Transpose", ["k3"], ["kt"], perm=[0, 1, 3, 2]),
             helper.make_node("MatMul", ["q3", "kt"], ["s"], "scores"), helper.make_node("Add", ["s", "bias"], ["sb"]),
             helper.make_node("Softmax", ["sb"], ["p"], axis=-1), helper.make_node("MatMul", ["p", "v3"], ["y"])]
    m = model(nodes, [("q", F, ["N", 2, 6, 8]), ("k", F, ["N", 16, 2, 6, 8]), ("v", F, ["N", 16, 2, 6, 8])],
              [("y", F, ["W", 2, 6, 8])],
              {"one": np.array([1]), "to": np.array([1, 16, 1, 1, 1]), "flat": np.array([-1, 2, 6, 8]),
               "bias": values(1, 2, 6, 6)})
    return m, [[values(n, 2, 6, 8), values(n, 16, 2, 6, 8, seed=2), values(n, 16, 2, 6, 8, seed=3)] for n in (1, 3)], []


def chosen(name, x, k, axis, largest):
    """The first k of few elements; of equal ones the first, and a NaN is greater than any number."""
    def make():
        key = x.astype(np.float64)
        key = np.where(np.isnan(key), 1e300, key) * (-1 if largest else 1)
        order = np.take(np.argsort(key, axis=axis, kind="stable"), range(k), axis)
        m = model([helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=int(largest))],
                  [("x", helper.np_dtype_to_tensor_dtype(x.dtype), ["N"] + list(x.shape[1:]))],
                  [("v", helper.np_dtype_to_tensor_dtype(x.dtype), None), ("i", I, None)], {"k": np.array([k])})
        return m, [([x], [np.take_along_axis(x, order, axis), order])], []
    CASES.append((f"chosen_{name}", make))


odd = values(3, 40, 5)
odd[0, ::3, 1] = np.nan
odd[1, ::7] = np.inf
odd[2, 1::2] = -np.inf
odd[:, 5:9, 2] = 0.0
odd[:, 6:20:3, 2] = -0.0
for side in (False, True):
    chosen(f"odd_{side}", odd, 17, 1, side)
    chosen(f"all_{side}", odd[:2, :3].copy(), 5, -1, side)
chosen("half", np.round(values(4, 8), 1).astype(np.float16), 2, 1, True)
chosen("integers", np.random.default_rng(5).integers(-3, 4, (4, 60)), 9, 1, True)
chosen("none", values(2, 4), 0, 1, True)


@case
def groups_are_products():
    """Channels of a group are summed by products of matrices, whatever comes after the convolution."""
    m = model([helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv0", group=3, pads=[1, 1, 1, 1], strides=[2, 1]),
               helper.make_node("Relu", ["c"], ["r"]), helper.make_node("Add", ["r", "z"], ["y"])],
              [("x", F, ["N", 12, "H", "W"]), ("z", F, ["N", 18, "I", "W"])], [("y", F, ["N", 18, "I", "W"])],
              {"w": values(18, 4, 3, 3), "b": values(18)})
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(m, os.path.join(folder, "groups.onnx"))
        done = cli.run(cli.OPT, os.path.join(folder, "groups.onnx"), "--after", "loop")
        cli.expect(done.returncode == 0 and re.search(r"tensor x\d : f32 \[3, 6, 4, 3, 3\]", done.out),
                   "a convolution in groups without an axis of groups", done)
    return m, [[values(n, 12, 7, w), values(n, 18, 4, w)] for n, w in ((1, 9), (2, 33))], []


@case
def groups_of_lines():
    m = model([helper.make_node("Conv", ["x", "w"], ["c"], "conv0", group=2, pads=[3, 0], dilations=[2]),
               helper.make_node("Sigmoid", ["c"], ["y"])],
              [("x", F, ["N", 6, "W"])], [("y", F, ["N", 10, None])], {"w": values(10, 3, 3)})
    return m, [[values(2, 6, 40)], [values(1, 6, 5)]], []


@case
def pad_by_an_input():
    m = model([helper.make_node("Pad", ["x", "p", "v"], ["y"], "pad0")], [("x", F, ["N", 3, "W"]), ("v", F, [])],
              [("y", F, None)], {"p": np.array([0, 2, 0, 1, 0, 3])})
    return m, [[values(2, 3, 6), np.float32(7.5)], [values(1, 3, 1), np.float32(-np.inf)]], []


@case
def integer_convolution_with_a_zero_point():
    m = model([helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], "conv0", pads=[1, 1, 1, 1])],
              [("x", TensorProto.UINT8, ["N", 2, 5, 6]), ("z", TensorProto.UINT8, [])],
              [("y", TensorProto.INT32, ["N", 3, 5, 6])],
              {"w": np.random.default_rng(2).integers(0, 255, (3, 2, 3, 3)).astype(np.uint8)})
    x = np.random.default_rng(3).integers(0, 255, (2, 2, 5, 6)).astype(np.uint8)
    return m, [[x, np.uint8(9)], [x, np.uint8(0)]], []


def image_of_one(name, op, shapes, weights=None, **attributes):
    """Padding around an axis of one element: what a window sees there is what it sees outside of any image."""
    def make():
        inputs = ["x"] + (["w"] if weights is not None else [])
        dims = ["N"] + [d if d == shapes[0][i + 1] == shapes[-1][i + 1] else f"d{i}" for i, d in enumerate(shapes[0][1:])]
        m = model([helper.make_node(op, inputs, ["y"], **attributes)], [("x", F, dims)], [("y", F, [None] * len(dims))],
                  {} if weights is None else {"w": weights})
        return m, [[values(*s)] for s in shapes], []
    CASES.append((f"image_of_one_{name}", make))


for side in (1, 2):
    image_of_one(f"pool{side}", "AveragePool", [(2, 3, 1, 1)], kernel_shape=[3, 3], pads=[side] * 4)
    image_of_one(f"max{side}", "MaxPool", [(2, 3, 1, 4)], kernel_shape=[3, 3], pads=[side] * 4, strides=[2, 1])
    image_of_one(f"conv{side}", "Conv", [(2, 3, 1, 1), (1, 3, 1, 1)], values(4, 3, 3, 3), pads=[side] * 4)
    image_of_one(f"line{side}", "Conv", [(2, 3, 1, 7)], values(4, 3, 3, 3), pads=[side] * 4, dilations=[2 - side % 2, 1])
    image_of_one(f"depthwise{side}", "Conv", [(2, 4, 1, 1)], values(4, 1, 3, 3), pads=[side] * 4, group=4)
    image_of_one(f"groups{side}", "Conv", [(2, 4, 1, 1)], values(4, 2, 3, 3), pads=[side] * 4, group=2)
image_of_one("included", "AveragePool", [(2, 3, 1, 5), (2, 3, 1, 2)], kernel_shape=[3, 3], pads=[1] * 4, count_include_pad=1)
image_of_one("far", "MaxPool", [(2, 3, 1, 5)], kernel_shape=[3, 3], pads=[2, 1, 2, 1], dilations=[2, 1])


def write(folder, arrays, stem):
    for i, a in enumerate(arrays):
        with open(os.path.join(folder, f"{stem}_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(np.asarray(a)).SerializeToString())


def check(name, make, devices):
    m, taken, refused = make()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(m, path)
        sets = [(inputs, None) for inputs in taken] + list(refused)
        for k, (inputs, words) in enumerate(sets):
            inputs, expected = inputs if isinstance(inputs, tuple) else (inputs, None)
            data = os.path.join(folder, f"data_{k}")
            os.mkdir(data)
            write(data, inputs, "input")
            if words is None:
                names = [v.name for v in m.graph.input]
                write(data, expected or ReferenceEvaluator(m).run(None, dict(zip(names, inputs))), "output")
            for device in devices:
                strict = [] if device == "interpreter" else ["--no-fallback", "--no-vendor"]
                if device.startswith("cpu"):
                    strict.append("--no-vm")
                done = cli.run(cli.RUN, path, "--data", data, "--device", device, strict)
                if words is None:
                    cli.expect(done.returncode == 0 and "agrees" in done.out, f"{name}, data {k} on {device}", done)
                else:
                    cli.expect(done.returncode not in (0, 1) and done.returncode > 0 and
                               all(w in done.err for w in words), f"{name}, bad data {k} on {device}", done)
            if k == 0 and not name.startswith(("image_of_one", "chosen")):
                done = cli.run(cli.RUN, path, "--data", data, "--check")
                cli.expect(done.returncode == 0, f"{name}, data {k} with --check", done)


def main():
    parser = cli.make_parser(__doc__)
    parser.add_argument("--device", action="append")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    devices = options.device or ["interpreter", "vm"]
    return cli.run_tests({f"test_{name}": lambda name=name, make=make: check(name, make, devices)
                          for name, make in CASES if not options.cases or name in options.cases}, [])


if __name__ == "__main__":
    sys.exit(main())
