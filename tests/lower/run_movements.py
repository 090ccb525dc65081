"""Random graphs of what only moves elements: concatenations, broadcasts, transposes, reshapes, slices by any step, pads,
gathers, tiles and sums of two such, with several results, of free dims and of known ones. Each is run by kernels and
compared with NumPy's, bit by bit; a graph that has no kernel, or whose kernels are refused, is a failure.

usage: run_movements.py [--count N] [--seed S] [--devices D,D...] [--keep DIR]

In: uir-run in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`. `--keep` leaves the models that
failed, as ONNX test folders."""
import os
import random
import shutil
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, make_parser, run  # noqa: E402

DEVICES = "vm,cpu,ascend,cambricon,cuda"
COMPILES_S = 8  # every so manyth graph goes to the C compiler
EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 31, 32, 40, 64, 65, 128, 256, 300)
MOST = 60000  # elements of a value
FULL = np.iinfo(np.int64)


class Graph:
    """Nodes with the values that they have for this data. A dim of an input is free or known."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.values, self.nodes, self.inputs, self.constants, self.rows = {}, [], [], [], 0

    def draw(self, *choices):
        return self.random.choice(choices)

    def input(self, shape):
        name = f"x{len(self.inputs)}"
        dims = [f"d{extent}" if self.random.random() < 0.45 else extent for extent in shape]
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, dims))
        count = int(np.prod(shape))
        self.values[name] = (np.arange(count, dtype=np.float32) + 1000 * self.rows).reshape(shape)
        self.rows += count
        return name

    def constant(self, values):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def node(self, op, inputs, value, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        self.values[name] = np.ascontiguousarray(value)
        return name

    def pick(self, test=lambda a: True):
        """A value that passes, the last ones rather than others; None: there is none."""
        names = [n for n, a in self.values.items() if a.dtype == np.float32 and test(a)]
        return None if not names else names[max(0, len(names) - 1 - int(self.random.expovariate(0.7)))]


def shape_of(g):
    rank = g.draw(1, 2, 2, 3, 3, 4)
    while True:
        shape = [g.draw(*EXTENTS) for _ in range(rank)]
        if np.prod(shape) <= MOST / 8:
            return shape


def transpose(g):
    x = g.pick(lambda a: a.ndim > 1)
    if x:
        order = list(range(g.values[x].ndim))
        g.random.shuffle(order)
        g.node("Transpose", [x], g.values[x].transpose(order), perm=order)


def concat(g):
    x = g.pick()
    a = g.values[x]
    axis = g.random.randrange(a.ndim)
    fits = [n for n, b in g.values.items() if b.dtype == np.float32 and b.ndim == a.ndim
            and b.shape[:axis] + b.shape[axis + 1:] == a.shape[:axis] + a.shape[axis + 1:]]
    pieces = [x] + [g.draw(*fits) for _ in range(g.draw(0, 1, 1, 2))]
    if len(pieces) == 1 or g.draw(0, 1):
        fresh = list(a.shape)
        fresh[axis] = g.draw(*EXTENTS)
        wide = list(fresh)
        for d in range(a.ndim):
            fresh[d] = 1 if d != axis and g.draw(0, 0, 1) else fresh[d]
        y = g.input(fresh)
        pieces.insert(g.draw(0, len(pieces)), y if fresh == wide else expand_to(g, y, wide))
    g.random.shuffle(pieces)
    g.node("Concat", pieces, np.concatenate([g.values[p] for p in pieces], axis), axis=axis - g.draw(0, a.ndim))


def expand_to(g, x, shape):
    """By a constant, or by the shape of a value that has it."""
    same = [n for n, b in g.values.items() if b.dtype == np.float32 and list(b.shape) == list(shape)]
    if same and g.draw(0, 1):
        shapes = g.node("Shape", [g.draw(*same)], np.array(shape, np.int64))
    else:
        shapes = g.constant(shape)
    return g.node("Expand", [x, shapes], np.broadcast_to(g.values[x], shape))


def expand(g):
    x = g.pick(lambda a: a.size <= MOST / 32)
    if x:
        a = g.values[x]
        shape = [g.draw(1, 3, 8, 24) if d == 1 else d for d in a.shape]
        if g.draw(0, 1) and a.ndim < 4:
            shape.insert(0, g.draw(1, 2, 5))
        if np.prod(shape) <= MOST:
            expand_to(g, x, shape)


def reshape(g):
    """Two axes as one, or one as two, the free one by -1; others stay by 0."""
    x = g.pick()
    a = g.values[x]
    d = g.random.randrange(a.ndim)
    parts = [p for p in (2, 3, 4, 8, 16, 32) if a.shape[d] % p == 0 and a.shape[d] > p]
    if a.ndim > 1 and g.draw(0, 1):
        d = g.random.randrange(a.ndim - 1)
        text = [0] * d + [-1] + list(a.shape[d + 2:])
    elif parts and a.ndim < 5:
        p = g.draw(*parts)
        text = [0] * d + g.draw([-1, p], [p, -1]) + list(a.shape[d + 1:])
    else:
        text = [0] * d + [1, -1] + list(a.shape[d + 1:])
    if len(text) <= 5:
        shape = [a.shape[i] if s == 0 else s for i, s in enumerate(text)]
        g.node("Reshape", [x, g.constant(text)], a.reshape(shape))


def slice_(g):
    """Forwards and backwards, by any step, from within, from the ends and from beyond them."""
    x = g.pick()
    a = g.values[x]
    axes = sorted(g.random.sample(range(a.ndim), g.draw(1, 1, min(2, a.ndim))))
    starts, ends, steps, cut = [], [], [], [slice(None)] * a.ndim
    for d in axes:
        n, step = a.shape[d], g.draw(1, 1, 1, 2, 3, -1, -1, -2, -3)
        start, end = g.draw((0, n), (0, FULL.max), (1, n), (n // 2, FULL.max), (0, max(1, n // 2)), (-n, -1), (1, -1), (-3, n))
        if step < 0:
            start, end = g.draw((-1, FULL.min), (n - 1, FULL.min), (FULL.max, 0), (n // 2, FULL.min), (-1, -n - 1), (9, FULL.min))
        cut[d] = slice(start, end, step)
        if not len(range(*cut[d].indices(n))):
            return
        starts, ends, steps = starts + [start], ends + [end], steps + [step]
    g.node("Slice", [x, *map(g.constant, (starts, ends, axes, steps))], a[tuple(cut)])


def pad(g):
    x = g.pick(lambda a: a.size <= MOST / 4)
    if not x:
        return
    a = g.values[x]
    mode = g.draw("constant", "constant", "edge", "reflect")
    most = [min(3, n - 1) if mode == "reflect" else 3 for n in a.shape]
    before, after = ([g.random.randint(0, m) for m in most] for _ in range(2))
    g.node("Pad", [x, g.constant(before + after)], np.pad(a, list(zip(before, after)), mode), mode=mode)


def gather(g):
    x = g.pick()
    a = g.values[x]
    axis = g.random.randrange(a.ndim)
    picks = [g.random.randrange(-a.shape[axis], a.shape[axis]) for _ in range(g.draw(1, 2, 5))]
    g.node("Gather", [x, g.constant(picks)], np.take(a, picks, axis), axis=axis)


def tile(g):
    x = g.pick(lambda a: a.size <= MOST / 8)
    if x:
        times = [g.draw(1, 1, 2, 3) for _ in g.values[x].shape]
        if g.values[x].size * np.prod(times) <= MOST:
            g.node("Tile", [x, g.constant(times)], np.tile(g.values[x], times))


def split(g):
    x = g.pick(lambda a: max(a.shape) > 1)
    if x:
        a = g.values[x]
        axis = g.draw(*[d for d in range(a.ndim) if a.shape[d] > 1])
        first = g.random.randint(1, a.shape[axis] - 1)
        names = [f"v{len(g.nodes)}", f"v{len(g.nodes)}b"]
        g.nodes.append(helper.make_node("Split", [x, g.constant([first, a.shape[axis] - first])], names, axis=axis))
        for name, part in zip(names, np.split(a, [first], axis)):
            g.values[name] = np.ascontiguousarray(part)


def add(g):
    """What is moved in two ways is added; whole numbers, so that every order gives the same."""
    x = g.pick()
    fits = [n for n, b in g.values.items() if b.dtype == np.float32 and n != x and b.ndim <= g.values[x].ndim
            and all(p in (1, q) for p, q in zip(b.shape[::-1], g.values[x].shape[::-1]))]
    if fits:
        y = g.draw(*fits)
        g.node("Add", [x, y], g.values[x] + g.values[y])


STEPS = (transpose, transpose, concat, concat, concat, expand, expand, reshape, reshape, slice_, slice_, pad, gather, tile, split, add)


def make(seed):
    """A model and its data, or None where a draw came to nothing."""
    g = Graph(seed)
    g.input(shape_of(g))
    for _ in range(g.draw(2, 3, 4, 5, 6, 8)):
        g.draw(*STEPS)(g)
    made = [o for n in g.nodes for o in n.output if g.values[o].dtype == np.float32]
    used = {i for n in g.nodes for i in n.input}
    results = [m for m in made if m not in used or g.random.random() < 0.3]
    if not results or max(a.size for a in g.values.values()) > MOST or max(np.abs(a).max() for a in g.values.values()) >= 2 ** 24:
        return None
    outputs = [helper.make_tensor_value_info(r, TensorProto.FLOAT, [None] * g.values[r].ndim) for r in results]
    graph = helper.make_graph(g.nodes, "movements", g.inputs, outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return model, [g.values[i.name] for i in g.inputs], [g.values[r] for r in results]


def write(folder, model, inputs, outputs):
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for i, array in enumerate(arrays):
            onnx.save_tensor(numpy_helper.from_array(array), os.path.join(data, f"{kind}_{i}.pb"))


def check(suite, seed, folder, device):
    words = ["--no-vm"] if device == "cpu" else [] if device == "vm" else ["--interpret"]
    done = run("uir-run", os.path.join(folder, "model.onnx"), "--data", os.path.join(folder, "test_data_set_0"), "--device", device,
               "--no-cache", "--no-fallback", "--rtol", "0", "--atol", "0", *words)
    suite.tell(done.returncode == 0, f"seed {seed} on {device}: exit {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.returncode == 0


def main():
    parser = make_parser(__doc__, count=150, seed=0, keep=None)
    parser.add_argument("--devices", default=DEVICES)
    options = parser.parse_args()
    suite = Suite()
    for seed in range(options.seed, options.seed + options.count):
        made = make(seed)
        if not made:
            continue
        with tempfile.TemporaryDirectory() as folder:
            write(folder, *made)
            chosen = [d for d in options.devices.split(",") if d != "cpu" or seed % COMPILES_S == 0]
            good = [check(suite, seed, folder, device) for device in chosen]
            if options.keep and not all(good):
                shutil.copytree(folder, os.path.join(options.keep, str(seed)), dirs_exist_ok=True)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
