#!/usr/bin/env python3
"""Random graphs of which a device cannot compute a part: host operators, nodes of the interpreter, f64, remainders, between
nodes that it computes, in bodies of loops and branches too.

    run_fallback.py [--count N] [--seed S] [--seeds N] [--keep DIR]

In: the programs in $UIR_BIN, the generator of tests/ir/graph. Each graph runs on the interpreter, on the VM, and on all
chips of the null device by N seeds; a package of it runs there as well where it holds all of it. Out: a line per failure
(other bits than the VM's, other numbers than the interpreter's, a refusal by
--no-fallback without a warning), then `N passed, M failed, S skipped`.
"""
import json
import os
import random
import shutil
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ir", "graph"))
from suite import Suite, make_parser, run  # noqa: E402
import run_onnx_random as made  # noqa: E402

CHIPS = ("", "f32:", "small:")  # the last lays out and fuses otherwise, since it has less room: other bits
fallbacks = {chip: 0 for chip in CHIPS}
suite = Suite()


# ---- what a device cannot compute ----
def total(g, name, dtype, dims, axes, bound):
    """The sum along axes of which only the data tell the extents."""
    g.add("ReduceSum", [name, g.constant(np.array(axes, np.int64))], dtype, dims, True, bound, keepdims=0)


def non_zero(g):
    a = g.pick(("f32", "i64", "i32", "bool"), rank=1, exact=True)
    if a and a.rank < 4:
        g.add("NonZero", [a], "i64", (a.rank, "?"), True, 8)
        total(g, g.values.pop().name, "i64", (a.rank,), [1], 4000)


def gathered(g):
    a = g.pick(("f32", "i32"), rank=1, exact=True)
    if a and a.rank < 4 and a.bound < 100:
        g.add("NonZero", [a], "i64", (a.rank, "?"), True, 8)
        g.add("Transpose", [g.values.pop().name], "i64", ("?", a.rank), True, 8, perm=[1, 0])
        g.add("GatherND", [a, g.values.pop().name], a.dtype, ("?",), True, a.bound)
        total(g, g.values.pop().name, a.dtype, (), [0], a.bound * 200)


def compressed(g):
    a = g.pick(("f32", "i64"), rank=1, exact=True)
    if a and isinstance(a.dims[0], int) and a.bound < 100:
        kept = g.constant(np.array([g.random.random() < 0.6 for _ in range(a.dims[0])], np.bool_))
        g.add("Compress", [a, kept], a.dtype, ("?",) + a.dims[1:], True, a.bound, axis=0)
        total(g, g.values.pop().name, a.dtype, a.dims[1:], [0], a.bound * 8)


def best(g):
    """As many as the data tell."""
    a = g.pick(("f32",), rank=1, exact=True)
    if a and isinstance(a.dims[-1], int) and a.dims[-1] and a.bound < 100 and 0 not in [g.size(d) for d in a.dims]:
        g.add("Abs", [a], "f32", a.dims, True, a.bound)
        g.add("ReduceMax", [g.values.pop().name], "f32", (), True, a.bound, keepdims=0)
        g.add("Cast", [g.values.pop().name], "i64", (), True, a.bound, to=TensorProto.INT64)
        g.add("Clip", [g.values.pop().name, g.constant(np.int64(1)), g.constant(np.int64(a.dims[-1]))], "i64", (), True, 8)
        g.add("Reshape", [g.values.pop().name, g.constant(np.array([1], np.int64))], "i64", (1,), True, 8)
        name, count = f"v{len(g.nodes)}", g.values.pop().name
        g.nodes.append(helper.make_node("TopK", [a.name, count], [name, name + "i"]))
        total(g, name, "f32", a.dims[:-1], [a.rank - 1], a.bound * 8)


def distinct(g):
    """The interpreter's: no kernel and no host operator computes it."""
    a = g.pick(("f32", "i64"), rank=1, exact=True)
    if a and a.bound < 100:
        g.add("Unique", [a], a.dtype, ("?",), True, a.bound, sorted=1)
        total(g, g.values.pop().name, a.dtype, (), [0], a.bound * 200)


