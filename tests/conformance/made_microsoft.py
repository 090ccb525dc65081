"""Operators of com.microsoft as exporters of ONNX Runtime write them: NumPy by their definitions, which ONNX Runtime must
agree with where it has the element type. Each with its sizes fixed and symbolic, optional operands there and absent."""
import numpy as np
import onnxruntime as ort
from made import floats, run_ort
from onnx import helper, numpy_helper

RANDOM = np.random.default_rng(31)
LACKING = (ort.capi.onnxruntime_pybind11_state.NotImplemented, ort.capi.onnxruntime_pybind11_state.InvalidGraph)


def port(name, value, symbolic):
    dims = [f"{name}{d}" for d in range(value.ndim)] if symbolic else value.shape
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), dims)


def case(name, op, inputs, expected, constants=(), symbolic=False, tolerance=1e-5, **attributes):
    """`expected`: by output, None where it is not wanted."""
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    results = [f"y{i}" if value is not None else "" for i, value in enumerate(expected)]
    node = helper.make_node(op, names, results, domain="com.microsoft", **attributes)
    free = [i for i, value in enumerate(inputs) if value is not None and i not in constants]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]

    def model(symbolic):
        graph = helper.make_graph(
            [node], op, [port(names[i], inputs[i], symbolic) for i in free],
            [helper.make_empty_tensor_value_info(n) for n in results if n],
            [numpy_helper.from_array(inputs[i], names[i]) for i in constants if inputs[i] is not None])
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    wanted = [value for value in expected if value is not None]
    given = [inputs[i] for i in free]
    try:
        for mine, theirs in zip(wanted, run_ort(model(False), given)):
            np.testing.assert_allclose(mine.astype(np.float64), theirs.astype(np.float64), rtol=1e-3 + tolerance,
                                       atol=tolerance, err_msg=name)
    except LACKING:
        assert inputs[0].dtype != np.float32, f"{name}: ONNX Runtime was to have it in f32"
    return f"{name}_symbolic" if symbolic else name, model(symbolic), given, wanted


def erf(x):
    from scipy.special import erf as exact  # comes with scikit-learn
    return exact(x)


def gelu(x):
    return x / 2 * (1 + erf(x / np.sqrt(2)))


def fast_gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelus():
    for dtype in (np.float32, np.float16, np.float64):
        x, bias = (floats(3, 2, 20) * 3).astype(dtype), floats(20).astype(dtype)
        x[0, 0, :4] = 0, -0.0, 5, -1
        wide, name = x.astype(np.float64), np.dtype(dtype).name
        near = 4e-3 if dtype == np.float16 else 1e-5
        for symbolic in (False, True):
            def row(op, inputs, y, which="", **attributes):
                return case(f"{op}_{name}{which}", op, inputs, [y.astype(dtype)], symbolic=symbolic, tolerance=near,
                            **attributes)
            yield row("Gelu", [x], gelu(wide))
            yield row("BiasGelu", [x, bias], gelu(wide + bias))
            yield row("FastGelu", [x], fast_gelu(wide))
            yield row("FastGelu", [x, bias], fast_gelu(wide + bias), "_biased")
            yield row("QuickGelu", [x], wide * sigmoid(np.float32(1.702) * wide))
            yield row("QuickGelu", [x], wide * sigmoid(-0.5 * wide), "_alpha", alpha=-0.5)
            yield row("QuickGelu", [x], wide * sigmoid(wide), "_one", alpha=1.0)


