"""Random graphs as ONNX, run by uir-run and by ONNX Runtime, which must agree.

usage: run_onnx_random.py [--count 2000] [--seed 1] [--device NAME] [--uir-run PATH] [--keep DIR] [--jobs 2]

A graph has two to three inputs whose dims are names bound to several values (0 and 1 among them) and some ten nodes. Every
value knows whether it is exact (sums and products of small multiples of 1/4 are): ops that jump, such as Floor, ArgMax or a
comparison, only take exact ones, so that a difference is a wrong result and not a rounding. Graphs that ONNX Runtime does not
run (no kernel for an element type) are made anew. Ends with "N passed, M failed, S skipped"."""
import os
import random
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from suite import BIN, Suite, make_parser, run  # noqa: E402

DTYPES = {"f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE, "i64": TensorProto.INT64, "i32": TensorProto.INT32,
          "bool": TensorProto.BOOL}
NUMPY = {"f32": np.float32, "f64": np.float64, "i64": np.int64, "i32": np.int32, "bool": np.bool_}
SIZES = {"N": [2, 1, 3, 0, 5], "M": [3, 4, 1, 2]}
FLOATS = ("f32", "f64")
NUMBERS = ("f32", "f64", "i64", "i32")


class Value:
    """A tensor of the graph: dims are numbers or names of SIZES; `bound` is the greatest magnitude it may have."""

    def __init__(self, name, dtype, dims, exact=True, bound=4.0):
        self.name, self.dtype, self.dims, self.exact, self.bound = name, dtype, tuple(dims), exact, bound

    @property
    def rank(self):
        return len(self.dims)


class Graph:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.sizes = {name: self.random.choice(values) for name, values in SIZES.items()}
        self.nodes, self.initializers, self.inputs, self.values, self.data = [], [], [], [], {}
        for i in range(self.random.randint(2, 3)):
            dims = [self.extent() for _ in range(self.random.choice([0, 1, 2, 2, 3, 3, 4]))]
            value = Value(f"x{i}", self.random.choice(["f32", "f32", "f32", "f64", "i64", "i32", "bool"]), dims)
            self.inputs.append(value)
            self.values.append(value)
            self.data[value.name] = self.array(value.dtype, [self.size(d) for d in dims])
        for _ in range(self.random.randint(4, 14)):
            self.random.choice(MAKERS)(self)

    def size(self, dim):
        return self.sizes.get(dim, dim)

    def extent(self):
        return self.random.choice(["N", "M", 1, 2, 3, 4, 5])

    def array(self, dtype, shape):
        generator = np.random.default_rng(self.random.getrandbits(32))
        if dtype == "bool":
            return np.asarray(generator.integers(0, 2, shape), np.bool_)
        values = generator.integers(-16, 17, shape)
        return np.asarray(values / 4 if dtype in FLOATS else values // 4, NUMPY[dtype])

    def pick(self, dtypes, rank=0, exact=False):
        fitting = [v for v in self.values if v.dtype in dtypes and v.rank >= rank and (v.exact or not exact)]
        # Newer values more often, so that graphs are deep.
        return fitting[-1 - int(len(fitting) * self.random.random() ** 2)] if fitting else None

    def constant(self, array):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, op, inputs, dtype, dims, exact=True, bound=4.0, **attributes):
        """A node of one result."""
        name = f"v{len(self.nodes)}"
        names = [i.name if isinstance(i, Value) else i for i in inputs]
        self.nodes.append(helper.make_node(op, names, [name], **attributes))
        self.values.append(Value(name, dtype, dims, exact and bound < 1e5, bound))

    def broadcast(self, a, b):
        """The dims two values broadcast to by their numbers, None when they do not or when it depends on a name."""
        dims = []
        for i in range(1, max(a.rank, b.rank) + 1):
            x = a.dims[-i] if i <= a.rank else 1
            y = b.dims[-i] if i <= b.rank else 1
            if x != y and x != 1 and y != 1 and (self.size(x) != self.size(y)) and 1 not in (self.size(x), self.size(y)):
                return None
            dims.insert(0, y if x == 1 or self.size(x) == 1 else x)
        return dims if len(dims) <= 5 else None


