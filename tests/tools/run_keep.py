#!/usr/bin/env python3
"""What uir-run shows of the inside of a model: --keep, --save with its index, --compare-with, --no-fusion.

In: the programs in $UIR_BIN; onnxruntime as the other opinion. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import json
import os
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from cli import (BAD_FILE, DIFFERS, DIGITS, HOSTILE, INTERPRET, PACK, RAN, RUN, RUN_PACKAGE, UNSUPPORTED, USAGE, Case,
                 expect, fails, is_clean, make_model, run, run_tests, save, value)

DEVICES = ("interpreter", "vm", "cpu")
DIGITS_DATA = os.path.join(os.path.dirname(DIGITS), "test_data_set_0")


def chain(factor=2.0, names=("first", "second", "third", "")):
    """x * factor, exp, sum, and one nameless node."""
    nodes = [helper.make_node("Mul", ["x", "f"], ["a"], name=names[0]), helper.make_node("Exp", ["a"], ["b"], name=names[1]),
             helper.make_node("ReduceSum", ["b"], ["c"], name=names[2]), helper.make_node("Sqrt", ["c"], ["d"], name=names[3]),
             helper.make_node("Neg", ["d"], ["y"], name="last")]
    return make_model(nodes, [value("x", ["n", 3])], [value("y", None)],
                      [numpy_helper.from_array(np.array([factor], np.float32), "f")])


def expected(x, factor=2.0):
    a = x * np.float32(factor)
    b = np.exp(a)
    c = b.sum(keepdims=True)
    return {"a": a, "b": b, "c": c, "d": np.sqrt(c), "y": -np.sqrt(c)}


def read_saved(folder):
    """Name to array, by the index, and the index's entries by name."""
    with open(os.path.join(folder, "index.json"), encoding="utf-8") as f:
        entries = json.load(f)["values"]
    expect(set(os.listdir(folder)) == {e["file"] for e in entries} | {"index.json"}, f"what lies in {folder}")
    arrays = {}
    for e in entries:
        path = os.path.join(folder, e["file"])
        array = np.load(path) if path.endswith(".npy") else numpy_helper.to_array(onnx.load_tensor(path))
        expect(list(array.shape) == e["shape"], f"the index says {e}")
        arrays[e["name"]] = array
    return arrays, {e["name"]: e for e in entries}


def with_input(c):
    np.save(c.path("x.npy"), np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3))
    return np.load(c.path("x.npy")), ["--input", "x=" + c.path("x.npy")]


# ---- --keep and --save ----
def test_values_by_name_on_every_device():
    with Case() as c:
        m = save(chain(), c.path("m.onnx"))
        x, given = with_input(c)
        want = expected(x)
        cases = ((["first"], ["y", "a"]), (["a"], ["y", "a"]), (["d"], ["y", "d"]), (["third", "b", "third"], ["y", "c", "b"]),
                 (["all"], ["y", "a", "b", "c", "d"]), (["last"], ["y"]), (["x", "f"], ["y", "x", "f"]), (["second", "all"], ["y", "b", "a", "c", "d"]))
        for device in DEVICES:
            for turn in ("compiled", "from the cache"):
                for i, (keep, names) in enumerate(cases):
                    folder = c.path(f"{device} {turn} {i}")
                    done = run(RUN, m, "--device", device, *given, *(w for k in keep for w in ("--keep", k)), "--save", folder,
                               "--format", ("pb", "npy")[i % 2], "--json", *(["--no-vm"] if device == "cpu" else []))
                    expect(done.returncode == RAN, f"{device}, {turn}, {keep}", done)
                    expect([o["name"] for o in json.loads(done.out)["outputs"]] == names, f"{keep}: other outputs", done)
                    arrays, entries = read_saved(folder)
                    expect(list(entries) == names, f"{keep}: the index has {list(entries)}")
                    for name, array in arrays.items():
                        right = {**want, "x": x, "f": np.array([2], np.float32)}[name]
                        expect(array.shape == right.shape and np.allclose(array, right, 1e-5, 1e-6), f"{device} {name} is {array}")
                        expect(entries[name]["kept"] == (name != "y"), f"kept: {entries[name]}")
            _, entries = read_saved(c.path(f"{device} from the cache 4"))
            told = {n: (e["node"], e["op"], e["place"]) for n, e in entries.items()}
            expect(told == {"a": ("first", "Mul", 1), "b": ("second", "Exp", 2), "c": ("third", "ReduceSum", 3), "d": ("d", "Sqrt", 4),
                            "y": ("last", "Neg", 5)}, f"{device}: {told}")


