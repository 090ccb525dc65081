#!/usr/bin/env python3
"""uir-run as its users meet it: every kind of bad input has its exit code and a message that names the place, names
from files reach neither a shell nor a terminal, and what the options promise holds.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from cli import (BAD_FILE, BIN, DIFFERS, FAILED, HOSTILE, INTERPRET, KERNEL, OPT, PACK, RAN, ROOT, RUN, RUN_PACKAGE,
                 UNSUPPORTED, USAGE, Case, Lacking, expect, external_model, fails, hostile_model, is_clean, make_model,
                 product_model, run, run_tests, save, slow, value, write_set)


# ---- files ----
def test_missing_and_odd_model_files():
    with Case() as c:
        fails(BAD_FILE, "absent.onnx", "no such file", command=[INTERPRET, c.path("absent.onnx")])
        fails(BAD_FILE, "not a regular file", command=[INTERPRET, c.folder])
        fails(BAD_FILE, "empty", command=[INTERPRET, c.write("empty.onnx", b"")])
        fails(BAD_FILE, "text.onnx", "at byte", command=[INTERPRET, c.write("text.onnx", "hello, world")])
        os.mkfifo(c.path("pipe.onnx"))
        fails(BAD_FILE, "pipe.onnx", command=[INTERPRET, c.path("pipe.onnx")])


def test_truncated_models():
    with Case() as c:
        whole = product_model().SerializeToString()
        for length in range(1, len(whole), 7):
            done = run(INTERPRET, c.write("m.onnx", whole[:length]), "--can-run")
            expect(done.returncode in (BAD_FILE, UNSUPPORTED), f"the first {length} bytes", done)
            expect("m.onnx" in done.err and is_clean(done.stderr), f"the first {length} bytes: no place", done)


def test_bit_flipped_models():
    with Case() as c:
        whole = product_model().SerializeToString()
        for at in range(0, len(whole) * 8, 31):
            damaged = bytearray(whole)
            damaged[at // 8] ^= 1 << at % 8
            done = run(INTERPRET, c.write("m.onnx", bytes(damaged)), "--quiet")
            expect(done.returncode in (RAN, BAD_FILE, UNSUPPORTED), f"bit {at} flipped", done)
            expect(done.returncode == RAN or done.stderr, f"bit {at} flipped: no message", done)
            expect(is_clean(done.stderr), f"bit {at} flipped: raw bytes", done)


def test_wrong_types_in_models():
    with Case() as c:
        m = product_model()
        m.graph.initializer[0].data_type = 99
        fails(UNSUPPORTED, "m.onnx", "'w'", "99", command=[INTERPRET, save(m, c.path("m.onnx"))])
        m = product_model()
        m.graph.initializer[0].dims[0] = 7
        fails(BAD_FILE, "'w'", "bytes", command=[INTERPRET, save(m, c.path("m.onnx"))])
        m = product_model()
        m.graph.initializer[0].data_type = TensorProto.INT64
        fails(BAD_FILE, "'w'", command=[INTERPRET, save(m, c.path("m.onnx"))])
        m = product_model()
        m.graph.input[0].type.tensor_type.elem_type = TensorProto.INT32
        fails(BAD_FILE, "product", "MatMul", command=[INTERPRET, save(m, c.path("m.onnx"))])
        m = product_model()
        m.graph.node[0].input[0] = "nowhere"
        fails(BAD_FILE, "product", "'nowhere'", command=[INTERPRET, save(m, c.path("m.onnx"))])


def test_damaged_data_files():
    with Case() as c:
        data = write_set(c.path("d"), c.x, c.y)
        whole = open(os.path.join(data, "input_0.pb"), "rb").read()
        for damaged in (b"", whole[:1], whole[: len(whole) // 2], whole[:-1], b"\xff" * 40, b"text"):
            with open(os.path.join(data, "input_0.pb"), "wb") as f:
                f.write(damaged)
            fails(BAD_FILE, "input_0.pb", command=[INTERPRET, c.model, "--data", data])
        npy = c.path("x.npy")
        np.save(npy, c.x)
        whole = open(npy, "rb").read()
        for damaged in (b"", whole[:8], whole[:40], whole[:-1], whole + b"x", b"text"):
            c.write("x.npy", damaged)
            fails(BAD_FILE, "x.npy", command=[INTERPRET, c.model, "--input", f"x={npy}"])
        for at in range(0, 128 * 8, 13):
            damaged = bytearray(whole)
            damaged[at // 8] ^= 1 << at % 8
            c.write("x.npy", bytes(damaged))
            done = run(INTERPRET, c.model, "--input", f"x={npy}", "--quiet")
            expect(done.returncode in (RAN, BAD_FILE, UNSUPPORTED), f"bit {at} of an .npy flipped", done)
        np.savez(c.path("x.npz"), x=c.x, other=c.x)
        whole = open(c.path("x.npz"), "rb").read()
        for length in range(0, len(whole), 97):
            c.write("x.npz", whole[:length])
            fails(BAD_FILE, "x.npz", command=[INTERPRET, c.model, "--input", "x=" + c.path("x.npz") + ":x"])
        fails(USAGE, "ending", command=[INTERPRET, c.model, "--input", "x=" + c.model])
        fails(BAD_FILE, "absent.npy", command=[INTERPRET, c.model, "--input", "x=" + c.path("absent.npy")])


def test_wrong_shapes_and_types_of_inputs():
    with Case() as c:
        for wrong, words in ((c.x.astype(np.float64), "f64[2,3]"), (c.x.astype(np.int32), "i32[2,3]"),
                             (c.x[:, :2], "f32[2,2]"), (c.x[0], "f32[3]"), (c.x[None], "f32[1,2,3]")):
            wrong = np.ascontiguousarray(wrong)
            data = write_set(c.path("d"), wrong)
            fails(BAD_FILE, "'x'", words, "f32[batch, 3]", data, command=[INTERPRET, c.model, "--data", data])
            np.save(c.path("x.npy"), wrong)
            fails(BAD_FILE, "'x'", words, command=[INTERPRET, c.model, "--input", "x=" + c.path("x.npy")])
        fails(BAD_FILE, "'x'", command=[INTERPRET, c.model, "--shape", "x=2x9"])
        raw = c.write("x.raw", b"\0" * 23)
        fails(BAD_FILE, "x.raw", "23 bytes", "24", command=[INTERPRET, c.model, "--input", "x=" + raw, "--dim", "batch=2"])
        sequence = onnx.SequenceProto(elem_type=onnx.SequenceProto.TENSOR)
        sequence.tensor_values.append(numpy_helper.from_array(c.x))
        save(sequence, os.path.join(write_set(c.path("d"), c.x), "input_0.pb"))
        done = run(INTERPRET, c.model, "--data", c.path("d"))  # such a file reads as a tensor in segments
        expect(done.returncode in (BAD_FILE, UNSUPPORTED) and "input_0.pb" in done.err, "a sequence for a tensor", done)


def test_external_data():
    with Case() as c:
        m = c.path("m.onnx")
        outside = c.write("w.bin", np.arange(12, dtype=np.float32).tobytes())
        os.mkdir(c.path("in"))
        inside = os.path.join(c.folder, "in", "m.onnx")
        save(external_model("w.bin"), m)
        expect(run(INTERPRET, m).returncode == RAN, "external data beside the model")
        save(external_model("absent.bin"), m)
        fails(BAD_FILE, "'absent.bin'", "'w'", "no such file", command=[INTERPRET, m])
        for location, words in ((outside, "absolute"), ("../w.bin", "out of the model's folder"),
                                ("a/../../w.bin", "out of the model's folder"), ("/etc/passwd", "absolute")):
            save(external_model(location), inside)
            fails(BAD_FILE, words, "'w'", "hint:", command=[INTERPRET, inside])
        os.symlink(outside, c.path("in", "link.bin"))
        os.symlink(c.folder, c.path("in", "up"))
        for location in ("link.bin", "up/w.bin"):
            save(external_model(location), inside)
            fails(BAD_FILE, location, "symbolic link that leads out", command=[INTERPRET, inside])
            expect(run(INTERPRET, inside, "--external-data", c.folder).returncode == RAN, "a link into the folder given")
        for location in (".", "in", "", "w.bin\0", "absent/w.bin", *HOSTILE):
            save(external_model(location), m)
            fails(BAD_FILE, "'w'", command=[INTERPRET, m])
        for offset, length in (("9", None), ("-1", None), ("x", None), ("99999999999999999999", None), (None, "4"),
                               ("18446744073709551615", "48"), ("48", "48")):
            save(external_model("w.bin", offset, length), m)
            fails(BAD_FILE, "'w'", command=[INTERPRET, m])


def test_external_data_of_a_cache_of_links():
    """Files under their hashes, links by name from a folder for each version; each tool, and what may look elsewhere."""
    with Case() as c:
        for folder in ("blobs", "snapshots", "snapshots/1", "data"):
            os.mkdir(c.path(folder))
        model, blob = c.path("snapshots", "1", "model.onnx"), c.path("blobs", "0b")
        save(external_model("model.onnx_data"), c.path("blobs", "0a"))
        c.write("blobs/0b", np.arange(12, dtype=np.float32).tobytes())
        os.symlink("../../blobs/0a", model)
        os.symlink("../../blobs/0b", model + "_data")
        package, text = c.path("m.uir"), c.path("m.txt")
        ways = ([INTERPRET, model], [RUN, "--device", "vm", "--cache", c.path("cache"), model], [RUN, "--check", "--no-cache", model],
                [PACK, "--no-native", model, "-o", package], [OPT, model, "--after", "primitives", "-o", text])
        for way in ways:
            expect(run(*way).returncode == RAN, f"links into blobs: {way}")
        expect(run(OPT, text, "--from", "primitives", "--after", "igraph").returncode == RAN, "the text finds its constants")
        os.rename(blob, c.path("data", "model.onnx_data"))
        for way in ways:
            fails(BAD_FILE, "'model.onnx_data'", "'w'", "to a missing file", command=way)
            expect(run(*way, "--external-data", c.path("data")).returncode == RAN, f"the folder given: {way}")
            fails(BAD_FILE, "no such file", "absent", command=[*way, "--external-data", c.path("absent")])
        expect(run(RUN, package, "--external-data", c.path("data")).returncode == USAGE, "a package needs no data")
        os.symlink("../data/model.onnx_data", blob)
        for way in ways:
            fails(BAD_FILE, "leads out", command=way)


def test_unsupported_things_are_one_report():
    with Case() as c:
        nodes = [helper.make_node("Foo", ["x"], ["a"], name="first"), helper.make_node("Foo", ["a"], ["b"], name="second"),
                 helper.make_node("Bar", ["b"], ["d"], name="third", domain="com.example"),
                 helper.make_node("Relu", ["d"], ["e"], name="fourth", unknown=1),
                 helper.make_node("Baz", ["e"], ["y"], name="fifth")]
        m = save(make_model(nodes, [value("x", [2])], [value("y", None)]), c.path("m.onnx"))
        for more in ([], ["--can-run"], ["--quiet"]):
            fails(UNSUPPORTED, "'Foo'", "2 nodes", "'first'", "'Bar'", "com.example", "'third'", "'unknown'", "'fourth'",
                  "'Baz'", "'fifth'", "hint:", command=[INTERPRET, m, *more])
        done = run(INTERPRET, m, "--can-run", "--json")
        report = json.loads(done.stdout)
        expect(done.returncode == UNSUPPORTED and report["supported"] is False, "--can-run --json", done)
        expect({p["node"] for p in report["problems"]} == {"first", "third", "fourth", "fifth"}, "its problems", done)
        m = save(make_model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [2])], [value("y", None)], opset=28),
                 c.path("m.onnx"))
        fails(UNSUPPORTED, "opset", command=[INTERPRET, m])
        done = run(INTERPRET, c.model, "--can-run")
        expect(done.returncode == RAN and done.out.startswith("supported"), "--can-run", done)


def test_unwritable_folders():
    with Case() as c:
        fails(FAILED, "--save", "model.onnx/x", command=[INTERPRET, c.model, "--save", c.model + "/x"])
        fails(FAILED, "--save", command=[INTERPRET, c.model, "--save", c.model])
        fails(FAILED, "--save", command=[INTERPRET, c.model, "--save", c.path("absent", "deeper")])
        os.makedirs(c.path("s", "output_0.pb"))
        fails(FAILED, "output_0.pb", command=[INTERPRET, c.model, "--quiet", "--save", c.path("s")])
        fails(FAILED, "uir-opt", command=[OPT, c.model, "-o", c.model + "/x"])
        if os.path.exists("/dev/full"):
            for command in ([*INTERPRET, c.model], [RUN, "--help"], [PACK, "--help"], [PACK, c.model, "--no-native"],
                            [RUN, c.model, "--device", "vm", "--plan"], [RUN, c.model, "--device", "vm", "--reduce", c.path("o.onnx")]):
                with open("/dev/full", "wb") as full:
                    done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE)
                expect(done.returncode == FAILED and b"the output cannot be written" in done.stderr, f"a full disk: {done}")


def test_limits():
    with Case() as c:
        for command in ([*INTERPRET, c.model], [PACK, c.model, "--no-native", "-o", c.path("p.uir")], [OPT, c.model]):
            for option, words in (("elements=2", ["more than 2 elements of a value"]), ("file-bytes=10", ["more than 10 bytes of files"]),
                                  ("memory=1K", ["more than 1024 bytes of memory"]), ("work=10", ["more than 10 steps"])):
                fails(BAD_FILE, *words, "hint:", "--limit-" + option.split("=")[0], "uir_limits.",
                      command=[*command, "--limit-" + option])
            done = run(command, "--limit-nodes", "none", "--limit-seconds", "1e3", "--limit-memory", "8G")
            expect(done.returncode == RAN, "limits that hold", done)
            for option in ("seconds=-1", "seconds=x", "nodes=0", "memory=1Q", "memory="):
                fails(USAGE, "--limit-", command=[*command, "--limit-" + option])
        large = os.path.getsize(c.model) + 4096
        np.save(c.path("x.npy"), np.zeros(large, np.float32))
        for command in (INTERPRET, [OPT, "--run"]):  # files of values have limits too
            fails(BAD_FILE, "x.npy", f"more than {large} bytes of files", "--limit-file-bytes",
                  command=[*command, c.model, "--input", "x=" + c.path("x.npy"), "--limit-file-bytes", str(large)])


# ---- names ----
@slow
def test_hostile_names():
    with Case() as c:
        for i, name in enumerate(HOSTILE):
            m = save(hostile_model(name), c.path("m.onnx"))
            for more in ([], ["--explain"], ["--profile"], ["--json"]):
                done = run(INTERPRET, m, *more, cwd=c.folder)
                expect(done.returncode == RAN, f"a model with the name {name!r}", done)
                clean = done.stdout.replace(b"\t", b"") if more == ["--json"] else done.stdout
                expect(is_clean(clean) and is_clean(done.stderr), f"raw bytes of the name {name!r}", done)
            report = json.loads(run(INTERPRET, m, "--json").stdout)
            expect(len(report["outputs"]) == 1 and report["nodes"][0]["op"] == "Relu", f"the JSON of {name!r}")
            bad = save(hostile_model(name, "Foo" + name), c.path("bad.onnx"))
            fails(UNSUPPORTED, "bad.onnx", "Foo", command=[INTERPRET, bad], cwd=c.folder)
            fails(USAGE, "no input", command=[INTERPRET, m, "--input", "nosuch=x.npy"], cwd=c.folder)
            fails(USAGE, "no input has a dim", command=[INTERPRET, m, "--dim", "nosuch=3"], cwd=c.folder)
            np.save(c.path("x.npy"), c.x)
            done = run(INTERPRET, m, "--input", f"{name}=x.npy", "--quiet", "--save", f"saved{i}", "--format", "npy",
                       cwd=c.folder)
            expect(done.returncode == RAN and not done.stderr, f"an input by the name {name!r}", done)
            expect(len(set(os.listdir(c.path(f"saved{i}"))) - {"index.json"}) == 1, f"what was saved of {name!r}", done)
            saved = np.load(glob.glob(os.path.join(glob.escape(c.path(f"saved{i}")), "*.npy"))[0])
            expect(np.array_equal(saved, c.x), f"the output of {name!r}")
            done = run(INTERPRET, m, "--dim", f"{name}=5", cwd=c.folder)
            named = any(ch.isalnum() for ch in name)
            expect(not named or (done.returncode == RAN and "[5,3]" in done.out), f"a dim by the name {name!r}", done)
            for stage in ("onnx", "primitives"):
                text = c.path("text")
                done = run(OPT, m, "--after", stage, "-o", text, cwd=c.folder)
                expect(done.returncode == RAN, f"the text of {name!r} after {stage}", done)
                expect(all(b == 10 or 32 <= b < 127 for b in open(text, "rb").read()), f"raw bytes in the text of {name!r}")
            whole = run(OPT, m)
            again = run(OPT, text, "--from", "primitives")
            expect(whole.returncode == RAN and whole.stdout == again.stdout, f"the text of {name!r} goes on", again)
        expect(not os.path.exists(c.path("pwned")), "a name was run as a command")


def test_bytes_that_are_no_text():
    """Zero bytes and invalid UTF-8, which Python's protobuf refuses to write: put into the file by hand."""
    with Case() as c:
        for mark in (b"\x00", b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xc2\x9b"):
            name = "@" * len(mark) + "name"
            data = hostile_model(name).SerializeToString().replace(name.encode(), mark + b"name")
            m = c.write("m.onnx", data)
            for more in ([], ["--explain"], ["--json"]):
                done = run(INTERPRET, m, *more)
                expect(done.returncode == RAN, f"the name {mark!r}", done)
                expect(is_clean(done.stdout.replace(b"\t", b"")), f"raw bytes of the name {mark!r}", done)
            data = hostile_model(name, "Foo" + name).SerializeToString().replace(name.encode(), mark + b"name")
            fails(UNSUPPORTED, "Foo", command=[INTERPRET, c.write("m.onnx", data)])


def test_hostile_file_names():
    with Case() as c:
        names = [os.fsencode(n.replace("/", "|")) for n in HOSTILE if n not in (" ",)] + [b"\xff\xfe", b"\xc2\x9b31m"]
        for name in names:
            folder = os.path.join(os.fsencode(c.folder), b"in " + name)
            os.mkdir(folder)
            model = os.path.join(folder, name + b".onnx")
            save(product_model(), model)
            data = os.path.join(folder, name)
            write_set(os.fsdecode(data), c.x, c.y)
            done = run(INTERPRET, model, "--data", data, "--save", os.path.join(folder, b"out"), cwd=c.folder)
            expect(done.returncode == RAN and is_clean(done.stdout + done.stderr), f"the path {name!r}", done)
            write_set(os.fsdecode(data), c.x[:, :2].copy())
            fails(BAD_FILE, "'x'", command=[INTERPRET, model, "--data", data], cwd=c.folder)
            fails(BAD_FILE, command=[INTERPRET, model + b"x"], cwd=c.folder)
            fails(BAD_FILE, "--data", command=[INTERPRET, model, "--data", data + b"x"], cwd=c.folder)
            fails(USAGE, "unknown option", command=[INTERPRET, b"--" + name], cwd=c.folder)
            with open(os.path.join(folder, b"k.igraph"), "w") as f:
                f.write(KERNEL)
            done = run(OPT, os.path.join(folder, b"k.igraph"), "--run", "--check", cwd=c.folder)
            expect(done.returncode == RAN, f"a kernel below {name!r}", done)
        expect(not os.path.exists(c.path("pwned")), "a file's name was run as a command")


# ---- options of uir-run ----
def test_wrong_usage():
    with Case() as c:
        for words, arguments in ((["no model"], []), (["one model"], [c.model, c.model]),
                                 (["--jsno", "did you mean --json?"], [c.model, "--jsno"]),
                                 (["--sav", "did you mean --save?"], [c.model, "--sav=x"]),
                                 (["unknown option '-x'"], [c.model, "-x"]),
                                 (["--data needs a value"], [c.model, "--data"]),
                                 (["takes no value"], [c.model, "--json=1"]),
                                 (["--rtol", "'-1'"], [c.model, "--rtol", "-1"]),
                                 (["--rtol", "'1,5'"], [c.model, "--rtol", "1,5"]),
                                 (["--atol", "'nan'"], [c.model, "--atol", "nan"]),
                                 (["--random", "'x'"], [c.model, "--random", "x"]),
                                 (["--threads"], [c.model, "--threads", "99999999999999999999"]),
                                 (["npy or pb"], [c.model, "--format", "png"]),
                                 (["gpu", "cpu, vm, null, opencl, interpreter"], [c.model, "--device", "gpu"]),
                                 (["'z'", "inputs of the model: x"], [c.model, "--input", "z=a.npy"]),
                                 (["NAME=VALUE"], [c.model, "--input", "x"]),
                                 (["'bacth'", "did you mean 'batch'?"], [c.model, "--dim", "bacth=2"]),
                                 (["--dim batch=-2"], [c.model, "--dim", "batch=-2"]),
                                 (["--shape x=2y3"], [c.model, "--shape", "x=2y3"]),
                                 (["'z'"], [c.model, "--shape", "z=2"])):
            fails(USAGE, *words, command=[INTERPRET, *arguments])
        fails(BAD_FILE, "--data", "nosuch", command=[INTERPRET, c.model, "--data", c.path("nosuch")])
        np.save(c.path("x.npy"), c.x)
        data = write_set(c.path("d"), c.x)  # a wrong name is told even where no input is made up
        fails(USAGE, "'bacth'", command=[INTERPRET, c.model, "--data", data, "--dim", "bacth=2"])


def test_agreeing_and_differing():
    with Case() as c:
        data = write_set(c.path("d"), c.x, c.y)
        done = run(INTERPRET, c.model, "--data", data)
        expect(done.returncode == RAN and "agrees" in done.out, "agreement", done)
        write_set(data, c.x, c.y + np.float32(1))
        done = run(INTERPRET, c.model, "--data", data)
        expect(done.returncode == DIFFERS and "'y'" in done.err and "element" in done.err, "a difference", done)
        expect(run(INTERPRET, c.model, "--data", data, "--atol", "1.5").returncode == RAN, "--atol")
        expect(run(INTERPRET, c.model, "--data", data, "--quiet").stdout == b"", "--quiet")
        write_set(data, c.x, c.y[:1].copy())
        done = run(INTERPRET, c.model, "--data", data)
        expect(done.returncode == DIFFERS and "f32[1,4]" in done.err, "another shape expected", done)
        c.write("info.json", json.dumps({"tolerance": {"rtol": 0, "atol": 9}}))
        write_set(data, c.x, c.y + np.float32(8))
        done = run(INTERPRET, c.model, "--data", data)
        expect(done.returncode == RAN and "info.json" in done.out, "the model's own tolerance", done)


def two_inputs():
    return make_model([helper.make_node("Sub", ["a", "b"], ["y"])], [value("a", ["n", 3]), value("b", ["n", 3])],
                      [value("y", None)])


def test_data_folders():
    """Every input has its file, every file its input: nothing is made up unasked, nothing left out unsaid."""
    with Case() as c:
        m, x = save(two_inputs(), c.path("two.onnx")), c.x
        os.mkdir(c.path("empty"))
        fails(BAD_FILE, "--data", "no data", "input_0", command=[INTERPRET, m, "--data", c.path("empty")])
        fails(BAD_FILE, "no data", command=[INTERPRET, m, "--data", c.path("empty"), "--random", "3"])

        def folder(**files):
            path = c.path(f"set{len(os.listdir(c.folder))}")
            os.mkdir(path)
            for name, array in files.items():
                name, _, ending = name.rpartition("_")
                file = os.path.join(path, f"{name}.{ending}")
                if ending == "npy":
                    np.save(file, array)
                else:
                    save(numpy_helper.from_array(array) if ending == "pb" else b"", file)
            return path

        for files in ({"x_npy": x}, {"a_pb": x, "b_pb": x}, {"input_a_pb": x}, {"input_00_npy": x}, {"input_0_npz": x},
                      {"inputs_0_pb": x}, {"input__0_pb": x}):
            done = fails(BAD_FILE, "no data", command=[INTERPRET, m, "--data", folder(**files)])
            expect(re.search(r"it has '", done.err), "what else is there", done)
        for files in ({"input_0_pb": x, "input_1_pb": x * 2}, {"input_0_npy": x, "input_1_npy": x * 2},
                      {"input_0_pb": x, "input_1_npy": x * 2, "output_0_npy": -x},
                      {"input_0_npy": x, "input_1_pb": x * 2, "output_0_pb": -x, "notes_txt": None}):
            done = run(INTERPRET, m, "--data", folder(**files), "--quiet", "--save", c.path("s"), "--format", "npy")
            expect(done.returncode == RAN and np.array_equal(np.load(c.path("s", "y.npy")), -x), f"{files.keys()}", done)
        wrong = folder(input_0_npy=x, input_1_npy=x, output_0_npy=x)
        fails(DIFFERS, "output 'y'", command=[INTERPRET, m, "--data", wrong, "--quiet"])
        for files, words in (({"input_0_pb": x}, ["input_1.pb", "'b'"]), ({"input_1_npy": x}, ["input_0.npy", "'a'"]),
                             ({"output_0_pb": x}, ["input_0", "'a'"]),
                             ({"input_0_pb": x, "input_2_pb": x}, ["input_2.pb", "the model has 2"]),
                             ({"input_0_pb": x, "input_1_pb": x, "input_2_npy": x}, ["input_2.npy", "the model has 2"]),
                             ({"input_0_pb": x, "input_1_pb": x, "output_1_pb": x}, ["output_1.pb", "the model has 1"]),
                             ({"input_0_pb": x, "input_1_pb": x, "input_1_npy": x}, ["input_1.pb", "input_1.npy", "'b'"]),
                             ({"input_0_pb": x, "input_1_pb": x, "output_0_pb": x, "output_0_npy": x}, ["'y'"])):
            fails(BAD_FILE, *words, command=[INTERPRET, m, "--data", folder(**files)])
        half = folder(input_0_pb=x)
        np.save(c.path("b.npy"), x)
        expect(run(INTERPRET, m, "--data", half, "--input", "b=" + c.path("b.npy")).returncode == RAN, "--input gives it")
        done = run(INTERPRET, m, "--data", half, "--random", "1", "--dim", "n=2")
        expect(done.returncode == RAN and "random" in done.out, "--random asks for it", done)
        os.makedirs(c.path("sets", "test_data_set_0"))
        fails(BAD_FILE, "input_0", command=[INTERPRET, m, "--data", c.path("sets")])
        constant = save(make_model([helper.make_node("Identity", ["w"], ["y"])], [], [value("y", None)],
                                   [numpy_helper.from_array(x, "w")]), c.path("constant.onnx"))
        expect(run(INTERPRET, constant, "--data", folder(output_0_npy=x)).returncode == RAN, "a model without inputs")
        expect(run(INTERPRET, constant, "--data", c.path("empty")).returncode == RAN, "a folder of none of its inputs")
        fails(BAD_FILE, "no data", "'a.npy'", command=[INTERPRET, constant, "--data", folder(a_npy=x)])


def test_inputs_with_a_default():
    """Constants of a model unless something gives them: by name, by number, by --override; in packages by uir-pack."""
    with Case() as c:
        x = np.arange(2, dtype=np.float32)
        graph = [helper.make_node("Sub", ["x", "w"], ["s"]), helper.make_node("Add", ["s", "v"], ["y"])]
        m = save(make_model(graph, [value("w", [2]), value("x", ["n"]), value("v", [2])], [value("y", None)],
                            [numpy_helper.from_array(x + 5, "w"), numpy_helper.from_array(x * 0, "v")]),
                 c.path("defaults.onnx"))
        files = {name: c.path(name + ".npy") for name in "wxv"}
        for name, array in (("w", x + 1), ("x", x * 3), ("v", x + 100)):
            np.save(files[name], array)

        def gives(y, *words, command=(INTERPRET, m)):
            done = run(*command, *words, "--quiet", "--save", c.path("s"), "--format", "npy")
            expect(done.returncode == RAN and np.array_equal(np.load(c.path("s", "y.npy")), y), f"{words}", done)

        def folder(names):
            path = tempfile.mkdtemp(dir=c.path(""))
            for number, name in names.items():
                shutil.copy(files[name], os.path.join(path, f"input_{number}.npy"))
            return path

        plain, w_given, both = x * 3 - x - 5, x * 3 - x - 1, x * 3 - x - 1 + x + 100
        gives(plain, "--input", "x=" + files["x"])
        gives(plain, "--data", folder({0: "x"}))
        gives(w_given, "--input", "x=" + files["x"], "--input", "w=" + files["w"])
        gives(w_given, "--data", folder({0: "w", 1: "x"}))
        gives(both, "--data", folder({0: "w", 1: "x", 2: "v"}))
        gives(w_given, "--override", "w", "--input", "x=" + files["x"], "--input", "w=" + files["w"])
        fails(BAD_FILE, "input_0.npy is missing", command=[INTERPRET, m, "--data", folder({1: "x"}), "--override", "w"])
        done = run(INTERPRET, m, "--override", "q")
        expect(done.returncode != RAN and "'q' cannot be overridden" in done.err, "no such input", done)
        done = run(INTERPRET, m, "--info")
        expect(re.search(r"^defaults +w, v$", done.out, re.M), "--info lists them", done)
        package = c.path("m.uir")
        expect(run(PACK, m, "--override", "w", "--no-native", "-o", package).returncode == RAN, "uir-pack --override")
        gives(w_given, "--data", folder({0: "w", 1: "x"}), command=[RUN_PACKAGE, package])
        fails(BAD_FILE, "input_2", "'v'", command=[RUN_PACKAGE, package, "--data", folder({0: "w", 1: "x", 2: "v"})])


def test_archives_of_inputs():
    with Case() as c:
        m, x = save(two_inputs(), c.path("two.onnx")), c.x
        np.savez(c.path("all.npz"), b=x, a=x * 3, other=x)
        np.savez(c.path("ab.npz"), first=x, second=x)
        np.savez(c.path("one.npz"), whatever=x)
        np.savez(c.path("none.npz"))
        save_as = ["--quiet", "--save", c.path("s"), "--format", "npy"]
        done = run(INTERPRET, m, "--inputs", c.path("all.npz"), *save_as)
        expect(done.returncode == RAN and np.array_equal(np.load(c.path("s", "y.npy")), x * 2), "--inputs", done)
        done = run(INTERPRET, m, "--inputs", c.path("all.npz"), "--input", "b=" + c.path("one.npz") + ":whatever", *save_as)
        expect(done.returncode == RAN and np.array_equal(np.load(c.path("s", "y.npy")), x * 2), "--input goes before", done)
        done = run(INTERPRET, m, "--input", "a=" + c.path("all.npz"), "--input", "b=" + c.path("one.npz"), *save_as)
        expect(done.returncode == RAN and np.array_equal(np.load(c.path("s", "y.npy")), x * 2), "the input's own name", done)
        fails(BAD_FILE, "no array 'a'", "its arrays: 'first', 'second'", command=[INTERPRET, m, "--inputs", c.path("ab.npz")])
        fails(USAGE, "2 arrays", "'first', 'second'",
              command=[INTERPRET, m, "--input", "a=" + c.path("ab.npz"), "--inputs", c.path("all.npz")])
        fails(BAD_FILE, "no array 'x'", "'whatever'", command=[INTERPRET, m, "--input", "a=" + c.path("one.npz") + ":x"])
        fails(BAD_FILE, "no array", command=[INTERPRET, m, "--inputs", c.path("none.npz")])
        np.savez(c.path("many.npz"), **{f"array number {i} of a great many" + "x" * 40: x for i in range(200)})
        done = fails(USAGE, "200 arrays", "...", command=[INTERPRET, m, "--input", "a=" + c.path("many.npz"), "--dim", "n=2"])
        expect(len(done.err) < 3000, "the list is cut", done)


def test_dims_and_files():
    """What --dim and --shape say is so of the data, or an error."""
    with Case() as c:
        m, x = save(two_inputs(), c.path("two.onnx")), c.x
        np.save(c.path("x.npy"), x)
        data = write_set(c.path("d"), x)
        save(numpy_helper.from_array(x), os.path.join(data, "input_1.pb"))
        for given in (["--data", data], ["--input", "a=" + c.path("x.npy"), "--input", "b=" + c.path("x.npy")],
                      ["--shape", "a=2x3", "--shape", "b=2x3"]):
            expect(run(INTERPRET, m, *given, "--dim", "n=2").returncode == RAN, f"{given}")
            fails(USAGE, "--dim n=4", "'a'", "2", command=[INTERPRET, m, *given, "--dim", "n=4"])
            if "--shape" not in given:
                expect(run(INTERPRET, m, *given, "--shape", "b=2x3").returncode == RAN, f"{given} --shape")
                fails(USAGE, "--shape b=3x3", command=[INTERPRET, m, *given, "--shape", "b=3x3"])
        huge = fails(FAILED, "'a'", "1199999999988 bytes", command=[INTERPRET, m, "--dim", "n=99999999999"])
        expect("hint" in huge.err or "--dim" in huge.err, "what to do", huge)
        expand = save(make_model([helper.make_node("Expand", ["x", "s"], ["y"], name="wide one")], [value("x", [1])],
                                 [value("y", None)], [numpy_helper.from_array(np.array([300000000000]), "s")]), c.path("e.onnx"))
        for device in ("interpreter", "vm"):
            done = run(RUN, expand, "--device", device)
            expect(done.returncode == FAILED and "1200000000000 bytes" in done.err and
                   ("'wide one'" in done.err or "output 'y'" in done.err), f"out of memory on {device}", done)


def test_sizes_in_bytes():
    with Case() as c:
        for text in ("1G", "500M", "64k", "123", "2T", "0"):
            done = run(RUN, c.model, "--device", "vm", "--cache-limit", text, "--quiet")
            expect(done.returncode == RAN, f"--cache-limit {text}", done)
        for text in ("1X", "G", "1GG", "-1G", "1.5G", "", "9999999T", "1 G"):
            fails(USAGE, "--cache-limit", "500M", command=[RUN, c.model, "--cache-limit", text])


def test_statistics_of_no_numbers():
    with Case() as c:
        m = save(hostile_model("x"), c.path("m.onnx"))
        for row, words in (([np.nan] * 3, "min nan  max nan  mean nan  NaN 3 of 3"),
                           ([1, np.nan, 2], "min 1  max 2  mean 1.5  NaN 1 of 3"), ([1, 2, 3], "min 1  max 3  mean 2  [")):
            np.save(c.path("x.npy"), np.array([row], np.float32))
            done = run(INTERPRET, m, "--input", "x=" + c.path("x.npy"))
            expect(done.returncode == RAN and words in done.out, f"{row}", done)


def test_pictures_and_layouts():
    with Case() as c:
        Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(c.path("p.png"))
        for shape, layout, size, code in (([1, 3, "h", "w"], "nchw", None, RAN), ([1, 3, "h", "w"], "nhwc", None, USAGE),
                                          ([1, "h", "w", 3], "nhwc", None, RAN), ([1, "h", "w", 3], "nchw", None, USAGE),
                                          ([1, 3, 8, 8], "nhwc", None, USAGE), ([1, 8, 8, 3], "nchw", None, USAGE),
                                          ([3, 8, 8], "nhwc", None, USAGE), ([8, 8, 3], "nhwc", None, RAN),
                                          ([1, "c", "h", "w"], "nhwc", None, RAN), ([1, 1, 8, 8], "nchw", None, RAN),
                                          ([1, 3, 8, 8], None, "8x8", RAN), ([1, 3, 8, 8], None, "9x8", USAGE),
                                          ([1, 3, "h", "w"], None, "9x8", RAN), ([1, 8, 8, 5], None, None, BAD_FILE)):
            m = save(make_model([helper.make_node("Identity", ["x"], ["y"])], [value("x", shape)], [value("y", None)]),
                     c.path("p.onnx"))
            spec = ",".join(["scale=1/255"] + ([f"layout={layout}"] if layout else []) + ([f"size={size}"] if size else []))
            command = [INTERPRET, m, "--input", "x=" + c.path("p.png"), "--preprocess", spec]
            if code == RAN:
                done = run(command)
                expect(done.returncode == RAN, f"{shape} {spec}", done)
            else:
                fails(code, "'x'", *(["layout"] if layout else []), command=command)
        fails(USAGE, "scale=1/0", command=[*command[:-1], "scale=1/0"])
        expect("(value * scale - mean) / std" in " ".join(run(RUN, "--help").out.split()), "--help tells of scale")


def test_tolerance_that_nobody_states():
    """By dtype, and said; how many differ, by how much, at which angle."""
    kinds = ((np.float32, 1e-4, 1e-3), (np.float16, 2.0 ** -8, 2.0 ** -8), (np.float64, 2.0 ** -26, 2.0 ** -26))
    with Case() as c:
        for dtype, relative, rtol in kinds:
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            m = save(make_model([helper.make_node("Identity", ["x"], ["y"])], [value("x", ["n"], kind)],
                                [value("y", None, kind)]), c.path("i.onnx"))
            x = np.array([1e-3, 4, -0.5, 0], dtype)
            bound = 4 * relative + rtol * np.abs(x.astype(np.float64))
            for part, code in ((0.9, RAN), (1.2, DIFFERS)):
                want = (x.astype(np.float64) + part * bound).astype(dtype)
                done = run(INTERPRET, m, "--data", write_set(c.path("d"), x, want))
                expect(done.returncode == code, f"{part} of the tolerance of {dtype}", done)
                name = {4: "f32", 2: "f16", 8: "f64"}[np.dtype(dtype).itemsize]
                expect(re.search(f"tolerance: {name} rtol .*default", done.out), "the tolerance is said", done)
                if code == DIFFERS:
                    expect(re.search(r"DIFFERS: \d of 4 elements out of tolerance, greatest difference [\d.e-]+, relative "
                                     r"[\d.e-]+, cosine (0\.9|1)", done.out), "how much differs", done)
                    expect("of 4 elements out of tolerance" in done.err, "the message", done)
        i = save(make_model([helper.make_node("Identity", ["x"], ["y"])], [value("x", ["n"], TensorProto.INT32)],
                            [value("y", None, TensorProto.INT32)]), c.path("i.onnx"))
        x = np.array([5, 6], np.int32)
        done = run(INTERPRET, i, "--data", write_set(c.path("d"), x, x + 1))
        expect(done.returncode == DIFFERS and "2 of 2 elements" in done.err and "i32 exactly" in done.out, "integers", done)
        done = run(INTERPRET, i, "--data", c.path("d"), "--integer-atol", "1")
        expect(done.returncode == RAN and "1 for integers" in done.out, "integers that are rounded", done)


def test_tolerance_by_parts():
    """A part that the command line states takes that part's place, and the other stays as it was stated."""
    with Case() as c:
        x = np.array([[1, 0, 0]], np.float32)
        w = np.zeros((3, 4), np.float32)
        w[0] = [10, 1, 0, 0]
        c.model = save(make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", [1, 3])], [value("y", None)],
                                  [numpy_helper.from_array(w, "w")]), c.path("model.onnx"))
        wide = np.array([[10.05, 1, 0, 0]], np.float32)   # rtol decides
        high = np.array([[10, 1, 0, 0.005]], np.float32)  # atol decides
        for stated in (None, {"rtol": 1e-3, "atol_relative_to_max": 1e-4}, {"rtol": 1e-3}, {"atol": 1e-3}):
            c.write("info.json", json.dumps({"tolerance": stated} if stated else {}))
            for want, options, code in ((wide, [], DIFFERS), (wide, ["--rtol", "0.01"], RAN), (wide, ["--atol", "0.1"], RAN),
                                        (high, [], DIFFERS), (high, ["--rtol", "0.01"], DIFFERS),
                                        (high, ["--atol", "0.01"], RAN), (high, ["--atol-relative", "0.001"], RAN),
                                        (high, ["--atol-relative", "0.0001"], DIFFERS)):
                done = run(INTERPRET, c.model, "--data", write_set(c.path("d"), x, want), *options)
                expect(done.returncode == code, f"{stated} {options}", done)
        for broken in ("{", "[1]", '{"tolerance": {"rtol": "x"}}', '{"tolerance": {"rtol": -1}}', "x" * 100000):
            c.write("info.json", broken)
            done = run(INTERPRET, c.model, "--data", write_set(c.path("d"), x, wide))
            expect(done.returncode == DIFFERS and "default" in done.out, f"{broken[:30]}", done)
        c.write("info.json", json.dumps({"notes": "x" * 100000, "tolerance": {"rtol": 0.01}}))
        done = run(INTERPRET, c.model, "--data", c.path("d"))
        expect(done.returncode == RAN and "info.json" in done.out, "a long info.json", done)


