#!/usr/bin/env python3
"""Every node of a model's file is in every report: in the row of each kernel that computes it, or in the list of those that
no row has.

    run_nodes.py [--given] [NAME...]

In: the programs in $UIR_BIN. The node names are taken from the .onnx by onnx: main graph, bodies, local functions; a node
without a name is called after its first output. Reports: --explain, --profile, --json and --trace, of uir-run and of
uir-run-package on the package of the same model. --given: of all given models in $UIR_MODELS_BUILT, or of those named.
Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import json
import os
import re
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cli import (MODELS, NO_MODELS, PACK, RAN, RUN, RUN_PACKAGE, Case, Suite, expect, find_model, list_models, make_model, run,
                 run_tests, save, value)


# ---- what the file holds ----
def graph_nodes(nodes):
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs:
                yield from graph_nodes(graph.node)


def name_of(node):
    return node.name or next((o for o in node.output if o), "")


def names_of(path):
    """(op, name) of every node; functions that are never called have none."""
    model = onnx.load(path, load_external_data=False)
    functions = {(f.domain, f.name): f for f in model.functions}
    found, todo, seen = set(), [model.graph.node], set()
    while todo:
        for node in graph_nodes(todo.pop()):
            found.add((node.op_type, name_of(node)))
            key = (node.domain, node.op_type)
            if key in functions and key not in seen:
                seen.add(key)
                todo.append(functions[key].node)
    return found


# ---- what reports say ----
def in_json(report):
    rows = {(n["op"], n["name"]) for row in report["nodes"] for n in row["nodes"]}
    others = {(n["op"], n["name"]) for n in report["elsewhere"]}
    expect(not rows & {(n["op"], n["name"]) for n in report["elsewhere"] if n["fate"] == "not run"}, "a row that did not run")
    return rows | others


def in_trace(trace):
    rows = {(n["op"], n["name"]) for e in trace["traceEvents"] for n in e["args"].get("nodes", ())}
    return rows | {(n["op"], n["name"]) for n in trace["otherData"]["elsewhere"]}


def in_text(text, wanted):
    flat = " " + re.sub(r"\s+", " ", text) + " "
    return {(op, name) for op, name in wanted
            if re.search(re.escape(f" {op} {re.sub(chr(92) + 's+', ' ', name)}") + r"(?=[ ,]|$)", flat)}


def plain(found):
    """Ops without their domain, as a function's call is shown with it."""
    return {(op.split("::")[-1], name) for op, name in found}


def check(c, what, wanted, found):
    missing = sorted(wanted - plain(found))
    expect(not missing, f"{what}: {len(missing)} of {len(wanted)} nodes are missing: {missing[:4]}")


def check_reports(c, program, path, words, wanted):
    """All four reports of one program. Gives back the JSON."""
    trace = c.path("trace.json")
    done = run(program, path, *words, "--json", "--trace", trace, timeout=1200)
    expect(done.returncode == RAN, "it runs", done)
    report = json.loads(done.out)
    with open(trace, encoding="utf-8") as f:
        check(c, f"{program} --trace", wanted, in_trace(json.load(f)))
    check(c, f"{program} --json", wanted, in_json(report))
    done = run(program, path, *words, "--explain", "--profile", "--iterations", "1", timeout=1200)
    expect(done.returncode == RAN, "it runs", done)
    explained, _, profiled = done.out.partition("times: medians")
    expect(profiled, "there is a profile", done)
    for name, text in (("--explain", explained), ("--profile", profiled)):
        text = re.sub(r"(\w+)::(?=\w)", "", re.sub(r"[\w.]+::", "", text))
        check(c, f"{program} {name}", wanted, in_text(text, wanted))
    return report


def check_model(c, path, words=(), device="vm"):
    """By uir-run and from the package. Gives back both JSONs."""
    wanted = names_of(path)
    package = c.path("model.uir")
    words = ["--device", device, *words]
    ours = check_reports(c, RUN, path, ["--no-cache", *words], wanted)
    done = run(PACK, path, "-o", package, "--device", "vm", timeout=1200)
    expect(done.returncode == RAN, "it is packed", done)
    theirs = check_reports(c, RUN_PACKAGE, package, words, wanted)
    return ours, theirs


