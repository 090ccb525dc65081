"""Ops that draw random numbers, checked by their distribution: RandomUniform, RandomNormal, both Like, Bernoulli,
Multinomial, Dropout in training. Seeds are fixed, so that a check that holds holds always; the bounds are those that a
right generator passes 99.99 times of 100. Each case runs on the interpreter and on the VM, twice.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`."""
import json
import math
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, run  # noqa: E402

ROWS, COLUMNS = 200, 250
COUNT = ROWS * COLUMNS
Z = 4  # standard deviations that a mean may be off
SHAPE = [ROWS, COLUMNS]
LOGITS = np.log(np.array([[1, 2, 3, 4], [10, 0.1, 10, 0.1], [1, 1, 1, 1]], np.float32))
LOGITS[1] += 80  # only differences count
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
    return condition


def uniform_cdf(low, high):
    return lambda v: np.clip((v - low) / (high - low), 0, 1)


def normal_cdf(mean, scale):
    return lambda v: np.array([0.5 * math.erfc((mean - x) / (scale * math.sqrt(2))) for x in v])


def is_distributed(name, values, cdf, mean, deviation, step=0.0):
    """Mean, variance, the greatest distance between the distributions (Kolmogorov and Smirnov; `step`: what rounding of
    the element type adds), and neighbours that know nothing of each other."""
    v = values.astype(np.float64).flatten()
    n = len(v)
    check(abs(v.mean() - mean) < Z * deviation / math.sqrt(n) + step, f"{name}: mean {v.mean()} for {mean}")
    check(abs(v.std() / deviation - 1) < Z / math.sqrt(n) * 1.5 + step, f"{name}: deviation {v.std()} for {deviation}")
    ordered = np.sort(v)
    expected = cdf(ordered)
    places = np.arange(n + 1) / n
    distance = max(np.abs(expected - places[1:]).max(), np.abs(expected - places[:-1]).max())
    check(distance < 2.23 / math.sqrt(n) + step, f"{name}: the distributions are {distance} apart")
    for lag in (1, 2, COLUMNS):
        a, b = v[:-lag] - mean, v[lag:] - mean
        check(abs((a * b).mean() / deviation ** 2) < Z / math.sqrt(n), f"{name}: element i tells of element i + {lag}")


def is_uniform(low, high, step=0.0):
    def run(name, v):
        is_distributed(name, v, uniform_cdf(low, high), (low + high) / 2, (high - low) / math.sqrt(12), step)
        check(v.min() >= low and v.max() < high, f"{name}: outside of {low} .. {high}, or that itself")
    return run


def is_normal(mean, scale, step=0.0):
    return lambda name, v: is_distributed(name, v, normal_cdf(mean, scale), mean, scale, step)


def is_bernoulli(name, v):
    for i, p in enumerate(CHANCES):
        share = v[i].astype(np.float64).mean()
        check(abs(share - p) <= Z * math.sqrt(p * (1 - p) / v[i].size), f"{name}: {share} of ones for {p}")
    check(set(np.unique(v)) <= {0, 1}, f"{name}: neither 0 nor 1")


def is_multinomial(name, v):
    shares = np.exp(LOGITS - LOGITS.max(1, keepdims=True)).astype(np.float64)
    shares /= shares.sum(1, keepdims=True)
    for row, p in zip(v, shares):
        counts = np.bincount(row, minlength=4)
        check(len(counts) == 4, f"{name}: a class that there is not")
        chi = ((counts - p * row.size) ** 2 / (p * row.size)).sum()
        check(chi < 21.1, f"{name}: chi squared is {chi} over 3 degrees")  # 1 of 10,000 is above


def is_dropout(name, v):
    kept = v != 0
    share = kept.mean()
    check(abs(share - 0.75) < Z * math.sqrt(0.75 * 0.25 / v.size), f"{name}: {share} are kept of 0.75")
    check(np.allclose(v[kept], 1 / 0.75), f"{name}: what is kept is not scaled")


CHANCES = (0.0, 0.03, 0.5, 0.9, 1.0)
CASES = (
    ("RandomUniform", {"shape": SHAPE}, (), is_uniform(0, 1)),
    ("RandomUniform", {"shape": SHAPE, "low": -3.0, "high": 5.0}, (), is_uniform(-3, 5)),
    ("RandomUniform", {"shape": SHAPE, "dtype": TensorProto.DOUBLE}, (), is_uniform(0, 1)),
    ("RandomUniform", {"shape": SHAPE, "dtype": TensorProto.FLOAT16}, (), is_uniform(0, 1, 2.0 ** -11)),
    ("RandomNormal", {"shape": SHAPE}, (), is_normal(0, 1)),
    ("RandomNormal", {"shape": SHAPE, "mean": 4.0, "scale": 0.5}, (), is_normal(4, 0.5)),
    ("RandomNormal", {"shape": SHAPE, "dtype": TensorProto.DOUBLE}, (), is_normal(0, 1)),
    ("RandomNormal", {"shape": SHAPE, "dtype": TensorProto.FLOAT16}, (), is_normal(0, 1, 2.0 ** -10)),
    ("RandomUniformLike", {"low": 1.0, "high": 2.0}, ("like",), is_uniform(1, 2)),
    ("RandomNormalLike", {"mean": -1.0, "scale": 2.0, "dtype": TensorProto.DOUBLE}, ("like",), is_normal(-1, 2)),
    ("Bernoulli", {}, ("chances",), is_bernoulli),
    ("Bernoulli", {"dtype": TensorProto.INT32}, ("chances",), is_bernoulli),
    ("Bernoulli", {"dtype": TensorProto.BOOL}, ("chances",), is_bernoulli),
    ("Multinomial", {"sample_size": COUNT}, ("logits",), is_multinomial),
    ("Multinomial", {"sample_size": COUNT, "dtype": TensorProto.INT64}, ("logits",), is_multinomial),
    ("Dropout", {}, ("like", "ratio", "training"), is_dropout),
)
INPUTS = {"like": np.ones(SHAPE, np.float32), "logits": LOGITS,
          "chances": np.repeat(np.array(CHANCES, np.float32), COUNT).reshape(len(CHANCES), COUNT)}