def test_kinds_of_inputs():
    with Case() as c:
        np.save(c.path("x.npy"), c.x)
        np.save(c.path("t.npy"), np.asfortranarray(c.x))
        np.savez(c.path("one.npz"), c.x)
        np.savez_compressed(c.path("two.npz"), a=c.x * 0, b=c.x)
        save(numpy_helper.from_array(c.x), c.path("x.pb"))
        c.write("x.raw", c.x.tobytes())
        for file, more in (("x.npy", []), ("t.npy", []), ("one.npz", []), ("two.npz:b", []), ("x.pb", []),
                           ("x.raw", ["--dim", "batch=2"]), ("x.raw", ["--shape", "x=2x3"])):
            done = run(INTERPRET, c.model, "--input", "x=" + c.path(file), "--quiet", "--save", c.path("s"), *more)
            expect(done.returncode == RAN, f"--input {file}", done)
            got = numpy_helper.to_array(onnx.load_tensor(c.path("s", "output_0.pb")))
            expect(np.array_equal(got, c.y), f"the result of --input {file}", done)
        picture = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
        Image.fromarray(picture).save(c.path("p.png"))
        m = save(make_model([helper.make_node("Identity", ["x"], ["y"])], [value("x", [1, 3, "h", "w"])],
                            [value("y", None)]), c.path("p.onnx"))
        done = run(INTERPRET, m, "--input", "x=" + c.path("p.png"), "--preprocess", "scale=0.5,mean=1/2/3,std=2", "--quiet",
                   "--save", c.path("s"), "--format", "npy")
        expect(done.returncode == RAN, "a picture", done)
        want = ((picture * 0.5 - np.array([1, 2, 3])) / 2).transpose(2, 0, 1)[None]
        expect(np.allclose(np.load(c.path("s", "y.npy")), want, atol=1e-6), "the picture's values", done)
        for spec in ("foo=1", "scale=x", "size=0x3", "layout=nhcw", "mean=1/2/3/4/5"):
            fails(USAGE, "--preprocess", spec, command=[INTERPRET, m, "--input", "x=" + c.path("p.png"), "--preprocess", spec])
        c.write("bad.png", open(c.path("p.png"), "rb").read()[:50])
        fails(BAD_FILE, "bad.png", command=[INTERPRET, m, "--input", "x=" + c.path("bad.png")])
        fails(BAD_FILE, "'x'", "picture", command=[INTERPRET, save(hostile_model("x").SerializeToString(), c.path("q.onnx")),
                                                   "--input", "x=" + c.path("p.png"), "--shape", "x=3"])


