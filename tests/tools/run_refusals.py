#!/usr/bin/env python3
"""What a model cannot take when it runs: indices that name no element, sizes that do not fit. Each is refused with the
same words and the same code by all that run models: the interpreter, the virtual machine, compiled kernels, packages.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import json
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cli import BAD_FILE, OPT, PACK, RAN, RUN, RUN_PACKAGE, Case, expect, fails, make_model, run, run_tests, save, value

ENGINES = {"interpreter": [RUN, "--device", "interpreter"], "vm": [RUN, "--device", "vm"],
           "cpu": [RUN, "--device", "cpu", "--no-vm"]}
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64,
         np.dtype(np.int32): TensorProto.INT32, np.dtype(bool): TensorProto.BOOL, np.dtype(np.uint8): TensorProto.UINT8}


class Model:
    """Inputs are arrays; `dims`: what is declared instead of an array's shape, by input."""

    def __init__(self, c, nodes, inputs, constants=None, dims=None, outputs=("y",), opset=20):
        self.c, self.inputs = c, inputs
        declared = [value(n, (dims or {}).get(n, list(a.shape)), TYPES[a.dtype]) for n, a in inputs.items()]
        kept = [numpy_helper.from_array(np.asarray(a), n) for n, a in (constants or {}).items()]
        model = make_model(nodes, declared, [helper.make_empty_tensor_value_info(o) for o in outputs], kept, opset=opset)
        model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
        self.path = save(model, c.path("m.onnx"))
        done = run(PACK, self.path, "-o", c.path("m.uir"), "--quiet", "--no-native")
        expect(done.returncode == RAN, "no package", done)

    def engines(self):
        return {**{n: [*command, self.path] for n, command in ENGINES.items()},
                "package": [RUN_PACKAGE, self.c.path("m.uir")]}

    def given(self, **other):
        words = []
        for n, a in {**self.inputs, **other}.items():
            np.save(self.c.path(n + ".npy"), a)
            words += ["--input", f"{n}={self.c.path(n)}.npy"]
        return words

    def refuses(self, *words, **other):
        said = {n: fails(BAD_FILE, *words, command=[*command, "--quiet", *self.given(**other)]).err.split(": ", 1)[1]
                for n, command in self.engines().items()}
        expect(len(set(said.values())) == 1, f"not the same words: {said}")

    def takes(self, **other):
        for n, command in self.engines().items():
            done = run(*command, "--quiet", *self.given(**other))
            expect(done.returncode == RAN, f"{n} refuses what is good", done)


