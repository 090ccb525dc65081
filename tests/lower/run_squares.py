#!/usr/bin/env python3
"""Products of a tensor by its own transpose, of both orders: one kernel would read the tensor in two orders of its dims.

    run_squares.py

In: the programs in $UIR_BIN. Each product runs on the VM, strictly, against numpy: square matrices too, of which a wrong
order has the right shape. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, run  # noqa: E402

# Dims of the operand, and the extent of the named one.
SHAPES = [(("N", 3), 5), (("N", 64), 33), ((3, 3), 0), ((40, 40), 0), ((2, 2, 3), 0), ((2, 33, 33), 0), (("N", 4, 4), 3)]
TYPES = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE}
suite = Suite()


def write(path, name, array):
    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(array, name).SerializeToString())


def check(folder, dims, extent, dtype, left):
    perm = list(range(len(dims) - 2)) + [len(dims) - 1, len(dims) - 2]
    value = np.random.default_rng(7).integers(-8, 9, [extent if d == "N" else d for d in dims]).astype(dtype) / 4
    across = value.transpose(perm)
    model, operands = os.path.join(folder, "model.onnx"), ["t", "x"] if left else ["x", "t"]
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=perm), helper.make_node("MatMul", operands, ["y"])]
    graph = helper.make_graph(nodes, "square", [helper.make_tensor_value_info("x", TYPES[dtype], dims)],
                              [helper.make_tensor_value_info("y", TYPES[dtype], [None] * len(dims))])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), model)
    write(os.path.join(folder, "input_0.pb"), "x", value)
    write(os.path.join(folder, "output_0.pb"), "y", across @ value if left else value @ across)
    done = run("uir-run", model, "--device", "vm", "--data", folder, "--no-cache", "--strict", "--quiet")
    suite.tell(done.returncode == 0, f"{' by '.join(operands)} of {dims}, {dtype.__name__}: exit {done.returncode}: {done.stderr[:300]}")


def main():
    with tempfile.TemporaryDirectory(prefix="uir-squares-") as folder:
        for dims, extent in SHAPES:
            for dtype in TYPES:
                for left in (False, True):
                    check(folder, dims, extent, dtype, left)
    sys.exit(suite.end())


if __name__ == "__main__":
    main()
