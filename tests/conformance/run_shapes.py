#!/usr/bin/env python3
"""Random slices, resizes, ranges, einsums, pads, expansions and broadcasts of every order against onnx's reference evaluator.

    run_shapes.py [--count N] [--seed S] [--devices interpreter,vm,cpu,ascend,...] [--of KIND,...]

Each case is one node. Its dims are numbers or names (of which the run tells the extents, 0 and 1 among them), its
parameters are constants or inputs, and of some cases all inputs are constants. Twenty cases make one model, which each
device runs; where one fails, its cases run alone. What the run is to refuse (a step of 0, a shape that does not broadcast)
is a list of its own: with the node's name and the numbers, whenever they are known.

In: the programs in $UIR_BIN. Out: a line per failure, what was left out and why, then `N passed, M failed, S skipped`."""
import collections
import fractions
import os
import random
import re
import sys
import tempfile
import warnings

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, make_parser, run  # noqa: E402

TOGETHER = 20
OPSET = 22
MOST, LEAST = 2 ** 63 - 1, -2 ** 63
left_out = collections.Counter()
np.seterr(all="ignore")
warnings.simplefilter("ignore")

# One node: its operands by place, which are None, data (symbolic dims at will) or parameters (constants at will). Some are
# expanded before, to a constant shape.
Case = collections.namedtuple("Case", "op operands parameters attributes expanded", defaults=({},))


class LeftOut(Exception):
    """Why the reference does not tell what is right."""


def data(r, shape, dtype=np.float32):
    values = np.array([r.uniform(-3, 3) for _ in range(int(np.prod(shape)))]).reshape(shape)
    return values.astype(dtype) if np.dtype(dtype).kind == "f" else np.abs(values * 3).astype(dtype)


# ---- slices ----
def slice_case(r):
    shape = [r.choice([0, 1, 1, 2, 3, 5, 7]) if r.random() < 0.3 else r.randint(1, 9) for _ in range(r.randint(1, 4))]
    axes = r.sample(range(len(shape)), r.randint(1, len(shape)))
    if r.random() < 0.2:
        axes = list(range(len(axes)))
    wide = r.random() < 0.7
    far = (MOST, LEAST, MOST - 1, LEAST + 1) if wide else (2 ** 31 - 1, -2 ** 31)

    def place(extent):
        return r.choice(far) if r.random() < 0.2 else r.randint(-extent - 3, extent + 3)

    starts, ends = [place(shape[a]) for a in axes], [place(shape[a]) for a in axes]
    steps = [r.choice(far) if r.random() < 0.15 else r.choice([1, 1, 2, 3, 7, -1, -2, -5]) for _ in axes]
    dtype = np.int64 if wide else np.int32
    form = r.random()
    has_axes = axes != list(range(len(axes))) or form < 0.5
    lists = [starts, ends, [a - len(shape) if r.random() < 0.3 else a for a in axes] if has_axes else None,
             steps if form < 0.8 else None]
    operands = [data(r, shape, r.choice([np.float32, np.float32, np.int64, np.float16]))]
    operands += [None if v is None else np.array(v, dtype) for v in lists]
    return Case("Slice", operands, {1, 2, 3, 4}, {})


# ---- resizes ----
def position(mode, y, extent, size, scale, length):
    """Of the element: a fraction, by the standard's text."""
    if mode == "align_corners":
        return y * fractions.Fraction(extent - 1) / (length - 1) if length > 1 else fractions.Fraction(0)
    if mode == "asymmetric":
        return y / scale
    if mode == "pytorch_half_pixel" and size == 1:
        return fractions.Fraction(0)
    x = (y + fractions.Fraction(1, 2)) / scale - fractions.Fraction(1, 2)
    if mode == "half_pixel_symmetric":
        x += fractions.Fraction(extent, 2) * (1 - size / length)
    return x


def nearest(x, mode):
    half = fractions.Fraction(1, 2)
    return {"floor": x.__floor__(), "ceil": x.__ceil__(), "round_prefer_floor": (x - half).__ceil__(),
            "round_prefer_ceil": (x + half).__floor__()}[mode]


