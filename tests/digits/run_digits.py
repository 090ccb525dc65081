#!/usr/bin/env python3
"""The project's own model, as a newcomer meets it: its data set, its accuracy on held-out digits by our own run, what
`script/run` shows and how soon, and what its example program says of bad input.

In: models/digits, the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import os
import re
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import suite  # noqa: E402
from suite import BIN, DIGITS, ROOT, run_tests  # noqa: E402

FOLDER = os.path.dirname(DIGITS)
HELD_OUT_RIGHT = 357  # of 360, as models/README.md says
START_LIMIT_S = 2.0

sys.path.insert(0, FOLDER)
import train  # noqa: E402  the same split as the training's


def run(*command, cwd=ROOT):
    return suite.run(*command, cwd=cwd, timeout=300)


def expect(condition, what, done):
    if not condition:
        raise AssertionError(f"{what}\nexit {done.returncode}\n{done.stdout}\n{done.stderr}")


def test_data_set():
    done = run(os.path.join(BIN, "uir-run"), DIGITS, "--data", os.path.join(FOLDER, "test_data_set_0"))
    expect(done.returncode == 0, "the model does not agree with its data set", done)


def test_held_out_accuracy():
    _, pictures, _, labels = train.load()
    x = pictures[:, :, :, None]
    expected = onnxruntime.InferenceSession(DIGITS, providers=["CPUExecutionProvider"]).run(None, {"picture": x})[0]
    with tempfile.TemporaryDirectory() as folder:
        data, saved = os.path.join(folder, "data"), os.path.join(folder, "saved")
        os.mkdir(data)
        os.mkdir(saved)
        train.write_tensor(x, "picture", os.path.join(data, "input_0.pb"))
        train.write_tensor(expected, "probabilities", os.path.join(data, "output_0.pb"))
        done = run(os.path.join(BIN, "uir-run"), DIGITS, "--data", data, "--save", saved)
        expect(done.returncode == 0, "360 held-out digits differ from ONNX Runtime's", done)
        probabilities = numpy_helper.to_array(onnx.load_tensor(os.path.join(saved, "output_0.pb")))
    right = int((probabilities.argmax(1) == labels).sum())
    expect(right == HELD_OUT_RIGHT, f"{right} held-out digits are right, not {HELD_OUT_RIGHT}", done)
    expect(np.abs(probabilities.sum(1) - 1).max() < 1e-5, "probabilities do not add up to 1", done)


def test_script_run_shows_digits():
    done = run(os.path.join(ROOT, "script", "run"), cwd="/")
    expect(done.returncode == 0, "script/run failed", done)
    answers = re.findall(r"(\d)\.png\n(?:.*\n)*?.*answer: (\d)", done.stdout)
    expect(len(answers) == len(glob.glob(os.path.join(FOLDER, "pictures", "*.png"))), "a picture is not shown", done)
    for digit, answer in answers:
        expect(digit == answer, f"the picture of {digit} is taken for {answer}", done)
    for step in ("read the model", "decompose", "read a picture", "classify it", "edges", "probabilities"):
        expect(re.search(re.escape(step) + r".* \d+\.\d+ ms", done.stdout), f"no time for: {step}", done)


def test_script_run_starts_soon():
    seconds = []
    for _ in range(3):
        start = time.monotonic()
        done = run(os.path.join(ROOT, "script", "run"), "--version", cwd="/")
        seconds.append(time.monotonic() - start)
        expect(done.returncode == 0, "script/run --version failed", done)
    expect(min(seconds) < START_LIMIT_S, f"script/run took {min(seconds):.2f} s to start", done)


def test_script_run_keeps_the_callers_folder():
    with tempfile.TemporaryDirectory(suffix=" with spaces $(x)") as folder:
        os.symlink(DIGITS, os.path.join(folder, "m.onnx"))
        os.symlink(os.path.join(FOLDER, "test_data_set_0"), os.path.join(folder, "data"))
        done = run(os.path.join(ROOT, "script", "run"), "m.onnx", "--data", "data", cwd=folder)
        expect(done.returncode == 0, "relative paths are not the caller's", done)


def test_example_refuses_bad_input():
    program = os.path.join(BIN, "uir-digits")
    picture = os.path.join(FOLDER, "pictures", "2.png")
    with tempfile.TemporaryDirectory() as folder:
        wide = os.path.join(folder, "wide.png")
        Image.fromarray(np.zeros((8, 9), np.uint8)).save(wide)
        broken = os.path.join(folder, "broken.png")
        with open(picture, "rb") as f, open(broken, "wb") as out:
            out.write(f.read()[:60])
        absent = os.path.join(folder, "absent")
        for arguments, code in (([DIGITS], 2), ([absent, picture], 3), ([picture, picture], 3), ([DIGITS, absent], 3),
                                ([DIGITS, wide], 3), ([DIGITS, broken], 3)):
            done = run(program, *arguments)
            expect(done.returncode == code and done.stderr.strip(), f"{arguments}: exit {code} and a message expected", done)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
