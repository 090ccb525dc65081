#!/usr/bin/env python3
"""Kernels for machines that are descriptions: `run_described.py [--all]`.

For each of this build's described devices, and the chips that differ in what they can do: every group of the models gets
a verified kernel, with its waits where pipes run apart; interpreted, the models give their reference outputs by kernels
and host operators alone; so do operators and products at sizes about the tiles, held to NumPy. Of kernels with waits
none can do without one of them. Kernels whose operands lie in another space's blocks, or in none, are refused.

In: the programs in $UIR_BIN, the models in $UIR_MODELS_BUILT. --all: all models, which takes some minutes.
"""
import json
import os
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import DIGITS, MODELS, NO_MODELS, ROOT, Suite, find_model, list_models, make_parser, run, select  # noqa: E402

PORTED = os.path.join(ROOT, "docs", "lune.device")  # the made-up chip of docs/porting.md
FEW = ["lstm_classifier", "silero_vad", "dlrm", "llama_tiny_op23", "espcn"]
SLOW = {"resnet50", "resnet50_fp16", "convnext_tiny", "efficientnet_b0", "unet_small", "yolo_tiny", "ppocr_det",
        "resnet18_qdq_int8", "deit_small"}  # minutes by the interpreter
suite = Suite()
tell = suite.tell


def list_machines():
    """All described machines, "name:chip" -> (kinds of unit, pipes); the processor, of which there are variants, is none."""
    rows = re.findall(r"^  (\w+):(\S+) +[\w ]+ \| ([\w ]+)(?: \| ([\w ]+))?$", run("uir-opt", "--list").stdout, re.M)
    return {f"{name}:{chip}": (kinds, pipes) for name, chip, kinds, pipes in rows if name != "cpu"}


CHIPS = list_machines()
# Of the chips of one name, the first of each kind.
DEVICES = [chip for i, chip in enumerate(CHIPS) if (chip.split(":")[0], CHIPS[chip]) not in
           [(other.split(":")[0], CHIPS[other]) for other in list(CHIPS)[:i]]]
PIPES = {chip for chip, (_, pipes) in CHIPS.items() if pipes}  # whose pipes run apart


def compile_for(device, model):
    """The text of a model's kernels for the device, or None, and what was said."""
    done = run("uir-opt", model, *select(device), "--after", "igraph")
    return done.stdout if done.returncode == 0 else None, done.stderr


def kernels_of(text):
    return re.findall(r"^igraph @.*?^\}", text, re.M | re.S)


def check_kernels(device, name, model):
    text, said = compile_for(device, model)
    tell(text is not None and "has no kernel" not in said, f"{device}: {name}: {said[:300]}")
    if text is None:
        return []
    kernels = kernels_of(text)
    if device in PIPES or device == PORTED:
        bare = [k.split("\n")[0] for k in kernels if " synchronised {" not in k.split("\n")[0]]
        tell(not bare, f"{device}: {name}: without waits: {bare[:3]}")
    return kernels


# ---- models ----
def check_model(device, name, interpreted):
    model, folder = find_model(name), os.path.join(MODELS, name)
    kernels = check_kernels(device, name, model)
    if not interpreted:
        return kernels
    data = sorted(d for d in os.listdir(folder) if d.startswith("test_data_set"))[0]
    done = run("uir-run", model, *select(device), "--interpret", "--data", os.path.join(folder, data), "--json")
    said = json.loads(done.stdout) if done.returncode == 0 else {}
    tell(done.returncode == 0, f"{device}: {name}: {done.stderr[:300]}")
    if said:
        by = f"interpreter of {re.split('[:.]', os.path.basename(device))[0]} kernels"
        tell(said["ran_on"] == by and said["calls"]["interpreter"] == 0, f"{device}: {name}: {said['calls']}")
    return kernels


# ---- operators ----
def save(folder, nodes, inputs, outputs, constants=(), opset=20):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    path = os.path.join(folder, "model.onnx")
    onnx.save(model, path)
    return path


def interpret(device, path, arrays, folder):
    given = os.path.join(folder, "in.npz")
    np.savez(given, **arrays)
    done = run("uir-run", path, *select(device), "--interpret", "--inputs", given, "--save", folder, "--format", "npy",
               "--quiet")
    return (np.load(os.path.join(folder, "y.npy")) if done.returncode == 0 else None), done.stderr