def floats(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def integers(*numbers, dtype=np.int64):
    return np.array(numbers, dtype)


class Bad:
    """A model of one node, inputs that it takes, and what it does not take with the words about that."""

    def __init__(self, op, inputs, bad, words, attributes=None, constants=None, dims=None, domain="", opset=20, outputs=1):
        self.op, self.inputs, self.bad, self.words = op, inputs, bad, words
        self.attributes, self.constants, self.dims, self.domain = dict(attributes or {}), constants or {}, dims, domain
        self.opset, self.outputs = opset, [f"y{i}" for i in range(outputs)]
        self.order = self.attributes.pop("order", [*self.inputs, *self.constants])

    def try_it(self):
        node = helper.make_node(self.op, self.order, self.outputs, name="the node", domain=self.domain, **self.attributes)
        with Case() as c:
            m = Model(c, [node], self.inputs, self.constants, self.dims, self.outputs, self.opset)
            m.takes()
            for bad, words in zip(self.bad, self.words):
                m.refuses("the node", words, **bad)


def each(rows):
    """All of them, whichever fail."""
    failures = []
    for row in rows:
        try:
            row.try_it()
        except AssertionError as e:
            failures.append(f"{row.op} {row.attributes}: {e}")
    expect(not failures, "\n".join(failures))


# ---- indices ----
N = ["n", "k"]  # dims that only the run knows
INDICES = [
    # Token ids, of both widths, from both sides; the table's rows fixed and not.
    Bad("Gather", {"i": np.array([[1, 2], [-9, 8]])}, [{"i": np.array([[1, 9], [0, 10]])}, {"i": np.array([[1, -10]])}],
        ["'i' is 9 at [0, 1] and must be in -9..8", "'i' is -10 at [0, 1] and must be in -9..8"],
        {"order": ["w", "i"]}, {"w": floats(9, 4)}, {"i": N}),
    Bad("Gather", {"x": floats(4, 3), "i": integers(3, -4, dtype=np.int32)},
        [{"i": integers(4, dtype=np.int32)}, {"x": floats(3, 3)}, {"x": floats(0, 3), "i": integers(0, dtype=np.int32)}],
        ["'i' is 4 at [0] and must be in -4..3", "'i' is 3 at [0] and must be in -3..2",
         "'i' is 0 at [0] and the axis has no elements"], {}, {}, {"x": N, "i": ["m"]}),
    Bad("Gather", {"x": floats(2, 3), "i": np.array(2)}, [{"i": np.array(3)}], ["'i' is 3 and must be in -3..2"],
        {"axis": 1}, {}, {"x": N}),
    Bad("Gather", {"x": floats(4, 3)}, [{"x": floats(2, 3)}], ["'i' is 3 and must be in -2..1"], {}, {"i": np.array(3)},
        {"x": N}),
    Bad("GatherElements", {"x": floats(3, 4), "i": np.array([[0, 3], [-4, 1]])}, [{"i": np.array([[0, 0], [0, -5]])}],
        ["'i' is -5 at [1, 1] and must be in -4..3"], {"axis": 1}, {}, {"x": N, "i": ["m", "j"]}),
    Bad("GatherND", {"x": floats(3, 4), "i": np.array([[2, 3], [-3, -4]])},
        [{"i": np.array([[3, 3]])}, {"i": np.array([[2, 4]])}],
        ["'i' is 3 at [0, 0] and must be in -3..2", "'i' is 4 at [0, 1] and must be in -4..3"], {}, {},
        {"x": N, "i": ["m", 2]}),
    Bad("GatherND", {"x": floats(2, 3, 4), "i": np.array([[2], [0]])}, [{"i": np.array([[2], [3]])}],
        ["'i' is 3 at [1, 0] and must be in -3..2"], {"batch_dims": 1}, {}, {"x": ["b", "n", "k"], "i": ["b", 1]}),
    Bad("ScatterElements", {"x": floats(3, 4), "i": np.array([[0, 3]]), "u": floats(1, 2)}, [{"i": np.array([[0, 4]])}],
        ["'i' is 4 at [0, 1] and must be in -4..3"], {"axis": 1}, {}, {"x": N, "i": ["m", "j"], "u": ["m", "j"]}),
    Bad("ScatterElements", {"x": floats(5), "i": integers(4, 4), "u": floats(2)}, [{"i": integers(4, -6)}],
        ["'i' is -6 at [1] and must be in -5..4"], {"reduction": "add"}, {}, {"x": ["n"], "i": ["m"], "u": ["m"]}),
    Bad("ScatterND", {"x": floats(3, 4), "i": np.array([[2], [0]]), "u": floats(2, 4)}, [{"i": np.array([[2], [3]])}],
        ["'i' is 3 at [1, 0] and must be in -3..2"], {}, {}, {"x": N, "i": ["m", 1], "u": ["m", "k"]}),
    Bad("Compress", {"x": floats(3, 2), "c": np.array([True, False, True])}, [{"c": np.array([True] * 4)}],
        ["an index is 3 at [0, 3] and must be in 0..2"], {"axis": 0}, {}, {"x": N, "c": ["m"]}),
    Bad("ReverseSequence", {"x": floats(4, 2), "l": integers(4, 0)}, [{"l": integers(4, 5)}, {"l": integers(-1, 0)}],
        ["'l' is 5 at [1] and must be in 0..4", "'l' is -1 at [0] and must be in 0..4"], {}, {},
        {"x": ["t", "b"], "l": ["b"]}),
    Bad("MaxUnpool", {"x": floats(1, 1, 2, 2), "i": integers(0, 3, 12, 15).reshape(1, 1, 2, 2)},
        [{"i": integers(0, 3, 12, 16).reshape(1, 1, 2, 2)}], ["'i' is 16 at [0, 0, 1, 1] and must be in 0..15"],
        {"kernel_shape": [2, 2], "strides": [2, 2]}, {}, {"x": ["b", 1, "h", "w"], "i": ["b", 1, "h", "w"]}),
    Bad("NegativeLogLikelihoodLoss", {"x": -floats(2, 3), "t": integers(2, 0)}, [{"t": integers(1, 3)}],
        ["'t' is 3 at [1] and must be in 0..2"], {"reduction": "mean"}, {}, {"x": N, "t": ["n"]}),
    Bad("SoftmaxCrossEntropyLoss", {"x": floats(2, 3), "t": integers(-1, 0)}, [{"t": integers(1, 3)}],
        ["'t' is 3 at [1] and must be in 0..2"], {"ignore_index": -1}, {}, {"x": N, "t": ["n"]}),
    Bad("RoiAlign", {"x": floats(2, 1, 4, 4), "r": floats(1, 4), "b": integers(1)}, [{"b": integers(2)}],
        ["'b' is 2 at [0] and must be in 0..1"], {"output_height": 2, "output_width": 2}, {},
        {"x": ["n", 1, "h", "w"], "r": ["m", 4], "b": ["m"]}),
    Bad("MaxRoiPool", {"x": floats(1, 1, 4, 4), "r": np.array([[0, 0, 0, 2, 2]], np.float32)},
        [{"r": np.array([[1, 0, 0, 2, 2]], np.float32)}], ["'r' is 1 at [0] and must be in 0..0"],
        {"pooled_shape": [2, 2]}, {}, {"x": ["n", 1, "h", "w"], "r": ["m", 5]}),
    Bad("RNN", {"x": floats(3, 2, 1), "l": integers(3, 1, dtype=np.int32)}, [{"l": integers(3, 4, dtype=np.int32)}],
        ["'l' is 4 at [1] and must be in 0..3"],
        {"order": ["x", "w", "r", "", "l"], "hidden_size": 2, "direction": "reverse"},
        {"w": floats(1, 2, 1), "r": floats(1, 2, 2)}, {"x": ["t", "b", 1], "l": ["b"]}),
    Bad("TensorScatter", {"p": floats(2, 4, 3), "u": floats(2, 2, 3), "i": integers(2, 0)}, [{"i": integers(0, 3)}],
        ["'i' is 3 at [1] and must be in 0..2"], {"axis": 1}, {}, {"p": ["b", "n", 3], "u": ["b", "m", 3], "i": ["b"]},
        opset=24),
    Bad("RotaryEmbedding", {"x": floats(1, 2, 2, 4), "i": np.array([[0, 4]])}, [{"i": np.array([[0, 5]])}],
        ["'i' is 5 at [0, 1] and must be in -5..4"], {"order": ["x", "c", "s", "i"]},
        {"c": floats(5, 2), "s": floats(5, 2)}, {"x": ["b", 2, "n", 4], "i": ["b", "n"]}, opset=23),
    Bad("ArrayFeatureExtractor", {"x": floats(2, 3), "i": integers(2, 0)}, [{"i": integers(3)}],
        ["'i' is 3 at [0] and must be in 0..2"], {}, {}, {"x": N, "i": ["m"]}, domain="ai.onnx.ml"),
]


def test_indices_that_name_no_element():
    each(INDICES)


def test_indices_that_are_computed():
    """What a kernel computes is looked at as well; what follows from sizes is looked at as sizes."""
    node = helper.make_node
    with Case() as c:
        m = Model(c, [node("Add", ["ids", "two"], ["i"]), node("Gather", ["w", "i"], ["y"], name="the node")],
                  {"ids": integers(1, 2, 6)}, {"w": floats(9, 4), "two": np.array(2)}, {"ids": ["n"]})
        m.takes()
        m.refuses("the node", "'i' is 9 at [1] and must be in -9..8", ids=integers(0, 7))
    with Case() as c:  # rows of a table of positions: as many as there are tokens
        m = Model(c, [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]),
                      node("Range", ["zero", "n", "one"], ["p"]), node("Gather", ["w", "p"], ["e"], name="the node"),
                      node("Add", ["x", "e"], ["y"])],
                  {"x": floats(9, 4)}, {"w": floats(9, 4), "zero": np.array(0), "one": np.array(1)}, {"x": ["n", 4]})
        m.takes()
        m.takes(x=floats(0, 4))
        m.refuses("the node", "'p' reaches 11 and must be in -9..8", x=floats(12, 4))
    with Case() as c:  # coordinates that follow from sizes: of a mask as wide as there are rows and columns
        m = Model(c, [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Range", ["zero", "n", "one"], ["p"]),
                      node("Unsqueeze", ["p", "last"], ["q"]), node("Mul", ["q", "zero"], ["first"]),
                      node("Concat", ["first", "q"], ["i"], axis=-1), node("GatherND", ["mask", "i"], ["e"], name="the node"),
                      node("Add", ["x", "e"], ["y"])],
                  {"x": floats(4), "mask": floats(1, 4)}, {"zero": np.array(0), "one": np.array(1), "last": np.array([-1])},
                  {"x": ["n"], "mask": ["b", "t"]})
        m.takes()
        m.takes(x=floats(0), mask=floats(0, 0))
        m.refuses("the node", "'i' reaches 3 and must be in -3..2", mask=floats(1, 3))
        done = run(OPT, m.path, "--after", "drop-dead")
        expect("ends = 1" in done.out, "coordinates that follow from sizes", done)
    with Case() as c:  # a clip is inside whatever it is of: nothing to look at
        m = Model(c, [node("Clip", ["ids", "zero", "eight"], ["i"]), node("Gather", ["w", "i"], ["y"])],
                  {"ids": integers(1, 200, -6)}, {"w": floats(9, 4), "zero": np.array(0), "eight": np.array(8)},
                  {"ids": ["n"]})
        m.takes()
        done = run(OPT, m.path, "--after", "fusion")
        expect(done.returncode == RAN and "gather" in done.out, "no text", done)
        expect("check_indices" not in done.out, "a clipped index is looked at", done)