def unary(g):
    smooth = ["Tanh", "Sigmoid", "Erf", "Sin", "Cos", "Atan", "Softplus", "Elu", "HardSwish", "Softsign", "Selu", "Gelu"]
    a = g.pick(FLOATS)
    if a:
        op = g.random.choice(smooth)
        if op in ("Softplus", "Elu", "HardSwish", "Selu", "Gelu") and a.dtype == "f64":
            return
        g.add(op, [a], a.dtype, a.dims, False, max(a.bound * 2, 2))


def sharp(g):
    a = g.pick(FLOATS, exact=True)
    if a:
        op = g.random.choice(["Floor", "Ceil", "Round", "Sign", "Relu", "Abs", "Neg"])
        g.add(op, [a], a.dtype, a.dims, True, a.bound + 1)


def roots(g):
    a = g.pick(FLOATS)
    if a:
        g.add("Abs", [a], a.dtype, a.dims, a.exact, a.bound)
        op = g.random.choice(["Sqrt", "Exp", "Log"])
        x = g.values[-1]
        if op == "Exp":
            g.add("Clip", [x, g.constant(NUMPY[a.dtype](0)), g.constant(NUMPY[a.dtype](4))], a.dtype, a.dims, x.exact, 4)
        else:  # away from 0, where a small difference grows
            g.add("Add", [x, g.constant(NUMPY[a.dtype](1))], a.dtype, a.dims, x.exact, x.bound + 1)
        g.add(op, [g.values[-1]], a.dtype, a.dims, False, 60)


def binary(g):
    a = g.pick(NUMBERS)
    if not a:
        return
    partners = [v for v in g.values if v.dtype == a.dtype and g.broadcast(a, v) is not None]
    b = g.random.choice(partners)
    op = g.random.choice(["Add", "Sub", "Mul", "Max", "Min", "Div"])
    bound = {"Add": a.bound + b.bound, "Sub": a.bound + b.bound, "Mul": a.bound * b.bound}.get(op, max(a.bound, b.bound))
    if bound > 1e6:
        return
    if op == "Div":
        if a.dtype not in FLOATS:
            b = g.constant(NUMPY[a.dtype](g.random.choice([-3, 2, 5])))
            g.add("Div", [a, b], a.dtype, a.dims, True, a.bound)
            return
        g.add("Abs", [b], b.dtype, b.dims, b.exact, b.bound)
        g.add("Add", [g.values[-1], g.constant(NUMPY[b.dtype](1))], b.dtype, b.dims, b.exact, b.bound + 1)
        b = g.values[-1]
    g.add(op, [a, b], a.dtype, g.broadcast(a, b), a.exact and b.exact and op != "Div", bound)


def compare(g):
    a = g.pick(NUMBERS, exact=True)
    if a:
        partners = [v for v in g.values if v.dtype == a.dtype and v.exact and g.broadcast(a, v) is not None]
        b = g.random.choice(partners)
        op = g.random.choice(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])
        g.add(op, [a, b], "bool", g.broadcast(a, b))


def logic(g):
    a = g.pick(("bool",))
    if a:
        b = g.random.choice([v for v in g.values if v.dtype == "bool" and g.broadcast(a, v) is not None])
        g.add(g.random.choice(["And", "Or", "Xor"]), [a, b], "bool", g.broadcast(a, b))
        g.add("Not", [g.values[-1]], "bool", g.values[-1].dims)


def where(g):
    a, c = g.pick(NUMBERS), g.pick(("bool",))
    if a and c and g.broadcast(a, c) is not None:
        g.add("Where", [c, a, g.constant(NUMPY[a.dtype](2))], a.dtype, g.broadcast(c, a), a.exact, max(a.bound, 2))


def cast(g):
    a = g.pick(tuple(DTYPES), exact=True)
    if a and a.bound < 1e5:
        to = g.random.choice(list(DTYPES))
        g.add("Cast", [a], to, a.dims, True, a.bound, to=DTYPES[to])


