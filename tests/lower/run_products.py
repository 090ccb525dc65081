"""Random sums of products as ONNX models, in all spellings: each stage against the one before it, the outputs against
onnx's reference, and how many become `mma`.

usage: run_products.py [--count 60] [--seed 1] [--at-least PERCENT] [--spelling NAME] [--native EVERY] [--keep DIR] [-v]

A case has axes of four classes (batch, m, n, k; up to two of each), fixed or symbolic, and two factors over them,
stored in some order. It is spelled as MatMul (of rank 1 and up), Gemm, Einsum, or Mul + ReduceSum, with transposes,
reshapes and expansions between, elementwise work before and after, scales, third factors, sums over an axis that one
factor has alone. Kernels are those of the CPU's description; the VM runs them, of every so-many-th case (--native)
the compiled ones do. A case counts as going through mma when the iGraph of a kernel of it has that instruction. Cases that
by their nature need not have it are told apart: without an m or without an n (rows of one matrix with a vector, dots),
and products of 32-bit integers, which the CPU's mma does not take. How many of these are drawn is the seed's, so that
they have no part in what is demanded. In: the programs in $UIR_BIN. Out: a line per failure, the share by spelling, then
`N passed, M failed, S skipped`; fewer than --at-least percent of the others through mma is a failure."""
import os
import random
import re
import shutil
import string
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, make_parser, run  # noqa: E402

DTYPES = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "f16": TensorProto.FLOAT16, "i32": TensorProto.INT32,
          "i8": TensorProto.INT8, "u8": TensorProto.UINT8}
NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i32": np.int32, "i8": np.int8, "u8": np.uint8}
SIZES = [2, 3, 4, 5, 7, 8, 9, 13, 14, 16, 17, 24, 31, 32, 33, 48, 64, 65]
MOST = 60000  # products of a case, so that interpreters are done soon
TIMEOUT_S = 600


class Axis:
    def __init__(self, name, role, size, symbolic):
        self.name, self.role, self.size, self.symbolic = name, role, size, symbolic


class Value:
    """A tensor of the graph; each dim is a tuple of axes that it joins, () for a dim of one."""

    def __init__(self, name, dims):
        self.name, self.dims = name, [tuple(d) for d in dims]


