#!/usr/bin/env python3
"""Models on the null device: a device with memory of its own, whose queues run when and in which order a seed draws.

    run_devices.py [--all] [--seeds N]

In: models in $UIR_MODELS_BUILT, the programs in $UIR_BIN. Each model runs by N seeds, to the VM's bits; steady runs wait as
often as the table says and allocate nothing; packages run untrusted, and are refused by other devices; waits and copies
that are taken out of a plan are missed (uir-waits); inputs and outputs bound on the device are read and written there
(uir-bound); all that the device copies of the runtime's is page-locked (uir-staging); a driver that refuses each of its calls leaves nothing behind (uir-failing); caches of decoders stay on the
device (uir-device-decode); a run's device memory is what limits of it say. --all: every model, 20 seeds, 500 steps. Out: a
line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import json
import os
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import MODELS, NO_MODELS, Suite, find_model, list_models, make_parser, run  # noqa: E402

QUICK = ["gru_seq", "dlrm", "lstm_classifier", "silero_vad", "silero_vad_16k_op15", "espcn", "llama_tiny_op23", "yolo_tiny"]
# Times that the host waits in a run: once for the end; for sizes that data decide.
WAITS = {"gru_seq": 1, "dlrm": 1, "lstm_classifier": 1, "silero_vad": 1, "espcn": 1, "llama_tiny_op23": 1, "gpt2_kv": 1, "yolo_tiny": 2}
# Packages whose plans are edited, with the extent of their symbolic dims; None: on the model's own inputs.
EDITED = {"gru_seq": 3, "lstm_classifier": 3, "dlrm": 3, "espcn": 3}
EDITED_ALL = {**EDITED, "whisper_tiny_decoder": 3, "silero_vad": None, "llama_tiny_op23": None, "silero_vad_16k_op15": None, "yolo_tiny": 64}
# Decoders with their seeds and steps; models whose memory on the device is limited.
DECODED = [("llama_tiny_op23", 5, 20), ("gpt2_kv", 6, 3)]
LIMITED = ["gru_seq", "dlrm", "silero_vad"]
LIMITED_ALL = [*LIMITED, "lstm_classifier", "espcn", "llama_tiny_op23", "yolo_tiny", "whisper_tiny_decoder"]
suite = Suite()


def find_data(model):
    sets = sorted(glob.glob(os.path.join(os.path.dirname(model), "test_data_set_*")))
    return sets[0] if sets else os.path.dirname(model)


def read_outputs(folder):
    return {os.path.basename(path): open(path, "rb").read() for path in glob.glob(os.path.join(folder, "*.pb"))}


def check_bits(name, seeds):
    model = find_model(name)
    with tempfile.TemporaryDirectory(prefix="uir-devices-") as scratch:
        outputs = {}
        for device in ["vm"] + [f"null:{seed}" for seed in seeds]:
            folder = os.path.join(scratch, device.replace(":", "_"))
            done = run("uir-run", model, "--device", device, "--cache", os.path.join(scratch, "cache"), "--data", find_data(model),
                       "--quiet", "--save", folder)
            outputs[device] = read_outputs(folder)
            if device == "vm":
                continue
            same = outputs[device] == outputs["vm"] and len(outputs["vm"]) > 0
            suite.tell(same, f"{name} on {device}: other bits than the VM's; exit {done.returncode}\n{done.stderr[:500]}")


def check_steady(name):
    model = find_model(name)
    done = run("uir-run", model, "--device", "null:3", "--no-cache", "--data", find_data(model), "--bench", "--iterations", 2,
               "--warmup", 2, "--json")
    bus = json.loads(done.stdout)["bus"] if done.returncode == 0 else {"waits": done.stderr}
    suite.tell(bus["waits"] == WAITS[name], f"{name}: {bus['waits']} waits in a steady run, {WAITS[name]} expected")
    done = run("uir-steady", model, "null", 1, find_data(model), find_data(model))
    suite.tell(done.returncode == 0, f"{name}: uir-steady on null, exit {done.returncode}\n{done.stdout}{done.stderr}")


def save_inputs(model, folder):
    """The model's first inputs as input_N.npy; a cache that is empty there has two entries, and its mask two more."""
    os.mkdir(folder)
    for path in glob.glob(os.path.join(find_data(model), "input_*.pb")):
        tensor = onnx.TensorProto()
        with open(path, "rb") as file:
            tensor.ParseFromString(file.read())
        array = onnx.numpy_helper.to_array(tensor)
        if 0 in array.shape:
            array = np.random.default_rng(7).random([extent or 2 for extent in array.shape]).astype(array.dtype)
        elif tensor.name == "attention_mask":
            array = np.concatenate([np.ones((len(array), 2), array.dtype), array], axis=1)
        np.save(os.path.join(folder, os.path.basename(path)[:-3] + ".npy"), array)
    return folder


