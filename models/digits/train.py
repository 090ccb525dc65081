#!/usr/bin/env python3
"""Trains the digit classifier and writes it with its pictures and one data set.

    build/venv/bin/python models/digits/train.py [--epochs N]

In: scikit-learn's own 8x8 digits (1,797 pictures by hand, values 0 to 16). A stratified fifth is held out; nothing is
chosen by looking at it. Out, in this folder: digits.onnx, pictures/NAME.png (held-out ones, the label in the name) and
test_data_set_0 (16 held-out pictures, and the probabilities by this file's own arithmetic in float64).

The network takes pictures as a picture file holds them, u8 [batch, 8, 8, 1]; scaling and layout are part of the model:
conv 3x3 to 16, ReLU, conv 3x3 to 32, ReLU, 2x2 maximum, product to 10, softmax. The training is plain numpy (Adam on
cross-entropy, pictures shifted and scaled at random), so that the same seed gives the same network.
"""
import argparse
import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

HERE = os.path.dirname(os.path.abspath(__file__))
PICTURES = 6  # written as .png


def load():
    """Pictures as u8 [n, 8, 8] on the scale of picture files, and labels; training part, then held-out part."""
    digits = load_digits()
    pictures = np.rint(digits.images * 255 / 16).astype(np.uint8)
    return train_test_split(pictures, digits.target, test_size=0.2, stratify=digits.target, random_state=0)