class Case:
    def __init__(self, seed, spelling=None):
        self.random = r = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.data, self.shapes = [], [], [], {}, {}
        self.axes, self.homes = [], {}
        self.spelling = spelling or r.choice(sorted(SPELLINGS))
        self.dtype, self.narrow = r.choices([("f32", None), ("f64", None), ("f16", None), ("i32", ["i8", "u8"]),
                                             ("i32", None)], [80, 6, 6, 7, 1])[0]
        if self.spelling == "gemm" and self.dtype == "i32":
            self.dtype, self.narrow = "f32", None
        self.has_constant = False
        self.features = []
        counts = {"b": r.choices([0, 1, 2], [55, 33, 12])[0], "m": r.choices([0, 1, 2], [2, 78, 20])[0],
                  "n": r.choices([0, 1, 2], [2, 78, 20])[0], "k": r.choices([1, 2], [80, 20])[0]}
        if self.spelling == "gemm":
            counts["b"] = 0
        left = MOST
        for role, most in (("m", 65), ("n", 65), ("k", 65), ("b", 4)):
            for i in range(counts[role]):
                size = 1 if r.random() < 0.03 else r.choice([s for s in SIZES if s <= min(most, max(2, left))])
                left //= size
                self.axes.append(Axis(role + str(i), role, size, r.random() < 0.4))
        SPELLINGS[self.spelling](self)

    def of(self, roles):
        return [a for a in self.axes if a.role in roles]

    # ---- building ----
    def node(self, op, inputs, dims, **attributes):
        name = f"v{len(self.nodes)}"
        names = [i.name if isinstance(i, Value) else i for i in inputs]
        self.nodes.append(helper.make_node(op, names, [name], **attributes))
        return Value(name, dims)

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, numbers):
        return self.constant(np.array(numbers, np.int64))

    def array(self, shape, dtype):
        least = 0 if dtype == "u8" else -8
        return np.asarray(self.numbers.integers(least, least + 17, shape) / (8 if "f" in dtype else 1), NUMPY[dtype])

    def tensor(self, dims, constant=False, dtype=None, extra=0):
        """An input, or a constant where its sizes are known; `extra`: that much longer along the last dim."""
        dtype = dtype or self.dtype
        shape = [int(np.prod([a.size for a in d])) for d in dims]
        if extra:
            shape[-1] += extra
        if constant and not any(a.symbolic for d in dims for a in d):
            return Value(self.constant(self.array(shape, dtype)), dims)
        value = Value(f"x{len(self.inputs)}", dims)
        words = [d[0].name if len(d) == 1 and d[0].symbolic and not (extra and i + 1 == len(dims)) else s
                 for i, (d, s) in enumerate(zip(dims, shape))]
        self.inputs.append(helper.make_tensor_value_info(value.name, DTYPES[dtype], words))
        self.data[value.name] = self.array(shape, dtype)
        for i, d in enumerate(dims):
            if len(d) == 1 and not (extra and i + 1 == len(dims)):
                self.homes.setdefault(d[0].name, (value.name, i))
        return value

    def extent(self, dim):
        """A tensor [1] that holds the extent of a joined dim."""
        if not any(a.symbolic for a in dim):
            return self.ints([int(np.prod([a.size for a in dim]))])
        words = []
        for a in dim:
            if not a.symbolic:
                words.append(self.ints([a.size]))
                continue
            home, at = self.homes[a.name]
            name = f"v{len(self.nodes)}"
            self.nodes.append(helper.make_node("Shape", [home], [name], start=at, end=at + 1))
            words.append(name)
        while len(words) > 1:
            name = f"v{len(self.nodes)}"
            self.nodes.append(helper.make_node("Mul", words[:2], [name]))
            words[:2] = [name]
        return words[0]

    def shape_of(self, dims):
        if not any(a.symbolic for d in dims for a in d):
            return self.ints([int(np.prod([a.size for a in d])) for d in dims])
        parts = [self.extent(d) for d in dims]
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node("Concat", parts, [name], axis=0))
        return name

    def reshape(self, x, dims):
        dims = [tuple(d) for d in dims]
        return x if dims == x.dims else self.node("Reshape", [x, self.shape_of(dims)], dims)

    def transpose(self, x, dims):
        perm = [x.dims.index(tuple(d)) for d in dims]
        return x if perm == sorted(perm) else self.node("Transpose", [x], [x.dims[p] for p in perm], perm=perm)

    def unsqueeze(self, x, at):
        dims = list(x.dims)
        for i in sorted(at):
            dims.insert(i, ())
        return self.node("Unsqueeze", [x, self.ints(sorted(at))], dims)

    def squeeze(self, x, at):
        return self.node("Squeeze", [x, self.ints(at)], [d for i, d in enumerate(x.dims) if i not in at])

    def place(self, x, order):
        """`x` with its dims where `order` (axes) has them, 1 elsewhere; by Unsqueeze or Reshape, perhaps expanded."""
        have = [d[0] for d in x.dims]
        x = self.transpose(x, [(a,) for a in order if a in have])
        missing = [i for i, a in enumerate(order) if a not in have]
        if missing:
            if self.random.random() < 0.5:
                x = self.unsqueeze(x, missing)
            else:
                x = self.reshape(x, [(a,) if a in have else () for a in order])
        if missing and self.random.random() < 0.15:
            self.features.append("expand")
            x = self.node("Expand", [x, self.shape_of([(a,) for a in order])], [(a,) for a in order])
        return x

    # ---- parts of a case ----
    def scalar(self):
        choice = self.random.choice([2, 3, -1] if self.dtype == "i32" else [0.5, 2, -0.25])
        return self.constant(NUMPY[self.dtype](choice))

    def vector_along(self, x, axis):
        """A vector along an axis that broadcasts to `x`."""
        at = [i for i, d in enumerate(x.dims) if d == (axis,)][0]
        v = self.tensor([(axis,)], self.random.random() < 0.5)
        behind = len(x.dims) - 1 - at
        return self.unsqueeze(v, list(range(1, behind + 1))) if behind else v

    def work(self, x, tag):
        """Something elementwise that keeps the dims; of halves what is exact: kernels round them in the end alone."""
        r = self.random
        ops = ["Relu", "Neg", "scale", "vector", "Abs", "Sub"]
        if self.dtype != "i32":
            ops += ["Sigmoid", "Tanh"]
        if self.dtype == "i32":
            ops.remove("Relu")
        op = r.choice(["Relu", "Neg", "scale", "Abs"] if self.dtype == "f16" else ops)
        self.features.append(f"{tag} {op}")
        if op == "scale":
            return self.node("Mul", r.sample([x, self.scalar()], 2), x.dims)
        if op == "vector":
            own = [d[0] for d in x.dims if len(d) == 1]
            if not own:
                return x
            return self.node(r.choice(["Add", "Mul"]), [x, self.vector_along(x, r.choice(own))], x.dims)
        if op == "Sub":
            return self.node("Sub", [x, self.scalar()], x.dims)
        return self.node(op, [x], x.dims)

    def factor(self, axes, narrow=False):
        """`narrow`: integers of 8 bits stay so."""
        r = self.random
        axes = r.sample(axes, len(axes))
        dims = [(a,) for a in axes]
        kind = r.random()
        constant = r.random() < 0.25 and not self.has_constant  # a product of constants is one
        self.has_constant |= constant
        dtype = r.choice(self.narrow) if self.narrow else self.dtype
        if kind < 0.06 and self.dtype in ("f32", "f16") and axes:
            self.features.append("cast")
            x = self.tensor(dims, constant, "f16" if self.dtype == "f32" else "f32")
            x = self.node("Cast", [x], dims, to=DTYPES[self.dtype])
        elif kind < 0.12 and axes and not axes[-1].symbolic:
            self.features.append("slice")
            x = self.tensor(dims, constant, dtype, extra=3)
            start = r.randint(0, 3)
            bounds = [self.ints([start]), self.ints([start + axes[-1].size]), self.ints([len(dims) - 1])]
            x = self.node("Slice", [x, *bounds], dims)
        else:
            x = self.tensor(dims, constant, dtype)
        if self.narrow and not narrow:
            x = self.node("Cast", [x], dims, to=DTYPES[self.dtype])
        if not self.narrow and r.random() < 0.3:
            x = self.work(x, "before")
        return x

    def factors(self):
        """The axes of both factors: each batch axis may be absent from one."""
        sides = [self.of("bmk"), self.of("bnk")]
        for axis in self.of("b"):
            if self.random.random() < 0.25:
                sides[self.random.randrange(2)].remove(axis)
        return sides

    def finish(self, x):
        r = self.random
        for _ in range(r.choices([0, 1, 2], [45, 40, 15])[0]):
            if r.random() < 0.25 and x.dims and self.dtype != "f16":
                self.features.append("residual")
                order = [d for d in x.dims]
                x = self.node("Add", r.sample([x, self.tensor(order)], 2), order)
            else:
                x = self.work(x, "after")
        if r.random() < 0.3 and len(x.dims) > 1:
            x = self.transpose(x, r.sample(x.dims, len(x.dims)))
        self.result = x

    def model(self):
        self.nodes.append(helper.make_node("Identity", [self.result.name], ["y"]))
        result = helper.make_tensor_value_info("y", DTYPES[self.dtype], None)
        graph = helper.make_graph(self.nodes, "g", self.inputs, [result], self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def matmul(c):
    r = c.random
    left, right = c.factors()
    narrow = bool(c.narrow) and r.random() < 0.7
    a, b = c.factor(left, narrow), c.factor(right, narrow)
    m, n, k, batch = c.of("m"), c.of("n"), c.of("k"), c.of("b")
    k_order = r.sample(k, len(k))
    spare = [m.pop(0)] if len(m) == 2 and r.random() < 0.5 else []  # rows that are a batch axis of the first factor's
    outer = r.sample(batch + spare, len(batch + spare))

    def matrix(x, axes, rows, columns):
        own = [q for q in outer if q in axes]
        x = c.transpose(x, [(q,) for q in own + rows + columns])
        dims = [(q,) for q in own] + [tuple(rows)] + [tuple(columns)]
        if not own and not (rows and columns):
            return c.reshape(x, [d for d in dims if d]) if any(len(d) > 1 for d in dims) else x
        x = c.reshape(x, dims)
        missing = [i for i, q in enumerate(outer) if q not in axes]
        while missing and missing[0] == 0:  # in front, a shorter rank does
            missing = [i - 1 for i in missing[1:]]
        return c.unsqueeze(x, missing) if missing else x
    a, b = matrix(a, left, m, k_order), matrix(b, right, k_order, n)
    outer_of = lambda x: len(x.dims) - 2
    count = max(outer_of(a), outer_of(b), 0)
    dims = [(q,) for q in outer[len(outer) - count:]]
    if len(a.dims) > 1:
        dims.append(tuple(m))
    if len(b.dims) > 1:
        dims.append(tuple(n))
    y = c.node("MatMulInteger" if narrow else "MatMul", [a, b], dims)
    split = [(q,) for d in y.dims for q in d]
    if split != y.dims and (r.random() < 0.7 or () in y.dims):
        y = c.reshape(y, split)
    c.finish(y)


def gemm(c):
    r = c.random
    a, b = c.factor(c.of("mk")), c.factor(c.of("nk"))
    m, n, k = c.of("m"), c.of("n"), r.sample(c.of("k"), len(c.of("k")))
    flip = [r.random() < 0.5, r.random() < 0.5]
    rows = [k, m] if flip[0] else [m, k]
    columns = [n, k] if flip[1] else [k, n]
    a = c.reshape(c.transpose(a, [(q,) for q in rows[0] + rows[1]]), rows)
    b = c.reshape(c.transpose(b, [(q,) for q in columns[0] + columns[1]]), columns)
    inputs, attributes = [a, b], {}
    if r.random() < 0.6:
        kind = r.choice(["n", "1n", "mn", "m1", ""])
        dims = [tuple(m) if q == "m" else tuple(n) if q == "n" else () for q in kind]
        constant = r.random() < 0.5
        inputs.append(c.reshape(c.tensor([(q,) for d in dims for q in d], constant), dims) if dims else c.scalar())
        if r.random() < 0.5:
            attributes["beta"] = r.choice([0.5, 2.0, -1.0])
    if r.random() < 0.5:
        attributes["alpha"] = r.choice([0.5, 2.0, -1.0])
    y = c.node("Gemm", inputs, [tuple(m), tuple(n)], transA=int(flip[0]), transB=int(flip[1]), **attributes)
    if r.random() < 0.5:
        y = c.reshape(y, [(q,) for d in y.dims for q in d])
    c.finish(y)


def einsum(c):
    r = c.random
    sides = c.factors()
    if r.random() < 0.1:
        c.axes.append(Axis("e0", "e", r.choice([2, 3, 5]), r.random() < 0.4))
        sides[r.randrange(2)].append(c.axes[-1])
        c.features.append("lone")
    if r.random() < 0.1:
        c.features.append("third")
        sides.append(r.sample(c.axes, r.randint(1, min(2, len(c.axes)))))
    operands = [c.factor(s) for s in r.sample(sides, len(sides))]
    letters = dict(zip([a.name for a in c.axes], r.sample(string.ascii_letters, len(c.axes))))
    spell = lambda dims: "".join(letters[d[0].name] for d in dims)
    kept = c.of("bmn")
    out = [(a,) for a in r.sample(kept, len(kept))]
    c.finish(c.node("Einsum", operands, out, equation=",".join(spell(o.dims) for o in operands) + "->" + spell(out)))


def mul_sum(c):
    r = c.random
    sides = c.factors()
    summed = c.of("k")
    if r.random() < 0.08:
        c.axes.append(Axis("e0", "e", r.choice([2, 3, 5]), r.random() < 0.4))
        sides[r.randrange(2)].append(c.axes[-1])
        summed.append(c.axes[-1])
        c.features.append("lone")
    order = r.sample(c.axes, len(c.axes))
    if r.random() < 0.5:  # as people write it: batch, m, k, n
        order.sort(key=lambda a: "bmken".index(a.role))
    third = r.random() < 0.12
    if third:
        c.features.append("third")
        sides.append(r.sample(c.axes, r.randint(1, min(2, len(c.axes)))))
    factors = [c.factor(s) for s in sides]
    factors = [c.place(f, order) for f in factors]
    if not third and r.random() < 0.15:
        c.features.append("scale")
        factors.append(c.scalar())
    r.shuffle(factors)
    x = factors[0]
    for f in factors[1:]:
        dims = [d or e for d, e in zip(x.dims, f.dims)] if isinstance(x, Value) and isinstance(f, Value) else \
            (x if isinstance(x, Value) else f).dims
        x = c.node("Mul", [x, f], dims)
    if r.random() < 0.06:
        c.features.append("scaled")
        x = c.node("Mul", [x, c.scalar()], x.dims)
    at = [i for i, a in enumerate(order) if a in summed]
    if len(at) > 1 and at == list(range(at[0], at[-1] + 1)) and r.random() < 0.4:
        c.features.append("joined")
        x = c.reshape(x, x.dims[:at[0]] + [sum((x.dims[i] for i in at), ())] + x.dims[at[-1] + 1:])
        at = at[:1]
    keep = r.random() < 0.35
    op = "ReduceMean" if r.random() < 0.08 and c.dtype != "i32" else "ReduceSum"
    steps = [at]
    if len(at) > 1 and r.random() < 0.4 and c.dtype != "f16":
        c.features.append("steps")
        steps = [[at[1]], [at[0]]]
    for step in steps:
        rank = len(x.dims)
        named = [i - rank if r.random() < 0.3 else i for i in step]
        dims = [() if i in step else d for i, d in enumerate(x.dims)]
        dims = dims if keep else [d for i, d in enumerate(dims) if i not in step]
        x = c.node(op, [x, c.ints(named)], dims, keepdims=int(keep))
    if keep and r.random() < 0.5:
        x = c.squeeze(x, [i for i, d in enumerate(x.dims) if not d])
    c.finish(x) if all(x.dims) else c.finish_ones(x)


def finish_ones(c, x):
    """What follows sees the summed axes as ones."""
    if c.random.random() < 0.4:
        x = c.work(x, "after")
    c.result = x


Case.finish_ones = finish_ones
SPELLINGS = {"matmul": matmul, "gemm": gemm, "einsum": einsum, "mul_sum": mul_sum}


class Outcome:
    def __init__(self, seed, spelling):
        case = Case(seed, spelling)
        self.seed, self.spelling, self.features, self.dtype = seed, case.spelling, case.features, case.dtype
        self.has_both = bool([a for a in case.of("m") if a.size > 1 or a.symbolic] and
                             [a for a in case.of("n") if a.size > 1 or a.symbolic])
        # What Einsum makes of three factors, or sums ahead, has 32 bits.
        wide = self.spelling == "einsum" and {"lone", "third"} & set(case.features)
        self.takes_dtype = case.dtype != "i32" or bool(case.narrow) and not wide
        self.case, self.failure, self.mma = case, None, False

    def describe(self):
        return f"seed {self.seed}, {self.spelling}, {self.dtype}, {self.features}"

    def is_plain(self):
        return self.has_both and self.takes_dtype

    def run(self, folder, native, keep):
        case, path = self.case, os.path.join(folder, f"{self.seed}")
        os.makedirs(os.path.join(path, "data"))
        model = case.model()
        onnx.save(model, os.path.join(path, "model.onnx"))
        for i, (name, array) in enumerate(case.data.items()):
            onnx.save_tensor(numpy_helper.from_array(array), os.path.join(path, "data", f"input_{i}.pb"))
        wanted = ReferenceEvaluator(model).run(None, case.data)[0]
        onnx.save_tensor(numpy_helper.from_array(np.asarray(wanted)), os.path.join(path, "data", "output_0.pb"))
        computes = ["uir-run", os.path.join(path, "model.onnx"), "--no-cache", "--threads", "1",
                    *(["--device", "cpu", "--no-vm"] if native else ["--device", "vm", "--check"])]
        looks = ["uir-opt", os.path.join(path, "model.onnx"), "--after", "igraph"]
        for command in (computes + ["--data", os.path.join(path, "data")], looks):
            done = run(*command, timeout=TIMEOUT_S)
            if done.returncode:
                said = done.stdout[-1500:] + done.stderr[-1500:]
                self.failure = f"exit {done.returncode} of {' '.join(command)}\n{said}"
                return self
        self.mma = re.search(r"^\s*mma\b", done.stdout, re.M) is not None
        if not keep:
            shutil.rmtree(path)
        return self


def percent(outcomes):
    return 100 * sum(o.mma for o in outcomes) / max(len(outcomes), 1)


def main():
    parser = make_parser(__doc__, count=60, seed=1, jobs=2, keep=None)
    parser.add_argument("--at-least", type=float, default=98)
    parser.add_argument("--spelling", choices=sorted(SPELLINGS))
    parser.add_argument("--native", type=int, default=20)
    parser.add_argument("-v", action="store_true", help="names the cases without mma")
    options = parser.parse_args()
    outcomes, suite = [], Suite()
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or made

        def one(seed):
            return Outcome(seed, options.spelling).run(folder, seed % options.native == 0, options.keep)
        with ThreadPoolExecutor(options.jobs) as pool:
            for outcome in pool.map(one, range(options.seed, options.seed + options.count)):
                outcomes.append(outcome)
                good = suite.tell(outcome.failure is None, f"{outcome.describe()}: {outcome.failure}")
                if good and options.v and not outcome.mma:
                    print(f"no mma: {outcome.describe()}{'' if outcome.is_plain() else ', by its nature'}", flush=True)
    for spelling in sorted(SPELLINGS):
        those = [o for o in outcomes if o.spelling == spelling]
        if those:
            print(f"{spelling}: {sum(o.mma for o in those)} of {len(those)} through mma; of the others "
                  f"{sum(not o.mma and not o.is_plain() for o in those)} without rows or columns or of 32-bit integers")
    plain = [o for o in outcomes if o.is_plain()]
    share = percent(plain)
    print(f"{percent(outcomes):.1f} % of {len(outcomes)} through mma")
    print(f"{share:.1f} % of the {len(plain)} with rows, columns and a dtype that mma takes")
    if share < options.at_least:
        suite.tell(False, f"{share:.1f} % of these through mma, {options.at_least} wanted")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
