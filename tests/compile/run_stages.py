#!/usr/bin/env python3
"""The IRs are the path: every stage's text, read back, leads to the same emitted source; an edit of it shows; a broken
one is refused at its line and never ends a program.

In: the programs in $UIR_BIN, the written-out models in $UIR_MODELS_BUILT. Arguments: models (default: a few quick ones;
--all: every one there is), --mutations N (default 300) texts to damage, --seed. Out: a line per failure, then
`N passed, M failed, S skipped`.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from cli import DIGITS, OPT, expect, find_model, list_models, make_parser, run, run_tests  # noqa: E402

QUICK = ["digits", "gru_seq", "silero_vad", "llama_tiny_op23"]
SLOW_CLEANUP = ["llama_tiny_op23"]  # of these the quick run takes the first, the last and the later stages alone
CODES = {0, 2, 3, 4, 5}
options = None


def stage_names():
    listed = run(OPT, "--list").out
    names = re.findall(r"^  ([a-z_-]+) ", listed, re.M)
    expect(names[:2] == ["onnx", "primitives"] and names[-1] == "emit", "the list of stages", None)
    middle = names.index("fusion")
    return names[1:middle], names[middle:-1]


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Folder:
    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="uir-stages-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def at(self, name):
        return os.path.join(self.path, name)

    def write(self, name, text):
        with open(self.at(name), "wb") as file:
            file.write(text)
        return self.at(name)

    def stage(self, model, stage):
        """The model's text after a stage."""
        done = run(OPT, model, "--after", stage, "-o", self.at("stage.txt"), timeout=600)
        expect(done.returncode == 0, f"the text after {stage}", done)
        return read(self.at("stage.txt"))

    def go_on(self, text, stage, after="emit"):
        """What the text leads to."""
        return run(OPT, self.write("edited.txt", text), "--from", stage, "--after", after, timeout=600)


# ---- each text leads to the same source ----
def check_model(name):
    path = find_model(name)
    expect(path, f"there is no model {name}")
    passes, middle = stage_names()
    stages = passes + middle
    if name in SLOW_CLEANUP and not options.all:
        stages = [passes[0], passes[-1]] + middle
    with Folder() as f:
        done = run(OPT, path, "--after", "emit", "-o", f.at("wanted.c"), timeout=600)
        expect(done.returncode == 0, f"{name}: the source", done)
        wanted = read(f.at("wanted.c"))
        for stage in ["onnx"] + stages:
            done = run(OPT, path, "--after", stage, "-o", f.at("stage.txt"), timeout=600)
            expect(done.returncode == 0, f"{name}: the text after {stage}", done)
            if stage in ("onnx", stages[0], "schedule") or options.all:
                again = run(OPT, f.at("stage.txt"), "--after", stage, timeout=600)
                expect(again.stdout == read(f.at("stage.txt")), f"{name}: the text after {stage} is not itself again")
            done = run(OPT, f.at("stage.txt"), "--from", stage, "--after", "emit", "-o", f.at("got.c"), timeout=600)
            expect(done.returncode == 0, f"{name}: on from {stage}", done)
            expect(read(f.at("got.c")) == wanted, f"{name}: the text after {stage} leads to another source")


# ---- edits show ----
# What is edited in the text of which stages, and what it becomes; the first place that matches.
EDITS = [
    ("a scalar of the model", "module", rb"(constant %\w+(?: \"[^\"]*\")?: f32\[\] = \[)[^\]]*(\])", rb"\g<1>0.37\2"),
    ("an op of a group", "module", rb"(%\w+: f32\[[^\]]*\] = )add(\(.*\"Add\"|\(.*\"Gemm\"|\(.*\"Conv\")", rb"\1sub\2"),
    ("an op of a loop", "loop schedule", rb"\] = add\((?=[a-z])", rb"] = mul("),
    ("a constant of a loop", "loop schedule", rb"mul\((\w+\[[^\]]*\]), f32\([0-9.e-]+\)", rb"mul(\1, f32(0.37)"),
    ("a reduction's way to combine", "loop schedule", rb"(monoid .*\n    identity .*\n    update .*)add\(", rb"\1mul("),
    ("a candidate of the tiling function", "schedule", rb"(\n +candidate \w+) = 96\b", rb"\1 = 64"),
    ("a loop's kind", "schedule", rb"parallel for", rb"serial for"),
    ("an instruction", "igraph runs", rb"binary\.add\.f32 ", rb"binary.mul.f32 "),
    ("an operand's number", "igraph runs", rb"(binary\.mul\.f32 .*\], )[0-9.]+(?= stream|\n)", rb"\g<1>0.37"),
    ("a candidate of an iGraph", "igraph runs", rb"(\n +candidate \w+) = 96\b", rb"\1 = 64"),
]


