#!/usr/bin/env python3
"""Tensors of no elements, of free dims: every operator that sums, chooses, normalises, pools or moves along an axis, with
0 in each place, by the interpreter, the VM, kernels for a described machine and, of some, compiled kernels. All give one
result, which is that of ONNX's reference where it has one; what chooses of nothing is refused by all.

usage: run_nothing.py [NAME...]

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`."""
import os
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import BAD_FILE, RAN, RUN, expect, run, run_tests  # noqa: E402

ENGINES = {"interpreter": ["--device", "interpreter"], "vm": ["--device", "vm"],
           "ascend": ["--device", "ascend", "--interpret"], "cpu": ["--device", "cpu", "--no-vm"]}
COMPILED = {"Hardmax1", "ReduceMean2", "ReduceMax1", "Softmax2", "MaxPool", "MatMul0", "CumSum1"}
REFERENCE_ERRS = ("GatherElements",)  # which gives a result of another rank there
node = helper.make_node
THREE = [(0, 3, 4), (3, 0, 4), (3, 4, 0)]
REFUSED = {f"Arg{what}{axis}": THREE[axis] for what in ("Max", "Min") for axis in range(3)}
IMAGES = [(0, 3, 8, 8), (2, 0, 8, 8), (2, 3, 0, 8), (2, 3, 8, 0)]
TWO = [(0, 3), (3, 0)]


def integers(*values):
    return np.array(values, np.int64)


def ones(*shape):
    return np.ones(shape, np.float32)


CASES = {}  # name: shapes of x, nodes that make y, constants


def case(name, shapes, nodes, **constants):
    CASES[name] = (shapes, nodes if isinstance(nodes, list) else [nodes], constants)


def reductions():
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
        for axis in range(3):
            case(f"Reduce{op}{axis}", THREE, node("Reduce" + op, ["x", "a"], ["y"], keepdims=axis % 2), a=integers(axis))
        case(f"Reduce{op}_all", THREE, node("Reduce" + op, ["x"], ["y"]))
        case(f"Reduce{op}_two", THREE, node("Reduce" + op, ["x", "a"], ["y"]), a=integers(0, 2))


def along_axes():
    for axis in range(3):
        for op in ("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax", "LpNormalization"):
            case(f"{op}{axis}", THREE, node(op, ["x"], ["y"], axis=axis))
        whole = node("Cast", ["x"], ["i"], to=TensorProto.INT64)
        case(f"CumSum{axis}", THREE, node("CumSum", ["x", "a"], ["y"]), a=np.int64(axis))
        case(f"LayerNormalization{axis}", THREE, node("LayerNormalization", ["x", "s"], ["y"], axis=axis), s=ones(1))
        case(f"RMSNormalization{axis}", THREE, node("RMSNormalization", ["x", "s"], ["y"], axis=axis), s=ones(1))
        case(f"TopK{axis}", THREE, node("TopK", ["x", "k"], ["y", "i"], axis=axis), k=integers(0))
        case(f"OneHot{axis}", THREE, [whole, node("OneHot", ["i", "d", "v"], ["y"], axis=axis)], d=np.int64(3), v=ones(2))
        case(f"GatherElements{axis}", THREE, [whole, node("GatherElements", ["x", "i"], ["y"], axis=axis)])
        case(f"Split{axis}", THREE, node("Split", ["x"], ["y", "z"], axis=axis, num_outputs=2))
        case(f"Compress{axis}", [THREE[(axis + 1) % 3]], node("Compress", ["x", "c"], ["y"], axis=axis), c=np.array([1, 0, 1], bool))