def exact_resize(x, axes, scales, sizes, policy, mode, rounding):
    """By nearest: positions are fractions, nothing is rounded but to an element."""
    one = [fractions.Fraction(s) if sizes is None else fractions.Fraction(s, x.shape[a])
           for a, s in zip(axes, scales if sizes is None else sizes)]
    if sizes is not None and policy != "stretch":
        one = [(min if policy == "not_larger" else max)(one)] * len(axes)
        sizes = [(s * x.shape[a] + fractions.Fraction(1, 2)).__floor__() for a, s in zip(axes, one)]
    if sizes is None:
        sizes = [int(np.floor(np.float32(x.shape[a]) * np.float32(s))) for a, s in zip(axes, scales)]
    for a, s, size in zip(axes, one, sizes):
        extent = x.shape[a]
        at = [nearest(position(mode, y, extent, size, s, extent * s), rounding) for y in range(size)]
        x = np.take(x, np.clip(np.array(at, np.int64), 0, extent - 1), axis=a)
    return x


def resize_case(r):
    rank = r.randint(1, 3)
    shape = [r.choice([1, 2, 3, 7, 10, 12, 20, 33, 49, 60][:10 if rank == 1 else 7]) for _ in range(rank)]
    axes = sorted(r.sample(range(rank), r.randint(1, rank))) if r.random() < 0.4 else list(range(rank))
    named = len(axes) < rank or r.random() < 0.2
    mode = r.choice(["nearest", "nearest", "nearest", "linear", "cubic"])
    transform = r.choice(["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                          "tf_crop_and_resize"])
    rounding = r.choice(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    attributes = {"mode": mode, "coordinate_transformation_mode": transform, "nearest_mode": rounding}
    policy = r.choice(["stretch", "not_larger", "not_smaller"]) if r.random() < 0.3 else "stretch"
    if named:
        attributes["axes"] = axes
    if mode != "nearest" and r.random() < 0.3 and transform != "tf_crop_and_resize":
        attributes["exclude_outside"] = 1
    if mode != "nearest" and r.random() < 0.25 and transform != "tf_crop_and_resize":
        attributes["antialias"] = 1
    x, roi, scales, sizes = data(r, shape), None, None, None
    if transform == "tf_crop_and_resize":
        roi = np.array([r.randint(0, 3) / 8 for _ in axes] + [r.randint(5, 9) / 8 for _ in axes], np.float32)
        attributes["extrapolation_value"] = 7.0
        policy = "stretch"
    most = 60 if rank == 1 else 12
    if r.random() < 0.7:
        sizes = np.array([r.randint(1, most) for _ in axes], np.int64)
        attributes["keep_aspect_ratio_policy"] = policy
    else:
        scales = np.array([r.choice([r.uniform(0.15, 3), r.randint(1, 3), 0.5, 0.25, 0.6, 0.1 * r.randint(2, 30)]) for _ in axes],
                          np.float32)
        for a, s in zip(axes, scales):
            if int(np.floor(np.float32(shape[a]) * s)) != int(np.floor(np.float64(shape[a]) * np.float64(s))):
                raise LeftOut("an extent by a scale: the reference floors the product in f64, onnx's inference in f32")
            if int(np.floor(shape[a] * s)) == 0:
                raise LeftOut("an extent by a scale is 0")
    if transform == "tf_crop_and_resize" and sizes is not None and any(
            roi[i + len(axes)] == 1 and size / shape[a] * shape[a] < size for i, (a, size) in enumerate(zip(axes, sizes.tolist()))):
        raise LeftOut("a crop up to the last element: the reference's rounded scale puts it outside")
    weighs = mode == "cubic" or "antialias" in attributes or "exclude_outside" in attributes
    if transform == "pytorch_half_pixel" and (weighs or scales is not None):
        lengths = [sizes[i] if scales is None else int(shape[a] * scales[i]) for i, a in enumerate(axes)]
        if 1 in lengths or policy != "stretch":
            raise LeftOut("pytorch_half_pixel of one element: 0 by the standard's text, -0.5 in the reference")
    if mode != "nearest" and (sizes is not None or transform == "half_pixel_symmetric") and transform != "tf_crop_and_resize":
        for i, a in enumerate(axes):
            s = fractions.Fraction(float(scales[i])) if sizes is None else fractions.Fraction(int(sizes[i]), shape[a])
            size = (shape[a] * s).__floor__()
            for y in range(size):
                whole = position(transform, y, shape[a], size, s, shape[a] * s)
                rounded = position(transform, y, shape[a], size, float(s), shape[a] * float(s))
                if abs(whole - round(whole)) < 1e-9 and ("antialias" in attributes or rounded != round(whole)):
                    raise LeftOut("weights at a whole position: the reference takes taps by one that it rounds twice")
    case = Case("Resize", [x, roi, scales, sizes], {1, 2, 3}, attributes)
    if mode != "nearest" or transform == "tf_crop_and_resize":
        return case
    numbers = lambda v: None if v is None else v.tolist()
    exact = exact_resize(x, axes, numbers(scales), numbers(sizes), policy, transform, rounding)
    return case, exact


# ---- ranges ----
def range_case(r):
    dtype = r.choice([np.float32, np.float32, np.float64, np.int32, np.int64, np.int16])
    if np.dtype(dtype).kind == "f":
        step = r.choice([0.1, 0.25, 0.3, 0.7, 1.0, 1 / 3, r.uniform(0.05, 3)]) * r.choice([1, -1])
        start = r.choice([0.0, 0.1, r.uniform(-5, 5)])
        limit = start + step * r.choice([r.randint(-2, 30), r.uniform(-2, 30)])
    elif dtype == np.int64 and r.random() < 0.3:
        start, limit, step = r.choice([(LEAST, MOST, 2 ** 62), (MOST, LEAST, -2 ** 62 - 5), (LEAST, LEAST + 9, 3),
                                       (MOST - 9, MOST, 4), (-2 ** 62 - 3, 2 ** 62 + 3, 2 ** 61), (3, 2, MOST), (0, MOST, MOST)])
    else:
        step = r.choice([1, 1, 2, 3, 7, -1, -2, -5])
        start = r.randint(-20, 20)
        limit = start + r.randint(-60, 60)
    operands = [np.array(v, dtype) for v in (start, limit, step)]
    if np.dtype(dtype).kind != "f" or dtype == np.float64:
        count = max(0, -((int(limit) - int(start)) // -int(step))) if dtype != np.float64 else None
        if count is not None:
            return Case("Range", operands, {0, 1, 2}, {}), np.array([start + i * step for i in range(count)], dtype)
    return Case("Range", operands, {0, 1, 2}, {})


# ---- einsums ----
def einsum_case(r):
    letters, count = "ijklmA"[:r.randint(1, 5)], r.randint(1, 3)
    extents = {c: r.choice([0, 1, 2, 3, 4, 5]) if r.random() < 0.6 else r.randint(2, 4) for c in letters}
    hidden = [r.choice([1, 2, 3]) for _ in range(r.randint(0, 2))] if r.random() < 0.4 else None
    terms, operands = [], []
    for _ in range(count):
        own = r.sample(letters, r.randint(1, min(3, len(letters))))
        if r.random() < 0.15:
            own.insert(r.randint(0, len(own)), r.choice(own))
        twice = {c for c in own if own.count(c) > 1}
        shape = {c: 1 if r.random() < 0.25 and c not in twice else extents[c] for c in own}
        dims, text = [shape[c] for c in own], "".join(own)
        if hidden is not None:
            at, kept = r.randint(0, len(own)), hidden[r.randint(0, len(hidden)):]
            dims[at:at] = [1 if r.random() < 0.3 else n for n in kept]
            text = text[:at] + "..." + text[at:]
        terms.append(text)
        operands.append(data(r, dims))
    used = sorted({c for t in terms for c in t if c != "."})
    result = r.sample(used, r.randint(0, len(used)))
    equation = ",".join(terms)
    if r.random() < 0.85:
        equation += "->" + ("..." if hidden is not None else "") + "".join(result)
    return Case("Einsum", operands, set(), {"equation": equation})


# ---- broadcasts ----
def shapes_that_broadcast(r, count, one_way=False):
    rank = r.randint(1, 4)
    whole = [r.choice([0, 1, 2, 3, 4, 5]) if r.random() < 0.4 else r.randint(2, 5) for _ in range(rank)]
    shapes = []
    for i in range(count):
        if one_way and i == 0:
            shapes.append(list(whole))
        else:
            own = [1 if r.random() < 0.4 else n for n in whole]
            shapes.append(own[r.randint(0, rank - (rank > 1)) if r.random() < 0.4 else 0:])
    return shapes


FLOATS, WHOLE, TRUTHS = np.float32, np.int64, np.bool_
ELEMENTWISE = {"Add": FLOATS, "Sub": FLOATS, "Mul": FLOATS, "Div": FLOATS, "Pow": FLOATS, "Mod": WHOLE, "And": TRUTHS,
               "Or": TRUTHS, "Xor": TRUTHS, "Equal": WHOLE, "Less": FLOATS, "Greater": FLOATS, "LessOrEqual": FLOATS,
               "GreaterOrEqual": FLOATS, "BitShift": np.uint32, "BitwiseAnd": WHOLE, "BitwiseOr": WHOLE, "BitwiseXor": WHOLE,
               "PRelu": FLOATS, "Max": FLOATS, "Min": FLOATS, "Sum": FLOATS, "Mean": FLOATS, "Where": FLOATS}


def broadcast_case(r):
    op = r.choice(list(ELEMENTWISE) + ["MatMul", "MatMul", "Gemm", "Expand", "Expand", "LayerNormalization"])
    if op in ("Max", "Min", "Sum", "Mean"):
        return Case(op, [data(r, s) for s in shapes_that_broadcast(r, r.randint(2, 4))], set(), {})
    if op == "Where":
        a, b, c = shapes_that_broadcast(r, 3)
        return Case(op, [data(r, a) > 0, data(r, b), data(r, c)], set(), {})
    if op == "MatMul":
        a, b = shapes_that_broadcast(r, 2)
        m, k, n = (r.choice([0, 1, 2, 3, 4]) if r.random() < 0.3 else r.randint(1, 5) for _ in range(3))
        return Case(op, [data(r, a[-2:] + [m, k]), data(r, b[-2:] + [k, n])], set(), {})
    if op == "Gemm":
        m, k, n = (r.randint(1, 5) for _ in range(3))
        c = r.choice([[m, n], [1, n], [m, 1], [n], [1], [], [1, 1]])
        return Case(op, [data(r, [m, k]), data(r, [k, n]), data(r, c)], set(), {"alpha": 0.5, "beta": 2.0})
    if op == "Expand":
        a, b = shapes_that_broadcast(r, 2)
        return Case(op, [data(r, a), np.array(b, np.int64)], {1}, {})
    if op == "LayerNormalization":
        shape = [r.randint(1, 4) for _ in range(3)]
        scale = [1 if r.random() < 0.3 else n for n in shape[1:]]
        return Case(op, [data(r, shape), data(r, scale), data(r, [1 if r.random() < 0.3 else n for n in shape[1:]])], set(), {"axis": 1})
    a, b = shapes_that_broadcast(r, 2, one_way=op == "PRelu")
    x, y = data(r, a, ELEMENTWISE[op]), data(r, b, ELEMENTWISE[op])
    if op == "Pow":
        x = np.abs(x)
    if op == "Mod":
        y += 1
    return Case(op, [x, y], set(), {"direction": "LEFT"} if op == "BitShift" else {})


def expanded_case(r):
    """A product of what is the same along its rows, its columns or what is summed."""
    m, k, n = (r.randint(1, 6) for _ in range(3))
    batch = [r.randint(1, 3) for _ in range(r.randint(0, 2))]
    whole = [batch + [m, k], batch + [k, n]]
    own = [[1 if r.random() < 0.35 else d for d in s] for s in whole]
    return Case("MatMul", [data(r, s) for s in own], set(), {}, dict(enumerate(whole)))


# ---- pads ----
def pad_case(r):
    """What is cut off goes first (decompose/math/rules_math_slice.c); the reference pads what is left."""
    shape = [r.randint(2, 6) for _ in range(r.randint(1, 3))]
    mode = r.choice(["constant", "edge", "reflect", "wrap", "wrap"])
    x, pads, rest = data(r, shape), [], data(r, shape)
    rest = x
    for a, extent in enumerate(shape):
        cut = [r.randint(0, 1), r.randint(0, extent - 2) if extent > 2 else 0]
        cut = [c if r.random() < 0.4 else 0 for c in cut]
        kept = extent - sum(cut)
        if kept < 1:
            cut, kept = [0, 0], extent
        low, high = (-c if c else r.randint(0, kept - 1 if mode == "reflect" else 7) for c in cut)
        rest = np.take(rest, range(cut[0], extent - cut[1]), axis=a)
        pads.append((low, high))
    expected = np.pad(rest, [(max(0, a), max(0, b)) for a, b in pads], mode=mode)
    flat = np.array([a for a, _ in pads] + [b for _, b in pads], np.int64)
    return Case("Pad", [x, flat], {1}, {"mode": mode}), expected


KINDS = {"slice": slice_case, "resize": resize_case, "range": range_case, "einsum": einsum_case,
         "broadcast": broadcast_case, "expanded": expanded_case, "pad": pad_case}


# ---- models ----
def operand_name(case_index, place):
    return f"c{case_index}_{place}"


def nodes_of(case, index, constants):
    names, nodes = [operand_name(index, p) if v is not None else "" for p, v in enumerate(case.operands)], []
    for place, shape in case.expanded.items():
        name = names[place]
        constants.append(numpy_helper.from_array(np.array(shape, np.int64), name + "_shape"))
        nodes.append(helper.make_node("Expand", [name, name + "_shape"], [name + "_wide"], name=f"{name}_expand"))
        names[place] = name + "_wide"
    while names and not names[-1]:
        names.pop()
    return nodes + [helper.make_node(case.op, names, [f"y{index}"], name=f"case{index}", **case.attributes)]


def model_of(parts, flavours):
    """(index, case, expected) each; a flavour says which operands are constants and whether dims have names."""
    nodes, inputs, constants, outputs, values = [], [], [], [], []
    for index, case, expected in parts:
        symbolic, fixed, frozen = flavours[index]
        nodes += nodes_of(case, index, constants)
        for place, value in enumerate(case.operands):
            if value is None:
                continue
            name, dtype = operand_name(index, place), helper.np_dtype_to_tensor_dtype(value.dtype)
            if frozen or (place in case.parameters and fixed):
                constants.append(numpy_helper.from_array(value, name))
                continue
            named = symbolic and place not in case.parameters
            inputs.append(helper.make_tensor_value_info(
                name, dtype, [f"{name}_d{d}" for d in range(value.ndim)] if named else value.shape))
            values.append(value)
        outputs.append(helper.make_empty_tensor_value_info(f"y{index}") if expected is None else helper.make_tensor_value_info(
            f"y{index}", helper.np_dtype_to_tensor_dtype(expected.dtype), [None] * expected.ndim))
    graph = helper.make_graph(nodes, "shapes", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10), values


def reference(case):
    model, values = model_of([(0, case, None)], {0: (False, False, False)})
    try:
        evaluator = ReferenceEvaluator(model)
        return np.asarray(evaluator.run(None, dict(zip([i.name for i in model.graph.input], values)))[0])
    except Exception as e:  # what numpy refuses has many types
        raise LeftOut(f"the reference refuses {case.op}: {str(e).splitlines()[0][:60] if case.op != 'Einsum' else 'labels'}") from e


def is_same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def draw(r, kind):
    made = KINDS[kind](r)
    case, exact = made if isinstance(made[-1], np.ndarray) else (made, None)
    if exact is None:
        expected = reference(case)
    elif case.op == "Resize" and not is_same(reference(case), exact):
        left_out["the reference itself, by the rounding of its f64 scale: held to fractions instead"] += 1
        expected = exact
    else:
        expected = exact
    return case, expected


def run_parts(folder, parts, flavours, device):
    """Status 0 and no text, or the indices that failed (none: all did)."""
    model, values = model_of(parts, flavours)
    path, inputs = os.path.join(folder, "model.onnx"), os.path.join(folder, "data")
    os.makedirs(inputs, exist_ok=True)
    for name in os.listdir(inputs):
        os.unlink(os.path.join(inputs, name))
    onnx.save(model, path)
    for i, value in enumerate(values):
        onnx.save_tensor(numpy_helper.from_array(value, model.graph.input[i].name), f"{inputs}/input_{i}.pb")
    for i, (index, _, expected) in enumerate(parts):
        if expected is not None:
            onnx.save_tensor(numpy_helper.from_array(expected.copy(), f"y{index}"), f"{inputs}/output_{i}.pb")
    words = ["uir-run", path, "--data", inputs, "--device", device, "--no-cache", "--quiet", "--strict"]
    if device.partition(":")[0] not in ("interpreter", "vm", "null"):
        words.append("--no-vm" if device.startswith("cpu") else "--interpret")
    done = run(*words, timeout=600)
    return done.returncode, done.stderr


def describe(case, flavour):
    words = [f"{v.dtype}{list(v.shape)}" + (f"={v.tolist()}" if v.size < 9 and p in case.parameters else "")
             for p, v in enumerate(case.operands) if v is not None]
    how = ", ".join(w for w, on in zip(("named dims", "parameters constant", "inputs constant"), flavour) if on)
    return f"{case.op} {case.attributes or str()}{case.expanded or str()} of {'; '.join(words)} ({how})"


def try_all(suite, folder, parts, flavours, device):
    status, _ = run_parts(folder, parts, flavours, device)
    if status == 0:
        suite.add(len(parts))
        return
    good = True
    for part in parts:
        status, text = run_parts(folder, [part], flavours, device)
        good &= suite.tell(status == 0, f"{device}: {describe(part[1], flavours[part[0]])}: exit {status}: {text.strip()[:300]}")
    if good:
        suite.tell(False, f"{device}: {len(parts)} cases together, and none of them alone")


# ---- what the run is to refuse ----
def refusal(op, operands, parameters, numbers, **attributes):
    return Case(op, [None if v is None else np.asarray(v) for v in operands], parameters, attributes), numbers


X24, X3 = np.ones((2, 4), np.float32), np.ones(3, np.float32)
REFUSALS = [
    refusal("Expand", [X24, [3, 4]], {1}, ("3", "2")), refusal("Expand", [X24, [0, 4]], {1}, ("0", "2")),
    refusal("Expand", [np.ones((0, 4), np.float32), [3, 4]], {1}, ("3", "0")),
    refusal("Expand", [X24, [5, 2, 3]], {1}, ("3", "4")),
    refusal("Slice", [X24, [0], [2], [1], [0]], {1, 2, 3, 4}, ("0",)),
    refusal("Slice", [X24, [0, 1], [2, 2], None, [1, 0]], {1, 2, 4}, ("0",)),
    refusal("Range", [np.int64(0), np.int64(5), np.int64(0)], {0, 1, 2}, ("0",)),
    refusal("Range", [np.float32(0), np.float32(5), np.float32(0)], {0, 1, 2}, ("0",)),
    refusal("Add", [X24, X3], set(), ("3", "4")), refusal("Mul", [X3, np.ones(0, np.float32)], set(), ("3", "0")),
    refusal("Where", [X3 > 0, X3, np.ones(2, np.float32)], set(), ("3", "2")),
    refusal("Sum", [X3, np.ones(1, np.float32), np.ones(2, np.float32)], set(), ("3", "2")),
    refusal("Max", [np.ones(1, np.float32), X3, np.ones(2, np.float32)], set(), ("3", "2")),
    refusal("MatMul", [np.ones((2, 2, 3), np.float32), np.ones((3, 3, 2), np.float32)], set(), ("3", "2")),
    refusal("Einsum", [X24, X3], set(), ("3", "4"), equation="ij,j->i"),
    refusal("Einsum", [X24, np.ones((3, 4), np.float32)], set(), ("3", "2"), equation="...,...->..."),
]


def check_refusals(suite, folder, devices):
    for index, (case, numbers) in enumerate(REFUSALS):
        for device in devices:
            for flavour in ((False, True, False), (True, False, False), (True, True, False)):
                status, text = run_parts(folder, [(index, case, None)], {index: flavour}, device)
                told = [line for line in text.splitlines() if f"'case{index}' ({case.op})" in line]
                line = told[0].split(f"({case.op})", 1)[1] if told else ""
                suite.tell(status == 3 and all(re.search(rf"(?<![\w-]){n}(?!\w)", line) for n in numbers),
                           f"{device} takes {describe(case, flavour)}: exit {status}: {text.strip()[:300]}")


def main():
    parser = make_parser(__doc__, count=300, seed=1)
    parser.add_argument("--devices", default="interpreter,vm,cpu")
    parser.add_argument("--of", default=",".join(KINDS))
    options = parser.parse_args()
    devices, kinds = options.devices.split(","), options.of.split(",")
    suite = Suite()
    with tempfile.TemporaryDirectory() as folder:
        parts, flavours = [], {}
        for index in range(options.count):
            r = random.Random(f"{options.seed} {index}")
            while True:
                try:
                    case, expected = draw(r, kinds[index % len(kinds)])
                    break
                except LeftOut as why:
                    left_out[str(why)] += 1
            flavours[index] = (r.random() < 0.6, r.random() < 0.5, r.random() < 0.1)
            parts.append((index, case, expected))
            if len(parts) == TOGETHER or index + 1 == options.count:
                for device in devices:
                    try_all(suite, folder, parts, flavours, device)
                parts = []
        check_refusals(suite, folder, devices)
    for why, count in sorted(left_out.items()):
        print(f"left out {count} times: {why}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