def embeddings():
    batch, length, words, hidden = 3, 5, 11, 8
    ids = RANDOM.integers(0, words, (batch, length)).astype(np.int32)
    segments = RANDOM.integers(0, 2, (batch, length)).astype(np.int32)
    mask = (np.arange(length) < np.array([[5], [2], [0]])).astype(np.int32)
    places = RANDOM.integers(0, 7, (1, length)).astype(np.int32)
    own_places = RANDOM.integers(0, 7, (batch, length)).astype(np.int32)
    for dtype in (np.float32, np.float16):
        word, place, segment = (floats(n, hidden).astype(dtype) for n in (words, 7, 2))
        gamma, beta = floats(hidden).astype(dtype), floats(hidden).astype(dtype)
        near = 2e-2 if dtype == np.float16 else 1e-5
        for which, s, m, p, outputs, attributes in (
                ("plain", segments, None, None, 1, {"mask_index_type": 0}), ("no_segments", None, None, None, 3, {}),
                ("masked", segments, mask, None, 3, {"epsilon": 1e-5, "mask_index_type": 1}),
                ("no_mask", segments, None, None, 2, {}), ("places", segments, mask, places, 3, {"epsilon": 0.1}),
                ("own_places", None, mask, own_places, 3, {})):
            sum_ = word[ids].astype(np.float64) + place[np.arange(length) if p is None else p]
            if s is not None:
                sum_ = sum_ + segment[s]
            centred = sum_ - sum_.mean(-1, keepdims=True)
            y = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + attributes.get("epsilon", 1e-12))
            y = (y * gamma + beta).astype(dtype)
            counts = np.zeros(batch, np.int32) if m is None else (m == 1).sum(1).astype(np.int32)
            inputs = [ids, s, word, place, segment if s is not None else None, gamma, beta, m, p]
            for symbolic in (False, True):
                yield case(f"EmbedLayerNormalization_{np.dtype(dtype).name}_{which}", "EmbedLayerNormalization", inputs,
                           [y, counts, sum_.astype(dtype)][:outputs], constants=() if symbolic else (2, 3, 4, 5, 6),
                           symbolic=symbolic, tolerance=near, **attributes)


def quantised(x):
    """x as integers of a scale over its range and 0, as the operator takes it."""
    low, high = min(x.min(initial=0), np.float32(0)), max(x.max(initial=0), np.float32(0))
    scale = np.float32(1) if low == high else (high - low) / np.float32(255)
    zero = np.rint(np.clip(-low / scale, 0, 255))
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero).astype(np.int64), scale


def product(x, w, scale, zero):
    q, own = quantised(x)
    return (q @ (w.astype(np.int64) - zero)).astype(np.float32) * (own * scale)


ACTIVATIONS = {"Sigmoid": sigmoid, "Tanh": np.tanh, "Relu": lambda x: np.maximum(x, 0),
               "HardSigmoid": lambda x: np.clip(0.3 * x + 0.5, 0, 1)}


def one_direction(x, w, r, bias, lengths, h, c, peep, w_scale, w_zero, r_scale, r_zero, reverse, functions, clip, forget):
    steps, batch, _ = x.shape
    hidden = r.shape[0]
    f, g, o_ = (ACTIVATIONS[n] for n in functions)
    bound = (lambda v: np.clip(v, -clip, clip)) if clip else (lambda v: v)
    order = np.tile(np.arange(steps)[:, None], (1, batch))
    if reverse:
        order = np.where(order < lengths, lengths - 1 - order, order)
    column = np.arange(batch)
    used = x[:lengths.max()].reshape(-1, x.shape[2])
    whole = np.zeros((steps, batch, 4 * hidden), np.float32)
    whole[:lengths.max()] = product(used, w, w_scale, w_zero).reshape(-1, batch, 4 * hidden)
    y = np.zeros((steps, batch, hidden), np.float32)
    for t in range(steps):
        inside = (t < lengths)[:, None]
        sums = whole[order[t], column] + bias + product(np.where(inside, h, 0).astype(np.float32), r, r_scale, r_zero)
        i, o, fo, ca = np.split(sums.astype(np.float32), 4, 1)
        i = f(bound(i + peep[0] * c))
        fo = 1 - i if forget else f(bound(fo + peep[2] * c))
        cell = (fo * c + i * g(bound(ca))).astype(np.float32)
        out = (f(bound(o + peep[1] * cell)) * o_(cell)).astype(np.float32)
        y[order[t], column] = np.where(inside, out, 0)
        h, c = np.where(inside, out, h).astype(np.float32), np.where(inside, cell, c).astype(np.float32)
    return y, h, c


