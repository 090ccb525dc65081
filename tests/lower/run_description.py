#!/usr/bin/env python3
"""Whatever stands in a description is read by someone: `run_description.py [--jobs N] [--only TEXT] [--shard K/N]`.

In: the programs in $UIR_BIN; ir/machine/device.def, whose words are all in the two descriptions below; groups/. Each number, word
of a list, instruction and pipe of these is changed in turn; then the kernels of some group, what is said of a node that
has none, or the estimate of a kernel must be another one. A text that is no longer a description does not count, but for who
shares a space.
"""
import concurrent.futures
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import ROOT, Suite, make_parser, run, take_shard  # noqa: E402

# Operands go from space to space; pipes run apart.
MANY = """device many {
  source made "made up"
  kinds vector 2 @made, cube 1 @made
  pipes in, work, slow, multiply, out
  units_per_group 3 @made
  residents 2 @made
  device_barrier
  mma_rows 8 @made
  mma_columns 4 @made
  mma_depth 16 @made
  vector_bytes 128 @made
  cycles_per_second 1e9 @made
  flops_per_second 1e9 @made
  bytes_per_second 1e9 @made
  dtypes whole = i64
  dtypes all = whole, f32
  space far { roles memory of device reached_by vector, cube alignment 64 @made bytes_per_cycle 64 @made }
  space near { roles scratch of unit reached_by vector capacity 16384 @made alignment 32 @made bytes_per_cycle 32 @made }
  space shelf { roles scratch of unit reached_by cube capacity 65536 @made alignment 64 @made }
  space rows { roles left of unit reached_by cube capacity 8192 @made alignment 64 @made
    blocks rows_of_rows block_lines 8 @made block_elements 16 @made }
  space columns { roles right of unit reached_by cube capacity 8192 @made alignment 64 @made
    blocks columns_of_rows block_lines 16 @made block_bytes 16 @made }
  space sums { roles accumulators of unit reached_by cube capacity 8192 @made alignment 64 @made
    blocks rows_of_rows block_lines 8 @made block_elements 4 @made }
  form at_once = into near from near on vector by work with last_contiguous cycles 2 @made repeats 1 @made latency 3 @made
  form elements = into near from near on vector by slow cycles_per_element 4 @made
  legal move of all into near from far on vector by in with last_contiguous, no_broadcast bytes_per_cycle 16 @made latency 20 @made
  legal move of all into far from near on vector by out with last_contiguous, no_broadcast latency 5 @made
  legal move of f32 into shelf from far on cube by in with no_broadcast
  legal move of f32 into rows, columns from shelf on cube by in with formats, no_broadcast latency 7 @made
  legal move of f32 into far from sums on cube by out with formats, no_broadcast
  legal fill of f32 into sums on cube by multiply with formats
  legal mma of f32 left f32 into sums from rows, columns on cube by multiply with formats, few_rows cycles 9 @made latency 11 @made
  legal fill of f32 as at_once
  legal broadcast of f32 as at_once
  legal unary.exp of f32 as at_once with block_broadcast
  legal binary.sub, binary.div, binary.max of f32 as at_once with block_broadcast
  legal reduce.add, reduce.max of f32 as at_once with reduce_scratch
  legal move of f32 into near from near on vector by work with transposes cycles 3 @made
  legal compare.lt, binary.add, ternary.select of whole as elements
  chip "one" { groups 5 @made  legal unary.neg of f32 as at_once }
  chip "two" like "one" { groups 6 @made without unary.exp }
}
"""
MANY_GROUPS = ["operator_product", "operator_softmax", "operator_transpose", "lstm_lookup", "random_13_3", "operator_columns",
               "operator_round"]
