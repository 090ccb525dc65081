#!/usr/bin/env python3
"""What products multiply: `run_precision.py [--all]`.

For each of this build's described devices and the CPU, products in the forms that differ (constant weights, two operands
of the model, a batch, a convolution, few channels) by f32, f16, bf16 and auto: which of them multiply halves, by the
kernels' text and by uir-run's counts; the results, held to NumPy with factors rounded as the device's are; what is beyond
a half type's range; what `auto` takes by the description's cycles; what is refused. A precision of f32 leaves every graph
as it is; models of halves have theirs multiplied without a word. `--check` goes through with halves.

In: the programs in $UIR_BIN, the models in $UIR_MODELS_BUILT. --all: whole models by every device and precision.
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
from suite import DIGITS, ROOT, Suite, find_model, make_parser, run, select  # noqa: E402

ASCEND = os.path.join(ROOT, "backends", "ascend", "target", "ascend.device")
# By device: the half types that it multiplies, of which factors; whether there is `mma` of f32; what auto takes.
DEVICES = {
    "ascend:910B1": (("f16", "bf16"), "both", True, "f16"),
    "ascend:910A": (("f16",), "both", False, "f16"),
    "cuda:sm_90": (("f16", "bf16"), "both", True, "f16"),
    "cambricon": (("f16",), "both", True, "f32"),
    "opencl:gpu": ((), "none", True, "f32"),
    "opencl:cpu": ((), "none", True, "f32"),
    "vm": (("f16", "bf16"), "weights", True, "f32"),
}
FEW = ["lstm_classifier", "minilm_l6", "silero_vad", "llama_tiny_op23", "espcn"]
suite = Suite()
tell = suite.tell


def how(device):
    return (*select(device), "--no-cache") if device == "vm" else (*select(device), "--interpret", "--no-cache")


def told(device, model, *words):
    """What uir-run says of a run, and its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        done = run("uir-run", model, *how(device), "--random", "5", "--json", "--save", folder, "--format", "npy", *words)
        if done.returncode:
            return None, done.stderr
        names = [o["name"] for o in json.loads(done.stdout)["outputs"]]
        return json.loads(done.stdout), [np.load(os.path.join(folder, f"{n}.npy")) for n in names]


# ---- products ----
def rounded(x, precision):
    if precision == "f16":
        return x.astype(np.float16).astype(np.float64)
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32).astype(np.float64)