def test_what_was_kept_does_not_stay():
    """The next run without --keep has the model's own outputs, whatever the cache holds."""
    with Case() as c:
        m = save(chain(), c.path("m.onnx"))
        for keep in ([], ["--keep", "a"], ["--keep", "b"], ["--keep", "all"], ["--no-fusion"], []):
            done = run(RUN, m, "--cache", c.path("cache"), "--device", "vm", "--json", *keep)
            names = [o["name"] for o in json.loads(done.out)["outputs"]]
            expect(names[1:] == {"a": ["a"], "b": ["b"], "all": ["a", "b", "c", "d"]}.get((keep or [""])[-1], []), f"{keep}: {names}", done)


def test_all_values_are_those_of_another_runtime():
    import onnxruntime
    model = onnx.load(DIGITS)
    names = [o for n in model.graph.node for o in n.output]
    known = {o.name for o in model.graph.output}
    model.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in names if n not in known)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    picture = numpy_helper.to_array(onnx.load_tensor(os.path.join(DIGITS_DATA, "input_0.pb")))
    want = dict(zip(names, session.run(names, {session.get_inputs()[0].name: picture})))
    with Case() as c:
        for options in (["--device", "interpreter"], ["--device", "vm"], ["--no-vm"], ["--no-vm", "--no-fusion"]):
            folder = c.path(options[-1])
            done = run(RUN, DIGITS, "--data", DIGITS_DATA, "--keep", "all", "--save", folder, *options)
            expect(done.returncode == RAN, f"{options}", done)
            arrays, _ = read_saved(folder)
            expect(set(arrays) == set(names), f"{set(names) ^ set(arrays)} on one side alone")
            for n in names:
                expect(np.allclose(arrays[n], want[n], 1e-3, 1e-4 * np.abs(want[n]).max() + 1e-6), f"{options}: {n} differs")


def test_hostile_names():
    with Case() as c:
        for i, name in enumerate(HOSTILE):
            m = save(make_model([helper.make_node("Neg", ["x"], [name], name=name + "n"), helper.make_node("Neg", [name], ["y"])],
                                [value("x", [2])], [value("y", None)]), c.path("m.onnx"))
            for keep in (name, name + "n", "all"):
                done = run(INTERPRET, m, "--keep=" + keep, "--save", f"saved{i}", "--format", "npy", cwd=c.folder)
                expect(done.returncode == RAN and is_clean(done.stdout + done.stderr), f"keeping {keep!r}", done)
                _, entries = read_saved(c.path(f"saved{i}"))
                expect(len(entries) == 2 and all(os.path.basename(e["file"]) == e["file"] for e in entries.values()), f"{entries}")
            done = run(INTERPRET, m, "--keep", "all", "--compare-with", f"saved{i}", "--random", "1", cwd=c.folder)
            expect(done.returncode == DIFFERS and is_clean(done.stdout + done.stderr), f"comparing {name!r}", done)
        expect(not os.path.exists(c.path("pwned")), "a name was run")


