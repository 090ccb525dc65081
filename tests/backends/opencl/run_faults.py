#!/usr/bin/env python3
"""Faults planted in emitted OpenCL C, a token each, are found by `uir-run --check --source`.

usage: run_faults.py [--count 42] [--seed 1] [--at-least PERCENT] [--chip CHIP] [--rule NAME] [--keep DIR] [-v]

Each fault is drawn from the seed: a rule, in turn; a model of MODELS and a chip; a place that the rule has in the text
of its kernels. The device runs the edited program, each kernel by itself, and its bits are compared with the VM's. A
fault is found where the check tells of it, or the run crashes or does not end. One that the device's compiler refuses is
not counted, and another is drawn; places of EQUAL are not drawn, since no result depends on them. In: the programs in
$UIR_BIN. Out: a line per fault that is not found, the numbers by rule, then `N passed, M failed, S skipped`; fewer than
--at-least percent found is a failure. Without an OpenCL device all is skipped.

Not seen on PoCL: an element beside a buffer of local memory, which is of no other buffer, or zero where it is read; a
barrier where PoCL has one of its own."""
import os
import random
import re
import shutil
import subprocess
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import CHIPS, NO_DEVICE, folder, has_device  # noqa: E402
from suite import Suite, make_parser, run  # noqa: E402

LIMIT_S = 120
PROGRAM = "kernels.cl"


# ---- models ----
def make_model(path, nodes, shapes, constants):
    """A model of f32 inputs by shape and constants by value, whose result is y."""
    graph = helper.make_graph(
        [helper.make_node(op, inputs, [output], **attributes) for op, inputs, output, attributes in nodes], "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def draw(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


# Name: nodes, shapes of inputs, constants. An extent by name is 9.
MODELS = {
    "product": ([("MatMul", ["a", "b"], "t", {}), ("Add", ["t", "c"], "u", {}), ("Relu", ["u"], "y", {})],
                {"a": [71, 307]}, {"b": draw(307, 53), "c": draw(53)}),
    "conv": ([("Conv", ["x", "w"], "y", {"pads": [1, 1, 1, 1]})], {"x": [2, 3, 11, 13]}, {"w": draw(7, 3, 3, 3)}),
    "softmax": ([("Softmax", ["x"], "y", {"axis": -1})], {"x": ["n", 307]}, {}),
    "norm": ([("LayerNormalization", ["x", "s", "b"], "y", {"axis": -1})], {"x": ["n", 131]},
             {"s": draw(131), "b": draw(131)}),
    "turn": ([("Transpose", ["x"], "t", {"perm": [2, 0, 1]}), ("Sin", ["t"], "y", {})], {"x": [13, 37, 5]}, {}),
    "least": ([("ReduceMin", ["x", "axes"], "y", {"keepdims": 0})], {"x": [307, 23]}, {"axes": np.array([0])}),
    "pool": ([("MaxPool", ["x"], "y", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})],
             {"x": [1, 3, 17, 15]}, {}),
    "pad": ([("Pad", ["x", "p", "v"], "y", {})], {"x": [5, 9]}, {"p": np.array([1, 2, 0, 3]), "v": np.float32(2.5)}),
}


# ---- rules ----
# A rule gives the places of a text where it applies: begin, end, and what is there instead.
BARRIER = r"(?:barrier\([^;]*\); (uir_thread = [^;]*;)\s*)+"
SHARED = r"\b(lanes|p_\w+)\["


def list_accesses(text):
    """The elements of shared arrays that a text between barriers accesses: array, index by thread, whether it is written."""
    for m in re.finditer(SHARED, text):
        end = close(text, m.end() - 1)
        index = text[m.end():end]
        for name in set(re.findall(r"\b(?:k\d+|i|j)\b", index)):  # by the last definition before it
            defined = re.findall(rf"const int64_t {name} = ([^;]*);", text[:m.start()])
            index = re.sub(rf"\b{name}\b", f"<{defined[-1]}>" if defined else name, index)
        yield m[1], index.replace("(", "").replace(")", ""), re.match(r"\] = ", text[end:]) is not None


