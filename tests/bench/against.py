#!/usr/bin/env python3
"""Times this build beside another one, the two taking turns in one run: whole models, single operators from ONNX, kernels
from their text, and what compiling a model takes.

    against.py OTHER [NAME...] [--what compile,kernels,onnx-kernels,models] [--rounds 5] [--seconds 1] [--threads 1,2]
               [--cpu-time] [--models DIR] [--bin DIR] [--json FILE]

In: OTHER, a build's folder or the folder of its programs; models of $UIR_MODELS_BUILT with their data sets, of each the
smallest and the largest; uir-bench-model, uir-bench-kernels and uir-pack of both builds. NAMEs are parts of the names of what is
measured. While one build runs, the other waits; each keeps kernels in a cache of its own.
Out: a row for each measurement: medians of both and the ratio theirs / ours (above 1 this build is faster, or takes less), and
whether the outputs have the same bits. Then for each kind and number of threads the geometric mean and the worst. `compile` is
the processor time of uir-pack without native code, and its peak memory, of one run each a round. Exit 1 where something does not
run.
"""
import argparse
import filecmp
import glob
import json
import os
import statistics
import subprocess
import sys
import tempfile

import growth
import models as bench
import onnx_kernels

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN, MODELS, ROOT, find_programs  # noqa: E402

KINDS = ["compile", "kernels", "onnx-kernels", "models"]
KERNEL_ROUNDS = 3  # of uir-bench-kernels, in each of ours


def same_bits(engines, scratch):
    folders = [tempfile.mkdtemp(dir=scratch) for _ in engines]
    for engine, folder in zip(engines, folders):
        engine.ask("save " + folder)
    names = [os.path.basename(path) for path in glob.glob(os.path.join(folders[0], "output_*"))]
    return not any(filecmp.cmpfiles(*folders, names, shallow=False)[1:])


def take_turns(arguments, model, data, threads, scratch):
    """Medians of this build and the other one, in milliseconds; whether their outputs have the same bits."""
    clock, engines = ["cpu"] if arguments.cpu_time else [], []
    try:
        for which, folder in enumerate(arguments.both):
            program, cache = os.path.join(folder, "uir-bench-model"), os.path.join(scratch, f"cache{which}")
            bench.warm_cache(program, model, cache)
            engines.append(bench.Engine([program, model, cache, str(threads), *clock]))
            engines[-1].wait()
            engines[-1].ask("data " + data)
        same, times = same_bits(engines, scratch), ([], [])
        for turn in range(arguments.rounds):
            for which in ((0, 1), (1, 0))[turn % 2]:
                times[which].extend(map(float, engines[which].ask(f"run {arguments.seconds / arguments.rounds}")))
        return [statistics.median(t) for t in times], same
    finally:
        for engine in engines:
            engine.close()


# ---- what is measured: (name, threads, ours, theirs, same bits or None, unit) ----
def wanted(arguments, name):
    return not arguments.names or any(word in name for word in arguments.names)


def measure_models(arguments, names):
    for name in names:
        folder, model = bench.find_model(arguments, name)
        with tempfile.TemporaryDirectory(prefix="uir-bench-") as scratch:
            for data in bench.find_sets(folder, False):
                for threads in arguments.threads:
                    times, same = take_turns(arguments, model, data, threads, scratch)
                    yield f"{name} {data.rsplit('_', 1)[1]}", threads, *times, same, "ms"


def measure_operators(arguments, _):
    for name, make, *_ in onnx_kernels.CASES:
        if not wanted(arguments, name):
            continue
        with tempfile.TemporaryDirectory(prefix="uir-bench-") as scratch:
            model, data = onnx_kernels.write_case(make, scratch)
            for threads in arguments.threads:
                times, same = take_turns(arguments, model, data, threads, scratch)
                yield name, threads, *times, same, "ms"