CONSTANTS = {"ratio": np.float32(0.25), "training": np.array(True), "turns": np.int64(3)}


def looped(node, turns):
    """Its results, stacked."""
    value = helper.make_tensor_value_info
    body = helper.make_graph([node, helper.make_node("Identity", ["go"], ["on"])], "body",
                             [value("turn", TensorProto.INT64, []), value("go", TensorProto.BOOL, [])],
                             [value("on", TensorProto.BOOL, []), helper.make_empty_tensor_value_info(node.output[0])])
    return helper.make_node("Loop", [turns, ""], ["all_" + node.output[0]], body=body)


def model_of(nodes):
    used = {name for n in nodes for name in n.input}
    used |= {name for n in nodes for a in n.attribute for inner in a.g.node for name in inner.input}
    graph = helper.make_graph(
        nodes, "random", [helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in INPUTS.items() if k in used],
        [helper.make_empty_tensor_value_info(n.output[0]) for n in nodes],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in CONSTANTS.items() if k in used])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def draw(folder, nodes, device):
    """What each node drew, or None after a failure."""
    path, results = os.path.join(folder, "m.onnx"), os.path.join(folder, "results")
    model = model_of(nodes)
    onnx.save(model, path)
    given = []
    for port in model.graph.input:
        np.save(os.path.join(folder, port.name), INPUTS[port.name])
        given += ["--input", f"{port.name}={folder}/{port.name}.npy"]
    done = run("uir-run", path, "--device", device, "--save", results, "--cache", "off", *given, timeout=120)
    if not check(done.returncode == 0, f"{device}: exit {done.returncode}: {done.stderr[-300:]}"):
        return None
    with open(os.path.join(results, "index.json"), encoding="utf-8") as file:
        return [numpy_helper.to_array(onnx.load_tensor(os.path.join(results, v["file"]))) for v in json.load(file)["values"]]


def distributions(folder, device):
    nodes = [helper.make_node(op, inputs, [f"y{i}"], seed=i if op == "Dropout" else float(i), **attributes)
             for i, (op, attributes, inputs, _) in enumerate(CASES)]
    drawn = draw(folder, nodes, device)
    for i, values in enumerate(drawn or []):
        op, attributes, inputs, test = CASES[i]
        test(f"{device}: {op} {attributes}", values)
        dtype = attributes.get("dtype", TensorProto.INT32 if op == "Multinomial" else TensorProto.FLOAT)
        check(values.dtype == helper.tensor_dtype_to_np_dtype(dtype), f"{device}: {op} {attributes}: {values.dtype}")
    return drawn


def seeds(folder, device):
    """Of each op: two of one seed, one of another, two of none."""
    for op, attributes, inputs, _ in CASES:
        whole = op == "Dropout"
        make = lambda i, **seed: helper.make_node(op, inputs, [f"y{i}"], **attributes, **seed)
        nodes = [make(0, seed=7 if whole else 7.5), make(1, seed=7 if whole else 7.5), make(2, seed=8 if whole else 7.25), make(3), make(4)]
        drawn, again = draw(folder, nodes, device), draw(folder, nodes, device)
        if drawn is None or again is None:
            continue
        name = f"{device}: {op} {attributes}"
        check((drawn[0] == drawn[1]).all(), f"{name}: one seed, other numbers")
        for a, b in ((0, 2), (0, 3), (3, 4)):
            check((drawn[a] != drawn[b]).any(), f"{name}: nodes {a} and {b} draw the same")
        check(all((x == y).all() for x, y in zip(drawn, again)), f"{name}: another run, other numbers")


def turns(folder, device):
    """In a loop each turn draws others, of a seed too; the first draws what the node draws outside."""
    small = [(op, {**attributes, **({"shape": [64]} if "shape" in attributes else {})}, inputs) for op, attributes, inputs, _ in CASES]
    nodes = []
    for i, (op, attributes, inputs) in enumerate(small):
        seed = {"seed": 5 if op == "Dropout" else 5.0}
        nodes += [looped(helper.make_node(op, inputs, [f"s{i}"], **attributes, **seed), "turns"),
                  looped(helper.make_node(op, inputs, [f"n{i}"], **attributes), "turns"),
                  helper.make_node(op, inputs, [f"o{i}"], **attributes, **seed)]
    drawn = draw(folder, nodes, device)
    for i in range(len(small) if drawn else 0):
        seeded, free, outside = drawn[3 * i:3 * i + 3]
        name = f"{device}: {small[i][0]} {small[i][1]} in a loop"
        check((seeded[0] == outside).all(), f"{name}: the first turn is another than outside")
        for rows in (seeded, free):
            check(len(rows) == 3 and all((rows[a] != rows[b]).any() for a, b in ((0, 1), (0, 2), (1, 2))), f"{name}: two turns draw the same")
    return drawn


def main():
    suite, drawn = Suite(), {}
    with tempfile.TemporaryDirectory() as folder:
        for device in ("interpreter", "vm"):
            for test in (distributions, seeds, turns):
                failures.clear()
                drawn[device, test] = test(folder, device)
                suite.tell(not failures, "\n".join(failures))
    same = all((a == b).all() for test in (distributions, turns)
               for a, b in zip(drawn["interpreter", test] or [], drawn["vm", test] or []))
    suite.tell(same, "the interpreter and the VM draw other numbers")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