# Instructions that one constraint or another forbids; what the verifier says of each is a verdict.
MANY_KERNEL = """igraph @forbidden on many {
  ptr %x : far f32 [16, 16] in 0
  ptr %y : far f32 [16, 16] out 0
  ptr %z : far f32 [16, 16] out 1
  ptr %n : near f32 [16, 16]
  ptr %m : near f32 [16, 16]
  ptr %s : shelf f32 [16, 16]
  ptr %r : rows f32 [16, 16]
  ptr %c : columns f32 [16, 16]
  ptr %a : sums f32 [16, 16]
  phase {
    on vector {
      move.far.near.f32 %n, %x[0:1, 0:16]
      move.far.near.f32 %n, %x[i, j ; j<16, i<16]
      unary.exp.f32 %m, %n[0:16, 0:1]
      binary.max.f32 %m, %n, %n[0:16, 0:1]
      binary.max.f32 %m, %n, %n[i, j ; j<16, i<16]
      reduce.add.row.unit.f32 %m[0:16, 0:1], %n
      move.near.far.f32 %y, %n[0:1, 0:16]
      move.near.near.f32 %m[0:16, 0:8], %n[i, 2*j ; i<16, j<8]
      move.near.far.f32 %z[i, j ; j<16, i<16], %n
    }
    on cube {
      move.far.shelf.f32 %s, %x[0:1, 0:16]
      move.shelf.rows.f32 %r, %s[0:1, 0:16]
      move.shelf.columns.f32 %c, %s
      fill.f32 %a, 0
      mma.f32.f32.f32 %a, %r, %c
      move.sums.far.f32 %y, %a[0:1, 0:16]
      move.sums.far.f32 %y, %a
    }
  }
}
"""
# A machine like a processor: caches, registers, products from there.
CACHED = """device cached {
  source made "made up"
  kinds core
  groups 4 @made
  threads 4 @made
  device_barrier
  mma_rows 8 @made
  mma_columns 32 @made
  byte_group 4 @made
  vector_bytes 32 @made
  registers 16 @made
  loads_per_cycle 2 @made
  multiply_adds_per_cycle 2 @made
  multiply_add_latency 4 @made
  unit_cycles 1000 @made
  conflict_bytes 2048 @made
  dtypes all = f32, f16, i8, u8, i32
  space far { roles memory of device reached_by core alignment 64 @made bytes_per_cycle 4 @made }
  space near { roles scratch, left, right, accumulators of unit reached_by core capacity 65536 @made working_set 32768 @made
    alignment 64 @made cache bytes_per_cycle 16 @made }
  space file { roles registers of unit reached_by core capacity 65536 @made alignment 64 @made }
  form here = into far, near, file from far, near, file on core
  legal move of all as here with no_broadcast
  legal mma of f32 left f32, f16 into near, file from far, near on core with equal_operands
  legal mma of i32 left u8, i8 right i8, u8 into near, file from far, near on core
  legal binary.*, fill, iota, ternary.*, unary.*, compare.*, reduce.* of all as here with same_space
  legal broadcast of all as here
  legal cast of all to all as here
  chip "one" {}
}
"""
CACHED_KERNEL = """igraph @forbidden on cached {
  ptr %x : far f32 [16, 16] in 0
  ptr %h : far f16 [16, 16] in 1
  ptr %n : near f32 [16, 16]
  ptr %m : near f32 [16, 16]
  phase {
    mma.f32.f16.f32 %n, %h, %x
    binary.max.f32 %m, %n, %x
  }
}
"""
CACHED_GROUPS = ["operator_product", "product_bytes", "product_wide", "operator_softmax", "whisper_conv", "llama_gate"]
# Of the second machine what the first one has is not changed again.
OWN = ("threads", "mma_rows", "mma_columns", "byte_group", "vector_bytes", "registers", "loads_per_cycle", "multiply_adds_per_cycle",
       "multiply_add_latency", "unit_cycles", "conflict_bytes", "working_set", "cache", "equal_operands", "same_space",
       "bytes_per_cycle", "registers")