def check_against(device, what, path, arrays, right, folder):
    got, said = interpret(device, path, arrays, folder)
    close = got is not None and got.shape == right.shape and np.allclose(got, right, rtol=2e-4, atol=2e-4)
    tell(close, f"{device}: {what}: {said[:300] or 'another result'}")


def tensor(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# name, node, what it should give; of x: f32[N, 12, M]
OPERATORS = [
    ("transpose", ("Transpose", {"perm": [2, 0, 1]}, ()), lambda x: x.transpose(2, 0, 1)),
    ("softmax", ("Softmax", {"axis": -1}, ()), softmax),
    ("sum of columns", ("ReduceSum", {"keepdims": 0}, ([1],)), lambda x: x.sum(1)),
    ("greatest of rows", ("ReduceMax", {"keepdims": 0}, ([2],)), lambda x: x.max(2)),
    ("every other", ("Slice", {}, ([1], [12], [1], [2])), lambda x: x[:, 1:12:2]),
    ("backwards", ("Slice", {}, ([-1], [-13], [1], [-1])), lambda x: x[:, ::-1]),
    ("padded", ("Pad", {}, ([0, 1, 2, 0, 0, 3],)), lambda x: np.pad(x, ((0, 0), (1, 0), (2, 3)))),
    ("arctangent", ("Atan", {}, ()), np.arctan),
    ("error function", ("Erf", {}, ()), lambda x: np.vectorize(__import__("math").erf)(x)),
    ("running sum", ("CumSum", {}, (2,)), lambda x: x.cumsum(2)),
]


def check_operators(device, folder):
    rng = np.random.default_rng(7)
    for name, (op, attributes, constants), right in OPERATORS:
        made = [numpy_helper.from_array(np.array(c, np.int64), f"c{i}") for i, c in enumerate(constants)]
        node = helper.make_node(op, ["x"] + [c.name for c in made], ["y"], **attributes)
        path = save(folder, [node], [tensor("x", ["N", 12, "M"])], [tensor("y", None)], made)
        check_kernels(device, name, path)
        for n, m in ((1, 1), (3, 33), (2, 70)):
            x = rng.standard_normal((n, 12, m)).astype(np.float32)
            check_against(device, f"{name} {n} {m}", path, {"x": x}, right(x.astype(np.float64)), folder)


def check_products(device, folder):
    rng = np.random.default_rng(8)
    node = [helper.make_node("MatMul", ["a", "b"], ["p"]), helper.make_node("Tanh", ["p"], ["y"])]
    path = save(folder, node, [tensor("a", ["M", "K"]), tensor("b", ["K", "N"])], [tensor("y", ["M", "N"])])
    kernels = check_kernels(device, "product", path)
    if device == "ascend:910B1":
        tell(any("mma.f32" in k for k in kernels), f"{device}: no product is multiplied by the cube unit")
    for m, k, n in ((1, 1, 1), (5, 7, 3), (16, 16, 16), (17, 15, 33), (64, 65, 63), (127, 31, 129), (0, 4, 4), (4, 0, 4)):
        a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
        check_against(device, f"product {m} {k} {n}", path, {"a": a, "b": b}, np.tanh(a.astype(np.float64) @ b), folder)


# ---- waits ----
def check_waits(kernels, folder, most):
    """Each wait taken away leaves a kernel that the verifier refuses for want of it."""
    path, tried = os.path.join(folder, "k.igraph"), 0
    for kernel in kernels:
        lines = kernel.split("\n")
        waits = [i for i, line in enumerate(lines) if line.strip().startswith("sync.")]
        if not waits or len(waits) > 40:
            continue
        for i in waits:
            with open(path, "w") as out:
                out.write("\n".join(lines[:i] + lines[i + 1:]) + "\n")
            done = run("uir-opt", path, "--after", "verify")
            tell(done.returncode != 0 and "missing sync." in done.stderr,
                 f"waits: {lines[0]}: without '{lines[i].strip()}': {done.stderr[:200] or 'accepted'}")
        tried += 1
        if tried == most:
            return
    tell(tried > 0, "waits: there was no kernel with some")


# ---- blocks ----
ORDERS = ["rows_of_rows", "rows_of_columns", "columns_of_rows", "columns_of_columns"]
PLACES = [("a1", "l1", "tm", "tk", "columns_of_rows"), ("b1", "l1", "tk", "tn", "columns_of_rows"),
          ("a0", "l0a", "tm", "tk", "rows_of_rows"), ("b0", "l0b", "tk", "tn", "rows_of_columns"),
          ("c", "l0c", "tm", "tn", "columns_of_rows")]
KERNEL = """igraph @product on ascend {{
  dim M in 0..65536, K in 0..65536, N in 0..65536
  tile tm in 32..128 mult 32, tn in 32..128 mult 32, tk in 32..64 mult 32
  candidate tm = 64, tn = 64, tk = 32
  ptr %x : dram {dtype} [M,K] in 0    ptr %w : dram {dtype} [K,N] in 1    ptr %y : dram {sums} [M,N] out 0
{pointers}
  phase {{ parallel p : ceildiv(M,tm), q : ceildiv(N,tn) group
    on cube {{
      fill.{sums}  %c, 0
      loop k : ceildiv(K,tk) {{
        let kt = min(tk, K-k*tk)
        move.dram.l1.{dtype}  %a1[0:tm, 0:kt], %x[p*tm:tm, k*tk:kt]
        move.dram.l1.{dtype}  %b1[0:kt, 0:tn], %w[k*tk:kt, q*tn:tn]
        move.l1.l0a.{dtype}   %a0[0:tm, 0:kt], %a1[0:tm, 0:kt]
        move.l1.l0b.{dtype}   %b0[0:kt, 0:tn], %b1[0:kt, 0:tn]
        mma.{sums}.{dtype}.{dtype}   %c, %a0[0:tm, 0:kt], %b0[0:kt, 0:tn]
      }}
      move.l0c.dram.{sums}  %y[p*tm:tm, q*tn:tn], %c
    }} }}
}}
"""


def in_blocks(rows, columns, order, width):
    """The layout's text, by what a description means: blocks of 16 lines, `width` elements wide."""
    outer, inner = order.split("_of_")
    high, wide = (16, width) if inner == "rows" else (width, 16)
    within = (wide, 1) if inner == "rows" else (1, high)
    size = high * wide
    beyond = (f"{size}*({columns}/{wide})", f"{size}") if outer == "rows" else (f"{size}", f"{size}*({rows}/{high})")
    return (f"[{rows},{columns}]:(({high},{rows}/{high}),({wide},{columns}/{wide})):"
            f"(({within[0]},{beyond[0]}),({within[1]},{beyond[1]}))")


def product(dtype, sums, wrong=None, layout=None):
    lines = []
    for name, space, rows, columns, order in PLACES:
        width = 16 if space == "l0c" else {"f16": 16, "f32": 8, "i8": 32}[dtype]
        text = layout if name == wrong else in_blocks(rows, columns, order, width)
        lines.append(f"  ptr %{name} : {space} {sums if space == 'l0c' else dtype} {text}")
    return KERNEL.format(dtype=dtype, sums=sums, pointers="\n".join(lines))


def check_blocks(folder):
    path = os.path.join(folder, "b.igraph")

    def verify(text):
        with open(path, "w") as out:
            out.write(text)
        return run("uir-opt", path, "--after", "verify")
    broken = 0
    for dtype, sums in (("f16", "f32"), ("f32", "f32"), ("i8", "i32")):
        done = verify(product(dtype, sums))
        tell(done.returncode == 0, f"blocks: {dtype}: {done.stderr[:300]}")
        for name, space, rows, columns, order in PLACES:
            width = 16 if space == "l0c" else {"f16": 16, "f32": 8, "i8": 32}[dtype]
            layouts = [in_blocks(rows, columns, other, width) for other in ORDERS if other != order]
            layouts += [in_blocks(rows, columns, order, width // 2 if width > 8 else width * 2), f"[{rows},{columns}]"]
            for layout in layouts:
                done = verify(product(dtype, sums, name, layout))
                wanted = f"layout: %{name} must be in the blocks of {space} on ascend"
                tell(done.returncode != 0 and wanted in done.stderr,
                     f"blocks: {dtype} {name} {layout}: {done.stderr[:200] or 'accepted'}")
                broken += 1
    tell(broken >= 60, f"blocks: only {broken} broken kernels were tried")


# On a 910A what goes to the cube unit and comes from it passes the unified buffer, where its format is made: another
# layout there, and what the verifier says of it.
PASSED = [("rows", "", "%rows[0:16, 0:64] must have the layout of %rows_l1[0:16, 0:64] for move on ascend, which keeps"),
          ("rows", "blocks of 8", "the last dim of %rows[0:16, 0:64] must be contiguous"),
          ("columns", "", "must have the layout of %columns_l1"), ("s6_ub", "", "must have the layout of %s6_ub")]


def check_halves(folder):
    device, halves = "ascend:910A", TensorProto.FLOAT16
    node = [helper.make_node("MatMul", ["a", "b"], ["y"])]
    ports = [tensor("a", ["M", "K"], halves), tensor("b", ["K", "N"], halves)]
    path = save(folder, node, ports, [tensor("y", ["M", "N"], halves)])
    kernels = check_kernels(device, "product of halves", path)
    tell(any("mma.f32.f16.f16" in k for k in kernels), f"{device}: no product of halves is the cube unit's")
    rng = np.random.default_rng(8)
    for m, k, n in ((1, 1, 1), (5, 7, 3), (17, 15, 33), (64, 65, 63), (127, 31, 129), (0, 4, 4), (4, 0, 4)):
        a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
        right = (a.astype(np.float64) @ b).astype(np.float16)
        got, said = interpret(device, path, {"a": a, "b": b}, folder)
        tell(got is not None and got.shape == right.shape and np.allclose(got, right, rtol=2e-3, atol=2e-3),
             f"{device}: product of halves {m} {k} {n}: {said[:300] or 'another result'}")
    whole = save(folder, node, [tensor("a", [64, 64], halves), tensor("b", [64, 64], halves)], [tensor("y", None, halves)])
    text = next(k for k in kernels_of(compile_for(device, whole)[0]) if "mma.f32.f16.f16" in k)
    text = re.sub(r"^ *sync.*\n", "", text, flags=re.M).replace(" synchronised", "")
    text = re.sub(r" x2 by \w+$", "", text, flags=re.M)
    broken = os.path.join(folder, "broken.igraph")
    for name, what, wanted in [(None, "", "")] + PASSED:
        edited = text
        if name:
            layout = ":((16,4),(8,8)):((8,128),(1,512))" if what else ""
            edited, count = re.subn(rf"(ptr +%{name} : ub f\d+ \[\d+, \d+\]):\S.*$", rf"\1{layout}", text, flags=re.M)
            tell(count == 1, f"{device}: %{name} is not in the kernel: {text}")
        with open(broken, "w") as out:
            out.write(edited)
        done = run("uir-opt", broken, "--after", "verify")
        tell((done.returncode != 0 and wanted in done.stderr) if name else done.returncode == 0,
             f"{device}: %{name} {what}: {done.stderr[:300] or 'accepted'}")


# ---- what is said ----
# name, nodes, of which operators of x: f32[4096, 1024] a kernel moves no more than what goes in and comes out
STREAMED = [
    ("softmax", [helper.make_node("Softmax", ["x"], ["y"], axis=-1)], ()),
    ("layer norm", [helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1)], ("s", "b")),
    ("root mean square norm", [helper.make_node("RMSNormalization", ["x", "s"], ["y"], axis=-1)], ("s",)),
    ("sum of rows", [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=1, noop_with_empty_axes=0)], ()),
    ("chain", [helper.make_node("Sigmoid", ["x"], ["a"]), helper.make_node("Mul", ["a", "x"], ["c"]),
               helper.make_node("Add", ["c", "s"], ["d"]), helper.make_node("Tanh", ["d"], ["y"])], ("s",)),
]
VECTOR_UNITS = 48  # of a 910B1


def check_bytes(folder):
    rows, columns = 4096, 1024
    x = np.random.default_rng(9).standard_normal((rows, columns)).astype(np.float32)
    given = os.path.join(folder, "in.npz")
    np.savez(given, x=x)
    for name, nodes, vectors in STREAMED:
        constants = [numpy_helper.from_array(np.linspace(0.5, 1.5, columns, dtype=np.float32), v) for v in vectors]
        if name == "sum of rows":
            constants.append(numpy_helper.from_array(np.array([1], np.int64), "axes"))
            nodes[0].input.append("axes")
        results = rows * (1 if name == "sum of rows" else columns)
        path = save(folder, nodes, [tensor("x", [rows, columns])], [tensor("y", None)], constants, 23)
        done = run("uir-run", path, "--device", "ascend", "--interpret", "--inputs", given, "--plan", "--json")
        machine = json.loads(done.stdout)["machine"] if done.returncode == 0 else None
        dram = machine["spaces"]["dram"] if machine else {"read_bytes": 0, "written_bytes": 0}
        least = 4 * (rows * columns + len(vectors) * columns + results)
        moved = dram["read_bytes"] + dram["written_bytes"]
        tell(4 * rows * columns < moved <= 1.05 * least,
             f"{name}: {moved} bytes of {least}: {done.stderr[:300]}")
        # Several rows are one slice of a chain: 1024 slices are 22 for each of 47 units, and would be with one more.
        units = VECTOR_UNITS - (name == "chain")
        tell(bool(machine) and machine["units"] == units and len(machine["kernels"]) == 1
             and machine["modelled_cycles"] > 0 and machine["modelled_ms"] > 0, f"{name}: {machine}")


def check_tiles(folder):
    """A product and what follows it: factors come on the chip for many of its sums at once, by whichever unit multiplies,
    and the sums leave it only where that unit cannot go on with them."""
    rows, depth, columns = 512, 768, 768
    given = [numpy_helper.from_array(np.linspace(-1, 1, depth * columns, dtype=np.float32).reshape(depth, columns), "w"),
             numpy_helper.from_array(np.linspace(-1, 1, columns, dtype=np.float32), "b")]
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Add", ["a", "b"], ["c"]),
             helper.make_node("Relu", ["c"], ["y"])]
    path = save(folder, nodes, [tensor("x", [rows, depth])], [tensor("y", None)], given)
    x = os.path.join(folder, "in.npz")
    np.savez(x, x=np.random.default_rng(12).standard_normal((rows, depth)).astype(np.float32))
    each = 4 * 2 * rows * columns * depth  # bytes, were both factors of each product brought for it alone
    slow = os.path.join(folder, "slow.device")  # a chip that multiplies and adds sooner by two instructions
    with open(os.path.join(ROOT, "backends", "ascend", "target", "ascend.device")) as text, open(slow, "w") as out:
        text, count = re.subn(r"(legal binary.div, compare.\*, )ternary.fma, (ternary.select of floats as elementwise)\n",
                              r"\1\2\n    legal ternary.fma of floats as elementwise cycles 3 @order\n", text.read())
        out.write(re.sub(r'chip "910B1" \{.*?(?=chip "910A" \{)', "", text, flags=re.S))
        tell(count == 1, "the 910A has no ternary.fma beside others")
    for device in (*DEVICES, slow, PORTED):
        kernels = kernels_of(compile_for(device, path)[0])
        # A kind of unit for products alone computes nothing else; the made-up chip, whose file is given, has one.
        apart = device == PORTED or " " in CHIPS.get(device, ("",))[0]
        tell(len(kernels) == 1 and any(" work\n" in k for k in kernels) == apart,
             f"{device}: sums of a product {'do not leave' if apart else 'leave'} the chip before what follows: {kernels}")
        tell("mma" in kernels[0] or ("ternary.fma" in kernels[0]) == (device != slow),
             f"{device}: neither mma nor ternary.fma where it is no slower than a product and a sum: {kernels}")
        tell((device in CHIPS and device not in PIPES) or len(re.findall(r"%(?:rows|columns)\w* : .* x2 by", kernels[0])) >= 2,
             f"{device}: the next tiles of factors do not come while these are multiplied: {kernels}")
        memory = re.search(r"ptr +%x0 : (\w+)", kernels[0]).group(1)
        done = run("uir-run", path, *select(device), "--interpret", "--inputs", x, "--plan", "--json")
        read = json.loads(done.stdout)["machine"]["spaces"][memory]["read_bytes"] if done.returncode == 0 else each
        tell(read <= each / 6, f"{device}: {read} bytes, {each} were each brought for itself: {done.stderr[:300]}")


