#!/usr/bin/env python3
"""Times single operators from ONNX through all stages of the compile, beside the machine's limits and beside ONNX Runtime, all
taking turns in one run; outputs are compared with ONNX Runtime's.

    onnx_kernels.py [NAME...] [--threads 1] [--rounds 21] [--seconds 2] [--bin DIR]

The shapes are those of uir-bench-kernels, whose kernels are written by hand, and the targets are the same: what fusion, tactics
and lowering make of a plain MatMul is to reach what a person reached. Sums of long rows and a product of few rows and columns are
beside them. `limit` is a share of what so many threads of the machine can do: multiply-adds, reading the operands, or copying
input to output; of two, of what leaves more time. `ratio` is ONNX Runtime's time by ours. Times are processor time for
`--threads 1`, else the wall's. Exit 1 where an output differs.
"""
import argparse
import os
import statistics
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model

import models as bench

SEED = 42


def values(generator, *shape):
    return generator.uniform(-1, 1, shape).astype(np.float32)


def product(m, n, k):
    def make(g):
        return [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": values(g, m, k)}, {"w": values(g, k, n)}, [m, n]
    return make


def convolution(channels, size):
    def make(g):
        return ([helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], {"x": values(g, 1, channels, size, size)},
                {"w": values(g, channels, channels, 3, 3)}, [1, channels, size, size])
    return make


def softmax(m, n):
    return lambda g: ([helper.make_node("Softmax", ["x"], ["y"], axis=-1)], {"x": values(g, m, n)}, {}, [m, n])


def layer_norm(m, n):
    return lambda g: ([helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], axis=-1)], {"x": values(g, m, n)},
                      {"scale": values(g, n), "bias": values(g, n)}, [m, n])


def chain(n):
    def make(g):
        ops = ["Add", "Mul", "Relu", "Sub", "Mul", "Max", "Add", "Mul"]
        nodes, last = [], "x"
        for i, op in enumerate(ops):
            out = "y" if i == len(ops) - 1 else f"t{i}"
            nodes.append(helper.make_node(op, [last] if op == "Relu" else [last, "c"], [out]))
            last = out
        return nodes, {"x": values(g, n)}, {"c": np.float32(0.75)}, [n]
    return make


def attention(heads, length, size):
    def make(g):
        nodes = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]), helper.make_node("MatMul", ["q", "kt"], ["s"]),
                 helper.make_node("Mul", ["s", "scale"], ["scaled"]), helper.make_node("Softmax", ["scaled"], ["p"], axis=-1),
                 helper.make_node("MatMul", ["p", "v"], ["y"])]
        return (nodes, {name: values(g, 1, heads, length, size) for name in "qkv"}, {"scale": np.float32(size ** -0.5)},
                [1, heads, length, size])
    return make


def reduction(operator, *shape, axis=None):
    def make(g):
        axes = {} if axis is None else {"axes": np.array([axis], np.int64)}
        node = helper.make_node(operator, ["x", *axes], ["y"], keepdims=0)
        left = [] if axis is None else [n for d, n in enumerate(shape) if d != axis]
        return [node], {"x": values(g, *shape)}, axes, left
    return make


# name, what makes it, then the limits: kind and work of each, the share of it that is wanted (of several limits: of the one that
# leaves the most time)
CASES = [
    ("product 1024x1024x1024", product(1024, 1024, 1024), ("multiply", 2 * 1024 ** 3, 0.88)),
    ("product 1000x1003x999", product(1000, 1003, 999), ("multiply", 2 * 1000 * 1003 * 999, 0.75)),
    ("product 17x768x768", product(17, 768, 768), ("multiply", 2 * 17 * 768 * 768, 0.60)),
    ("product 1x4096x4096", product(1, 4096, 4096), ("read", 4 * 4096 * 4096, 0.85)),
    ("3x3 convolution 64, 56x56", convolution(64, 56), ("multiply", 2 * 64 * 64 * 9 * 56 * 56, 0.85)),
    ("softmax 4096x1024", softmax(4096, 1024), ("copy", 4 * 4096 * 1024, 0.85)),
    ("layer norm 4096x1024", layer_norm(4096, 1024), ("copy", 4 * 4096 * 1024, 0.85)),
    ("chain of eight, 16M", chain(16 << 20), ("copy", 4 * (16 << 20), 0.85)),
    ("attention 12x512x64", attention(12, 512, 64), ("multiply", 4 * 12 * 512 * 512 * 64, None)),
    ("sum of 16M", reduction("ReduceSum", 16 << 20), ("read", 4 * (16 << 20), 0.85)),
    ("sum of rows 4x1M", reduction("ReduceSum", 4, 1 << 20, axis=1), ("read", 4 * (4 << 20), 0.85)),
    ("product 16x65536x16", product(16, 16, 65536), ("multiply", 2 * 16 * 65536 * 16, 0.60), ("read", 8 << 20, 0.80)),
]


