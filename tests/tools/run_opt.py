#!/usr/bin/env python3
"""uir-opt as its users meet it: errors in kernels' texts with their place, wrong options, texts that go on from where
they stopped, emitted sources, compilers started without a shell.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import onnx
from onnx import helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

import layers
from cli import (BAD_FILE, FAILED, IS_FOREIGN, KERNEL, MADE_FOR, OPT, PACK, RAN, ROOT, USAGE, Case, expect, fails,
                 need_processes, product_model, run, run_tests, save, write_set)


# ---- uir-opt ----
def test_kernel_text_errors():
    with Case() as c:
        for old, new, words in (("binary.mul.f32", "binary.mlu.f32", []), ("%x[p*t+r:1", "%q[p*t+r:1", ["q"]),
                                ("@scale", "@sc*/ale", []), ("@scale", '@"scale"', []), ("%y :", "%y\n\\ :", []),
                                ("dim M", "dim M;x", []), ("dim M", "dim $(x)", []), ("tile t", "tile ??/", []),
                                ("2.5", "2.5.5", []), ("on cpu", "on toaster", ["toaster"]), ("} }", "}", []),
                                ("phase", "phrase", []), ("[M,N] in 0", "[M,N in 0", []), ("@scale", "@sc\u00e4le", []),
                                ("@scale", "@sc\x1b[31male", []), ("@scale", "@sc\0ale", [])):
            k = c.write("k.igraph", KERNEL.replace(old, new))
            done = fails(BAD_FILE, *words, command=[OPT, k])
            place = re.search(r"k\.igraph:(\d+):(\d+): error: ", done.err)
            expect(place, "no line and column", done)
            lines = done.err.splitlines()
            expect(any(re.fullmatch(r" +\^", line) for line in lines), "no caret", done)
        k = c.write("k.igraph", KERNEL.replace("0:N], 2.5", "1:N], 2.5"))
        done = fails(BAD_FILE, "%y[p*t + r, 0:N]", command=[OPT, k, "--after", "verify"])
        expect(re.search(r"k\.igraph:\d+", done.err), "the verifier names the line", done)
        fails(BAD_FILE, command=[OPT, c.write("k.txt", "what is this?")])
        fails(BAD_FILE, command=[OPT, c.write("k.txt", b"")])
        fails(BAD_FILE, command=[OPT, c.write("k.txt", b"\xff\x00\xfe" * 100)])
        whole = KERNEL.encode()
        for length in range(7, len(whole) - 3, 11):
            fails(BAD_FILE, "k.igraph", command=[OPT, c.write("k.igraph", whole[:length])])


def test_names_are_shown_safely():
    """Whatever a model calls its dims, values, nodes and kernels: no byte of it that a terminal acts on."""
    marks = [bytes(range(1, 32)) + b"\x7f", "\u0080\u009b31m".encode(), b"\x1b]0;title\x07", b"a\nuir-opt: error: b"]
    with Case() as c:
        for mark in marks:
            name = mark.decode()
            nodes = [helper.make_node("Relu", ["x" + name], ["r" + name], name="n" + name),
                     helper.make_node("Softmax", ["r" + name], ["y" + name], name="m" + name, axis=-1)]
            path = save(helper.make_model(helper.make_graph(
                nodes, "g" + name,
                [helper.make_tensor_value_info("x" + name, onnx.TensorProto.FLOAT, ["d" + name, 4])],
                [helper.make_tensor_value_info("y" + name, onnx.TensorProto.FLOAT, None)]),
                opset_imports=[helper.make_opsetid("", 17)], ir_version=8), c.path("m.onnx"))
            data = write_set(c.path("data"), c.x[:, :2].copy())
            for stage in ("onnx", "primitives", "fusion"):
                text = c.path(stage + ".txt")
                expect(run(OPT, path, "--after", stage, "-o", text).returncode == RAN, f"a text of {mark!r}")
                for words in (["--run"], ["--run", "--dim", "nosuch=1"], ["--run", "--input", "nosuch=x.npy"],
                              ["--run", "--kernel", "nosuch"], ["--run", "--data", data], ["--run", "--data", c.folder],
                              ["--after", "nosuch"], ["--run", "--check"], ["--after", "igraph", "--kernel", "nosuch"]):
                    for file in (path, text):
                        done = run(OPT, file, *words)
                        expect(done.out or done.err, f"{words} says nothing", done)
                        expect(not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]", done.stdout + done.stderr),
                               f"{words} of {mark!r}", done)
                        expect(not re.search(rb"^uir-opt: error: b", done.stdout + done.stderr, re.M), "a made-up line", done)


def test_running_kernels():
    with Case() as c:
        k = c.write("k.igraph", KERNEL)
        np.save(c.path("x.npy"), c.x)
        for device in ("interpreter", "vm", "cpu", "cpu:generic"):
            done = run(OPT, k, "--run", "--check", "--device", device, "--dim", "M=2", "--dim", "N=3", "--input",
                       "x=" + c.path("x.npy"), "--save", c.folder)
            expect(done.returncode == RAN and "agrees" in done.out, f"a kernel on {device}", done)
            expect(np.array_equal(np.load(c.path("y.npy")), c.x * np.float32(2.5)), f"its result on {device}", done)
        size = ["--dim", "M=2", "--dim", "N=3"]
        for code, words, arguments in ((USAGE, ["Q=3"], ["--dim", "Q=3"]), (USAGE, ["--dim", "M"], ["--dim", "M"]),
                                       (USAGE, ["M=x"], ["--dim", "M=x"]), (USAGE, ["t"], ["--tile", "t=65"]),
                                       (USAGE, ["M"], ["--dim", "M=5000"]), (USAGE, ["M"], ["--dim", "M=-1"]),
                                       (USAGE, ["z=1"], ["--tile", "z=1"]), (USAGE, ["gpu"], ["--device", "gpu"]),
                                       (USAGE, ["nosuch"], ["--device", "cpu:nosuch"]),
                                       (USAGE, ["nosuch"], ["--device", "vm:nosuch"]),
                                       (USAGE, ["nosuch"], ["--kernel", "nosuch"]),
                                       (USAGE, ["z=a.npy"], ["--input", "z=a.npy"]),
                                       (USAGE, ["y=a.npy"], ["--input", "y=a.npy"]),
                                       (BAD_FILE, ["absent.npy"], ["--input", "x=absent.npy"]),
                                       (BAD_FILE, ["f32[2,3]", "%x", "f32[1,1]"], ["--input", "x=" + c.path("x.npy")])):
            fails(code, *words, command=[OPT, k, "--run", *arguments])
        done = run(OPT, k, "--run", *size, "--save", k)
        expect(done.returncode == FAILED and "cannot make the folder" in done.err, "a folder that is a file", done)
        done = run(OPT, k, "--run", *size, "--save", c.path("made"))
        expect(done.returncode == RAN and os.path.exists(c.path("made", "y.npy")), "the folder is made", done)
        fails(USAGE, "unknown option", "did you mean --device?", command=[OPT, k, "--devcie", "vm"])
        fails(USAGE, "no file", command=[OPT])
        fails(USAGE, "-o", command=[OPT, k, "-o"])
        fails(USAGE, "nosuch", command=[OPT, k, "--after", "nosuch"])
        fails(USAGE, "nosuch", command=[OPT, c.model, "--after", "nosuch"])
        fails(BAD_FILE, "absent", command=[OPT, c.path("absent")])
        fails(BAD_FILE, "cannot read", command=[OPT, c.folder])


def test_texts_go_round():
    with Case() as c:
        whole = run(OPT, c.model)
        expect(whole.returncode == RAN, "a model's text", whole)
        passes, _ = stages()
        expect(len(passes) > 2, f"the stages are {passes}")
        beyond = passes[passes.index("drop-dead") + 1:]  # the clean-up: there it stays
        for stage in passes[1:]:
            text = c.path("stage.txt")
            done = run(OPT, c.model, "--after", stage, "-o", text)
            expect(done.returncode == RAN and not done.stdout, f"after {stage}", done)
            again = run(OPT, text, "--from", stage)
            end = run(OPT, c.model, "--after", stage) if stage in beyond else whole
            expect(again.returncode == RAN and again.stdout == end.stdout, f"on from {stage}", again)
        last = c.write("last.txt", whole.stdout)
        expect(run(OPT, last).stdout == whole.stdout, "the last text is itself again")
        for file in glob.glob(os.path.join(ROOT, "tests", "ir", "kernel", "*.igraph"))[:12] + [c.write("k.igraph", KERNEL)]:
            warps = ("--device-file", os.path.join(ROOT, "tests", "ir", "kernel", "warps.device"))
            own = warps if "warps_" in os.path.basename(file) else ()
            once = run(OPT, file, *own)
            expect(once.returncode == RAN, "an iGraph's text", once)
            twice = run(OPT, c.write("again.igraph", once.stdout), *own)
            expect(twice.stdout == once.stdout, f"{file}: the text is not itself again", twice)
        for file in glob.glob(os.path.join(ROOT, "tests", "ir", "loop", "**", "*.loop"), recursive=True):
            once = run(OPT, file)
            twice = run(OPT, c.write("again.loop", once.stdout))
            expect(once.returncode == RAN and twice.stdout == once.stdout, f"{file}: the text is not itself again", twice)


TIED = """igraph @grow on cpu {
  dim M in 0..64, N in 1..64
  ptr %a : dram f32 [M,N] in 0
  ptr %b : dram f32 [M,N] out 0 tied %a
  phase { parallel p : M group
    if p >= 1 { binary.add.f32 %b[p, 0:N], %b[p, 0:N], 1 }
  }
}
"""


def test_tied_results_begin_with_their_operand():
    with Case() as c:
        k = c.write("k.igraph", TIED)
        np.save(c.path("a.npy"), c.x)
        for device in ("interpreter", "vm", "cpu"):
            done = run(OPT, k, "--run", "--check", "--device", device, "--dim", "M=2", "--dim", "N=3", "--input",
                       "a=" + c.path("a.npy"), "--save", c.folder)
            expect(done.returncode == RAN and "agrees" in done.out, f"a tied kernel on {device}", done)
            expect(np.array_equal(np.load(c.path("b.npy")), c.x + np.array([[0], [1]], np.float32)), device, done)


def stages():
    """Those of a graph, and those with kernels."""
    names = re.findall(r"^  ([a-z_-]+) ", run(OPT, "--list").out, re.M)
    expect(names[-1] == "emit", f"the stages are {names}")
    return names[:names.index("fusion")], names[names.index("fusion"):-1]


def test_options_do_something_or_are_refused():
    with Case() as c:
        k, text = c.write("k.igraph", KERNEL), c.path("m.txt")
        loops = c.write("f.loop", run(OPT, c.model, "--after", "loop", "--kernel", "k0_matmul").stdout)
        expect(run(OPT, c.model, "--after", "igraph", "-o", text).returncode == RAN, "the text of a model")
        write_set(c.path("data"), c.x, c.y)
        # What each option is for: a model or its text printed or run, kernels printed or run.
        uses = {"--after": "mM tT k", "--from": "tT k", "-o": "mt k l", "--constants": "mtT", "--external-data": "mMtT", "--device": "mMtT kK", "--device-file": "mMtT kK",
                "--kernel": "mMtT kK", "--schedule": "mMtT", "--dim": "MT K", "--tile": "K", "--data": "MT", "--input": "MT K",
                "--random": "MT K", "--save": "MT K", "--check": "MT K", "--time": "K", "--seconds": "K",
                "--threads": "MT K"}
        values = {"--after": "nosuch", "--from": "nosuch", "-o": c.path("out"), "--constants": "absent.onnx", "--external-data": c.path("absent"),
                  "--device": "nosuch", "--device-file": c.path("absent"), "--kernel": "nosuch", "--schedule": c.path("absent"), "--dim": "nosuch=1", "--tile": "nosuch=1",
                  "--data": c.path("absent"), "--input": "nosuch=x.npy", "--random": "1", "--save": c.path("saved"),
                  "--seconds": "0.1", "--threads": "3"}
        commands = {"m": [c.model], "M": [c.model, "--run"], "t": [text], "T": [text, "--run"], "k": [k],
                    "K": [k, "--run"], "l": [loops]}
        for use, command in commands.items():
            for option, where in uses.items():
                arguments = [option] + ([values[option]] if option in values else [])
                done = run(OPT, *command, *arguments)
                if use not in where:
                    expect(done.returncode == USAGE and f"{option} is not for " in done.err and not done.stdout,
                           f"{option} in {use}", done)
                elif option in ("-o", "--random", "--save"):
                    expect(done.returncode == RAN, f"{option} in {use}", done)
                elif option == "--check" and use == "M":
                    expect(done.returncode == USAGE and "--check compares kernels" in done.err, option, done)
                elif option not in ("--check", "--time"):
                    expect(done.returncode in (USAGE, BAD_FILE) and done.err, f"{option} in {use}", done)
        for device in ("cuda", "ascend:nonsense", "nonsense", "vm", "interpreter", "cpu:nonsense", "cpu:"):
            for command in ([c.model, "--after", "emit"], [text, "--after", "emit"], [k, "--after", "emit"]):
                done = run(OPT, *command, "--device", device)
                wanted = {c.model: (4, "no emitter"), text: (BAD_FILE, "unknown device")}.get(command[0], (USAGE, ""))
                if device != "cuda":
                    wanted = (USAGE, "")
                expect(done.returncode == wanted[0] and not done.stdout and wanted[1] in done.err, f"a source for {device}", done)
        toy = """device toy {
            source s "nowhere" kinds core dtypes t = f32, i64
            space dram { roles memory of device reached_by core alignment 4 @s }
            legal unary.*, binary.*, move, fill of t into dram from dram on core
            chip "one" {} chip "two" { groups 4 @s }
        }"""
        clean = c.write("toy.device", toy)
        flat = c.write("flat.txt", "# stage: primitives\nmodule opset 17\ngraph \"main\" (%a: f32[64], %b: f32[64]) {\n"
                       "    %v: f32[64] = add(%a, %b)\n    return %v\n}\n")
        for more, wanted in (([], "on toy {"), (["--device", "toy:two"], 'on toy "two" {'), (["--device", "cpu"], "on cpu {")):
            done = run(OPT, flat, "--after", "igraph", "--device-file", clean, *more)
            expect(done.returncode == RAN and wanted in done.stdout.decode(), f"kernels by a description, {more}", done)
        printed = done.stdout.decode()
        kernel = c.write("toy.igraph", printed[printed.index("igraph @"):].replace("on cpu", 'on toy "two"'))
        expect(run(OPT, kernel, "--after", "verify", "--device-file", clean).returncode != USAGE, "a kernel for it", done)
        done = run(OPT, kernel, "--after", "verify")
        expect(done.returncode == BAD_FILE and "unknown device" in done.err, "a kernel for a device that is not there", done)
        done = run(OPT, flat, "--after", "igraph", "--device-file", c.write("faulty.device", toy.replace("kinds core", "kinds f32")))
        expect(done.returncode == BAD_FILE and "faulty.device:2:" in done.err and "another name" in done.err, "a faulty one", done)
        done = run(OPT, os.path.join(ROOT, "tests", "ir", "kernel", "cuda_softmax.igraph"), "--after", "emit")
        expect(done.returncode == 4 and "no emitter" in done.err, "no source for cuda", done)
        for code, words, arguments in (
                (USAGE, ["given twice"], [c.model, "--after", "onnx", "--after", "fusion"]),
                (USAGE, ["does not come after"], [text, "--after", "loop"]),
                (USAGE, ["does not come after"], [k, "--from", "runs", "--after", "verify"]),
                (USAGE, ["emit"], [c.model, "--run", "--after", "emit"]),
                (USAGE, ["every stage"], [c.model, "--run", "--after", "fusion", "--device", "vm"]),
                (USAGE, ["at least 1"], [k, "--run", "--device", "cpu", "--threads", "0"]),
                (USAGE, ["inline"], [text, "--run", "--constants", "inline"]),
                (USAGE, ["--seconds"], [k, "--run", "--seconds", "2"]),
                (USAGE, ["--dim"], [c.model, "--run", "--data", c.path("data"), "--dim", "N=1"]),
                (USAGE, ["a loop function is a text after"], [loops, "--run", "--from", "igraph"]),
                (USAGE, ["--device is not for"], [loops, "--run", "--device", "vm"]),
                (USAGE, ["no other argument"], [c.model, "--list"]),
                (USAGE, ["empty"], [k, "-o", ""]),
                (USAGE, ["its kernels are"], [c.model, "--after", "igraph", "--kernel", "nosuch"]),
                (BAD_FILE, ["input_0"], [c.model, "--run", "--data", c.folder])):
            fails(code, *words, command=[OPT, *arguments])


def test_models_and_their_texts_run():
    with Case() as c:
        data = c.path("data")
        write_set(data, c.x, c.y)
        before, middle = stages()
        for stage in before[:2] + before[-1:] + middle:
            text = c.path(stage + ".txt")
            expect(run(OPT, c.model, "--after", stage, "-o", text).returncode == RAN, stage)
            for command in ([c.model, "--after", stage], [text]):
                done = run(OPT, *command, "--run", "--data", data, "--save", c.path("out"))
                expect(done.returncode == RAN and "agrees with output_0" in done.out, f"{stage} of {command}", done)
            if stage in ("onnx", "fusion", "schedule", "runs"):
                for device in ("vm", "cpu") if stage == "fusion" else ("vm",):
                    done = run(OPT, text, "--run", "--data", data, "--device", device, "--check")
                    expect(done.returncode == RAN and "in every bit" in done.out, f"{stage} on {device}", done)
        # An edit is run, by whatever runs it.
        for stage, old, new in (("primitives", rb"matmul\((%\w+), (%\w+)\)", rb"neg(\1)"),
                                ("loop", rb"f32\(0\)", b"f32(1)"), ("runs", rb"fill\.f32 (.*), 0\n", rb"fill.f32 \1, 1\n")):
            edited, count = re.subn(old, new, open(c.path(stage + ".txt"), "rb").read())
            text = c.write("edited.txt", edited)
            expect(count, f"nothing to edit after {stage}")
            done = run(OPT, text, "--run", "--data", data)
            expect(done.returncode == (BAD_FILE if stage == "primitives" else 1), f"the edited text of {stage}", done)
            expect("edited.txt:" in done.err or "DIFFERS" in done.out, f"what is wrong after {stage}", done)
        kernel = re.search(r"^igraph @(\w+)", open(c.path("runs.txt")).read(), re.M).group(1)
        for command in ([c.model], [c.path("runs.txt")]):
            done = run(OPT, *command, "--run", "--kernel", kernel, "--device", "vm", "--check")
            expect(done.returncode == RAN and "agrees" in done.out, f"one kernel of {command}", done)
        done = run(OPT, c.model, "--after", "igraph", "--kernel", kernel)
        expect(done.returncode == RAN and done.out.startswith(f"igraph @{kernel} "), "one kernel's text", done)
        done = run(OPT, c.write("one.igraph", done.stdout), "--run", "--check")
        expect(done.returncode == RAN and "agrees" in done.out, "it is a file of kernels", done)


def test_loop_functions_run():
    """By itself, its inputs from a folder by number or from files by name."""
    source = ("func @scale {\n  dim M, N in 1..8\n  tensor out : f32 [M, N] out 0\n  tensor x : f32 [M, N] in 0\n"
              "  tensor by : f32 [N] in 1\n  serial for (i, 0, M) {\n    serial for (k, 0, N) {\n      ScheduleBlock(b) {\n"
              "        vi, vk = axis.bind(i, k) : M, N\n        out[vi, vk] = mul(x[vi, vk], by[vk])\n      }\n    }\n  }\n}\n")
    with Case() as c:
        by, data = np.float32([1, -2, 3]), c.path("data")
        os.makedirs(data)
        np.save(os.path.join(data, "input_0.npy"), c.x)
        np.save(os.path.join(data, "input_1.npy"), by)
        np.save(os.path.join(data, "output_0.npy"), c.x * by)
        np.save(c.path("ones.npy"), np.ones(3, np.float32))
        f = c.write("scale.loop", source)
        done = run(OPT, f, "--run", "--from", "loop", "--data", data, "--save", c.path("out"))
        expect(done.returncode == RAN and "agrees with output_0" in done.out, "a loop function", done)
        expect(np.array_equal(np.load(c.path("out/out.npy")), c.x * by), "its result", done)
        done = run(OPT, f, "--run", "--data", data, "--input", "by=" + c.path("ones.npy"))
        expect(done.returncode == 1 and "DIFFERS" in done.out, "another input", done)
        expect(run(OPT, f, "--run").returncode == RAN, "made-up data", done)
        for code, words, arguments in (
                (USAGE, ["unknown size"], ["--dim", "K=2"]), (USAGE, ["cannot run with"], ["--dim", "N=9"]),
                (USAGE, ["has no input"], ["--input", "out=" + c.path("ones.npy")]),
                (BAD_FILE, ["of by has f32[3]", "not f32[2]"], ["--input", "by=" + c.path("ones.npy"), "--dim", "N=2"]),
                (BAD_FILE, ["no input_0"], ["--data", c.folder])):
            fails(code, *words, command=[OPT, f, "--run", *arguments])


def test_results_are_held_to_what_the_model_states():
    """Beside what info.json says, else what the API has for the dtype; a text knows the model that it came from."""
    with Case() as c:
        write_set(c.path("data"), c.x, c.y * np.float32(1.0005))
        text = c.path("text.txt")
        expect(run(OPT, c.model, "--after", "fusion", "-o", text).returncode == RAN, "a text")
        for command in ([c.model], [text]):
            done = run(OPT, *command, "--run", "--data", c.path("data"))
            expect(done.returncode == RAN and "default of the dtype" in done.out, f"by dtype: {command}", done)
        c.write("info.json", '{"tolerance": {"rtol": 1e-5, "atol": 0}}')
        for command in ([c.model], [text, "--constants", c.model]):
            done = run(OPT, *command, "--run", "--data", c.path("data"))
            expect(done.returncode == 1 and "info.json" in done.out, f"as stated: {command}", done)
        # What is JSON is read, whatever else stands there; what is not states nothing.
        for text in ('{"rtol":1e-5}', ' {"a" : [1, -2.5E+3, {"b": null}, true, "\\ud83d\\ude00\\n\u00e9"], "rtol": 0.00001}\n',
                     '{"tolerance":{"atol":0,"rtol":1E-5,"x":[]}}'):
            c.write("info.json", text)
            done = run(OPT, c.model, "--run", "--data", c.path("data"))
            expect(done.returncode == 1 and "info.json" in done.out, f"as stated: {text}", done)
        for text in ("", "{", '{"rtol":1e-5', '{"rtol":1e-5,}', "{'rtol':1e-5}", '{"rtol":"1e-5"}', '{"rtol":-1}',
                     '{"x":"\\q","rtol":1e-5}', '{"x":"', '[1,2', '{"rtol" 1e-5}', "nul"):
            c.write("info.json", text)
            done = run(OPT, c.model, "--run", "--data", c.path("data"))
            expect(done.returncode == RAN and "default of the dtype" in done.out, f"nothing stated: {text!r}", done)


def test_the_onnx_stage_reads_back():
    """Bodies, lists, strings, quantised tensors: a text of ONNX ops is itself again, and runs as the model does."""
    suite = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
    with Case() as c:
        for name in ("loop11", "loop13_seq", "if_opt", "scan9_sum", "sequence_map_add_2_sequences", "cast_FLOAT_to_STRING",
                     "optional_has_element_optional_input", "constantofshape_float_ones", "qlinearmatmul_2D_int8_float32",
                     "layer_normalization_2d_axis0_expanded", "strnormalizer_export_monday_casesensintive_lower"):
            model = os.path.join(suite, "test_" + name, "model.onnx")
            if not os.path.exists(model):
                continue
            text = run(OPT, model, "--after", "onnx")
            expect(text.returncode == RAN, f"{name}'s text", text)
            file = c.write("text.txt", text.stdout)
            expect(run(OPT, file, "--after", "onnx").stdout == text.stdout, f"{name} is not itself again")
            expect(run(OPT, file, "--after", "primitives").stdout == run(OPT, model, "--after", "primitives").stdout,
                   f"{name}: primitives of the text")
            done = run(OPT, file, "--run", "--data", os.path.join(suite, "test_" + name, "test_data_set_0"))
            expect(done.returncode == RAN, f"{name} runs from its text", done)


def test_kernels_that_do_not_fit_their_group_are_refused():
    """Arguments that the group has not, of other types or extents, other dims: a message with the place, no crash."""
    edits = {"igraph": ((rb"( in) 0\n", rb"\1 7\n"), (rb"( out) 0\n", rb"\1 9\n"), (rb"dram f32 \[", b"dram f32 [3, "),
                        (rb"dram f32", b"dram f64"), (rb"  dim ", b"  dim more\n  dim ")),
             "loop": ((rb"(tensor.* in) 0\n", rb"\1 7\n"), (rb"(tensor.* out) 0\n", rb"\1 9\n"),
                      (rb"(tensor \w+ : f32 \[)", rb"\g<1>3, "), (rb"(tensor \w+ :) f32", rb"\1 f64"),
                      (rb"  dim ", b"  dim more\n  dim "))}
    with Case() as c:
        data = write_set(c.path("data"), c.x, c.y)
        for stage, rows in edits.items():
            whole = run(OPT, c.model, "--after", stage).stdout
            for old, new in rows:
                edited, count = re.subn(old, new, whole, count=1)
                expect(count, f"nothing to edit of {stage}: {old}")
                for device in ("interpreter", "vm"):
                    done = run(OPT, c.write("edited.txt", edited), "--run", "--data", data, "--device", device)
                    expect(done.returncode in (USAGE, BAD_FILE) and done.err.startswith("uir-opt: ") and not done.stdout,
                           f"{stage}: {old} to {new} on {device}", done)


def schedule_models(c):
    """By name: a product with parts of its sums, products side by side, attention, a convolution."""
    def model(name, nodes, inputs, outputs, weights=()):
        value = helper.make_tensor_value_info
        graph = helper.make_graph([helper.make_node(*n[:3], **(n[3] if len(n) > 3 else {})) for n in nodes], name,
                                  [value(n, onnx.TensorProto.FLOAT, s) for n, s in inputs],
                                  [value(n, onnx.TensorProto.FLOAT, s) for n, s in outputs],
                                  [numpy_helper.from_array(np.ones(s, np.float32), n) for n, s in weights])
        return save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
                    c.path(name + ".onnx"))
    return {"product": model("product", [("MatMul", ["a", "b"], ["y"])], [("a", "BMK"), ("b", "BKN")], [("y", "BMN")]),
            "siblings": model("siblings", [("MatMul", ["x", "a"], ["p"]), ("MatMul", ["x", "b"], ["q"]),
                                           ("Relu", ["p"], ["y"]), ("Sigmoid", ["q"], ["z"])], [("x", ["M", 70])],
                              [("y", ["M", 400]), ("z", ["M", 96])], [("a", (70, 400)), ("b", (70, 96))]),
            "attention": model("attention", [("MatMul", ["q", "k"], ["s"]), ("Softmax", ["s"], ["p"]),
                                             ("MatMul", ["p", "v"], ["y"])],
                               [("q", ["B", "M", 32]), ("k", ["B", 32, "N"]), ("v", ["B", "N", 32])],
                               [("y", ["B", "M", 32])]),
            "convolution": model("convolution", [("Conv", ["x", "w"], ["y"], {"pads": [1] * 4})],
                                 [("x", ["B", 4, 16, 16])], [("y", ["B", 4, 16, 16])], [("w", (4, 4, 3, 3))])}


# Schedules are those that UIR_CPU asks for: what this machine does not run, the VM and the interpreter do.
MADE = {"UIR_CPU": MADE_FOR}


def made(*command):
    return run(*command, env=MADE)


def steps_of(model):
    """The kernel's name, its text after the schedule, and the comments above that."""
    kernel, = re.findall(r"^func @(\w+)", made(OPT, model, "--after", "loop").out, re.M)
    done = made(OPT, model, "--after", "schedule", "--kernel", kernel)
    expect(done.returncode == RAN, "a kernel's schedule", done)
    return kernel, done.out, "".join(re.findall(r"^#.*\n", done.out, re.M))


