#!/usr/bin/env python3
"""The OpenCL driver, and models on it, under the address and undefined sanitizers, with each refused call of the library.

In: a compiler; models in $UIR_MODELS_BUILT. Builds the programs by the preset asan. What PoCL and its compiler keep is in
leaks.supp. Out: a line per failure, then `N passed, M failed, S skipped`; without an OpenCL device all is skipped.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import NO_DEVICE, folder, has_device  # noqa: E402
from suite import MODELS, NO_MODELS, ROOT, Suite, make_parser, run  # noqa: E402

BUILD = os.path.join(ROOT, "build", "asan")
STAND_IN = os.path.join(BUILD, "tests", "drivers", "libopencl_stand_in.so")
TARGETS = ["opencl_stand_in", "test_opencl_builds", "test_drivers_opencl", "test_drivers_refusals"]
COMMANDS = [["test_drivers_opencl"], ["test_drivers_refusals", STAND_IN], ["test_opencl_builds", STAND_IN, "digits"]]
WITH_MODELS = [["test_opencl_builds", STAND_IN, model] for model in ("gru_seq", "lstm_classifier", "dlrm")]
ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
               "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
               "LSAN_OPTIONS": "suppressions=" + os.path.join(os.path.dirname(os.path.abspath(__file__)), "leaks.supp"),
               "UIR_STRICT": "1"}
suite = Suite()


def build():
    for words in (("cmake", "--preset", "asan"), ("cmake", "--build", BUILD, "--target", *TARGETS)):
        done = run(*words, cwd=ROOT)
        if not suite.tell(done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-800:]}{done.stderr[-800:]}"):
            return False
    return True


def main():
    make_parser(__doc__).parse_args()
    if not has_device():
        suite.skip(NO_DEVICE)
        return suite.end()
    if not os.path.isdir(MODELS):
        suite.skip(NO_MODELS)
    with folder():
        for words in [*COMMANDS, *(WITH_MODELS if os.path.isdir(MODELS) else [])] if build() else []:
            done = run(os.path.join(BUILD, "bin", words[0]), *words[1:], cwd=ROOT, env=ENVIRONMENT)
            said = done.stdout + done.stderr
            good = done.returncode == 0 and re.search(r"\[  PASSED  \] [1-9]\d* test", said)
            suite.tell(good, f"{' '.join(map(os.path.basename, words))}: exit {done.returncode}\n{said[-3000:]}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
