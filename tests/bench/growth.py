#!/usr/bin/env python3
"""Whether compiling costs in proportion to the model: processor time and peak memory per node, operand or piece.

    growth.py [FORM...] [--sizes 250 500 1000 2000 4000 8000] [--device vm] [--can-run] [--bin DIR]

FORM: relu, softmax, matmul (with an Add), transpose (with a Relu), movement (transposes alone), where: chains of so many
nodes; sum, concat, same (a Concat of one input so many times), split, parts: one node of so many operands; transformer: layers
of 24 nodes; dense: one dense block of so many pieces, blocks: of 12 layers each. Time is processor time of a cold start to the
first output, or, with --can-run, of reading the model and its clean-up; it and the peak memory are given less those of a model
of one. `growth` is what each costs beside the least of the smaller models: at most 2 is wanted. Exit 1 where it is more.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
from onnx import helper

from layers import BIN, block, many_to_one, save, split, tensor

SIZES, MOST, WIDTH = [250, 500, 1000, 2000, 4000, 8000], 2, 8
NOISE = 0.004, 1 << 20  # seconds and bytes that two runs of one model differ by


def chain(count, make, weights=(), extent=(WIDTH, WIDTH)):
    """Nodes that `make(i, x, y)` gives, each of one value and giving the next."""
    nodes = [node for i in range(count) for node in make(i, f"v{i}", f"v{i + 1}")]
    return nodes, list(weights), {"v0": list(extent)}, [f"v{count}"]


def node(*arguments, **attributes):
    return helper.make_node(*arguments, **attributes)


def matmul(count):
    g, count = np.random.default_rng(42), max(count // 2, 1)
    weights = [tensor(f"w{i}", g.uniform(-1, 1, (WIDTH, WIDTH)) / WIDTH) for i in range(count)]
    weights += [tensor(f"b{i}", g.uniform(-1, 1, WIDTH)) for i in range(count)]
    return chain(count, lambda i, x, y: [node("MatMul", [x, f"w{i}"], [f"m{i}"]), node("Add", [f"m{i}", f"b{i}"], [y])], weights)


def transpose(count):
    return chain(max(count // 2, 1), lambda i, x, y: [node("Transpose", [x], [f"t{i}"], perm=[1, 2, 0]), node("Relu", [f"t{i}"], [y])],
                 extent=(2, 4, WIDTH))


def where(count):
    nodes, weights, inputs, outputs = chain(count, lambda i, x, y: [node("Where", [f"c{i}", x, "other"], [y])])
    for i in range(count):
        weights.append(tensor(f"l{i}", i / count))
        nodes.insert(2 * i, node("Greater", ["other", f"l{i}"], [f"c{i}"]))
    return nodes, weights, {**inputs, "other": [WIDTH, WIDTH]}, outputs


def layer(i, x, y, g, weights):
    """Multi-head attention and two linear layers, each with its norm and residual: 24 nodes."""
    heads, width = 2, 16
    made = []

    def make(op, inputs, **attributes):
        made.append(node(op, inputs, [f"{i}.{len(made)}"], **attributes))
        return made[-1].output[0]

    def weight(*shape):
        weights.append(tensor(f"{i}.w{len(weights)}", g.uniform(-1, 1, shape) / shape[0]))
        return weights[-1].name

    def linear(value, rows, columns):
        return make("Add", [make("MatMul", [value, weight(rows, columns)]), weight(columns)])

    def part(value, perm):
        return make("Transpose", [make("Reshape", [linear(value, width, width), "split"])], perm=perm)

    norm = make("LayerNormalization", [x, weight(width), weight(width)])
    q, k, v = part(norm, [0, 2, 1, 3]), part(norm, [0, 2, 3, 1]), part(norm, [0, 2, 1, 3])
    scores = make("Softmax", [make("MatMul", [q, k])])
    joined = make("Reshape", [make("Transpose", [make("MatMul", [scores, v])], perm=[0, 2, 1, 3]), "join"])
    x = make("Add", [x, linear(joined, width, width)])
    norm = make("LayerNormalization", [x, weight(width), weight(width)])
    made.append(node("Add", [x, linear(make("Relu", [linear(norm, width, 2 * width)]), 2 * width, width)], [y]))
    return made


def transformer(count):
    g, weights = np.random.default_rng(42), []
    graph = chain(max(round(count / 24), 1), lambda i, x, y: layer(i, x, y, g, weights), extent=(1, 8, 16))
    integers = [helper.make_tensor("split", 7, [4], [1, 8, 2, 8]), helper.make_tensor("join", 7, [3], [1, 8, 16])]
    return graph[0], weights + integers, graph[2], graph[3]


def blocks(count):
    """Dense blocks of 12 layers, the last output of one being the input of the next."""
    nodes, weights, value = [], [], "x"
    for b in range(max(count // 36, 1)):
        more, constants, inputs, outputs = block(12, ("relu",))
        names = {v: f"{b}.{v}" for n in more for v in (*n.input, *n.output)} | {"x": value}
        for n in more:
            n.input[:], n.output[:] = [names[v] for v in n.input], [names[v] for v in n.output]
        for constant in constants:
            constant.name = names[constant.name]
        value = f"{b}.next"
        g = np.random.default_rng(b)
        constants.append(tensor(f"{b}.w", g.uniform(-1, 1, (inputs["x"][1], 4, 1, 1))))
        nodes += [*more, node("Conv", [names[outputs[0]], f"{b}.w"], [value])]
        weights += constants
    return nodes, weights, inputs, [value]


FORMS = {
    "relu": lambda n: chain(n, lambda i, x, y: [node("Relu", [x], [y])]),
    "softmax": lambda n: chain(n, lambda i, x, y: [node("Softmax", [x], [y])]),
    "matmul": matmul,
    "transpose": transpose,
    "movement": lambda n: chain(n, lambda i, x, y: [node("Transpose", [x], [y], perm=[1, 2, 0])], extent=(2, 4, WIDTH)),
    "where": where,
    "sum": lambda n: many_to_one("Sum", n),
    "concat": lambda n: many_to_one("Concat", n, axis=1),
    "same": lambda n: ([node("Concat", ["x"] * n, ["y"], axis=0)], [], {"x": [2, 3]}, ["y"]),
    "split": lambda n: split(n, False),
    "parts": lambda n: split(n, True),
    "transformer": transformer,
    "dense": lambda n: block(max(round((2 * n) ** 0.5), 1), ("norm", "relu")),
    "blocks": blocks,
}


# What a process is said to have had at most includes what the one that started it has: a bare interpreter has little, and
# below that the process is looked at while it runs.
STARTER = """
import os, sys, time
def peak(pid):
    try:
        return int(next(line for line in open(f"/proc/{pid}/status") if line.startswith("VmHWM")).split()[1])
    except (OSError, StopIteration):
        return 0
