#!/usr/bin/env python3
"""The null device under sanitizers: every eighth test of the ONNX suite, and quick models, by seeds.

    run_sanitized.py [--seeds N] [--build PRESET]...

In: models in $UIR_MODELS_BUILT, the programs in $UIR_BIN, a compiler. Builds uir-run and conformance_suite by the presets asan
(with the undefined sanitizer) and tsan, and runs them; the models from packages that $UIR_BIN's uir-pack makes. Out: a line
per failure, then `N passed, M failed, S skipped`.
"""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import MODELS, NO_MODELS, ROOT, Suite, find_model, make_parser, run  # noqa: E402

QUICK = ["digits", "gru_seq", "lstm_classifier", "dlrm", "silero_vad", "silero_vad_16k_op15", "espcn", "llama_tiny_op23", "ppocr_cls",
         "yolo_tiny"]
suite = Suite()


def find_data(model):
    folder = os.path.dirname(model)
    sets = sorted(name for name in os.listdir(folder) if name.startswith("test_data_set_"))
    return os.path.join(folder, sets[0]) if sets else folder


def build(preset):
    """The folder of the programs; None if they cannot be built."""
    for words in (("cmake", "--preset", preset), ("cmake", "--build", f"build/{preset}", "--target", "conformance_suite", "uir-run")):
        done = run(*words, cwd=ROOT)
        if not suite.tell(done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-800:]}{done.stderr[-800:]}"):
            return None
    return os.path.join(ROOT, "build", preset, "bin")


def check_onnx(programs, seed):
    done = run(os.path.join(programs, "conformance_suite"), "--device", "null", "--seed", seed, "--every", 8, "--timeout", 600)
    last = re.search(r"(\d+) passed, (\d+) failed", done.stdout)
    good = done.returncode == 0 and last and int(last[1]) >= 200 and last[2] == "0"
    suite.tell(good, f"the ONNX suite of {programs}, seed {seed}: exit {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")


def check_model(programs, package, model, seed):
    done = run(os.path.join(programs, "uir-run"), package, "--device", f"null:{seed}", "--data", find_data(model), "--quiet")
    suite.tell(done.returncode == 0, f"{model} by {programs}, seed {seed}: exit {done.returncode}\n{done.stdout[-500:]}{done.stderr[-1500:]}")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--build", action="append")
    arguments = parser.parse_args()
    if not os.path.isdir(MODELS):
        suite.skip(NO_MODELS)
        return suite.end()
    with tempfile.TemporaryDirectory(prefix="uir-sanitized-") as scratch:
        packages = {}
        for name in QUICK:
            packages[name] = os.path.join(scratch, name + ".uir")
            done = run("uir-pack", find_model(name), "-o", packages[name], "--device", "null", "--quiet")
            suite.tell(done.returncode == 0, f"uir-pack {name} --device null: {done.stderr}")
        for programs in filter(None, map(build, arguments.build or ["asan", "tsan"])):
            for seed in range(1, arguments.seeds + 1):
                check_onnx(programs, seed)
                for name, package in packages.items():
                    check_model(programs, package, find_model(name), seed)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
