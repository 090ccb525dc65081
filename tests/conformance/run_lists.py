"""Random programs over lists, as scripted models keep them: written as ONNX models, computed by NumPy here, run by
uir-run. Lists that begin empty or not, grow at the end, in front, in the middle and now and then, shrink, are read back,
asked for their length, carried through loops in loops and branches, and joined. Where the elements are of one type the
VM runs all of it, without the interpreter; where they differ in extent whoever can. `run_lists.py FIRST COUNT` runs
other seeds."""
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
from suite import Suite, run  # noqa: E402

COUNTS = {"fast": 40, "default": 120, "long": 2000}
node = helper.make_node
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Scope:
    """Nodes of one graph, with names of their own."""
    count = 0

    def __init__(self):
        self.nodes = []

    def name(self):
        Scope.count += 1
        return f"t{Scope.count}"

    def add(self, op, inputs, **attributes):
        result = self.name()
        self.nodes.append(node(op, inputs, [result], **attributes))
        return result

    def constant(self, value):
        return self.add("Constant", [], value=numpy_helper.from_array(np.asarray(value)))


def tensor_info(name, kind=FLOAT, shape=None):
    return helper.make_tensor_value_info(name, kind, shape)


def list_info(name):
    return helper.make_tensor_sequence_value_info(name, FLOAT, None)


def branch(r, condition, scope, makers, info):
    """An If; each maker fills a scope and gives the name of its result."""
    graphs = []
    for make in makers:
        inside = Scope()
        result = inside.add("Identity", [make(inside)])
        graphs.append(helper.make_graph(inside.nodes, "branch", [], [info(result)]))
    return scope.add("If", [condition], then_branch=graphs[0], else_branch=graphs[1])


# An element, in terms of the turn: each kind builds nodes and computes the same.
def element(r, scope, row, items, previous, step):
    kind = r.choice(["row", "neg", "length", "last", "step"])
    if kind == "neg":
        return scope.add("Neg", [row]), lambda e: -e.row
    if kind == "length":
        length = scope.add("Cast", [scope.add("SequenceLength", [items])], to=FLOAT)
        return scope.add("Add", [row, length]), lambda e: e.row + np.float32(len(e.items))
    if kind == "step":
        return scope.add("Mul", [row, scope.add("Cast", [step], to=FLOAT)]), lambda e: e.row * np.float32(e.step)
    if kind == "last":
        empty = scope.add("Equal", [scope.add("SequenceLength", [items]), scope.constant(np.int64(0))])

        def grow(inside):
            at = r.choice([-1, 0])
            kind_of_place.append(at)
            return inside.add("Add", [row, inside.add("SequenceAt", [items, inside.constant(np.int64(at))])])

        kind_of_place = []
        result = branch(r, empty, scope, (lambda inside: row, grow), tensor_info)
        return result, lambda e: e.row + e.items[kind_of_place[0]] if e.items else e.row
    return row, lambda e: e.row


class Turn:
    def __init__(self, row, items, step):
        self.row, self.items, self.step = row, items, step


