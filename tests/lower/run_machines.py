#!/usr/bin/env python3
"""Machines drawn at random, and groups on them: `run_machines.py [--count N] [--first SEED] [--groups N] [--long]`.

In: the programs in $UIR_BIN; machines.py, which draws descriptions; groups/, groups of models and of test_lower_random,
which extract_group.py took from them. For each machine and group: kernels are made and verified, with waits where pipes
run apart, and interpreted at sizes 0, 1, primes and beside tiles, each held to the group's nodes one by one. Two ONNX
models go through uir-run besides, held to NumPy. machine_bounds.py, of which machine_cases.py holds thirty answers worked
by hand, says what a machine can do: of that 95 of 100 must have kernels. The rest is refused by what lacks or does not
fit.

--groups: so many for each machine, in turn (default: all). --long: at more sizes. --keep DIR: descriptions of machines
with failures are left there. --by: how many of what each feature's machines can do have kernels.
"""
import collections
import concurrent.futures
import glob
import os
import re
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

import description
import machine_bounds
import machine_cases
import machines

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import ROOT, Suite, make_parser, run  # noqa: E402

GROUPS = sorted(glob.glob(os.path.join(ROOT, "tests", "lower", "groups", "*.graph")))
LEAST = 95  # of 100
# What a refusal must say: room, or an instruction.
SAYS = [r"need at least \d+ bytes; \d+ are available$", r"^no \S+ unit of \S+ executes \S+", r"^no unit of \S+ .*(has|does|moves|casts)"]


def tensor(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# name, nodes, inputs and their dims, what they give, sizes
MODELS = [
    ("softmax", [("Softmax", ["x"], ["y"])], {"x": ["N", "M"]}, softmax, [(3, 17), (2, 257)]),
    ("product", [("MatMul", ["a", "b"], ["p"]), ("Relu", ["p"], ["y"])], {"a": ["M", "K"], "b": ["K", "N"]},
     lambda a, b: np.maximum(a @ b, 0), [(7, 5, 3), (33, 31, 65), (0, 3, 4)]),
]


def make_models(folder):
    made = []
    for name, nodes, inputs, right, sizes in MODELS:
        graph = helper.make_graph([helper.make_node(*node) for node in nodes], "g",
                                  [tensor(i, dims) for i, dims in inputs.items()], [tensor("y", None)])
        path = os.path.join(folder, name + ".onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), path)
        made.append((name, path, inputs, right, sizes))
    return made


class Tally:
    """Of one machine, or of all."""

    def __init__(self):
        self.passed, self.failures = 0, []
        self.counts = collections.Counter()
        self.unable, self.without, self.by = collections.Counter(), collections.Counter(), collections.Counter()

    def tell(self, good, what):
        self.passed += good
        if not good:
            self.failures.append(what)

    def add(self, other):
        self.passed += other.passed
        self.failures += other.failures
        for name in ("counts", "unable", "without", "by"):
            getattr(self, name).update(getattr(other, name))


def run_models(machine, file, models, folder, tally):
    rng = np.random.default_rng(machine.seed)
    given, out = os.path.join(folder, "in.npz"), os.path.join(folder, "y.npy")
    for name, path, inputs, right, sizes in models:
        for size in sizes:
            named = dict(zip(dict.fromkeys(d for dims in inputs.values() for d in dims), size))
            arrays = {i: rng.standard_normal([named[d] for d in dims]).astype(np.float32) for i, dims in inputs.items()}
            np.savez(given, **arrays)
            if os.path.exists(out):
                os.remove(out)
            done = run("uir-run", path, "--device-file", file, "--interpret", "--inputs", given, "--save", folder, "--format", "npy",
                       "--quiet")
            wanted = right(*(a.astype(np.float64) for a in arrays.values()))
            got = np.load(out) if done.returncode == 0 else None
            close = got is not None and got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-3, atol=1e-4)
            tally.tell(close, f"machine {machine.seed}: {name} {size}: {done.stderr[:300] or 'another result'}")


def read_lines(machine, text, tally):
    """What uir-lower-machines said: groups that it had, and of some why a node has no kernel."""
    met, refused = set(), {}
    for line in text.split("\n"):
        words = line.split(" ", 2)
        if len(words) < 3:
            continue
        kind, group, rest = words
        if kind == "refused":
            why = rest.split(": ", 1)[-1]
            refused.setdefault(group, why)
            tally.counts["refusals"] += 1
            tally.tell(any(re.search(says, why) for says in SAYS),
                       f"machine {machine.seed}: {group}: this says neither what lacks nor what does not fit: {rest}")
        elif kind == "kernels":
            met.add(group)
            tally.counts["kernels"] += int(rest)
        elif kind == "ran":
            tally.counts["runs"] += int(rest.split()[0])
            tally.passed += int(rest.split()[0])
        elif kind == "wrong" and "no variant of the kernel" in rest:  # not even one that streams has room for these
            tally.passed -= 1
            tally.counts["too long"] += 1
        elif kind == "wrong":
            tally.passed -= 1
            tally.tell(False, f"machine {machine.seed}: {line}")
        else:
            tally.tell(False, f"machine {machine.seed}: {line}")
    return met, refused


def try_groups(machine, file, groups, options, tally):
    done = run("uir-lower-machines", file, *([] if options.long else ["-few"]), *groups)
    tally.tell(done.returncode == 0, f"machine {machine.seed}: uir-lower-machines gave {done.returncode}: {done.stderr[:300]}")
    met, refused = read_lines(machine, done.stdout, tally)
    oracle = machine_bounds.Oracle(description.read(machine.text))
    for path in groups:
        name = os.path.basename(path)[:-len(".graph")]
        with open(path) as text:
            can, why = oracle.judge(machine_bounds.read_bodies(text.read()))
        lowered = name in met and name not in refused
        tally.counts["can"] += can
        tally.counts["lowered"] += can and lowered
        tally.counts["more"] += not can and lowered
        if not can:
            tally.unable[re.sub(r"\d{2,}", "N", why)] += 1
        elif not lowered:
            tally.without[re.sub(r"\d{2,}", "N", refused.get(name, "a fault")).replace(machine.name, "it")] += 1
        for feature, value in machine.features.items():
            tally.by[feature, value, "can"] += can
            tally.by[feature, value, "lowered"] += can and lowered


def try_machine(seed, models, options):
    machine, tally = machines.Machine(seed), Tally()
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "it.device")
        with open(file, "w") as out:
            out.write(machine.text)
        few = options.groups or len(GROUPS)
        try_groups(machine, file, [GROUPS[(seed * few + i) % len(GROUPS)] for i in range(few)], options, tally)
        run_models(machine, file, models, folder, tally)
    if tally.failures and options.keep:
        os.makedirs(options.keep, exist_ok=True)
        with open(os.path.join(options.keep, f"{seed}.device"), "w") as out:
            out.write(machine.text)
    return tally


