#!/usr/bin/env python3
"""Caches that grow in place: decoders of the model collection, step by step by build/.../uir-decode, on the CPU and the VM.

In: models in $UIR_MODELS_BUILT, the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, find_model, run  # noqa: E402

CASES = [("llama_tiny_op23", "cpu"), ("llama_tiny_op23", "vm"), ("llama_160m", "cpu"), ("gpt2_kv", "cpu")]


def main():
    suite = Suite()
    for model, device in CASES:
        path = find_model(model)
        if not os.path.exists(path):
            suite.skip(f"{path} is missing")
            continue
        done = run("uir-decode", path, device, timeout=300)
        suite.tell(done.returncode == 0, f"{model} on {device}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
