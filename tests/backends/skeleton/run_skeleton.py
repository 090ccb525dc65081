#!/usr/bin/env python3
"""Kernels for described machines, printed by the skeleton backend's emitter and run: `run_skeleton.py [--all]`.

For each device: a model's kernels, as uir-opt makes them, are emitted as C on the simulated machine, compiled and held
to the interpreter (uir-skeleton-kernels). What asks for an emitter that there is none of is refused with what to do.

In: the programs in $UIR_BIN, the models in $UIR_MODELS_BUILT. --all: all models for all devices, which takes a quarter
of an hour.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
from suite import MODELS, NO_MODELS, ROOT, Suite, find_model, list_models, make_parser, read_counts, run, select  # noqa: E402

LUNE = os.path.join(ROOT, "docs", "lune.device")
DEVICES = {  # and their models where not all are asked for
    "skeleton": ["lstm_classifier", "silero_vad"],
    LUNE: ["lstm_classifier", "silero_vad"],
    "ascend:910B1": ["lstm_classifier"],
    "cuda:sm_90": ["lstm_classifier"],
    "opencl": ["lstm_classifier"],
    "cambricon": ["lstm_classifier"],
}
suite = Suite()
tell = suite.tell


def check_model(device, name, sizes, folder):
    model, kernels = find_model(name), os.path.join(folder, "kernels.txt")
    done = run("uir-opt", model, *select(device), "--after", "igraph", "-o", kernels)
    tell(done.returncode == 0, f"{device}: {name}: {done.stderr[:300]}")
    if done.returncode != 0:
        return
    done = run("uir-skeleton-kernels", str(sizes), *(select(device) if device.endswith(".device") else []), kernels)
    counts = read_counts(done.stdout)
    tell(counts is not None and done.returncode == 0,
         f"{device}: {name}: {done.stdout[-600:]}{done.stderr[-300:]}")
    if counts:
        passed, failed, skipped = counts
        suite.add(passed, failed)
        if skipped:
            suite.skip(f"{device}: {name}: {skipped} kernels of other types than the machine has, or too large to be interpreted", skipped)


def check_words(folder):
    unknown = os.path.join(folder, "unknown.device")  # whatever backends this build has, it has none of this name
    with open(LUNE, encoding="utf-8") as text, open(unknown, "w", encoding="utf-8") as out:
        out.write(text.read().replace("device lune {", "device made_up {"))
    model = find_model("lstm_classifier")
    done = run("uir-opt", model, "--device-file", unknown, "--after", "emit")
    tell(done.returncode != 0 and "docs/porting.md" in done.stderr, f"no emitter: {done.stderr[:300]}")
    done = run("uir-opt", model, "--device-file", unknown, "--after", "emit", "--emitter", "skeleton")
    tell(done.returncode == 0 and "mma(t_f32, VIEW(" in done.stdout, f"emitter skeleton: {done.stderr[:300]}")
    done = run("uir-opt", model, "--after", "emit", "--emitter", "nulls")
    tell(done.returncode != 0 and "nulls" in done.stderr and "--list" in done.stderr, f"nulls: {done.stderr[:300]}")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--all", action="store_true")
    every = parser.parse_args().all
    if not os.path.isdir(MODELS):
        suite.skip(NO_MODELS)
        return suite.end()
    with tempfile.TemporaryDirectory() as folder:
        check_words(folder)
        for device, few in DEVICES.items():
            for name in list_models() if every else few:
                if os.path.exists(find_model(name)):
                    check_model(device, name, 3 if every else 1, folder)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