def counted(g):
    """The interpreter's, of a known shape."""
    a = g.pick(("i64", "i32"), rank=2)
    if a and a.rank == 2 and g.size(a.dims[0]) and g.size(a.dims[1]):
        words = [-1, 0, 1, 2, 3]
        g.add("TfIdfVectorizer", [a], "f32", (a.dims[0], len(words)), True, 8, mode="TF", min_gram_length=1, max_gram_length=1,
              max_skip_count=0, ngram_counts=[0], ngram_indexes=list(range(len(words))), pool_int64s=words)


def doubles(g):
    a = g.pick(("f32",))
    if a and a.bound < 1e3:
        g.add("Cast", [a], "f64", a.dims, a.exact, a.bound, to=TensorProto.DOUBLE)
        for _ in range(g.random.randint(1, 4)):
            x = g.values[-1]
            op = g.random.choice(["Mul", "Add", "Neg", "Abs", "Tanh"])
            if x.bound < 1e3 or op not in ("Mul", "Add"):
                g.add(op, [x, x] if op in ("Mul", "Add") else [x], "f64", a.dims, x.exact and op != "Tanh", x.bound ** 2 + x.bound)
        x = g.values[-1]
        if x.rank > 1 and g.random.random() < 0.5:
            g.add("ReduceSum", [x, g.constant(np.array([-1], np.int64))], "f64", x.dims[:-1], x.exact, x.bound * 8, keepdims=0)
        x = g.values[-1]
        g.add("Cast", [x], "f32", x.dims, x.exact, x.bound, to=TensorProto.FLOAT)


def remainder(g):
    a = g.pick(("f32", "i64", "i32"), exact=True)
    if a:
        by = g.constant(made.NUMPY[a.dtype](3))
        g.add("Mod", [a, by], a.dtype, a.dims, True, 3, fmod=int(a.dtype == "f32"))


# ---- bodies ----
class Body:
    """Nodes that read one tensor of the graph and return one of its type, some of them not the device's."""

    def __init__(self, g, a, tag):
        self.g, self.tag, self.nodes, self.constants = g, tag, [], []
        for _ in range(g.random.randint(1, 4)):
            a = g.random.choice([self.plain, self.wide, self.rest, self.kept])(a)
        self.result = a

    def node(self, op, inputs, **attributes):
        name = f"{self.tag}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, value):
        name = f"{self.tag}_c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def plain(self, a):
        return self.node("Tanh", [a])

    def wide(self, a):
        x = self.node("Cast", [a], to=TensorProto.DOUBLE)
        return self.node("Cast", [self.node("Tanh", [self.node("Add", [x, x])])], to=TensorProto.FLOAT)

    def rest(self, a):
        return self.node("Mod", [self.node("Add", [a, self.constant(np.float32(0.5))]), self.constant(np.float32(1.5))], fmod=1)

    def kept(self, a):
        """The number of positive elements is added to each: 0 to 4 of them."""
        above = self.node("Greater", [a, self.constant(np.float32(0))])
        found = self.node("Transpose", [self.node("NonZero", [above])], perm=[1, 0])
        count = self.node("Size", [found])
        few = self.node("Mod", [self.node("Cast", [count], to=TensorProto.FLOAT), self.constant(np.float32(5))], fmod=1)
        return self.node("Add", [a, few])


def info(name, dtype=TensorProto.FLOAT, dims=None):
    return helper.make_tensor_value_info(name, dtype, dims)


def branch(g):
    a, condition = g.pick(("f32",), rank=1), g.pick(("f32",), exact=True)
    if not a or 0 in [g.size(d) for d in a.dims]:
        return
    tag = f"b{len(g.nodes)}"
    g.add("ReduceSum", [condition], "f32", (), True, 10, keepdims=0)
    g.add("Greater", [g.values.pop().name, g.constant(np.float32(0.1))], "bool", (), True, 1)
    bodies = [Body(g, a.name, f"{tag}{side}") for side in "te"]
    graphs = [helper.make_graph(b.nodes, b.tag, [], [info(b.result)], b.constants) for b in bodies]
    g.add("If", [g.values.pop().name], "f32", a.dims, False, a.bound + 20, then_branch=graphs[0], else_branch=graphs[1])


