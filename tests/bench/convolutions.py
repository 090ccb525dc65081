#!/usr/bin/env python3
"""Convolutions and pools from ONNX, each its kernel alone, beside the machine's multiply-adds or beside the same form by hand.

    convolutions.py [NAME...] [--other BIN] [--rounds 5] [--seconds 0.3] [--threads 1] [--bin DIR]

Every case is a model of one convolution or pool between two others of 1x1, compiled with --exact; what is timed is the kernel that
computes it, by --profile. `of FMA` is the share of what the
machine multiplies and adds, measured in the same process. Depthwise convolutions and pools are held against forms.c, which takes
turns with them; `of form` is its time by ours. With --other, another build takes turns as well, and `before` is its share.
"""
import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save_model

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN, ROOT  # noqa: E402


def conv(inputs, outputs, kernel, size, stride=1, groups=1):
    """Kernel, channels and the result's size; what is wanted of the multiply-adds is beside it in CASES."""
    return {"kind": "conv", "inputs": inputs, "outputs": outputs, "kernel": kernel, "size": size, "stride": stride, "groups": groups}


def depthwise(channels, kernel, size, stride=1):
    return {**conv(channels, channels, kernel, size, stride, channels), "form": "depthwise"}


def pool(kind, channels, kernel, size, stride=1):
    return {**conv(channels, channels, kernel, size, stride), "kind": kind, "form": kind}


OPERATORS = {"conv": "Conv", "max": "MaxPool", "average": "AveragePool"}
FEW = 16  # channels around what is timed
CASES = [
    ("3x3 64 at 56", conv(64, 64, 3, 56), 0.88), ("3x3 128 at 28", conv(128, 128, 3, 28), 0.88),
    ("3x3 256 at 14", conv(256, 256, 3, 14), 0.92), ("3x3 512 at 7", conv(512, 512, 3, 7), 0.92),
    ("3x3/2 128 at 28", conv(128, 128, 3, 28, 2), 0.85), ("3x3/2 256 at 14", conv(256, 256, 3, 14, 2), 0.85),
    ("3x3/2 512 at 7", conv(512, 512, 3, 7, 2), 0.72),
    ("1x1 64 to 256 at 56", conv(64, 256, 1, 56), 0.80), ("1x1 256 to 64 at 56", conv(256, 64, 1, 56), 0.85),
    ("1x1 512 to 128 at 28", conv(512, 128, 1, 28), 0.85), ("1x1 1024 to 256 at 14", conv(1024, 256, 1, 14), 0.85),
    ("1x1 2048 to 512 at 7", conv(2048, 512, 1, 7), 0.85), ("1x1 16 to 96 at 112", conv(16, 96, 1, 112), 0.60),
    ("1x1 32 to 192 at 28", conv(32, 192, 1, 28), 0.60), ("1x1 24 to 144 at 56", conv(24, 144, 1, 56), 0.60),
    ("7x7/2 3 to 64 at 112", conv(3, 64, 7, 112, 2), 0.78),
    ("3x3 groups of 32 at 28", conv(256, 256, 3, 28, 1, 8), 0.75), ("3x3 groups of 32 at 14", conv(512, 512, 3, 14, 1, 16), 0.75),
    ("depthwise 3x3 384 at 14", depthwise(384, 3, 14 + 2), 0.75), ("depthwise 3x3 96 at 112", depthwise(96, 3, 112), 0.75),
    ("depthwise 3x3/2 96 at 56", depthwise(96, 3, 56, 2), 0.75), ("depthwise 5x5 672 at 16", depthwise(672 - 32, 5, 16), 0.75),
    ("depthwise 5x5 96 at 112", depthwise(96, 5, 112), 0.75), ("depthwise 7x7 96 at 56", depthwise(96, 7, 56), 0.75),
    ("max 3x3/2 64 at 56", pool("max", 64, 3, 56, 2), 0.75), ("max 2x2/2 64 at 16", pool("max", 64, 2, 16, 2), 0.75),
    ("max 5x5 128 at 20", pool("max", 128, 5, 20), 0.75), ("average 3x3 64 at 112", pool("average", 64, 3, 112), 0.75),
]