def test_indices_in_bodies():
    """Only what runs is looked at: a branch that is taken, an iteration that comes."""
    node = helper.make_node
    branch = [helper.make_graph([node("Gather", ["x", "i"], ["z"], name="the node")], "a", [], [value("z", None)]),
              helper.make_graph([node("Identity", ["x"], ["v"])], "b", [], [value("v", None)])]
    with Case() as c:
        m = Model(c, [node("If", ["c"], ["y"], then_branch=branch[0], else_branch=branch[1])],
                  {"c": np.array(False), "x": floats(3, 2), "i": integers(0, 3)}, {}, {"x": N, "i": ["m"]})
        m.takes()
        m.refuses("the node", "'i' is 3 at [1] and must be in -3..2", c=np.array(True))
    body = helper.make_graph(
        [node("Gather", ["x", "t"], ["row"], name="the node"), node("Identity", ["c"], ["d"])], "body",
        [value("t", [], TensorProto.INT64), value("c", [], TensorProto.BOOL)],
        [value("d", [], TensorProto.BOOL), value("row", [2])])
    with Case() as c:
        m = Model(c, [node("Loop", ["n", ""], ["y"], body=body)], {"n": np.array(3), "x": floats(3, 2)}, {},
                  {"x": ["n", 2]})
        m.takes()
        m.refuses("the node", "'t' is 3 and must be in -3..2", n=np.array(4))