def test_edits_show():
    names = [n for n in ("digits", "gru_seq", "llama_tiny_op23") if find_model(n)]
    passes, middle = stage_names()
    shown = {what: 0 for what, *_ in EDITS}
    with Folder() as f:
        for name in names:
            model = find_model(name)
            wanted = {after: run(OPT, model, "--after", after, timeout=600).stdout for after in ("emit", "runs")}
            for stage in [passes[0], passes[-1]] + middle:
                text = f.stage(model, stage)
                for what, where, old, new in EDITS:
                    kinds = where.split()
                    fits = stage in kinds or ("module" in kinds and stage in passes + ["fusion"])
                    edited = re.sub(old, new, text, count=1) if fits else text
                    if edited == text:
                        continue
                    after = "runs" if "candidate" in what else "emit"  # the source takes tiles as arguments
                    done = f.go_on(edited, stage, after)
                    expect(done.returncode == 0, f"{name}, {stage}: {what} edited", done)
                    expect(done.stdout != wanted[after], f"{name}: the edit of {what} after {stage} does not show")
                    shown[what] += 1
    missing = [what for what, times in shown.items() if not times]
    expect(len(names) < 3 or not missing, f"no text holds {missing}")


# ---- broken texts ----
def damage_line(lines, number):
    """A character that no text holds, where the line begins."""
    line = lines[number]
    indented = len(line) - len(line.lstrip(b" "))
    return lines[:number] + [line[:indented] + b"\\ " + line[indented:]] + lines[number + 1:]


def test_errors_name_the_line():
    passes, middle = stage_names()
    numbers = random.Random(options.seed)
    with Folder() as f:
        for stage in passes[-1:] + middle:
            lines = f.stage(DIGITS, stage).split(b"\n")
            places = [n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(b"#")]
            parts = [n for n in places if re.match(rb"(func|igraph) @", lines[n])]
            inside = [n + 1 for n in parts] + [n - 1 for n in parts if lines[n - 1].strip() == b"}"]
            for n in sorted(set(numbers.sample(places, 10) + numbers.sample(inside, min(len(inside), 4)))):
                done = f.go_on(b"\n".join(damage_line(lines, n)), stage)
                expect(done.returncode == 3, f"{stage}: line {n + 1} is broken", done)
                at = re.search(r"edited\.txt:(\d+):\d+: error: ", done.err)
                expect(at and int(at.group(1)) == n + 1, f"{stage}: the error is in line {n + 1}", done)


def test_refusals_name_the_line():
    """What parses and yet cannot be: refused by a verifier, at the line of what it refuses."""
    cases = [("drop-dead", rb"= add\(", rb"= sigmoid("), ("fusion", rb"(f32\[batch, 10\] = )div\(", rb"\1bitwise_and("),
             ("loop", rb"f32\(0\)\)\n", rb"i64(0))\n"),
             ("igraph", rb"(binary\.\w+\.f32 +%\w+)\[[^\]]*\]", rb"\1[0:1]")]
    with Folder() as f:
        for stage, old, new in cases:
            text = f.stage(DIGITS, stage)
            match = re.search(old, text)
            expect(match, f"{stage}: nothing to break")
            line = text.count(b"\n", 0, match.start()) + 1
            done = f.go_on(re.sub(old, new, text, count=1), stage)
            if done.returncode == 0:
                continue
            expect(done.returncode in (3, 4), f"{stage}: a broken text", done)
            lines = [int(n) for n in re.findall(r"edited\.txt:(\d+)", done.err)]
            expect(lines and min(abs(n - line) for n in lines) <= 3, f"{stage}: near line {line}", done)