pid, own, seen = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), peak("self"), 0
while True:
    done, status, usage = os.wait4(pid, os.WNOHANG)
    if done:
        break
    seen = max(seen, peak(pid))
    time.sleep(0.0005)
print(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss if usage.ru_maxrss > own + 512 else seen)
"""


def measure(command, seconds):
    """Processor seconds and peak bytes. Where it takes no time, of three: the least time, and the greatest peak, since
    what looks at a short process may come too late."""
    least, most = float("inf"), 0
    for _ in range(3):
        told = subprocess.run([sys.executable, "-I", "-S", "-c", STARTER, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              text=True, check=True, timeout=seconds).stdout.split()[-3:]
        if int(told[0]):
            raise subprocess.CalledProcessError(os.waitstatus_to_exitcode(int(told[0])), command)
        least, most = min(least, float(told[1])), max(most, int(told[2]) * 1024)
        if least > 0.5:
            break
    return least, most


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("forms", nargs="*", metavar="FORM", help="of " + ", ".join(FORMS) + " (default: all)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--device", default="vm")
    parser.add_argument("--can-run", action="store_true", help="reading the model and its clean-up alone")
    parser.add_argument("--most-seconds", type=float, help="a model that takes longer is given up, and the greater ones of its form")
    parser.add_argument("--bin", default=BIN)
    arguments = parser.parse_args()
    unknown = [form for form in arguments.forms if form not in FORMS]
    if unknown:
        parser.error(f"there is no form {unknown[0]}; there are: {', '.join(FORMS)}")
    options = ["--can-run"] if arguments.can_run else ["--device", arguments.device, "--no-cache", "--quiet"]
    over = 0
    print("form            size   seconds  ms each  growth      MiB  KiB each  growth")
    for form in arguments.forms or FORMS:
        base, least = (0, 0), None
        for size in [1, *sorted(arguments.sizes)]:
            with tempfile.TemporaryDirectory(prefix="uir-bench-") as scratch:
                path = os.path.join(scratch, "model.onnx")
                save(form, FORMS[form](size), path)
                try:
                    seconds, peak = measure([os.path.join(arguments.bin, "uir-run"), path, *options], arguments.most_seconds)
                except subprocess.TimeoutExpired:
                    print(f"{form:<12} {size:7}  over {arguments.most_seconds:g} seconds", flush=True)
                    over += 1
                    break
            if size == 1:
                base = seconds, peak
                continue
            each = [max(seconds - base[0], NOISE[0]) * 1e3 / size, max(peak - base[1], NOISE[1]) / 1024 / size]
            least = least or each
            growth = [a / b for a, b in zip(each, least)]
            least = [min(a, b) for a, b in zip(each, least)]
            over += max(growth) > MOST
            print(f"{form:<12} {size:7} {seconds:9.2f} {each[0]:8.3f} {growth[0]:7.2f} {peak / 2**20:8.1f} {each[1]:9.2f} {growth[1]:7.2f}",
                  flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