def test_saving_goes_round():
    with Case() as c:
        for dtype in (np.float32, np.float64, np.float16, np.int8, np.uint64, np.bool_):
            x = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            m = save(make_model([helper.make_node("Identity", ["x"], ["y"])], [value("x", ["n", 3], kind)],
                                [value("y", None, kind)]), c.path("i.onnx"))
            write_set(c.path("d"), x)
            for more in ([], ["--format", "npy"]):
                done = run(INTERPRET, m, "--data", c.path("d"), "--quiet", "--save", c.path("s"), *more)
                expect(done.returncode == RAN, f"saving {dtype}", done)
            tensor = onnx.load_tensor(c.path("s", "output_0.pb"))
            expect(tensor.name == "y" and np.array_equal(numpy_helper.to_array(tensor), x), f"{dtype} as .pb")
            again = np.load(c.path("s", "y.npy"))
            expect(again.dtype == x.dtype and np.array_equal(again, x), f"{dtype} as .npy")
        write_set(c.path("sets", "test_data_set_0"), c.x, c.y)
        write_set(c.path("sets", "test_data_set_1"), c.x * 2, c.y * 2)
        done = run(INTERPRET, c.model, "--data", c.path("sets"), "--quiet", "--save", c.path("both"))
        expect(done.returncode == RAN, "several sets", done)
        for i in (0, 1):
            got = numpy_helper.to_array(onnx.load_tensor(c.path("both", f"test_data_set_{i}", "output_0.pb")))
            expect(np.array_equal(got, c.y * (i + 1)), f"set {i} of several")
        twice = run(INTERPRET, c.model, "--data", c.path("sets", "test_data_set_0"), "--data",
                    c.path("sets", "test_data_set_0/"), "--quiet", "--save", c.path("twice"))
        expect(twice.returncode == RAN and len(os.listdir(c.path("twice"))) == 2, "two sets of one name", twice)


