#!/usr/bin/env python3
"""uir-run --reduce: faults are planted by a C compiler that changes a function of the math on its way, refuses a source
or makes a kernel crash; the model that comes out must be small, be a model that others accept, and show the fault when
it is run as the report says.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import json
import os
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cli import (BIN, DIFFERS, FAILED, INTERPRET, PACK, RAN, RUN, UNSUPPORTED, USAGE, Case, expect, external_model, fails,
                 is_clean, make_model, run, run_tests, save, value, write_set)

COMPILERS = tempfile.TemporaryDirectory(prefix="uir-compilers-")
WRONG = "sed -i 's/= v_sin_f32(/= v_cos_f32(/' \"$a\""
CRASHES = "sed -i 's/= v_sin_f32(\\(.*\\));/= v_sin_f32(\\1); *(volatile int *)8 = 0;/' \"$a\""
REFUSES = "grep -q '= v_sin_f32(' \"$a\" && { echo 'a sine is too much' >&2; exit 1; }"
REFUSES_PAIRS = "grep -q '= v_sin_f32(' \"$a\" && grep -q '= v_exp_f32(' \"$a\" && { echo 'a sine and an exp' >&2; exit 1; }"


def compiler(c, fault):
    """A C compiler with the fault; in a hurry, for the parts are many."""
    descriptor, path = tempfile.mkstemp(dir=COMPILERS.name)  # CC is words: no spaces in its folder
    with open(descriptor, "w", encoding="utf-8") as f:
        f.write(f'#!/bin/sh\nfor a; do case "$a" in *.c) {fault};; esac; done\nexec cc "$@" -O0\n')
    os.chmod(path, stat.S_IRWXU)
    return {"CC": path, "TMPDIR": c.folder}


def chain(c, steps=("Relu", "Exp", "Sin", "Tanh"), repeat=2):
    """Products, sums and those steps, one after the other: 6 or more nodes a round; the steps once."""
    rng, nodes, weights, at = np.random.default_rng(1), [], [], "x"
    for i in range(repeat):
        weights.append(numpy_helper.from_array(rng.standard_normal((8, 8)).astype(np.float32) / 8, f"w{i}"))
        nodes.append(helper.make_node("MatMul", [at, f"w{i}"], [f"m{i}"], name=f"product {i}"))
        nodes.append(helper.make_node("Add", [f"m{i}", at], [f"a{i}"], name=f"sum {i}"))
        at = f"a{i}"
        for op in steps if i == 0 else ("Relu", "Neg"):
            nodes.append(helper.make_node(op, [at], [f"{op}{i}"], name=f"{op} {i}"))
            at = f"{op}{i}"
    nodes.append(helper.make_node("Softmax", [at], ["y"], name="last"))
    return make_model(nodes, [value("x", ["batch", 8])], [value("y", None)], weights)


def reduce(c, model, *more, code, env, out="out.onnx"):
    done = run(RUN, model, "--dim", "batch=3", "--reduce", c.path(out), *more, env=env, timeout=400)
    expect(done.returncode == code and is_clean(done.stderr + done.stdout.replace(b"\t", b"")), f"exit {code} expected", done)
    expect(not glob.glob(os.path.join(glob.escape(c.folder), "uir-reduce-*")), "a temporary folder is left", done)
    return done


def again(c, done, env):
    """The last line of the report, as a person would type it."""
    line = done.out.splitlines()[-1]
    expect(line.startswith("again:  uir-run "), "how to see it again", done)
    return run([RUN] + shlex.split(line)[2:], env=env, cwd=c.folder)


def test_wrong_kernel():
    with Case() as c:
        model, env = save(chain(c), c.path("chain.onnx")), compiler(c, WRONG)
        done = reduce(c, model, code=DIFFERS, env=env)
        expect("reduce: 1 of 11 nodes show the fault" in done.out and "  Sin 'Sin 0'" in done.out, "the sine", done)
        expect("stage cpu differs" in done.out, "the stage", done)
        made = onnx.load(c.path("out.onnx"))
        onnx.checker.check_model(made, full_check=True)
        expect([n.op_type for n in made.graph.node] == ["Sin"] and len(made.graph.input) == 1, "one node is left")
        x, y = (numpy_helper.to_array(onnx.load_tensor(c.path("out_data", f"{n}_0.pb"))) for n in ("input", "output"))
        expect(x.shape == (3, 8) and np.allclose(np.sin(x), y, atol=1e-6), "its data")
        expect(again(c, done, env).returncode == DIFFERS, "it shows the fault again", done)
        expect(again(c, done, {}).returncode == RAN, "a sound compiler's kernels agree", done)


def test_deterministic_json():
    with Case() as c:
        model, env = save(chain(c), c.path("chain.onnx")), compiler(c, WRONG)
        reports = [json.loads(reduce(c, model, "--json", code=DIFFERS, env=env, out=o).out) for o in ("a.onnx", "b.onnx")]
        expect(reports[0]["nodes"] == [{"name": "Sin 0", "op": "Sin"}] == reports[1]["nodes"], f"{reports}")
        expect(reports[0]["tries"] == reports[1]["tries"] < 20, f"{reports}")
        expect(reports[0]["reproduced"] is True and reports[0]["all_nodes"] == 11 and reports[0]["finished"], f"{reports}")
        expect(open(c.path("a.onnx"), "rb").read() == open(c.path("b.onnx"), "rb").read(), "two searches, two models")


def test_crash_and_refusal():
    with Case() as c:
        model = save(chain(c), c.path("chain.onnx"))
        env = compiler(c, CRASHES)
        done = reduce(c, model, code=FAILED, env=env)
        expect("signal 11" in done.out and "1 of 11 nodes" in done.out and "'Sin 0'" in done.out, "a crash", done)
        expect(again(c, done, env).returncode == -signal.SIGSEGV, "it crashes again", done)
        env = compiler(c, REFUSES)
        done = reduce(c, model, code=FAILED, env=env)
        expect("a sine is too much" in done.out and "1 of 11 nodes" in done.out, "a source that is refused", done)
        expect(again(c, done, env).returncode == FAILED, "it is refused again", done)


def test_two_nodes_together():
    """What takes two nodes in one kernel is not cut further."""
    with Case() as c:
        model, env = save(chain(c), c.path("chain.onnx")), compiler(c, REFUSES_PAIRS)
        done = reduce(c, model, code=FAILED, env=env)
        made = onnx.load(c.path("out.onnx"))
        expect([n.op_type for n in made.graph.node] == ["Exp", "Sin"], f"{[n.op_type for n in made.graph.node]}", done)
        expect(again(c, done, env).returncode == FAILED, "it is refused again", done)


def test_subgraphs_and_external_data():
    """A branch reads values around it; weights lie in another file."""
    with Case() as c:
        then = helper.make_graph([helper.make_node("Sin", ["e"], ["s"], name="inner")], "t", [], [value("s", None)])
        other = helper.make_graph([helper.make_node("Neg", ["e"], ["n"])], "o", [], [value("n", None)])
        m = external_model("w.bin")
        m.graph.node.extend([helper.make_node("Exp", ["y"], ["e"], name="exp"),
                             helper.make_node("ReduceSum", ["x"], ["total"], keepdims=0, name="total"),
                             helper.make_node("Less", ["zero", "total"], ["which"], name="which"),
                             helper.make_node("If", ["which"], ["z"], name="branch", then_branch=then, else_branch=other)])
        m.graph.initializer.append(numpy_helper.from_array(np.array(-1e9, np.float32), "zero"))
        m.graph.output[0].name = "z"
        os.mkdir(c.path("in"))
        c.write("in/w.bin", np.arange(12, dtype=np.float32).tobytes())
        model, env = save(m, c.path("in", "m.onnx")), compiler(c, WRONG)
        done = reduce(c, model, code=DIFFERS, env=env)
        made = onnx.load(c.path("out.onnx"))
        expect([n.name for n in made.graph.node] == ["branch"], f"{[n.name for n in made.graph.node]}", done)
        expect({i.name for i in made.graph.input} == {"which", "e"}, "what it reads")
        expect(again(c, done, env).returncode == DIFFERS, "it shows the fault again", done)


def test_local_functions_stay_whole():
    """A call is a node of the model; what it calls comes along, as do weights that few elements make up."""
    with Case() as c:
        body = [helper.make_node("Sin", ["a"], ["s"]), helper.make_node("Add", ["s", "a"], ["b"])]
        function = helper.make_function("own", "Wave", ["a"], ["b"], body, [helper.make_opsetid("", 20)])
        nodes = [helper.make_node("Add", ["x", "few"], ["p"], name="sum"), helper.make_node("Exp", ["p"], ["q"], name="exp"),
                 helper.make_node("Wave", ["q"], ["y"], name="call", domain="own")]
        graph = helper.make_graph(nodes, "g", [value("x", ["batch", 4])], [value("y", None)])
        sparse = helper.make_sparse_tensor(helper.make_tensor("few", TensorProto.FLOAT, [1], [2.0]),
                                           helper.make_tensor("", TensorProto.INT64, [1], [1]), [4])
        graph.sparse_initializer.append(sparse)
        m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("own", 1)],
                              ir_version=10, functions=[function])
        env = compiler(c, WRONG)
        done = reduce(c, save(m, c.path("m.onnx")), code=DIFFERS, env=env)
        made = onnx.load(c.path("out.onnx"))
        expect([n.name for n in made.graph.node] == ["call"] and len(made.functions) == 1, "the call is left", done)
        expect(again(c, done, env).returncode == DIFFERS, "it shows the fault again", done)


def test_nothing_wrong():
    with Case() as c:
        model = save(chain(c), c.path("chain.onnx"))
        done = reduce(c, model, "--device", "vm", code=RAN, env={"TMPDIR": c.folder})
        expect("nothing to reduce" in done.out and not os.path.exists(c.path("out.onnx")), "nothing", done)
        data = write_set(c.path("d"), c.x, c.y)
        done = run(RUN, c.model, "--data", data, "--device", "vm", "--reduce", c.path("out.onnx"))
        expect(done.returncode == RAN and "nothing to reduce" in done.out, "data that agree", done)


def test_two_small_differences():
    """The kernel is a little too high and the data are a little too low: each alone would do."""
    with Case() as c:
        m = make_model([helper.make_node("Sin", ["x"], ["y"], name="sine")], [value("x", ["n"])], [value("y", None)])
        model, x = save(m, c.path("m.onnx")), np.array([1], np.float32)
        data = write_set(c.path("d"), x, np.sin(x) - np.float32(0.008))
        env = compiler(c, "sed -i 's/= v_sin_f32(/= 0.008f + v_sin_f32(/' \"$a\"")
        command = [RUN, model, "--data", data, "--reduce", c.path("out.onnx"), "--rtol", "0", "--atol", "0.01"]
        done = run(command, env=env)
        expect(done.returncode == DIFFERS and "differences together" in done.out, "it is said", done)
        done = run(command, "--json", env=env)
        report = json.loads(done.out)
        expect(done.returncode == DIFFERS and not report["nodes"] and "differs" in report["fault"], f"{report}", done)


def test_data_that_the_interpreter_contradicts():
    with Case() as c:
        m = chain(c)
        m.graph.output.extend([value("m0", None), value("Neg1", None)])
        model, data = save(m, c.path("chain.onnx")), c.path("d")
        x = np.ones((2, 8), np.float32)
        write_set(data, x)
        for i in range(3):
            save(numpy_helper.from_array(np.zeros((2, 8), np.float32)), os.path.join(data, f"output_{i}.pb"))
        done = run(INTERPRET, model, "--data", data, "--save", c.path("real"))
        for i in (0, 2):  # those two are right
            os.replace(c.path("real", f"output_{i}.pb"), os.path.join(data, f"output_{i}.pb"))
        done = run(RUN, model, "--data", data, "--device", "vm", "--reduce", c.path("out.onnx"))
        expect(done.returncode == DIFFERS and "interpreter's results differ" in done.out, "it is said", done)
        made = onnx.load(c.path("out.onnx"))
        expect([n.name for n in made.graph.node] == ["product 0"], "what leads to it", done)
        expect(again(c, done, {}).returncode == DIFFERS, "it differs again", done)


def test_wrong_use():
    with Case() as c:
        out = c.path("out.onnx")
        fails(USAGE, "--reduce", "source", command=[RUN, c.model, "--reduce", out, "--source", c.folder])
        expect(run(PACK, c.model, "-o", c.path("m.uir"), "--quiet", "--no-native").returncode == RAN, "a package")
        fails(UNSUPPORTED, "--reduce", "package", command=[RUN, c.path("m.uir"), "--reduce", out])
        fails(UNSUPPORTED, "compiler", command=[os.path.join(BIN, "uir-run-package"), c.model, "--reduce", out])
        fails(FAILED, "absent", command=[RUN, c.model, "--reduce", out, "--device", "vm"],
              env={"TMPDIR": c.path("absent")})
        model, env = save(chain(c), c.path("chain.onnx")), compiler(c, REFUSES)
        fails(FAILED, "absent", command=[RUN, model, "--quiet", "--reduce", c.path("absent", "o.onnx")], env=env)
        done = fails(FAILED, "a sine is too much", command=[RUN, model, "--quiet", "--reduce", out], env=env)
        expect(os.path.exists(out), "--quiet reduces too", done)
        done = reduce(c, model, "--seconds", "0", code=FAILED, env=env)
        expect("out of time" in done.out and "11 of 11 nodes" in done.out, "no time to search", done)


def test_signals():
    with Case() as c:
        model, env = save(chain(c), c.path("chain.onnx")), compiler(c, "sleep 1;" + WRONG)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            p = subprocess.Popen([RUN, model, "--reduce", c.path("out.onnx")], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=dict(os.environ, **env))
            time.sleep(0.7)
            p.send_signal(number)
            out, err = p.communicate(timeout=60)
            expect(p.returncode == code and not out and not err, f"exit {p.returncode}, {out!r} {err!r}")
            left = [f for f in os.listdir(c.folder) if f.startswith("uir")]
            expect(not left, f"left behind: {left}")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