def write_case(make, folder):
    nodes, inputs, constants, shape = make(np.random.default_rng(SEED))
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, list(value.shape)) for name, value in inputs.items()]
    graph = helper.make_graph(nodes, "case", ports, [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    path = os.path.join(folder, "model.onnx")
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    data = os.path.join(folder, "data")
    os.mkdir(data)
    for i, (name, value) in enumerate(inputs.items()):
        with open(os.path.join(data, f"input_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(value, name).SerializeToString())
    return path, data


def measure(arguments, threads, make, limits, scratch):
    """Median milliseconds of ours, of ONNX Runtime, of each limit; why outputs differ, or None; calls that are not native."""
    model, data = write_case(make, scratch)
    program = os.path.join(arguments.bin, "uir-bench-model")
    cache = os.path.join(scratch, "cache")
    bench.warm_cache(program, model, cache)
    engines, clock = [], ["cpu"] if arguments.threads == [1] else []
    try:
        theirs = bench.start_peer("onnxruntime", model, threads, clock)
        engines.append(theirs)
        theirs.ask("open")
        theirs.ask("data " + data)
        ours = bench.Engine([program, model, cache, str(threads), *clock])
        engines.append(ours)
        ours.wait()
        other = int(ours.ask("data " + data)[2])
        difference = bench.compare(ours, theirs, tempfile.mkdtemp(dir=scratch), tempfile.mkdtemp(dir=scratch),
                                   bench.DEFAULT_TOLERANCE)
        times = [[] for _ in range(2 + len(limits))]
        slice_s = arguments.seconds / arguments.rounds
        for _ in range(arguments.rounds):
            times[0].append(statistics.median(map(float, ours.ask(f"run {slice_s}"))))
            for (kind, work, _), row in zip(limits, times[2:]):
                row.append(float(ours.ask(f"limit {kind} {work} {slice_s}")[0]))
            times[1].append(statistics.median(map(float, theirs.ask(f"run {slice_s}"))))
        return [statistics.median(row) for row in times], difference, other
    finally:
        for engine in engines:
            engine.close()


def measure_case(arguments, name, make, limits):
    """A row for each number of threads; whether an output differed."""
    wrong, first = False, None
    for threads in arguments.threads:
        with tempfile.TemporaryDirectory(prefix="uir-bench-") as scratch:
            (ours, theirs, *best), difference, other = measure(arguments, threads, make, limits, scratch)
        wrong = wrong or difference is not None
        # Of several limits the one that leaves the most time.
        limit, share = max(zip(best, (row[2] for row in limits)), key=lambda row: row[0] / (row[1] or 1))
        reached = limit / ours
        wanted = "" if share is None else f"target {share * 100:.0f}% {'met' if reached >= share else 'missed'}"
        faster = "" if first is None else f"  {first / ours:.2f} times as fast as at {arguments.threads[0]}"
        first = first or ours
        print(f"{name:<26} {threads} {ours:8.3f} ms  limit {reached * 100:5.1f}%  ratio {theirs / ours:5.2f}  {wanted}{faster}",
              flush=True)
        if other or difference:
            print(f"  {difference or f'{other} calls by VM, host or interpreter'}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of the names of the cases to run (default: all)")
    parser.add_argument("--threads", default="1", help="as in 1,2")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seconds", type=float, default=2, help="for each of those that are timed, in all rounds together")
    parser.add_argument("--bin", default=bench.BIN)
    arguments = parser.parse_args()
    arguments.threads = [int(word) for word in arguments.threads.split(",")]
    wrong = 0
    for name, make, *limits in CASES:
        if not arguments.names or any(word in name for word in arguments.names):
            wrong += measure_case(arguments, name, make, limits)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