def edit(text, *edits):
    for old, new in edits:
        text, count = re.subn(old, new, text)
        expect(count, f"there is no {old} in\n{text}")
    return text


def few_rows(steps, size):
    """How many rows the variant for few of them takes."""
    return int(re.search(rf"require {size} <= (\d+)$", steps, re.M).group(1))


def test_schedules_are_edited():
    """The steps that are printed make the kernel again, from the model and from texts of it; other steps another kernel,
    which computes the same."""
    def halved(steps):
        """The depth of the product's parts, and what lies side by side by it, halved; rows are padded by what they were."""
        depth = int(re.search(r"split b0_r2 of b0 by (\d+)", steps).group(1))
        row = int(re.search(r"set layout of rows to :\((\d+), 1\)", steps).group(1))
        lines = int(re.search(rf":\({depth}, .*, (\d+)\)\)", steps).group(1))
        return [(f"split b0_r2 of b0 by {depth}", f"split b0_r2 of b0 by {depth // 2}"),
                (rf"\({row}, 1\)", f"({row - depth // 2}, 1)"),
                (rf":\({depth}, (.*), {lines}\)\)", rf":({depth // 2}, \1, {lines // 2}))")]

    def more_rows(steps):
        """The variant for few rows, for six more."""
        rows = few_rows(steps, "n0")
        return [(rf"to {rows}\b", f"to {rows + 6}"), (rf"n0 <= {rows}\b", f"n0 <= {rows + 6}")]

    edits = {"product": (halved,
                         [("(reorder b0_result_v0 of b0_result), (b0_result_v3_o of b0_result), (b0_result_v1_o of b0_result),",
                           r"\1, \3, \2,"), ("compute b0 at b0_result_v1_o of b0_result", "compute b0 at b0_result_v3_o of b0_result")]),
             "siblings": (more_rows,),
             "attention": ([("by 256:", "by 128:"), (r"\(32, 8\)\):", "(32, 4)):")],)}
    sizes = {"product": ["n0=2", "n1=17", "n2=530", "n3=70"], "siblings": ["n0=17"], "attention": ["n0=2", "n1=7", "n2=300"]}
    with Case() as c:
        models = schedule_models(c)
        for name, rows in edits.items():
            kernel, printed, steps = steps_of(models[name])
            files = [models[name]]
            for stage in ("fusion", "loop"):
                files.append(c.write(f"{stage}.txt", made(OPT, models[name], "--after", stage).stdout))
            for text in (steps, steps.replace("# ", ""), "#not a step\n" + steps + "\n## split nothing\n"):
                for file in files:
                    done = made(OPT, file, "--after", "schedule", "--kernel", kernel, "--schedule", c.write("steps.txt", text))
                    expect(done.returncode == RAN and done.out == printed, f"{name}: the steps as they are printed", done)
            for row in rows:
                row = row(steps) if callable(row) else row
                text = c.write("steps.txt", edit(steps, *row))
                done = made(OPT, models[name], "--after", "schedule", "--kernel", kernel, "--schedule", text)
                expect(done.returncode == RAN and done.out != printed, f"{name}: another kernel by {row}", done)
                for file, device in zip(files, ("vm" if IS_FOREIGN else "cpu", "vm", "interpreter")):
                    dims = [word for size in sizes[name] for word in ("--dim", size)]
                    done = made(OPT, file, "--kernel", kernel, "--schedule", text, "--run", "--check", "--device", device, *dims)
                    expect(done.returncode == RAN and "in every bit" in done.out and "agrees with the loops" in done.out,
                           f"{name} on {device} by {row}", done)
        done = made(OPT, models["product"], "--kernel", "k0_matmul", "--run", "--check", "--device", "vm")
        expect(done.returncode == RAN and "agrees with the loops" not in done.out, "without a schedule", done)


