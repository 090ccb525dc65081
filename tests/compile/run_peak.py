#!/usr/bin/env python3
"""What a cold compile of quantised weights takes of memory: at most three times the weights and 200 MB, whatever the
spelling. Of weights of a byte it is a compile with a run by the VM behind it. Weights of 4 bits are packed only: what a run
reads of them are mapped numbers of f32, eight times as many bytes. The C compilers are processes of their own and do not
count.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`."""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN, Suite, run  # noqa: E402

SIDE, LAYERS, BLOCK, MB = 4096, 4, 32, 1 << 20
TIMES, MORE = 3, 200 * MB
node = helper.make_node
# In a small process: what its child has had most includes what the process had that forked it.
MEASURE = """
import os, resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
"""


def constant(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def bytes_of(random, *shape):
    return random.integers(-127, 128, shape, np.int8)


def dequantized(random, i):
    """Weights by channel, a product of f32."""
    return [node("DequantizeLinear", [f"w{i}", f"s{i}", f"z{i}"], [f"d{i}"], axis=1), node("MatMul", [f"x{i}", f"d{i}"], [f"x{i + 1}"])], [
        constant(f"w{i}", bytes_of(random, SIDE, SIDE)), constant(f"s{i}", random.random(SIDE, np.float32) / 1000),
        constant(f"z{i}", np.zeros(SIDE, np.int8))]


def integers(random, i):
    """A product of integers, whose scale the run tells."""
    return [node("DynamicQuantizeLinear", [f"x{i}"], [f"q{i}", f"t{i}", f"o{i}"]),
            node("MatMulInteger", [f"q{i}", f"w{i}", f"o{i}"], [f"m{i}"]), node("Cast", [f"m{i}"], [f"c{i}"], to=TensorProto.FLOAT),
            node("Mul", [f"t{i}", f"s{i}"], [f"u{i}"]), node("Mul", [f"c{i}", f"u{i}"], [f"x{i + 1}"])], [
        constant(f"w{i}", bytes_of(random, SIDE, SIDE)), constant(f"s{i}", np.float32(0.01))]


def fours(random, i):
    """Weights of 4 bits, two in a byte, with a scale for each 32 along the depth: a product that holds them."""
    return [node("MatMulNBits", [f"x{i}", f"w{i}", f"s{i}"], [f"x{i + 1}"], domain="com.microsoft", K=SIDE, N=SIDE, bits=4,
                 block_size=BLOCK)], [constant(f"w{i}", random.integers(0, 256, (SIDE, SIDE // BLOCK, BLOCK // 2), np.uint8)),
                                      constant(f"s{i}", random.random(SIDE * SIDE // BLOCK, np.float32) / 1000)]


def blocks(random, i):
    """Such weights as a type of their own, dequantized by blocks."""
    fours_of = helper.make_tensor(f"w{i}", TensorProto.UINT4, (SIDE, SIDE),
                                  random.integers(0, 256, SIDE * SIDE // 2, np.uint8).tobytes(), raw=True)
    return [node("DequantizeLinear", [f"w{i}", f"s{i}"], [f"d{i}"], axis=0, block_size=BLOCK),
            node("MatMul", [f"x{i}", f"d{i}"], [f"x{i + 1}"])], [
        fours_of, constant(f"s{i}", random.random((SIDE // BLOCK, SIDE), np.float32) / 1000)]


def running(path, folder):
    return [os.path.join(BIN, "uir-run"), path, "--cache", os.path.join(folder, "cache"), "--quiet"]


def packing(path, folder):
    return [os.path.join(BIN, "uir-pack"), path, "-o", os.path.join(folder, "model.uir"), "--no-native", "--quiet"]


FORMS = {"dequantized": (dequantized, running), "integers": (integers, running), "fours": (fours, packing), "blocks": (blocks, packing)}


def check(suite, form, outside, folder):
    random = np.random.default_rng(0)
    make, command = FORMS[form]
    parts = [make(random, i) for i in range(LAYERS)]
    graph = helper.make_graph([n for nodes, _ in parts for n in nodes], form, [helper.make_tensor_value_info("x0", TensorProto.FLOAT, ["n", SIDE])],
                              [helper.make_empty_tensor_value_info(f"x{LAYERS}")], [c for _, constants in parts for c in constants])
    path = os.path.join(folder, "model.onnx")
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path, save_as_external_data=outside,
              location="model.data", size_threshold=1024)
    weights = sum(os.path.getsize(os.path.join(folder, name)) for name in os.listdir(folder))
    done = run(sys.executable, "-c", MEASURE, *command(path, folder))
    done.check_returncode()
    status, peak = map(int, done.stdout.split()[-2:])
    most = TIMES * weights + MORE
    suite.tell(status == 0 and peak <= most, f"{form}{', weights beside it' if outside else ''}: exit {status}, {peak / MB:.0f} MB of "
                                             f"{weights / MB:.0f} MB of weights; at most {most / MB:.0f}")


def main():
    suite = Suite()
    for form in FORMS:
        for outside in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                check(suite, form, outside, folder)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