def check_roots(folder):
    """A chip that has no square root, but the reciprocal of one."""
    path = os.path.join(folder, "rootless.device")
    with open(PORTED) as lune, open(path, "w") as out:
        text = lune.read()
        out.write(text.replace("unary.sqrt, ", ""))
    tell("unary.sqrt, " in text, "lune has a square root no longer")
    x = np.array([0, -0.0, np.inf, 1e-30, 1e30, 2, 4, 0.25], np.float32)
    model = save(folder, [helper.make_node("Sqrt", ["x"], ["y"])], [tensor("x", ["N"])], [tensor("y", None)])
    check_kernels(path, "square root", model)
    check_against(path, "square root", model, {"x": x}, np.sqrt(x.astype(np.float64)), folder)


def check_casts(folder):
    """A chip that casts by way of i32 alone: what i32 does not hold is the host's, or wraps as it should."""
    path = os.path.join(folder, "casts.device")
    whole = "legal cast of whole, f32 to whole, f32 as elements"
    with open(PORTED) as lune, open(path, "w") as out:
        text = lune.read()
        out.write(text.replace(whole, "legal cast of i32 to whole, f32 as elements\n  legal cast of whole, f32 to i32 as elements"))
    tell(whole in text, "lune casts everything to everything no longer")
    for given, to, wanted in ((np.uint32, TensorProto.INT64, np.int64), (np.int64, TensorProto.UINT64, np.uint64),
                              (np.int64, TensorProto.BOOL, np.bool_), (np.int64, TensorProto.INT16, np.int16),
                              (np.uint8, TensorProto.INT64, np.int64)):
        limits = np.iinfo(given)
        x = np.array([0, 1, 77, min(limits.max, 2**32), limits.max, limits.max - 1, limits.max // 2 + 1, limits.min], given)
        model = save(folder, [helper.make_node("Cast", ["x"], ["y"], to=to)],
                     [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(given)), ["N"])],
                     [helper.make_tensor_value_info("y", to, ["N"])])
        check_against(path, f"cast to {np.dtype(wanted)} of {np.dtype(given)}", model, {"x": x}, x.astype(wanted), folder)


