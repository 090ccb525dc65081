#!/usr/bin/env python3
"""Kernels as for machines with other caches: UIR_CPU makes up the second level's size and the variant.

A cache is no limit: whatever its size, every group has its kernels and they compute the same. A package for a variant
that is named has the same bytes whatever machine packs it. Without arguments a
sample; --all: five sizes on each variant, the campaigns of kernels and contractions, and six models, compiled.
"""
import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("UIR_BIN", os.path.join(ROOT, "build", "release", "bin"))
SIZES = ["0", "128K", "256K", "1M", "4M"]
VARIANTS = ["generic", "avx2", "avx512", "aarch64"]
SAMPLE = [("avx512", "128K")]
MODEL = os.path.join(ROOT, "models", "digits", "digits.onnx")
MODELS = ["minilm_l6", "llama_tiny_op23", "lstm_classifier", "silero_vad", "espcn", "mobilenet_v2"]


def run(made_up, words):
    """One command; its last line where it failed, None where it did not."""
    environment = dict(os.environ, UIR_CPU=made_up)
    done = subprocess.run(words, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in done.stdout.splitlines():
        if line.startswith("skip: "):
            print(line)
    if done.returncode == 0:
        return None
    return "\n".join(done.stdout.splitlines()[-12:])


def pack(variant, packer, folder):
    """The bytes of a package for a variant, made on what is thought to be another one, or on this machine."""
    environment, path = {k: v for k, v in os.environ.items() if k != "UIR_CPU"}, os.path.join(folder, "model.uir")
    if packer:
        environment["UIR_CPU"] = packer
    subprocess.run([os.path.join(BIN, "uir-pack"), MODEL, "-o", path, "--device", "cpu:" + variant, "--no-native", "--quiet"],
                   check=True, env=environment)
    with open(path, "rb") as f:
        return f.read()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    passed = failed = 0
    pairs = [(v, s) for v in VARIANTS for s in SIZES] if options.all else SAMPLE
    jobs = [(f"{v},l2={s}", [os.path.join(BIN, "test_lower_cases"), "-n", "3"]) for v, s in pairs]
    # What is compiled runs here: the variant is the machine's own.
    compiled = SIZES if options.all else ["0"]
    for size in compiled:
        jobs.append((f"l2={size}", [os.path.join(BIN, "test_lower_axes"), "11" if options.all else "61"]))
        if options.all:
            jobs.append((f"l2={size}", [os.path.join(BIN, "uir-kernel-campaign"), "zoo", "4", "tests/ir/kernel"]))
            jobs.append((f"l2={size}", [sys.executable, "tests/models/run_models.py", "--device", "cpu", "--native"] + MODELS))
    for made_up, words in jobs:
        said = run(made_up, words)
        passed += said is None
        failed += said is not None
        if said is not None:
            print(f"FAILED: UIR_CPU={made_up} {' '.join(words)}\n{said}")
    with tempfile.TemporaryDirectory() as folder:
        for variant in VARIANTS:
            same = len({pack(variant, packer, folder) for packer in [None, *VARIANTS]}) == 1
            passed += same
            failed += not same
            if not same:
                print(f"FAILED: a package for cpu:{variant} has other bytes where another machine packs it")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
