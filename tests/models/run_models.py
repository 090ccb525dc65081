#!/usr/bin/env python3
"""Runs every written-out model on every data set that it has, as exported and in disguise.

    run_models.py [--disguised] [--device interpreter] [--native] [--bin DIR] [--models DIR] [NAME...]

In: uir-run in $UIR_BIN, the models in $UIR_MODELS_BUILT. A set passes when uir-run agrees by its own comparison, when the
outputs it saved agree by this file's, and when a text recogniser's output reads as `expect_text` says. In disguise: every
graph's nodes in another legal order, and every name (nodes, values, dims, inputs, outputs) another, with characters that
no tool likes. --native: compiled kernels alone, and no compiler after the first data set. Quantised models run too, but a difference of theirs is a skip: rounding ties are not settled yet.
Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN, MODELS, NO_MODELS, Suite, make_parser, run  # noqa: E402

LIMIT_S = 300
QUANTISED_OPS = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "ConvInteger",
                 "QLinearConv", "QLinearMatMul", "com.microsoft::MatMulNBits"}


class Different(Exception):
    pass


def load_tensor(path):
    return numpy_helper.to_array(onnx.load_tensor(path))


def compare(got, want, tolerance, name):
    """The rule of the given models: |got - w| <= atol_relative_to_max * max|w| + rtol * |w|, integers and shapes exactly."""
    if got.shape != want.shape or got.dtype != want.dtype:
        raise Different(f"{name} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}")
    if not want.size:
        return
    if want.dtype.kind != "f":
        if not np.array_equal(got, want):
            raise Different(f"{name}: {np.count_nonzero(got != want)} of {want.size} elements differ")
        return
    g, w = got.astype(np.float64), want.astype(np.float64)
    limit = tolerance["atol_relative_to_max"] * np.abs(w).max() + tolerance["rtol"] * np.abs(w)
    wrong = ~(np.abs(g - w) <= limit)
    if wrong.any():
        at = np.unravel_index(np.argmax(wrong), wrong.shape)
        raise Different(f"{name}: {wrong.sum()} of {w.size} elements differ, the first at {at}: {g[at]}, not {w[at]}")


def decode(probabilities, characters):
    """CTC: the best class of each step, repeats merged, class 0 dropped; the class after the last is a space."""
    lines = []
    table = [""] + characters.splitlines() + [" "]
    for steps in probabilities.argmax(-1):
        kept = [c for i, c in enumerate(steps) if c != 0 and (i == 0 or c != steps[i - 1])]
        lines.append("".join(table[c] for c in kept))
    return lines


def run_set(program, folder, data, info, arguments, environment):
    """One data set of a model; raises Different."""
    with tempfile.TemporaryDirectory() as saved:
        command = [program, os.path.join(folder, "model.onnx"), "--data", os.path.join(folder, data), "--save", saved, "--quiet"]
        try:
            done = run(*command, *arguments, timeout=LIMIT_S, env={"UIR_STRICT": "1", **environment})
        except subprocess.TimeoutExpired:
            raise Different(f"took over {LIMIT_S} s") from None
        if done.returncode != 0:
            raise Different(f"exit {done.returncode}: {done.stderr.strip()[:600]}")
        outputs = sorted(glob.glob(os.path.join(folder, data, "output_*.pb")))
        if not outputs:
            raise Different("there is no expected output")
        for path in outputs:
            name = os.path.basename(path)
            if not os.path.exists(os.path.join(saved, name)):
                raise Different(f"{name} was not saved")
            compare(load_tensor(os.path.join(saved, name)), load_tensor(path), info["tolerance"], name)
        if info.get("expect_text"):
            model = onnx.load(os.path.join(folder, "model.onnx"), load_external_data=False)
            characters = next(p.value for p in model.metadata_props if p.key == "character")
            expected = info["expect_text"][int(data.rsplit("_", 1)[1])]
            text = decode(load_tensor(os.path.join(saved, "output_0.pb")), characters)
            if text != expected:
                raise Different(f"reads {text}, not {expected}")


class Disguise:
    """Renames all that has a name and shuffles all that has no order. The same seed gives the same disguise."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = {}
        self.count = 0

    def fresh(self):
        self.count += 1
        return self.random.choice(["t", 'a "quoted" ', "*/ ??/ \\", "ünï ", "$(x) ", "%s "]) + str(self.count)

    def name(self, old):
        if old and old not in self.names:
            self.names[old] = self.fresh()
        return self.names.get(old, "")

    def value(self, info):
        info.name = self.name(info.name)
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param not in ("", "?"):  # some exporters call every unknown dim "?"
                dim.dim_param = "d" + self.name("dim " + dim.dim_param)

    @staticmethod
    def used(node):
        """Names a node reads, those that its subgraphs capture among them."""
        names = set(node.input)
        for attribute in node.attribute:
            for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                for inner in graph.node:
                    names |= Disguise.used(inner)
                names |= {o.name for o in graph.output}
        return names - {""}

    def shuffled(self, nodes):
        """A random legal order."""
        producer = {o: i for i, n in enumerate(nodes) for o in n.output if o}
        waits = [{producer[u] for u in self.used(n) if u in producer} - {i} for i, n in enumerate(nodes)]
        users = [[] for _ in nodes]
        for i, needs in enumerate(waits):
            for need in needs:
                users[need].append(i)
        left = [len(w) for w in waits]
        ready = [i for i, n in enumerate(left) if n == 0]
        order = []
        while ready:
            i = ready.pop(self.random.randrange(len(ready)))
            order.append(i)
            for user in users[i]:
                left[user] -= 1
                if left[user] == 0:
                    ready.append(user)
        assert len(order) == len(nodes)
        return [nodes[i] for i in order]

    def graph(self, graph):
        nodes = self.shuffled([onnx.NodeProto.FromString(n.SerializeToString()) for n in graph.node])
        del graph.node[:]
        del graph.value_info[:]
        for node in nodes:
            node.name = self.fresh()
            node.doc_string = ""
            node.input[:] = [self.name(n) for n in node.input]
            node.output[:] = [self.name(n) for n in node.output]
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    self.graph(attribute.g)
                for inner in attribute.graphs:
                    self.graph(inner)
        graph.node.extend(nodes)
        graph.name = self.fresh()
        for tensor in graph.initializer:
            tensor.name = self.name(tensor.name)
        for tensor in graph.sparse_initializer:
            tensor.values.name = self.name(tensor.values.name)
        for info in list(graph.input) + list(graph.output):
            self.value(info)

    def model(self, source, target):
        """Writes the disguised model and its data sets; large weights are linked, not copied."""
        model = onnx.load(os.path.join(source, "model.onnx"), load_external_data=False)
        assert not model.functions
        self.graph(model.graph)
        with open(os.path.join(target, "model.onnx"), "wb") as f:
            f.write(model.SerializeToString())
        for name in ("model.onnx.data", "info.json"):
            if os.path.exists(os.path.join(source, name)):
                os.link(os.path.join(source, name), os.path.join(target, name))
        for path in glob.glob(os.path.join(source, "test_data_set_*", "*.pb")):
            tensor = onnx.load_tensor(path)
            tensor.name = self.name(tensor.name)
            folder = os.path.join(target, os.path.basename(os.path.dirname(path)))
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, os.path.basename(path)), "wb") as f:
                f.write(tensor.SerializeToString())


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--disguised", action="store_true")
    parser.add_argument("--bin", default=BIN)
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--device", default="interpreter")
    parser.add_argument("--native", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    program = os.path.join(options.bin, "uir-run")
    folders = sorted(glob.glob(os.path.join(options.models, "*", "info.json")))
    folders = [os.path.dirname(f) for f in folders]
    if options.names:
        folders = [f for f in folders if os.path.basename(f) in options.names]
    suite = Suite()
    if not folders:
        suite.skip(NO_MODELS)
    scratch = None
    cache = tempfile.mkdtemp(prefix="uir-cache-")
    arguments = ["--device", options.device, "--cache", cache] + (["--no-vm", "--no-fallback", "--no-vendor"] if options.native else [])
    for folder in folders:
        name = os.path.basename(folder)
        with open(os.path.join(folder, "info.json"), encoding="utf-8") as f:
            info = json.load(f)
        where = folder
        if options.disguised:
            where = scratch = tempfile.mkdtemp(prefix="disguised-", dir=os.path.dirname(os.path.abspath(options.models)))
            Disguise(name).model(folder, where)
        try:
            for index, data in enumerate(sorted(os.path.basename(d) for d in glob.glob(os.path.join(folder, "test_data_set_*")))):
                try:
                    # One compile serves all shapes.
                    environment = {"CC": "/bin/false"} if options.native and index else {}
                    run_set(program, where, data, info, arguments, environment)
                    suite.add(1)
                except Different as e:
                    if QUANTISED_OPS & set(info["ops"]):
                        suite.skip(f"{name} is quantised, and differs")
                    else:
                        suite.tell(False, f"{name} {data}: {e}")
        finally:
            if scratch:
                shutil.rmtree(scratch)
                scratch = None
    shutil.rmtree(cache)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
