#!/usr/bin/env python3
"""Models on an OpenCL device of the system, as PoCL, by both chips: `run_models.py [--all] [--chip CHIP] [MODEL...]`.

In: models in $UIR_MODELS_BUILT, the programs in $UIR_BIN. Each model's data sets agree with the references within their
tolerance, and the outputs of the first have the bits of the interpreter of the chip's kernels. --all: every model, and
all its data sets. Out: a line per failure, then `N passed, M failed, S skipped`; without an OpenCL device all is skipped.
"""
import glob
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import NO_DEVICE, folder, has_device  # noqa: E402
from suite import MODELS, NO_MODELS, Suite, find_model, list_models, make_parser, run  # noqa: E402

SMALL = {"cpu": ["gru_seq", "lstm_classifier", "dlrm", "silero_vad", "espcn", "ppocr_cls"],
         "gpu": ["gru_seq", "lstm_classifier", "silero_vad"]}
BY_HOST = ["yolo_tiny"]  # the host computes a part: NonMaxSuppression
suite = Suite()


def find_data(model, every):
    sets = sorted(glob.glob(os.path.join(os.path.dirname(model), "test_data_set_*")))
    return sets if every else sets[:1]


def read_outputs(folder):
    return {os.path.basename(path): open(path, "rb").read() for path in glob.glob(os.path.join(folder, "*.pb"))}


def check_model(name, chip, every, scratch):
    model, device = find_model(name), f"opencl:{chip}"
    options = ["--cache", os.path.join(scratch, "cache"), *([] if name in BY_HOST else ["--no-fallback"])]
    for number, data in enumerate(find_data(model, every)):
        folders = [os.path.join(scratch, f"{name}-{chip}-{kind}") for kind in ("device", "interpreter")]
        done = run("uir-run", model, "--device", device, *options, "--data", data, "--quiet", "--save", folders[0])
        suite.tell(done.returncode == 0, f"{name} on {device}, {os.path.basename(data)}: exit {done.returncode}\n"
                                         f"{done.stdout[-600:]}{done.stderr[:600]}")
        if number or done.returncode != 0:
            continue
        done = run("uir-run", model, "--device", device, "--interpret", "--data", data, "--quiet", "--save", folders[1])
        outputs = [read_outputs(folder) for folder in folders]
        suite.tell(outputs[0] == outputs[1] and len(outputs[0]) > 0,
                   f"{name} on {device}: other bits than the interpreter's; exit {done.returncode}\n{done.stderr[:500]}")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--chip", choices=sorted(SMALL))
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    if not os.path.isdir(MODELS):
        suite.skip(NO_MODELS)
        return suite.end()
    if not has_device():
        suite.skip(NO_DEVICE)
        return suite.end()
    with folder() as scratch:
        for chip in [options.chip] if options.chip else sorted(SMALL):
            for name in options.models or (list_models() if options.all else SMALL[chip]):
                check_model(name, chip, options.all, scratch)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