def test_schedules_are_refused():
    with Case() as c:
        models = schedule_models(c)
        kernel, _, steps = steps_of(models["product"])
        rows, block = few_rows(steps, "n1"), re.search(r"tm = (\d+) cost", steps).group(1)
        line = steps[:steps.index("# split b0_result_v3 of b0_result")].count("\n") + 1
        for words, edits in (
                ([f"steps.txt:{line}:3: error: ", "expected a step", "spilt b0"], [(r"# split b0_result_v3 of b0_result by (\d+)", r"# spilt b0 by \1")]),
                ([": error: ", "unknown block 'b9'"], [("use b0 as mma", "use b9 as mma")]),
                (["steps.txt:", "share elements of s1"], [("mark b0_r2 of b0 as vectorised", "mark b0_r2 of b0 as parallel")]),
                (["expected variant 2"], [("variant 2:", "variant 4:")]),
                (["steps.txt:", "expected ':'"], [("variant 2:", "variant 2")]),
                (["the first must also begin with `variant 1:`"], [("# variant 1:\n", "")]),
                (["steps.txt: error: ", "igraph", f"tm = {block}00000"], [(f"tm = {block} cost", f"tm = {block}00000 cost")])):  # for no cache
            text = c.write("steps.txt", edit(steps, *edits))
            for arguments in (["--after", "igraph"], ["--run"]):
                fails(BAD_FILE, kernel if "variant" not in words[0] else "variant", *words,
                      env=MADE, command=[OPT, models["product"], "--kernel", kernel, "--schedule", text, *arguments])
        one = c.write("steps.txt", edit(steps, (r"# variant 2:\n(.*\n)*", "")))
        done = made(OPT, models["product"], "--kernel", kernel, "--schedule", one, "--run", "--check", "--dim", f"n1={rows}")
        expect(done.returncode == RAN, "a variant for few rows alone", done)
        done = made(OPT, models["product"], "--kernel", kernel, "--schedule", one, "--run", "--dim", f"n1={rows + 1}")
        expect(done.returncode == USAGE and f"require n1 <= {rows} does not hold" in done.err, "for more rows there is none", done)
        other, _, windows = steps_of(models["convolution"])
        done = made(OPT, models["convolution"], "--kernel", other, "--after", "schedule", "--schedule",
                   c.write("other.txt", windows))
        expect(done.returncode == RAN and windows in done.out, "a convolution's steps, taken again", done)
        text = c.write("text.txt", made(OPT, models["product"], "--after", "schedule").stdout)
        for words, arguments in ((["no kernel 'nosuch'", "its kernels are: " + kernel], ["--kernel", "nosuch", "--run"]),
                                 (["--kernel NAME"], ["--run"]), (["--kernel NAME"], ["--after", "schedule"]),
                                 (["no schedule yet", "loop"], ["--kernel", kernel, "--after", "loop"])):
            fails(USAGE, *words, env=MADE, command=[OPT, models["product"], "--schedule", one, *arguments])
        fails(USAGE, "before the schedule", env=MADE, command=[OPT, text, "--kernel", kernel, "--schedule", one, "--run"])
        fails(BAD_FILE, "absent", env=MADE, command=[OPT, models["product"], "--kernel", kernel, "--schedule", c.path("absent"), "--run"])