def networks():
    case("InstanceNormalization", [(0, 3, 4), (2, 3, 0)], node("InstanceNormalization", ["x", "s", "s"], ["y"]), s=ones(3))
    case("GroupNormalization", [(0, 4, 4), (2, 4, 0)], node("GroupNormalization", ["x", "s", "s"], ["y"], num_groups=2), s=ones(4))
    case("BatchNormalization", [(0, 3, 4), (2, 3, 0)], node("BatchNormalization", ["x", "s", "s", "s", "s"], ["y"]), s=ones(3))
    case("LRN", [(0, 3, 4, 4), (2, 3, 0, 4), (2, 0, 4, 4)], node("LRN", ["x"], ["y"], size=3))
    case("MeanVarianceNormalization", THREE, node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2]))
    for op in ("MaxPool", "AveragePool", "LpPool"):
        case(op, IMAGES, node(op, ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2]))
        case(op + "_padded", IMAGES, node(op, ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    case("MaxPool_indices", IMAGES, node("MaxPool", ["x"], ["y", "i"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    for op in ("GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"):
        case(op, IMAGES, node(op, ["x"], ["y"]))
    case("Conv", [(0, 3, 8, 8), (2, 3, 0, 8)], node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]), w=ones(4, 3, 3, 3))
    case("ConvTranspose", IMAGES[:1], node("ConvTranspose", ["x", "w"], ["y"]), w=ones(3, 4, 3, 3))
    for mode in ("nearest", "linear"):
        case("Resize_" + mode, IMAGES[:2], node("Resize", ["x", "", "s"], ["y"], mode=mode), s=np.array([1, 1, 2, 2], np.float32))
    case("Attention", [(2, 2, 0, 4), (0, 2, 3, 4)], node("Attention", ["x", "x", "x"], ["y"]))
    for op, gates in (("LSTM", 8), ("GRU", 6)):
        case(op, [(0, 2, 3), (4, 0, 3)], node(op, ["x", "w", "r"], ["y"], hidden_size=2), w=ones(1, gates, 3), r=ones(1, gates, 2))


def others():
    turned = node("Transpose", ["x"], ["t"], perm=[1, 0])
    case("Gemm", [(0, 4)], node("Gemm", ["x", "w"], ["y"]), w=ones(4, 5))
    case("MatMul0", TWO, [turned, node("MatMul", ["x", "t"], ["y"])])
    case("Einsum", TWO, node("Einsum", ["x", "x"], ["y"], equation="ij,kj->ik"))
    case("Det", [(0, 3, 3), (3, 0, 0)], node("Det", ["x"], ["y"]))
    case("DynamicQuantizeLinear", TWO, node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"]))
    case("Trilu", TWO, node("Trilu", ["x"], ["y"]))
    case("EyeLike", TWO, node("EyeLike", ["x"], ["y"]))
    case("Unique", THREE, node("Unique", ["x"], ["y"]))
    case("NonZero", THREE, node("NonZero", ["x"], ["y"]))
    case("DepthToSpace", [(0, 8, 2, 2), (2, 8, 0, 2)], node("DepthToSpace", ["x"], ["y"], blocksize=2))
    case("ReverseSequence", [(0, 3, 2), (4, 3, 0)], node("ReverseSequence", ["x", "l"], ["y"], batch_axis=1, time_axis=0), l=integers(0, 0, 0))
    case("Softmax_sum", THREE, [node("Softmax", ["x"], ["s"], axis=2), node("ReduceSum", ["s", "a"], ["r"]), node("Add", ["x", "r"], ["y"])], a=integers(2))
    case("Slice_step", THREE, node("Slice", ["x", "s", "e", "a", "t"], ["y"]), s=integers(-1), e=integers(-2 ** 62), a=integers(2), t=integers(-3))
    case("Hardmax_11", THREE, node("Hardmax", ["x"], ["y"], axis=1))


def reference_of(model, x):
    """None: it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(ReferenceEvaluator(model).run(None, {"x": x})[0])
    except (ValueError, IndexError, TypeError, RuntimeError, ZeroDivisionError):
        return None


def give(engine, path, folder):
    """What the engine gives; None: it refuses."""
    done = run(RUN, path, *ENGINES[engine], "--no-cache", "--quiet", "--input", f"x={folder}/x.npy", "--save", f"{folder}/out")
    expect(done.returncode in (RAN, BAD_FILE), engine, done)
    return numpy_helper.to_array(onnx.load_tensor(f"{folder}/out/output_0.pb")) if done.returncode == RAN else None


def same(a, b):
    if a is None or b is None:
        return a is b
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def check(name):
    shapes, nodes, constants = CASES[name]
    opset = 11 if name.endswith("_11") else 23
    for shape in shapes:
        port = helper.make_tensor_value_info("x", TensorProto.FLOAT, [f"n{d}" for d in range(len(shape))])
        graph = helper.make_graph(nodes, "nothing", [port], [helper.make_empty_tensor_value_info("y")],
                                  [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        with tempfile.TemporaryDirectory() as folder:
            path, x = os.path.join(folder, "m.onnx"), ones(*shape)
            onnx.save(model, path)
            np.save(os.path.join(folder, "x.npy"), x)
            results = {e: give(e, path, folder) for e in ENGINES if e != "cpu" or name in COMPILED}
            wanted = None if name.startswith(REFERENCE_ERRS) else reference_of(model, x)
        first = results["interpreter"]
        expect((first is None) == (REFUSED.get(name) == shape), f"{name} of {shape}: {first!r}")
        if wanted is not None:
            results["reference"] = wanted
        for engine, result in results.items():
            expect(same(first, result), f"{name} of {shape}: the interpreter gives {first!r}, {engine} {result!r}")


for group in (reductions, along_axes, networks, others):
    group()

if __name__ == "__main__":
    sys.exit(run_tests({f"test_{name}": lambda name=name: check(name) for name in CASES}))