# ---- sizes ----
SIZES = [
    Bad("GatherElements", {"x": floats(3, 4), "i": np.zeros((3, 2), np.int64)}, [{"i": np.zeros((5, 2), np.int64)}],
        ["dim 0 of operand 1 is 5 (m) and must be at most 3, as dim 0 of operand 0 (n)"], {"axis": 1}, {},
        {"x": N, "i": ["m", "j"]}),
    Bad("ScatterElements", {"x": floats(3, 4), "i": np.zeros((3, 2), np.int64), "u": floats(3, 2)},
        [{"i": np.zeros((5, 2), np.int64), "u": floats(5, 2)}, {"u": floats(2, 2)}],
        ["dim 0 of operand 1 is 5 (m) and must be at most 3, as dim 0 of operand 0 (n)",
         "o is 2 and must be 3, as m"], {"axis": 1}, {},
        {"x": N, "i": ["m", "j"], "u": ["o", "p"]}),
    Bad("ScatterND", {"x": floats(3, 4), "i": np.array([[2], [0]]), "u": floats(2, 4)}, [{"u": floats(2, 3)}],
        ["l is 3 and must be 4, as k"], {}, {},
        {"x": N, "i": ["m", 1], "u": ["o", "l"]}),
    Bad("GatherND", {"x": floats(2, 3, 4), "i": np.array([[2], [0]])}, [{"i": np.array([[2]])}],
        ["c is 1 and must be 2, as b"], {"batch_dims": 1}, {},
        {"x": ["b", "n", "k"], "i": ["c", 1]}),
    Bad("ArgMax", {"x": floats(3, 4)}, [{"x": floats(3, 0)}], ["dim 1 of operand 0 is 0 (k) and must be at least 1"],
        {"axis": 1}, {}, {"x": N}),
    Bad("ArgMin", {"x": floats(3, 4)}, [{"x": floats(0, 3)}], ["dim 0 of operand 0 is 0 (n) and must be at least 1"],
        {"axis": 0}, {}, {"x": N}),
    Bad("TopK", {"x": floats(3, 400), "k": integers(2)}, [{"k": integers(401)}], ["k is 401, axis 1 has 400 elements"],
        {}, {}, {"x": N}, outputs=2),
    Bad("MatMul", {"x": floats(3, 4), "z": floats(4, 2)}, [{"z": floats(5, 2)}], ["l is 5 and must be 4, as k"], {}, {},
        {"x": N, "z": ["l", "m"]}),
    Bad("Where", {"c": np.array([True, False]), "x": floats(2), "z": floats(2)}, [{"z": floats(3)}],
        ["2 by 3 at axis 0: dim 0 of operand 0 (n) must be 1 or 3"], {}, {}, {"c": ["n"], "x": ["n"], "z": ["m"]}),
    Bad("NegativeLogLikelihoodLoss", {"x": -floats(2, 3), "t": integers(2, 0), "w": floats(3)}, [{"w": floats(2)}],
        ["c is 2 and must be 3, as k"], {"reduction": "sum"}, {}, {"x": N, "t": ["n"], "w": ["c"]}),
]
# What has an answer where an axis is empty has it wherever it runs.
EMPTY = ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceMean", "ReduceL2", "ReduceLogSumExp"]


