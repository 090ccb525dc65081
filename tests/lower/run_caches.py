#!/usr/bin/env python3
"""Kernels as for machines with other caches: UIR_CPU makes up the second level's size and the variant.

A cache is no limit: whatever its size, every group has its kernels and they compute the same. A package for a variant
that is named has the same bytes whatever machine packs it. Without arguments a
sample; --all: five sizes on each variant, the campaigns of kernels and contractions, and six models, compiled.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN, DIGITS, ROOT, Suite, make_parser, run  # noqa: E402

SIZES = ["0", "128K", "256K", "1M", "4M"]
VARIANTS = ["generic", "avx2", "avx512", "aarch64"]
SAMPLE = [("avx512", "128K")]
MODELS = ["minilm_l6", "llama_tiny_op23", "lstm_classifier", "silero_vad", "espcn", "mobilenet_v2"]


def check(suite, made_up, words):
    done = run(*words, cwd=ROOT, env={"UIR_CPU": made_up})
    for line in done.stdout.splitlines():
        if line.startswith("skip: "):
            print(line)
    last = "\n".join((done.stdout + done.stderr).splitlines()[-12:])
    suite.tell(done.returncode == 0, f"UIR_CPU={made_up} {' '.join(words)}\n{last}")


def pack(variant, packer, folder):
    """The bytes of a package for a variant, made on what is thought to be another one, or on this machine."""
    path = os.path.join(folder, "model.uir")
    run("uir-pack", DIGITS, "-o", path, "--device", "cpu:" + variant, "--no-native", "--quiet",
        env={"UIR_CPU": packer}).check_returncode()
    with open(path, "rb") as f:
        return f.read()


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    suite = Suite()
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
        check(suite, made_up, words)
    with tempfile.TemporaryDirectory() as folder:
        for variant in VARIANTS:
            suite.tell(len({pack(variant, packer, folder) for packer in [None, *VARIANTS]}) == 1,
                       f"a package for cpu:{variant} has other bytes where another machine packs it")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