# A machine whose moves change no order, of few flags and signals.
PASSING = """device passing {
  source made "made up"
  kinds core, other
  pipes in, work, out
  groups 4 @made units_per_group 2 @made
  flags 1 @made
  signals 1 @made
  device_barrier
  mma_rows 8 @made
  mma_columns 8 @made
  mma_depth 8 @made
  vector_bytes 32 @made
  space far { roles memory of device reached_by core, other alignment 32 @made }
  space near { roles scratch of unit reached_by core, other capacity 16384 @made alignment 32 @made }
  space shelf { roles scratch of unit reached_by core capacity 16384 @made alignment 32 @made
    blocks columns_of_rows block_lines 8 @made block_bytes 32 @made }
  space rows { roles left of unit reached_by core capacity 8192 @made alignment 64 @made
    blocks rows_of_rows block_lines 8 @made block_bytes 32 @made }
  space columns { roles right of unit reached_by core capacity 8192 @made alignment 64 @made
    blocks rows_of_columns block_lines 8 @made block_bytes 32 @made }
  space sums { roles accumulators of unit reached_by core capacity 8192 @made alignment 64 @made
    blocks columns_of_rows block_lines 8 @made block_elements 8 @made }
  legal move of f32 into near from far on core, other by in with last_contiguous, no_broadcast
  legal move of f32 into far from near on core, other by out with last_contiguous, no_broadcast
  legal move of f32 into near from far on core by in with in_pieces
  legal move of f32 into far from near on core by out with in_pieces
  legal move of f32 into shelf from near on core by out with same_format
  legal move of f32 into rows, columns from shelf on core by in with formats
  legal move of f32 into near from sums on core by work with same_format
  legal fill of f32 into sums on core by work with formats
  legal mma of f32 left f32 into sums from rows, columns on core by work with formats
  chip "one" {}
}
"""
PASSING_KERNEL = """igraph @forbidden on passing {
  ptr %x : far f32 [16, 16] in 0
  ptr %y : far f32 [16, 16] out 0
  ptr %w : far f32 [16, 16] work
  ptr %a : sums f32 [16, 16]
  ptr %b : near f32 [16, 16]:((16), (4, 4)):((4), (1, 64))
  ptr %n : near f32 [16, 16]
  ptr %k : near f32 [16, 16]
  ptr %s : shelf f32 [16, 16]
  phase { parallel p : 2 group
    on core {
      move.far.near.f32 %b, %x
      move.near.shelf.f32 %s, %n
      fill.f32 %a, 0
      move.sums.near.f32 %n, %a
      move.near.far.f32 %w, %b
      sync.core.other
      sync.other.core
    } on other {
      sync.core.other
      move.far.near.f32 %k, %w
      move.near.far.f32 %y, %k
      sync.other.core
    }
  }
}
"""
BASES = [("many", MANY, MANY_GROUPS, MANY_KERNEL, None), ("cached", CACHED, CACHED_GROUPS, CACHED_KERNEL, OWN),
         ("passing", PASSING, ["operator_product"], PASSING_KERNEL, ("flags", "signals", "same_format", "in_pieces"))]
ESTIMATED = 70  # the size of every dim, where an estimate is asked for


def look(file, name, folder, chip):
    """All that is said of a group on the machine; None: the text is no description."""
    device = re.search(r"device (\w+)", open(file).read())[1]
    words = ["--device-file", file, "--device", f"{device}:{chip}"]
    done = run("uir-opt", os.path.join(ROOT, "tests", "lower", "groups", name + ".graph"), *words, "--after", "igraph")
    if done.returncode == 3 or file in done.stderr.split(": error")[0]:
        return None
    said = done.stdout + re.sub(re.escape(file), "", done.stderr)
    text = os.path.join(folder, name + ".txt")
    with open(text, "w") as out:
        out.write(done.stdout)
    for kernel, body in re.findall(r"^igraph @(\w+) on.*?\{\n(.*?)^\}", done.stdout, re.M | re.S):
        dims = re.findall(r"^  dim +(\w+)", body, re.M)
        sizes = [word for d in dims for word in ("--dim", f"{d}={ESTIMATED}")]
        said += run("uir-opt", text, "--device-file", file, "--run", "--kernel", kernel, *sizes, "--estimate").stdout
    return said


def look_at_kernel(file, kernel, folder, chip):
    path = os.path.join(folder, "forbidden.igraph")
    device = re.search(r"device (\w+)", open(file).read())[1]
    with open(path, "w") as out:
        out.write(kernel.replace(f"on {device} {{", f'on {device} "{chip}" {{'))
    said = run("uir-opt", path, "--device-file", file, "--after", "verify").stderr
    return None if file in said else said.replace(path, "")