def loop(g):
    a = g.pick(("f32",), rank=1)
    if not a or 0 in [g.size(d) for d in a.dims]:
        return
    tag = f"l{len(g.nodes)}"
    body = Body(g, f"{tag}_x", tag)
    nodes = body.nodes + [helper.make_node("Identity", [f"{tag}_go"], [f"{tag}_on"])]
    graph = helper.make_graph(nodes, tag, [info(f"{tag}_i", TensorProto.INT64, []), info(f"{tag}_go", TensorProto.BOOL, []),
                                           info(f"{tag}_x")], [info(f"{tag}_on", TensorProto.BOOL, []), info(body.result)],
                              body.constants)
    turns = g.constant(np.int64(g.random.randint(0, 4)))
    g.add("Loop", [turns, "", a], "f32", a.dims, False, a.bound + 100, body=graph)


FOREIGN = [non_zero, gathered, compressed, best, distinct, counted, doubles, doubles, remainder, remainder, branch, loop]


class Graph(made.Graph):
    def __init__(self, seed):
        super().__init__(seed)
        for _ in range(self.random.randint(1, 5)):
            self.random.choice(FOREIGN)(self)
            for _ in range(self.random.randint(0, 4)):
                self.random.choice(made.MAKERS)(self)


def write_case(folder, seed):
    """The model and its inputs; None if the seed's graph is refused by ONNX's own inference."""
    g = Graph(seed)
    try:
        model = made.make_model(g)
    except Exception:  # onnx's inference, or an output without a type
        return None
    outputs = [o for i, o in enumerate(model.graph.output) if g.random.random() < 0.4 or i + 1 == len(model.graph.output)]
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    data = os.path.join(folder, "data")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for i, value in enumerate(g.inputs):
        with open(os.path.join(data, f"input_{i}.pb"), "wb") as file:
            file.write(numpy_helper.from_array(g.data[value.name], value.name).SerializeToString())
    return [o.name for o in outputs]


# ---- runs ----
def read_outputs(folder):
    arrays = {}
    for name in sorted(n for n in os.listdir(folder) if n.endswith(".pb")) if os.path.isdir(folder) else []:
        with open(os.path.join(folder, name), "rb") as file:
            arrays[name] = numpy_helper.to_array(TensorProto.FromString(file.read()))
    return arrays


def run_on(folder, model, device, *words):
    saved = os.path.join(folder, "saved")
    shutil.rmtree(saved, ignore_errors=True)
    done = run("uir-run", model, "--device", device, "--data", os.path.join(folder, "data"), "--quiet", "--save", saved, *words,
               timeout=120)
    return done, read_outputs(saved)


def is_same(a, b):
    return a.keys() == b.keys() and all(a[k].dtype == b[k].dtype and a[k].shape == b[k].shape and a[k].tobytes() == b[k].tobytes()
                                        for k in a)


def is_near(a, b):
    return a.keys() == b.keys() and all(a[k].shape == b[k].shape and np.allclose(a[k].astype(np.float64), b[k].astype(np.float64),
                                                                               1e-3, 1e-3, equal_nan=True) for k in a)


def check_words(folder, model, chip, seed):
    """Whoever forbids a fallback is refused where a run would warn of one, and only there."""
    data = ("--data", os.path.join(folder, "data"), "--no-cache")
    warned = run("uir-run", model, "--device", f"null:{chip}0", *data, timeout=120)
    refused = run("uir-run", model, "--device", f"null:{chip}0", "--no-fallback", *data, timeout=120)
    warns = "the host computes" in warned.stderr
    refuses = "null cannot compute" in refused.stderr or "the host may not compute" in refused.stderr
    wrong = not refuses if warns else refused.returncode != 0
    suite.tell(not wrong and warned.returncode == 0,
               f"graph {seed}: null:{chip} --no-fallback, exit {refused.returncode}: {refused.stderr[:300]}{warned.stderr[:300]}")
    fallbacks[chip] += warns