def check_sizes(folder):
    """Sizes for which a kernel has no room on the chip, and others have, are the host's for that group alone."""
    path, saved = os.path.join(folder, "near.device"), os.path.join(folder, "saved")
    with open(PORTED) as lune, open(path, "w") as out:
        text, count = re.subn(r"(space near .*capacity) \d+", r"\1 24576", lune.read(), count=1)
        out.write(text)
    model = find_model("minilm_l6")
    tell(count == 1, "lune has no space near")
    if not os.path.exists(model):
        return
    words = ("--dim", "sequence=64", "--dim", "batch=1")
    done = run("uir-run", model, "--device-file", path, "--interpret", *words, "--json", "--save", saved)
    calls = json.loads(done.stdout)["calls"] if done.returncode == 0 else {}
    tell(calls.get("interpreter", 0) > 0 and "(1, 64); the node is computed on the host" in done.stderr,
         f"a kernel without room: {calls} {done.stderr[:300]}")
    done = run("uir-run", model, "--device", "interpreter", *words, "--compare-with", saved)
    tell(done.returncode == 0 and "1 values agree" in done.stdout, f"a kernel without room: {done.stdout[-300:]}")


def check_signs(folder):
    """Products of bytes that mma does not take as they are: a 910B multiplies signed ones alone."""
    rng = np.random.default_rng(11)
    node = [helper.make_node("MatMulInteger", ["a", "b"], ["y"])]
    dtypes = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8}
    for first in dtypes:
        for second in dtypes:
            name = f"product of {first.__name__} and {second.__name__}"
            b = rng.integers(np.iinfo(second).min, np.iinfo(second).max, (70, 33), endpoint=True).astype(second)
            ports = [tensor("a", ["M", 70], dtypes[first])]
            for constant in (True, False):
                given = [numpy_helper.from_array(b, "b")] if constant else []
                path = save(folder, node, ports + ([] if constant else [tensor("b", [70, 33], dtypes[second])]),
                            [tensor("y", None, TensorProto.INT32)], given)
                kernels = check_kernels("ascend:910B1", name, path)
                tell(any("mma.i32.i8.i8" in k for k in kernels), f"{name}: is not the cube unit's")
                for m in (1, 17, 64):
                    a = rng.integers(np.iinfo(first).min, np.iinfo(first).max, (m, 70), endpoint=True).astype(first)
                    a[0, :2] = np.iinfo(first).min, np.iinfo(first).max
                    got, said = interpret("ascend:910B1", path, {"a": a} if constant else {"a": a, "b": b}, folder)
                    tell(got is not None and np.array_equal(got, a.astype(np.int32) @ b.astype(np.int32)),
                         f"{name}, {m} rows: {said[:300] or 'another result'}")