def statement(r, scope, row, items, step, depth):
    """What a turn does to a list: the new list's name, and a function of a Turn that gives the new list."""
    kind = r.choice(["append", "append", "front", "middle", "sometimes", "erase", "loop"] if depth else
                    ["append", "append", "front", "middle", "sometimes", "erase"])
    value, compute = element(r, scope, row, items, None, step)
    if kind == "append":
        return scope.add("SequenceInsert", [items, value]), lambda e: e.items + [compute(e)]
    if kind == "front":
        return (scope.add("SequenceInsert", [items, value, scope.constant(np.int64(0))]),
                lambda e: [compute(e)] + e.items)
    if kind == "middle":
        place = scope.add("Div", [scope.add("SequenceLength", [items]), scope.constant(np.int64(2))])
        return (scope.add("SequenceInsert", [items, value, place]),
                lambda e: e.items[:len(e.items) // 2] + [compute(e)] + e.items[len(e.items) // 2:])
    if kind == "sometimes":
        chosen = scope.add("Greater", [scope.add("ReduceSum", [row], keepdims=0), scope.constant(np.float32(0))])
        result = branch(r, chosen, scope, (lambda inside: inside.add("SequenceInsert", [items, value]),
                                           lambda inside: items), list_info)
        return result, lambda e: e.items + [compute(e)] if e.row.sum() > 0 else e.items
    if kind == "erase":
        many = scope.add("Greater", [scope.add("SequenceLength", [items]), scope.constant(np.int64(2))])
        at = r.choice([0, 1, -1, None])

        def shorten(inside):
            return inside.add("SequenceErase", [items] + ([] if at is None else [inside.constant(np.int64(at))]))

        longer = scope.add("SequenceInsert", [items, value])
        result = branch(r, many, scope, (shorten, lambda inside: longer), list_info)

        def erased(e):
            if len(e.items) <= 2:
                return e.items + [compute(e)]
            kept = list(e.items)
            del kept[-1 if at is None else at]
            return kept

        return result, erased
    trips = r.randint(0, 3)
    inside, inner, turn = Scope(), Scope.name(scope), Scope.name(scope)
    given, function = statement(r, inside, row, inner, turn, depth - 1)
    more, again = Scope.name(scope), inside.add("Identity", [turn + "c"])
    body = helper.make_graph(inside.nodes, "inner", [tensor_info(turn, INT, []), tensor_info(turn + "c", BOOL, []),
                                                     list_info(inner)], [tensor_info(again, BOOL, []), list_info(given)])
    scope.nodes.append(node("Loop", [scope.constant(np.int64(trips)), scope.constant(np.array(True)), items], [more],
                            body=body))

    def repeated(e):
        result = e.items
        for i in range(trips):
            result = function(Turn(e.row, result, i))
        return result

    return more, repeated


def program(seed):
    r = random.Random(seed)
    x = np.random.default_rng(seed).integers(-8, 8, (r.randint(1, 5), 4)).astype(np.float32)
    scope = Scope()
    uniform = r.random() < 0.85
    zero = scope.constant(np.int64(0))
    first = scope.add("Gather", ["x", zero], axis=0)
    lists, values = [], []
    for _ in range(r.choice([1, 1, 2])):
        if r.random() < 0.7:
            lists.append(scope.add("SequenceEmpty", [], dtype=FLOAT))
            values.append([])
        else:
            lists.append(scope.add("SequenceConstruct", [first] * r.choice([1, 2])))
            values.append([x[0]] * len(scope.nodes[-1].input))
    counted = r.random() < 0.5
    trips = scope.add("Gather", [scope.add("Shape", ["x"]), zero], axis=0) if counted else "trips"
    given_trips = len(x) if counted else r.randint(0, len(x))
    inside = Scope()
    names = [inside.name() for _ in lists]
    again = inside.add("Identity", ["go"])
    row = inside.add("Gather", ["x", "turn"], axis=0)
    results, functions = [], []
    for name in names:
        if uniform:
            result, function = statement(r, inside, row, name, "turn", r.choice([0, 1]))
        else:
            end = inside.add("Unsqueeze", [inside.add("Add", ["turn", inside.constant(np.int64(1))]),
                                           inside.constant(np.array([0]))])
            part = inside.add("Slice", ["x", inside.constant(np.array([0])), end, inside.constant(np.array([0]))])
            result = inside.add("SequenceInsert", [name, part])
            function = lambda e: e.items + [x[:e.step + 1]]
        results.append(inside.add("Identity", [result]))
        functions.append(function)
    if not uniform:  # lists of one rank
        lists, values = [scope.add("SequenceEmpty", [], dtype=FLOAT) for _ in lists], [[] for _ in lists]
    body = helper.make_graph(inside.nodes, "body", [tensor_info("turn", INT, []), tensor_info("go", BOOL, [])] +
                             [list_info(n) for n in names], [tensor_info(again, BOOL, [])] + [list_info(n) for n in results])
    ends = [scope.name() for _ in lists]
    scope.nodes.append(node("Loop", [trips, scope.constant(np.array(True))] + lists, ends, body=body))
    for i in range(given_trips):
        values = [f(Turn(x[i], v, i)) for f, v in zip(functions, values)]
    outputs, expected = [], []
    for end, value in zip(ends, values):
        outputs.append(scope.add("SequenceLength", [end]))
        expected.append(np.int64(len(value)))
        if not value:
            continue
        new_axis, axis = (r.choice([0, 1]), r.choice([0, -1])) if uniform else (0, 0)
        outputs.append(scope.add("ConcatFromSequence", [end], axis=axis, new_axis=new_axis))
        expected.append(np.stack(value, axis) if new_axis else np.concatenate(value, axis))
        if uniform:
            at = r.choice([0, -1, len(value) // 2])
            outputs.append(scope.add("SequenceAt", [end, scope.constant(np.int64(at))]))
            expected.append(value[at])
    inputs, data = [tensor_info("x", FLOAT, ["rows", 4])], [x]
    if not counted:
        inputs.append(tensor_info("trips", INT, []))
        data.append(np.int64(given_trips))
    infos = [tensor_info(o, INT if e.dtype == np.int64 else FLOAT) for o, e in zip(outputs, expected)]
    graph = helper.make_graph(scope.nodes, "lists", inputs, infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), data, expected, uniform


def check(folder, seed, device):
    """What is wrong; "" when nothing is."""
    model, data, expected, uniform = program(seed)
    path, given = os.path.join(folder, "model.onnx"), os.path.join(folder, "data")
    shutil.rmtree(given, ignore_errors=True)
    os.makedirs(given)
    onnx.save(model, path)
    for kind, values in (("input", data), ("output", expected)):
        for i, value in enumerate(values):
            with open(os.path.join(given, f"{kind}_{i}.pb"), "wb") as file:
                file.write(numpy_helper.from_array(np.asarray(value)).SerializeToString())
    done = run("uir-run", path, "--data", given, "--device", device, "--json", "--no-cache",
               *(["--no-vm"] if device == "cpu" else []), timeout=300)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr[-400:]}"
    by_interpreter = json.loads(done.stdout)["calls"]["interpreter"]
    if uniform and device != "interpreter" and by_interpreter:
        return f"{by_interpreter} calls of the interpreter: {done.stderr[-300:]}"
    return ""


def check_fault(folder, position, device):
    """A position that a list does not have ends the run, whoever runs it: no neighbour is taken in its place."""
    scope, inside = Scope(), Scope()
    again, row = inside.add("Identity", ["go"]), inside.add("Gather", ["x", "turn"], axis=0)
    longer = inside.add("SequenceInsert", ["items", row])
    body = helper.make_graph(inside.nodes, "body", [tensor_info("turn", INT, []), tensor_info("go", BOOL, []), list_info("items")],
                             [tensor_info(again, BOOL, []), list_info(longer)])
    empty = scope.add("SequenceEmpty", [], dtype=FLOAT)
    scope.nodes.append(node("Loop", [scope.constant(np.int64(3)), scope.constant(np.array(True)), empty], ["all"], body=body))
    result = scope.add("SequenceAt", ["all", "p"])
    graph = helper.make_graph(scope.nodes, "lists", [tensor_info("x", FLOAT, [3, 4]), tensor_info("p", INT, [])],
                              [tensor_info(result)])
    path, given = os.path.join(folder, "model.onnx"), os.path.join(folder, "data")
    shutil.rmtree(given, ignore_errors=True)
    os.makedirs(given)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    for i, value in enumerate((np.ones((3, 4), np.float32), np.int64(position))):
        with open(os.path.join(given, f"input_{i}.pb"), "wb") as file:
            file.write(numpy_helper.from_array(np.asarray(value)).SerializeToString())
    done = run("uir-run", path, "--data", given, "--device", device, "--no-cache", timeout=300)
    good = done.returncode == (0 if -3 <= position < 3 else 3)
    return "" if good else f"exit {done.returncode}: {done.stderr[-300:]}"


def main():
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    count = int(sys.argv[2]) if len(sys.argv) > 2 else COUNTS[os.environ.get("UIR_TIER", "default")]
    suite = Suite()
    with tempfile.TemporaryDirectory(prefix="uir-lists-") as folder:
        for seed in range(first, first + count):
            for device in ("interpreter", "vm") + (("cpu",) if seed % 20 == 0 else ()):
                problem = check(folder, seed, device)
                suite.tell(not problem, f"seed {seed} on {device}: {problem}")
        for position in (-4, -3, 0, 2, 3, 2 ** 40):
            for device in ("interpreter", "vm"):
                problem = check_fault(folder, position, device)
                suite.tell(not problem, f"position {position} on {device}: {problem}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