def test_functions_and_bodies():
    """A call is a node; so is what it was inlined to. What a loop's body makes has no one value."""
    double = helper.make_function("local", "Twice", ["p"], ["q"], [helper.make_node("Add", ["p", "p"], ["s"], name="inner"),
                                                                 helper.make_node("Neg", ["s"], ["q"])],
                                  [helper.make_opsetid("", 20)])
    body = helper.make_graph([helper.make_node("Identity", ["on"], ["still"]), helper.make_node("Neg", ["v"], ["w"], name="in the body")],
                             "body", [value("i", [], TensorProto.INT64), value("on", [], TensorProto.BOOL), value("v", [2])],
                             [value("still", [], TensorProto.BOOL), value("w", [2])])
    nodes = [helper.make_node("Twice", ["x"], ["t"], domain="local", name="call"),
             helper.make_node("Loop", ["trips", "", "t"], ["l"], body=body, name="loop"), helper.make_node("Neg", ["l"], ["y"])]
    m = make_model(nodes, [value("x", [2]), value("trips", [], TensorProto.INT64)], [value("y", None)])
    m.functions.append(double)
    m.opset_import.append(helper.make_opsetid("local", 1))
    with Case() as c:
        path = save(m, c.path("m.onnx"))
        for keep in ("call", "t", "loop"):
            done = run(INTERPRET, path, "--keep", keep, "--save", c.path("s"))
            expect(done.returncode == RAN and len(read_saved(c.path("s"))[0]) == 2, keep, done)
            shutil.rmtree(c.path("s"))
        done = run(INTERPRET, path, "--keep", "all", "--save", c.path("s"))
        expect(done.returncode == RAN and {"t", "l", "y"} < set(read_saved(c.path("s"))[0]), "all values", done)
        fails(USAGE, "in the body", "loop or branch", command=[INTERPRET, path, "--keep", "in the body"])
        fails(USAGE, "'w'", "loop or branch", command=[INTERPRET, path, "--keep", "w"])


def test_values_that_no_kernel_makes():
    """Of all values, what is no tensor of numbers is left out, so that kernels still run the rest; by name it is kept."""
    nodes = [helper.make_node("SequenceConstruct", ["x", "x"], ["s"], name="list"), helper.make_node("SequenceLength", ["s"], ["k"]),
             helper.make_node("Cast", ["k"], ["y"], to=1)]
    with Case() as c:
        m = save(make_model(nodes, [value("x", [2, 3])], [value("y", None)]), c.path("m.onnx"))
        for device in DEVICES:
            done = run(RUN, m, "--device", device, "--keep", "all", "--save", c.path(device))
            expect(done.returncode == RAN and done.err.count("are left out of the outputs") == 1, device, done)
            expect(list(read_saved(c.path(device))[0]) == ["y", "k"], f"{device}: {os.listdir(c.path(device))}")
        done = run(INTERPRET, m, "--keep", "list", "--save", c.path("named"))
        expect(done.returncode == RAN and len(os.listdir(c.path("named"))) == 3, "a sequence by name", done)


def test_names_that_are_none():
    with Case() as c:
        m = save(chain(), c.path("m.onnx"))
        for device in DEVICES:
            done = fails(USAGE, "'secnd'", "did you mean 'second'", "'nowhere'", command=[RUN, m, "--device", device, "--keep", "secnd", "--keep", "nowhere"])
            expect(done.err.count("hint") == 2, "each wrong name once", done)
        fails(USAGE, "--keep", command=[RUN, m, "--keep", ""])
        fails(USAGE, "--reduce", "keep", command=[RUN, m, "--reduce", c.path("o.onnx"), "--keep", "all"])
        for options in ("--check", "--reduce=" + c.path("o.onnx")):
            fails(USAGE, "--no-fusion", command=[RUN, m, "--no-fusion", options])
        p = c.path("m.uir")
        expect(run(PACK, m, "-o", p, "--no-native").returncode == RAN, "a package")
        fails(UNSUPPORTED, "--keep", "package", command=[RUN, p, "--keep", "all"])
        fails(UNSUPPORTED, "--no-fusion", "package", command=[RUN, p, "--no-fusion"])
        fails(UNSUPPORTED, "--keep", "uir-run, which has this option", command=[RUN_PACKAGE, p, "--keep", "all"])