def test_weights_are_elided():
    with Case() as c:
        rows = 40
        model = save(product_model(rows), c.path("large.onnx"))
        for stage in ("onnx", "primitives", "igraph"):
            text = run(OPT, model, "--after", stage)
            expect(text.returncode == RAN and len(text.stdout) < 6000 and b'hash "' in text.stdout, stage, text)
            expect(text.out.startswith(f"# stage: {stage}\n# constants: "), "the first lines", text)
            file = c.write("text.txt", text.stdout)
            again = run(OPT, file, "--after", stage)
            expect(again.stdout == text.stdout, f"{stage} is itself again", again)
            whole = run(OPT, file, "--after", stage, "--constants", "inline")
            expect(whole.returncode == RAN and b"hash" not in whole.stdout, "every number", whole)
            expect(whole.stdout == run(OPT, model, "--after", stage, "--constants", "inline").stdout, "the same", whole)
            own = c.write("own.txt", whole.stdout)
            expect(run(OPT, own, "--run").stdout == run(OPT, file, "--run").stdout, "both run", None)
            expect(run(OPT, own, "--after", stage).stdout == whole.stdout, "what no model at hand has stays", None)
            lost = c.write("lost.txt", text.out.replace(model, c.path("away.onnx")))
            for arguments in (["--run"], []):
                done = fails(BAD_FILE, "elided", "--constants", command=[OPT, lost, *arguments])
                expect(re.search(r"lost\.txt:\d+:\d+: error", done.err), "its line", done)
            done = run(OPT, lost, "--constants", model, "--run")
            expect(done.returncode == RAN, "the model named", done)
        # What an edit makes of constants no model has: it is written out.
        text = run(OPT, model, "--after", "primitives").out
        edited = re.sub(r"(constant %\w+(?: \"[^\"]*\")?: f32\[)\d+, 4\] = hash \"\w+\"", rf"\g<1>{rows}, 4] = splat 0.5", text)
        expect(edited != text, "an edit")
        done = run(OPT, c.write("edited.txt", edited), "--after", "drop-dead")
        expect(done.returncode == RAN and "splat 0.5" in done.out, "a constant of one's own", done)


