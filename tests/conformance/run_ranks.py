#!/usr/bin/env python3
"""Models whose operands have another rank than ONNX specifies: scalars, lists and matrices of free dims, no rank at all.
The VM runs each model, or refuses it with a message; no process ends by a signal.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import os
import sys
import tempfile

import onnx
from onnx import TensorProto, helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, run  # noqa: E402

F, I, B, U = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8
SHAPES = {"a scalar": [], "a list": ["k"], "a matrix": ["k", "m"], "no elements": [0], "no rank": None}
# Operator, attributes, operands (None: left out) with their dtypes and the shapes of the operator's page.
CASES = [
    ("Slice", {}, (F, [4, 5]), (I, [2]), (I, [2]), (I, [2]), (I, [2])),
    ("Slice", {}, (F, [4, 5]), (I, [2]), (I, [2])),
    ("Slice", {}, (F, [4, 5]), (I, [2]), (I, [2]), None, (I, [2])),
    ("Slice", {}, (F, [4]), (I, []), (I, []), None, (I, [])),
    ("Pad", {}, (F, [4, 5]), (I, [4]), None, (I, [2])),
    ("Expand", {}, (F, [1, 5]), (I, [2])),
    ("Tile", {}, (F, [1, 5]), (I, [2])),
    ("Reshape", {}, (F, [1, 5]), (I, [2])),
    ("Squeeze", {}, (F, [1, 5]), (I, [1])),
    ("Unsqueeze", {}, (F, [1, 5]), (I, [1])),
    ("ReduceSum", {}, (F, [1, 5]), (I, [1])),
    ("ReduceMax", {"noop_with_empty_axes": 1}, (F, [1, 5]), (I, [1])),
    ("Split", {}, (F, [4, 5]), (I, [1])),
    ("Resize", {"mode": "linear"}, (F, [1, 1, 4, 5]), None, (F, [4])),
    ("Resize", {"mode": "cubic"}, (F, [1, 1, 4, 5]), None, None, (I, [4])),
    ("CenterCropPad", {}, (F, [4, 5]), (I, [2])),
    ("ConstantOfShape", {}, (I, [2])),
    ("OneHot", {}, (I, [4]), (I, []), (F, [2])),
    ("Range", {}, (I, []), (I, []), (I, [])),
    ("Trilu", {}, (F, [4, 5]), (I, [])),
    ("CumSum", {}, (F, [4, 5]), (I, [])),
    ("NonMaxSuppression", {}, (F, [1, 6, 4]), (F, [1, 1, 6]), (I, [1]), (F, [1]), (F, [1])),
    ("RoiAlign", {}, (F, [1, 1, 6, 6]), (F, [2, 4]), (I, [2])),
    ("AffineGrid", {}, (F, [1, 2, 3]), (I, [4])),
    ("GridSample", {}, (F, [1, 1, 4, 4]), (F, [1, 3, 3, 2])),
    ("GatherND", {}, (F, [4, 5]), (I, [2, 1])),
    ("ScatterND", {}, (F, [4, 5]), (I, [2, 1]), (F, [2, 5])),
    ("Compress", {}, (F, [4, 5]), (B, [3])),
    ("DFT", {}, (F, [1, 8, 1]), (I, []), (I, [])),
    ("HannWindow", {}, (I, [])),
    ("MelWeightMatrix", {}, (I, []), (I, []), (I, []), (F, []), (F, [])),
    ("QuantizeLinear", {}, (F, [4, 5]), (F, []), (U, [])),
    ("ReverseSequence", {}, (F, [4, 3]), (I, [3])),
]


def check(suite, path, case, changed, what):
    op, attributes, *operands = case
    names = [f"x{i}" if operand else "" for i, operand in enumerate(operands)]
    inputs = [helper.make_tensor_value_info(name, operand[0], SHAPES[what] if i == changed else operand[1])
              for i, (name, operand) in enumerate(zip(names, operands)) if operand]
    graph = helper.make_graph([helper.make_node(op, names, ["y"], name="n", **attributes)], "ranks", inputs,
                              [helper.make_empty_tensor_value_info("y")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    done = run("uir-run", path, "--device", "vm", "--no-cache", "--limit-seconds", "5", "--limit-memory", "2G", timeout=120)
    suite.tell(done.returncode in (0, 3, 4) and (done.returncode == 0 or "error:" in done.stderr),
               f"{op}, operand {changed} of {what}: exit {done.returncode}: {done.stderr[:300]}")


def main():
    suite = Suite()
    with tempfile.TemporaryDirectory(prefix="uir-ranks-") as folder:
        for case in CASES:
            for changed, operand in enumerate(case[2:]):
                for what in SHAPES if operand else ():
                    check(suite, os.path.join(folder, "model.onnx"), case, changed, what)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