def rows_with(report, name):
    return [row for row in report["nodes"] if any(n["name"] == name for n in row["nodes"])]


def fate_of(report, name):
    found = [n for n in report["elsewhere"] if n["name"] == name]
    expect(len(found) == 1, f"{name} is in the list once: {report['elsewhere']}")
    return found[0]


def floats(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


# ---- models that show each fate ----
def conv_model():
    """A convolution with its normalisation, an equal one, what is dead, an alias, a chain of shapes."""
    node = helper.make_node
    nodes = [node("Conv", ["x", "w"], ["a"], name="conv", pads=[1, 1, 1, 1]),
             node("BatchNormalization", ["a", "s", "b", "m", "v"], ["n"], name="norm"),
             node("Relu", ["n"], ["r"], name="act"),
             node("Relu", ["n"], ["r2"], name="act again"),
             node("Add", ["r", "r2"], ["t"], name="sum"),
             node("Identity", ["t"], ["i"], name="same"),
             node("Shape", ["i"], ["shape"], name="shape"),
             node("Gather", ["shape", "zero"], ["batch"], name="pick"),
             node("Concat", ["batch", "rest"], ["target"], name="join", axis=0),
             node("Reshape", ["i", "target"], ["y"], name="view"),
             node("Exp", ["x"], ["unused"], name="never needed"),
             node("Sqrt", ["x"], ["also unused"])]
    constants = {"w": floats(8, 8, 3, 3), "s": floats(8) + 2, "b": floats(8), "m": floats(8), "v": floats(8) + 2}
    initializers = [numpy_helper.from_array(a, k) for k, a in constants.items()]
    initializers += [numpy_helper.from_array(np.array(a, np.int64), k) for k, a in (("zero", [0]), ("rest", [-1]))]
    return make_model(nodes, [value("x", ["n", 8, 6, 6])], [value("y", None)], initializers)


def loop_model():
    """A branch, a loop, a function that is called twice; nodes without names in each."""
    node = helper.make_node
    body = helper.make_graph([node("Mul", ["c", "two"], ["c2"], name="double"), node("Identity", ["on"], ["still"])],
                             "body", [value("i", [], TensorProto.INT64), value("on", [], TensorProto.BOOL), value("c", [4])],
                             [value("still", [], TensorProto.BOOL), value("c2", [4])])
    then = helper.make_graph([node("Neg", ["l"], ["p"], name="minus")], "then", [], [value("p", [4])])
    other = helper.make_graph([node("Abs", ["l"], ["q"], name="size"), ], "else", [], [value("q", [4])])
    nodes = [node("Loop", ["trips", "", "x"], ["l"], name="around", body=body),
             node("Scale", ["l"], ["first"], name="call one", domain="own"),
             node("Scale", ["first"], ["second"], domain="own"),
             node("If", ["which"], ["z"], name="choice", then_branch=then, else_branch=other),
             node("Add", ["second", "z"], ["y"], name="sum")]
    inside = [node("Tanh", ["in"], ["mid"], name="inner"), node("Exp", ["mid"], ["out"])]
    function = helper.make_function("own", "Scale", ["in"], ["out"], inside, [helper.make_opsetid("", 20)])
    graph = helper.make_graph(nodes, "g", [value("x", [4]), value("which", [], TensorProto.BOOL),
                                           value("trips", [], TensorProto.INT64)], [value("y", [4])],
                              [numpy_helper.from_array(np.array(2, np.float32), "two")])
    return helper.make_model(graph, functions=[function], ir_version=10,
                             opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("own", 1)])