def reduce(g):
    a = g.pick(("f32", "f64", "i64", "i32"), rank=1)
    if not a:
        return
    axes = sorted(g.random.sample(range(a.rank), g.random.randint(1, a.rank)))
    count = int(np.prod([g.size(a.dims[i]) for i in axes]))
    op = g.random.choice(["ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceL2", "ReduceSumSquare"])
    if op in ("ReduceMean", "ReduceL2") and a.dtype not in FLOATS:
        op = "ReduceSum"
    if count == 0:
        op = "ReduceSum"
    if op == "ReduceSumSquare" and a.bound * a.bound * count > 1e6:
        op = "ReduceMax" if count else "ReduceSum"
    keep = g.random.randint(0, 1)
    dims = [1 if i in axes else d for i, d in enumerate(a.dims) if keep or i not in axes]
    bound = a.bound * max(count, 1) if op != "ReduceSumSquare" else a.bound ** 2 * max(count, 1)
    exact = a.exact and op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceSumSquare")
    g.add(op, [a, g.constant(np.array(axes, np.int64))], a.dtype, dims, exact, bound, keepdims=keep)


def arg(g):
    a = g.pick(("f32", "i32", "f64"), rank=1, exact=True)
    if a:
        axis = g.random.randrange(a.rank)
        if g.size(a.dims[axis]):
            dims = [d for i, d in enumerate(a.dims) if i != axis]
            g.add(g.random.choice(["ArgMax", "ArgMin"]), [a], "i64", dims, True, 8, axis=axis, keepdims=0,
                  select_last_index=g.random.randint(0, 1))


def softmax(g):
    a = g.pick(FLOATS, rank=1)
    if a:
        axis = g.random.randrange(a.rank)
        g.add(g.random.choice(["Softmax", "LogSoftmax"]), [a], a.dtype, a.dims, False, 50, axis=axis)


def norm(g):
    a = g.pick(("f32",), rank=1)
    if a and isinstance(a.dims[-1], int):
        scale = g.constant(g.array("f32", [a.dims[-1]]))
        g.add("LayerNormalization", [a, scale], "f32", a.dims, False, 20, axis=-1)


def cumsum(g):
    a = g.pick(NUMBERS, rank=1)
    if a and a.bound < 1e4:
        axis = g.random.randrange(a.rank)
        g.add("CumSum", [a, g.constant(np.int64(axis))], a.dtype, a.dims, a.exact, a.bound * 6,
              exclusive=g.random.randint(0, 1), reverse=g.random.randint(0, 1))


def transpose(g):
    a = g.pick(tuple(DTYPES), rank=1)
    if a:
        perm = g.random.sample(range(a.rank), a.rank)
        g.add("Transpose", [a], a.dtype, [a.dims[p] for p in perm], a.exact, a.bound, perm=perm)


def reshape(g):
    a = g.pick(tuple(DTYPES), rank=1)
    if a and 0 not in [g.size(d) for d in a.dims]:
        at = g.random.randrange(a.rank)
        product = int(np.prod([g.size(d) for d in a.dims[at:]]))
        shape = [0] * at + [-1]
        # The merged dim is a number only for this binding; it is not used as one later.
        dims = list(a.dims[:at]) + [product if all(isinstance(d, int) for d in a.dims[at:]) else None]
        if None not in dims:
            g.add("Reshape", [a, g.constant(np.array(shape, np.int64))], a.dtype, dims, a.exact, a.bound)
        else:
            g.add("Flatten", [a], a.dtype, dims, a.exact, a.bound, axis=at)
            g.values.pop()


def unsqueeze(g):
    a = g.pick(tuple(DTYPES))
    if a and a.rank < 5:
        axis = g.random.randint(0, a.rank)
        g.add("Unsqueeze", [a, g.constant(np.array([axis], np.int64))], a.dtype, a.dims[:axis] + (1,) + a.dims[axis:],
              a.exact, a.bound)


def squeeze(g):
    a = g.pick(tuple(DTYPES))
    if a and 1 in a.dims:
        axis = a.dims.index(1)
        g.add("Squeeze", [a, g.constant(np.array([axis], np.int64))], a.dtype, a.dims[:axis] + a.dims[axis + 1:], a.exact,
              a.bound)


