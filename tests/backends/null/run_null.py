#!/usr/bin/env python3
"""Kernels for described machines, printed by the null backend's emitter and run: `run_null.py [--all]`.

For each device: a model's kernels, as uir-opt makes them, are emitted as C on the simulated machine, compiled and held
to the interpreter (uir-null-kernels). What asks for an emitter that there is none of is refused with what to do.

In: the programs in $UIR_BIN, the models in $UIR_MODELS_BUILT. --all: all models for all devices, which takes a quarter
of an hour.
"""
import argparse
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lower"))
from described import MODELS, ROOT, Suite, run, select

LUNE = os.path.join(ROOT, "docs", "lune.device")
DEVICES = {  # and their models where not all are asked for
    "null": ["lstm_classifier", "silero_vad"],
    LUNE: ["lstm_classifier", "silero_vad", "minilm_l6"],
    "ascend:910B1": ["lstm_classifier"],
    "cuda:sm_90": ["lstm_classifier"],
    "opencl": ["lstm_classifier"],
    "cambricon": ["lstm_classifier"],
}
suite = Suite()
tell = suite.tell


def check_model(device, name, sizes, folder):
    model = os.path.join(MODELS, name, "model.onnx")
    kernels = os.path.join(folder, "kernels.txt")
    done = run("uir-opt", model, *select(device), "--after", "igraph", "-o", kernels)
    tell(done.returncode == 0, f"{device}: {name}: {done.stderr[:300]}")
    if done.returncode != 0:
        return
    done = run("uir-null-kernels", str(sizes), *(select(device) if device.endswith(".device") else []), kernels)
    counts = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped", done.stdout, re.M)
    tell(counts is not None and done.returncode == 0,
         f"{device}: {name}: {done.stdout[-600:]}{done.stderr[-300:]}")
    if counts:
        suite.add(*map(int, counts.groups()))


def check_words():
    model = os.path.join(MODELS, "lstm_classifier", "model.onnx")
    done = run("uir-opt", model, "--device-file", LUNE, "--after", "emit")
    tell(done.returncode != 0 and "docs/porting.md" in done.stderr, f"no emitter: {done.stderr[:300]}")
    done = run("uir-opt", model, "--device-file", LUNE, "--after", "emit", "--emitter", "null")
    tell(done.returncode == 0 and "mma(t_f32, VIEW(" in done.stdout, f"emitter null: {done.stderr[:300]}")
    done = run("uir-opt", model, "--after", "emit", "--emitter", "nulls")
    tell(done.returncode != 0 and "nulls" in done.stderr and "--list" in done.stderr, f"nulls: {done.stderr[:300]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true")
    every = parser.parse_args().all
    if not os.path.isdir(MODELS):
        suite.skip(f"no models in {MODELS}: script/test writes them out")
        return suite.end()
    check_words()
    with tempfile.TemporaryDirectory() as folder:
        for device, few in DEVICES.items():
            for name in sorted(os.listdir(MODELS)) if every else few:
                if os.path.exists(os.path.join(MODELS, name, "model.onnx")):
                    check_model(device, name, 3 if every else 1, folder)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