def main():
    parser = make_parser(__doc__, count=12, jobs=1, keep=None)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--groups", type=int)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--by", action="store_true")
    options = parser.parse_args()
    suite, tally = Suite(), Tally()
    machine_cases.check(suite.tell)
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        models = make_models(folder)
        for one in pool.map(lambda seed: try_machine(seed, models, options), range(options.first, options.first + options.count)):
            tally.add(one)
    n = tally.counts
    share = 100 * n["lowered"] / n["can"] if n["can"] else 0
    suite.tell(share >= LEAST, f"{share:.1f} of 100 have kernels where a machine can do it, not {LEAST}")
    suite.tell(n["too long"] <= 1 + n["runs"] / 1000, f"at {n['too long']} of {n['runs']} sizes a kernel has no room, not 1 of 1000")
    suite.add(tally.passed)
    for what in tally.failures:
        suite.tell(False, what)
    if options.by:
        for feature, value in sorted({key[:2] for key in tally.by}):
            can, lowered = tally.by[feature, value, "can"], tally.by[feature, value, "lowered"]
            print(f"  {feature} {value}: {lowered} of {can}" + (f", {100 * lowered / can:.1f} %" if can else ""))
    print(f"{options.count} machines, {options.groups or len(GROUPS)} groups each: {n['can']} can be done, of these "
          f"{n['lowered']} have kernels ({share:.1f} %); of others {n['more']} besides; {n['kernels']} kernels verified, "
          f"{n['runs']} runs, at {n['too long']} sizes there is no room")
    for title, reasons in (("without kernels", tally.without), ("cannot be done", tally.unable)):
        print(f"{title}: {sum(reasons.values())}")
        for why, count in reasons.most_common(8 if options.count < 100 else 40):
            print(f"  {count} x {why}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
