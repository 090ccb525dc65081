#!/usr/bin/env python3
"""Caches that grow in place: decoders of the model collection, step by step by build/.../uir-decode, on the CPU and the VM.

In: models in $UIR_MODELS_BUILT, the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("UIR_BIN", os.path.join(ROOT, "build", "release", "bin"))
MODELS = os.environ.get("UIR_MODELS_BUILT", os.path.join(ROOT, "build", "models"))
CASES = [("llama_tiny_op23", "cpu"), ("llama_tiny_op23", "vm"), ("llama_160m", "cpu"), ("gpt2_kv", "cpu")]


def main():
    passed = failed = skipped = 0
    for model, device in CASES:
        path = os.path.join(MODELS, model, "model.onnx")
        if not os.path.exists(path):
            print(f"skip: {path} is missing")
            skipped += 1
            continue
        done = subprocess.run([os.path.join(BIN, "uir-decode"), path, device], capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            passed += 1
            continue
        failed += 1
        print(f"FAIL {model} on {device}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
