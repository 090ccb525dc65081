"""Ifs in Ifs: of a branch that is known to be taken, an inner one whose branches give tensors of different ranks, which
what follows the outer one has to be made for, each with its rank."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper

node = helper.make_node


def branches(condition, result, make_then, make_else, number):
    """An If with the nodes that each of the two gives for the name of its result."""
    graphs = []
    for i, make in enumerate((make_then, make_else)):
        own = f"r{number}_{i}"
        graphs.append(helper.make_graph(make(own), own, [], [helper.make_empty_tensor_value_info(own)]))
    return node("If", [condition], [result], then_branch=graphs[0], else_branch=graphs[1])


def scalar_or_row(number):
    """In a branch: the inner If, and a node after it that takes what it gives."""
    def make(result):
        return [branches("which", f"inner{number}", lambda r: [node("Identity", ["one"], [r])],
                         lambda r: [node("Identity", ["row"], [r])], f"in{number}"),
                node("Neg", [f"inner{number}"], [result])]
    return make


def nested(depth, known_then):
    """`depth` known Ifs around an inner one that the input decides, then what follows, and the same once more."""
    make = scalar_or_row(0)
    for level in range(depth):
        inner, dead = make, (lambda r: [node("Identity", ["x"], [r])])

        def make(result, level=level, inner=inner, dead=dead):
            name = f"level{level}"
            pair = (inner, dead) if known_then else (dead, inner)
            return [branches("yes" if known_then else "no", name, *pair, f"out{level}"), node("Abs", [name], [result])]
    nodes = make("a") + [node("Mul", ["x", "a"], ["b"]), node("ReduceSum", ["b", "axes"], ["c"], keepdims=1)]
    nodes += scalar_or_row(1)("d") + [node("Add", ["c", "d"], ["e"]), node("Shape", ["e"], ["f"])]
    constants = {"one": np.float32(2), "row": np.array([[1, 2, 3, 4]], np.float32), "yes": np.array(True), "no": np.array(False),
                 "axes": np.array([-1])}
    graph = helper.make_graph(nodes, "nested", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4]),
                                                helper.make_tensor_value_info("which", TensorProto.BOOL, [])],
                              [helper.make_empty_tensor_value_info(n) for n in ("e", "f")],
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), constants


def cases():
    x = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
    for depth in (1, 3):
        for known_then in (True, False):
            model, constants = nested(depth, known_then)
            for which in (True, False):
                value = constants["one"] if which else constants["row"]
                e = (x * np.abs(value)).sum(-1, keepdims=True) - value  # [3, 1], or [3, 4]
                yield (f"branches_{depth}_{known_then}_{which}", model, [x, np.array(which)],
                       [e.astype(np.float32), np.array(e.shape)])
