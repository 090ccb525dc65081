"""A product in each of ONNX's spellings: one group, whose kernels have `mma`.

usage: run_spellings.py [NAME...]

In: uir-opt in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`. What random models of this kind
compute is run_products.py's part."""
import os
import re
import sys
import tempfile

import onnx
from onnx import parser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, run  # noqa: E402

# name, inputs, output, initializers, nodes; 40 rows, 48 columns, 24 that are summed
SPELLINGS = [
    ("matmul", "float[40,24] a, float[24,48] b", "float[40,48] y", "", "y = MatMul(a, b)"),
    ("transposed", "float[24,40] a, float[48,24] b", "float[40,48] y", "",
     "s = Transpose<perm=[1,0]>(a) t = Transpose<perm=[1,0]>(b) y = MatMul(s, t)"),
    ("gemm", "float[24,40] a, float[48,24] b, float[48] c", "float[40,48] y", "",
     "y = Gemm<transA=1, transB=1, alpha=0.5, beta=2.0>(a, b, c)"),
    ("batched", "float[3,40,24] a, float[3,24,48] b", "float[3,40,48] y", "", "y = MatMul(a, b)"),
    ("broadcast", "float[3,1,40,24] a, float[2,24,48] b", "float[3,2,40,48] y", "", "y = MatMul(a, b)"),
    ("symbolic", "float[M,24] a, float[24,N] b", "float[M,N] y", "", "y = MatMul(a, b)"),
    ("einsum", "float[40,24] a, float[48,24] b", "float[48,40] y", "", 'y = Einsum<equation="ik,jk->ji">(a, b)'),
    ("einsum, batched", "float[3,24,40] a, float[24,3,48] b", "float[3,40,48] y", "",
     'y = Einsum<equation="bki,kbj->bij">(a, b)'),
    ("mul and sum", "float[40,24,1] a, float[1,24,48] b", "float[40,48] y", "int64[1] axes = {1}",
     "p = Mul(a, b) y = ReduceSum<keepdims=0>(p, axes)"),
    ("mul and sum of the last", "float[40,1,24] a, float[48,24] b", "float[40,48] y", "int64[1] axes = {2}",
     "p = Mul(a, b) y = ReduceSum<keepdims=0>(p, axes)"),
    ("mul and sum, unsqueezed", "float[40,24] a, float[24,48] b", "float[40,48] y",
     "int64[1] last = {2}, int64[1] first = {0}, int64[1] axes = {1}",
     "s = Unsqueeze(a, last) t = Unsqueeze(b, first) p = Mul(s, t) y = ReduceSum<keepdims=0>(p, axes)"),
    ("mul and sum of two axes", "float[40,4,6,1] a, float[4,6,48] b", "float[40,48] y", "int64[2] axes = {1, 2}",
     "p = Mul(a, b) y = ReduceSum<keepdims=0>(p, axes)"),
    ("scaled", "float[40,24,1] a, float[1,24,48] b, float[40,1,1] s", "float[40,48] y", "int64[1] axes = {1}",
     "q = Mul(a, s) p = Mul(q, b) y = ReduceSum<keepdims=0>(p, axes)"),
    ("reshapes between", "float[5,8,24] a, float[24,48] b", "float[5,8,6,8] y", "int64[2] flat = {40, 24}, int64[4] out = {5, 8, 6, 8}",
     "s = Reshape(a, flat) p = MatMul(s, b) y = Reshape(p, out)"),
]


def check(name, inputs, output, initializers, nodes, folder):
    constants = f" <{initializers}>" if initializers else ""
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({output}){constants} {{ {nodes} }}'
    path = os.path.join(folder, "model.onnx")
    onnx.save(parser.parse_model(text), path)
    done = run("uir-opt", path, "--after", "igraph")
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr.strip()}"
    groups, kernels = len(re.findall(r"= group\(", done.stdout)), done.stdout.split("\nigraph @")[1:]
    without = [kernel.split()[0] for kernel in kernels if not re.search(r"^\s*mma\b", kernel, re.M)]
    if groups != 1 or not kernels or without:
        return f"{groups} groups, {len(kernels)} kernels, without mma: {', '.join(without) or 'none'}"
    return None


def main():
    suite = Suite()
    with tempfile.TemporaryDirectory() as folder:
        for row in SPELLINGS:
            if not sys.argv[1:] or row[0] in sys.argv[1:]:
                said = check(*row, folder)
                suite.tell(said is None, f"{row[0]}: {said}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
