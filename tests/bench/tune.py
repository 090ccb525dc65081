#!/usr/bin/env python3
"""uir-tune: from ten products whose tiles were spoiled, or from what the compiler chooses for given models; then the kernels that
were tuned beside those that were not, taking turns.

    tune.py [MODEL.onnx...] [--seconds 60] [--threads N] [--rounds 9] [--bin DIR]

`spoiled` and `tuned` are the time of a kernel's launches in one run, the least of the rounds' medians; `chosen` is that of the
tiles that the compiler chooses by itself, and `ratio` is its time by the tuned one's, the median of the rounds: 0.95 and more is
wanted of each kernel. Records begin with an empty cache. Exit 1 where an output of the tuned model has other bits.
"""
import argparse
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN  # noqa: E402

SHAPES = ((256, 512, 512), (512, 256, 1024), (128, 1024, 512), (768, 384, 384), (384, 640, 320), (200, 768, 768), (1024, 128, 512),
          (320, 512, 640), (1920, 320, 96), (1536, 512, 64))  # rows, depth, columns; every second one by a constant
NOTHING = "records 1\n"


def write_products(path):
    g = np.random.default_rng(42)
    nodes, inputs, outputs, constants = [], [], [], []
    for i, (m, k, n) in enumerate(SHAPES):
        inputs.append(helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [m, k]))
        if i % 2:
            constants.append(numpy_helper.from_array(g.uniform(-1, 1, (k, n)).astype(np.float32), f"w{i}"))
        else:
            inputs.append(helper.make_tensor_value_info(f"w{i}", TensorProto.FLOAT, [k, n]))
        nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"]),
                  helper.make_node("Relu" if i % 3 else "Tanh", [f"p{i}"], [f"y{i}"])]
        outputs.append(helper.make_tensor_value_info(f"y{i}", TensorProto.FLOAT, [m, n]))
    graph = helper.make_graph(nodes, "products", inputs, outputs, constants)
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def spoil(text):
    """Legal records for the same kernels: one row at a time, and eight of the summed axis."""
    spoiled = NOTHING
    for digest, body in re.findall(r'record "(\w+)" \{(.*?)\n\}', text, re.S):
        depth, tile = "depth 8 " if "depth" in body else "", "1 x 32" if " x " in body else "1"
        spoiled += f'record "{digest}" {{ {depth}tile {tile} }}\n'
    return spoiled


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.cache = ["--cache", os.path.join(folder, "cache")]
        self.threads = ["--threads", str(options.threads)] if options.threads else []

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        return self.path(name)

    def run(self, program, *words):
        done = subprocess.run([os.path.join(self.options.bin, program), *words, *self.threads], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{program} {' '.join(words)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def kernels(self, model, records):
        """Milliseconds of each kernel's launches."""
        told = json.loads(self.run("uir-run", model, "--records", records, "--no-vm", "--profile", "--json", "--seconds", "1", *self.cache))
        times = {}
        for node in told["nodes"]:
            times[node["kernel"]] = times.get(node["kernel"], 0) + node["ms"]
        return times

    def outputs(self, model, records):
        folder = self.path("outputs")
        self.run("uir-run", model, "--records", records, "--no-vm", "--quiet", "--save", folder, *self.cache)
        return [open(f, "rb").read() for f in sorted(glob.glob(os.path.join(folder, "output_*")))]


def measure(bench, model, spoils):
    nothing, tuned, start = bench.write("nothing", NOTHING), bench.path("tuned"), []
    if spoils:
        everything = bench.path("everything")
        bench.run("uir-tune", model, "--no-cache", "--seconds", "0.001", "--quiet", "--save", everything)
        start = ["--records", bench.write("spoiled", spoil(open(everything).read()))]
    print(bench.run("uir-tune", model, "--seconds", str(bench.options.seconds), "--save", tuned, *start, *bench.cache), end="")
    sides = [nothing, tuned] + start[1:]
    rounds = [[bench.kernels(model, side) for side in sides] for _ in range(bench.options.rounds)]
    names = re.findall(r"^# (\w+)$", open(tuned).read(), re.M)
    print(f"{'kernel':24} {'chosen':>10} {'tuned':>10} {'ratio':>6}" + (f" {'spoiled':>10}" if spoils else ""))
    ratios = []
    for name in names:
        ratios.append(statistics.median(turn[0][name] / turn[1][name] for turn in rounds))
        least = [min(turn[i][name] for turn in rounds) for i in range(len(sides))]
        print(f"{name:24} {least[0]:8.3f}ms {least[1]:8.3f}ms {ratios[-1]:6.2f}" + (f" {least[2]:8.3f}ms" if spoils else ""))
    if ratios:
        print(f"geometric mean {statistics.geometric_mean(ratios):.2f}, the least {min(ratios):.2f}")
    same = bench.outputs(model, nothing) == bench.outputs(model, tuned)
    if not same:
        print("the tuned model's outputs have other bits")
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--bin", default=BIN)
    options = parser.parse_args()
    same = True
    with tempfile.TemporaryDirectory(prefix="uir-bench-") as folder:
        bench = Bench(options, folder)
        products = os.path.join(folder, "products.onnx")
        write_products(products)
        for model in options.models or [products]:
            same = measure(bench, model, not options.models) and same
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