def is_beside_loop(text):
    """Whether a text behind a barrier begins with a loop that has barriers, or with the end of a block."""
    text = text.lstrip(" {\n")
    return text.startswith("}") or text.startswith("for (") and "barrier(" in text[:close(text, text.index("{"))]


def take_barriers(text):
    """A barrier, or several at one place, between accesses of one array by several threads, one of which writes. PoCL has
    barriers of its own where a loop with barriers begins and where its turns end: there it shows no fault."""
    found = list(re.finditer(BARRIER, text))
    for before, m, behind in zip(found, found[1:], found[2:]):
        sides = [text[before.end():m.start()], text[m.end():behind.start()]]
        if any("__kernel" in side for side in sides) or is_beside_loop(text[m.end():]):
            continue
        private = set(re.findall(r"^ +\w+ (p_\w+)\[\d+\];", text, re.M))
        first, second = [list(list_accesses(side)) for side in sides]
        if any(a[0] == b[0] and a[1] != b[1] and (a[2] or b[2]) and a[0] not in private for a in first for b in second):
            yield m.start(), m.end(), m[1]


def replace(pattern, change):
    """Each match of the pattern's first group, replaced by `change` of it."""
    def places(text):
        for m in re.finditer(pattern, text, re.M):
            yield m.start(1), m.end(1), change(m[1])
    return places


def in_lines(line_pattern, pattern, change):
    """The same within lines that the first pattern is found in."""
    def places(text):
        for line in re.finditer(r"^.*$", text, re.M):
            if not re.search(line_pattern, line[0]):
                continue
            for m in re.finditer(pattern, line[0]):
                yield line.start() + m.start(1), line.start() + m.end(1), change(m[1])
    return places


