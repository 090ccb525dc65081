#!/usr/bin/env python3
"""uir-run --info: what a model or package holds, as text and as JSON, held to what onnx itself reads in the file.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import json
import os
import sys
from collections import Counter

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cli import (BAD_FILE, DIGITS, HOSTILE, PACK, RAN, RUN, RUN_PACKAGE, UNSUPPORTED, USAGE, Case, expect, external_model,
                 fails, hostile_model, is_clean, make_model, run, run_tests, save, value)


def told(path, program=RUN):
    text, done = run(program, path, "--info"), run(program, path, "--info", "--json")
    for d in (text, done):
        expect(d.returncode == RAN and not d.err and is_clean(d.stdout.replace(b"\t", b"")), "--info", d)
    return json.loads(done.out), text.out


def all_nodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in ([attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs):
                yield from all_nodes(body)


def check_facts(path, info, model):
    """What the file says, by onnx."""
    nodes = list(all_nodes(model.graph)) + [n for f in model.functions for n in f.node]
    ops = Counter((n.domain or "ai.onnx", n.op_type) for n in nodes)
    expect({(o["domain"], o["op"]): o["count"] for o in info["ops"]} == dict(ops), f"ops: {info['ops']}")
    expect([o["count"] for o in info["ops"]] == sorted(ops.values(), reverse=True), "the most used come first")
    expect(info["nodes"] == len(nodes), f"{info['nodes']} nodes")
    expect(info["opsets"] == [{"domain": o.domain or "ai.onnx", "version": o.version} for o in model.opset_import], "opsets")
    expect(info["ir_version"] == model.ir_version and info["producer"] == model.producer_name, "who made it")
    expect(info["producer_version"] == model.producer_version and info["graph"] == model.graph.name, "who made it")
    expect(info["parameters"] == sum(int(np.prod(t.dims)) for t in model.graph.initializer), f"{info['parameters']} parameters")
    expect([(m["key"], m["value"]) for m in info["metadata"]] == [(m.key, m.value) for m in model.metadata_props], "metadata")
    if not info["package"]:
        expect(info["file_bytes"] == os.path.getsize(path), "the file's size")


def rich_model():
    body = helper.make_graph([helper.make_node("Identity", ["on"], ["still"]), helper.make_node("Neg", ["v"], ["w"])], "body",
                             [value("i", [], TensorProto.INT64), value("on", [], TensorProto.BOOL), value("v", ["batch", "past + new"])],
                             [value("still", [], TensorProto.BOOL), value("w", ["batch", "past + new"])])
    twice = helper.make_function("local", "Twice", ["p"], ["q"], [helper.make_node("Add", ["p", "p"], ["q"])], [helper.make_opsetid("", 20)])
    nodes = [helper.make_node("Concat", ["a", "b"], ["c"], axis=1), helper.make_node("Loop", ["trips", "", "c"], ["l"], body=body),
             helper.make_node("Twice", ["l"], ["t"], domain="local"), helper.make_node("Add", ["t", "bias"], ["y"]),
             helper.make_node("Neg", ["y"], ["z"])]
    m = make_model(nodes, [value("a", ["batch", "past"]), value("b", ["batch", "new"]), value("trips", [], TensorProto.INT64),
                           value("mask", ["past + new", 4], TensorProto.BOOL)],
                   [value("y", None), value("z", None)], [numpy_helper.from_array(np.ones((1, 1), np.float32), "bias"),
                                                          numpy_helper.from_array(np.arange(5), "unused")])
    m.functions.append(twice)
    m.opset_import.append(helper.make_opsetid("local", 1))
    m.producer_name, m.producer_version, m.model_version, m.domain = "someone", "1.2", 7, "org.example"
    helper.set_model_props(m, {"author": "nobody", "uir/facts": "3", "uir": "x"})
    return m


def test_what_a_model_holds():
    with Case() as c:
        for model in (onnx.load(DIGITS), rich_model(), onnx.load(c.model)):
            path = save(model, c.path("m.onnx"))
            info, text = told(path)
            check_facts(path, info, model)
            expect(info["package"] is None and not info["problems"], "neither package nor problem")
            for part in [i["name"] for i in info["inputs"] + info["outputs"]] + [o["op"] for o in info["ops"]]:
                expect(part in text, f"the text lacks {part}\n{text}")
        info, text = told(save(rich_model(), c.path("m.onnx")))
        expect(info["model_version"] == 7 and info["domain"] == "org.example" and info["functions"] == 1, "facts")
        expect([d["name"] for d in info["dims"]] == ["batch", "past", "new"], f"dims: {info['dims']}")
        expect(info["dims"][0]["inputs"] == [{"name": "a", "axis": 0}, {"name": "b", "axis": 0}], "where a dim is")
        shapes = {i["name"]: (i["dtype"], i["shape"]) for i in info["inputs"]}
        expect(shapes["a"] == ("f32", ["batch", "past"]) and shapes["trips"] == ("i64", []) and shapes["mask"][0] == "bool", f"{shapes}")
        expect(shapes["mask"][1][1] == 4 and "past" in shapes["mask"][1][0] and "new" in shapes["mask"][1][0], f"{shapes}")
        expect(info["weight_bytes"] == 4 + 40, f"{info['weight_bytes']} bytes of weights")
        # Dims that are told can be given.
        for d in info["dims"]:
            expect(run(RUN, c.path("m.onnx"), "--device", "interpreter", "--plan", "--dim", d["name"] + "=2").returncode != USAGE, d["name"])


def maps_model(keys, more=(), inputs=None):
    """x as a list of maps, `keys` being those of each ZipMap; the last goes through Identity, then `more` nodes."""
    def maps(kind):
        return helper.make_sequence_type_proto(helper.make_map_type_proto(kind, helper.make_tensor_type_proto(TensorProto.FLOAT, [])))
    nodes, outputs = [], []
    for i, k in enumerate(keys):
        text = isinstance(k[0], str)
        attributes = {"classlabels_strings" if text else "classlabels_int64s": k}
        nodes.append(helper.make_node("ZipMap", ["x"], [f"z{i}"], domain="ai.onnx.ml", **attributes))
        outputs.append(helper.make_value_info(f"z{i}", maps(TensorProto.STRING if text else TensorProto.INT64)))
    nodes.append(helper.make_node("Identity", [nodes[-1].output[0]], ["last"]))
    outputs.append(helper.make_value_info("last", outputs[-1].type))
    model = make_model(nodes + list(more), inputs or [value("x", ["n", 3])], outputs + [value(n.output[0], None) for n in more])
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    return model


def test_keys_of_maps():
    keys = [["setosa", "", "gr\u00fcn\u001b[31m"], [5, -7, 2**62]]
    with Case() as c:
        path, package = save(maps_model(keys), c.path("m.onnx")), c.path("m.uir")
        np.save(c.path("x.npy"), np.arange(6, dtype=np.float32).reshape(2, 3))
        expect(run(PACK, path, "-o", package, "--no-native").returncode == RAN, "packing")
        shown = [["setosa", "", "gr\u00fcn\\x1b[31m"]] + [[str(k) for k in keys[1]]] * 2
        for file, program in ((path, RUN), (package, RUN), (package, RUN_PACKAGE)):
            info, text = told(file, program)
            outputs = info["outputs"]
            expect([o["keys"] for o in outputs] == shown, f"keys: {outputs}")
            expect(all(o["kind"] == "tensor" and o["dtype"] == "f32" and o["shape"][1] == 3 for o in outputs), f"{outputs}")
            expect("columns of z1: 5, -7, 4611686018427387904" in text, text)
        for again in range(2):  # compiled, then out of the cache
            done = run(RUN, path, "--device", "vm", "--input", "x=" + c.path("x.npy"), "--save", c.path(f"out{again}"), "--cache", c.path("cache"))
            expect(done.returncode == RAN and done.out.count("    columns: 5, -7, 4611686018427387904\n") == 2, "a run", done)
            expect("columns: setosa, , gr\u00fcn\\x1b[31m" in done.out, "a run", done)
            with open(c.path(f"out{again}", "index.json"), encoding="utf-8") as file:
                saved = [numpy_helper.to_array(onnx.load_tensor(c.path(f"out{again}", v["file"]))) for v in json.load(file)["values"]]
            expect(all((s == np.load(c.path("x.npy"))).all() for s in saved) and len(saved) == 3, "the values")


def test_maps_that_are_not_supported():
    with Case() as c:
        attributes = {"domain": "ai.onnx.ml"}
        fails(BAD_FILE, "2 keys for 3 columns", command=(RUN, save(maps_model([["a", "b"]]), c.path("m.onnx"))))
        bad = maps_model([["a", "b", "c"]])
        del bad.graph.node[0].attribute[:]
        fails(BAD_FILE, "attribute classlabels_strings or classlabels_int64s is missing", command=(RUN, save(bad, c.path("m.onnx"))))
        kind = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
        for op, more in (("CastMap", {}), ("DictVectorizer", {"int64_vocabulary": [1, 2]})):
            m = maps_model([["a", "b", "c"]], [helper.make_node(op, ["m"], ["d"], **more, **attributes)],
                           [value("x", ["n", 3]), helper.make_value_info("m", kind)])
            fails(UNSUPPORTED, "'m' is a map", f"the op '{op}'", command=(RUN, save(m, c.path("m.onnx"))))


def test_who_made_a_package():
    """Which uir, whose key, which precision; and of a package of another version which uir that was."""
    with Case() as c:
        secret, p = c.path("key"), c.path("m.uir")
        expect(run(PACK, "--make-key", secret).returncode == RAN, "a key")
        version = run(RUN, "--version").out.strip()
        digits = open(secret + ".pub").read().split()[1]
        for precision in ([], ["--precision", "f16"]):
            for signing in ([], ["--sign", secret]):
                expect(run(PACK, c.model, "-o", p, "--no-native", *precision, *signing).returncode == RAN, "packing")
                for program in (RUN, RUN_PACKAGE):
                    info, text = told(p, program)
                    package = info["package"]
                    expect(package["made_by"] == version and version in text, f"{package}")
                    expect(package["precision"] == (precision or ["", "f32"])[1] and package["precision"] in text, f"{package}")
                    expect(package["signed_by"] == (digits if signing else None) and not package["signature_checked"], f"{package}")
                    expect(("not checked" in text and digits in text) if signing else "signed      no\n" in text, text)
        done = run(RUN, p, "--info", "--trust", secret + ".pub")
        expect(done.returncode == RAN and f"{digits}, trusted" in " ".join(done.out.split()), "a key that is trusted", done)
        data = bytearray(open(p, "rb").read())
        for number, maker, words in ((9, 0, "an older uir"), (77, 3002001, "uir 3.2.1")):
            data[8:12], data[24:28] = number.to_bytes(4, "little"), maker.to_bytes(4, "little")
            c.write("other.uir", bytes(data))
            for program in (RUN, RUN_PACKAGE):
                for more in ([], ["--info"]):
                    fails(BAD_FILE, f"version {number}, made by {words}; this is {version}", command=(program, c.path("other.uir"), *more))


def test_sizes_of_external_data():
    with Case() as c:
        np.arange(12, dtype=np.float32).tofile(c.path("w.bin"))
        info, text = told(save(external_model("w.bin"), c.path("m.onnx")))
        expect(info["external_bytes"] == 48 and info["weight_bytes"] == 48 and info["parameters"] == 12, f"{info}")
        expect("other files" in text, text)


def test_what_a_package_holds():
    with Case() as c:
        for model in (rich_model(), onnx.load(DIGITS)):
            m, p = save(model, c.path("m.onnx")), c.path("m.uir")
            for devices, isas in ((["--no-native"], []), (["--device", "cpu:generic,cpu:avx2"], ["generic", "avx2"])):
                done = run(PACK, m, "-o", p, *devices)
                expect(done.returncode == RAN, "packing", done)
                for program in (RUN, RUN_PACKAGE):
                    info, text = told(p, program)
                    check_facts(p, info, model)
                    package = info["package"]
                    expect(info["file_bytes"] == os.path.getsize(p) and package["version"] >= 4 and package["kernels"] > 0, f"{package}")
                    expect([n["isa"] for n in package["native"]] == isas, f"{package}")
                    expect(all(n["bytes"] > 0 and n["runs_here"] in (True, False) for n in package["native"]), f"{package}")
                    expect(all(i in text for i in isas) and "package" in text, text)
                    expect([d["name"] for d in info["dims"]] == [d["name"] for d in told(m)[0]["dims"]], f"dims {info['dims']}")
                    expect(package["tolerance"] is None, f"{package}")
        c.write("info.json", '{"tolerance": {"rtol": 0.5, "atol": 0.25}}')
        expect(run(PACK, c.model, "-o", p, "--no-native").returncode == RAN, "packing with a tolerance")
        info, text = told(p, RUN_PACKAGE)
        expect(info["package"]["tolerance"]["rtol"] == 0.5 and info["package"]["tolerance"]["atol"] == 0.25 and "rtol 0.5" in text, text)
        # A model's own metadata are never taken for what is noted of it, and are what they were.
        save(rich_model(), m)
        expect(run(PACK, m, "-o", p, "--no-native").returncode == RAN, "packing")
        expect(told(p)[0]["metadata"] == told(m)[0]["metadata"], "metadata of a package")


def test_models_that_are_not_supported():
    """They are described all the same, with what is wrong."""
    with Case() as c:
        model = make_model([helper.make_node("Frobnicate", ["x"], ["h"], name="first"), helper.make_node("Relu", ["h"], ["y"])],
                           [value("x", ["batch", 3]), value("w", [2])], [value("y", ["batch", None])],
                           [numpy_helper.from_array(np.ones(2, np.float32), "w")])
        path = save(model, c.path("m.onnx"))
        info, text = told(path)
        check_facts(path, info, model)
        expect(len(info["problems"]) == 1 and "Frobnicate" in info["problems"][0] and "Frobnicate" in text, f"{info['problems']}")
        expect([i["name"] for i in info["inputs"]] == ["x"] and info["inputs"][0]["shape"] == ["batch", 3], f"{info['inputs']}")
        expect(info["outputs"][0]["shape"] == ["batch", None] and [d["name"] for d in info["dims"]] == ["batch"], f"{info['outputs']}")


def test_hostile_names():
    with Case() as c:
        for name in HOSTILE:
            for op in ("Relu", "Foo" + name):
                model = hostile_model(name, op)
                model.producer_name = model.graph.name = name
                helper.set_model_props(model, {name: name})
                info, _ = told(save(model, c.path("m.onnx")))
                expect(len(info["metadata"]) == 1 and len(info["inputs"]) == 1, f"{name!r}: {info}")
        expect(not os.path.exists(c.path("pwned")), "a name was run")


def test_files_that_are_none():
    with Case() as c:
        for program in (RUN, RUN_PACKAGE):
            for data in (b"", b"\xff" * 100, b"UIRPACK\n" + b"x" * 100):
                done = run(program, c.write("bad", data), "--info")
                expect(done.returncode != RAN and done.err and not done.out, f"{data[:10]}", done)
        fails(BAD_FILE, "nosuch", command=[RUN, c.path("nosuch.onnx"), "--info"])


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
