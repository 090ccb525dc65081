#!/usr/bin/env python3
"""Random loops and branches: what turns carry on is right wherever it is kept, and is not copied.

    run_loops.py [--count N] [--seed N]

In: seeds. Each graph has a Loop of several carried values. Its body adds, takes the greater, swaps, passes on, branches (to
results of the branch, and to values from outside) and has inner loops; it may scan rows. The expected outputs are
computed here, in numpy, in whole numbers that f32 holds. The engines: the interpreter, vm, and null by two seeds, whose
waits and bytes over the bus are those that the plan says, and whose copies are of page-locked memory (uir-staging). Then a
loop of 1,000 turns over 1 MB copies a row a turn and no state. Out: a line per failure, then
`N passed, M failed, S skipped`.
"""
import glob
import json
import os
import random
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, make_parser, run  # noqa: E402

suite = Suite()
SIZE = 5


class Body:
    """A graph under construction: its nodes, and the count of names, which all graphs of a model share."""

    def __init__(self, names):
        self.names, self.nodes = names, []

    def name(self, stem):
        self.names[0] += 1
        return f"{stem}{self.names[0]}"

    def add(self, op, inputs, stem="t", **attributes):
        out = self.name(stem)
        self.nodes.append(helper.make_node(op, inputs, [out], **attributes))
        return out

    def constant(self, value):
        return self.add("Constant", [], "k", value=helper.make_tensor("v", TensorProto.FLOAT, np.shape(value), np.ravel(value)))


def describe(name, rank=1, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, [None] * rank)


# A plan is data: it is drawn once, then written as ONNX nodes and computed in numpy.
def draw_steps(draw, count, depth):
    """Steps over a state of `count` vectors: each gives a new state."""
    steps = []
    for _ in range(draw.randint(1, 3)):
        kind = draw.choice(["add", "greatest", "swap", "keep", "copy", "number"] + (["branch", "loop", "branch"] if depth < 2 else []))
        step = {"kind": kind, "at": draw.randrange(count), "of": draw.randrange(count), "by": draw.randint(-2, 2)}
        if kind == "branch":
            step["then"], step["else"] = draw_steps(draw, count, depth + 1), draw_steps(draw, count, depth + 1)
            step["order"] = [draw.randrange(count) for _ in range(count)] if draw.random() < 0.3 else list(range(count))
        if kind == "loop":
            step["turns"], step["steps"] = draw.randint(0, 3), draw_steps(draw, count, depth + 1)
        steps.append(step)
    return steps


def compute(steps, state, number):
    state = list(state)
    for s in steps:
        a, b = s["at"], s["of"]
        if s["kind"] == "add":
            state[a] = state[a] + state[b] % 7 + s["by"]
        elif s["kind"] == "greatest":
            state[a] = np.maximum(state[a], state[b]) - s["by"]
        elif s["kind"] == "swap":
            state[a], state[b] = state[b], state[a]
        elif s["kind"] == "copy":
            state[a] = state[b]
        elif s["kind"] == "number":
            state[a] = state[a] + np.float32(number)
        elif s["kind"] == "branch":
            taken = compute(s["then"] if number % 2 else s["else"], state, number)
            state = [taken[i] for i in s["order"]]
        elif s["kind"] == "loop":
            for turn in range(s["turns"]):
                state = compute(s["steps"], state, turn)
    return state


def write(body, steps, state, number):
    """The nodes of the steps; `number`: the name of the turn's number. Returns the names of the new state."""
    state = list(state)
    for s in steps:
        a, b = s["at"], s["of"]
        if s["kind"] == "add":
            rest = body.add("Mod", [state[b], body.constant(7.0)], fmod=1)
            rest = body.add("Add", [rest, body.constant(7.0)])  # as numpy: of the divisor's sign
            rest = body.add("Mod", [rest, body.constant(7.0)], fmod=1)
            state[a] = body.add("Add", [body.add("Add", [state[a], rest]), body.constant(float(s["by"]))])
        elif s["kind"] == "greatest":
            state[a] = body.add("Sub", [body.add("Max", [state[a], state[b]]), body.constant(float(s["by"]))])
        elif s["kind"] == "swap":
            state[a], state[b] = state[b], state[a]
        elif s["kind"] == "copy":
            state[a] = body.add("Identity", [state[b]])
        elif s["kind"] == "number":
            state[a] = body.add("Add", [state[a], body.add("Cast", [number], to=TensorProto.FLOAT)])
        elif s["kind"] == "branch":
            state = write_branch(body, s, state, number)
        elif s["kind"] == "loop":
            trips = body.add("Constant", [], "k", value=helper.make_tensor("v", TensorProto.INT64, [], [s["turns"]]))
            state = write_loop(body, s["steps"], state, 0, trips)
    return state