def close(text, at):
    """Where the bracket that opens at `at` closes."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "([{") - (text[i] in ")]}")
        if depth == 0:
            return i
    return at


def move_indices(text):
    """One element further: p[i + 1], p + (i + 1)."""
    for m in re.finditer(r"\bp_\w+(\[)|\bp_\w+ \+ (\()", text):
        at = m.end() - 1
        end = close(text, at)
        if "UIR_LET" not in get_line(text, at):
            yield end, end, " + 1"


ADDRESS = r"\bp_\w+\[|^(?!.*UIR_LET).*\bp_\w+ \+ \(|\bint64_t a\d+ =|_step\[\d\] ="
RULES = {
    "barrier": take_barriers,
    "guard": in_lines(r"^\s*(?:if|else if) \(|int64_t a\d+_(?:first|last) =| \? ", r"( < | >= |<= )",
                      lambda word: {" < ": " <= ", " >= ": " > ", "<= ": "< "}[word]),
    "bound": in_lines(r"^\s*for \(", r";[^;]*?( < | <= )", lambda word: {" < ": " <= ", " <= ": " < "}[word]),
    "index": move_indices,
    "stride": in_lines(ADDRESS, r" \* \(?(\d+)\b", lambda number: str(int(number) + 1)),
    "fill": in_lines(r"partial = |v_set_f32\(-?(?:0\.0f|INFINITY)\);| \? .* : |w\.fill =|a\d+_first - j",
                     r"((?<![\w.])-?(?:0\.0f|INFINITY|2\.5f|0x0u)(?=[;,)]))",
                     lambda word: "0x3f800000u" if word.startswith("0x") else "0.5f"),
    "instance": replace(r"(uir_thread(?: / \d+| % \d+)?|uir_group\b|% \d+(?= \* p_\w+_span))(?=[;,) ])(?! =)",
                        lambda word: f"({word} + 1)" if not word.startswith("%") else f"% 1"),
}


# Faults that change nothing that any result depends on: rule, the chip with the line of the place and the next, why.
EQUAL = [
    ("guard", r"if \(begin >= end\) return;", "without an index nothing is computed behind it"),
    ("instance", r"UIR_LET end = ", "a unit that goes on with the next one's indices computes the same"),
    ("guard", r"if \(\w >= n\) break;", "the turn behind the last stores no element"),
    ("guard", r"if \(j >= first\)", "the code behind it takes the first vector as well"),
    ("guard", r"if \(line < lines", "a line behind the last is in no result"),
    ("guard", r"\? 0\.0f : 0\.0f", "both are the same"),
    ("guard", r"jl < n \? ", "an element behind the last is stored nowhere"),
    ("bound", r"UIR_UNROLL for|for \(int64_t (?:j|first|e_first|i_first) = ", "a condition inside has the same bound"),
    ("bound", r"flat < end|_trips = .*\n +if \(", "a turn too many does what another unit does, or a condition inside leaves it out"),
    ("bound", r"k\d+ < 1;", "no address has the index of the only turn"),
    ("bound", r"b < n; b \+= ", "the step does not divide the extents of the models: no turn is added"),
    ("guard", r"if \(lane < s\)", "the lane behind the last of a step is in no later step"),
    ("guard", r"l < UIR_LANES", "the element behind the last of a vector is in no result"),
    ("instance", r"\barrays = ", "where no array is on the chip; else it is found"),
    ("bound", r"for \(; \w <= \w+ - ", "the code behind the loop takes the last vector as well"),
    ("guard", r"\bi_l\d+ < \d+ \? ", "no row of the result has it"),
    ("guard", r"if \(i_p\d+ \* n_t\d+ \+ i_l\d+ < n_n\d+\)", "tiles of one row divide the models' rows"),
    ("stride", r"\[i / 16 \* \d+", "a thread has one row of the models' tiles"),
    ("bound", r"blank\d+\[i\] = ", "the element behind the last is in no result"),
    ("bound", r"l < UIR_LANES", "the element behind the last of a vector is in no result"),
    ("fill", r"jl < n \? |j \+ l < n \? ", "an element behind the last is stored nowhere"),
]


def changes_nothing(rule, chip, lines):
    return any(rule == of and re.search(pattern, f"{chip}: {lines}") for of, pattern, _ in EQUAL)


def find_body(text):
    """Where the kernels begin, behind the functions that all share."""
    return text.index("__kernel")


def find_places(rule, chip, text):
    body = find_body(text)
    places = [(begin + body, end + body, word) for begin, end, word in RULES[rule](text[body:])]
    return [place for place in places if not changes_nothing(rule, chip, get_lines(text, place[0]))]


def get_lines(text, at):
    """The line of a place and the next."""
    begin = text.rfind("\n", 0, at) + 1
    return "\n".join(text[begin:begin + 2000].split("\n")[:2])


def get_line(text, at):
    return text[text.rfind("\n", 0, at) + 1:(text + "\n").index("\n", at)]


# ---- faults ----
def name_line(text, at):
    """The line of a place, and what it says."""
    return f"line {text.count(chr(10), 0, at) + 1}: {get_line(text, at).strip()[:160]}"


class Bench:
    """The models with their sources, by chip."""

    def __init__(self, place, chips):
        self.place, self.chips, self.sources = place, chips, {}
        for name, parts in MODELS.items():
            make_model(self.model_of(name), *parts)

    def model_of(self, name):
        return os.path.join(self.place, name + ".onnx")

    def run(self, name, chip, *words):
        sizes = ["--dim", "n=9"] if any("n" in shape for shape in MODELS[name][1].values()) else []
        return run("uir-run", self.model_of(name), "--device", f"opencl:{chip}", "--no-cache", "--quiet", *sizes, *words,
                   timeout=LIMIT_S)

    def source_of(self, name, chip):
        """The text of its program, unless the device's own does not pass."""
        if (name, chip) not in self.sources:
            place = os.path.join(self.place, f"{name}-{chip}")
            done = self.run(name, chip, "--dump-source", place)
            if done.returncode == 0:
                done = self.run(name, chip, "--check", "--source", place)
            if done.returncode != 0:
                raise AssertionError(f"{name} on {chip} without a fault: exit {done.returncode}\n{done.stdout}{done.stderr}")
            with open(os.path.join(place, PROGRAM)) as f:
                self.sources[name, chip] = f.read()
        return self.sources[name, chip]

    def judge(self, name, chip, text, keep):
        """How the check ends with this program: "found ...", "refused" by the device's compiler, or "not found"."""
        place = os.path.join(self.place, "faulty")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(os.path.join(self.place, f"{name}-{chip}"), place)
        with open(os.path.join(place, PROGRAM), "w") as f:
            f.write(text)
        try:
            done = self.run(name, chip, "--check", "--source", place)
        except subprocess.TimeoutExpired:
            return "found: does not end"
        said = done.stdout + done.stderr
        if "cannot build" in said:
            return "refused"
        if done.returncode < 0:
            return f"found: ends by signal {-done.returncode}"
        told = re.search(rf"stage opencl:{chip} differs.*", said)
        if told:
            return "found: " + told[0]
        if keep:
            shutil.copytree(place, keep, dirs_exist_ok=True)
        return "not found" if done.returncode == 0 else f"exit {done.returncode}: {said[-300:]}"