def slice_(g):
    a = g.pick(tuple(DTYPES), rank=1)
    if not a:
        return
    axis = g.random.randrange(a.rank)
    start, end, step = g.random.choice([(0, 2, 1), (1, 100, 1), (-1, -100, -1), (-2, 100, 1), (0, 100, 2), (100, -100, -2)])
    size = len(range(g.size(a.dims[axis]))[start:end:step])
    if not isinstance(a.dims[axis], int):
        return
    parts = [g.constant(np.array([x], np.int64)) for x in (start, end, axis, step)]
    g.add("Slice", [a] + parts, a.dtype, a.dims[:axis] + (size,) + a.dims[axis + 1:], a.exact, a.bound)


def slice_named(g):
    """The result of slicing a named axis is given out, but nothing is built on it: its size has no name."""
    a = g.pick(tuple(DTYPES), rank=1)
    if a:
        axis = g.random.randrange(a.rank)
        start, end, step = g.random.choice([(0, 2, 1), (1, 100, 1), (-1, -100, -1), (0, 100, 2)])
        parts = [g.constant(np.array([x], np.int64)) for x in (start, end, axis, step)]
        g.add("Slice", [a] + parts, a.dtype, a.dims, a.exact, a.bound)
        g.values.pop()


def concat(g):
    a = g.pick(tuple(DTYPES), rank=1)
    if a:
        axis = g.random.randrange(a.rank)
        fitting = [v for v in g.values if v.dtype == a.dtype and v.rank == a.rank and
                   all(i == axis or x == y for i, (x, y) in enumerate(zip(a.dims, v.dims)))]
        b = g.random.choice(fitting)
        if isinstance(a.dims[axis], int) and isinstance(b.dims[axis], int):
            g.add("Concat", [a, b], a.dtype, a.dims[:axis] + (a.dims[axis] + b.dims[axis],) + a.dims[axis + 1:],
                  a.exact and b.exact, max(a.bound, b.bound), axis=axis)


def gather(g):
    a = g.pick(tuple(DTYPES), rank=1)
    if a:
        axis = g.random.randrange(a.rank)
        extent = g.size(a.dims[axis])
        if extent and a.rank < 4:
            shape = g.random.choice([(), (2,), (3, 2)])
            indices = np.random.default_rng(g.random.getrandbits(32)).integers(-extent, extent, shape)
            if not isinstance(a.dims[axis], int):
                indices = np.zeros(shape, np.int64)
            g.add("Gather", [a, g.constant(indices.astype(np.int64))], a.dtype, a.dims[:axis] + shape + a.dims[axis + 1:],
                  a.exact, a.bound, axis=axis)


def elements(g):
    a = g.pick(("f32", "i64", "i32"), rank=1)
    if a and all(isinstance(d, int) for d in a.dims) and all(a.dims):
        axis = g.random.randrange(a.rank)
        shape = [g.random.randint(1, d) for d in a.dims]
        generator = np.random.default_rng(g.random.getrandbits(32))
        indices = np.zeros(shape, np.int64)
        for line in np.ndindex(*[s for i, s in enumerate(shape) if i != axis]):
            at = line[:axis] + (slice(None),) + line[axis:]
            indices[at] = generator.permutation(a.dims[axis])[:shape[axis]]
        if g.random.random() < 0.5:
            g.add("GatherElements", [a, g.constant(indices)], a.dtype, shape, a.exact, a.bound, axis=axis)
        else:
            updates = g.constant(g.array(a.dtype, shape))
            g.add("ScatterElements", [a, g.constant(indices), updates], a.dtype, a.dims, a.exact, a.bound + 4, axis=axis,
                  reduction=g.random.choice(["none", "add"]))


