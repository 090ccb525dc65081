#!/usr/bin/env python3
"""fuzz_package on files that uir-pack writes, native code and all: `fuzz_packed.py [COUNT [SEED]]`. Every byte that is
changed must be noticed before a result is given.

In: the programs in $UIR_BIN. Out: what the campaign says of each file, then `N passed, M failed, S skipped`.
"""
import os
import sys
import tempfile

import numpy as np
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import make_model, save, value  # noqa: E402
from suite import Suite, run  # noqa: E402


def perceptron():
    """Two layers and a softmax, over any batch."""
    numbers = np.random.default_rng(1)
    weights = [numpy_helper.from_array(numbers.standard_normal(s).astype(np.float32), n)
               for n, s in (("w1", (24, 40)), ("b1", (40,)), ("w2", (40, 10)))]
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["h"]), helper.make_node("Add", ["h", "b1"], ["i"]),
             helper.make_node("Relu", ["i"], ["j"]), helper.make_node("MatMul", ["j", "w2"], ["k"]),
             helper.make_node("Softmax", ["k"], ["y"])]
    return make_model(nodes, [value("x", ["batch", 24])], [value("y", None)], weights)


def main():
    count, seed = (sys.argv[1:] + ["5000", "1"][len(sys.argv) - 1:])[:2]
    suite = Suite()
    with tempfile.TemporaryDirectory() as folder:
        model = save(perceptron(), os.path.join(folder, "m.onnx"))
        for kind in (["--no-native"], ["--device", "cpu:generic,cpu"]):
            package = os.path.join(folder, "m.uir")
            run("uir-pack", model, "-o", package, "--quiet", *kind).check_returncode()
            done = run("fuzz_package", count, seed, package, timeout=None)
            print(" ".join(kind), os.path.getsize(package), "bytes:", (done.stdout + done.stderr).strip())
            suite.tell(done.returncode == 0, f"{' '.join(kind)}: exit {done.returncode}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
