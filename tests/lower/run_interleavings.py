#!/usr/bin/env python3
"""Pipes that run apart, in other orders than the program's:
`run_interleavings.py [--kernels N] [--of-each N] [--first SEED] [--interleavings N] [--keep DIR] [-v]`.

Kernels of random graphs, for machines drawn at random and for those of the build that have pipes, with 1 to 8 flags for
a pair of pipes in turn. `uir-interleave` runs each in orders that its syncs alone restrict, whole and without each of
its syncs (its own head says how). Besides: kernels written by hand with a wrong sync, which the verifier refuses and an
interleaving shows to be wrong, or which want more flags than there are; and such for which
the pass makes do with few.

Of the syncs whose removal is refused, 80 of 100 must be shown by a wrong or undefined element of a result; at most 5 of
100 may be needless. A machine with few flags has as many kernels as one with many.

In: the programs in $UIR_BIN. --keep: the descriptions are left there. -v: each machine's counts, and a line for each
sync that no wrong element shows: `order`, where an element is touched out of order, or `unseen`.
"""
import collections
import glob
import os
import re
import sys
import tempfile

from machines import Machine

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import ROOT, Suite, make_parser, run  # noqa: E402

COUNTS = ["kernels", "runs", "syncs", "refused", "wrong", "order", "unseen", "needless", "barriers",
          "barriers_refused", "barriers_seen"]
THREADS = [1, 4, 1, 32, 8, 16, 7]  # of a unit, by seed
PIPES = re.compile(r"^( *)pipes ([^\n#]*)", re.M)


def drawn(seed):
    """A description of that seed, or None where its pipes do not run apart and its units have one thread."""
    machine = Machine(seed)
    threads = THREADS[seed % len(THREADS)]
    text = machine.text if threads == 1 else machine.text.replace("  device_barrier", f"  threads {threads} @drawn\n  device_barrier")
    return (machine.name, text) if len(machine.pipes) > 1 or threads > 1 else None


def built_in(seed):
    paths = [p for p in sorted(glob.glob(os.path.join(ROOT, "backends", "*", "target", "*.device")))
             if re.search(r"^ *(pipes|threads) ", open(p, encoding="utf-8").read(), re.M)]
    with open(paths[seed % len(paths)], encoding="utf-8") as file:
        text = file.read()
    return "other", re.sub(r"^device \w+", "device other", text, flags=re.M)


def with_flags(text, flags):
    """The description with that many flags for a pair of pipes, by whatever source it names first."""
    source = re.search(r"^ *source (\w+)", text, re.M).group(1)
    text = re.sub(r" *\bflags \d+ @\w+", "", text)
    return PIPES.sub(rf"\1pipes \2\n\1flags {flags} @{source}", text)


def counts_of(output):
    line = next((l for l in output.splitlines() if l.startswith("kernels ")), None)
    return dict(zip(line.split()[::2], map(int, line.split()[1::2]))) if line else None


def campaign(options, folder, suite):
    totals, by_flags = collections.Counter(), collections.defaultdict(collections.Counter)
    seed = options.first - 1
    while totals["kernels"] < options.kernels:
        seed += 1
        machine = built_in(seed) if seed % 5 == 0 else drawn(seed)
        if not machine:
            continue
        flags = totals["machines"] % 8 + 1
        path = os.path.join(folder, f"machine{seed}.device")
        with open(path, "w", encoding="utf-8") as file:
            file.write(with_flags(machine[1], flags))
        done = run("uir-interleave", "--first", seed * 100, "--graphs", 6, "--interleavings", options.interleavings,
                   "--kernels", min(options.of_each, options.kernels - totals["kernels"]), path)
        counts = counts_of(done.stdout)
        if done.returncode or not counts:
            suite.tell(False, f"machine {seed} with {flags} flags: {done.stdout[-2000:]}{done.stderr[-500:]}")
        else:
            suite.add(counts["kernels"])
        totals["machines"] += 1
        for name in COUNTS:
            totals[name] += (counts or {}).get(name, 0)
            by_flags[flags][name] += (counts or {}).get(name, 0)
        if options.verbose:
            print(seed, machine[0], flags, (counts or {}), flush=True)
            print("\n".join(l for l in done.stdout.splitlines() if l.startswith(("unseen", "order", "needless"))))
    return totals, by_flags


def by_hand(suite):
    """Kernels with a wrong sync: refused, and shown to be wrong."""
    folder = os.path.join(ROOT, "tests", "ir", "kernel", "interleaved")
    wrong = sorted(glob.glob(os.path.join(folder, "wrong_*.igraph")))
    refused = sorted(glob.glob(os.path.join(folder, "refused_*.igraph")))
    few = sorted(glob.glob(os.path.join(folder, "few_*.igraph")))
    done = run("uir-interleave", "--graphs", "0", os.path.join(folder, "few.device"), *few, "--wrong", *wrong, "--refused", *refused)
    counts = counts_of(done.stdout)
    if done.returncode or not counts or counts["kernels"] != len(few + wrong + refused):
        suite.tell(False, f"by hand: {done.stdout}{done.stderr}")
    else:
        suite.add(counts["kernels"])


def main():
    parser = make_parser(__doc__, keep=None)
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--of-each", type=int, default=25, help="kernels of a machine, at most")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--interleavings", type=int, default=50)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    suite = Suite()
    by_hand(suite)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or temporary
        os.makedirs(folder, exist_ok=True)
        totals, by_flags = campaign(options, folder, suite)
    print(" ".join(f"{name} {totals[name]}" for name in ["machines", *COUNTS]))
    for flags in sorted(by_flags):
        print(f"  {flags} flags: " + " ".join(f"{name} {by_flags[flags][name]}" for name in COUNTS))
    refused, syncs = totals["refused"], totals["syncs"]
    print(f"refused syncs shown wrong: {100 * totals['wrong'] / max(refused, 1):.1f}%; "
          f"needless: {100 * totals['needless'] / max(syncs, 1):.1f}%")
    if totals["wrong"] < 0.8 * refused or totals["needless"] > 0.05 * syncs or not syncs:
        suite.tell(False, "fewer than 80 of 100 refused syncs are shown wrong, or more than 5 of 100 are needless")
    refused, seen = totals["barriers_refused"], totals["barriers_seen"]
    print(f"barriers of threads: {totals['barriers']}, refused without {refused}, shown {100 * seen / max(refused, 1):.1f}%")
    if refused != totals["barriers"] or seen < 0.8 * refused or not refused:
        suite.tell(False, "fewer than 80 of 100 barriers of threads are shown, or some are not required")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