def pad(g):
    a = g.pick(("f32", "f64", "i64", "i32"), rank=1)
    if a:
        mode = g.random.choice(["constant", "constant", "edge", "reflect"])
        pads = [g.random.randint(0, 1) for _ in range(2 * a.rank)]
        if mode != "constant":
            pads = [p if isinstance(a.dims[i % a.rank], int) and a.dims[i % a.rank] > 1 else 0 for i, p in enumerate(pads)]
            if 0 in [g.size(d) for d in a.dims]:
                return
        if any(not isinstance(d, int) and (pads[i] or pads[i + a.rank]) for i, d in enumerate(a.dims)):
            pads = [p if isinstance(a.dims[i % a.rank], int) else 0 for i, p in enumerate(pads)]
        dims = [d + pads[i] + pads[i + a.rank] if isinstance(d, int) else d for i, d in enumerate(a.dims)]
        g.add("Pad", [a, g.constant(np.array(pads, np.int64)), g.constant(NUMPY[a.dtype](1))], a.dtype, dims, a.exact,
              a.bound, mode=mode)


def expand(g):
    a = g.pick(tuple(DTYPES))
    if a and a.rank < 4:
        g.add("Expand", [a, g.constant(np.array([2] + [1] * a.rank, np.int64))], a.dtype, (2,) + a.dims, a.exact, a.bound)


def shape_of(g):
    a = g.pick(tuple(DTYPES))
    if a:
        g.add("Shape", [a], "i64", (a.rank,), True, 8)


def matmul(g):
    a = g.pick(("f32", "f64"), rank=2)
    if a and isinstance(a.dims[-1], int):
        columns = g.random.randint(1, 9)
        if g.random.random() < 0.5:
            b = g.constant(g.array(a.dtype, [a.dims[-1], columns]))
            g.add("MatMul", [a, b], a.dtype, a.dims[:-1] + (columns,), a.exact, a.bound * 4 * max(a.dims[-1], 1))
        else:
            perm = list(range(a.rank - 2)) + [a.rank - 1, a.rank - 2]
            if a.bound > 1e3:
                return
            g.add("Transpose", [a], a.dtype, [a.dims[p] for p in perm], a.exact, a.bound, perm=perm)
            g.add("MatMul", [a, g.values[-1]], a.dtype, a.dims[:-2] + (a.dims[-2], a.dims[-2]), a.exact,
                  a.bound ** 2 * max(a.dims[-1], 1))