def save(folder, name, nodes, shapes, weights=(), kind=TensorProto.FLOAT):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, kind, s) for n, s in shapes.items()],
                              [helper.make_tensor_value_info("y", kind, None)], [numpy_helper.from_array(w, n) for n, w in weights])
    path = os.path.join(folder, name + ".onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
    return path


def convolved(x, w):
    """3 x 3 with padding, NCHW."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w)


def make_products(folder):
    """By name: the model, its inputs' shapes, the weights, the product in NumPy, whether it is matrices."""
    random = np.random.default_rng(7)
    w = (random.standard_normal((48, 40)) / 7).astype(np.float32)
    filters = (random.standard_normal((24, 16, 3, 3)) / 12).astype(np.float32)
    few = (random.standard_normal((4, 2, 3, 3)) / 4).astype(np.float32)
    product, conv = helper.make_node("MatMul", ["a", "w"], ["y"]), helper.make_node("Conv", ["a", "w"], ["y"], pads=[1] * 4)
    forms = {
        "weights": ([product], {"a": [33, 48]}, w, np.matmul, True),
        "behind": ([helper.make_node("Neg", ["a"], ["n"]), helper.make_node("MatMul", ["n", "w"], ["m"]),
                    helper.make_node("Neg", ["m"], ["y"])], {"a": [20, 48]}, w, np.matmul, True),
        "operands": ([product], {"a": [33, 48], "w": [48, 40]}, None, np.matmul, True),
        "batch": ([product], {"a": [3, 17, 48], "w": [3, 48, 24]}, None, np.matmul, True),
        "windows": ([conv], {"a": [1, 16, 9, 10]}, filters, convolved, True),
        "few": ([conv], {"a": [1, 2, 9, 10]}, few, convolved, False),
    }
    return {name: (save(folder, name, nodes, shapes, [("w", c)] if c is not None else []), shapes, c, f, matrices)
            for name, (nodes, shapes, c, f, matrices) in forms.items()}


def inputs_of(folder, name, shapes):
    """Files for the inputs, and their arrays."""
    random = np.random.default_rng(11)
    arrays = {n: random.standard_normal(s).astype(np.float32) for n, s in shapes.items()}
    words = []
    for n, array in arrays.items():
        path = os.path.join(folder, f"{name}-{n}.npy")
        np.save(path, array)
        words += ["--input", f"{n}={path}"]
    return arrays, words


def check_product(device, precision, name, product, folder):
    model, shapes, constant, formula, matrices = product
    halves, which, has_f32, chosen = DEVICES[device]
    what = f"{device}: {name} by {precision}"
    arrays, words = inputs_of(folder, name, shapes)
    done, outputs = told(device, model, "--exact", "--precision", precision, *words)
    if done is None:
        tell(False, f"{what}: {outputs[:300]}")
        return
    by = chosen if precision == "auto" else precision
    is_half = by != "f32" and matrices and (which == "both" or constant is not None)
    expected = {"all": 1, "f16": int(is_half and by == "f16"), "bf16": int(is_half and by == "bf16"), "out_of_range": 0}
    tell(done["products"] == expected and done["precision"] == precision, f"{what}: {done['products']} of {done['precision']}")
    left, right = arrays["a"].astype(np.float64), (constant if constant is not None else arrays["w"]).astype(np.float64)
    exact = formula(left, right)
    if is_half:
        left = rounded(left, by) if which == "both" else left
        right = rounded(right, by)
    wanted = formula(left, right)
    error = np.abs(outputs[0] - wanted).max() / np.abs(wanted).max()
    tell(error < 1e-5, f"{what}: differs by {error} of the greatest")
    if is_half:
        tell(np.abs(outputs[0] - exact).max() / np.abs(exact).max() > 3e-5, f"{what}: nothing was rounded")
    check_kernel(device, what, model, precision, by if is_half and which == "both" else "f32", is_half, matrices)


def check_kernel(device, what, model, precision, factor, is_half, matrices):
    """The kernels multiply this type where the machine's unit for products does it."""
    if device == "vm" or not matrices:
        return
    text = run("uir-opt", model, *select(device), "--exact", "--precision", precision, "--after", "igraph").stdout
    factors = set(re.findall(r"^ *mma\.f32\.(\w+)\.", text, re.M))
    has_f32 = DEVICES[device][2]
    wanted = set() if factor == "f32" and not has_f32 else {factor}
    tell(factors == wanted, f"{what}: mma of {factors}, not {wanted}")


def check_products(device, folder, products):
    halves = DEVICES[device][0]
    for name, product in products.items():
        for precision in ("f32", *halves, "auto"):
            check_product(device, precision, name, product, folder)


# ---- ranges, cycles, words ----
def check_ranges(device, folder):
    halves, which, _, chosen = DEVICES[device]
    if not halves:
        return
    w = np.random.default_rng(3).standard_normal((32, 32)).astype(np.float32)
    w[3, 4] = 1e6
    model = save(folder, "far", [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [16, 32]}, [("w", w)])
    plain, reference = told(device, model)
    done, outputs = told(device, model, "--precision", "f16")
    tell(done and done["products"]["out_of_range"] == 1 and done["products"]["f16"] == 0, f"{device}: out of range: {outputs if done is None else done['products']}")
    tell(done and outputs[0].tobytes() == reference[0].tobytes(), f"{device}: out of range: a product that stays f32 differs")
    done, outputs = told(device, model, "--precision", "auto")
    takes = int(chosen != "f32" and "bf16" in halves)
    tell(done and done["products"]["bf16"] == takes, f"{device}: auto out of range: {outputs if done is None else done['products']}")


def check_cycles(folder, products):
    """What auto takes follows from the description's cycles alone."""
    with open(ASCEND, encoding="utf-8") as f:
        text = f.read()
    row = "legal mma of f32 left f32 into l0c from l0a, l0b on cube by M with formats, equal_operands\n      cycles 4"
    for cycles, wanted in ((4, 1), (1, 0), (2, 1)):
        path = os.path.join(folder, f"cycles{cycles}.device")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("device ascend {", "device other {").replace(row, row[:-1] + str(cycles)))
        done, outputs = told(path, products["weights"][0], "--precision", "auto")
        tell(row in text and done and done["products"]["f16"] == wanted, f"{cycles} cycles for f32: {outputs if done is None else done['products']}")


def check_words(folder, products):
    model = products["weights"][0]
    for device, (halves, *_) in DEVICES.items():
        for precision in {"f16", "bf16"} - set(halves):
            done = run("uir-run", model, *how(device), "--precision", precision)
            name = device.partition(":")[0]
            tell(done.returncode == 2 and f"precision {precision}: the description of device {name}" in done.stderr,
                 f"{device}: {precision} is not refused: {done.returncode} {done.stderr[:200]}")
    for program in ("uir-run", "uir-opt", "uir-pack", "uir-tune"):
        rest = ("-o", os.path.join(folder, "m.uir")) if program == "uir-pack" else ()
        done = run(program, model, "--precision", "f8", *rest)
        tell(done.returncode == 2 and "precision 'f8' is unknown; use one of f32, f16, bf16, auto" in done.stderr,
             f"{program}: f8 is not refused: {done.returncode} {done.stderr[:200]}")
    done = run("uir-run", model, "--device", "interpreter", "--precision", "f16")
    tell(done.returncode == 2 and "the interpreter" in done.stderr, f"interpreter: f16 is not refused: {done.stderr[:200]}")
    text = os.path.join(folder, "late.txt")
    run("uir-opt", model, "--after", "layouts", "-o", text)
    done = run("uir-opt", text, "--from", "layouts", "--precision", "f16", "--after", "fusion")
    tell(done.returncode == 2 and "operand types are fixed" in done.stderr, f"a late text takes a precision: {done.stderr[:200]}")


