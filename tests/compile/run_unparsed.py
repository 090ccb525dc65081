#!/usr/bin/env python3
"""Nothing inside a compile is printed and read again: a uir-pack whose readers of the IRs' texts abort makes of every
given model the package that uir-pack makes.

In: the programs in $UIR_BIN, the written-out models in $UIR_MODELS_BUILT. Arguments: models (default: all). Out: a line
per failure, then `N passed, M failed, S skipped`.
"""
import argparse
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("UIR_BIN", os.path.join(ROOT, "build", "release", "bin"))
MODELS = os.environ.get("UIR_MODELS_BUILT", os.path.join(ROOT, "build", "models"))


def pack(program, model, package):
    """What it says where it fails."""
    command = [os.path.join(BIN, program), model, "-o", package, "--no-native", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
    return None if done.returncode == 0 else f"{program} ends with {done.returncode}: {done.stderr.strip()[:200]}"


def same(first, second):
    with open(first, "rb") as a, open(second, "rb") as b:
        while True:
            left, right = a.read(1 << 20), b.read(1 << 20)
            if left != right or not left:
                return left == right


def check(model):
    with tempfile.TemporaryDirectory(prefix="uir-unparsed-") as folder:
        packages = [os.path.join(folder, name + ".uir") for name in ("pack", "unparsed")]
        for program, package in zip(("uir-pack", "uir-pack-unparsed"), packages):
            wrong = pack(program, model, package)
            if wrong:
                return wrong
        return None if same(*packages) else "the packages differ"


def main():
    parser = argparse.ArgumentParser(description="Compiles models without readers of the IRs' texts.")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    names = parser.parse_args().models or (sorted(os.listdir(MODELS)) if os.path.isdir(MODELS) else [])
    models = {"digits": os.path.join(ROOT, "models", "digits", "digits.onnx")}
    models.update({name: os.path.join(MODELS, name, "model.onnx") for name in names})
    passed = failed = skipped = 0
    if not names:
        print("skip: needs models: they are not written out")
        skipped = 1
    for name, model in models.items():
        wrong = check(model)
        passed, failed = passed + (not wrong), failed + bool(wrong)
        if wrong:
            print(f"{name}: {wrong}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
