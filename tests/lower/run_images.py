"""Random nets over images as ONNX models: convolutions, pools, resizes, concatenations, pads, slices, transposes, norms and
attention between them, each stage against the one before it.

usage: run_images.py [--count 60] [--seed 1] [--at-least TIMES] [--native EVERY] [--keep DIR] [-v]

A net has 1 to 3 spatial dims, of fixed or unknown sizes, a batch of 0 to 3, odd and even channels, and a few images that
operators are applied to, so that what lies with its channels innermost meets what does not. `uir-run --check` compares the
interpreter, the groups, the loops, the schedules, the iGraphs and the VM; of every so-many-th case (--native) the compiled
kernels too. In: the programs in $UIR_BIN. Out: a line per failure, how often each operator and each form of a convolution
was there, then `N passed, M failed, S skipped`; an operator or form met fewer than --at-least times is a failure."""
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, make_parser, run  # noqa: E402

CHANNELS = [1, 2, 3, 4, 7, 8, 9, 12, 16, 17, 24, 32, 33, 40, 48, 64, 65]
SIZES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 16, 17, 20, 28]
MOST = 3_000_000  # multiplications of a convolution, so that interpreters are done soon
TIMEOUT_S = 180
# What lowering makes of convolutions and pools, by what their kernels' text shows.
FORMS = {"windows": r"mma\.f32\S*\s+%\w+\[[^\n]*;[^\n]*fill 0", "joined": r"mma\.[^\n]*; \(u\d+<[^\n;]*, u\d+<[^\n;]*\), \(u",
         "apart": r"fill 0, %x1\[\w+(, \d+)+ ;", "winograd": r"%x\d+\[[pl]\d+, [pl]\d+, 0, 0\]",
         "across": r"%x0\[[^\n]*\][^\n\]]*, %x1\[u\d+, [^;\n\]]*; u\d+<\d+, u\d+<1\]",
         "bytes": r"mma\.i32", "half weights": r"mma\.f32\.f32\.b?f16", "lines": r"%rows\[\w+, \w+, \w+ ; \("}


class Image:
    def __init__(self, name, channels, sizes):
        self.name, self.channels, self.sizes = name, channels, sizes


class Net:
    def __init__(self, seed):
        self.random = r = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.nodes, self.initializers, self.inputs, self.dims = [], [], [], []
        self.counts = collections.Counter()
        self.rank = r.choices([1, 2, 3], [15, 78, 7])[0]
        self.batch = r.choices([0, 1, 2, 3], [4, 70, 18, 8])[0]
        most = {1: 28, 2: 17, 3: 6}[self.rank]
        sizes = [r.choice([s for s in SIZES if s <= most]) for _ in range(self.rank)]
        x = self.input(r.choice(CHANNELS), sizes)
        images = [x]
        for _ in range(r.randint(2, 7)):
            step = r.choices(STEPS, WEIGHTS)[0]
            made = step(self, r.choice(images[-3:]), images)
            if made:
                self.counts[step.__name__] += 1
                images.append(made)
        if len(images) == 1:
            made = conv(self, x, images)
            self.counts["conv" if made else "activation"] += 1
            images.append(made or activation(self, x, images))
        outputs = [images[-1]] + ([r.choice(images[1:])] if r.random() < 0.25 else [])
        outputs = list({i.name: i for i in outputs}.values())
        values = [helper.make_tensor_value_info(o.name, TensorProto.FLOAT, None) for o in outputs]
        graph = helper.make_graph(self.nodes, "g", self.inputs, values, self.initializers)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)

    def input(self, channels, sizes):
        declared = []
        for size in [self.batch] + sizes:
            symbolic = self.random.random() < 0.4 and (size != 0 or declared == [])
            name = f"s{len(self.dims)}"
            declared.append(name if symbolic else size)
            if symbolic:
                self.dims.append((name, size))
        self.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, [declared[0], channels] + declared[1:]))
        return Image("x", channels, sizes)

    def constant(self, shape, scale=1.0, positive=False):
        name = f"c{len(self.initializers)}"
        values = self.numbers.standard_normal(shape).astype(np.float32) * scale
        self.initializers.append(numpy_helper.from_array(np.abs(values) + 0.5 if positive else values, name))
        return name

    def weights(self, shape, scale):
        """Stored as halves now and then, which stay so until they are multiplied; or computed by the run."""
        if self.random.random() < 0.08:
            self.counts["computed weights"] += 1
            name = f"w{len(self.inputs)}"
            self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
            return self.node("Mul", [name, self.floats([scale])])
        name = self.constant(shape, scale)
        kind = self.random.choices([None, TensorProto.FLOAT16, TensorProto.BFLOAT16], [80, 14, 6])[0]
        if kind is None:
            return name
        wide = self.initializers.pop()
        self.initializers.append(helper.make_tensor(f"h{name}", kind, shape, numpy_helper.to_array(wide).flatten().tolist()))
        self.counts["halves"] += 1
        return self.node("Cast", [f"h{name}"], to=TensorProto.FLOAT)

    def ints(self, values):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def floats(self, values):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(values, np.float32), name))
        return name

    def numbered(self, values):
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, op, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name


