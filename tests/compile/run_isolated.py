#!/usr/bin/env python3
"""A fault of the compiler costs its kernel: the model runs, is right, and says so once. Who asks for strictness gets an error.

Faults are planted by uir-run-faulty and uir-pack-faulty (tests/compile/faulty.c): each stage from fusion to runs refuses
all that it made, some of it, or what is fused. In: the programs in $UIR_BIN. Out: a line per failure, then
`N passed, M failed, S skipped`.
"""
import json
import os
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import BIN, FAILED, RAN, Case, expect, make_model, run, run_tests, save, value  # noqa: E402

RUN, PACK = os.path.join(BIN, "uir-run-faulty"), os.path.join(BIN, "uir-pack-faulty")
TOLERANCE = ["--rtol", "1e-4", "--atol", "1e-5"]
LENIENT = {"UIR_STRICT": ""}
# What is planted, and the stage that the warning names.
PLANTED = [("loop", "loop"), ("loop:2", "loop"), ("schedule", "schedule"), ("schedule:matmul", "schedule"),
           ("igraph", "igraph"), ("igraph:matmul", "igraph"), ("igraph:reduce", "igraph"), ("runs", "runs"),
           ("runs:concat", "runs"), ("runs:matmul", "runs"), ("fusion", "fusion")]


def attention(random):
    """A step of a decoder: its past grows by a row, queries meet all keys; every kind of group is in it."""
    w = numpy_helper.from_array(random.standard_normal((8, 8)).astype(np.float32), "w")
    axis = numpy_helper.from_array(np.array([-1], np.int64), "axis")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["q"], name="project"),
             helper.make_node("Concat", ["past", "q"], ["present"], name="grow", axis=0),
             helper.make_node("Transpose", ["present"], ["keys"], name="turn", perm=[1, 0]),
             helper.make_node("MatMul", ["q", "keys"], ["scores"], name="score"),
             helper.make_node("Softmax", ["scores"], ["weights"], name="weigh", axis=-1),
             helper.make_node("MatMul", ["weights", "present"], ["mixed"], name="mix"),
             helper.make_node("Tanh", ["mixed"], ["bent"], name="bend"),
             helper.make_node("ReduceSum", ["bent", "axis"], ["y"], name="sum", keepdims=0)]
    model = make_model(nodes, [value("x", ["n", 8]), value("past", ["p", 8])],
                       [value("y", ["n"]), value("present", ["p + n", 8])], [w, axis])
    x, past = (random.standard_normal((rows, 8)).astype(np.float32) for rows in (3, 5))
    q = x @ numpy_helper.to_array(w)
    present = np.concatenate([past, q])
    scores = np.exp(q @ present.T - (q @ present.T).max(-1, keepdims=True))
    y = np.tanh(scores / scores.sum(-1, keepdims=True) @ present).sum(-1)
    return model, [x, past], [y, present]


class Step(Case):
    def __enter__(self):
        super().__enter__()
        model, inputs, outputs = attention(np.random.default_rng(5))
        self.step = save(model, self.path("step.onnx"))
        self.data = self.path("step_data")
        os.makedirs(self.data)
        for kind, arrays in (("input", inputs), ("output", outputs)):
            for i, array in enumerate(arrays):
                save(numpy_helper.from_array(array), os.path.join(self.data, f"{kind}_{i}.pb"))
        self.command = [RUN, self.step, "--data", self.data, "--no-cache", *TOLERANCE]
        return self


def check_runs(step, planted, stage, device):
    what = f"{planted} on {device}"
    env = dict(LENIENT, UIR_PLANTED=planted)
    done = run(step.command, "--device", device, "--json", env=env)
    expect(done.returncode == RAN, f"{what}: the model runs", done)
    told = json.loads(done.out)
    expect(told["agree"] and told["faults"] > 0, f"{what}: it is right, and faults are counted", done)
    warnings = [line for line in done.err.splitlines() if "report this fault" in line]
    expect(len(warnings) == 1, f"{what}: one warning", done)
    expect(stage in warnings[0] and "a planted refusal" in warnings[0], f"{what}: it names stage and reason", done)
    expect(stage == "fusion" or "kernel " in warnings[0], f"{what}: it names the kernel", done)


def test_a_fault_costs_its_kernel():
    with Step() as step:
        for planted, stage in PLANTED:
            check_runs(step, planted, stage, "vm")
        for planted, stage in (("schedule:matmul", "schedule"), ("runs", "runs")):
            check_runs(step, planted, stage, "cpu")


def test_what_is_fused_is_taken_apart():
    """Where single nodes have kernels, the interpreter has nothing to do."""
    with Step() as step:
        done = run(step.command, "--device", "vm", "--json", env=dict(LENIENT, UIR_PLANTED="loop:2"))
        told = json.loads(done.out)
        expect(told["calls"]["vm"] > 4 and told["calls"]["interpreter"] == 0, "all nodes have kernels", done)


def test_strictness_ends_with_the_fault():
    with Step() as step:
        for planted, stage in PLANTED:
            env = dict(LENIENT, UIR_PLANTED=planted)
            for more in (["--strict"], ["--no-fallback"], ["--check"]):
                done = run(step.command, "--device", "vm", *more, env=env)
                expect(done.returncode == FAILED, f"{planted}, {more}: exit {FAILED}", done)
                expect("report" in done.err and stage in done.err, f"{planted}, {more}: what it says", done)
            done = run(PACK, step.step, "-o", step.path("step.uir"), "--device", "vm", env=env)
            expect(done.returncode == FAILED and not os.path.exists(step.path("step.uir")), f"{planted}: no package", done)
            done = run(step.command, "--device", "vm", env=dict(env, UIR_STRICT="1"))
            expect(done.returncode == FAILED, f"{planted}: strict by its environment", done)


def test_the_cache_keeps_the_fault():
    """A later start tells as much as the first; a strict one has nothing to do with what a lenient one kept."""
    with Step() as step:
        command = [word for word in step.command if word != "--no-cache"] + ["--cache", step.path("cache"), "--device", "vm"]
        env = dict(LENIENT, UIR_PLANTED="loop:2")
        for start in range(2):
            done = run(command, "--json", env=env)
            expect(done.returncode == RAN and json.loads(done.out)["faults"] > 0, f"start {start}", done)
            expect(done.err.count("report this fault") == 1, f"start {start} warns", done)
        done = run(command, "--strict", env=env)
        expect(done.returncode == FAILED, "a strict start", done)


def test_nothing_planted_is_no_fault():
    with Step() as step:
        for more in ([], ["--strict"], ["--no-fallback"]):
            done = run(step.command, "--device", "vm", "--json", *more, env=LENIENT)
            expect(done.returncode == RAN and json.loads(done.out)["faults"] == 0, f"{more}", done)
            expect("report" not in done.err, f"{more}: it is said of none", done)


def test_a_device_that_executes_nothing():
    """--check runs each kernel on the device itself, and compares what it left there."""
    with Step() as c:
        for planted, code in (("", 0), ("device", 1)):
            done = run(RUN, c.step, "--check", "--device", "null:1", "--no-cache", "--dim", "n=3", "--dim", "p=5", env={"UIR_PLANTED": planted})
            expect(done.returncode == code, f"planted '{planted}'", done)
            expect(("stage null:1 differs, kernel k0" in done.err) == bool(planted), "the kernel is named", done)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
