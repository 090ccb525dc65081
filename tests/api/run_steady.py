#!/usr/bin/env python3
"""Results are the same bits at any number of threads, from run to run, by either compiler, after whatever ran before;
a run like those before it allocates nothing (uir-steady).

In: models in $UIR_MODELS_BUILT, the programs in $UIR_BIN; models may be named, and --all takes all. Out: a line per
failure, then `N passed, M failed, S skipped`.
"""
import glob
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import MODELS, Suite, find_model, list_models, run  # noqa: E402

NAMES = ["llama_tiny_op23", "gru_seq", "lstm_classifier", "dlrm"]
LIMIT_S = 600
suite = Suite()


def outputs(model, data, threads, cache, compiler, folder):
    """The files of one run, or None with a message. Whether they agree with the data set's, exit 1, is for others to say."""
    done = run("uir-run", model, "--data", data, "--no-vm", "--quiet", "--threads", threads, "--cache", cache, "--save", folder,
               timeout=LIMIT_S, env={"CC": compiler})
    if done.returncode not in (0, 1):
        suite.tell(False, f"{model} by {compiler} at {threads} threads: exit {done.returncode}\n{done.stderr}")
        return None
    return {os.path.basename(path): open(path, "rb").read() for path in glob.glob(os.path.join(folder, "*.pb"))}


def compare(name, model, data):
    """gcc at 1, 2, 4 and again 2 threads, clang at 2."""
    with tempfile.TemporaryDirectory() as scratch:
        first = None
        for step, (compiler, threads) in enumerate([("gcc", 1), ("gcc", 2), ("gcc", 4), ("gcc", 2), ("clang", 2)]):
            if not shutil.which(compiler):
                suite.skip(f"{name}: there is no {compiler}")
                continue
            os.makedirs(folder := os.path.join(scratch, str(step)))
            got = outputs(model, data, threads, os.path.join(scratch, compiler), compiler, folder)
            if got is None:
                continue
            first = got if first is None else first
            same = got == first and len(got) > 0
            suite.tell(same, f"{name}: {compiler} at {threads} threads gives other bits than the first")


def steady(name, model, sets):
    for device, threads in [("cpu", 2), ("vm", 2)]:
        done = run("uir-steady", model, device, threads, sets[0], sets[min(1, len(sets) - 1)], timeout=LIMIT_S)
        suite.tell(done.returncode == 0, f"{name} on {device}: uir-steady, exit {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    names = [word for word in sys.argv[1:] if not word.startswith("-")] or NAMES
    if "--all" in sys.argv:
        names = list_models()
    for name in names:
        model = find_model(name)
        sets = sorted(glob.glob(os.path.join(MODELS, name, "test_data_set_*")))
        if not os.path.exists(model) or not sets:
            suite.skip(f"{model} or its data is not there")
            continue
        compare(name, model, sets[-1])
        steady(name, model, sets)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
