#!/usr/bin/env python3
"""Nothing inside a compile is printed and read again: a uir-pack whose readers of the IRs' texts abort makes of every
given model the package that uir-pack makes.

In: the programs in $UIR_BIN, the written-out models in $UIR_MODELS_BUILT. Arguments: models (default: all). Out: a line
per failure, then `N passed, M failed, S skipped`.
"""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import NO_MODELS, Suite, find_model, list_models, make_parser, run  # noqa: E402


def pack(program, model, package):
    """What it says where it fails."""
    done = run(program, model, "-o", package, "--no-native", "--quiet", timeout=600)
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
    parser = make_parser(__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    names, suite = parser.parse_args().models or list_models(), Suite()
    if not names:
        suite.skip(NO_MODELS)
    for name in dict.fromkeys(["digits", *names]):
        wrong = check(find_model(name))
        suite.tell(not wrong, f"{name}: {wrong}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