def test_sizes_that_do_not_fit():
    each(SIZES)


def test_inputs_that_disagree():
    with Case() as c:
        m = Model(c, [helper.make_node("Add", ["x", "z"], ["y"])], {"x": floats(3, 2), "z": floats(3, 2)}, {},
                  {"x": N, "z": ["n", 2]})
        m.takes()
        m.refuses("input 'z': dim 0 is 3 (n) and must be 4", x=floats(4, 2))
        m.refuses("input 'z' is f32[3,3], but the model requires f32[n, 2]", z=floats(3, 3))


def saved(folder, name):
    with open(os.path.join(folder, "index.json")) as f:
        file = next(v["file"] for v in json.load(f)["values"] if v["name"] == name)
    return numpy_helper.to_array(onnx.load_tensor(os.path.join(folder, file)))


def test_reductions_of_nothing():
    with Case() as c:
        nodes = [helper.make_node(op, ["x", "a"], [f"y{i}"], keepdims=0) for i, op in enumerate(EMPTY)]
        outputs = [f"y{i}" for i in range(len(EMPTY))]
        m = Model(c, nodes, {"x": floats(3, 4)}, {"a": integers(1)}, {"x": N}, outputs)
        m.takes(x=floats(3, 0))
        folders = {n: c.path(n) for n in ENGINES}
        for n, folder in folders.items():
            done = run(*m.engines()[n], "--quiet", "--save", folder, *m.given(x=floats(3, 0)))
            expect(done.returncode == RAN, f"{n} refuses an empty axis", done)
        for i, op in enumerate(EMPTY):
            arrays = {n: saved(folder, f"y{i}") for n, folder in folders.items()}
            first = arrays["interpreter"]
            expect(all(np.array_equal(first, x, equal_nan=True) for x in arrays.values()), f"{op} of nothing: {arrays}")