def draw_fault(bench, rule, numbers):
    """A model, a chip, a place of the rule in its text; None where no text has one."""
    for _ in range(100):
        name, chip = numbers.choice(sorted(MODELS)), numbers.choice(bench.chips)
        places = find_places(rule, chip, bench.source_of(name, chip))
        if places:
            return name, chip, numbers.choice(places)
    return None


def main():
    parser = make_parser(__doc__, count=42, seed=1, keep=None)
    parser.add_argument("--at-least", type=float, default=85)
    parser.add_argument("--chip", choices=CHIPS)
    parser.add_argument("--rule", choices=sorted(RULES))
    parser.add_argument("-v", action="store_true", help="names the faults that are found, and how")
    options = parser.parse_args()
    suite, rules, seen = Suite(), [options.rule] if options.rule else list(RULES), set()
    counts = {rule: [0, 0, 0] for rule in rules}
    if not has_device():
        suite.skip(NO_DEVICE)
        return suite.end()
    with folder() as place:
        bench = Bench(place, [options.chip] if options.chip else list(CHIPS))
        numbers, at, tries = random.Random(options.seed), 0, 0
        while at < options.count and tries < 10 * options.count:
            rule, tries = rules[tries % len(rules)], tries + 1
            fault = draw_fault(bench, rule, numbers)
            if not fault or fault in seen:
                continue
            seen.add(fault)
            name, chip, (begin, end, word) = fault
            text = bench.source_of(name, chip)
            keep = os.path.join(options.keep, f"{at}-{rule}-{name}-{chip}") if options.keep else None
            verdict = bench.judge(name, chip, text[:begin] + word + text[end:], keep)
            before = " ".join(text[begin:end].split())
            what = f"{rule} in {name} on {chip}, '{before[:80]}' -> '{word}', {name_line(text, begin)}"
            counts[rule][2] += verdict == "refused"
            if verdict == "refused":
                continue
            at += 1
            good = verdict.startswith("found")
            counts[rule][not good] += 1
            suite.add(good)
            if options.v or not good:
                print(f"{what}\n  {verdict}", flush=True)
    for rule, (found, missed, refused) in counts.items():
        print(f"{rule}: {found} of {found + missed} found, {refused} that do not compile")
    share = 100 * suite.passed / max(at, 1)
    print(f"seed {options.seed}: {suite.passed} of {at} faults found")
    if share < options.at_least:
        suite.tell(False, f"{share:.1f} % found, {options.at_least} wanted")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
