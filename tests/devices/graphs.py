"""Small graphs for a device with memory of its own: loops, branches, sizes that data decide, and copies that kernels hide.

In: nothing. Out: a model, and its inputs by name. A file of this folder uses it beside suite.py.
"""
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS = 48


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, name=f"{op}_{outputs[0]}", **attributes)


def constant(name, data, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(data, dtype), name)


def draw(*shape, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) / 8).astype(np.float32)


def make_model(nodes, inputs, outputs, constants=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def write(folder, model, data):
    """Writes a model and a data set; returns the model's path."""
    sets = os.path.join(folder, "test_data_set_0")
    os.makedirs(sets, exist_ok=True)
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    for i, port in enumerate(model.graph.input):
        with open(os.path.join(sets, f"input_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(data[port.name], port.name).SerializeToString())
    return path


# ---- loops and branches ----
def make_body(extra=(), outputs=(), condition="go"):
    """A state that is multiplied each time; `extra` nodes give the further outputs and, where named, the condition."""
    nodes = [node("Identity", ["go_in"], ["go"]), node("MatMul", ["s_in", "w"], ["p"]), node("Tanh", ["p"], ["s_out"]), *extra]
    return helper.make_graph(nodes, "body", [value("i", [], TensorProto.INT64), value("go_in", [], TensorProto.BOOL),
                                             value("s_in", [ROWS, ROWS])],
                             [value(condition, [], TensorProto.BOOL), value("s_out", [ROWS, ROWS]), *outputs])


def loop(trips, body, outputs, inputs=(), constants=(), data=None):
    nodes = [node("Exp", ["x"], ["s"]), node("Loop", [trips, "", "s"], outputs, body=body), node("Neg", [outputs[0]], ["y"])]
    model = make_model(nodes, [value("x", [ROWS, ROWS]), *inputs], [value("y", None)] + [value(o, None) for o in outputs[1:]],
                       [constant("w", draw(ROWS, ROWS)), *constants])
    return model, {"x": draw(ROWS, ROWS, seed=1), **(data or {})}


def known_loop(turns):
    return loop("n", make_body(), ["z"], constants=[constant("n", turns, np.int64)])


def scanned_loop():
    row = node("ReduceSum", ["s_out", "axis"], ["row"], keepdims=0)
    return loop("n", make_body([row], [value("row", [ROWS])]), ["z", "rows"],
                constants=[constant("n", 9, np.int64), constant("axis", [1], np.int64)])


def given_loop():
    """The number of turns is an input."""
    return loop("n", make_body(), ["z"], inputs=[value("n", [], TensorProto.INT64)], data={"n": np.asarray(7, np.int64)})


def conditional_loop():
    """The kernels' results decide when it ends."""
    extra = [node("ReduceMax", ["s_out"], ["m"], keepdims=0), node("Less", ["m", "limit"], ["more"]),
             node("Less", ["i", "last"], ["few"]), node("And", ["more", "few"], ["both"])]
    return loop("", make_body(extra, condition="both"), ["z"], constants=[constant("limit", 10), constant("last", 5, np.int64)])


def branches(condition):
    def branch(op, name):
        return helper.make_graph([node("MatMul", ["e", "w"], [name + "p"]), node(op, [name + "p"], [name])], name, [],
                                 [value(name, [ROWS, ROWS])])
    nodes = [node("Exp", ["x"], ["e"]),
             node("If", ["c"], ["r"], then_branch=branch("Tanh", "a"), else_branch=branch("Sigmoid", "b")),
             node("Neg", ["r"], ["y"])]
    model = make_model(nodes, [value("x", [ROWS, ROWS]), value("c", [], TensorProto.BOOL)], [value("y", None)],
                       [constant("w", draw(ROWS, ROWS))])
    return model, {"x": draw(ROWS, ROWS, seed=1), "c": np.asarray(condition)}


def found_sizes():
    """Data decide how many rows there are."""
    nodes = [node("Relu", ["x"], ["r"]), node("NonZero", ["r"], ["at"]), node("Transpose", ["at"], ["pairs"], perm=[1, 0]),
             node("GatherND", ["r", "pairs"], ["kept"]), node("Exp", ["kept"], ["y"])]
    return make_model(nodes, [value("x", [ROWS, ROWS])], [value("y", None)]), {"x": draw(ROWS, ROWS, seed=1)}


GRAPHS = {"loop of 5": known_loop(5), "loop of 1000": known_loop(1000), "scanned loop": scanned_loop(), "given loop": given_loop(),
          "conditional loop": conditional_loop(), "first branch": branches(True), "second branch": branches(False),
          "sizes by data": found_sizes()}