def check_staging(folder, package, chip, seed):
    """What the host computes goes to the device and back by page-locked memory."""
    data = os.path.join(folder, "arrays")
    os.makedirs(data, exist_ok=True)
    for name, array in read_outputs(os.path.join(folder, "data")).items():
        np.save(os.path.join(data, name[:-3] + ".npy"), array)
    done = run("uir-staging", "--chip", chip, "--data", data, package)
    copies_nothing = "nothing is copied" in done.stdout and ", 1 failed," in done.stdout
    return suite.tell(done.returncode == 0 or copies_nothing, f"graph {seed}: null:{chip}, uir-staging: {done.stdout[:600]}{done.stderr[:200]}")


def check_graph(folder, seed, seeds):
    model, package = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.uir")
    done, plain = run_on(folder, model, "interpreter")
    if not suite.tell(done.returncode == 0, f"graph {seed}: on the interpreter: {done.stderr[:400]}"):
        return False
    done, expected = run_on(folder, model, "vm", "--no-cache")
    good = suite.tell(done.returncode == 0 and is_near(expected, plain), f"graph {seed}: on vm, exit {done.returncode}: {done.stderr[:400]}")
    for chip in CHIPS:
        check_words(folder, model, chip, seed)
        packed = run("uir-pack", model, "-o", package, "--device", f"null:{chip}0", "--quiet")
        if packed.returncode == 0:
            good &= check_staging(folder, package, chip, seed)
        for number in seeds:
            device = f"null:{chip}{number}"
            for source in (model,) if packed.returncode else (model, package):
                done, found = run_on(folder, source, device, "--no-cache")
                right = is_near(found, expected) if chip == CHIPS[-1] else is_same(found, expected)
                good &= suite.tell(done.returncode == 0 and right,
                                   f"graph {seed}: {os.path.basename(source)} on {device}, exit {done.returncode}: {done.stderr[:400]}")
    return good


def check_refusals():
    """A remainder, which the chip f32 lacks, in a model and in its package: one warning, or one refusal, with the node."""
    nodes = [helper.make_node("Mul", ["x", "x"], ["a"]), helper.make_node("Mod", ["a", "x"], ["rest"], "the_rest", fmod=1),
             helper.make_node("Tanh", ["rest"], ["y"])]
    graph = helper.make_graph(nodes, "rest", [info("x", dims=["N", 3])], [info("y", dims=["N", 3])])
    with tempfile.TemporaryDirectory(prefix="uir-fallback-") as folder:
        model, package, none = (os.path.join(folder, name) for name in ("model.onnx", "model.uir", "none.uir"))
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), model)
        run("uir-pack", model, "-o", package, "--device", "null:f32", "--quiet")
        done = run("uir-pack", model, "-o", none, "--device", "null:f32", "--no-fallback")
        suite.tell(done.returncode == 4 and "the_rest" in done.stderr and not os.path.exists(none), f"uir-pack: {done.stderr}")
        for source in (model, package):
            for cache in ("--no-cache", "--cache", "--cache") if source == model else ("--no-map",):
                words = [source, "--device", "null:f32", cache] + ([os.path.join(folder, "cache")] if cache == "--cache" else [])
                done = run("uir-run", *words)
                suite.tell(done.returncode == 0 and done.stderr.count("the host computes") == 1 and "1 group, since the device cannot: node 'the_rest'" in
                           done.stderr, f"{words}: {done.stderr}")
                done = run("uir-run", *words, "--no-fallback")
                suite.tell(done.returncode == 4 and "node 'the_rest' (Mod)" in done.stderr, f"{words} --no-fallback: {done.stderr}")
        done = run("uir-run", package, "--device", "null")
        suite.tell(done.returncode == 5 and "chip f32" in done.stderr, f"a package of another chip: {done.stderr}")
        done = run("uir-run", model, "--device", "null", "--no-fallback", "--no-cache")
        suite.tell(done.returncode == 0 and "the host computes" not in done.stderr, f"the chip that has it: {done.stderr}")