# ---- --compare-with ----
def test_the_first_node_that_differs():
    with Case() as c:
        _, given = with_input(c)
        one, other = save(chain(), c.path("one.onnx")), c.path("other.onnx")
        expect(run(RUN, one, *given, "--device", "vm", "--keep", "all", "--save", c.path("A")).returncode == RAN, "saving")
        for device in DEVICES:
            done = run(RUN, one, *given, "--device", device, "--keep", "all", "--compare-with", c.path("A"))
            expect(done.returncode == RAN and "5 values agree" in done.out and "greatest difference" in done.out
                   and "error" not in done.err and "warning" not in done.err, device, done)
        # Another constant from a node on: that node, and what follows it, differ.
        for at, node, differing in ((0, "first", 5), (2, "third", 3), (3, "d", 2), (4, "last", 1)):
            model = chain()
            changed = model.graph.node[at]
            changed.op_type = {"Mul": "Add", "ReduceSum": "ReduceMax", "Sqrt": "Neg", "Neg": "Sqrt"}[changed.op_type]
            save(model, other)
            for device in DEVICES:
                done = run(RUN, other, *given, "--device", device, "--keep", "all", "--compare-with", c.path("A"))
                said = done.err.splitlines()
                expect(done.returncode == DIFFERS and f"node '{node}' ({changed.op_type})" in said[0], f"{device}, {node}", done)
                for word in ("elements out of tolerance", "(tolerance ", "greatest difference", f"value '{changed.output[0]}'"):
                    expect(word in said[0], f"no '{word}'", done)
                expect(f"{differing} of 5 values differ" in said[1], "how many differ", done)
            done = run(RUN, other, *given, "--device", "vm", "--keep", "all", "--compare-with", c.path("A"), "--json")
            told = json.loads(done.out)["compared_with"]
            expect(done.returncode == DIFFERS and told["first"]["node"] == node and told["differing"] == differing, "JSON", done)
            expect(told["first"]["differing"] <= told["first"]["elements"] and told["first"]["max_abs"] > 0, "JSON", done)
        # A wider tolerance is what the option says.
        save(chain(2.0001), other)
        done = run(RUN, other, *given, "--device", "vm", "--keep", "all", "--compare-with", c.path("A"), "--rtol", "1e-7", "--atol", "0")
        expect(done.returncode == DIFFERS and "'first'" in done.err, "a narrow tolerance", done)
        done = run(RUN, other, *given, "--device", "vm", "--keep", "all", "--compare-with", c.path("A"), "--rtol", "0.01")
        expect(done.returncode == RAN, "a wide tolerance", done)
        # Own outputs alone, and none in common.
        done = run(RUN, one, *given, "--device", "vm", "--compare-with", c.path("A"))
        expect(done.returncode == RAN and "1 values agree" in done.out, "without --keep", done)
        expect(run(RUN, one, *given, "--device", "vm", "--save", c.path("B")).returncode == RAN, "saving outputs")
        done = run(RUN, one, *given, "--device", "vm", "--keep", "all", "--compare-with", c.path("B"))
        expect(done.returncode == RAN and "1 values agree, 4 are missing" in done.out, "values that were not saved", done)


def test_packages_are_compared_too():
    with Case() as c:
        _, given = with_input(c)
        m, p = save(chain(), c.path("m.onnx")), c.path("m.uir")
        expect(run(RUN, m, *given, "--device", "vm", "--keep", "all", "--save", c.path("A")).returncode == RAN, "saving")
        expect(run(PACK, m, "-o", p, "--no-native").returncode == RAN, "a package")
        for program in (RUN, RUN_PACKAGE):
            done = run(program, p, *given, "--compare-with", c.path("A"))
            expect(done.returncode == RAN and "1 values agree" in done.out, "a package", done)
        save(chain(3.0), m)
        expect(run(PACK, m, "-o", p, "--no-native").returncode == RAN, "a package")
        for program in (RUN, RUN_PACKAGE):
            done = run(program, p, *given, "--compare-with", c.path("A"))
            expect(done.returncode == DIFFERS and "node 'last' (Neg)" in done.err, "another package", done)


