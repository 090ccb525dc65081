#!/usr/bin/env python3
"""uir-tune, and records of parameters in uir-run and uir-pack: what is searched, kept and found again; that no bit changes;
that what a file or the cache says of a kernel is not believed.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`. What is asserted of time is
that tiles which take many times as long are left.
"""
import glob
import json
import os
import re
import sys

import numpy as np
from onnx import helper, numpy_helper

from cli import (BAD_FILE, BIN, DIFFERS, PACK, RAN, RUN, RUN_PACKAGE, UNSUPPORTED, USAGE, Case, expect, fails, is_clean,
                 make_model, run, run_tests, save, slow, value)

TUNE = os.path.join(BIN, "uir-tune")
SHAPES = ((96, 320, 160), (200, 64, 384), (64, 700, 96))  # rows, depth, columns


def products():
    """One product of two inputs, one of an input and a constant, one of few columns."""
    r = np.random.default_rng(1)
    nodes, inputs, outputs, constants = [], [], [], []
    for i, (m, k, n) in enumerate(SHAPES):
        inputs.append(value(f"x{i}", [m, k]))
        if i == 1:
            constants.append(numpy_helper.from_array(r.standard_normal((k, n)).astype(np.float32), f"w{i}"))
        else:
            inputs.append(value(f"w{i}", [k, n]))
        nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"p{i}"]), helper.make_node("Tanh", [f"p{i}"], [f"y{i}"])]
        outputs.append(value(f"y{i}", [m, n]))
    return make_model(nodes, inputs, outputs, constants)


def records_of(text):
    """Kernel's digest: its record, (depth or None, tiles)."""
    found = {}
    expect(text.startswith("records 1\n"), f"no records: {text[:100]}")
    for digest, body in re.findall(r'record "([0-9a-f]{64})" \{(.*?)\n\}', text, re.S):
        depth = re.search(r"depth (\d+)", body)
        found[digest] = (int(depth[1]) if depth else None, re.findall(r"tile (\d+)(?: x (\d+))?(?: cost (\d+))?", body))
    return found


def spoiled(records):
    """Legal, and bad: tiles of one row."""
    text = "records 1\n"
    for digest, (depth, tiles) in records.items():
        text += f'record "{digest}" {{\n' + ("depth 8\n" if depth else "") + ("tile 1 x 32\n" if tiles[0][1] else "tile 1\n") + "}\n"
    return text


def outputs_of(c, folder, *command):
    done = run(*command, "--save", c.path(folder), "--quiet")
    expect(done.returncode == RAN and not done.err, "a run", done)
    return [open(f, "rb").read() for f in sorted(glob.glob(c.path(folder, "output_*")))]


def choices_of(*command):
    done = run(*command, "--json")
    expect(done.returncode == RAN, "a run", done)
    return [n["choice"] for n in json.loads(done.out)["nodes"] if "tiles" in n.get("choice", {})]


def tune(c, model, *arguments, seconds="1"):
    """At one thread: of two, the second may be waited for longer than bad tiles take."""
    done = run(TUNE, model, "--cache", c.path("cache"), "--seconds", seconds, "--threads", "1", *arguments)
    expect(done.returncode == RAN and not done.err and is_clean(done.stdout), "tuning", done)
    return done


def started(c):
    """A model, its records and such as are bad."""
    model = save(products(), c.path("m.onnx"))
    done = run(TUNE, model, "--no-cache", "--seconds", "0.001", "--save", c.path("all.rec"))
    expect(done.returncode == RAN, "the records of a model", done)
    records = records_of(open(c.path("all.rec")).read())
    expect(len(records) == len(SHAPES), f"{len(records)} records", done)
    return model, records, c.write("bad.rec", spoiled(records))