def name_results(body, results):
    """A graph's outputs are results of its own nodes, each once."""
    made, named = {o for node in body.nodes for o in node.output}, []
    for result in results:
        named.append(body.add("Identity", [result]) if result not in made or result in named else result)
    return named


def write_branch(body, s, state, number):
    graphs = []
    for way in ("then", "else"):
        inner = Body(body.names)
        results = write(inner, s[way], state, number)
        named = name_results(inner, [results[i] for i in s["order"]])
        graphs.append(helper.make_graph(inner.nodes, way, [], [describe(n) for n in named]))
    two = body.add("Constant", [], "k", value=helper.make_tensor("v", TensorProto.INT64, [], [2]))
    odd = body.add("Cast", [body.add("Mod", [number, two])], to=TensorProto.BOOL)
    outputs = [body.name("b") for _ in state]
    body.nodes.append(helper.make_node("If", [odd], outputs, then_branch=graphs[0], else_branch=graphs[1]))
    return outputs


def write_loop(body, steps, state, scanned, trips):
    """`trips`: the name of the number of turns."""
    inner = Body(body.names)
    number, goes_on = inner.name("i"), inner.name("g")
    ports = [inner.name("p") for _ in state]
    results = write(inner, steps, ports, number)
    results = name_results(inner, results)
    rows = [inner.add("Identity", [results[i]]) for i in range(scanned)]
    on = inner.add("Identity", [goes_on])
    graph = helper.make_graph(inner.nodes, "body", [describe(number, 0, TensorProto.INT64), describe(goes_on, 0, TensorProto.BOOL)] +
                              [describe(p) for p in ports], [describe(on, 0, TensorProto.BOOL)] + [describe(r) for r in results + rows])
    outputs = [body.name("l") for _ in results + rows]
    body.nodes.append(helper.make_node("Loop", [trips, ""] + state, outputs, body=graph))
    return outputs


