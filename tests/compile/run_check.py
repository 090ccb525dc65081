#!/usr/bin/env python3
"""uir-run --check on whole models: every stage agrees with the one before, below the iGraph bit for bit.

In: uir-run in $UIR_BIN, the written-out models in $UIR_MODELS_BUILT. Arguments: models (default: a few quick ones on
their first data set; --all: every one there is, on each of its sets), --device (default vm, which needs no compiler;
cpu compares compiled kernels too, and a device with memory of its own, as null:3, its own runs of each kernel). Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import RUN, expect, find_model, list_models, make_parser, run, run_tests  # noqa: E402

QUICK = ["digits", "gru_seq", "silero_vad", "llama_tiny_op23"]
STAGES = ["cleaned", "fusion", "loop", "schedule", "igraph", "vm"]
LIMIT_S = 1200


def check(name, data, device):
    for option in ["--check", "--check=all"]:
        done = run(RUN, find_model(name), "--data", data, option, "--device", device, timeout=LIMIT_S)
        expect(done.returncode == 0, f"{name} {os.path.basename(data)}", done)
        lines = re.findall(r"^check ([\w:]+) +(\d+) agree(?:, (\d+) too large \(--check=all\))?$", done.out, re.M)
        counts = {stage: int(count) for stage, count, _ in lines}
        if not any(int(skipped or 0) and not int(count) for _, count, skipped in lines):
            break  # else all that it has is too large: it takes its time
    last = {"vm": [], "cpu": ["cpu"]}.get(device.split(":")[0], [device])
    for stage in STAGES + last:
        expect(counts.get(stage, 0) > 0, f"{name} {os.path.basename(data)}: nothing was compared at {stage}", done)


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--all", action="store_true", help="every model that is written out, on each of its data sets")
    parser.add_argument("--device", default="vm")
    options = parser.parse_args()
    tests = {}
    for model in options.models or (["digits", *list_models()] if options.all else QUICK):
        sets = sorted(glob.glob(os.path.join(os.path.dirname(find_model(model)), "test_data_set_*")))
        for folder in sets if options.all or options.models else sets[:1]:
            tests[f"test_{model}_{os.path.basename(folder)}"] = \
                lambda model=model, folder=folder: check(model, folder, options.device)
    sys.exit(run_tests(tests, []))