def test_random_inputs():
    with Case() as c:
        seen = []
        for seed in ("7", "7", "8"):
            done = run(INTERPRET, c.model, "--random", seed, "--dim", "batch=5", "--save", c.path("s"), "--quiet")
            expect(done.returncode == RAN, "--random", done)
            seen.append(open(c.path("s", "output_0.pb"), "rb").read())
        expect(seen[0] == seen[1] and seen[0] != seen[2], "the same seed gives the same, another another")
        done = run(INTERPRET, c.model)
        expect("random" in done.out and "[1,3]" in done.out, "that inputs are made up is said", done)
        expect("f32[4,4]" in run(INTERPRET, c.model, "--shape", "x=4x3").out, "--shape")


JSON_FIELDS = {"version": int, "device": str, "ran_on": str, "compiled": int, "calls": dict, "bus": dict, "groups": int, "kernels": int, "layouts": dict, "precision": str, "products": dict,
               "phases": int, "dram_bytes": int, "load_ms": float, "compile_ms": float, "first_ms": float,
               "steady_ms": dict, "peak_bytes": int, "faults": int, "cases": int, "agree": bool, "outputs": list, "nodes": list, "elsewhere": list,
               "model": str, "threads": int, "wait_ms": float, "sessions": dict, "tolerance": dict, "data_sets": list,
               "runs_per_second": (float, int, type(None)), "profile": (dict, type(None)), "machine": (dict, type(None))}
OUTPUT_FIELDS = {"name", "dtype", "shape", "max_abs", "max_rel", "agree", "count", "differing", "cosine", "rtol", "atol"}
NODE_FIELDS = {"name", "op", "by", "kernel", "why", "fallback", "bus_bytes", "ms", "calls", "dram_bytes", "flops", "nodes"}


def test_json():
    with Case() as c:
        data = write_set(c.path("d"), c.x, c.y)
        for more in ([], ["--data", data], ["--data", data, "--bench", "--seconds", "0.1"], ["--explain", "--profile"]):
            done = run(INTERPRET, c.model, "--json", *more)
            expect(done.returncode == RAN and not done.stderr, "--json", done)
            report = json.loads(done.stdout)
            expect(set(report) == set(JSON_FIELDS), f"the fields are {sorted(report)}")
            for name, kind in JSON_FIELDS.items():
                expect(isinstance(report[name], (int, float) if kind is float else kind), f"the kind of {name}")
            expect(report["version"] == 1 and report["ran_on"] == report["device"] == "interpreter", "version and ran_on")
            expect(set(report["calls"]) == {"native", "vm", "vendor", "host", "interpreter", "device"}, "calls")
            expect(set(report["bus"]) == {"waits", "copies", "bytes_to_device", "bytes_from_device", "device_bytes", "planned"}, "bus")
            steady = report["steady_ms"]
            expect(set(steady) == {"p50", "p90", "p99", "n"}, "steady_ms")
            if "--bench" in more:
                expect(steady["n"] > 0 and 0 < steady["p50"] <= steady["p90"] <= steady["p99"], f"{steady}")
            else:
                expect(steady["n"] == 0 and steady["p50"] is None, f"{steady}")
            output, = report["outputs"]
            expect(set(output) == OUTPUT_FIELDS, f"fields of an output: {output}")
            expect(report["model"] == c.model and report["threads"] >= 1, "model and threads")
            expect(set(report["tolerance"]) == {"source", "rtol", "atol", "atol_relative_to_max", "integers"}, "tolerance")
            only, = report["data_sets"]
            expect(only["data"] == (data if "--data" in more else None) and only["outputs"] == [output], f"{only}")
            if "--data" in more:
                expect(output["count"] == 8 and output["differing"] == 0 and output["cosine"] > 0.999, f"{output}")
            expect(output["name"] == "y" and output["dtype"] == "f32", "an output")
            expect(output["agree"] is (True if "--data" in more else None), "whether it agrees")
            for node in report["nodes"]:
                expect(set(node) == NODE_FIELDS and node["ms"] >= 0 and node["calls"] == 1, f"fields of a node: {node}")
        write_set(data, c.x, c.y * np.float32(np.nan))
        done = run(INTERPRET, c.model, "--json", "--data", data)
        report = json.loads(done.stdout)
        expect(done.returncode == DIFFERS and report["agree"] is False, "a difference as JSON", done)
        documented = open(os.path.join(ROOT, "docs", "json.md")).read()
        for name in (*JSON_FIELDS, *OUTPUT_FIELDS, *NODE_FIELDS, "data_sets", "runs", "source"):
            expect(f"`{name}`" in documented, f"docs/json.md lacks {name}")


def test_json_of_several_data_sets():
    with Case() as c:
        for i in range(3):
            write_set(c.path("sets", f"test_data_set_{i}"), c.x * (i + 1), c.y * (i + 1) + np.float32(i == 1))
        done = run(INTERPRET, c.model, "--data", c.path("sets"), "--json", "--threads", "2")
        report = json.loads(done.stdout)
        sets = report["data_sets"]
        expect(done.returncode == DIFFERS and report["cases"] == len(sets) == 3 and not report["agree"], f"{report}", done)
        expect([s["agree"] for s in sets] == [True, False, True], f"{sets}")
        expect([os.path.basename(s["data"]) for s in sets] == [f"test_data_set_{i}" for i in range(3)], f"{sets}")
        wrong, = sets[1]["outputs"]
        expect(wrong["differing"] == wrong["count"] == 8 and wrong["max_abs"] == 1 and wrong["cosine"] < 1, f"{wrong}")
        expect(sets[2]["outputs"] == report["outputs"] and report["threads"] == 2, f"{report}")
        expect(report["tolerance"] == {"source": "default", "rtol": None, "atol": 0, "atol_relative_to_max": None,
                                       "integers": 0} and wrong["rtol"] == 1e-3, f"{report['tolerance']}")


