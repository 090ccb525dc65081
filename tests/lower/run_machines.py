#!/usr/bin/env python3
"""Machines drawn at random: `run_machines.py [--count N] [--first SEED] [--keep DIR]`.

Each is a description with spaces, kinds of units and pipes of random names: none to three spaces between memory and the
multiplier, of 4 KiB to 1 MiB and alignments of 4 to 512, blocks of any sides and orders, operands in memory or not,
reductions with scratch or without, pipes that run apart or not, and functions that are missing. For each, operators and
products of run-time sizes get kernels, which are verified; interpreted they are held to NumPy at sizes 0, 1, primes and
about the tiles. Where a machine can do a graph, by the least that it takes (room for a vector of each operand, or a
block of each factor), it must have kernels for 95 of 100 of them.

In: the programs in $UIR_BIN. --keep: the descriptions of machines with failures are left there.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("UIR_BIN", os.path.join(ROOT, "build", "release", "bin"))
ORDERS = ["rows_of_rows", "rows_of_columns", "columns_of_rows", "columns_of_columns"]
WHOLE = "i8, u8, i16, u16, i32, u32, i64, u64, bool"
# Functions of f32 that a machine may lack.
MAY_LACK = ["unary.exp", "unary.exp2", "unary.tanh", "unary.erf", "unary.sigmoid", "unary.floor", "unary.ceil",
            "unary.round", "unary.trunc", "unary.sign", "unary.abs", "unary.neg", "unary.sin", "unary.cos",
            "binary.sub", "binary.div", "binary.max", "binary.min", "ternary.fma"]
ALWAYS = ["unary.sqrt", "unary.rsqrt", "unary.reciprocal", "unary.log", "binary.add", "binary.mul",
          "binary.fmod", "binary.maxnum", "compare.*", "ternary.select", "reduce.add", "reduce.max", "reduce.min"]


def word(r, used):
    while True:
        w = "".join(r.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(r.randint(2, 7))) + r.choice(["", "0", "_x"])
        if w not in used and len(w) > 2 and w not in ("row", "col", "acc", "min", "max", "mod", "and", "not", "fill",
                                                      "last", "first", "unit", "group", "when", "cores"):
            used.add(w)
            return w


class Machine:
    def __init__(self, seed):
        r = self.r = random.Random(seed)
        self.used = set()
        self.seed = seed
        self.name, self.memory, self.scratch = (word(r, self.used) for _ in range(3))
        self.room = 1 << r.randint(12, 20)
        self.align = 1 << r.randint(2, 9)
        self.kinds = [word(r, self.used) for _ in range(r.choice([1, 1, 2]))]
        self.pipes = [word(r, self.used) for _ in range(r.choice([0, 0, 2, 3, 5, 7]))]
        self.rows = r.random() < 0.6  # vectors are rows of elements side by side
        self.blocks = self.rows and r.random() < 0.5 and self.align <= 32
        self.between = r.choice([None, 0, 1, 2, 3])  # spaces on the way to the multiplier; None: there is none
        self.mma = [r.choice([1, 2, 4, 8, 16, 32]) for _ in range(3)]
        self.spaces, self.legal = [], []
        self.lacks = [f for f in MAY_LACK if r.random() < 0.35]
        self.write()

    def by(self):
        return f" by {self.r.choice(self.pipes)}" if self.pipes else ""

    def space(self, name, roles, kinds, room=None, more=""):
        align = self.align if name == self.scratch else 1 << self.r.randint(2, 9)
        self.spaces.append(f"  space {name} {{ roles {roles} of unit reached_by {kinds} "
                           f"capacity {room or 1 << self.r.randint(14, 20)} @drawn alignment {align} @drawn {more}}}")

    def format(self):
        if self.r.random() < 0.4:
            return ""
        kind = self.r.choice(["block_bytes", "block_elements"])
        size = self.r.choice([8, 16, 32, 64]) if kind == "block_bytes" else self.r.choice([1, 2, 4, 8, 16])
        return f"blocks {self.r.choice(ORDERS)} block_lines {self.r.choice([1, 2, 3, 4, 8, 16])} @drawn {kind} {size} @drawn "

    def vector(self):
        kind, s, m = self.kinds[0], self.scratch, self.memory
        side = " with last_contiguous" if self.rows else ""
        form = side + ((", block_broadcast" if self.blocks else "") if self.rows else "")
        at = f" into {s} from {s} on {kind}"
        moves = " with last_contiguous, no_broadcast" if self.rows else ""
        self.legal += [f"legal move of all into {s} from {m} on {kind}{self.by()}{moves}",
                       f"legal move of all into {m} from {s} on {kind}{self.by()}{moves}"]
        compute = self.by()
        names = ", ".join(a for a in ALWAYS + MAY_LACK if a not in self.lacks and not a.startswith("reduce"))
        scratch = ", reduce_scratch" if self.r.random() < 0.5 else ""
        self.legal += [f"legal move of all{at}{compute}{side}", f"legal fill, iota, broadcast of f32{at}{compute}{side}",
                       f"legal {names} of f32{at}{compute}{form}",
                       f"legal {', '.join(a for a in ALWAYS if a.startswith('reduce'))} of f32{at}{compute}"
                       + (f"{side}{scratch}" if side else " with reduce_scratch" if scratch else "")]
        slow = self.by()
        self.legal += [f"legal move of all{at}{slow}", f"legal fill, iota, broadcast of whole{at}{slow}",
                       f"legal unary.*, binary.*, compare.*, ternary.*, reduce.*, scan.* of whole{at}{slow}",
                       f"legal reduce.mul, scan.* of f32{at}{slow}", f"legal cast of whole, f32 to whole, f32{at}{slow}"]

    def multiplier(self):
        kind, m = self.kinds[-1], self.memory
        left, right, sums = (word(self.r, self.used) for _ in range(3))
        way = [word(self.r, self.used) for _ in range(max(0, self.between - 1))]
        for name in way:
            self.space(name, "scratch", kind, more=self.format())
        self.space(left, "left", kind, more=self.format())
        self.space(right, "right", kind, more=self.format())
        self.space(sums, "accumulators", kind, more=self.format())
        before = m
        for name in way:
            self.legal.append(f"legal move of f32 into {name} from {before} on {kind}{self.by()} with formats, no_broadcast")
            before = name
        self.legal += [f"legal move of f32 into {left}, {right} from {before} on {kind}{self.by()} with formats, no_broadcast",
                       f"legal move of f32 into {m} from {sums} on {kind}{self.by()} with formats, no_broadcast",
                       f"legal fill of f32 into {sums} on {kind}{self.by()} with formats",
                       f"legal mma of f32 left f32 into {sums} from {left}, {right} on {kind}{self.by()} with formats"]

    def write(self):
        roles = "scratch"
        if self.between == 0:
            roles += ", left, right, accumulators"
        reached = self.kinds[0] if self.between != 0 else ", ".join(dict.fromkeys(self.kinds))
        self.space(self.scratch, roles, reached, self.room)
        self.vector()
        if self.between == 0:
            s = self.scratch
            self.legal.append(f"legal mma of f32 left f32 into {s} from {s} on {self.kinds[0]}{self.by()}")
        elif self.between is not None:
            self.multiplier()
        units = 1 if len(self.kinds) == 1 else self.r.randint(2, 8)
        lines = [f"device {self.name} {{", '  source drawn "drawn at random"', f"  kinds {', '.join(self.kinds)}"]
        if self.pipes:
            lines.append(f"  pipes {', '.join(self.pipes)}")
        lines += [f"  dtypes whole = {WHOLE}", "  dtypes all = whole, f32",
                  f"  groups {self.r.randint(1, 40)} @drawn units_per_group {units} @drawn", "  device_barrier",
                  f"  mma_rows {self.mma[0]} @drawn mma_columns {self.mma[1]} @drawn mma_depth {self.mma[2]} @drawn",
                  f"  vector_bytes {self.r.choice([4, 16, 64, 256])} @drawn",
                  f"  space {self.memory} {{ roles memory of device reached_by {', '.join(dict.fromkeys(self.kinds))} "
                  f"alignment {self.r.choice([1, 4, 32])} @drawn }}"]
        self.text = "\n".join(lines + self.spaces + ["  " + row for row in self.legal] + ['  chip "one" {}', "}"]) + "\n"


def tensor(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True)) if x.size else x
    return e / e.sum(-1, keepdims=True) if x.size else x


def norm(x):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


erf = np.vectorize(__import__("math").erf, otypes=[np.float64])
# name, nodes of x: f32[N, M] to y, what it gives, whether a size of 0 makes sense, vectors on the chip at once
GRAPHS = [
    ("swish", lambda: [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Mul", ["x", "s"], ["y"])],
     lambda x: x * sigmoid(x), True, 4),
    ("gelu", lambda: [helper.make_node("Erf", ["x"], ["e"]), helper.make_node("Mul", ["e", "x"], ["y"])],
     lambda x: erf(x) * x, True, 8),
    ("tanh", lambda: [helper.make_node("Tanh", ["x"], ["t"]), helper.make_node("Abs", ["t"], ["y"])],
     lambda x: np.abs(np.tanh(x)), True, 6),
    ("round", lambda: [helper.make_node("Floor", ["x"], ["f"]), helper.make_node("Sin", ["x"], ["s"]),
                       helper.make_node("Sub", ["f", "s"], ["y"])], lambda x: np.floor(x) - np.sin(x), True, 10),
    ("softmax", lambda: [helper.make_node("Softmax", ["x"], ["y"], axis=-1)], softmax, False, 4),
    ("norm", lambda: [helper.make_node("LayerNormalization", ["x", "g"], ["y"], axis=-1)], norm, False, 6),
    ("transpose", lambda: [helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]), helper.make_node("Neg", ["t"], ["y"])],
     lambda x: -x.T, True, 4),
    ("columns", lambda: [helper.make_node("ReduceMax", ["x", "zero"], ["m"], keepdims=1),
                         helper.make_node("Sub", ["x", "m"], ["y"])], lambda x: x - x.max(0), False, 4),
    ("argmax", lambda: [helper.make_node("ArgMax", ["x"], ["i"], axis=1, keepdims=1), helper.make_node("Cast", ["i"], ["y"], to=1)],
     lambda x: x.argmax(1)[:, None].astype(np.float64), False, 24),
]
SIZES = [(1, 1), (3, 17), (5, 64), (2, 257), (0, 5)]
PRODUCTS = [(1, 1, 1), (7, 5, 3), (16, 32, 16), (33, 31, 65), (0, 3, 4)]


def make_models(folder):
    made = []
    for name, nodes, right, empty, vectors in GRAPHS:
        built = nodes()
        wanted = {i for n in built for i in n.input}
        constants = [numpy_helper.from_array(np.zeros(1, np.int64), "zero")] if "zero" in wanted else []
        inputs = [tensor("x", ["N", "M"])] + ([tensor("g", ["M"])] if "g" in wanted else [])
        graph = helper.make_graph(built, "g", inputs, [tensor("y", None)], constants)
        path = os.path.join(folder, name + ".onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
        made.append((name, path, right, empty, vectors))
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Relu", ["p"], ["y"])], "g",
                              [tensor("a", ["M", "K"]), tensor("b", ["K", "N"])], [tensor("y", ["M", "N"])])
    path = os.path.join(folder, "product.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return made, path


def run(program, *words):
    return subprocess.run([os.path.join(BIN, program), *words], capture_output=True, text=True, errors="replace")


class Tally:
    def __init__(self):
        self.passed = self.failed = self.can = self.lowered = self.verified = 0
        self.why = {}

    def tell(self, good, what):
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        if not good:
            print("FAILED", what)


def lower(machine, tally, name, path, file, can):
    done = run("uir-opt", path, "--device-file", file, "--after", "igraph")
    tally.tell(done.returncode == 0, f"machine {machine.seed}: {name}: {done.stderr[:400]}")
    if done.returncode:
        return False
    kernels = re.findall(r"^igraph @.*", done.stdout, re.M)
    whole = "has no kernel" not in done.stderr
    tally.verified += len(kernels)
    if len(machine.pipes) > 1:
        tally.tell(all(" synchronised {" in k for k in kernels), f"machine {machine.seed}: {name}: a kernel without waits")
    tally.can += can
    tally.lowered += can and whole
    if can and not whole:
        for said in re.findall(r"has no kernel: @\w+: (.*)", done.stderr):
            said = re.sub(r"\d+", "N", said).replace(machine.name, "it")
            tally.why[said] = tally.why.get(said, 0) + 1
    return True


def execute(machine, tally, name, path, file, arrays, right, folder):
    given, out = os.path.join(folder, "in.npz"), os.path.join(folder, "y.npy")
    np.savez(given, **arrays)
    if os.path.exists(out):
        os.remove(out)
    done = run("uir-run", path, "--device-file", file, "--interpret", "--inputs", given, "--save", folder, "--format",
               "npy", "--quiet")
    got = np.load(out) if done.returncode == 0 else None
    close = got is not None and got.shape == right.shape and np.allclose(got, right, rtol=1e-3, atol=1e-4)
    sizes = [a.shape for a in arrays.values()]
    tally.tell(close, f"machine {machine.seed}: {name} {sizes}: {done.stderr[:300] or 'another result'}")


def try_machine(seed, models, product, folder, tally):
    machine, rng = Machine(seed), np.random.default_rng(seed)
    file = os.path.join(folder, "it.device")
    with open(file, "w") as out:
        out.write(machine.text)
    before = tally.failed
    unit = max(machine.align, 4)
    for name, path, right, empty, vectors in models:
        can = machine.room >= vectors * 2 * max(unit, 32 * 4) + 1024
        if not lower(machine, tally, name, path, file, can):
            continue
        for n, m in SIZES:
            if not empty and not n * m:
                continue
            x = rng.standard_normal((n, m)).astype(np.float32)
            arrays = {"x": x}
            if name == "norm":
                arrays["g"] = np.ones(m, np.float32)
            execute(machine, tally, name, path, file, arrays, right(x.astype(np.float64)), folder)
    if lower(machine, tally, "product", product, file, machine.room >= 4096):
        for m, k, n in PRODUCTS:
            a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
            execute(machine, tally, "product", product, file, {"a": a, "b": b},
                    np.maximum(a.astype(np.float64) @ b, 0), folder)
    return tally.failed == before, file


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=12)
    options.add_argument("--first", type=int, default=1)
    options.add_argument("--keep")
    options = options.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        models, product = make_models(folder)
        for seed in range(options.first, options.first + options.count):
            good, file = try_machine(seed, models, product, folder, tally)
            if not good and options.keep:
                os.makedirs(options.keep, exist_ok=True)
                shutil.copy(file, os.path.join(options.keep, f"{seed}.device"))
    share = tally.lowered / tally.can if tally.can else 0
    print(f"{options.count} machines: {tally.verified} kernels verified; of {tally.can} graphs that a machine can do "
          f"{tally.lowered} have kernels ({100 * share:.1f} of 100)")
    for said, count in sorted(tally.why.items(), key=lambda item: -item[1]):
        print(f"  without: {count} x {said}")
    tally.tell(share >= 0.95, "fewer than 95 of 100 graphs have kernels")
    print(f"{tally.passed} passed, {tally.failed} failed, 0 skipped")
    return tally.failed != 0


if __name__ == "__main__":
    sys.exit(main())