def unfold(x):
    """[n, c, 8, 8] -> [n, 64, c * 9]: the padded 3x3 windows."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, h * w, c * 9)


def fold(windows, c):
    """The transpose of unfold: adds every window entry back to where it came from."""
    n = windows.shape[0]
    windows = windows.reshape(n, 8, 8, c, 3, 3)
    padded = np.zeros((n, c, 10, 10), windows.dtype)
    for dy in range(3):
        for dx in range(3):
            padded[:, :, dy : dy + 8, dx : dx + 8] += windows[:, :, :, :, dy, dx].transpose(0, 3, 1, 2)
    return padded[:, :, 1:9, 1:9]


def convolve(x, weight, bias):
    """3x3, padding 1. Returns [n, out, 8, 8] and the windows, which the backward pass needs."""
    n, out = x.shape[0], weight.shape[0]
    windows = unfold(x)
    y = windows @ weight.reshape(out, -1).T + bias
    return y.transpose(0, 2, 1).reshape(n, out, 8, 8), windows


def forward(p, x):
    """Logits of x [n, 1, 8, 8], and what the backward pass needs."""
    a, windows1 = convolve(x, p["conv1.weight"], p["conv1.bias"])
    b, windows2 = convolve(np.maximum(a, 0), p["conv2.weight"], p["conv2.bias"])
    n, c = b.shape[:2]
    cells = np.maximum(b, 0).reshape(n, c, 4, 2, 4, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, c, 4, 4, 4)
    flat = cells.max(-1).reshape(n, -1)
    return flat @ p["classes.weight"] + p["classes.bias"], (a, windows1, b, windows2, cells, flat)


def softmax(logits):
    e = np.exp(logits - logits.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def backward(p, kept, d):
    """Gradients of the parameters for d = dloss/dlogits [n, 10]."""
    a, windows1, b, windows2, cells, flat = kept
    n, c = b.shape[:2]
    g = {"classes.weight": flat.T @ d, "classes.bias": d.sum(0)}
    dcells = np.zeros_like(cells)
    np.put_along_axis(dcells, cells.argmax(-1)[..., None], (d @ p["classes.weight"].T).reshape(n, c, 4, 4)[..., None], -1)
    db = dcells.reshape(n, c, 4, 4, 2, 2).transpose(0, 1, 2, 4, 3, 5).reshape(b.shape) * (b > 0)
    below = db.reshape(n, c, 64).transpose(0, 2, 1) @ p["conv2.weight"].reshape(c, -1)
    da = fold(below, a.shape[1]) * (a > 0)
    for name, dy, windows in (("conv2", db, windows2), ("conv1", da, windows1)):
        rows = dy.reshape(n, dy.shape[1], 64).transpose(0, 2, 1)
        g[name + ".weight"] = np.einsum("npo,npk->ok", rows, windows, optimize=True).reshape(p[name + ".weight"].shape)
        g[name + ".bias"] = rows.sum((0, 1))
    return g


def augment(rng, x):
    """Each picture shifted by up to one pixel and made up to a fifth stronger or weaker."""
    out = np.empty_like(x)
    shifts = rng.integers(-1, 2, (len(x), 2))
    for i, (dy, dx) in enumerate(shifts):
        padded = np.pad(x[i, 0], 1)
        out[i, 0] = padded[1 - dy : 9 - dy, 1 - dx : 9 - dx]
    return out * rng.uniform(0.8, 1.2, (len(x), 1, 1, 1)).astype(np.float32)


def train(x, labels, epochs):
    rng = np.random.default_rng(0)

    def normal(shape, inputs):
        return (rng.standard_normal(shape) * np.sqrt(2 / inputs)).astype(np.float32)

    p = {
        "conv1.weight": normal((16, 1, 3, 3), 9),
        "conv1.bias": np.zeros(16, np.float32),
        "conv2.weight": normal((32, 16, 3, 3), 144),
        "conv2.bias": np.zeros(32, np.float32),
        "classes.weight": normal((512, 10), 512),
        "classes.bias": np.zeros(10, np.float32),
    }
    first = {k: np.zeros_like(v) for k, v in p.items()}
    second = {k: np.zeros_like(v) for k, v in p.items()}
    step, batch = 0, 64
    steps = epochs * (len(x) // batch)
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x) - batch + 1, batch):
            chosen = order[start : start + batch]
            logits, kept = forward(p, augment(rng, x[chosen]))
            d = softmax(logits)
            d[np.arange(batch), labels[chosen]] -= 1
            gradients = backward(p, kept, d / batch)
            step += 1
            rate = 0.003 * 0.5 * (1 + np.cos(np.pi * step / steps))
            for k, g in gradients.items():
                first[k] = 0.9 * first[k] + 0.1 * g
                second[k] = 0.999 * second[k] + 0.001 * g * g
                p[k] -= rate * (first[k] / (1 - 0.9**step)) / (np.sqrt(second[k] / (1 - 0.999**step)) + 1e-8)
    return p


def to_input(pictures):
    return (pictures[:, None] * np.float32(1 / 255)).astype(np.float32)


def build(p):
    nodes = [
        helper.make_node("Cast", ["picture"], ["grey"], "grey", to=TensorProto.FLOAT),
        helper.make_node("Mul", ["grey", "scale"], ["scaled"], "scaled"),
        helper.make_node("Transpose", ["scaled"], ["planes"], "planes", perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["planes", "conv1.weight", "conv1.bias"], ["edges"], "edges", pads=[1] * 4),
        helper.make_node("Relu", ["edges"], ["edges_on"], "edges_on"),
        helper.make_node("Conv", ["edges_on", "conv2.weight", "conv2.bias"], ["strokes"], "strokes", pads=[1] * 4),
        helper.make_node("Relu", ["strokes"], ["strokes_on"], "strokes_on"),
        helper.make_node("MaxPool", ["strokes_on"], ["cells"], "cells", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["cells"], ["features"], "features"),
        helper.make_node("Gemm", ["features", "classes.weight", "classes.bias"], ["logits"], "logits"),
        helper.make_node("Softmax", ["logits"], ["probabilities"], "probabilities", axis=1),
    ]
    initializers = [numpy_helper.from_array(v, k) for k, v in p.items()]
    initializers.append(numpy_helper.from_array(np.array(1 / 255, np.float32), "scale"))
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("picture", TensorProto.UINT8, ["batch", 8, 8, 1])],
        [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["batch", 10])],
        initializers,
    )
    model = helper.make_model(
        graph, producer_name="models/digits/train.py", opset_imports=[helper.make_opsetid("", 20)], ir_version=9
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def write_tensor(array, name, path):
    with open(path, "wb") as f:
        f.write(numpy_helper.from_array(array, name).SerializeToString())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=60)
    epochs = parser.parse_args().epochs
    pictures, held_pictures, labels, held_labels = load()
    p = train(to_input(pictures), labels, epochs)

    exact = {k: v.astype(np.float64) for k, v in p.items()}
    probabilities = softmax(forward(exact, to_input(held_pictures).astype(np.float64))[0])
    right = int((probabilities.argmax(1) == held_labels).sum())
    print(f"{len(pictures)} digits trained on, {right} of {len(held_labels)} held-out ones right: "
          f"{100 * right / len(held_labels):.1f} %")

    onnx.save(build(p), os.path.join(HERE, "digits.onnx"))
    # The first held-out pictures, each of another digit.
    folder = os.path.join(HERE, "pictures")
    os.makedirs(folder, exist_ok=True)
    indices = np.sort(np.unique(held_labels, return_index=True)[1])[:PICTURES]
    for index in indices:
        label = held_labels[index]
        Image.fromarray(held_pictures[index]).save(os.path.join(folder, f"{label}.png"), optimize=True)
    folder = os.path.join(HERE, "test_data_set_0")
    os.makedirs(folder, exist_ok=True)
    write_tensor(held_pictures[:16, :, :, None], "picture", os.path.join(folder, "input_0.pb"))
    write_tensor(probabilities[:16].astype(np.float32), "probabilities", os.path.join(folder, "output_0.pb"))


if __name__ == "__main__":
    main()