def check_refusals(folder):
    model = DIGITS
    bad = os.path.join(folder, "bad.device")
    with open(bad, "w") as out:
        out.write("device lune {\n  kinds vector\n  groups 4\n}\n")
    for words, code, said in ((("--device", "ascend"), 2, "--interpret"),
                              (("--device", "ascend:910Z", "--interpret"), 2, "'ascend:910Z' is unknown"),
                              (("--device-file", bad), 2, "--device-file is for --interpret"),
                              (("--device-file", bad, "--interpret"), 3, "bad.device:4:1: error: a number needs its source"),
                              (("--device-file", folder, "--interpret"), 5, "Is a directory"),
                              (("--device", "cuda", "--interpret", "--reduce", "o.onnx"), 2,
                               "--interpret cannot be combined")):
        done = run("uir-run", model, *words)
        tell(done.returncode == code and said in done.stderr, f"{words}: {done.returncode}: {done.stderr[:300]}")
    done = run("uir-run", model, "--device", "cuda:sm_80", "--interpret", "--explain")
    tell(done.returncode == 0 and "by interpreter of cuda kernels" in done.stdout, f"digits: {done.stderr[:300]}")
    own = os.path.join(folder, "own.device")
    with open(os.path.join(ROOT, "backends", "ascend", "target", "ascend.device")) as text, open(own, "w") as out:
        out.write(text.read().replace("groups 24 @cann", "groups 1 @cann"))
    units = [json.loads(run("uir-run", model, *words, "--device", "ascend", "--interpret", "--plan", "--json").stdout)
             ["machine"]["units"] for words in ((), ("--device-file", own))]
    tell(units[0] > units[1], f"a file of a device of this build does not take its place: {units}")
    for option in ("--plan", "--profile"):
        done = run("uir-run", model, "--device", "ascend", "--interpret", option)
        tell(done.returncode == 0 and "modelled by the costs" in done.stdout and " dram" in done.stdout,
             f"digits: {option}: {done.stdout[:300]} {done.stderr[:300]}")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check_refusals(folder)
        check_blocks(folder)
        check_bytes(folder)
        check_halves(folder)
        check_tiles(folder)
        check_roots(folder)
        check_casts(folder)
        check_signs(folder)
        check_sizes(folder)
        for device in DEVICES:
            check_products(device, folder)
            check_operators(device, folder)
        names = list_models() if options.all else FEW
        if not os.path.exists(find_model(FEW[0])):
            suite.skip(NO_MODELS)
            names = []
        for device in CHIPS if options.all else DEVICES:
            kernels = []
            for name in names:
                interpreted = name not in SLOW and (options.all or name != "espcn")
                kernels += check_model(device, name, interpreted)
            if device == "ascend:910B1" and kernels:
                check_waits(kernels, folder, 200 if options.all else 12)
        check_products(PORTED, folder)
        check_operators(PORTED, folder)
        for name in ("minilm_l6", "mobilenet_v2") if names else ():
            check_model(PORTED, name, True)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