def write_model(case, path):
    generator = np.random.default_rng(42)

    def weights(*shape):
        return generator.uniform(-0.5, 0.5, shape).astype(np.float32)

    kernel, stride, size = case["kernel"], case["stride"], case["size"]
    low = (kernel - 1) // 2
    image = size * stride
    high = (size - 1) * stride + kernel - image - low
    window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [low, low, max(high, 0), max(high, 0)]}
    constants = {"before": weights(case["inputs"], FEW, 1, 1), "after": weights(FEW, case["outputs"], 1, 1)}
    operator = OPERATORS[case["kind"]]
    extra = {"conv": {"group": case["groups"]}, "average": {"count_include_pad": 1}}.get(case["kind"], {})
    if case["kind"] == "conv":
        constants["w"] = weights(case["outputs"], case["inputs"] // case["groups"], kernel, kernel)
    first = case["inputs"] < FEW
    nodes = [] if first else [helper.make_node("Conv", ["x", "before"], ["a"])]
    nodes += [helper.make_node(operator, ["x" if first else "a", *(["w"] if "w" in constants else [])], ["b"], **window, **extra),
              helper.make_node("Conv", ["b", "after"], ["y"])]
    if first:
        del constants["before"]
    channels = case["inputs"] if first else FEW
    graph = helper.make_graph(nodes, "case", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, channels, image, image])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(value, name) for name, value in constants.items()])
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


@functools.cache
def exactly(folder):
    """--exact, where the build has another formula than the one that defines an operator."""
    answer = subprocess.run([os.path.join(folder, "uir-run"), "--help"], capture_output=True, text=True, check=True)
    return ["--exact"] if "--exact" in answer.stdout else []


def profile(arguments, folder, model, case):
    """Milliseconds and the share of multiply-adds of the kernels that compute the node."""
    words = [os.path.join(folder, "uir-run"), model, "--profile", "--json", "--no-vm", "--threads", str(arguments.threads),
             "--seconds", str(arguments.seconds), *exactly(folder)]
    answer = subprocess.run(words, capture_output=True, text=True, check=False)
    if answer.returncode:
        sys.exit(answer.stderr)
    found = json.loads(answer.stdout)
    nodes = [n for n in found["nodes"] if n["op"] == OPERATORS[case["kind"]] and n["flops"]]
    main = nodes[-2] if case["kind"] == "conv" else nodes[0]
    peak = found["profile"]["limits"]["flops_per_second"]
    flops = main["flops"]
    if case["kind"] == "conv":  # by its definition: what is outside is not multiplied, and counts
        flops = 2 * case["size"] ** 2 * case["outputs"] * case["inputs"] // case["groups"] * case["kernel"] ** 2
    return main["ms"], flops / (main["ms"] * 1e-3) / peak


def time_form(form, case, seconds):
    words = [form, case["form"], case["kernel"], case["stride"], case["inputs"], case["size"], case["size"], int(seconds * 1000)]
    return float(subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of the names of the cases to run (default: all)")
    parser.add_argument("--other", metavar="BIN", help="the programs of another build, which takes turns")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of a turn")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bin", default=BIN)
    arguments = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="uir-bench-") as scratch:
        form = os.path.join(scratch, "forms")
        subprocess.run(["cc", "-O3", "-march=native", "-ffp-contract=fast", os.path.join(ROOT, "tests", "bench", "forms.c"), "-o", form],
                       check=True)
        for number, (name, case, wanted) in enumerate(CASES):
            if arguments.names and not any(word in name for word in arguments.names):
                continue
            model = os.path.join(scratch, f"{number}.onnx")
            write_model(case, model)
            ours, before, forms = [], [], []
            for _ in range(arguments.rounds):
                ours.append(profile(arguments, arguments.bin, model, case))
                if arguments.other:
                    before.append(profile(arguments, arguments.other, model, case))
                if "form" in case:
                    forms.append(time_form(form, case, arguments.seconds))
            ms, share = (statistics.median(values) for values in zip(*ours))
            reached = statistics.median(forms) / ms if forms else share
            told = "" if not before else f"  before {statistics.median(v[0] for v in before):8.3f} ms"
            if before and not forms:
                told += f" {statistics.median(v[1] for v in before) * 100:5.1f}%"
            elif before:
                told += f" {statistics.median(forms) / statistics.median(v[0] for v in before) * 100:5.1f}%"
            missed += reached < wanted
            print(f"{name:<26} {ms:8.3f} ms  {'of form' if forms else 'of FMA '} {reached * 100:5.1f}%  target {wanted * 100:.0f}% "
                  f"{'met' if reached >= wanted else 'missed'}{told}", flush=True)
    print(f"{missed} missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