def test_exact():
    """A convolution by Winograd's formula unless --exact forbids it: said in words and in JSON, of a model and of its package; the
    two agree but for rounding, and the formula takes 16/9 of the weights."""
    with Case() as c:
        random = np.random.default_rng(5)
        weights = numpy_helper.from_array(random.standard_normal((64, 64, 3, 3)).astype(np.float32) / 24, "w")
        model = save(make_model([helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], [value("x", [1, 64, "h", 9])],
                                [value("y", None)], [weights]), c.path("m.onnx"))
        sizes, outputs = {}, {}
        for exact in ([], ["--exact"]):
            package, folder = c.path(f"m{len(exact)}.uir"), c.path(f"out{len(exact)}")
            expect(run(PACK, model, "-o", package, "--no-native", *exact).returncode == RAN, f"packing {exact}")
            for command in ([RUN, model, *exact], [RUN, package]):
                given = [*command, "--device", "vm", "--dim", "h=7", "--random", "3"]
                done = run(*given, "--json", "--save", folder, "--format", "npy")
                layouts = json.loads(done.out)["layouts"]
                expect(layouts["winograd"] == (0 if exact else 1) and layouts["values"] > 0 and layouts["conversions"] == 2, f"{layouts}", done)
                shown = " ".join(run(*given, "--explain").out.split())
                expect(f"2 layout conversions; {0 if exact else 1} convolutions by Winograd's formula" in shown, shown)
                made = np.load(os.path.join(folder, "y.npy"))
                expect(not len(exact) in outputs or np.array_equal(made, outputs[len(exact)]), "a package computes what the model does")
                outputs[len(exact)] = made
            sizes[len(exact)] = os.path.getsize(package)
            fails(UNSUPPORTED, "--exact", "fixed when it is made", command=[RUN, package, "--exact"])
        difference = np.abs(outputs[0] - outputs[1]).max() / np.abs(outputs[1]).max()
        expect(0 < difference < 2e-6, f"they differ by {difference} of the greatest")
        expect(64 * 64 * 4 * 7 <= sizes[0] - sizes[1] < 64 * 64 * 4 * 9, f"packages of {sizes} bytes")
        text = run(OPT, model, "--after", "winograd").out
        expect("= windows(" in text and "= conv(" not in text, text)
        text = run(OPT, model, "--after", "winograd", "--exact").out
        expect("= windows(" not in text and "= conv(" in text, text)


def test_precision():
    """Weights as f16 or bf16 by --precision alone, said in words and in JSON with their accuracy, of a model, of what the cache has of
    it, and of its package; results are held to what the half type may differ by, unless a tolerance is given."""
    with Case() as c:
        random = np.random.default_rng(6)
        weights, x = random.standard_normal((64, 48)).astype(np.float32), random.standard_normal((5, 64)).astype(np.float32)
        model = save(make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", [5, 64])], [value("y", None)],
                                [numpy_helper.from_array(weights, "w")]), c.path("m.onnx"))
        data, folder, package = write_set(c.path("set"), x, x @ weights), c.path("out"), c.path("m.uir")
        outputs = {}
        for precision in ("f32", "f16", "bf16", "f32", "f16"):
            options = ["--precision", precision] if precision != "f32" else []
            done = run(RUN, model, "--device", "vm", "--data", data, *options, "--json", "--save", folder, "--format", "npy")
            said, made = json.loads(done.out or "{}"), np.load(os.path.join(folder, "y.npy"))
            expect(done.returncode == RAN and said["precision"] == precision, f"{precision}: {said.get('precision')}", done)
            expect(said["products"] == {"all": 1, "f16": 0, "bf16": 0, "out_of_range": 0, **({precision: 1} if options else {})},
                   f"{precision}: {said['products']}")
            expect(not precision in outputs or np.array_equal(made, outputs[precision]), f"{precision}: the cache gives another's")
            outputs[precision] = made
            differs = float(np.abs(made.astype(np.float64) - x @ weights).max())
            accuracy = said["data_sets"][0]["accuracy"]
            expect(accuracy["against"] == "what was expected" and abs(accuracy["max_abs"] - differs) <= 1e-6 * differs, f"{accuracy} of {differs}")
        wanted = x.astype(np.float64) @ weights.astype(np.float16).astype(np.float64)
        expect(np.abs(outputs["f16"] - wanted).max() < 1e-5 < np.abs(outputs["f32"] - wanted).max(), "weights are rounded to f16, and nothing else")
        lowered = [RUN, model, "--device", "vm", "--precision", "f16"]
        shown = run(*lowered, "--data", data).out
        expect("precision: f16 in 1 of 1 products" in shown and "to what was expected" in shown and "precision f16" in shown, shown)
        expect("precision:" not in run(RUN, model, "--device", "vm", "--data", data).out, "f32 is the default, of which nothing is said")
        expect("precision: f32 instead of auto" in run(RUN, model, "--device", "vm", "--precision", "auto").out, "a CPU multiplies no half type faster")
        shown = run(*lowered, "--input", f"x={c.path('set/input_0.pb')}").out
        expect("accuracy: unknown; give --accuracy" in shown, shown)
        done = run(*lowered, "--input", f"x={c.path('set/input_0.pb')}", "--accuracy", "--json")
        accuracy = json.loads(done.out)["data_sets"][0]["accuracy"]
        differs = float(np.abs(outputs["f16"].astype(np.float64) - outputs["f32"]).max())
        expect(accuracy["against"] == "a run in f32" and abs(accuracy["max_abs"] - differs) <= 1e-6 * differs, f"{accuracy} of {differs}", done)
        expect(run(*lowered, "--data", data, "--rtol", "1e-6", "--atol", "1e-6").returncode == DIFFERS, "a tolerance that is given counts")
        expect(run(PACK, model, "-o", package, "--no-native", "--precision", "f16").returncode == RAN, "packing")
        done = run(RUN, package, "--device", "vm", "--data", data, "--json", "--save", folder, "--format", "npy")
        expect(json.loads(done.out)["precision"] == "f16" and np.array_equal(np.load(os.path.join(folder, "y.npy")), outputs["f16"]),
               "a package computes what the model does", done)
        fails(UNSUPPORTED, "--precision", "fixed when it is made", command=[RUN, package, "--precision", "f16"])
        fails(USAGE, "--accuracy", "--precision", command=[RUN, model, "--accuracy"])


def engine_model(op, shape, outputs=1, domain="", after=None, kind=TensorProto.FLOAT, constants=(), **attributes):
    """A node over x, and `after` it others; the last node's first result is the output."""
    nodes = [helper.make_node(op, ["x"] + [c.name for c in constants], [f"y{i}" for i in range(outputs)], domain=domain, **attributes)]
    nodes += after or []
    model = helper.make_model(helper.make_graph(nodes, "g", [value("x", shape, kind)], [helper.make_empty_tensor_value_info(nodes[-1].output[0])],
                                                list(constants)), ir_version=8,
                              opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)])
    return model


def test_list_ops_is_true():
    """What --list-ops says of ops that run one way or another, held to what runs them."""
    join, keys = helper.make_node("ConcatFromSequence", ["y0"], ["z"], axis=0), {"domain": "ai.onnx.ml", "values_floats": [1.0, 2.0]}
    k, rate, on = (helper.make_tensor(*t) for t in (("k", 7, [1], [2]), ("rate", 1, [], [0.5]), ("on", 9, [], [True])))
    text, whole = TensorProto.STRING, TensorProto.INT64
    models = (("TopK", "kernels, else host", engine_model("TopK", [8], 2, constants=[k]), engine_model("TopK", [5000], 2, constants=[k])),
              ("SplitToSequence", "kernels, else interpreter", engine_model("SplitToSequence", [4], after=[join]), engine_model("SplitToSequence", [4])),
              ("SequenceConstruct", "kernels, else interpreter", engine_model("SequenceConstruct", [4], after=[join]), engine_model("SequenceConstruct", [4])),
              ("Dropout", "kernels, else interpreter", engine_model("Dropout", [4]), engine_model("Dropout", [4], constants=[rate, on])),
              ("ai.onnx.ml::LabelEncoder", "kernels, else interpreter", engine_model("LabelEncoder", [4], kind=whole, keys_int64s=[3, 4], **keys),
               engine_model("LabelEncoder", [4], kind=text, keys_strings=["a", "b"], **keys)),
              ("ai.onnx.ml::CategoryMapper", "interpreter", None, engine_model("CategoryMapper", [4], kind=text, domain="ai.onnx.ml", cats_strings=["a"],
                                                                               cats_int64s=[1])),
              ("MatMul", "kernels", engine_model("MatMul", [2, 2], constants=[helper.make_tensor("w", 1, [2, 2], [1.0] * 4)]), None))
    listed = dict(re.findall(r"^(\S+) \d+  (.*)$", run(INTERPRET, "--list-ops").out, re.M))
    with Case() as c:
        np.save(c.path("x.npy"), np.array(["a", "b", "c", "d"]))
        for op, engines, kernels, other in models:
            expect(listed[op] == engines, f"--list-ops: {op}: {listed[op]}")
            for model, engine in ((kernels, "vm"), (other, engines.split()[-1])):
                if model is None:
                    continue
                given = ["--input", "x=" + c.path("x.npy")] if model.graph.input[0].type.tensor_type.elem_type == text else ["--random", "1"]
                done = run(RUN, save(model, c.path("m.onnx")), "--device", "vm", "--explain", *given)
                ran = {"interpreter" if kernel == "custom" else by for kernel, by in re.findall(r"^  (\S+) by (\w+):", done.out, re.M)}
                expect(done.returncode == RAN and ran - {"vm"} == {engine} - {"vm"}, f"{op}: by {engine}, not {ran}", done)


def read_devices(text):
    """The names of the devices that are there: lines that are not indented, before those that are not."""
    return [line for line in text.split("\nnot there:")[0].splitlines() if line and not line.startswith(" ")]


def test_lists_and_help():
    done = run(INTERPRET, "--list-ops")
    expect(done.returncode == RAN and re.search(r"^MatMul 13  kernels$", done.out, re.M), "--list-ops", done)
    for line in ("NonZero 13  host", "ImageDecoder 20  host", "StringConcat 20  interpreter",
                 "ai.onnx.ml::TreeEnsemble 5  kernels", "ai.onnx.ml::ZipMap 1  kernels", "ai.onnx.ml::CastMap 1  not supported"):
        expect(re.search(f"^{line}$", done.out, re.M), f"--list-ops: {line}", done)
    done = run(RUN, "--list-devices")
    opencl = [] if "\n  opencl: " in done.out else ["opencl"]  # where the system has a device
    expect(read_devices(done.out) == ["cpu", "vm", "null", *opencl, "interpreter"], "--list-devices", done)
    expect("\n  ascend: this build has no driver" in done.out.split("\nnot there:")[1] and "    chips: 910B1, " in done.out,
           "those not there", done)
    small = run(RUN_PACKAGE, "--list-devices")
    expect(read_devices(small.out) == ["cpu", "vm", "null", *opencl], "--list-devices without a compiler", small)
    expect(re.fullmatch(r"uir \d+\.\d+\.\d+\n", run(INTERPRET, "--version").out), "--version")
    for width in (30, 40, 80, 200):
        done = run(INTERPRET, "--help", env={"COLUMNS": str(width)})
        longest = max(len(line) for line in done.out.splitlines())
        expect(done.returncode == RAN and longest <= width, f"--help at {width} columns has a line of {longest}", done)
    options = re.findall(r"^  (--[a-z-]+)", run(INTERPRET, "--help").out, re.M)
    expect(len(options) > 20 and len(options) == len(set(options)), "the options of --help")


def whys(*command, **options):
    done = run(*command, "--json", **options)
    expect(done.returncode == RAN, "--json", done)
    return [node["why"] for node in json.loads(done.out)["nodes"]]


def test_explain():
    """Each step says what was joined in its kernel, and why a slower one than native code ran it."""
    with Case() as c:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
                 helper.make_node("Relu", ["p"], ["r"], name="floor"), helper.make_node("Exp", ["r"], ["y"], name="power")]
        model = save(make_model(nodes, [value("x", ["n", 3])], [value("y", None)],
                                [numpy_helper.from_array(np.ones((3, 4), np.float32), "w")]), c.path("m.onnx"))
        joined = "epilogue: max, exp"
        why, = whys(RUN, model, "--no-vm")
        expect(joined in why and "VM" not in why and "compile" not in why, f"native: {why}")
        why, = whys(RUN, model, "--device", "vm")
        expect(why.startswith("the requested device is the VM") and joined in why, f"the VM: {why}")
        why, = whys(RUN, model, "--no-cache", env={"CC": c.path("no-such-compiler")})
        expect(("no-such-compiler" in why or "compile" in why) and joined in why, f"no compiler: {why}")
        done = run(PACK, model, "-o", c.path("m.uir"), "--quiet")
        expect(done.returncode == RAN, "a package", done)
        why, = whys(RUN, c.path("m.uir"))
        expect("not trusted" in why and joined in why, f"a package: {why}")
        why, = whys(RUN, c.path("m.uir"), "--trusted")
        expect("trusted" not in why and joined in why, f"a trusted package: {why}")
        for width in (30, 60, 120):
            done = run(RUN, model, "--device", "vm", "--explain", env={"COLUMNS": str(width)})
            shown = done.out[done.out.rindex("  k0_"):]
            longest = max(len(line) for line in shown.splitlines())
            expect(longest <= width and joined in " ".join(shown.split()), f"--explain at {width} columns", done)