def measure_kernels(arguments, _):
    times = {}
    for turn in range(arguments.rounds):
        for which in ((0, 1), (1, 0))[turn % 2]:
            command = [os.path.join(arguments.both[which], "uir-bench-kernels"), "--json", "--rounds", str(KERNEL_ROUNDS)]
            said = json.loads(subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout)
            for kernel in said["kernels"]:
                times.setdefault(kernel["name"], ([], []))[which].append(kernel["ms"])
    for name, both in times.items():
        if wanted(arguments, name):
            yield name, 1, *(statistics.median(t) for t in both), None, "ms"


def measure_compile(arguments, names):
    for name in names:
        model, taken = bench.find_model(arguments, name)[1], ([], [])
        with tempfile.TemporaryDirectory(prefix="uir-bench-") as scratch:
            for turn in range(arguments.rounds):
                for which in ((0, 1), (1, 0))[turn % 2]:
                    command = [os.path.join(arguments.both[which], "uir-pack"), model, "-o",
                               os.path.join(scratch, "model.uir"), "--no-native", "--quiet"]
                    seconds, peak = growth.measure(command, bench.LIMIT_S)
                    taken[which].append((seconds * 1e3, peak / 1e6))
        for part, unit in enumerate(("ms", "MB")):
            yield f"{name} {unit}", 1, *(statistics.median(t[part] for t in which) for which in taken), None, unit


MEASURES = {"compile": measure_compile, "kernels": measure_kernels, "onnx-kernels": measure_operators, "models": measure_models}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("other", metavar="OTHER", help="the folder of the other build, or of its programs")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of names (default: all)")
    parser.add_argument("--what", default=",".join(KINDS), help="of " + ",".join(KINDS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="how long each build runs for a row (default 1)")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--cpu-time", action="store_true", help="processor time instead of the wall's")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--bin", default=BIN)
    parser.add_argument("--json", metavar="FILE", help="also writes the rows there")
    arguments = parser.parse_args()
    arguments.threads = [int(word) for word in arguments.threads.split(",")]
    arguments.what = arguments.what.split(",")
    if set(arguments.what) - set(KINDS):
        parser.error("--what takes " + ", ".join(KINDS))
    arguments.both = [arguments.bin, find_programs(arguments.other, "uir-bench-model")]
    return arguments


def summarise(kind, rows):
    for key in sorted({(row["unit"], row["threads"]) for row in rows}):
        mine = [row for row in rows if (row["unit"], row["threads"]) == key]
        worst = min(mine, key=lambda row: row["ratio"])
        changed = sum(row["same_bits"] is False for row in mine)
        print(f"{kind}, {'memory' if key[0] == 'MB' else f'{key[1]} thread' + 's' * (key[1] > 1)}: geometric mean "
              f"{bench.geometric_mean([row['ratio'] for row in mine]):.3f} of {len(mine)} rows, worst {worst['ratio']:.2f} "
              f"({worst['name']})" + (f"; other bits in {changed}" if changed else ""))


def main():
    arguments = parse_arguments()
    names = [name for name in ["digits", *sorted(os.listdir(arguments.models))] if wanted(arguments, name)]
    everything, failures = [], 0
    for kind in arguments.what:
        rows = []
        # A model by itself, so that one that does not run costs its own rows.
        for part in [[name] for name in names] if kind in ("compile", "models") else [names]:
            try:
                for name, threads, ours, theirs, same, unit in MEASURES[kind](arguments, part):
                    rows.append({"kind": kind, "name": name, "threads": threads, "ours": ours, "theirs": theirs,
                                 "ratio": theirs / ours, "same_bits": same, "unit": unit})
                    print(f"{name:<30} {threads} {ours:10.3f} {theirs:10.3f} {unit} {theirs / ours:6.3f}"
                          + ("  other bits" if same is False else ""), flush=True)
            except (bench.Failed, OSError, ValueError, subprocess.SubprocessError) as e:
                failures += 1
                print(f"{kind} {' '.join(part) if len(part) == 1 else ''}: {e}", flush=True)
        if rows:
            summarise(kind, rows)
        everything += rows
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as f:
            json.dump(everything, f, indent=1)
    print(f"{len(everything)} rows; {failures} did not run")
    return 1 if failures or not everything else 0


if __name__ == "__main__":
    sys.exit(main())