def check_texts(folder, products):
    """A text after the stage, with its rounded constants, goes on to the same kernels."""
    for name in ("weights", "windows"):
        model, text = products[name][0], os.path.join(folder, "precision.txt")
        words = ("--device", "ascend", "--after", "igraph")
        whole = run("uir-opt", model, "--precision", "f16", *words)
        run("uir-opt", model, "--precision", "f16", "--device", "ascend", "--after", "precision", "--constants", "inline", "-o", text)
        again = run("uir-opt", text, "--from", "precision", *words)
        tell(whole.returncode == 0 and kernels(whole.stdout) == kernels(again.stdout), f"{name} from a text: {again.stderr[:300]}")


def kernels(text):
    return re.findall(r"^igraph @.*?^\}", text, re.M | re.S)


# ---- halves of the model's own ----
def check_own_halves(folder):
    """Halves that a model has are multiplied as they are, by no word, and lose nothing."""
    w = (np.random.default_rng(2).standard_normal((48, 32)) / 7).astype(np.float16)
    model = save(folder, "own", [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": [24, 48]}, [("w", w)], TensorProto.FLOAT16)
    x = np.random.default_rng(4).standard_normal((24, 48)).astype(np.float16)
    np.save(os.path.join(folder, "own-x.npy"), x)
    wanted = x.astype(np.float64) @ w.astype(np.float64)
    for device in ("ascend:910B1", "cuda:sm_90", "cambricon"):
        text = run("uir-opt", model, *select(device), "--after", "igraph").stdout
        tell("mma.f32.f16.f16" in text and "mma.f32.f32.f32" not in text, f"{device}: halves of the model are not multiplied as they are")
        done, outputs = told(device, model, "--input", "x=" + os.path.join(folder, "own-x.npy"))
        error = np.abs(outputs[0].astype(np.float64) - wanted).max() / np.abs(wanted).max() if done else 1
        tell(error < 1e-3, f"{device}: halves of the model: {error if done else outputs[:200]}")


# ---- whole models ----
def models(names):
    return {n: find_model(n) for n in ["digits", *names] if os.path.exists(find_model(n))}


def check_default(names):
    """f32 changes nothing."""
    for name, model in models(names).items():
        for device in ("cpu", "ascend", "cuda"):
            before = run("uir-opt", model, "--device", device, "--after", last_pass()).stdout
            after = run("uir-opt", model, "--device", device, "--after", "precision").stdout
            drop = re.compile(r"^# stage: .*\n", re.M)
            tell(before and drop.sub("", before) == drop.sub("", after), f"{device}: {name}: f32 changes the graph")


def last_pass():
    names = re.findall(r"^ +(\S+) ", run("uir-opt", "--list").stdout, re.M)
    return names[names.index("precision") - 1]


def check_model(device, name, model, precision):
    data = os.path.dirname(model)
    done = run("uir-run", model, *how(device), "--data", data, "--precision", precision, "--json")
    said = json.loads(done.stdout) if done.returncode in (0, 1) else None
    tell(done.returncode == 0 and said["products"][precision] > 0, f"{device}: {name} by {precision}: {done.stderr[:300]}")
    if said:
        accuracy = said["data_sets"][0]["accuracy"]
        tell(accuracy and accuracy["against"] == "what was expected" and 0 < accuracy["max_abs"], f"{device}: {name}: {accuracy}")


def check_stages(model, *words):
    done = run("uir-run", model, "--device", "vm", "--no-cache", "--data", os.path.dirname(model), "--check", "--quiet", *words)
    tell(done.returncode == 0, f"--check {' '.join(words)}: {done.stderr[:300]}")
    done = run("uir-run", model, "--device", "vm", "--no-cache", "--data", os.path.dirname(model), "--check", *words)
    tell(("check precision" in done.stdout) == bool(words), f"--check {' '.join(words)}: {done.stdout[:300]}")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        products = make_products(folder)
        for device in DEVICES:
            check_products(device, folder, products)
            check_ranges(device, folder)
        check_cycles(folder, products)
        check_words(folder, products)
        check_texts(folder, products)
        check_own_halves(folder)
    for words in ((), ("--precision", "f16"), ("--precision", "bf16")):
        check_stages(DIGITS, *words)
    check_default(FEW if options.all else FEW[:2])
    for device, (halves, *_) in DEVICES.items():
        for precision in halves:
            check_model(device, "digits", DIGITS, precision)
            for name, model in models(FEW).items() if options.all else ():
                if name != "digits":
                    check_model(device, name, model, precision)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