def test_each_fate():
    with Case() as c:
        path = save(conv_model(), c.path("m.onnx"))
        for report in check_model(c, path):
            rows = rows_with(report, "conv")
            expect(rows and any(row["name"] == "conv" and row["op"] == "Conv" for row in rows), f"headed by the product: {rows}")
            expect(fate_of(report, "shape")["fate"] == "folded", "sizes are known")
            expect(fate_of(report, "same")["fate"] == "alias", "Identity is an alias")
            expect(fate_of(report, "never needed")["fate"] == "dead", "what no output needs")
            expect(fate_of(report, "also unused")["fate"] == "dead", "the same without a name")
            gone = fate_of(report, "act again")
            expect(gone["fate"] == "merged" and gone["into"] == "act", f"equal nodes: {gone}")


def test_bodies_and_functions():
    with Case() as c:
        path = save(loop_model(), c.path("m.onnx"))
        for name, array in (("x", floats(4)), ("which", np.array(True)), ("trips", np.array(3, np.int64))):
            np.save(c.path(name + ".npy"), array)
        words = [w for name in ("x", "which", "trips") for w in ("--input", f"{name}={c.path(name + '.npy')}")]
        for report in check_model(c, path, words):
            expect(fate_of(report, "size")["fate"] == "not run", "a branch that is not taken")
            expect(fate_of(report, "call one")["fate"] == "inlined", "a call of a function")
            expect(rows_with(report, "double") and rows_with(report, "minus"), "nodes of bodies have rows")


def test_on_the_interpreters():
    with Case() as c:
        for name, model in (("conv", conv_model()), ("loop", loop_model())):
            path = save(model, c.path(name + ".onnx"))
            wanted = names_of(path)
            words = ["--shape", "x=4"] if name == "loop" else []
            for device in (["--device", "interpreter"], ["--device", "ascend", "--interpret"]):
                done = run(RUN, path, *device, *words, "--json", "--no-cache")
                expect(done.returncode == RAN, "it runs", done)
                check(c, f"{name} {device}", wanted, in_json(json.loads(done.out)))
                done = run(RUN, path, *device, *words, "--explain", "--no-cache")
                check(c, f"{name} {device}", wanted, in_text(done.out.replace("own::", ""), wanted))


def test_computed_again():
    """Of two readers that each compute a node, the second row says so."""
    node = helper.make_node
    nodes = [node("Exp", ["x"], ["e"], name="shared"), node("MatMul", ["e", "w"], ["a"], name="left"),
             node("MatMul", ["a", "w"], ["b"], name="right"), node("Add", ["b", "e"], ["y"], name="sum")]
    with Case() as c:
        path = save(make_model(nodes, [value("x", ["n", 64])], [value("y", None)],
                               [numpy_helper.from_array(floats(64, 64), "w")]), c.path("m.onnx"))
        for report in check_model(c, path):
            rows = rows_with(report, "shared")
            marks = [n["again"] for row in rows for n in row["nodes"] if n["name"] == "shared"]
            expect(marks and not marks[0] and all(marks[1:]), f"the first is not again, the others are: {marks}")


def test_kernels_of_the_cpu():
    with Case() as c:
        check_model(c, save(conv_model(), c.path("m.onnx")), device="cpu")


def test_hostile_names():
    """Names of any bytes: as in other reports, and none is cut."""
    long = "layer/" * 60
    nodes = [helper.make_node("Exp", ["x"], ["a"], name=long + "exp"), helper.make_node("Neg", ["a"], ["y"], name="a b  c")]
    with Case() as c:
        check_model(c, save(make_model(nodes, [value("x", ["n"])], [value("y", None)]), c.path("m.onnx")))


# ---- the given models ----
def check_given(name):
    with Case() as c:
        check_model(c, find_model(name), ["--data", os.path.join(MODELS, name, "test_data_set_0")])


if __name__ == "__main__":
    if "--given" not in sys.argv:
        sys.exit(run_tests(globals()))
    if not os.path.isdir(MODELS):
        suite = Suite()
        suite.skip(NO_MODELS)
        sys.exit(suite.end())
    chosen = [name for name in sys.argv[1:] if name != "--given"] or list_models()
    sys.exit(run_tests({f"test_{name}": (lambda name=name: check_given(name)) for name in chosen}, []))
