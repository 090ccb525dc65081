#!/usr/bin/env python3
"""What --plan says of waits and bytes over the bus, beside what a steady run counts on the null device.

    run_bus.py [--all]

In: models in $UIR_MODELS_BUILT, small graphs of graphs.py, the programs in $UIR_BIN. Where the plan knows all sizes, turns
and branches, --plan says what the run counts; what its plan says for the sizes and turns of the run is always that. --all:
every model. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import json
import os
import sys
import tempfile

import numpy as np
from onnx import numpy_helper, TensorProto

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from graphs import GRAPHS, write  # noqa: E402
from suite import MODELS, NO_MODELS, Suite, find_model, list_models, make_parser, run  # noqa: E402

QUICK = ["gru_seq", "dlrm", "lstm_classifier", "silero_vad", "espcn", "llama_tiny_op23"]
COUNTS = ("waits", "bytes_to_device", "bytes_from_device")
UNKNOWN = ("unknown_sizes", "unknown_turns", "unknown_branches")
suite = Suite()


def read_shape(path):
    if path.endswith(".npy"):
        return np.load(path).shape
    tensor = TensorProto()
    with open(path, "rb") as f:
        tensor.ParseFromString(f.read())
    return numpy_helper.to_array(tensor).shape


def find_dims(model, folder):
    """The words --dim NAME=N for the sizes of a data set; None where a name has several."""
    told, words = json.loads(run("uir-run", model, "--info", "--json").stdout), []
    files = {port["name"]: glob.glob(os.path.join(folder, f"input_{i}.*")) for i, port in enumerate(told["inputs"])}
    for dim in told["dims"]:
        extents = {read_shape(files[at["name"]][0])[at["axis"]] for at in dim["inputs"] if files[at["name"]]}
        if len(extents) > 1:
            return None
        words += [word for extent in extents for word in ("--dim", f"{dim['name']}={extent}")]
    return words


def read_json(name, *words):
    done = run("uir-run", *words, "--json")
    return json.loads(done.stdout) if suite.tell(done.returncode == 0, f"{name}: exit {done.returncode}\n{done.stderr}") else None


def pick(counts):
    return {key: counts[key] for key in COUNTS}


def check(name, model, folder, cache):
    common = [model, "--device", "null:3", "--cache", cache]
    measured = read_json(name, *common, "--data", folder, "--bench", "--iterations", 1, "--warmup", 1)
    dims = find_dims(model, folder)
    plan = read_json(name, *common, "--plan", *dims) if dims is not None else None
    if not measured:
        return None
    counted, of_run = pick(measured["bus"]), measured["bus"]["planned"]
    if not of_run["unknown_sizes"]:
        suite.tell(pick(of_run) == counted, f"{name}: the run counts {counted}; its plan says {of_run}")
    if not plan:
        if dims is None:
            suite.skip(f"{name}: one name of a dim has several sizes, which --dim cannot say")
        return None
    before = plan["bus"]
    suite.tell(before["unknown_turns"] == len(before["loops"]), f"{name}: {before}")
    if not any(before[key] for key in UNKNOWN):
        suite.tell(pick(before) == counted, f"{name}: the run counts {counted}; --plan says {before}")
    return counted, before


def check_text(model, cache, before):
    """The same in words."""
    done = run("uir-run", model, "--device", "null", "--cache", cache, "--plan")
    suite.tell(f"{before['waits']} wait{'s' * (before['waits'] != 1)}, " in done.stdout and "B over the bus" in done.stdout, f"--plan\n{done.stdout}{done.stderr}")
    done = run("uir-run", model, "--device", "vm", "--cache", cache, "--plan")
    suite.tell(done.returncode == 0 and "over the bus" not in done.stdout, f"--plan on the host\n{done.stdout}{done.stderr}")


def check_graphs(scratch):
    known = {}
    for i, (name, (model, data)) in enumerate(GRAPHS.items()):
        folder = os.path.join(scratch, str(i))
        path = write(folder, model, data)
        known[name] = check(name, path, os.path.join(folder, "test_data_set_0"), os.path.join(scratch, "cache"))
        if name == "loop of 5":
            check_text(path, os.path.join(scratch, "cache"), known[name][1])
    expected = {"loop of 5": (), "loop of 1000": (), "scanned loop": (), "given loop": ("unknown_turns",),
                "conditional loop": ("unknown_turns",), "first branch": ("unknown_branches",),
                "second branch": ("unknown_branches",), "sizes by data": ("unknown_sizes",)}
    for name, unknown in expected.items():
        if known[name]:
            found = tuple(key for key in UNKNOWN if known[name][1][key])
            suite.tell(found == unknown, f"{name}: unknown are {found}")
    for name, turns in (("given loop", 7), ("conditional loop", 6)):
        counted, before = known[name]
        each = before["loops"][0]
        suite.tell(all(before[key] + (turns - 1) * each[key] == counted[key] for key in COUNTS), f"{name}: {counted}, {before}")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    exact = 0
    with tempfile.TemporaryDirectory(prefix="uir-bus-") as scratch:
        check_graphs(scratch)
        if not os.path.isdir(MODELS):
            suite.skip(NO_MODELS)
            sys.exit(suite.end())
        for name in list_models() if arguments.all else QUICK:
            model = find_model(name)
            sets = sorted(glob.glob(os.path.join(os.path.dirname(model), "test_data_set_*")))
            known = check(name, model, sets[0] if sets else os.path.dirname(model), os.path.join(scratch, "cache"))
            exact += known is not None and not any(known[1][key] for key in UNKNOWN)
    print(f"the sizes, turns and branches of {exact} models are known before a run")
    suite.tell(exact >= 4, f"only {exact} models are exact")
    sys.exit(suite.end())


if __name__ == "__main__":
    main()