def test_sizes_in_bodies():
    """Only what runs must fit: a branch that is taken, a loop that goes round."""
    node = helper.make_node
    a = helper.make_graph([node("Add", ["x", "z"], ["v"], name="the node")], "a", [], [value("v", None)])
    b = helper.make_graph([node("Identity", ["x"], ["w"])], "b", [], [value("w", None)])
    with Case() as c:
        m = Model(c, [node("If", ["c"], ["y"], then_branch=a, else_branch=b)],
                  {"c": np.array(False), "x": floats(3), "z": floats(4)}, {}, {"x": ["n"], "z": ["m"]})
        m.takes()
        m.takes(c=np.array(True), z=floats(1))
        m.refuses("the node", "3 by 4 at axis 0: dim 0 of operand 0 (n) must be 1 or 4", c=np.array(True))
    body = helper.make_graph([node("MatMul", ["x", "z"], ["row"], name="the node"), node("Identity", ["c"], ["d"])],
                             "body", [value("t", [], TensorProto.INT64), value("c", [], TensorProto.BOOL)],
                             [value("d", [], TensorProto.BOOL), value("row", None)])
    with Case() as c:
        m = Model(c, [node("Loop", ["n", ""], ["y"], body=body)],
                  {"n": np.array(2), "x": floats(3, 4), "z": floats(4, 2)}, {}, {"x": ["a", "b"], "z": ["e", "f"]})
        m.takes()
        m.takes(n=np.array(0), z=floats(5, 2))
        m.refuses("the node", "e is 5 and must be 4, as b", z=floats(5, 2))
    body = helper.make_graph([node("Add", ["p", "q"], ["r"])], "body", [value("p", [2]), value("q", [2])], [value("r", [2])])
    with Case() as c:
        m = Model(c, [node("Scan", ["x", "z"], ["y"], body=body, num_scan_inputs=2, name="the node")],
                  {"x": floats(3, 2), "z": floats(3, 2)}, {}, {"x": ["a", 2], "z": ["b", 2]})
        m.takes()
        for rows in (2, 4):
            m.refuses("the node", f"b is {rows} and must be 3, as a", z=floats(rows, 2))


# ---- what the file declares of values that nodes make ----
def declaring(c, name, made, **declared):
    """A model x -> h -> y that declares h and y as said; h has the type `made`."""
    nodes = [helper.make_node("Cast", ["x"], ["h"], name="the node", to=made), helper.make_node("Neg", ["h"], ["y"], name="next")]
    model = make_model(nodes, [value("x", ["n", 3])], [declared.get("y") or helper.make_empty_tensor_value_info("y")])
    if "h" in declared:
        model.graph.value_info.append(declared["h"])
    return save(model, c.path(name + ".onnx"))


def programs(c, path):
    return {"interpreter": [RUN, path, "--device", "interpreter"], "vm": [RUN, path, "--device", "vm"],
            "pack": [PACK, path, "-o", c.path("d.uir"), "--no-native"], "opt": [OPT, path, "--after", "primitives", "-o", c.path("t")]}