def make_case(seed):
    """A model, its inputs and the outputs that are expected."""
    draw = random.Random(seed)
    count, scanned = draw.randint(1, 4), draw.randint(0, 1)
    steps, turns = draw_steps(draw, count, 0), draw.choice([1, 1, 2, 3, 6] if scanned else [0, 1, 2, 3, 6])  # rows of no turn have no extents
    body = Body([0])
    inputs = [f"x{i}" for i in range(count)]
    before = [body.add("Add", [x, body.constant(1.0)]) if draw.random() < 0.5 else x for x in inputs]
    given = [np.arange(SIZE, dtype=np.float32) * (i + 1) - 3 for i in range(count)]
    state = [g + 1 if name != x else g for g, name, x in zip(given, before, inputs)]
    results = write_loop(body, steps, before, scanned, "trips")
    rows = []
    for turn in range(turns):
        state = compute(steps, state, turn)
        rows.append(state[0])
    expected = state + ([np.array(rows, dtype=np.float32).reshape(turns, SIZE)] if scanned else [])
    again = [body.add("Add", [results[i], before[i]]) for i in range(count)]  # the operands are what they were
    expected += [s + (g + 1 if name != x else g) for s, g, name, x in zip(state, given, before, inputs)]
    ranks = [1] * count + [2] * scanned + [1] * count
    graph = helper.make_graph(body.nodes, "loops", [describe("trips", 0, TensorProto.INT64)] +
                              [helper.make_tensor_value_info(x, TensorProto.FLOAT, ["n"]) for x in inputs],
                              [describe(o, rank) for o, rank in zip(results + again, ranks)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model, {"trips": np.array(turns, dtype=np.int64), **dict(zip(inputs, given))}, expected


def save(folder, model, inputs, expected):
    data = os.path.join(folder, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    for kind, arrays in (("input", inputs.values()), ("output", expected)):
        for i, array in enumerate(arrays):
            with open(os.path.join(data, f"{kind}_{i}.pb"), "wb") as file:
                file.write(onnx.numpy_helper.from_array(np.asarray(array, dtype=array.dtype)).SerializeToString())
    return os.path.join(folder, "model.onnx"), data


def check_random(seed):
    with tempfile.TemporaryDirectory(prefix="uir-loops-") as scratch:
        model, data = save(scratch, *make_case(seed))
        for device in ("interpreter", "vm", f"null:{seed}", f"null:{seed + 1}"):
            done = run("uir-run", model, "--device", device, "--data", data, "--atol", 0, "--rtol", 0, "--quiet", "--no-cache")
            suite.tell(done.returncode == 0, f"loops of seed {seed} on {device}: exit {done.returncode}\n{done.stderr[:800]}{done.stdout[:400]}")
        check_bus(model, data, seed)
        if seed % 3 == 0:
            check_staging(scratch, model, data, seed)


def check_staging(folder, model, data, seed):
    """What turns and branches copy is page-locked, unless the caller bound it."""
    package = os.path.join(folder, "model.uir")
    done = run("uir-pack", model, "-o", package, "--device", "null", "--quiet")
    suite.tell(done.returncode == 0, f"loops of seed {seed}: uir-pack, exit {done.returncode}\n{done.stderr[:800]}")
    for path in glob.glob(os.path.join(data, "input_*.pb")):
        with open(path, "rb") as file:
            np.save(path[:-3] + ".npy", onnx.numpy_helper.to_array(TensorProto.FromString(file.read())))
    done = run("uir-staging", "--data", data, package)
    suite.tell(done.returncode == 0, f"loops of seed {seed}: uir-staging, exit {done.returncode}\n{done.stdout[:800]}")


def check_bus(model, data, seed):
    """A steady run waits and copies as its plan says for its turns and branches."""
    done = run("uir-run", model, "--device", f"null:{seed}", "--data", data, "--quiet", "--no-cache", "--json", "--bench",
               "--iterations", 1, "--warmup", 1)
    bus = json.loads(done.stdout)["bus"] if done.returncode == 0 else {"planned": {"waits": done.stderr}}
    for what in ("waits", "bytes_to_device", "bytes_from_device"):
        suite.tell(bus.get(what) == bus["planned"].get(what), f"loops of seed {seed}: {what}: {bus}")


def check_copies():
    """1,000 turns over 1 MB: the copies of a run with a row a turn are the rows and those of inputs and outputs."""
    turns, size = 1000, 1 << 18
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])
    first = [helper.make_tensor("begin", TensorProto.INT64, [1], [0]), helper.make_tensor("end", TensorProto.INT64, [1], [1])]
    nodes = [helper.make_node("Add", ["a", "one"], ["b"]), helper.make_node("Slice", ["b", "begin", "end"], ["row"]),
             helper.make_node("Identity", ["go"], ["on"])]
    body = helper.make_graph(nodes, "body", [describe("i", 0, TensorProto.INT64), describe("go", 0, TensorProto.BOOL), describe("a")],
                             [describe("on", 0, TensorProto.BOOL), describe("b"), describe("row")], initializer=[one] + first)
    graph = helper.make_graph([helper.make_node("Loop", ["trips", "", "x"], ["y", "rows"], body=body)], "copies",
                              [describe("trips", 0, TensorProto.INT64), helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])],
                              [describe("y"), describe("rows", 2)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.arange(size, dtype=np.float32) % 64
    rows = (np.arange(turns, dtype=np.float32) + 1).reshape(turns, 1)
    with tempfile.TemporaryDirectory(prefix="uir-loops-") as scratch:
        path, data = save(scratch, model, {"trips": np.array(turns, dtype=np.int64), "x": x}, [x + turns, rows])
        for device in ("vm", "null:5"):
            done = run("uir-run", path, "--device", device, "--data", data, "--quiet", "--no-cache", "--json")
            bus = json.loads(done.stdout)["bus"] if done.returncode == 0 else {"copies": done.stderr}
            suite.tell(done.returncode == 0 and turns <= bus["copies"] <= turns + 8,
                       f"{turns} turns on {device}: {bus['copies']} copies, {turns} rows and at most 8 others expected")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for seed in range(given.seed, given.seed + given.count):
        check_random(seed)
    check_copies()
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