def window(net, sizes, largest=5):
    """Kernel, strides, dilations and pads that leave something of every dim; None: not found."""
    r = net.random
    for _ in range(20):
        kernel = [r.choice([1, 1, 2, 3, 3, 3, 5][:7 if largest >= 5 else 6]) for _ in sizes]
        if r.random() < 0.6:
            kernel = [kernel[0]] * len(sizes)
        strides = [r.choice([1, 1, 1, 2, 3]) for _ in sizes]
        dilations = [r.choice([1, 1, 1, 1, 2]) for _ in sizes]
        low = [r.randint(0, k // 2 + (r.random() < 0.1)) for k in kernel]
        high = [r.randint(0, k // 2) if r.random() < 0.3 else p for k, p in zip(kernel, low)]
        out = [(s + l + h - d * (k - 1) - 1) // t + 1
               for s, l, h, d, k, t in zip(sizes, low, high, dilations, kernel, strides)]
        if min(out) >= 1:
            return kernel, strides, dilations, low + high, out
    return None


def conv(net, x, images):
    r = net.random
    found = window(net, x.sizes)
    if not found:
        return None
    kernel, strides, dilations, pads, out = found
    groups, channels = 1, r.choice(CHANNELS)
    kind = r.random()
    if kind < 0.25:
        groups, channels = x.channels, x.channels * r.choice([1, 1, 1, 2])
        net.counts["depthwise"] += 1
    elif kind < 0.35 and x.channels % 2 == 0:
        groups, channels = 2, 2 * r.choice([3, 8, 16])
        net.counts["groups"] += 1
    elif x.channels < 8 and r.random() < 0.6:
        channels = r.choice([1, 2, 3, 4, 6])
    work = max(net.batch, 1) * channels * (x.channels // groups) * int(np.prod(kernel)) * int(np.prod(out))
    if work > MOST:
        return None
    depth = x.channels // groups * int(np.prod(kernel))
    inputs = [x.name, net.weights([channels, x.channels // groups] + kernel, depth ** -0.5)]
    if r.random() < 0.5:
        inputs.append(net.constant([channels]))
    name = net.node("Conv", inputs, kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, group=groups)
    return Image(name, channels, out)


def quantised(net, x, images):
    """One or two convolutions of bytes. They are of the model's own image: of another, which stages round differently, bytes
    would be others."""
    r, x = net.random, images[0]
    found = window(net, x.sizes)
    if not found:
        return None
    kernel, strides, dilations, pads, out = found
    groups, channels = 1, r.choice(CHANNELS)
    if r.random() < 0.25:
        groups = channels = x.channels
    if max(net.batch, 1) * channels * (x.channels // groups) * int(np.prod(kernel)) * int(np.prod(out)) > MOST:
        return None
    image, filters = r.choice([np.uint8, np.int8]), r.choice([np.int8, np.int8, np.uint8])
    whole = lambda type, shape: net.numbers.integers(*((0, 256) if type == np.uint8 else (-128, 128)), shape).astype(type)
    zero = net.numbered(whole(image, []))
    q = net.node("QuantizeLinear", [x.name, net.numbered(np.float32(0.02)), zero])

    def convolve(q, depth, kernel, groups, **attributes):
        weights = whole(filters, [channels, depth // groups] + kernel)
        middle = net.numbered(filters(128 if filters == np.uint8 else r.choice([0, 3])))
        if r.random() < 0.3:
            name = net.node("ConvInteger", [q, net.numbered(weights), zero, middle], group=groups, **attributes)
            name = net.node("Mul", [net.node("Cast", [name], to=TensorProto.FLOAT), net.numbered(np.float32(1e-4))])
            return net.node("QuantizeLinear", [name, net.numbered(np.float32(0.02)), zero])
        each = net.numbered((net.numbers.random(channels) * 1e-2 + 1e-3).astype(np.float32))
        middles = net.numbered(np.zeros(channels, filters)) if filters == np.int8 else middle
        scales = [net.numbered(np.float32(0.02)), zero, net.numbered(weights), each if filters == np.int8 else net.numbered(np.float32(0.005)),
                  middles, net.numbered(np.float32(0.3)), zero]
        bias = [net.numbered(net.numbers.integers(-500, 500, channels).astype(np.int32))] if r.random() < 0.5 else []
        return net.node("QLinearConv", [q] + scales + bias, group=groups, **attributes)

    q = convolve(q, x.channels, kernel, groups, strides=strides, dilations=dilations, pads=pads)
    if r.random() < 0.5 and max(net.batch, 1) * channels * channels * int(np.prod(out)) < MOST:
        q = convolve(q, channels, [1] * len(kernel), 1)
    return Image(net.node("DequantizeLinear", [q, net.numbered(np.float32(0.05)), zero]), channels, out)


def plain(net, x, images):
    """Of 3 by 3, all neighbours, many channels: what Winograd's formula is for."""
    r = net.random
    channels, kernel = r.choice([24, 32, 33, 48, 64]), [3] * len(x.sizes)
    pads = [r.choice([0, 1, 1, 1, 2]) for _ in kernel * 2]
    out = [s + pads[i] + pads[len(kernel) + i] - 2 for i, s in enumerate(x.sizes)]
    if x.channels < 24:
        narrow = net.constant([channels, x.channels] + [1] * len(kernel), x.channels ** -0.5)
        x = Image(net.node("Conv", [x.name, narrow]), channels, x.sizes)
    if min(out) < 1 or max(net.batch, 1) * channels * x.channels * 9 * int(np.prod(out)) > MOST:
        return None
    weights = net.weights([channels, x.channels] + kernel, (x.channels * 3 ** len(kernel)) ** -0.5)
    return Image(net.node("Conv", [x.name, weights], kernel_shape=kernel, pads=pads), channels, out)


def conv_transpose(net, x, images):
    r = net.random
    kernel = [r.choice([2, 3, 4]) for _ in x.sizes]
    strides = [r.choice([1, 2, 2]) for _ in x.sizes]
    pads = [r.randint(0, 1) for _ in x.sizes] * 2
    out = [(s - 1) * t + k - 2 * p for s, t, k, p in zip(x.sizes, strides, kernel, pads)]
    groups = 2 if x.channels % 2 == 0 and r.random() < 0.2 else 1
    channels = groups * r.choice([1, 3, 8, 16])
    work = max(net.batch, 1) * channels * x.channels * int(np.prod(kernel)) * int(np.prod(out))
    if min(out) < 1 or work > MOST:
        return None
    weights = net.constant([x.channels, channels // groups] + kernel, (x.channels * int(np.prod(kernel))) ** -0.5)
    name = net.node("ConvTranspose", [x.name, weights], kernel_shape=kernel, strides=strides, pads=pads, group=groups)
    return Image(name, channels, out)


def pool(net, x, images):
    r = net.random
    found = window(net, x.sizes, 3)
    if not found:
        return None
    kernel, strides, _, pads, _ = found
    if any(p >= k for p, k in zip(pads, kernel * 2)):
        pads = [0] * len(pads)
    n = len(kernel)
    out = [(s + pads[i] + pads[n + i] - kernel[i]) // strides[i] + 1 for i, s in enumerate(x.sizes)]
    if min(out) < 1:
        return None
    op = r.choice(["MaxPool", "AveragePool"])
    return Image(net.node(op, [x.name], kernel_shape=kernel, strides=strides, pads=pads), x.channels, out)


def activation(net, x, images):
    return Image(net.node(net.random.choice(["Relu", "Sigmoid", "HardSwish", "Tanh", "Abs"]), [x.name]), x.channels, x.sizes)


def scale(net, x, images):
    r = net.random
    shape = [x.channels] + [1] * net.rank if r.random() < 0.7 else [1] * (net.rank + 1)
    return Image(net.node(r.choice(["Mul", "Add", "Sub"]), [x.name, net.constant(shape)]), x.channels, x.sizes)


def norm(net, x, images):
    r = net.random
    c = [x.channels]
    if r.random() < 0.6:
        stats = [net.constant(c), net.constant(c), net.constant(c), net.constant(c, positive=True)]
        return Image(net.node("BatchNormalization", [x.name] + stats), x.channels, x.sizes)
    return Image(net.node("InstanceNormalization", [x.name, net.constant(c), net.constant(c)]), x.channels, x.sizes)


def alike(net, x, images):
    return [i for i in images if i.sizes == x.sizes and i is not x]


def residual(net, x, images):
    others = [i for i in alike(net, x, images) if i.channels == x.channels]
    if not others:
        return None
    return Image(net.node(net.random.choice(["Add", "Mul"]), [x.name, net.random.choice(others).name]), x.channels, x.sizes)


def concat(net, x, images):
    others = alike(net, x, images) or [x]
    parts = [x] + [net.random.choice(others) for _ in range(net.random.randint(1, 2))]
    return Image(net.node("Concat", [p.name for p in parts], axis=1), sum(p.channels for p in parts), x.sizes)


def skip(net, x, images):
    """Beside itself, smaller and enlarged again: of sizes that the run tells, both are said to be the same."""
    if any(s % 2 for s in x.sizes):
        return None
    n = len(x.sizes)
    small = net.node("MaxPool", [x.name], kernel_shape=[2] * n, strides=[2] * n)
    mode = {"mode": "nearest"} if net.random.random() < 0.5 or n > 2 else {"mode": "linear"}
    large = net.node("Resize", [small, "", net.floats([1, 1] + [2] * n)], **mode)
    return Image(net.node("Concat", [x.name, large], axis=1), 2 * x.channels, x.sizes)


def gate(net, x, images):
    """What a squeeze of the pixels says of each channel."""
    mean = net.node("GlobalAveragePool", [x.name])
    weights = net.constant([x.channels, x.channels] + [1] * net.rank, x.channels ** -0.5)
    return Image(net.node("Mul", [x.name, net.node("Sigmoid", [net.node("Conv", [mean, weights])])]), x.channels, x.sizes)


def resize(net, x, images):
    r = net.random
    factors = [r.choice([1, 2, 2]) for _ in x.sizes]
    if np.prod(factors) * np.prod(x.sizes) > 2000:
        return None
    mode = r.choice(["nearest", "linear"])
    name = net.node("Resize", [x.name, "", net.floats([1, 1] + factors)], mode=mode,
                    coordinate_transformation_mode="asymmetric" if mode == "nearest" else "half_pixel",
                    **({"nearest_mode": "floor"} if mode == "nearest" else {}))
    return Image(name, x.channels, [s * f for s, f in zip(x.sizes, factors)])


def pad(net, x, images):
    r = net.random
    low, high = [r.randint(0, 2) for _ in x.sizes], [r.randint(0, 2) for _ in x.sizes]
    mode = r.choice(["constant", "constant", "edge", "reflect"])
    if mode == "reflect" and min(x.sizes) < 3:
        mode = "edge"
    name = net.node("Pad", [x.name, net.ints([0, 0] + low + [0, 0] + high)], mode=mode)
    return Image(name, x.channels, [s + l + h for s, l, h in zip(x.sizes, low, high)])


def cut(net, x, images):
    r = net.random
    axis = r.randrange(net.rank + 1)
    extent = ([x.channels] + x.sizes)[axis]
    if extent < 2:
        return None
    start = r.randrange(extent - 1)
    end, step = r.randint(start + 1, extent), r.choice([1, 1, 2])
    name = net.node("Slice", [x.name, net.ints([start]), net.ints([end]), net.ints([axis + 1]), net.ints([step])])
    left = (end - start + step - 1) // step
    return Image(name, left if axis == 0 else x.channels, [left if i + 1 == axis else s for i, s in enumerate(x.sizes)])


def channels_last(net, x, images):
    """A norm over the channels, as nets with channels last have it, and back."""
    there = [0] + list(range(2, net.rank + 2)) + [1]
    back = [0, net.rank + 1] + list(range(1, net.rank + 1))
    moved = net.node("Transpose", [x.name], perm=there)
    normed = net.node("LayerNormalization", [moved, net.constant([x.channels]), net.constant([x.channels])], axis=-1)
    if net.random.random() < 0.5:
        normed = net.node("MatMul", [normed, net.constant([x.channels, x.channels], x.channels ** -0.5)])
    return Image(net.node("Transpose", [normed], perm=back), x.channels, x.sizes)


def shuffle(net, x, images):
    groups = next((g for g in (2, 3, 4) if x.channels % g == 0), None)
    if not groups or any(size == 0 for size in x.sizes) or net.batch == 0:
        return None
    zeros = [0] * 1
    apart = net.node("Reshape", [x.name, net.ints(zeros + [groups, x.channels // groups] + [-1])])
    moved = net.node("Transpose", [apart], perm=[0, 2, 1, 3])
    shape = net.node("Shape", [x.name])
    return Image(net.node("Reshape", [moved, shape]), x.channels, x.sizes)


def attention(net, x, images):
    """Each pixel among all of them."""
    if np.prod(x.sizes) > 200 or net.batch == 0:
        return None
    flat = net.node("Reshape", [x.name, net.ints([0, x.channels, -1])])
    tokens = net.node("Transpose", [flat], perm=[0, 2, 1])
    c = x.channels
    q, k, v = (net.node("MatMul", [tokens, net.constant([c, c], c ** -0.5)]) for _ in range(3))
    scores = net.node("Softmax", [net.node("MatMul", [q, net.node("Transpose", [k], perm=[0, 2, 1])])], axis=-1)
    mixed = net.node("Transpose", [net.node("MatMul", [scores, v])], perm=[0, 2, 1])
    back = net.node("Reshape", [mixed, net.node("Shape", [x.name])])
    return Image(net.node("Add", [x.name, back]), c, x.sizes)


def reduce(net, x, images):
    axes = net.random.choice([[1], list(range(2, net.rank + 2)), [2]])
    op = net.random.choice(["ReduceMean", "ReduceMax", "ReduceSum"])
    inputs = [x.name, net.ints(axes)] if op == "ReduceSum" else [x.name]
    attributes = {} if op == "ReduceSum" else {"axes": axes}
    if op != "ReduceSum":
        inputs, attributes = [x.name, net.ints(axes)], {}
    net.needs_18 = True
    made = net.node(op, inputs, keepdims=1, **attributes)
    return Image(net.node("Add", [x.name, made]), x.channels, x.sizes)  # their difference has a mean of nearly nothing


STEPS = [conv, quantised, plain, conv_transpose, pool, activation, scale, norm, residual, concat, skip, gate, resize, pad, cut, channels_last, shuffle,
         attention, reduce]
WEIGHTS = [40, 7, 12, 6, 8, 8, 6, 6, 8, 7, 8, 4, 5, 5, 5, 4, 3, 3, 4]


class Outcome:
    def __init__(self, seed, native, folder):
        net = Net(seed)
        self.seed, self.counts, self.failure, self.forms = seed, net.counts, None, set()
        self.path = os.path.join(folder, f"{seed}.onnx")
        onnx.save(net.model, self.path)
        sizes = [word for name, size in net.dims for word in ("--dim", f"{name}={size}")]
        device = ["--device", "cpu", "--no-vm"] if native else ["--device", "vm"]
        try:
            done = run("uir-run", self.path, *sizes, *device, "--no-cache", "--check", "--random", seed % 1000, timeout=TIMEOUT_S)
            text = run("uir-opt", self.path, "--after", "igraph", timeout=TIMEOUT_S).stdout
        except subprocess.TimeoutExpired:
            self.failure = f"takes more than {TIMEOUT_S} s"
            return
        if done.returncode:
            self.failure = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0]
        elif "interpreter runs the model" in done.stderr:
            self.failure = done.stderr.strip().splitlines()[0]
        self.forms = {form for form, pattern in FORMS.items() if re.search(pattern, text)}
        if not self.failure:
            os.remove(self.path)


def main():
    parser = make_parser(__doc__, count=60, seed=1, keep=None)
    parser.add_argument("--at-least", type=int, default=0, metavar="TIMES")
    parser.add_argument("--native", type=int, default=20, metavar="EVERY")
    parser.add_argument("-v", action="store_true")
    arguments = parser.parse_args()
    counts, forms, suite = collections.Counter(), collections.Counter(), Suite()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool_of_threads:
        cases = [pool_of_threads.submit(Outcome, seed, arguments.native and i % arguments.native == 0, folder)
                 for i, seed in enumerate(range(arguments.seed, arguments.seed + arguments.count))]
        for case in cases:
            o = case.result()
            counts.update(o.counts)
            forms.update(o.forms)
            if not suite.tell(not o.failure, f"seed {o.seed}: {o.failure}"):
                if arguments.keep:
                    os.makedirs(arguments.keep, exist_ok=True)
                    shutil.copy(o.path, arguments.keep)
            elif arguments.v:
                print(f"seed {o.seed}: {dict(o.counts)} {sorted(o.forms)}", flush=True)
    rare = [f"{name} ({n} times)" for name, n in [(s.__name__, counts[s.__name__]) for s in STEPS] +
            [(f, forms[f]) for f in FORMS] if n < arguments.at_least]
    print("operators: " + ", ".join(f"{n} {c}" for n, c in sorted(counts.items())) +
          "; nets with a form: " + ", ".join(f"{f} {forms[f]}" for f in FORMS))
    for name in rare:
        suite.tell(False, f"{name} is met too rarely")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