def test_explain_choice():
    """Which tiles of how many the sizes chose, in words and in JSON; nothing of kernels that have no choice."""
    with Case() as c:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"), helper.make_node("Exp", ["x"], ["e"], name="power")]
        model = save(make_model(nodes, [value("x", ["n", 64])], [value("p", None), value("e", None)],
                                [numpy_helper.from_array(np.ones((64, 300), np.float32), "w")]), c.path("m.onnx"))
        for n, variant in ((1, 1), (700, 2)):
            command = [RUN, model, "--device", "vm:avx2", "--dim", f"n={n}"]
            done = run(*command, "--json")
            by = {node["name"]: node for node in json.loads(done.out)["nodes"]}
            choice = by["product"]["choice"]
            expect(choice["variant"] == variant and choice["variants"] == 2 and by["power"]["choice"] == {"variant": 1, "variants": 1},
                   f"the variant for {n}", done)
            shown = " ".join(run(*command, "--explain").out.split())
            expect(f"variant {variant} of 2" in shown and "variant 1 of 1" not in shown, f"what --explain says: {shown}")
            expect(("tiles" in choice) == ("tiles" in shown) == (variant == 2), f"tiles: {shown}")
            if variant == 2:
                columns, rows = choice["tiles"]
                expect(1 <= choice["row"] <= choice["rows"] and choice["units"] == -(-n // rows) * -(-300 // columns),
                       f"the choice is {choice}")
                expect(f"tiles {columns} x {rows} (row {choice['row']} of {choice['rows']}): {choice['units']} units of work, "
                       f"each estimated at {choice['unit_cost']}" in shown, shown)


UNITS = r"[\d.]+ ?(?:ns|us|ms|s|k|M|G|T)?"


def in_ms(text):
    number, unit = text.split()
    return float(number) * {"ns": 1e-6, "us": 1e-3, "ms": 1, "s": 1e3}[unit]


def scaled(text):
    number, *unit = text.split()
    return float(number) * {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get("".join(unit), 1)


def test_json_without_a_run():
    """--json goes with the lists and the version, and says why there was no run."""
    version = json.loads(run(RUN, "--version", "--json").out)
    expect(run(RUN, "--version").out == f"uir {version['uir']}\n" and version["version"] == 1, f"{version}")
    listed = json.loads(run(RUN, "--list-devices", "--json").out)
    devices, every = listed["devices"], {device["name"]: device for device in listed["all"]}
    expect(devices == read_devices(run(RUN, "--list-devices").out), f"{devices}")
    expect(devices == [name for name, device in every.items() if device["is_there"]], f"{every}")
    expect(all((device["why"] == "") == device["is_there"] for device in every.values()), f"{every}")
    expect("generic" in every["cpu"]["chips"] and "910B1" in every["ascend"]["chips"], f"{every}")
    ops = json.loads(run(RUN, "--list-ops", "--json").out)["ops"]
    lines = [f"{o['domain']}{'::' if o['domain'] else ''}{o['name']} {o['since_version']}  {o['engine']}" for o in ops]
    expect(lines == run(RUN, "--list-ops").out.splitlines(), "the same ops")
    with Case() as c:
        bad = c.write("bad.onnx", b"\x00\x01")
        for code, words, error in ((USAGE, ["--no-such", c.model], "invalid argument"), (BAD_FILE, [bad], "bad file"),
                                   (BAD_FILE, [c.path("none.onnx")], "not found"),
                                   (UNSUPPORTED, [save(hostile_model("x", "NoSuchOp"), c.path("m.onnx"))], "unsupported"),
                                   (BAD_FILE, [c.model, "--shape", "x=2x9"], "data does not fit the model")):
            done = fails(code, command=[INTERPRET, *words, "--json"])
            told = json.loads(done.out)
            expect(told["error"] == error and told["message"] in done.err.replace("\n  hint: ", " hint: "), f"{told}", done)
            expect(told["hint"] in done.err, f"{told}", done)
    documented = open(os.path.join(ROOT, "docs", "json.md")).read()
    for name in ("error", "message", "hint", "code", "ops", "devices", "uir", "since_version", "engine"):
        expect(f"`{name}`" in documented, f"docs/json.md lacks {name}")


def test_units():
    """Times and rates of any size have three digits and a unit."""
    with Case() as c:
        done = run(INTERPRET, c.model, "--bench", "--iterations", "5", "--profile")
        times = re.findall(r"(?<![\w.])([\d.]+) (?:ns|us|ms|s)\b", done.out) + re.findall(r"([\d.]+) [kMG]/s", done.out)
        expect(done.returncode == RAN and len(times) >= 7, "times with units", done)
        for number in times:
            expect(re.fullmatch(r"\d\.\d\d|\d\d\.\d|\d{3}", number), f"three digits: {number}", done)
        expect("0.000" not in done.out and "0.0 ms" not in done.out, "no time is zeros", done)


def explained(done):
    """What --explain says: per row the kernel, who ran it, its nodes, and the reason below, joined."""
    rows = []
    for line in done.out.splitlines():
        row = re.match(r"  (\S+) by (\w+): (.+)$", line)
        if row:
            rows.append([*row.groups(), ""])
        elif rows and re.match(r"      \S", line):
            rows[-1][3] = (rows[-1][3] + " " + line.strip()).strip()
        elif rows and re.match(r"    \S", line):
            rows[-1][2] += " " + line.strip()
        elif rows:
            break
    return rows


def test_explain_text():
    """Kernel, who ran it and its nodes, and below them why, word for word what --json says."""
    with Case() as c:
        nodes = [helper.make_node("Exp", ["x"], ["e"], name="power"), helper.make_node("Relu", ["e"], ["y"], name="floor"),
                 helper.make_node("TopK", ["y", "k"], ["v", "i"], name="best"),
                 helper.make_node("Cast", ["v"], ["d"], name="widen", to=TensorProto.DOUBLE),
                 helper.make_node("Erf", ["d"], ["z"], name="wide error")]
        model = save(make_model(nodes, [value("x", ["n", 300])], [value("z", None, TensorProto.DOUBLE), value("i", None, TensorProto.INT64)],
                                [numpy_helper.from_array(np.array([3]), "k")]), c.path("m.onnx"))
        done = run(RUN, model, "--no-vm", "--explain")
        expect(done.returncode == RAN, "--explain", done)
        shown = explained(done)
        told = json.loads(run(RUN, model, "--no-vm", "--json").out)["nodes"]
        expect(len(shown) == len(told) >= 3, f"{shown}\n{told}", done)
        for (kernel, by, names, why), node in zip(shown, told):
            wanted = " + ".join(f"{n['op']} {n['name']}{' (again)' if n['again'] else ''}" for n in node["nodes"])
            expect((kernel, by, names, why) == (node["kernel"], node["by"], wanted, node["why"]), f"{kernel}: {names}: {why}\n{node}")
            expect(names.startswith(f"{node['op']} {node['name']}"), f"the first is what it is known by: {names}\n{node}")
        by = {node["name"]: node for node in told}
        expect(by["floor"]["by"] == "native" and re.search(r"\bexp\b", by["floor"]["why"]), "what was joined in a kernel", done)
        expect(by["best"]["why"] == "'top_k' is a host operator", "a host operator", done)
        refused = by["wide error"]
        expect(refused["by"] == "host" and refused["why"].startswith("no kernel computes it: "), "a refused kernel", done)
        expect("no core unit of cpu executes unary.erf.f64" in refused["why"], "the instruction that is not there", done)
        fails(UNSUPPORTED, "2 nodes ran without a kernel", "node 'best' (TopK): 'top_k' is a host operator",
              command=[RUN, model, "--no-vm", "--no-fallback"])
        for kernel, by, names, why in explained(run(INTERPRET, model, "--explain")):
            expect(by == "interpreter" and not why, f"the interpreter: {kernel} {by} {why}")


@slow
def test_source():
    """Sources go out, build by their script, come back, and an edit of one shows."""
    with Case() as c:
        data, folder = write_set(c.path("d"), c.x, c.y), c.path("kernel's source")
        done = run(RUN, c.model, "--data", data, "--no-vm", "--no-fallback", "--dump-source", folder)
        files = sorted(os.listdir(folder))
        expect(done.returncode == RAN and "build.sh" in files and "kernels00.c" in files, f"--dump-source: {files}", done)
        done = run(["sh", os.path.join(folder, "build.sh")], cwd=c.folder)
        expect(done.returncode == RAN and "kernels.so" in os.listdir(folder), "build.sh", done)
        back = [RUN, c.model, "--data", data, "--quiet", "--no-vm", "--no-fallback", "--source", folder]
        done = run(back, "--json")
        report = json.loads(done.stdout)
        expect(done.returncode == RAN and report["compiled"] == 1 and report["calls"]["native"] == 1, "--source", done)
        phase = None
        for path in sorted(glob.glob(os.path.join(glob.escape(folder), "*.c"))):
            whole = open(path).read()
            phase = re.search(r"^void \w+_phase0\([^;{]*\{", whole, re.M)
            if phase:
                break
        expect(phase, "a phase in the source")
        open(path, "w").write(whole[:phase.end()] + "\n    return;\n" + whole[phase.end():])
        fails(DIFFERS, "output 'y'", command=back)
        expect(run(RUN, c.model, "--data", data, "--no-vm").returncode == RAN, "an edit stays out of the cache")
        open(path, "w").write("this is no C\nnor is this\n")
        done = fails(FAILED, os.path.basename(path), command=back)
        expect("\\x0a" not in done.err and len([l for l in done.err.splitlines() if l.startswith("    ")]) >= 3,
               "the compiler's lines", done)
        dump = [RUN, c.model, "--data", data, "--no-vm", "--no-fallback", "--dump-source", folder]
        fails(USAGE, os.path.basename(path), "edited", "--force", command=dump)
        expect(open(path).read().startswith("this is no C"), "the edit is still there")
        done = run(dump, "--force")
        expect(done.returncode == RAN and "this is no C" not in open(path).read(), "--force", done)
        expect(run(dump).returncode == RAN, "over what nobody edited")
        open(os.path.join(folder, "build.sh"), "a").write("# mine\n")
        fails(USAGE, "build.sh", "--force", command=dump)
        os.makedirs(c.path("foreign"))
        c.write(os.path.join("foreign", "kernels00.c"), "int mine;\n")
        fails(USAGE, "kernels00.c", "--force", command=dump[:-1] + [c.path("foreign")])
        fails(USAGE, "--force", command=[RUN, c.model, "--data", data, "--force"])
        os.makedirs(c.path("empty"))
        fails(BAD_FILE, "empty", "kernel sources", command=[RUN, c.model, "--source", c.path("empty")])
        fails(FAILED, "absent", command=[RUN, c.model, "--source", c.path("absent")])
        m = product_model()
        m.graph.node.append(helper.make_node("Exp", ["y"], ["z"]))
        m.graph.output[0].name = "z"
        fails(USAGE, "another model", "--dump-source", command=[RUN, save(m, c.path("other.onnx")), "--source", folder])
        own = open(os.path.join(folder, "kernels.txt")).readline().split()[-1]
        another = "cpu:avx2" if own == "generic" else "cpu:generic"
        if run(RUN, c.model, "--device", another, "--quiet").returncode == RAN:
            fails(USAGE, "another variant", command=[RUN, c.model, "--device", another, "--source", folder])
        os.remove(os.path.join(folder, "kernels.txt"))
        fails(BAD_FILE, "kernels.txt", "--dump-source", command=[RUN, c.model, "--source", folder])
        fails(FAILED, "--dump-source", command=[RUN, c.model, "--dump-source", c.path("absent", "deeper")])
        for device in ("vm", "interpreter"):
            fails(USAGE, "source", command=[RUN, c.model, "--device", device, "--source", folder])
        fails(USAGE, "--dump-source", command=[RUN, c.model, "--source", folder, "--dump-source", folder])
        expect(run(PACK, c.model, "-o", c.path("m.uir"), "--quiet", "--no-native").returncode == RAN, "a package")
        fails(UNSUPPORTED, "--source", "package", command=[RUN, c.path("m.uir"), "--source", folder])


def test_looking_inside():
    with Case() as c:
        for device in ("cpu:nosuch", "vm:nosuch"):
            fails(USAGE, "nosuch", "use one of", "avx2", command=[RUN, c.model, "--device", device])
        data = write_set(c.path("d"), c.x, c.y)
        for stage, texts in (("onnx", 1), ("primitives", 1), ("drop-dead", 1), ("all", 6)):
            done = run(RUN, c.model, "--data", data, "--quiet", env={"UIR_DUMP": stage})
            expect(done.returncode == RAN and done.err.count("module opset") >= texts, f"UIR_DUMP={stage}", done)
        for stage in ("nonsense", "fusion", "emit"):
            fails(USAGE, f"'{stage}'", "onnx, primitives, ", "drop-dead", "uir-opt",
                  command=[RUN, c.model, "--data", data], env={"UIR_DUMP": stage})
        for level in ("9", "x", "-1", "12"):
            fails(USAGE, "UIR_DEBUG", level, command=[RUN, c.model, "--data", data], env={"UIR_DEBUG": level})
        done = run(RUN, c.model, "--data", data, "--no-cache", env={"UIR_DEBUG": "2"})
        expect(done.returncode == RAN and " ms  " in done.err, "UIR_DEBUG=2", done)
        expect(run(PACK, c.model, "-o", c.path("m.uir"), "--quiet", "--no-native").returncode == RAN, "a package")
        fails(UNSUPPORTED, "UIR_DUMP", command=[RUN, c.path("m.uir")], env={"UIR_DUMP": "all"})


def test_plan():
    with Case() as c:
        cost = {}
        for n in (1, 64):
            done = run(RUN, c.model, "--device", "vm", "--plan", "--json", "--dim", f"batch={n}")
            expect(done.returncode == RAN and not done.stderr, "--plan", done)
            cost[n] = json.loads(done.out)
            expect(cost[n]["flops"] == n * 24 and cost[n]["launches"] == 1, f"{cost[n]}")
        expect(cost[64]["dram_bytes"] > cost[1]["dram_bytes"] > 0, f"{cost}")
        done = run(RUN, c.model, "--device", "vm", "--plan")
        expect(done.returncode == RAN and re.search(r"^operations +24$", done.out, re.M), "--plan as text", done)
        expect(re.search(rf"^modelled +{UNITS}$", done.out, re.M) and "measured on this machine with" in done.out, "what is modelled is called so", done)
        for report in cost.values():
            limits = report["limits"]
            expect(limits["bytes_per_second"] > 1e8 and limits["flops_per_second"] > 1e8, f"{limits}")
            for name in ("launches", "dram_bytes", "flops", "modelled_ms"):
                total = sum(k[name] for k in report["kernels"])
                expect(abs(total - report[name]) <= 1e-9 * total, f"the kernels' {name} and their sum: {report}")
            for k in report["kernels"]:
                bound = max(k["least_bytes"] / limits["bytes_per_second"], k["flops"] / limits["flops_per_second"])
                expect(k["least_bytes"] > 0 and abs(k["modelled_ms"] - 1e3 * bound) < 1e-9 + 1e-3 * bound, f"{k}")
        documented = open(os.path.join(ROOT, "docs", "json.md")).read()
        for name in (*cost[1], *cost[1]["kernels"][0], *cost[1]["limits"]):
            expect(f"`{name}`" in documented, f"docs/json.md lacks {name}")
        fails(USAGE, "did you mean 'batch'", command=[RUN, c.model, "--device", "vm", "--plan", "--dim", "bacth=2"])
        fails(UNSUPPORTED, "interpreter", command=[INTERPRET, c.model, "--plan"])


def test_profile():
    """Kernels with what they move and compute beside the machine's limits; the interpreter has no kernels to count."""
    with Case() as c:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"), helper.make_node("Softmax", ["p"], ["y"])]
        model = save(make_model(nodes, [value("x", ["n", 512])], [value("y", None)],
                                [numpy_helper.from_array(np.ones((512, 512), np.float32), "w")]), c.path("m.onnx"))
        done = run(RUN, model, "--device", "vm", "--profile", "--dim", "n=64")
        expect(done.returncode == RAN and "limits, measured on this machine" in done.out and "Modelled" in done.out,
               "--profile", done)
        product = re.search(rf"^  k\d+_matmul +1 +({UNITS}) +[\d.]+ +({UNITS}) +(\d+)% +({UNITS}) +(\d+)% +({UNITS})$", done.out, re.M)
        expect(product, "the row of the product", done)
        ms, of_peak, modelled = in_ms(product[1]), float(product[5]), in_ms(product[6])
        megabytes, megaflops = scaled(product[2]) / 1e6, scaled(product[4]) / 1e6
        expect(abs(megabytes - (64 * 512 * 2 + 512 * 512) * 4e-6) < 0.3 and abs(megaflops - 33.554) < 0.2, "what it takes", done)
        peak = float(re.search(r"([\d.]+) Gflop/s", done.out).group(1))
        expect(abs(of_peak - 100 * megaflops / ms / peak) <= 1 + of_peak / 20, "of the machine's peak", done)
        expect(modelled <= ms and abs(modelled - megaflops / peak) < 0.002, "the time that is modelled", done)
        done = run(INTERPRET, model, "--profile")
        expect(done.returncode == RAN and "Modelled" not in done.out and "%" in done.out, "the interpreter's profile", done)


def read_trace(path):
    """The slices by thread, and the names of the threads."""
    with open(path, encoding="utf-8") as f:
        events = json.load(f)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    slices = {}
    for e in events:
        if e["ph"] == "X":
            expect(e["dur"] >= 0 and e["ts"] >= 0 and e["name"] and set(e["args"]) == {"node", "op", "phase", "indices", "nodes"}, f"{e}")
            slices.setdefault(e["tid"], []).append(e)
    return slices, names


def test_trace():
    with Case() as c:
        for device in ("interpreter", "vm"):
            done = run(RUN, c.model, "--device", device, "--trace", c.path("trace.json"), "--quiet")
            expect(done.returncode == RAN and not done.stdout, "--trace", done)
            slices, names = read_trace(c.path("trace.json"))
            expect(any(e["args"]["node"] == "product" and e["cat"] == device for e in slices[0]), f"{slices}")
            expect(set(slices) <= set(names) and names[0] == "caller", f"{names}")
        fails(FAILED, "--trace", "absent", command=[INTERPRET, c.model, "--trace", c.path("absent", "x"), "--quiet"])


def test_trace_of_threads():
    """Of a kernel whose work is shared out, the threads' slices are all of it, and no thread does two things at once."""
    with Case() as c:
        m = save(make_model([helper.make_node("Exp", ["x"], ["h"], name="grow"), helper.make_node("MatMul", ["h", "h"], ["y"], name="product")],
                            [value("x", ["n", "n"])], [value("y", None)]), c.path("m.onnx"))
        seen, first = set(), None
        for _ in range(20):  # which threads come in time is the machine's to say
            done = run(RUN, m, "--device", "vm", "--threads", "4", "--dim", "n=192", "--trace", c.path("t.json"), "--quiet")
            expect(done.returncode == RAN, "--trace", done)
            slices, names = read_trace(c.path("t.json"))
            expect(set(names) == {0, 1, 2, 3} and set(slices) <= set(names), f"{names}")
            sums = {}
            for thread, of_thread in slices.items():
                end = 0
                for e in sorted(of_thread, key=lambda e: e["ts"]):
                    expect(e["ts"] >= end - 1e-3, f"two slices of thread {thread} at once: {e}")
                    end = e["ts"] + e["dur"]
                    key = (e["name"], e["args"]["phase"])
                    sums[key] = sums.get(key, 0) + e["args"]["indices"]
            first = first or sums
            expect(sums == first and len(sums) == 2, f"the indices that all threads did: {sums}, and before {first}")
            seen |= set(slices)
            if len(seen) > 1:
                break
        expect(len(seen) > 1, "no other thread did anything")


def test_bench():
    with Case() as c:
        done = run(INTERPRET, c.model, "--bench", "--seconds", "0.3", "--warmup", "0")
        expect(done.returncode == RAN and re.search(rf"P50 {UNITS} P90 {UNITS} P99 {UNITS} over [1-9]\d* runs, {UNITS}/s",
                                                    done.out), "--bench", done)
        done = run(INTERPRET, c.model, "--bench", "--seconds", "0")
        expect(done.returncode == RAN and "over 1 runs" in done.out, "--bench for no time runs once", done)
        for more, runs in ((["--iterations", "7"], 7), (["--iterations", "7", "--seconds", "0"], 1),
                           (["--iterations", "5", "--sessions", "3"], 15), (["--iterations", "4", "--sessions", "1"], 4)):
            for device in ("interpreter", "vm"):
                done = run(RUN, c.model, "--device", device, "--bench", "--json", "--threads", "1", *more)
                report = json.loads(done.stdout)
                expect(report["steady_ms"]["n"] == runs and report["runs_per_second"] > 0, f"{more}: {report}", done)
                several = int(more[3]) if "--sessions" in more else 1
                expect(report["sessions"] == {"n": several, "threads": 1}, f"{more}: {report['sessions']}")
        done = run(INTERPRET, c.model, "--bench", "--iterations", "3", "--sessions", "2", "--threads", "2")
        expect("over 6 runs in 2 sessions of 2 threads at once" in done.out, "--sessions", done)
        for words, more in ((["--iterations", "--bench"], ["--iterations", "3"]), (["--sessions", "--bench"], ["--sessions", "2"]),
                            (["at least 1"], ["--bench", "--iterations", "0"]), (["1 to 256"], ["--bench", "--sessions", "0"]),
                            (["1 to 256"], ["--bench", "--sessions", "999"]), (["--iterations"], ["--bench", "--iterations", "x"])):
            fails(USAGE, *words, command=[INTERPRET, c.model, *more])


@slow
def test_bench_waits_for_kernels():
    """On a cold cache too what is measured are the compiled kernels, and that they were waited for is said."""
    with Case() as c:
        for option in ("--bench", "--profile"):
            done = run(RUN, c.model, "--no-cache", option, "--iterations", "3")
            expect(done.returncode == RAN and re.search(rf"waited {UNITS} for the kernels", done.out) and "by cpu" in done.out,
                   f"{option} on a cold cache", done)
            report = json.loads(run(RUN, c.model, "--no-cache", option, "--iterations", "3", "--json").out)
            expect(report["ran_on"] == "cpu" and report["calls"]["vm"] == 0 and report["wait_ms"] > 0, f"{option}: {report}")
        expect("waited" not in run(RUN, c.model, "--device", "vm", "--bench", "--iterations", "3").out, "the VM waits for nothing")
        done = run(RUN, c.model, "--no-cache", "--bench", "--iterations", "3", env={"CC": "/bin/false"})
        expect(done.returncode == RAN and "by vm" in done.out and done.err.count("warning") == 1, "no compiler", done)


def test_profile_as_json():
    """Times by node and by kernel, medians of several runs."""
    with Case() as c:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"), helper.make_node("Softmax", ["p"], ["y"])]
        model = save(make_model(nodes, [value("x", ["n", 64])], [value("y", None)],
                                [numpy_helper.from_array(np.ones((64, 64), np.float32), "w")]), c.path("m.onnx"))
        for device in ("vm", "interpreter"):
            done = run(RUN, model, "--device", device, "--profile", "--json", "--dim", "n=16", "--seconds", "0.1")
            report = json.loads(done.out)
            profile = report["profile"]
            expect(done.returncode == RAN and profile["runs"] >= 1 and profile["ms"] > 0, f"{profile}", done)
            for part in (report["nodes"], profile["kernels"]):
                expect(part and abs(sum(k["ms"] for k in part) - profile["ms"]) <= 1e-6 * profile["ms"], f"{part}")
            expect(set(profile["limits"]) == {"threads", "bytes_per_second", "flops_per_second"}, "limits")
            documented = open(os.path.join(ROOT, "docs", "json.md")).read()
            for name in (*profile, *profile["kernels"][0]):
                expect(f"`{name}`" in documented, f"docs/json.md lacks {name}")
        expect(json.loads(run(RUN, model, "--device", "vm", "--json").out)["profile"] is None, "no profile unasked")
        done = run(RUN, model, "--device", "vm", "--profile", "--iterations", "9")
        expect("medians of 9 steady runs" in done.out, "how many runs", done)


# ---- what is said, and when ----
def with_compiler(c, script):
    """An environment whose compiler is the script, and whose cache is empty."""
    os.makedirs(c.path("programs"), exist_ok=True)
    os.chmod(c.write(os.path.join("programs", "cc"), f"#!/bin/sh\n{script}\n"), 0o755)
    return {"PATH": c.path("programs") + ":" + os.environ["PATH"], "CC": "", "XDG_CACHE_HOME": c.path("cache")}


def test_places_are_looked_at_first():
    """A folder that is not there is told before anything is compiled."""
    with Case() as c:
        marker = c.path("compiled")
        env = with_compiler(c, f"touch '{marker}'\nexit 1")
        os.mkdir(c.path("cache"))
        run(RUN, c.model, "--no-vm", env=env)
        expect(os.path.exists(marker), "the compiler is started otherwise")
        os.remove(marker)
        package = c.path("m.uir")
        expect(run(PACK, c.model, "-o", package, "--no-native", "--quiet").returncode == RAN, "a package")
        for place in ("none/there", "model.onnx/below"):
            for command in ([RUN, c.model, "--save"], [RUN, c.model, "--trace"], [RUN, c.model, "--dump-source"],
                            [RUN, c.model, "--reduce"], [PACK, c.model, "-o"], [OPT, c.model, "-o"], [os.path.join(BIN, "uir-tune"), c.model, "--save"],
                            [RUN_PACKAGE, package, "--trace"], [RUN_PACKAGE, package, "--save"]):
                done = fails(FAILED, "there", command=[*command, c.path(place)], env=env) if place.startswith("none") else \
                    fails(FAILED, "below", command=[*command, c.path(place)], env=env)
                expect(not os.path.exists(marker), "the compiler was started", done)


def test_no_compiler_is_said_once():
    """Where no compiler is, that is said in each start, once, and --explain says it too."""
    with Case() as c:
        env = {"PATH": "/nonexistent", "CC": "", "XDG_CACHE_HOME": c.path("cache")}
        for more in ([], ["--no-cache"], ["--explain"], ["--no-cache", "--explain"], ["--bench", "--iterations", "2"],
                     ["--profile", "--iterations", "2"], ["--json", "--explain"]):
            done = run(RUN, c.model, *more, env=env)
            expect(done.returncode == RAN and done.err.count("cannot be started") == 1 and done.err.count("install gcc") == 1,
                   "it is said once", done)
            expect("still being compiled" not in done.out + done.err, "nothing is compiled", done)
            if "--explain" in more:
                expect("cannot be started" in done.out, "--explain says why", done)
        fails(FAILED, "cannot be started", command=[RUN, c.model, "--no-vm", "--no-cache"], env=env)
        expect(not run(RUN, c.model, "--quiet", env=env).stderr, "nothing with --quiet")


def test_first_starts_are_said():
    """A start that the VM answers says so off a terminal, too."""
    with Case() as c:
        done = run(RUN, c.model, env=with_compiler(c, f"sleep 3\nexec {shutil.which('cc')} \"$@\""))
        expect(done.returncode == RAN and "by vm" in done.out and "give --no-vm" in done.err, "the note", done)


def test_causes_come_first():
    """The error comes first, what was made up behind it, as a note, and only where the cause may lie in it."""
    with Case() as c:
        two = save(make_model([helper.make_node("Add", ["a", "b"], ["y"], name="sum")], [value("a", ["n"]), value("b", ["m"])],
                              [value("y", None)]), c.path("two.onnx"))
        np.save(c.path("a.npy"), np.zeros((2, 3), np.float32))
        np.save(c.path("good.npy"), np.zeros(3, np.float32))
        done = fails(BAD_FILE, "'a'", command=[INTERPRET, two, "--input", "a=" + c.path("a.npy")])
        expect("made up" not in done.err and done.err.count("uir-run:") == 1, "the given input is refused", done)
        done = fails(BAD_FILE, "3 by 4 at axis 0", "made up", command=[INTERPRET, two, "--input", "a=" + c.path("good.npy"), "--dim", "m=4"])
        said = [line for line in done.err.splitlines() if line.startswith("uir-run")]
        expect(len(said) == 2 and "error" in said[0] and said[1].startswith("uir-run: note:"), "the cause first", done)
        expect("min(" not in done.err and "max(" not in done.err, "no words of the compiler", done)
        os.mkdir(c.path("one"))
        save(numpy_helper.from_array(np.zeros(3, np.float32)), c.path("one", "input_0.pb"))
        done = fails(BAD_FILE, "input_1", command=[INTERPRET, two, "--data", c.path("one")])
        expect(done.err.count("error:") == 1 and "made up" not in done.err, "one error", done)


def test_what_a_picture_becomes():
    """What was made of a picture is said; an input of rank 2 takes none."""
    with Case() as c:
        Image.fromarray(np.arange(48, dtype=np.uint8).reshape(4, 4, 3)).save(c.path("cat.png"))
        for shape, more, words in (([1, 3, "h", "w"], [], "x: cat.png 4x4 -> f32[1,3,4,4], values 0..255 (no --preprocess)"),
                                   ([1, 3, 2, 6], ["--preprocess", "scale=1/255"], "x: cat.png 4x4 -> f32[1,3,2,6], values 0")):
            m = save(make_model([helper.make_node("Neg", ["x"], ["y"])], [value("x", shape)], [value("y", None)]), c.path("m.onnx"))
            done = run(INTERPRET, m, "--input", "x=" + c.path("cat.png"), *more)
            expect(done.returncode == RAN and words in done.out, words, done)
        m = save(make_model([helper.make_node("Neg", ["x"], ["y"])], [value("x", ["n", 16])], [value("y", None)]), c.path("m.onnx"))
        fails(BAD_FILE, "cannot be a picture", "rank is 2", command=[INTERPRET, m, "--input", "x=" + c.path("cat.png")])


def test_homes_that_are_not_there():
    """The cache makes its own folder, and no home."""
    with Case() as c:
        home, parent = c.path("home"), c.path("caches")
        for env in ({"HOME": home, "XDG_CACHE_HOME": ""}, {"HOME": home, "XDG_CACHE_HOME": os.path.join(parent, "cache")},
                    {"HOME": home, "XDG_CACHE_HOME": os.path.join(parent, "cache", "")}):
            done = run(RUN, c.model, env=env)
            expect(done.returncode == RAN and not os.path.exists(home) and not os.path.exists(parent), f"{env}", done)
            expect("not cached" in done.err, f"{env}", done)
        os.mkdir(home)
        os.mkdir(parent)
        for env, made in (({"HOME": home, "XDG_CACHE_HOME": ""}, os.path.join(home, ".cache", "uir")),
                          ({"XDG_CACHE_HOME": os.path.join(parent, "cache")}, os.path.join(parent, "cache", "uir"))):
            done = run(RUN, c.model, env=env)
            expect(done.returncode == RAN and os.path.isdir(made), f"{env}", done)


# ---- surroundings ----
def test_locale_folder_and_colour():
    with Case() as c:
        data = write_set(c.path("d"), c.x, c.y)
        times = re.compile(r"[\d.]+ (ns|us|ms|s)\b")
        plain = times.sub("", run(INTERPRET, c.model, "--data", data).out)
        expect("\x1b" not in plain, "escape sequences without a terminal")
        for env in ({"LC_ALL": "de_DE.UTF-8"}, {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8"}, {"LC_ALL": "nonsense"},
                    {"NO_COLOR": "1"}, {"TERM": "dumb"}, {"COLUMNS": "10"}, {"HOME": "/nonexistent"}):
            done = run(INTERPRET, c.model, "--data", data, "--rtol", "1e-3", "--atol", "0.5e-6", env=env)
            expect(done.returncode == RAN and "0.0" not in env, "the surroundings", done)
            want = times.sub("", run(INTERPRET, c.model, "--data", data, "--rtol", "1e-3", "--atol", "0.5e-6").out)
            expect(times.sub("", done.out) == want, f"the text depends on {env}", done)
        done = run(INTERPRET, "model.onnx", "--data", "d", cwd=c.folder)
        expect(done.returncode == RAN, "relative paths", done)
        done = run(INTERPRET, c.model, "--data", data, cwd="/")
        expect(done.returncode == RAN, "absolute paths from elsewhere", done)


def test_closed_pipe():
    with Case() as c:
        nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"node{i}") for i in range(3000)]
        m = save(make_model(nodes, [value("v0", [3])], [value("v3000", None)]), c.path("long.onnx"))
        for command in ([*INTERPRET, m, "--explain"], [*INTERPRET, m, "--json"], [OPT, m]):
            for restore in (True, False):  # the signal as a shell leaves it, and ignored as some callers do
                p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, restore_signals=restore)
                p.stdout.readline()
                p.stdout.close()
                said = p.stderr.read()
                code = p.wait(60)
                expect(said == b"", f"a closed pipe is not silent: {said!r}")
                expect(code in (0, -signal.SIGPIPE), f"exit {code} on a closed pipe")