def edits_of(text):
    """What is changed: a name, and texts that each have it otherwise; the first that is a description counts."""
    found = []

    def offer(name, at, end, *others):
        line = text.count("\n", 0, at) + 1
        found.append((f"line {line}: {name}", [text[:at] + other + text[end:] for other in others]))

    body = text.index("kinds")
    for n in re.finditer(r"(\w+) (\d[\de]*) @made", text):
        value = float(n[2])
        others = [str(int(v)) if v < 1e6 else f"{v:g}" for v in (value * 2, value / 2, value * 8, value / 8, value + 1, value * 1024)
                  if v >= 1]
        offer(f"{n[1]} {n[2]}", n.start(2), n.end(2), *others)
    for n in re.finditer(r"\b(?:roles|with|into|from|on|reached_by|legal|of|to|left|right|dtypes \w+ =) ([\w.*]+(?:, [\w.*]+)*)", text[body:]):
        names, at = n[1].split(", "), body + n.start(1)
        for i, name in enumerate(names if len(names) > 1 else []):
            rest = ", ".join(names[:i] + names[i + 1:])
            offer(f"{n[0].split(' ')[0]} {name}", at, at + len(n[1]), rest)
    for n in re.finditer(r" with (\w+)(?!,)\b", text[body:]):
        offer(f"with {n[1]}", body + n.start(), body + n.end(), "")
    for n in re.finditer(r"\n  legal [^\n]*", text):
        offer(n[0].strip()[:60], n.start(), n.end(), "")
    for n in re.finditer(r"\bby (\w+)", text):
        if n[1] in re.search(r"pipes ([^\n]*)|$", text)[0]:
            offer(f"by {n[1]}", n.start(1), n.end(1), *(p for p in ("in", "work", "slow", "out") if p != n[1]))
    for n in re.finditer(r"blocks (\w+)", text):
        offer(n[0], n.start(1), n.end(1), *(w for w in ("rows_of_columns", "columns_of_columns", "rows_of_rows") if w != n[1]))
    for n in re.finditer(r"\bof (unit|device) ", text):
        offer(f"of {n[1]}", n.start(1), n.end(1), "group", "unit" if n[1] == "device" else "device")
    for word in re.finditer(r"\bdevice_barrier\b|\bcache\b|\bwithout unary.exp\b|\blike \"one\"", text):
        offer(word[0], *word.span(), "")
    return found


class Test(Suite):
    def __init__(self, folder):
        super().__init__()
        self.folder, self.plain = folder, {}

    def looks(self, name, text, groups, number):
        """What is said of one group after the other."""
        folder = os.path.join(self.folder, str(number))
        os.makedirs(folder, exist_ok=True)
        file = os.path.join(folder, "it.device")
        with open(file, "w") as out:
            out.write(text)
        for chip in re.findall(r'chip "(\w+)"', text):
            kernel, *names = groups
            yield (name, chip, ""), look_at_kernel(file, kernel, folder, chip)
            for group in names:
                yield (name, chip, group), look(file, group, folder, chip)

    def changes(self, name, groups, number, texts, refused_too):
        for text in texts:
            for key, said in self.looks(name, text, groups, number):
                if said is None:
                    if refused_too:
                        return True
                    break
                if said != self.plain[key]:
                    return True
        return False

    def check_words(self):
        """Every word of the table stands in a description."""
        table = open(os.path.join(ROOT, "ir", "machine", "device.def")).read()
        words = re.findall(r"^UIR_(?!SPACE_BLOCKS|SPACE_SCOPE)\w+\((\w+),", table, re.M)
        missing = [w for w in words if not re.search(rf"\b{w}\b", MANY + CACHED + PASSING)]
        self.tell(not missing and len(words) > 30, f"words of ir/machine/device.def that this test knows nothing of: {missing}")


def main():
    parser = make_parser(__doc__, jobs=1, only="", shard=(1, 1))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        test = Test(folder)
        test.check_words()
        work = []
        for name, text, groups, kernel, own in BASES:
            groups = [kernel, *groups]
            test.plain.update(test.looks(name, text, groups, name))
            bare = [key for key, said in test.plain.items() if not said]
            test.tell(not bare, f"nothing is said of {bare}")
            for what, texts in edits_of(text):
                if options.only in what and (not own or any(w in what for w in own)):
                    work.append((f"{name}, {what}", name, groups, len(work), texts, ": of " in what))
        work = take_shard(work, options.shard)
        for (what, *_), changed in zip(work, pool.map(lambda w: test.changes(*w[1:]), work)):
            test.tell(changed, f"{what}: changed, and no kernel, verdict or estimate is another one")
    print(f"{len(work)} changes of {len(BASES)} descriptions")
    return test.end()


if __name__ == "__main__":
    sys.exit(main())
