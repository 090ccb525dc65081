#!/usr/bin/env python3
"""Whether a change of the compiler changes what it makes: the texts of stages and the packages of two builds, compared.

    digests.py OTHER [NAME...] [--devices cpu:generic,cpu:avx2,...] [--stages fusion,schedule,igraph,emit] [--jobs 2]
               [--models DIR] [--bin DIR] [--keep DIR]

In: OTHER, a build's folder or the folder of its programs; the models of $UIR_MODELS_BUILT whose names hold a NAME (default: all);
uir-opt and uir-pack of both builds. Out: a line for each text or package that differs, with the first line that does; --keep
saves both texts there. Then `N equal, R refused by both, M differ`. Comments of emitted sources are not compared. Exit 1 where something differs, or
nothing is equal.
"""
import concurrent.futures
import functools
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN, MODELS, find_programs, make_parser  # noqa: E402

DEVICES = "cpu:generic,cpu:avx2,cpu:avx512,cpu:avx512vnni,cpu:aarch64,vm,ascend,ascend:910A,cuda,opencl,cambricon,skeleton"
STAGES = "fusion,schedule,igraph,emit"
LIMIT_S = 600
REFUSED = b"exit "


@functools.cache
def name_skeleton(programs, model):
    """The skeleton's machine was called null, which is a device now."""
    done = subprocess.run([os.path.join(programs, "uir-opt"), model, "--after", "fusion", "--device", "skeleton"], capture_output=True)
    return "null" if done.returncode else "skeleton"


def make_text(programs, model, device, stage):
    """The text of a stage, or the message that takes its place. Kernels that only a described machine has are printed by the
    emitter of the skeleton."""
    name, _, variant = device.partition(":")
    skeleton = name_skeleton(programs, model)
    if name == "skeleton":
        device = skeleton
    environment = dict(os.environ)
    command = [os.path.join(programs, "uir-opt"), model, "--after", stage, "--device", device]
    if name == "cpu":
        environment["UIR_CPU"] = variant
        command[-1] = "cpu"
    elif stage == "emit":
        command += ["--emitter", skeleton]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=LIMIT_S)
    if done.returncode:
        return REFUSED + b"%d" % done.returncode
    text = done.stdout.replace(b"null", b"skeleton") if device == "null" else done.stdout
    return re.sub(rb"/\*.*?\*/", b"", text, flags=re.S) if stage == "emit" else text


def make_package(programs, model, device, _):
    with tempfile.TemporaryDirectory(prefix="uir-digests-") as folder:
        path = os.path.join(folder, "model.uir")
        done = subprocess.run([os.path.join(programs, "uir-pack"), model, "-o", path, "--device", device, "--no-native", "--quiet"],
                              capture_output=True, timeout=LIMIT_S)
        if done.returncode:
            return REFUSED + b"%d" % done.returncode
        with open(path, "rb") as f:
            return f.read()


def first_difference(a, b):
    lines = a.split(b"\n"), b.split(b"\n")
    for number, (x, y) in enumerate(zip(*lines), 1):
        if x != y:
            return f"line {number}: {x[:100]!r} and {y[:100]!r}"
    return f"{len(lines[0])} and {len(lines[1])} lines"


def compare(arguments, name, model, device, what, make):
    texts = [make(programs, model, device, what) for programs in arguments.both]
    if texts[0] == texts[1]:
        return REFUSED if texts[0].startswith(REFUSED) else None
    if arguments.keep:
        for which, text in zip(("now", "before"), texts):
            path = os.path.join(arguments.keep, "-".join((name, device.replace(":", "_"), what, which)))
            with open(path, "wb") as f:
                f.write(text)
    return f"{name} {device} {what}: {first_difference(*texts)}"


def main():
    parser = make_parser(__doc__, jobs=os.cpu_count(), keep=None)
    parser.add_argument("other", metavar="OTHER")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--devices", default=DEVICES)
    parser.add_argument("--stages", default=STAGES)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--bin", default=BIN)
    arguments = parser.parse_args()
    arguments.both = [arguments.bin, find_programs(arguments.other, "uir-opt")]
    if arguments.keep:
        os.makedirs(arguments.keep, exist_ok=True)
    models = [(name, os.path.join(arguments.models, name, "model.onnx")) for name in sorted(os.listdir(arguments.models))
              if not arguments.names or any(word in name for word in arguments.names)]
    work = [(name, model, device, stage, make_text) for name, model in models for device in arguments.devices.split(",")
            for stage in arguments.stages.split(",")]
    work += [(name, model, device, "package", make_package) for name, model in models for device in ("cpu", "vm")]
    missing = [model for _, model in models if not os.path.isfile(model)]
    if missing:
        raise SystemExit(f"digests.py: there is no {missing[0]}; name the models' folder with --models")
    differ = refused = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for said in pool.map(lambda row: compare(arguments, *row), work):
            if said == REFUSED:
                refused += 1
            elif said:
                differ += 1
                print(said, flush=True)
    equal = len(work) - differ - refused
    print(f"{equal} equal, {refused} refused by both, {differ} differ")
    return 1 if differ or not equal else 0


if __name__ == "__main__":
    sys.exit(main())