def conv(g):
    a = g.pick(("f32",), rank=3)
    if not a or not isinstance(a.dims[1], int) or not a.dims[1] or a.bound > 1e4 or g.size(a.dims[0]) == 0:
        return
    spatial = a.rank - 2
    groups = g.random.choice([1, a.dims[1]])
    kernel = [g.random.randint(1, 3) for _ in range(spatial)]
    dilations = [g.random.randint(1, 2) for _ in range(spatial)]
    strides = [g.random.randint(1, 2) for _ in range(spatial)]
    pads = [(k - 1) * d for k, d in zip(kernel, dilations)] * 2
    if any(g.size(d) == 0 or not isinstance(d, int) for d in a.dims[2:]):
        return
    filters = groups * g.random.randint(1, 3)
    out = [(d + 2 * p - (k - 1) * dil - 1) // s + 1
           for d, p, k, dil, s in zip(a.dims[2:], pads, kernel, dilations, strides)]
    if g.random.random() < 0.6:
        weights = g.constant(g.array("f32", [filters, a.dims[1] // groups] + kernel))
        g.add("Conv", [a, weights], "f32", [a.dims[0], filters] + out, a.exact, a.bound * 4 * 27 * a.dims[1],
              group=groups, dilations=dilations, strides=strides, pads=pads)
    elif all(k == 1 or d == 1 for k, d in zip(kernel, dilations)):
        # Padding must be smaller than the window.
        g.add("MaxPool", [a], "f32", [a.dims[0], a.dims[1]] + out, a.exact, a.bound, kernel_shape=kernel,
              strides=strides, pads=pads)


def top_k(g):
    a = g.pick(("f32", "i64"), rank=1, exact=True)
    if a and isinstance(a.dims[-1], int) and a.dims[-1]:
        k = g.random.randint(1, a.dims[-1])
        name = f"v{len(g.nodes)}"
        g.nodes.append(helper.make_node("TopK", [a.name, g.constant(np.array([k], np.int64))], [name, name + "i"],
                                        largest=g.random.randint(0, 1)))
        g.values.append(Value(name, a.dtype, a.dims[:-1] + (k,), True, a.bound))
        g.values.append(Value(name + "i", "i64", a.dims[:-1] + (k,), True, 8))


def non_zero(g):
    a = g.pick(("f32", "i64", "bool", "i32"), rank=1, exact=True)
    if a:
        g.add("NonZero", [a], "i64", (a.rank, "?"))
        g.values.pop()


MAKERS = [unary, unary, sharp, roots, binary, binary, binary, binary, compare, logic, where, cast, reduce, reduce, arg,
          softmax, norm, cumsum, transpose, transpose, reshape, unsqueeze, squeeze, slice_, slice_named, concat, concat,
          gather, elements, pad, expand, shape_of, matmul, matmul, conv, top_k, non_zero]


def make_model(g):
    """Every node's results are outputs, so that the first wrong one is named."""
    inputs = [helper.make_tensor_value_info(v.name, DTYPES[v.dtype], v.dims) for v in g.inputs]
    outputs = [onnx.ValueInfoProto(name=name) for node in g.nodes for name in node.output]
    graph = helper.make_graph(g.nodes, "random", inputs, outputs, g.initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    # Types of the outputs, as ONNX infers them.
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True)
    types = {v.name: v for v in list(inferred.graph.output) + list(inferred.graph.value_info)}
    del model.graph.output[:]
    model.graph.output.extend(types[o.name] for o in outputs)
    return model


def write_case(folder, seed):
    """Makes a graph that ONNX Runtime runs, with its answer; returns False when it does not run this one."""
    g = Graph(seed)
    if not g.nodes:
        return False
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        model = make_model(g)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = session.run(None, g.data)
    except Exception as error:  # no kernel, or a case that ONNX itself forbids
        write_case.reasons[str(error).split("\n")[0][:80]] = seed
        return False
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for i, value in enumerate(g.inputs):
        with open(os.path.join(data, f"input_{i}.pb"), "wb") as file:
            file.write(numpy_helper.from_array(g.data[value.name], value.name).SerializeToString())
    for i, (output, array) in enumerate(zip(model.graph.output, results)):
        with open(os.path.join(data, f"output_{i}.pb"), "wb") as file:
            file.write(numpy_helper.from_array(np.asarray(array), output.name).SerializeToString())
    return True


write_case.reasons = {}


def main():
    parser = make_parser(__doc__, count=2000, seed=1, jobs=2, keep=None)
    parser.add_argument("--device", default="interpreter")
    parser.add_argument("--uir-run", default=os.path.join(BIN, "uir-run"))
    options = parser.parse_args()
    suite, refused = Suite(), 0
    if not os.path.exists(options.uir_run):
        suite.skip(f"{options.uir_run} is not built")
        return suite.end()

    def run_case(folder):
        return run(os.path.abspath(options.uir_run), os.path.join(folder, "model.onnx"), "--device", options.device, "--data",
                   os.path.join(folder, "test_data_set_0"), "--rtol", "1e-3", "--atol", "1e-4", timeout=120)

    with tempfile.TemporaryDirectory() as root, ThreadPoolExecutor(options.jobs) as pool:
        pending, seed = [], options.seed
        while len(pending) < options.count:
            folder = os.path.join(root, str(seed))
            if write_case(folder, seed):
                pending.append((seed, folder, pool.submit(run_case, folder)))
            else:
                refused += 1
            seed += 1
            if refused > 3 * options.count + 100:
                break
        for case, folder, future in pending:
            result = future.result()
            good = suite.tell(result.returncode == 0, f"seed {case}: exit {result.returncode}: {result.stderr.strip()[:300]}")
            if options.keep and not good:
                shutil.move(folder, os.path.join(options.keep, str(case)))
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{len(pending)} graphs, {refused} more were not for ONNX Runtime")
    if os.environ.get("UIR_DEBUG"):
        for reason, case in list(write_case.reasons.items())[:40]:
            print(f"  refused: {reason} (seed {case})")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