def mutate(numbers, text):
    """A few small damages: tokens replaced, dropped, doubled or exchanged, numbers changed, lines moved, ends cut."""
    tokens = re.findall(rb"\s+|[A-Za-z_]\w*|\d+(?:\.\d+)?|.", text, re.S)
    for _ in range(numbers.choice((1, 1, 1, 2, 4))):
        words = [i for i, t in enumerate(tokens) if not t.isspace()]
        if len(words) < 2:
            break
        i, k = numbers.choice(words), numbers.choice(words)
        way = numbers.randrange(7)
        if way == 0:
            tokens[i] = tokens[k]
        elif way == 1:
            tokens[i] = b""
        elif way == 2:
            tokens[i] = tokens[i] + b" " + tokens[i]
        elif way == 3:
            tokens[i], tokens[k] = tokens[k], tokens[i]
        elif way == 4:
            digits = [n for n in words if tokens[n][:1].isdigit()] or words
            tokens[numbers.choice(digits)] = numbers.choice(
                (b"0", b"1", b"2", b"3", b"-1", b"7", b"64", b"255", b"4294967296", b"9223372036854775807"))
        elif way == 5:
            tokens = b"".join(tokens).split(b"\n")
            a, b = numbers.randrange(len(tokens)), numbers.randrange(len(tokens))
            tokens.insert(a, tokens.pop(b))
            tokens = [t for line in tokens for t in (line, b"\n")]
        elif numbers.randrange(4) == 0:
            tokens = tokens[:i]
    return b"".join(tokens)


def shrink_tensors(text):
    """Damage goes where something is decided, not into long lists of numbers."""
    return re.sub(rb"constant (%\w+)( \"[^\"]*\")?: (\w+\[[^\]]*\]) = \[[^\]]{400,}\]", rb"constant \1\2: \3 = splat 0.5",
                  text)


def test_damaged_texts():
    """A text is refused, or it is printed on or run; whichever, the program ends by itself."""
    passes, middle = stage_names()
    numbers = random.Random(options.seed)
    sources = [DIGITS] + [find_model(n) for n in ("gru_seq",) if find_model(n)]
    stages = [passes[0], passes[-1]] + middle
    refused = 0
    with Folder() as f:
        texts = [(stage, shrink_tensors(f.stage(model, stage))) for model in sources for stage in stages]
        for number in range(options.mutations):
            stage, text = texts[number % len(texts)]
            damaged = mutate(numbers, text)
            way = numbers.choice((["--after", "emit"], ["--after", stage], ["--run"], ["--run", "--device", "vm"]))
            to = [] if "--run" in way else ["-o", f.at("out.txt")]
            command = [OPT, f.write("damaged.txt", damaged), "--from", stage, *way, *to]
            try:
                done = run(*command, timeout=60)
            except subprocess.TimeoutExpired:
                done = None
            bad = not done or done.returncode not in CODES or b"Sanitizer" in done.stderr or \
                b"runtime error" in done.stderr or (done.returncode and not done.stderr)
            if bad:
                kept = os.path.join(tempfile.gettempdir(), f"uir-damaged-{options.seed}-{number}.txt")
                shutil.copy(f.at("damaged.txt"), kept)
                shown = " ".join([OPT, kept, "--from", stage, *way])
                expect(done, f"more than 60 s: {shown}")
                expect(False, shown, done)
            refused += done.returncode != 0
    expect(refused * 4 > options.mutations, f"{refused} of {options.mutations} damaged texts were refused")


if __name__ == "__main__":
    parser = make_parser(__doc__, seed=4)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--all", action="store_true", help="every model that is written out, every stage")
    parser.add_argument("--mutations", type=int, default=300)
    parser.add_argument("--only-damage", action="store_true", help="no more than the damaged texts")
    options = parser.parse_args()
    tests = {"test_damaged_texts": test_damaged_texts}
    if not options.only_damage:
        quick = [n for n in QUICK if os.path.exists(find_model(n))]
        for name in options.models or (["digits", *list_models()] if options.all else quick):
            tests[f"test_{name}"] = lambda name=name: check_model(name)
        tests.update({name: test for name, test in globals().items() if name.startswith("test_")})
    sys.exit(run_tests(tests, []))