def test_searches_keeps_and_finds_again():
    """From bad tiles: others are measured and kept, in a file and in the cache; a run there has them; all bits are as before."""
    with Case() as c:
        model, records, bad = started(c)
        plain = outputs_of(c, "plain", RUN, model, "--no-vm")
        wanted = choices_of(RUN, model, "--no-vm", "--records", bad)
        expect([w["tiles"] for w in wanted] == [[32, 1], [32, 1], [1]] and all(w["rows"] == 1 for w in wanted),
               f"the tiles of bad records: {wanted}")
        expect(outputs_of(c, "bad", RUN, model, "--no-vm", "--records", bad) == plain, "bad tiles change bits")
        done = tune(c, model, "--records", bad, "--save", c.path("good.rec"))
        lines = sorted(line for line in done.out.splitlines() if line.startswith("  k"))
        gained = ["times as fast" in line for line in lines]  # by scalar code the bad tiles may be as good as any
        expect(len(lines) == len(SHAPES) and any(gained), "kernels that stay bad", done)
        expect(all(g or "unchanged" in line for g, line in zip(gained, lines)), "each kernel gains or is unchanged", done)
        tried = [int(n) for n in re.findall(r"\((\d+) tiles measured\)", done.out)]
        expect(all(t >= 3 for t in tried) and sum(tried) >= 20, f"{tried} tiles are no search", done)
        total = re.search(r"(\d+) tiles of (\d+) kernels measured, (\d+) kernels changed, kept in the cache", done.out)
        expect(total and int(total[1]) == sum(tried) and total[2] == str(len(SHAPES)) and total[3] == str(sum(gained)), "the total", done)
        good = records_of(open(c.path("good.rec")).read())
        expect(good.keys() == records.keys(), "records of other kernels", done)
        expect(sum(all(cost for *_, cost in tiles) for _, tiles in good.values()) >= sum(gained), f"tiles without a cost: {good}")
        found = choices_of(RUN, model, "--no-vm", "--cache", c.path("cache"))
        for choice in [choice for choice, g in zip(found, gained) if g]:
            expect(any([int(n) for n in (columns, rows) if n] == choice["tiles"] and len(tiles) == choice["rows"]
                       for _, tiles in good.values() for rows, columns, _ in tiles), f"{choice} is of no record in {good}")
        expect(outputs_of(c, "good", RUN, model, "--no-vm", "--cache", c.path("cache")) == plain, "tuned tiles change bits")
        file, untuned = choices_of(RUN, model, "--no-vm", "--records", c.path("good.rec")), choices_of(RUN, model, "--no-vm", "--no-cache")
        expect(found == [file[i] if g else untuned[i] for i, g in enumerate(gained)], "the file says other than the cache")
        run(RUN, model, "--cache", c.path("cache"), "--cache-clear")
        again = choices_of(RUN, model, "--no-vm", "--cache", c.path("cache"))
        expect(again == untuned, "records outlive the cache")


@slow
def test_another_model_of_the_same_kernels():
    """A record is the kernel's, whichever model it is in; a package that was in the cache before is not made anew."""
    with Case() as c:
        model, _, bad = started(c)
        done = tune(c, model, "--records", bad, "--save", c.path("good.rec"))
        gained = ["times as fast" in line for line in sorted(done.out.splitlines()) if line.startswith("  k")]
        expect(len(gained) == len(SHAPES) and any(gained), "no kernel gained", done)
        m = products()
        m.graph.node[0].name = "renamed"
        other = save(m, c.path("other.onnx"))
        tuned = choices_of(RUN, model, "--no-vm", "--records", c.path("good.rec"))
        plain = choices_of(RUN, model, "--no-vm", "--no-cache")
        wanted = [tuned[i] if gained[i] else plain[i] for i in range(len(SHAPES))]  # what gained nothing is not kept
        expect(choices_of(RUN, other, "--no-vm", "--cache", c.path("cache")) == wanted, "the other model's tiles")


@slow
def test_packages():
    """uir-pack --tune takes them into the package, whose bits are the same; without it nothing of them is there."""
    with Case() as c:
        model, _, bad = started(c)
        plain, tuned, again = c.path("plain.uir"), c.path("tuned.uir"), c.path("again.uir")
        done = run(PACK, model, "-o", c.path("none.uir"), "--tune", "--cache", c.path("cache"))
        expect(done.returncode == RAN and "run uir-tune" in done.err, "a package of nothing tuned", done)
        tune(c, model, "--records", bad)
        for path, arguments in ((plain, []), (tuned, ["--tune"]), (again, ["--tune"])):
            more = ["--cache", c.path("cache")] if arguments else []
            done = run(PACK, model, "-o", path, "--quiet", *arguments, *more)
            expect(done.returncode == RAN and not done.err, "packing", done)
        read = [open(p, "rb").read() for p in (plain, tuned, again, c.path("none.uir"))]
        expect(read[1] == read[2], "the same records make the same package")
        expect(read[0] == read[3], "what nobody tuned is as without --tune")
        alike = choices_of(RUN_PACKAGE, tuned, "--trusted") == choices_of(RUN_PACKAGE, plain, "--trusted")
        expect(alike == (read[0] == read[1]), "what was tuned is another package where it has other tiles")
        expect(choices_of(RUN_PACKAGE, tuned, "--trusted") == choices_of(RUN, model, "--no-vm", "--cache", c.path("cache")),
               "the package's tiles")
        expect(outputs_of(c, "a", RUN_PACKAGE, plain, "--trusted") == outputs_of(c, "b", RUN_PACKAGE, tuned, "--trusted"), "bits")