def test_declared_types_are_those_of_nodes():
    for name, words, declared in (
            ("h", "'h' is declared i64, but the node produces f32[n, 3]", {"h": value("h", None, TensorProto.INT64)}),
            ("y", "'y' is declared f64[n, 3], but the node produces f32[n, 3]", {"y": value("y", ["n", 3], TensorProto.DOUBLE)}),
            ("list", "'h' is declared a list of f32, but the node produces f32[n, 3]",
             {"h": helper.make_tensor_sequence_value_info("h", TensorProto.FLOAT, None)})):
        with Case() as c:
            path = declaring(c, name, TensorProto.FLOAT, **declared)
            for command in programs(c, path).values():
                fails(BAD_FILE, "next" if name == "y" else "the node", words, command=command)


def test_declared_shapes_are_held_against_nodes():
    for words, declared in (
            ("'h' is declared f32[n, 4], but the node produces f32[n, 3]", {"h": value("h", ["n", 4])}),
            ("'h' is declared f32[?, 3, ?], but the node produces f32[n, 3]", {"h": value("h", [None, 3, "other"])}),
            ("'h' is declared f32[], but the node produces f32[n, 3]", {"h": value("h", [])}),
            ("'y' is declared f32[2, 4], but the node produces f32[n, 3]", {"y": value("y", [2, 4])})):
        with Case() as c:
            path = declaring(c, "shape", TensorProto.FLOAT, **declared)
            for program, command in programs(c, path).items():
                done = run(*command)
                expect(done.returncode == RAN and "warning" in done.err and words in done.err, f"{program}: no warning of {words}", done)
                fails(BAD_FILE, words, command=[*command, "--strict"])
    for declared in ({"h": value("h", ["n", 3]), "y": value("y", ["m", 3])}, {"h": value("h", ["n", "three"])},
                     {"h": value("h", [7, 3])}, {"h": value("h", None), "y": value("y", None)}):
        with Case() as c:
            path = declaring(c, "right", TensorProto.FLOAT, **declared)
            for command in programs(c, path).values():
                done = run(*command, "--strict")
                expect(done.returncode == RAN and "declared" not in done.err, f"{declared} is no contradiction", done)


def test_many_contradictions_are_counted():
    with Case() as c:
        nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(20)]
        model = make_model(nodes, [value("v0", ["n", 3])], [helper.make_empty_tensor_value_info("v20")])
        model.graph.value_info.extend(value(f"v{i + 1}", ["n", 5]) for i in range(19))
        done = run(RUN, save(model, c.path("m.onnx")), "--device", "interpreter")
        expect(done.returncode == RAN and done.err.count("is declared") == 8 and "11 more declared shapes" in done.err, "not 8 and 11", done)


def test_branches_that_are_not_made_declare_nothing():
    """Of two branches of different ranks what follows is made twice: its one declaration is of one of them."""
    then = helper.make_graph([helper.make_node("Squeeze", ["x", "last"], ["a"])], "then", [], [helper.make_empty_tensor_value_info("a")])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["b"])], "else", [], [helper.make_empty_tensor_value_info("b")])
    with Case() as c:
        nodes = [helper.make_node("If", ["c"], ["h"], then_branch=then, else_branch=other), helper.make_node("Neg", ["h"], ["y"])]
        model = make_model(nodes, [value("x", ["n", 1]), value("c", [], TensorProto.BOOL)], [helper.make_empty_tensor_value_info("y")],
                           [numpy_helper.from_array(integers(-1), "last")])
        model.graph.value_info.append(value("y", ["n"]))
        model.graph.value_info.append(value("h", ["n"]))
        done = run(RUN, save(model, c.path("m.onnx")), "--device", "interpreter", "--strict")
        expect(done.returncode == RAN and "declared" not in done.err, "one branch's rank is the other's", done)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
