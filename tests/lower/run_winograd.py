"""Winograd's formula beside f64: how far results are from what the convolution is, next to the direct form's.

usage: run_winograd.py [--count 60] [--seed 1] [-v]

Random convolutions of 3 by 3 (channels, filters, sizes, paddings, batches; weights and images of several magnitudes), ten of
them a model, by the VM, which computes what compiled kernels do to the bit: with the formula, and with --exact without it.
The greatest error is a part of the greatest result: MOST of it at most. What makes results of the products has the channels
innermost, also where the model wants them row-major. In: the programs in $UIR_BIN. Out: a line per
failure, the greatest error of both forms, then `N passed, M failed, S skipped`."""
import os
import random
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, make_parser, run  # noqa: E402

TOGETHER = 10
MOST = 2e-6


class Case:
    def __init__(self, r, numbers):
        self.batch, self.channels = r.choice([1, 1, 1, 2]), r.choice([32, 48, 64, 65, 96, 128])
        self.filters, self.sizes = r.choice([32, 33, 48, 64]), [r.randint(6, 15), r.randint(6, 15)]
        self.pads = [r.choice([0, 1, 1, 1, 2]) for _ in range(4)]
        shape = [self.batch, self.channels] + self.sizes
        self.image = numbers.standard_normal(shape).astype(np.float32) * r.choice([1, 1, 100, 1e-3])
        if r.random() < 0.3:
            self.image = np.abs(self.image)  # what follows a ReLU
        weights = numbers.standard_normal([self.filters, self.channels, 3, 3]) * r.choice([1, 0.03, 1e-4])
        self.weights = weights.astype(np.float32)

    def in_f64(self):
        top, left, bottom, right = self.pads
        x = np.pad(self.image.astype(np.float64), [(0, 0), (0, 0), (top, bottom), (left, right)])
        height, width = x.shape[2] - 2, x.shape[3] - 2
        return sum(np.einsum("nchw,oc->nohw", x[:, :, i:i + height, j:j + width], self.weights[:, :, i, j].astype(np.float64))
                   for i in range(3) for j in range(3))


def build(cases, path):
    nodes, inputs, outputs, initializers = [], [], [], []
    for i, c in enumerate(cases):
        nodes.append(helper.make_node("Conv", [f"x{i}", f"w{i}"], [f"y{i}"], kernel_shape=[3, 3], pads=c.pads))
        inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, c.image.shape))
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, None))
        initializers.append(numpy_helper.from_array(c.weights, f"w{i}"))
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def errors(cases, model, folder, exact):
    """Of each convolution, the greatest error as a part of the greatest result."""
    words = []
    for i, c in enumerate(cases):
        np.save(os.path.join(folder, f"x{i}.npy"), c.image)
        words += ["--input", f"x{i}={os.path.join(folder, f'x{i}.npy')}"]
    done = run("uir-run", model, *words, "--device", "vm", "--no-cache", "--quiet", "--save", folder, "--format", "npy",
               *(["--exact"] if exact else []))
    if done.returncode:
        raise RuntimeError(done.stderr)
    for i, c in enumerate(cases):
        wanted = c.in_f64()
        got = np.load(os.path.join(folder, f"y{i}.npy")).astype(np.float64)
        yield np.abs(got - wanted).max() / np.abs(wanted).max()


def turned(model):
    """Of the kernels that make results of products, how many write another dim than the channels side by side: then each of
    the elements that they read would be read by itself."""
    count = 0
    for group in run("uir-opt", model, "--after", "fusion").stdout.split("= group(")[1:]:
        result = re.search(r"^ *return %(\w+)$", group, re.M).group(1)
        if "= slice(" in group and "steps = [1, 3, 1, 1, 1, 1]" in group:
            count += not re.search(rf"%{result}: f32\[[^]]*\]:\(\d+, 1, ", group)
    return count


def main():
    parser = make_parser(__doc__, count=60, seed=1)
    parser.add_argument("-v", action="store_true")
    options = parser.parse_args()
    suite = Suite()
    greatest = {False: 0.0, True: 0.0}
    for first in range(0, options.count, TOGETHER):
        seed = options.seed + first
        r, numbers = random.Random(seed), np.random.default_rng(seed)
        cases = [Case(r, numbers) for _ in range(min(TOGETHER, options.count - first))]
        with tempfile.TemporaryDirectory() as folder:
            model = os.path.join(folder, "m.onnx")
            build(cases, model)
            direct = run("uir-opt", model, "--after", "winograd").stdout.count("= conv(")
            turns = turned(model)
            try:
                by = {exact: list(errors(cases, model, folder, exact)) for exact in (False, True)}
            except RuntimeError as error:
                print(f"FAILED seed {seed}: {error}")
                suite.add(0, len(cases))
                continue
        if direct:
            print(f"FAILED seed {seed}: {direct} of {len(cases)} convolutions are computed directly")
            suite.add(0, direct)
        if turns:
            print(f"FAILED seed {seed}: {turns} of {len(cases)} results are made in another order than that of their channels")
            suite.add(0, turns)
        for i, error in enumerate(by[False]):
            for exact in by:
                greatest[exact] = max(greatest[exact], by[exact][i])
            if options.v:
                print(f"    seed {seed}, {i}: {error:.2e}, directly {by[True][i]:.2e}")
            c = cases[i]
            suite.tell(error <= MOST, f"seed {seed}, {i}: {error:.2e} of the greatest result, {c.channels} channels to {c.filters}, "
                                      f"{c.sizes}, padded {c.pads}; directly {by[True][i]:.2e}")
    print(f"greatest error {greatest[False]:.2e} of the greatest result, directly {greatest[True]:.2e}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
