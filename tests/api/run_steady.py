#!/usr/bin/env python3
"""Results are the same bits at any number of threads, from run to run, by either compiler, after whatever ran before;
a run like those before it allocates nothing (uir-steady).

In: models in $UIR_MODELS_BUILT, the programs in $UIR_BIN; models may be named, and --all takes all. Out: a line per
failure, then `N passed, M failed, S skipped`.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("UIR_BIN", os.path.join(ROOT, "build", "release", "bin"))
MODELS = os.environ.get("UIR_MODELS_BUILT", os.path.join(ROOT, "build", "models"))
NAMES = ["minilm_l6", "llama_tiny_op23", "gru_seq", "lstm_classifier", "dlrm"]
counts = {"passed": 0, "failed": 0, "skipped": 0}


def say(kind, text):
    counts[kind] += 1
    if kind != "passed":
        print(f"{'FAIL' if kind == 'failed' else 'skip:'} {text}")


def run(command, **environment):
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **environment})


def outputs(model, data, threads, cache, compiler, folder):
    """The files of one run, or None with a message. Whether they agree with the data set's, exit 1, is for others to say."""
    done = run([os.path.join(BIN, "uir-run"), model, "--data", data, "--no-vm", "--quiet", "--threads", str(threads),
                "--cache", cache, "--save", folder], CC=compiler)
    if done.returncode not in (0, 1):
        say("failed", f"{model} by {compiler} at {threads} threads: exit {done.returncode}\n{done.stderr}")
        return None
    return {os.path.basename(path): open(path, "rb").read() for path in glob.glob(os.path.join(folder, "*.pb"))}


def compare(name, model, data):
    """gcc at 1, 2, 4 and again 2 threads, clang at 2."""
    with tempfile.TemporaryDirectory() as scratch:
        first = None
        for step, (compiler, threads) in enumerate([("gcc", 1), ("gcc", 2), ("gcc", 4), ("gcc", 2), ("clang", 2)]):
            if not shutil.which(compiler):
                say("skipped", f"{name}: there is no {compiler}")
                continue
            os.makedirs(folder := os.path.join(scratch, str(step)))
            got = outputs(model, data, threads, os.path.join(scratch, compiler), compiler, folder)
            if got is None:
                continue
            first = got if first is None else first
            same = got == first and len(got) > 0
            say("passed" if same else "failed", f"{name}: {compiler} at {threads} threads gives other bits than the first")


def steady(name, model, sets):
    for device, threads in [("cpu", 2), ("vm", 2)]:
        done = run([os.path.join(BIN, "uir-steady"), model, device, str(threads), sets[0], sets[min(1, len(sets) - 1)]])
        say("passed" if done.returncode == 0 else "failed",
            f"{name} on {device}: uir-steady, exit {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    names = [word for word in sys.argv[1:] if not word.startswith("-")] or NAMES
    if "--all" in sys.argv:
        names = sorted(os.listdir(MODELS)) if os.path.isdir(MODELS) else []
    for name in names:
        model = os.path.join(MODELS, name, "model.onnx")
        sets = sorted(glob.glob(os.path.join(MODELS, name, "test_data_set_*")))
        if not os.path.exists(model) or not sets:
            say("skipped", f"{model} or its data is not there")
            continue
        compare(name, model, sets[-1])
        steady(name, model, sets)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