def check_strings():
    """The interpreter runs a model with strings, whatever the device; who forbids a fallback is refused."""
    text = helper.make_tensor_value_info("s", TensorProto.STRING, [2])
    nodes = [helper.make_node("StringNormalizer", ["s"], ["t"], case_change_action="UPPER"), helper.make_node("Relu", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "strings", [text, info("x", dims=["N"])],
                              [helper.make_tensor_value_info("t", TensorProto.STRING, [2]), info("y", dims=["N"])])
    with tempfile.TemporaryDirectory(prefix="uir-fallback-") as folder:
        model, data = os.path.join(folder, "model.onnx"), os.path.join(folder, "data")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), model)
        os.mkdir(data)
        for i, array in enumerate((np.array(["a", "b"], dtype=object), np.array([-1, 2], dtype=np.float32))):
            with open(os.path.join(data, f"input_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(array).SerializeToString())
        words = (model, "--device", "null:1", "--no-cache", "--data", data)
        done = run("uir-run", *words)
        suite.tell(done.returncode == 0 and "the interpreter runs the model" in done.stderr, f"strings on null: exit {done.returncode}, {done.stderr}")
        done = run("uir-run", *words, "--no-fallback")
        suite.tell(done.returncode == 4 and "'s'" in done.stderr, f"strings with --no-fallback: exit {done.returncode}, {done.stderr}")


# ---- sizes without a variant ----
def check_sizes(seeds):
    """Sums over an axis that fits on the chip for small sizes only: the host computes the group for the others."""
    nodes = [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Softmax", ["a"], ["s"], axis=1),
             helper.make_node("Mul", ["s", "x"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
    graph = helper.make_graph(nodes, "sizes", [info("x", dims=["M", "N", "K"])], [info("y", dims=["M", "N", "K"])])
    with tempfile.TemporaryDirectory(prefix="uir-fallback-") as folder:
        model, package = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.uir")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), model)
        done = run("uir-pack", model, "-o", package, "--device", "null:small", "--quiet")
        suite.tell(done.returncode == 0, f"a package of sizes without a variant: {done.stderr}")
        os.mkdir(os.path.join(folder, "data"))
        for rows in (4, 20, 300):
            with open(os.path.join(folder, "data", "input_0.pb"), "wb") as file:
                values = np.random.default_rng(rows).normal(size=(2, rows, 7)).astype(np.float32)
                file.write(numpy_helper.from_array(values, "x").SerializeToString())
            expected = run_on(folder, model, "vm", "--no-cache")[1]
            for source, seed in [(source, seed) for source in (model, package) for seed in seeds]:
                device = f"null:small:{seed}"
                done, found = run_on(folder, source, device, "--no-cache")
                suite.tell(done.returncode == 0 and is_same(found, expected), f"{rows} rows on {device}: {done.stderr[:300]}")
            check_staging(folder, package, "small:", rows)
            told = run("uir-run", model, "--device", "null:small", "--data", os.path.join(folder, "data"), "--no-cache", "--explain", "--json")
            row = json.loads(told.stdout)["nodes"][0] if told.returncode == 0 else {}
            by_host = rows > 4
            suite.tell(row.get("fallback") == by_host and (row.get("bus_bytes", 0) > 0) == by_host and
                       ("no variant" in told.stderr) == by_host, f"{rows} rows: {row}, {told.stderr[:300]}")
            done = run_on(folder, model, "null:small", "--no-cache", "--no-fallback")[0]
            suite.tell(("no variant" in done.stderr) == by_host == (done.returncode != 0), f"{rows} rows, --no-fallback: {done.stderr[:300]}")


def main():
    parser = make_parser(__doc__, count=20, seed=1, keep=None)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    graphs, seed = 0, options.seed
    check_refusals()
    check_strings()
    check_sizes(range(1, 1 + 3 * options.seeds))
    while graphs < options.count:
        with tempfile.TemporaryDirectory(prefix="uir-fallback-") as folder:
            if write_case(folder, seed):
                graphs += 1
                number = random.Random(seed).randrange(1 << 16)
                good = check_graph(folder, seed, range(number, number + options.seeds))
                if options.keep and not good:
                    shutil.copytree(folder, os.path.join(options.keep, str(seed)), dirs_exist_ok=True)
        seed += 1
    print(f"{graphs} graphs; {seed - options.seed - graphs} more were not ONNX; "
          f"the host computed a part of {' and '.join(map(str, fallbacks.values()))}")
    for chip, count in fallbacks.items():
        suite.tell(4 * count >= graphs, f"null:{chip} computes {graphs - count} graphs by itself: too few are of use")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
