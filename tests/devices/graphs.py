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


# ---- copies beside kernels ----
WIDE = 1024


def layers(count, first):
    """Kernels in a row, each of which reads a large weight that is on the device."""
    return [node("MatMul", [first if i == 0 else f"h{i - 1}", "w"], [f"h{i}"]) for i in range(count)], [constant("w", draw(WIDE, WIDE))]


def late_inputs():
    """Eight inputs, each needed after more kernels than the one before."""
    nodes, constants = layers(16, "x")
    total = "h15"
    for i in range(8):
        nodes += [node("MatMul", [total, "w"], [f"m{i}"]), node("Add", [f"m{i}", f"u{i}"], [f"a{i}"]), node("Tanh", [f"a{i}"], [f"t{i}"])]
        total = f"t{i}"
    nodes.append(node("ReduceMax", [total], ["y"], keepdims=0))
    inputs = [value("x", [1, WIDE])] + [value(f"u{i}", [32, WIDE]) for i in range(8)]
    data = {"x": draw(1, WIDE), **{f"u{i}": draw(32, WIDE, seed=i) for i in range(8)}}
    return make_model(nodes, inputs, [value("y", None)], constants), data


def inputs_behind_a_wait():
    """Inputs that are needed after the host has waited for sizes that kernels decide."""
    nodes, constants = layers(16, "x")
    nodes += [node("NonZero", ["h15"], ["at"]), node("Cast", ["at"], ["found"], to=TensorProto.FLOAT),
              node("ReduceMean", ["found"], ["a0"], keepdims=0)]
    for i in range(8):
        nodes.append(node("Add", [f"a{i}", f"u{i}"], [f"a{i + 1}"]))
    nodes.append(node("ReduceMax", ["a8"], ["y"], keepdims=0))
    inputs = [value("x", [1, WIDE])] + [value(f"u{i}", [32, WIDE]) for i in range(8)]
    data = {"x": draw(1, WIDE), **{f"u{i}": draw(32, WIDE, seed=i) for i in range(8)}}
    return make_model(nodes, inputs, [value("y", None)], constants), data


def early_outputs():
    """Eight outputs, each computed before more kernels; the first reads sizes that data decide, which the host waits for."""
    nodes, constants = layers(8, "x")
    nodes += [node("NonZero", ["few"], ["at"]), node("Cast", ["at"], ["found"], to=TensorProto.FLOAT), node("ReduceSum", ["found"], ["y"], keepdims=0)]
    total, outputs = "h7", [value("y", None)]
    for i in range(8):
        nodes += [node("Add", [total if i == 0 else f"k{i - 1}", "b"], [f"o{i}"]), node("MatMul", [f"o{i}", "w"], [f"k{i}"])]
        outputs.append(value(f"o{i}", None))
    for i in range(8, 16):
        nodes.append(node("MatMul", [f"k{i - 1}", "w"], [f"k{i}"]))
    nodes.append(node("ReduceMax", ["k15"], ["z"], keepdims=0))
    outputs.append(value("z", None))
    model = make_model(nodes, [value("x", [1, WIDE]), value("few", [3])], outputs, [*constants, constant("b", draw(32, WIDE))])
    return model, {"x": draw(1, WIDE), "few": np.asarray([0, 1, 2], np.float32)}


def back_and_forth():
    """The host computes between kernels, so that each copy waits for a kernel, and each kernel for a copy."""
    nodes, total = [], "x"
    for i in range(6):
        nodes += [node("MatMul", [total, "w"], [f"m{i}"]), node("NonZero", [f"m{i}"], [f"at{i}"]),
                  node("Cast", [f"at{i}"], [f"f{i}"], to=TensorProto.FLOAT), node("ReduceMean", [f"f{i}"], [f"s{i}"], keepdims=0),
                  node("Add", [f"m{i}", f"s{i}"], [f"t{i}"])]
        total = f"t{i}"
    nodes.append(node("ReduceMax", [total], ["y"], keepdims=0))
    model = make_model(nodes, [value("x", [32, WIDE])], [value("y", None)], [constant("w", draw(WIDE, WIDE))])
    return model, {"x": draw(32, WIDE) + 1}


HIDDEN, SHOWN = {"late inputs": late_inputs, "inputs behind a wait": inputs_behind_a_wait, "early outputs": early_outputs}, {"back and forth": back_and_forth}