def long_model(c):
    return save(make_model([helper.make_node("MatMul", ["x", "x"], ["y"], name="product")], [value("x", ["n", "n"])],
                           [value("y", None)]), c.path("slow.onnx"))


def test_signals():
    with Case() as c:
        m = long_model(c)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            for more in (["--dim", "n=64", "--bench", "--seconds", "100"], ["--dim", "n=2500"]):
                p = subprocess.Popen([*INTERPRET, m, "--threads", "1", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                time.sleep(0.4)
                early = p.poll()
                p.send_signal(number)
                start = time.monotonic()
                out, err = p.communicate(timeout=60)
                expect(early is None, "the run was over before the signal came")
                expect(p.returncode == code, f"exit {p.returncode} instead of {code} after {number!r}\n{err}")
                expect(not out and not err, f"an interrupted run says {out!r} {err!r}")
                expect(time.monotonic() - start < 20, "a signal ends the run soon")


def deep_model(c, layers=24):
    """Of many different kernels: each stage of its check takes a while."""
    nodes, weights, last = [], [], "x"
    for i in range(layers):
        weights.append(numpy_helper.from_array(np.full((8 + i, 8 + i - (i > 0), 3, 3), 1 / 64, np.float32), f"w{i}"))
        nodes += [helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], name=f"conv{i}", pads=[1] * 4),
                  helper.make_node("Tanh", [f"c{i}"], [f"t{i}"], name=f"tanh{i}")]
        last = f"t{i}"
    return save(make_model(nodes, [value("x", [1, 8, 24, 24])], [value(last, None)], weights), c.path("deep.onnx"))