def lstm(direction="forward", dtype=np.int8, per_channel=False, biased=True, ragged=False, state=True, peeps=False,
         steps=6, batch=3, clip=0, forget=0, functions=("Sigmoid", "Tanh", "Tanh"), zero=True, seed=1):
    random = np.random.default_rng(seed)
    inputs, hidden, count = 5, 4, 2 if direction == "bidirectional" else 1
    low, high = (64, 192) if dtype == np.uint8 else (-64, 64)  # ONNX Runtime saturates in 16 bits where a CPU lacks VNNI

    def normal(*shape):
        return random.standard_normal(shape).astype(np.float32)

    x = normal(steps, batch, inputs)
    w, r = (random.integers(low, high, (count, n, 4 * hidden)).astype(dtype) for n in (inputs, hidden))
    size = (count, 4 * hidden) if per_channel else (count,)
    w_scale, r_scale = (random.uniform(0.004, 0.008, size).astype(np.float32) for _ in range(2))
    middle = np.full(size, 128 if dtype == np.uint8 else 0, dtype)
    shift = random.integers(-5, 5, size).astype(np.int64) if zero else 0
    w_zero, r_zero = (middle + shift).astype(dtype), (middle - shift).astype(dtype)
    bias = normal(count, 8 * hidden) if biased else None
    lengths = random.integers(1, steps, batch).astype(np.int32) if ragged else None
    h, c = (normal(count, batch, hidden) for _ in range(2)) if state else (None, None)
    peep = normal(count, 3 * hidden) if peeps else None
    sequences, ends, cells = [], [], []
    for d in range(count):
        one = np.zeros(4 * hidden, np.float32) if bias is None else bias[d, :4 * hidden] + bias[d, 4 * hidden:]
        nothing = np.zeros((batch, hidden), np.float32)
        y, last, cell = one_direction(
            x, w[d], r[d], one, np.full(batch, steps) if lengths is None else lengths, nothing if h is None else h[d],
            nothing if c is None else c[d], np.zeros((3, hidden), np.float32) if peep is None else peep[d].reshape(3, hidden),
            w_scale[d], w_zero[d].astype(np.int64), r_scale[d], r_zero[d].astype(np.int64),
            direction == "reverse" or d == 1, functions, clip, forget)
        sequences.append(y), ends.append(last), cells.append(cell)
    operands = [x, w, r, bias, lengths, h, c, peep, w_scale, w_zero, r_scale, r_zero]
    attributes = {"hidden_size": hidden, "direction": direction}
    if clip:
        attributes["clip"] = clip
    if forget:
        attributes["input_forget"] = forget
    if functions != ("Sigmoid", "Tanh", "Tanh"):
        attributes["activations"] = list(functions) * count
        attributes["activation_alpha"] = [0.3] * count
    return operands, [np.stack(sequences, 1), np.stack(ends), np.stack(cells)], attributes


def lstms():
    for number, (name, changes) in enumerate({
            "plain": {}, "u8": {"dtype": np.uint8}, "reverse": {"direction": "reverse"},
            "both": {"direction": "bidirectional"}, "columns": {"per_channel": True, "zero": False, "direction": "bidirectional"},
            "columns_both": {"per_channel": True, "zero": False, "direction": "reverse"}, "symmetric": {"zero": False},
            "bare": {"biased": False, "state": False}, "peeps": {"peeps": True}, "ragged": {"ragged": True},
            "ragged_both": {"ragged": True, "direction": "bidirectional", "peeps": True},
            "clip": {"clip": 0.5}, "forget": {"forget": 1}, "one_step": {"steps": 1}, "one_row": {"batch": 1},
            "functions": {"functions": ("HardSigmoid", "Relu", "Tanh")}}.items()):
        operands, expected, attributes = lstm(seed=number + 1, **changes)
        for symbolic in (False, True):
            yield case(f"DynamicQuantizeLSTM_{name}", "DynamicQuantizeLSTM", operands, expected,
                       constants=() if symbolic else (1, 2, 3, 7, 8, 9, 10, 11), symbolic=symbolic, tolerance=2e-3,
                       **attributes)
        yield case(f"DynamicQuantizeLSTM_{name}_ends", "DynamicQuantizeLSTM", operands, [None] + expected[1:],
                   constants=(1, 2, 8, 9, 10, 11), tolerance=2e-3, **attributes)


def cases():
    yield from gelus()
    yield from embeddings()
    yield from lstms()
