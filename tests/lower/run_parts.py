"""Long reductions and products by parts, from ONNX: the same bits from the VM and from native code of every variant, at
any number of threads, and what NumPy says. With --check each stage against the one before, too."""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, run  # noqa: E402

CHECKED = 3  # of the cases, the first, with --check: the interpreters of all stages are slow


def reduce(operator, axis=None, after=()):
    def make(g, *shape):
        x = g.standard_normal(shape).astype(np.float32)
        nodes = [helper.make_node(operator, ["x"] + ([] if axis is None else ["axis"]), ["r"], keepdims=0)]
        nodes += [helper.make_node(name, ["r"], ["y"]) for name in after or ("Identity",)]
        of = {"ReduceSum": np.sum, "ReduceMax": np.max, "ReduceMean": np.mean,
              "ReduceL2": lambda v, axis: np.sqrt(np.sum(v * v, axis))}[operator]
        right = of(x.astype(np.float64), axis=axis)
        constants = {} if axis is None else {"axis": np.array([axis], np.int64)}
        return nodes, {"x": x}, constants, np.tanh(right) if after else right
    return make


def arg_max(axis):
    def make(g, *shape):
        x = np.floor(g.standard_normal(shape) * 4).astype(np.float32)  # many equal ones: the first is right
        return [helper.make_node("ArgMax", ["x"], ["y"], axis=axis, keepdims=0)], {"x": x}, {}, np.argmax(x, axis)
    return make


def variance(g, *shape):
    x = g.standard_normal(shape).astype(np.float32) + 3
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"]), helper.make_node("Sub", ["x", "m"], ["d"]),
             helper.make_node("Mul", ["d", "d"], ["q"]), helper.make_node("ReduceMean", ["q"], ["y"], keepdims=0)]
    return nodes, {"x": x}, {}, np.var(x.astype(np.float64))


def product(constant, bias=False):
    def make(g, m, k, n):
        x, w = g.standard_normal((m, k)).astype(np.float32), g.standard_normal((k, n)).astype(np.float32)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["r"]), helper.make_node("Tanh" if bias else "Identity", ["r"], ["y"])]
        right = x.astype(np.float64) @ w.astype(np.float64)
        return nodes, {"x": x} if constant else {"x": x, "w": w}, {"w": w} if constant else {}, np.tanh(right) if bias else right
    return make


# name, what makes it, shape
CASES = [
    ("sum of all", reduce("ReduceSum"), (300, 700)),
    ("variance of all", variance, (200003,)),
    ("product", product(False), (16, 16384, 16)),
    ("sums of rows, and what is made of them", reduce("ReduceSum", 1, ("Tanh",)), (4, 150000)),
    ("greatest of rows", reduce("ReduceMax", 1), (5, 131077)),
    ("means of columns", reduce("ReduceMean", 0), (70001, 5)),
    ("lengths of columns, by slices", reduce("ReduceL2", 0), (1500, 300)),
    ("greatest in the middle", reduce("ReduceMax", 1), (2, 3000, 130)),
    ("place of the greatest of rows", arg_max(1), (2, 131077)),
    ("place of the greatest of columns", arg_max(0), (70001, 3)),
    ("product by constant weights", product(True), (16, 16384, 16)),
    ("product of one row, and what is made of it", product(True, True), (1, 60000, 7)),
    ("product of odd sizes", product(False), (13, 30030, 19)),
]
ENGINES = [("vm", 1), ("vm", 3), ("cpu:generic", 1), ("cpu:generic", 2), ("cpu:avx2", 1), ("cpu:avx2", 3),
           ("cpu:avx512", 1), ("cpu:avx512", 2), ("cpu:avx512", 5)]


def can_run(device):
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        flags = file.read().split()
    needs = {"cpu:avx2": ["avx2", "fma", "f16c"], "cpu:avx512": ["avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd"]}
    return all(word in flags for word in needs.get(device, []))


def write_case(make, shape, folder):
    nodes, inputs, constants, right = make(np.random.default_rng(7), *shape)
    kind = TensorProto.INT64 if right.dtype == np.int64 else TensorProto.FLOAT
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, v.shape) for name, v in inputs.items()]
    graph = helper.make_graph(nodes, "g", infos, [helper.make_tensor_value_info("y", kind, right.shape)],
                              [numpy_helper.from_array(v, name) for name, v in constants.items()])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), folder + "/model.onnx")
    for name, v in inputs.items():
        np.save(f"{folder}/{name}.npy", v)
    return [f"--input={name}={folder}/{name}.npy" for name in inputs], right


def run_model(folder, words):
    done = run("uir-run", folder + "/model.onnx", "--no-fallback", *words, timeout=600)
    return "" if done.returncode == 0 else f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def check_case(number, make, shape, folder):
    inputs, right = write_case(make, shape, folder)
    first = None
    for device, threads in ENGINES:
        if not can_run(device):
            continue
        wait = [] if device == "vm" else ["--no-vm"]
        said = run_model(folder, inputs + wait + ["--cache", folder + "/cache", "--device", device, "--threads", str(threads), "--save", folder, "--format", "npy"])
        if said:
            return f"{device}, {threads} threads: {said}"
        got = np.load(folder + "/y.npy")
        if not np.allclose(got, right, rtol=1e-4, atol=3e-3):
            return f"{device}: {got} in place of {right}"
        first = got if first is None else first
        if got.tobytes() != first.tobytes():
            return f"{device}, {threads} threads: other bits than of {ENGINES[0]}"
    return run_model(folder, inputs + ["--no-cache", "--check"]) if number < CHECKED else ""


def main():
    suite = Suite()
    for number, (name, make, shape) in enumerate(CASES):
        if sys.argv[1:] and not any(word in name for word in sys.argv[1:]):
            continue
        with tempfile.TemporaryDirectory(prefix="uir-parts-") as folder:
            why = check_case(number, make, shape, folder)
        suite.tell(not why, f"{name}: {why}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