# What is easily taken for something else: names that printers make, words and signs of the texts, expressions, numbers.
NAMES = ["v0", "v1", "v2", "v3", "p0", "l1", "x0", "k0", "y0", "n0", "u9", "size", "none", "graph", "return", "module", "constant",
         "min", "max", "mod", "hash", "splat", "04079647/335", "a+b", "floor(x)", "min(a,b)", "12", "0", "caf\u00e9", "\u65e5\u672c", 'a"b',
         "\\\\", "a b", "%a", "@b", "#c", "a\nb", "_", "v0_2", "-", "?", "x_0", "f32", "seq", "igraph", "func", "x:0", "1e5", "0x10", "nan",
         "carried", "z" * 70, "z" * 69 + "y", "\x01"]


def named_model(shift):
    """Each name is a value's or an initializer's, a dim's and a node's; some of the initializers come to nothing."""
    names = NAMES[shift:] + NAMES[:shift]
    take = iter(names).__next__
    x, y, z, w, b, low, two, result = (take() for _ in range(8))
    middle = [take() for _ in range(7)]
    dims = [names[k] for k in (-1, -2, -3)]
    initializers = [numpy_helper.from_array(np.arange(16, dtype=np.float32).reshape(4, 4), w),
                    numpy_helper.from_array(np.arange(4, dtype=np.float32), b), numpy_helper.from_array(np.float32(0.5), low),
                    numpy_helper.from_array(np.array([0, -1], np.int64), two)]
    branch = [helper.make_graph([helper.make_node(op, [middle[3]], [names[k] + "_"])], names[k], [],
                                [helper.make_tensor_value_info(names[k] + "_", 1, None)]) for op, k in (("Neg", 20), ("Abs", 21))]
    nodes = [helper.make_node("MatMul", [x, w], [middle[0]], name=names[9]),
             helper.make_node("Add", [middle[0], b], [middle[1]], name=names[10]),
             helper.make_node("Softmax", [middle[1]], [middle[2]], name=names[11]),
             helper.make_node("Concat", [middle[2], y], [middle[3]], axis=0), helper.make_node("NonZero", [middle[3]], [z]),
             helper.make_node("ReduceMax", [middle[3]], [middle[4]], keepdims=0),
             helper.make_node("Greater", [middle[4], low], [middle[5]]),
             helper.make_node("If", [middle[5]], [middle[6]], then_branch=branch[0], else_branch=branch[1]),
             helper.make_node("Reshape", [middle[6], two], [result])]
    inputs = [helper.make_tensor_value_info(x, 1, [dims[0], 4]), helper.make_tensor_value_info(y, 1, [dims[1], 4])]
    outputs = [helper.make_tensor_value_info(result, 1, [dims[2], 4]), helper.make_tensor_value_info(z, 7, None)]
    graph = helper.make_graph(nodes, names[12], inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_names_of_the_file_are_no_names_of_the_text():
    """Every text reads back, whatever a file calls its values, dims, nodes and graphs, and leads to the same kernels."""
    with Case() as c:
        for shift in range(0, len(NAMES), 17):
            model = c.path("m.onnx")
            onnx.save(named_model(shift), model)
            straight = run(OPT, model, "--after", "igraph")
            expect(straight.returncode == RAN, f"names from {shift} on", straight)
            for stage in ("onnx", "primitives", "drop-dead", "fusion", "schedule"):
                text = c.path("m.txt")
                expect(run(OPT, model, "--after", stage, "-o", text).returncode == RAN, f"{stage}, names from {shift} on")
                again = run(OPT, text, "--from", stage, "--after", "igraph")
                expect(again.returncode == RAN and again.out == straight.out, f"{stage} read back, names from {shift} on", again)


def test_emitted_source_holds_plain_names():
    with Case() as c:
        files = glob.glob(os.path.join(ROOT, "tests", "ir", "kernel", "**", "*.igraph"), recursive=True)
        emitted = 0
        for file in files + [c.write("k.igraph", KERNEL)]:
            if " on cpu" not in open(file).read():  # this build has no emitter for other devices
                continue
            if os.path.basename(os.path.dirname(file)).startswith("broken"):  # what the verifier refuses has no source
                done = fails(BAD_FILE, os.path.basename(file), command=[OPT, file, "--after", "emit"])
                expect(not done.stdout, "a source of a refused kernel", done)
                continue
            done = run(OPT, file, "--after", "emit")
            expect(done.returncode == RAN, "an emitted source", done)
            emitted += 1
            source = done.stdout
            expect(all(b in (9, 10) or 32 <= b < 127 for b in source), f"{file}: bytes that are not plain text")
            expect(b"??" not in source, f"{file}: a trigraph")
            names = re.findall(rb"[@%]([^\s,()\[\]{}:;*/+\-]*)", open(file, "rb").read().split(b"#")[0])
            expect(all(re.fullmatch(rb"[A-Za-z0-9_]*", name) for name in names), f"{file}: a name is not plain")
            expect(c.folder.encode() not in source and b".igraph" not in source, f"{file}: a path in the source")
        expect(emitted > 0, "nothing was emitted")


def test_compilers_start_without_a_shell():
    with Case() as c:
        k = c.write("k.igraph", KERNEL)
        command = [OPT, k, "--run", "--check", "--device", "cpu", "--dim", "M=2"]
        for compiler in (c.path("$(touch pwned)", "cc"), "$(touch pwned)", "`touch pwned`", "cc;touch pwned", "cc|touch pwned",
                         "/absent/cc", "touch\tpwned;"):
            done = run(*command, env={"CC": compiler}, cwd=c.folder)
            expect(done.returncode == FAILED and "compiler" in done.err, f"CC={compiler!r}", done)
            expect(not done.stdout, "results without a compiler", done)
            expect(not os.path.exists(c.path("pwned")), f"CC={compiler!r} was run by a shell", done)
        fails(FAILED, "/bin/false", "failed", command=command, env={"CC": "/bin/false"})
        done = run(*command, env={"CC": ""})
        expect(done.returncode == RAN, "an empty CC is none", done)
        for folder in ("with spaces $(touch pwned)", "quote\"'", "semi;colon", "new\nline"):
            os.mkdir(c.path(folder))
            done = run(*command, env={"TMPDIR": c.path(folder)}, cwd=c.folder)
            expect(done.returncode == RAN and "agrees" in done.out, f"TMPDIR={folder!r}", done)
            expect(os.listdir(c.path(folder)) == [], "files are left behind", done)
        expect(not os.path.exists(c.path("pwned")), "TMPDIR was run by a shell")
        fails(FAILED, "temporary folder", "TMPDIR", command=command, env={"TMPDIR": k})


def test_a_cross_compiler_that_is_missing_is_named():
    """The machine's own compilers are no help for another machine's kernels."""
    if os.uname().machine == "aarch64":
        return
    with Case() as c:
        fails(FAILED, "gcc-aarch64-linux-gnu",
              command=[PACK, c.model, "-o", c.path("m.uir"), "--device", "cpu:aarch64"], env={"PATH": c.folder})


def test_signals_end_the_compiler():
    """A compiler that sleeps, with a child of its own and one that will not be asked politely: nothing of it stays."""
    with Case() as c:
        k = c.write("k.igraph", KERNEL)
        os.mkdir(c.path("temporary"))
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            for stubborn in ("", "trap '' TERM INT\n"):
                pids = c.path("pids")
                compiler = c.write("cc.sh", f"#!/bin/sh\n{stubborn}sleep 300 &\necho $$ $! > '{pids}.new'\n"
                                            f"mv '{pids}.new' '{pids}'\nwait\nsleep 300\n")
                os.chmod(compiler, 0o700)
                p = subprocess.Popen([OPT, k, "--run", "--device", "cpu", "--dim", "M=2"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, cwd=c.folder,
                                     env=dict(os.environ, CC="./cc.sh", TMPDIR=c.path("temporary")))
                start = time.monotonic()
                while not os.path.exists(pids) and time.monotonic() - start < 30:
                    time.sleep(0.01)
                expect(os.path.exists(pids) and os.listdir(c.path("temporary")), "the compiler began")
                p.send_signal(number)
                out, err = p.communicate(timeout=60)
                expect(p.returncode == code, f"exit {p.returncode} instead of {code} after {number!r}\n{err}")
                expect(not out and not err, f"an interrupted run says {out!r} {err!r}")
                expect(os.listdir(c.path("temporary")) == [], "files are left behind")
                for pid in open(pids).read().split():
                    while alive(int(pid)) and time.monotonic() - start < 30:  # killed, it may still be ending
                        time.sleep(0.01)
                    expect(not alive(int(pid)), f"process {pid} of the compiler is left behind")
                os.unlink(pids)


def alive(pid):
    """Whether the process runs; what has ended and was not waited for does not."""
    need_processes()
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


# ---- compiles in proportion ----
def test_compiles_in_proportion():
    """Work without a clock: lines of all kernels for each layer (of "newest", in which no layers share a sum, for each piece),
    operands of the widest kernel, instructions of the longest."""
    with Case() as c:
        for form in layers.FORMS:
            lines = {}
            for count in (20, 60):
                pieces = layers.write(form, count, c.path("block.onnx"))
                done = run(OPT, c.path("block.onnx"), "--after", "igraph", timeout=600)
                expect(done.returncode == RAN, f"{form}, {count} layers", done)
                kernels = done.out.split("\nigraph @")[1:]
                widest = max(len(re.findall(r"^ *ptr .* in \d+$", k, re.M)) for k in kernels)
                expect(widest <= 64, f"{form}, {count} layers: a kernel has {widest} operands")
                longest = max(k.count("\n") for k in kernels)
                expect(longest <= 600, f"{form}, {count} layers: a kernel has {longest} lines")
                lines[count] = sum(k.count("\n") for k in kernels) / (pieces if form == "newest" else count)
            expect(lines[60] <= 2 * lines[20], f"{form}: lines of kernels a layer: {lines}")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
