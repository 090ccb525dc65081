#!/usr/bin/env python3
"""Layouts of graph values say where elements lie and not what they are: a text whose inner values have other layouts,
permuted, padded and split, gives the same results on every engine, or is refused with a reason. Between groups they are
memory alone, and all bits are those of the text without them. Before there are groups they say the order of loops too, by
which sums may have another one: then kernels have the same bits on each engine, which agree with the plain text's.

In: the programs in $UIR_BIN. Arguments: --count N texts (default 12), --seed, --at-least PERCENT of them compile
(default 80). Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import os
import random
import re
import sys
import tempfile

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import OPT, expect, make_parser, run, run_tests  # noqa: E402

ENGINES = [(), ("--after", "loop"), ("--after", "schedule"), ("--after", "igraph"), ("--device", "vm"),
           ("--device", "cpu")]
KERNELS = ENGINES[3:]
options = None

# Each with weights by name and shape; sizes that a run tells, and those that are numbers.
MODELS = {
    "images": ("""g (float[N, 3, 12, 12] x) => (float[N, A] y, float[N, B, C] z) {
    a = Conv <pads = [1, 1, 1, 1]> (x, w16_3_3_3, b16)
    b = Relu (a)
    c = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (b)
    d = Conv <pads = [1, 1, 1, 1]> (c, w24_16_3_3)
    e = Sigmoid (d)
    f = Mul (d, e)
    h = Transpose <perm = [0, 2, 3, 1]> (f)
    shape = Constant <value_ints = [-1, 36, 24]> ()
    i = Reshape (h, shape)
    j = MatMul (i, w24_40)
    k = Softmax <axis = -1> (j)
    l = MatMul (k, w40_24)
    z = LayerNormalization (l, b24, c24)
    ax = Constant <value_ints = [1]> ()
    y = ReduceMean <keepdims = 0> (z, ax)
}""", {"x": (2, 3, 12, 12)}),
    "sequences": ("""g (float[N, T, 32] x, int64[N, 5] i) => (float[N, T, A] y, float[N, 5, B] z, float[C, D] t) {
    a = MatMul (x, w32_48)
    b = Erf (a)
    c = Transpose <perm = [1, 0, 2]> (b)
    axis = Constant <value_int = 0> ()
    d = CumSum (c, axis)
    e = Concat <axis = 2> (d, c)
    f = Transpose <perm = [1, 0, 2]> (e)
    y = Softmax <axis = 1> (f)
    h = Gather <axis = 0> (w40_24, i)
    k = Mul (h, b24)
    z = Tanh (k)
    l = Transpose <perm = [2, 1, 0]> (k)
    axes = Constant <value_ints = [1]> ()
    t = ReduceMax <keepdims = 0> (l, axes)
}""", {"x": (3, 7, 32), "i": (3, 5)}),
    "attention": ("""g (float[N, T, 48] x) => (float[N, T, A] y) {
    shape = Constant <value_ints = [0, 0, 4, 12]> ()
    back = Constant <value_ints = [0, 0, 48]> ()
    q0 = MatMul (x, w48_48)
    k0 = MatMul (x, u48_48)
    v0 = MatMul (x, t48_48)
    q1 = Reshape (q0, shape)
    k1 = Reshape (k0, shape)
    v1 = Reshape (v0, shape)
    q = Transpose <perm = [0, 2, 1, 3]> (q1)
    k = Transpose <perm = [0, 2, 3, 1]> (k1)
    v = Transpose <perm = [0, 2, 1, 3]> (v1)
    s = MatMul (q, k)
    p = Softmax <axis = -1> (s)
    o = MatMul (p, v)
    r = Transpose <perm = [0, 2, 1, 3]> (o)
    m = Reshape (r, back)
    n = MatMul (m, w48_48)
    y = Add (n, x)
}""", {"x": (2, 9, 48)}),
}


def save_model(path, text):
    rng = np.random.default_rng(1)
    graph = onnx.parser.parse_graph(text)
    for name in sorted(set(re.findall(r"\b[a-z]\d+(?:_\d+)*\b", text))):
        shape = [int(d) for d in name[1:].split("_")]
        if any(name in node.output for node in graph.node):
            continue
        data = (rng.standard_normal(shape) * 0.3).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(data, name))
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9), path)


# ---- layouts ----
def times(factors):
    number = int(np.prod([int(f) for f in factors if f.isdigit()]))
    words = [f"({f})" for f in factors if not f.isdigit()]
    return "*".join(([str(number)] if number != 1 or not words else []) + words)


def make_layout(rng, dims):
    """Modes in some order; where all that lies inside is a number there may be room behind it."""
    modes = []
    for d, extent in enumerate(dims):
        block = rng.choice([2, 4, 8])
        if extent.isdigit() and int(extent) > block and rng.random() < 0.3:
            modes += [(d, 0, str(block)), (d, 1, str(-(-int(extent) // block)))]
        else:
            modes.append((d, 0, extent))
    split = any(m[1] for m in modes)
    if rng.random() < 0.8:
        rng.shuffle(modes)
    else:
        modes.reverse()
    inside, strides = [], {}
    for d, part, size in modes:
        strides[d, part] = times(inside)
        inside.append(size)
        if rng.random() < 0.2 and all(f.isdigit() for f in inside):
            inside = [str(int(times(inside)) + rng.choice([1, 8, 16]))]
    sizes = {(d, part): size for d, part, size in modes}

    def half(of):
        parts = [[of[key] for key in sorted(of) if key[0] == d] for d in range(len(dims))]
        return "(" + ", ".join(p[0] if len(p) == 1 else "(" + ", ".join(p) + ")" for p in parts) + ")"
    return (":" + half(sizes) if split else "") + ":" + half(strides)


DECLARED = re.compile(r"^    (%\w+)(?: \"[^\"]*\")?: (?:f32|i64|bool)\[([^\]\n]+)\](?= = )", re.M)


def split_dims(text):
    """Dims at the commas outside parentheses."""
    dims, depth = [""], 0
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            dims.append("")
        else:
            dims[-1] += c
    return [d.strip() for d in dims]


def lay_out(rng, text, share):
    outputs = re.search(r"^    return (.*)$", text, re.M).group(1).split(", ")
    count = 0

    def edit(found):
        nonlocal count
        line = text[found.start():text.find("\n", found.end())]
        host = re.search(r"= (dim_values|bind_dims|check_|if|loop)\b", line)
        if found.group(1) in outputs or host or rng.random() > share:
            return found.group(0)
        count += 1
        return found.group(0) + make_layout(rng, split_dims(found.group(2)))
    return DECLARED.sub(edit, text), count


# ---- runs ----
def outputs_of(path, folder, engine, inputs):
    given = [word for name, file in inputs.items() for word in ("--input", f"{name}={file}")]
    exact = ["--exact"] if path.endswith(".onnx") else []  # as the texts are, which are without other formulas
    done = run(OPT, path, "--run", *exact, *engine, *given, "--save", folder)
    if done.returncode:
        return None, done
    return {name[:-4]: np.load(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}, done


def same(got, wanted):
    return got.keys() == wanted.keys() and all(
        got[name].dtype == wanted[name].dtype and got[name].tobytes() == wanted[name].tobytes() for name in wanted)


def agree(got, wanted):
    return got.keys() == wanted.keys() and all(
        got[name].dtype == wanted[name].dtype and got[name].shape == wanted[name].shape and
        np.allclose(got[name], wanted[name], rtol=1e-4, atol=1e-5) for name in wanted)


def count_layouts(text):
    return len(re.findall(r"^    %\w+[^=\n]*\]:\(", text, re.M))


def check_text(path, stage, what, count):
    """What is printed has all layouts, and reads back as it is."""
    texts = []
    for _ in range(2):
        done = run(OPT, path, "--after", stage, "--exact", "--constants", "inline")
        expect(done.returncode == 0, f"{what} after {stage}: {done.err}")
        texts.append(done.out)
        with open(path, "w", encoding="utf-8") as file:
            file.write(done.out)
    expect(texts[0] == texts[1], f"{what} after {stage} reads back as something else")
    expect(count_layouts(texts[0]) == count, f"{what} after {stage} lost layouts")


def test_layouts():
    rng = random.Random(options.seed)
    compiled = refused = 0
    with tempfile.TemporaryDirectory(prefix="uir-layouts-") as folder:
        texts, wanted, inputs = {}, {}, {}
        for name, (text, shapes) in MODELS.items():
            path = os.path.join(folder, name + ".onnx")
            save_model(path, text)
            inputs[name] = {}
            for k, (value, shape) in enumerate(shapes.items()):
                data = np.random.default_rng(k).standard_normal(shape).astype(np.float32)
                file = os.path.join(folder, f"{name}_{value}.npy")
                np.save(file, data if value != "i" else np.abs(data * 9).astype(np.int64))
                inputs[name][value] = file
            for stage in ("drop-dead", "fusion"):
                done = run(OPT, path, "--after", stage, "--exact", "--constants", "inline")
                expect(done.returncode == 0, f"{name} after {stage}", done)
                texts[name, stage] = done.out
            for engine in ENGINES:
                into = os.path.join(folder, f"{name}_{'_'.join(engine)}")
                wanted[name, engine], done = outputs_of(path, into, engine, inputs[name])
                expect(wanted[name, engine] is not None, f"{name} by {engine}", done)
        cases = sorted(texts)
        for i in range(options.count):
            name, stage = cases[i % len(cases)]
            text, count = lay_out(rng, texts[name, stage], rng.choice([0.1, 0.3, 1]))
            if not count:
                continue
            path = os.path.join(folder, f"{i}.txt")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            if options.keep:
                with open(os.path.join(options.keep, f"{i}_{name}.txt"), "w", encoding="utf-8") as file:
                    file.write(text)
            check_text(path, stage, f"text {i} of {name}", count + count_layouts(texts[name, stage]))
            kernels = None
            for k, engine in enumerate(ENGINES):
                got, done = outputs_of(path, os.path.join(folder, f"{i}_{k}"), engine, inputs[name])
                if re.search(r"has no kernel: the layout|has a layout", done.err):
                    refused += 1
                    print(f"refused: text {i} of {name} after {stage} by {engine}: {done.err.strip()}")
                    continue
                expect(got is not None, f"text {i} of {name} after {stage} by {engine}: {done.err}")
                if stage == "fusion" or not engine:
                    expect(same(got, wanted[name, engine]), f"text {i} of {name} after {stage}: other bits by {engine}")
                expect(agree(got, wanted[name, engine]), f"text {i} of {name} after {stage}: other results by {engine}")
                if engine in KERNELS:
                    expect(kernels is None or same(got, kernels), f"text {i} of {name} after {stage}: other bits by {engine}")
                    kernels = got
                compiled += 1
    print(f"{compiled} runs, {refused} refused")
    expect(compiled * 100 >= options.at_least * (compiled + refused), "too much is refused", None)


if __name__ == "__main__":
    parser = make_parser(__doc__, count=12, seed=1)
    parser.add_argument("--at-least", type=int, default=80)
    parser.add_argument("--keep", help="a folder for the texts")
    options = parser.parse_args()
    sys.exit(run_tests({"test_layouts": test_layouts}, []))