@slow
def test_signals_during_a_check():
    """Wherever it is: nothing that was broken off is told as a difference."""
    with Case() as c:
        m = deep_model(c)
        for number, code, check in ((signal.SIGINT, 130, "--check"), (signal.SIGTERM, 143, "--check=all")):
            for wait in (0.1, 0.5, 1.2, 2.5):
                p = subprocess.Popen([RUN, m, check, "--no-cache"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                time.sleep(wait)
                early = p.poll()
                p.send_signal(number)
                start = time.monotonic()
                out, err = p.communicate(timeout=60)
                expect(early is None, "the check was over before the signal came")
                expect(p.returncode == code and not err, f"exit {p.returncode} instead of {code} after {wait} s: {err!r}")
                expect(b"differs" not in out and time.monotonic() - start < 20, f"{check} went on: {out!r}")


def on_terminal(*command, columns=80, env=None):
    """What the command shows on a terminal of that width, and its exit code."""
    try:
        child, end = pty.fork()
    except OSError as error:
        raise Lacking(f"there is no pseudo-terminal: {error}") from error
    if child == 0:
        import fcntl
        import termios
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.execve(command[0], command, dict(os.environ, **(env or {})))
    shown, start = b"", time.monotonic()
    while time.monotonic() - start < 60:
        ready, _, _ = select.select([end], [], [], 1)
        try:
            data = os.read(end, 65536) if ready else None
        except OSError:
            break
        if data == b"":
            break
        shown += data or b""
    _, state = os.waitpid(child, 0)
    os.close(end)
    return shown.decode(), os.waitstatus_to_exitcode(state)


@slow
def test_terminal():
    with Case() as c:
        m = long_model(c)
        shown, code = on_terminal(*INTERPRET, c.model)
        expect(code == RAN and "\x1b" not in shown and "%" not in shown and "running" not in shown,
               f"what is soon done shows progress: {shown!r}")
        for columns in (20, 80):
            shown, code = on_terminal(*INTERPRET, m, "--dim", "n=64", "--bench", "--seconds", "2.6", columns=columns,
                                      env={"NO_COLOR": "1"})
            expect(code == RAN and re.search(r"\r\d+ s  running", shown) and "\x1b" not in shown, f"no progress: {shown!r}")
            progress = [part for part in shown.split("\r") if re.match(r"\d+ s  ", part)]
            expect(all(len(part) < columns for part in progress), f"progress is wider than {columns}: {progress}")
            expect(re.search(r"\r +\r[a-z]", shown), f"progress is not removed: {shown!r}")
        shown, code = on_terminal(RUN, deep_model(c, 6), "--check", "--no-cache")
        expect(code == RAN and re.search(r"\r\d+ s  checking: ", shown), f"no progress of a check: {shown!r}")
        shown, _ = on_terminal(*INTERPRET, m, "--dim", "n=64", "--bench", "--seconds", "1.6", "--quiet")
        expect(shown == "", f"--quiet shows {shown!r}")
        shown, _ = on_terminal(*INTERPRET, "--help", columns=40)
        expect(max(len(line) for line in shown.splitlines()) <= 40, "--help on a terminal of 40 columns")


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
