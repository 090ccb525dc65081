#!/usr/bin/env python3
"""Each rule of layouts left out, on random nets over images (run_images.py): where the text of the stage differs without it, the
rule was used, and the kernels' results must be those of the model's own interpreter all the same.

usage: run_layout_rules.py [--count 40] [--seed 1] [--at-least TIMES]

In: the programs in $UIR_BIN. Out: a line per failure, how often each rule was used, then `N passed, M failed, S skipped`; a
rule used fewer than --at-least times is a failure."""
import collections
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx

from run_images import TIMEOUT_S, Net

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, make_parser, run  # noqa: E402


def opt(*words):
    done = run("uir-opt", *words, timeout=TIMEOUT_S)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[0])
    return done.stdout


def rules():
    return re.search(r"rules of layouts[^:]*:(.*)", opt("--list")).group(1).split()


def outputs(folder, path, *words):
    """As files have them: values are named as the passes left them, so that which is which is told by what they are."""
    os.makedirs(folder)
    opt(path, "--run", "--save", folder, *words)
    return [np.load(os.path.join(folder, name)) for name in sorted(os.listdir(folder))]


def difference(wanted, got):
    if wanted.shape != got.shape or wanted.dtype != got.dtype:
        return "another shape or type"
    most = float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=0))
    if np.allclose(wanted, got, rtol=1e-3, atol=5e-5 * max(most, 1), equal_nan=True):
        return None
    return f"a difference of {np.nanmax(np.abs(wanted - got)):g} in values up to {most:g}"


def compare(wanted, got):
    """What is wrong; None. Outputs that are one value may be one file or several."""
    if not wanted or not got:
        return "no outputs"
    for left, right in ((wanted, got), (got, wanted)):
        for values in left:
            found = [difference(values, other) for other in right]
            if all(found):
                return found[0]
    return None


def case(seed, names, folder):
    """(rules used, a line per failure)"""
    net, path = Net(seed), os.path.join(folder, f"{seed}.onnx")
    onnx.save(net.model, path)
    common = ["--random", str(seed % 1000)] + [word for name, size in net.dims for word in ("--dim", f"{name}={size}")]
    used, failures = [], []
    try:
        with_all = opt(path, "--after", "layouts")
        wanted = outputs(os.path.join(folder, f"{seed}"), path, *common, "--device", "interpreter")
        for name in names:
            if opt(path, "--after", "layouts", "--no-layout", name) == with_all:
                continue
            used.append(name)
            wrong = compare(wanted, outputs(os.path.join(folder, f"{seed}-{name}"), path, *common, "--device", "vm", "--exact",
                                            "--no-layout", name))
            if wrong:
                failures.append(f"seed {seed} without '{name}': {wrong}")
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        failures.append(f"seed {seed}: {error}")
    return used, failures


def main():
    parser = make_parser(__doc__, count=40, seed=1)
    parser.add_argument("--at-least", type=int, default=0, metavar="TIMES")
    arguments = parser.parse_args()
    names, uses, suite = rules(), collections.Counter(), Suite()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        for used, wrong in pool.map(lambda seed: case(seed, names, folder),
                                    range(arguments.seed, arguments.seed + arguments.count)):
            uses.update(used)
            suite.add(len(used) - len(wrong))
            for line in wrong:
                suite.tell(False, line)
    for name in names:
        if uses[name] < arguments.at_least:
            suite.tell(False, f"the rule '{name}' was used {uses[name]} times")
    print("rules used: " + ", ".join(f"{name} {uses[name]}" for name in names))
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
