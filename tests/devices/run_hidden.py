#!/usr/bin/env python3
"""Copies behind kernels, in the virtual time of the null device: of a plan whose copies depend on nothing, at least 80% of the
bytes that cross the bus move while kernels run; of one whose copies and kernels wait for each other, at most 20%.

In: the graphs of graphs.py, the programs in $UIR_BIN. The trace of a run says when each queue executed what. Out: a line
per failure, then `N passed, M failed, S skipped`.
"""
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from graphs import HIDDEN, SHOWN, write  # noqa: E402
from suite import Suite, run  # noqa: E402

suite = Suite()


def read_queues(path):
    """The slices of each queue: (begin, end, bytes), in microseconds."""
    with open(path, encoding="utf-8") as f:
        events = [event for event in json.load(f)["traceEvents"] if event["pid"] == 2]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    process = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    queues = {name: [] for name in names.values()}
    for event in events:
        if event["ph"] == "X":
            queues[names[event["tid"]]].append((event["ts"], event["ts"] + event["dur"], event["args"]["bytes"]))
    return queues, process


def measure_hidden(queues):
    kernels = [(begin, end) for begin, end, copied in queues["compute"] if not copied]
    total = hidden = 0
    for begin, end, copied in queues.get("upload", []) + queues.get("download", []):
        covered = sum(max(0, min(end, e) - max(begin, b)) for b, e in kernels)
        total += copied
        hidden += copied * covered / (end - begin)
    return hidden, total


def check(name, model, scratch, seed):
    trace = os.path.join(scratch, "trace.json")
    common = [model, "--device", f"null:{seed}", "--cache", os.path.join(scratch, "cache"), "--data", os.path.dirname(model)]
    done = run("uir-run", *common, "--trace", trace, "--quiet")
    if not suite.tell(done.returncode == 0, f"{name}: exit {done.returncode}\n{done.stderr}"):
        return None
    queues, process = read_queues(trace)
    suite.tell(len(process) == 1 and "modelled" in process[0], f"{name}: the trace names the device {process}")
    in_order = all(a[1] <= b[0] + 1e-6 for q in queues.values() for a, b in zip(sorted(q), sorted(q)[1:]))
    suite.tell(in_order, f"{name}: slices of one queue overlap")
    return measure_hidden(queues)


def check_profile(name, model, scratch, hidden, total):
    """--profile says the same."""
    words = [model, "--device", "null:1", "--cache", os.path.join(scratch, "cache"), "--data", os.path.dirname(model), "--profile",
             "--iterations", 1]
    profile = json.loads(run("uir-run", *words, "--json").stdout)["profile"]
    queues = {row["queue"] for row in profile["queues"]}
    suite.tell(queues <= {"compute", "upload", "download"} and "compute" in queues and all(row["modelled"] for row in profile["queues"]),
               f"{name}: --profile has the queues {queues}")
    suite.tell(profile["bus_bytes"] == total and abs(profile["hidden_bytes"] - hidden) <= total / 1000,
               f"{name}: --profile says {profile['hidden_bytes']} of {profile['bus_bytes']}, the trace {hidden} of {total}")
    text = run("uir-run", *words).stdout
    suite.tell(f"{100 * hidden / total:.0f}% of the bytes over the bus move while kernels run" in text and "modelled, not measured" in text,
               f"{name}: --profile\n{text}")


def main():
    with tempfile.TemporaryDirectory(prefix="uir-hidden-") as scratch:
        for name, make in {**HIDDEN, **SHOWN}.items():
            model = write(os.path.join(scratch, name.replace(" ", "_")), *make())
            for seed in (1, 4):
                found = check(name, model, scratch, seed)
                if not found:
                    continue
                hidden, total = found
                share = hidden / total if total else 0
                print(f"{name}, seed {seed}: {100 * share:.0f}% of {total} bytes move while kernels run")
                suite.tell(share >= 0.8 if name in HIDDEN else share <= 0.2, f"{name}: {100 * share:.0f}% hidden")
            check_profile(name, model, scratch, *found)
    sys.exit(suite.end())


if __name__ == "__main__":
    main()
