#!/usr/bin/env python3
"""Memory that runs out at any allocation, and work at any step, end what was begun by themselves (uir-exhaust).

In: small graphs made here, models in $UIR_MODELS_BUILT, programs in $UIR_BIN. Each action (load and run by the
interpreter, compile, start from the cache, pack, open) is tried with each STEPth allocation failing (--step), of given
models with --draws allocations drawn by --seed; with --limits limits of work spread by logarithm and the --before
before the need. --signals starts of uir-run under such limits end within a second of SIGTERM. --all: the whole
campaign. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN, Suite, find_model, make_parser, read_counts, run  # noqa: E402

GIVEN = ["minilm_l6", "whisper_tiny_decoder", "gru_seq", "lstm_classifier", "dlrm", "espcn"]  # that run with dims of 1
ACTIONS = ["interpret", "compile", "again", "pack", "open"]
suite = Suite()


# ---- small graphs ----
def value(name, dims, kind=T.FLOAT):
    return h.make_tensor_value_info(name, kind, dims)


def constant(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def weights(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def graph_of(nodes, inputs, outputs, constants):
    return h.make_graph(nodes, "small", inputs, outputs, constants)


def products():
    n = [h.make_node("MatMul", ["x", "w"], ["a"]), h.make_node("Add", ["a", "b"], ["c"]), h.make_node("Gelu", ["c"], ["d"]),
         h.make_node("Gemm", ["d", "v"], ["e"], transB=1), h.make_node("Softmax", ["e"], ["y"], axis=-1)]
    return graph_of(n, [value("x", ["rows", 24])], [value("y", None)],
                    [constant("w", weights(1, 24, 40)), constant("b", weights(2, 40)), constant("v", weights(3, 12, 40))])


def windows():
    n = [h.make_node("Conv", ["x", "k"], ["a"], pads=[1, 1, 1, 1]),
         h.make_node("BatchNormalization", ["a", "s", "o", "m", "u"], ["b"]), h.make_node("Relu", ["b"], ["c"]),
         h.make_node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2], strides=[2, 2]),
         h.make_node("Conv", ["d", "k2"], ["e"], group=8, strides=[2, 2]), h.make_node("Resize", ["e", "", "up"], ["f"]),
         h.make_node("GlobalAveragePool", ["f"], ["g"]), h.make_node("Flatten", ["g"], ["y"])]
    return graph_of(n, [value("x", ["n", 3, 16, 16])], [value("y", None)],
                    [constant("k", weights(1, 8, 3, 3, 3)), constant("k2", weights(2, 8, 1, 3, 3)),
                     constant("s", weights(3, 8)), constant("o", weights(4, 8)), constant("m", weights(5, 8)),
                     constant("u", np.abs(weights(6, 8))), constant("up", np.float32([1, 1, 2, 2]))])


def attention():
    n = []
    for name in "qkv":
        n += [h.make_node("MatMul", ["x", "w" + name], ["p" + name]),
              h.make_node("Reshape", ["p" + name, "heads"], ["r" + name]),
              h.make_node("Transpose", ["r" + name], ["t" + name], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
    n += [h.make_node("MatMul", ["tq", "tk"], ["s"]), h.make_node("Mul", ["s", "scale"], ["z"]),
          h.make_node("Softmax", ["z"], ["p"], axis=-1), h.make_node("MatMul", ["p", "tv"], ["o"]),
          h.make_node("Transpose", ["o"], ["ot"], perm=[0, 2, 1, 3]), h.make_node("Reshape", ["ot", "flat"], ["of"]),
          h.make_node("LayerNormalization", ["of", "gain"], ["l"]), h.make_node("Add", ["l", "x"], ["y"])]
    return graph_of(n, [value("x", ["batch", "time", 16])], [value("y", None)],
                    [constant("w" + name, weights(i, 16, 16)) for i, name in enumerate("qkv")]
                    + [constant("heads", np.int64([0, 0, 2, 8])), constant("flat", np.int64([0, 0, 16])),
                       constant("scale", np.float32(0.35)), constant("gain", weights(7, 16))])


def control():
    inner = h.make_graph([h.make_node("Mul", ["v", "v"], ["sq"])], "then", [], [value("sq", None)])
    other = h.make_graph([h.make_node("Exp", ["v"], ["ex"])], "else", [], [value("ex", None)])
    body = h.make_graph(
        [h.make_node("Add", ["v_in", "x"], ["v"]), h.make_node("ReduceSum", ["v", "all"], ["total"], keepdims=0),
         h.make_node("Greater", ["total", "bound"], ["large"]),
         h.make_node("If", ["large"], ["w"], then_branch=inner, else_branch=other),
         h.make_node("Tanh", ["w"], ["v_out"]), h.make_node("Identity", ["go"], ["go_on"])],
        "body", [value("i", [], T.INT64), value("go", [], T.BOOL), value("v_in", None)],
        [value("go_on", [], T.BOOL), value("v_out", None), value("w", None)],
        [constant("all", np.int64([0, 1])), constant("bound", np.float32(3))])
    n = [h.make_node("Loop", ["trips", "", "x"], ["last", "each"], body=body), h.make_node("Sigmoid", ["last"], ["y"])]
    return graph_of(n, [value("x", ["n", 5])], [value("y", None), value("each", None)], [constant("trips", np.int64(4))])


def quantised():
    n = [h.make_node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"]),
         h.make_node("MatMulInteger", ["q", "w8", "qz", "wz"], ["i"]), h.make_node("Cast", ["i"], ["f"], to=T.FLOAT),
         h.make_node("Mul", ["f", "qs"], ["fs"]), h.make_node("Mul", ["fs", "ws"], ["a"]),
         h.make_node("QuantizeLinear", ["a", "s", "z"], ["aq"]), h.make_node("DequantizeLinear", ["aq", "s", "z"], ["ad"]),
         h.make_node("DequantizeLinear", ["v8", "s", "wz"], ["vd"]), h.make_node("MatMul", ["ad", "vd"], ["m"]),
         h.make_node("QuantizeLinear", ["m", "s", "z"], ["mq"]), h.make_node("DequantizeLinear", ["mq", "s", "z"], ["y"])]
    whole = np.random.default_rng(5)
    return graph_of(n, [value("x", ["rows", 32])], [value("y", None)],
                    [constant("w8", whole.integers(-99, 99, (32, 16)).astype(np.int8)), constant("wz", np.int8(0)),
                     constant("v8", whole.integers(-99, 99, (16, 8)).astype(np.int8)), constant("z", np.uint8(128)),
                     constant("s", np.float32(0.05)), constant("ws", np.float32(0.01))])


def indices():
    n = [h.make_node("TopK", ["x", "k"], ["v", "at"], axis=1), h.make_node("GatherElements", ["x", "at"], ["g"], axis=1),
         h.make_node("Greater", ["x", "zero"], ["b"]), h.make_node("NonZero", ["b"], ["nz"]),
         h.make_node("Transpose", ["nz"], ["nzt"]), h.make_node("GatherND", ["x", "nzt"], ["picked"]),
         h.make_node("CumSum", ["picked", "axis"], ["summed"]), h.make_node("Shape", ["x"], ["shape"]),
         h.make_node("ConstantOfShape", ["shape"], ["zeros"]), h.make_node("ScatterND", ["zeros", "nzt", "picked"], ["sc"]),
         h.make_node("Concat", ["sc", "g"], ["y"], axis=1), h.make_node("Slice", ["y", "from", "to", "one", "step"], ["z"])]
    return graph_of(n, [value("x", ["n", 9])], [value("y", None), value("z", None), value("summed", None)],
                    [constant("k", np.int64([3])), constant("zero", np.float32(0)), constant("axis", np.int64(0)),
                     constant("from", np.int64([-1])), constant("to", np.int64([-99])), constant("one", np.int64([1])),
                     constant("step", np.int64([-2]))])


SMALL = [products, windows, attention, control, quantised, indices]


def write(make, folder):
    path = os.path.join(folder, make.__name__ + ".onnx")
    model = h.make_model(make(), opset_imports=[h.make_opsetid("", 20)], ir_version=9)
    assert len(model.graph.node) <= 30
    onnx.save(model, path)
    return path


# ---- tries ----
def exhaust(name, path, folder, kind, action, *numbers):
    done = run("uir-exhaust", path, folder, kind, action, *numbers, timeout=None)
    counts = read_counts(done.stdout)
    if counts:
        suite.add(*counts)
    if not counts or done.returncode:
        suite.tell(False, f"{name}, {action}, {kind} {numbers}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def end_by_signal(path, draws, limit):
    """A start with that limit of work, or none, ends within a second of SIGTERM, whenever it comes."""
    words = [os.path.join(BIN, "uir-run"), path, "--no-cache", "--device", "vm", "--quiet", "--bench", "--seconds", "60"]
    started = subprocess.Popen(words + (["--limit-work", str(limit)] if limit else []), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    time.sleep(draws.random() * 0.3)
    started.send_signal(signal.SIGTERM)
    try:
        started.wait(1)
        suite.add(1)
    except subprocess.TimeoutExpired:
        started.kill()
        started.wait()
        suite.tell(False, f"{path}: --limit-work {limit} goes on for a second after SIGTERM")


def main():
    parser = make_parser(__doc__, seed=1)
    parser.add_argument("--step", type=int, default=23)
    parser.add_argument("--draws", type=int, default=0)
    parser.add_argument("--limits", type=int, default=12)
    parser.add_argument("--before", type=int, default=4)
    parser.add_argument("--signals", type=int, default=3)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("graphs", nargs="*")
    a = parser.parse_args()
    if a.all:
        a.step, a.draws, a.limits, a.before, a.signals = 1, 1000, 500, 50, 50
    draws = random.Random(a.seed)
    with tempfile.TemporaryDirectory() as scratch:
        small = {make.__name__: write(make, scratch) for make in SMALL if not a.graphs or make.__name__ in a.graphs}
        for at, (name, path) in enumerate(small.items()):
            for action in ACTIONS:
                exhaust(name, path, scratch, "memory", action, 1 + at % a.step, a.step, 0)
                if action in ("compile", "pack"):
                    exhaust(name, path, scratch, "work", action, a.limits, a.before)
        for name in GIVEN if a.draws else []:
            path = find_model(name)
            if not os.path.exists(path):
                suite.skip(f"{path} is not there")
                continue
            for action in ACTIONS:
                exhaust(name, path, scratch, "draw", action, a.seed, a.draws // len(ACTIONS))
        for _ in range(a.signals if small else 0):
            end_by_signal(draws.choice(list(small.values())), draws, draws.choice([0, int(10 ** draws.uniform(2, 7))]))
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