def test_records_are_not_believed():
    """What is no record is refused; one that is not for its kernel is left out with the reason; both change no bit."""
    with Case() as c:
        model, records, _ = started(c)
        plain = outputs_of(c, "plain", RUN, model, "--device", "vm")
        first = next(d for d, (depth, tiles) in records.items() if depth and tiles[0][1])
        for text, words in (("", ["expected 'records'"]), ("records 2\n", ["records of version 2"]),
                            ('records 1\nrecord "12" { tile 6 }\n', ["expected a kernel's digest"]),
                            (f'records 1\nrecord "{first}" {{ tile 6 x 32 }} record "{first}" {{ }}\n', ["two records for one kernel"]),
                            (f'records 1\nrecord "{first}" {{ tile 99999999999 }}\n', ["rows", "1 to 65536"]),
                            (f'records 1\nrecord "{first}" {{ tile 6 x 32\n', ["expected"]), ("records 1\n\x01", ["the records"])):
            for program in ([RUN, model, "--device", "vm"], [TUNE, model, "--no-cache"]):
                done = run(*program, "--records", c.write("r", text))
                expect(done.returncode == BAD_FILE and not done.stdout and is_clean(done.stderr), "no records", done)
                expect(all(word in done.err for word in words), f"the message lacks {words}", done)
        for body, why in (("tile 6", "a tile must be rows x columns"), ("tile 6 x 33", "a multiple of 32"),
                          ("tile 65536 x 65536", "bytes on the chip"), ("depth 65536 every", "")):
            text = f'records 1\nrecord "{first}" {{ {body} }}\n'
            done = run(RUN, model, "--device", "vm", "--records", c.write("r", text), "--save", c.path("odd"))
            if not why:
                expect(done.returncode == BAD_FILE, "every comes first", done)
                continue
            expect(done.returncode == RAN and "the tuning record of kernel" in done.err and why in done.err, body, done)
            expect([open(f, "rb").read() for f in sorted(glob.glob(c.path("odd", "output_*")))] == plain, f"{body} changes bits")
        other = f'records 1\nrecord "{"0" * 64}" {{ tile 6 x 32 }}\n'
        done = run(RUN, model, "--device", "vm", "--records", c.write("r", other))
        expect(done.returncode == RAN and not done.err, "a record of no kernel here", done)


@slow
def test_damaged_cache():
    """Whatever becomes of an entry: the model runs, as without it."""
    with Case() as c:
        model, _, bad = started(c)
        plain = outputs_of(c, "plain", RUN, model, "--no-vm")
        tune(c, model, "--records", bad)
        for path in glob.glob(c.path("cache", "**"), recursive=True):
            if os.path.isfile(path) and os.path.getsize(path) < 8192:
                with open(path, "r+b") as f:
                    f.seek(os.path.getsize(path) // 2)
                    f.write(b"\xff" * 20)
        done = run(RUN, model, "--no-vm", "--cache", c.path("cache"), "--save", c.path("after"))
        expect(done.returncode == RAN, "a damaged cache", done)
        expect([open(f, "rb").read() for f in sorted(glob.glob(c.path("after", "output_*")))] == plain, "bits")


def test_command_line():
    with Case() as c:
        for code, words, arguments in ((USAGE, ["no model given"], []), (USAGE, ["unknown option"], [c.model, "--minutes", "3"]),
                                       (USAGE, ["seconds"], [c.model, "--seconds", "soon"]),
                                       (BAD_FILE, ["m0.onnx"], [c.path("m0.onnx")]),
                                       (UNSUPPORTED, ["nothing to tune", "--explain"], [c.model, "--device", "vm"]),
                                       (UNSUPPORTED, ["nothing to tune"], [c.model, "--device", "interpreter"])):
            done = run(TUNE, *arguments, "--no-cache")
            expect(done.returncode == code and not done.stdout and all(w in done.err for w in words), f"exit {code}, {words}", done)
        done = run(TUNE, c.model, "--no-cache", "--dim", "batch=2", "--seconds", "1")
        expect(done.returncode == RAN and "nothing to tune" in done.out, "a model of few rows", done)
        done = run(TUNE, c.model, "--no-cache", "--records", c.path("nowhere"))
        expect(done.returncode not in (RAN, DIFFERS) and "nowhere" in done.err, "no such file", done)
        for option in ("--help", "--version"):
            done = run(TUNE, option)
            expect(done.returncode == RAN and done.out and not done.err, option, done)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