def test_several_data_sets():
    with Case() as c:
        folders = []
        for i in range(2):
            folders.append(c.path(f"set{i}"))
            os.mkdir(folders[i])
            save(numpy_helper.from_array(np.full((2, 3), i + 1, np.float32)), os.path.join(folders[i], "input_0.pb"))
        data = [w for f in folders for w in ("--data", f)]
        m = save(chain(), c.path("m.onnx"))
        expect(run(INTERPRET, m, *data, "--keep", "all", "--save", c.path("A")).returncode == RAN, "saving")
        expect(set(os.listdir(c.path("A"))) == {"set0", "set1"}, f"{os.listdir(c.path('A'))}")
        done = run(INTERPRET, m, *data, "--keep", "all", "--compare-with", c.path("A"))
        expect(done.returncode == RAN and done.out.count("5 values agree") == 2, "both sets", done)
        os.rename(c.path("A", "set0"), c.path("A", "other"))
        os.rename(c.path("A", "set1"), c.path("A", "set0"))
        os.rename(c.path("A", "other"), c.path("A", "set1"))
        done = run(INTERPRET, m, *data, "--keep", "all", "--compare-with", c.path("A"))
        expect(done.returncode == DIFFERS and done.err.count("node 'first'") == 2, "sets exchanged", done)


def test_folders_that_no_run_saved():
    with Case() as c:
        m = save(chain(), c.path("m.onnx"))
        run(INTERPRET, m, "--save", c.path("A"))
        fails(BAD_FILE, "--compare-with", "index.json", command=[INTERPRET, m, "--quiet", "--compare-with", c.path("absent")])
        for text in ("", "{", "[]", '{"values": 3}', '{"values": []}', '{"values": [3, {}]}', '{"values": [{"name": "other", "file": "output_0.pb"}]}',
                     '{"values": [{"name": "y", "file": "../m.onnx"}]}', '{"values": [{"name": "y", "file": "gone.pb"}]}',
                     '{"values": [{"name": "y"}]}', "[" * 100000):
            c.write(os.path.join("A", "index.json"), text)
            done = run(INTERPRET, m, "--quiet", "--compare-with", c.path("A"))
            expect(done.returncode == BAD_FILE and done.err and not done.out, text[:60], done)


# ---- --no-fusion ----
def test_every_node_a_kernel():
    with Case() as c:
        model = onnx.load(DIGITS)
        for extra in ([], ["--keep", "all"]):
            seen = {}
            for fusion in ([], ["--no-fusion"]):
                done = run(RUN, DIGITS, "--data", DIGITS_DATA, "--device", "vm", "--json", *fusion, *extra)
                expect(done.returncode == RAN, f"{fusion}", done)
                seen[bool(fusion)] = json.loads(done.out)["nodes"]
            expect(len(seen[False]) < len(seen[True]), "no kernel less with fusion")
            names = [n.name or n.output[0] for n in model.graph.node]
            told = [n["name"] for n in seen[True]]
            told = [n for i, n in enumerate(told) if not i or n != told[i - 1]]  # a conversion of its operand is the node's
            expect(told == [n for n in names if n in told] and len(set(told)) == len(told), f"{told}")
            # A reshape moves nothing; all others have their kernel.
            expect(set(names) - set(told) <= {n.name or n.output[0] for n in model.graph.node if n.op_type in ("Reshape", "Flatten")},
                   f"{set(names) - set(told)} have none")
        for shown in ("--explain", "--profile"):
            done = run(RUN, DIGITS, "--data", DIGITS_DATA, "--device", "vm", "--no-fusion", shown)
            expect(done.returncode == RAN and "Relu" in done.out and "Softmax" in done.out, shown, done)


def test_nodes_of_one_name():
    """Two nodes are two, whatever they are called."""
    with Case() as c:
        nodes = [helper.make_node("Exp", [a], [b], name="same") for a, b in (("x", "h"), ("h", "y"))]
        m = save(make_model(nodes, [value("x", [4])], [value("y", [4])]), c.path("two.onnx"))
        for fusion, kernels in (([], 1), (["--no-fusion"], 2)):
            done = run(RUN, m, "--device", "vm", "--json", *fusion)
            expect(done.returncode == RAN and len(json.loads(done.out)["nodes"]) == kernels, f"{fusion}", done)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