def check_packages(edited, seeds):
    with tempfile.TemporaryDirectory(prefix="uir-devices-") as scratch:
        words, made_up = [], []
        for name, dim in edited.items():
            model, package = find_model(name), os.path.join(scratch, name + ".uir")
            done = run("uir-pack", model, "-o", package, "--device", "null", "--quiet")
            if not suite.tell(done.returncode == 0, f"uir-pack {name} --device null: {done.stderr}"):
                continue
            made_up += ["--dim", dim, package] if dim else []
            words += made_up[-3:] if dim else ["--data", save_inputs(model, os.path.join(scratch, name)), package]
            for program, seed in (("uir-run", 5), ("uir-run-package", 6)):
                done = run(program, package, "--device", f"null:{seed}", "--data", find_data(model), "--quiet")
                suite.tell(done.returncode == 0, f"{name}: its package on null by {program}: {done.stderr}")
            done = run("uir-run", package, "--device", "vm", "--quiet")
            suite.tell(done.returncode == 5 and "for device null" in done.stderr, f"{name}: its package on the VM: {done.stderr}")
        done = run("uir-waits", "--seeds", seeds, *words)
        suite.tell(done.returncode == 0, f"uir-waits: exit {done.returncode}\n{done.stderr}")
        print(done.stdout)
        done = run("uir-bound", *made_up)
        suite.tell(done.returncode == 0, f"uir-bound: exit {done.returncode}\n{done.stdout}{done.stderr}")
        done = run("uir-staging", *words)
        suite.tell(done.returncode == 0, f"uir-staging: exit {done.returncode}\n{done.stdout}{done.stderr}")
        print(done.stdout)
        done = run("uir-failing", "--every", 1 if seeds > 8 else 3, *made_up)
        suite.tell(done.returncode == 0, f"uir-failing: exit {done.returncode}\n{done.stdout}{done.stderr}")


def check_decoding(name, seed, steps):
    done = run("uir-device-decode", find_model(name), f"null:{seed}", steps)
    suite.tell(done.returncode == 0, f"{name}: {steps} steps on null:{seed}, exit {done.returncode}\n{done.stdout}{done.stderr}")


def check_limit(name):
    model = find_model(name)
    words = (model, "--device", "null:2", "--no-cache", "--data", find_data(model))
    done = run("uir-run", *words, "--json")
    most = json.loads(done.stdout)["bus"]["device_bytes"] if done.returncode == 0 else 0
    enough = run("uir-run", *words, "--quiet", "--limit-device-memory", most)
    suite.tell(most > 0 and enough.returncode == 0, f"{name}: {most} bytes are not enough: {enough.stderr}")
    short = run("uir-run", *words, "--quiet", "--limit-device-memory", most - 1)
    suite.tell(short.returncode == 3 and f"{most} requested" in short.stderr and "--limit-device-memory" in short.stderr,
               f"{name}: one byte less than {most}: exit {short.returncode}, {short.stderr}")


def check_words():
    for device in ("null:x", "null:-1", "null:"):
        done = run("uir-run", find_model("gru_seq"), "--device", device, "--quiet")
        suite.tell(done.returncode == 2 and "is not a seed" in done.stderr, f"--device {device}: exit {done.returncode}, {done.stderr}")


def check_given_up():
    """A kernel that takes longer than the limit: the device is given up, and what it executes ends."""
    vector = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("MatMul", ["a", "b"], ["c"], name="slow")], "slow",
                              [vector("a", onnx.TensorProto.FLOAT, ["n", 4096]), vector("b", onnx.TensorProto.FLOAT, [4096, 4096])],
                              [vector("c", onnx.TensorProto.FLOAT, ["n", 4096])])
    with tempfile.TemporaryDirectory(prefix="uir-devices-") as scratch:
        path = os.path.join(scratch, "slow.onnx")
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
        done = run("uir-run", path, "--device", "null:0", "--dim", "n=8192", "--limit-wait-seconds", 1, "--quiet", "--no-cache")
        suite.tell(done.returncode == 3 and "more than 1 wait-seconds" in done.stderr,
                   f"a limit of the time of a wait: exit {done.returncode}, {done.stderr}")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--all", action="store_true")
    arguments = parser.parse_args()
    if not os.path.isdir(MODELS):
        suite.skip(NO_MODELS)
        sys.exit(suite.end())
    seeds = range(arguments.seeds or (20 if arguments.all else 3))
    for name in list_models() if arguments.all else QUICK:
        check_bits(name, seeds)
    for name in WAITS if arguments.all else [name for name in WAITS if name in QUICK]:
        check_steady(name)
    for name, seed, steps in DECODED:
        check_decoding(name, seed, 500 if arguments.all else steps)
    for name in LIMITED_ALL if arguments.all else LIMITED:
        check_limit(name)
    check_packages(EDITED_ALL if arguments.all else EDITED, 20 if arguments.all else 8)
    check_words()
    check_given_up()
    sys.exit(suite.end())


if __name__ == "__main__":
    main()
