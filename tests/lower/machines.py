"""Descriptions of machines drawn at random, from a seed: what docs/devices.md can say of spaces, units, pipes and
instructions, in any mixture that a machine could have."""
import random

ORDERS = ["rows_of_rows", "rows_of_columns", "columns_of_rows", "columns_of_columns"]
WHOLE = "i8, u8, i16, u16, i32, u32, i64, u64, bool"
# Of f32: what other instructions can stand for, and what few machines lack.
OFTEN_LACKING = ["unary.exp", "unary.exp2", "unary.tanh", "unary.erf", "unary.sigmoid", "unary.floor", "unary.ceil",
                 "unary.round", "unary.trunc", "unary.sign", "unary.abs", "unary.neg", "unary.sin", "unary.cos", "unary.rsqrt",
                 "binary.sub", "binary.div", "binary.max", "binary.min", "compare.gt", "compare.ge", "ternary.fma",
                 "binary.fmod", "binary.maxnum"]
RARELY_LACKING = ["unary.sqrt", "unary.reciprocal", "unary.log", "binary.add", "binary.mul", "compare.eq", "compare.ne",
                  "compare.lt", "compare.le", "ternary.select"]
REDUCTIONS = ["reduce.add", "reduce.max", "reduce.min"]
MEANT = ("row", "col", "acc", "min", "max", "mod", "and", "not", "fill", "last", "first", "unit", "group", "when", "cores",
         "bool", "device", "align", "on", "or", "if")


def word(r, used):
    while True:
        made = "".join(r.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(r.randint(2, 7))) + r.choice(["", "0", "_x"])
        if made not in used and len(made) > 2 and made not in MEANT and not made[1:].isdigit():
            used.add(made)
            return made


class Machine:
    """`text` is the description; `features`, by name, what the generator drew."""

    def __init__(self, seed):
        r = self.r = random.Random(seed)
        self.used, self.seed, self.features = set(), seed, {}
        self.name, self.memory, self.scratch = (word(r, self.used) for _ in range(3))
        self.room = 1 << r.randint(12, 20)
        self.align = 1 << r.randint(2, 9)
        self.kinds = [word(r, self.used) for _ in range(r.choice([1, 1, 2]))]
        self.units = r.randint(len(self.kinds), 8)
        self.pipes = [word(r, self.used) for _ in range(r.choice([0, 0, 1, 2, 3, 4, 5, 6, 7]))]
        self.rows = r.random() < 0.6  # vectors are rows of elements side by side
        self.blocks = self.rows and r.random() < 0.5 and self.align <= 32
        self.direct = r.random() < 0.25  # operands from the device's memory too
        self.scratched = r.random() < 0.5
        # Spaces on the way from memory to the multiplier; None: there is none.
        self.between = r.choice([None, 0, 1, 2, 3, 3])
        self.near = self.between == 0 and r.choice(["scratch", "memory"])  # where it has its factors
        self.mma = [r.choice([1, 2, 3, 4, 5, 8, 12, 16, 24, 32]) for _ in range(3)]
        self.lacks = {f for f in OFTEN_LACKING if r.random() < 0.35} | {f for f in RARELY_LACKING + REDUCTIONS
                                                                      if r.random() < 0.015}
        self.lacks |= {f for f in ("slow move", "slow work", "cast to whole", "cast from whole", "broadcast")
                       if r.random() < 0.02}
        self.spaces, self.legal = [], []
        self.write()
        self.legal = [row + self.costs(*(("latency", "bytes_per_cycle") if row.startswith("legal move") else
                                         ("latency", "cycles"))) for row in self.legal]
        self.text = "\n".join(self.head + self.spaces + ["  " + row for row in self.legal] + ['  chip "one" {}', "}"]) + "\n"
        self.look()

    def look(self):
        count = lambda n: "none" if n is None else str(n)
        self.features = {
            "spaces to mma": count(self.between),
            "room": f"{self.room >> 10} KiB",
            "alignment": str(self.align),
            "units": str(self.units),
            "kinds": str(len(self.kinds)),
            "pipes": str(len(self.pipes)),
            "block sides": "not square" if len(set(self.mma)) > 1 else "square",
            "operands in memory": "yes" if self.direct or self.near == "memory" else "no",
            "reductions": "with scratch" if self.scratched else "without",
            "instructions": "some missing" if self.lacks else "all",
            "rows": "side by side" if self.rows else "any",
            "repeated": "blocks" if self.blocks else "as they are",
        }

    def by(self):
        return f" by {self.r.choice(self.pipes)}" if self.pipes else ""

    def costs(self, *words):
        """What an instruction takes, of some of them."""
        return "".join(f" {word} {self.r.randint(1, 200)} @drawn" for word in words if self.r.random() < 0.3)

    def count_kinds(self):
        """The kinds of units; of some machines how many a group has of each."""
        if self.r.random() < 0.5:
            return ", ".join(self.kinds)
        first = self.units if len(self.kinds) == 1 else self.r.randint(1, self.units - 1)
        return ", ".join(f"{kind} {count} @drawn" for kind, count in zip(self.kinds, [first, self.units - first]))

    def space(self, name, roles, kinds, room=None, more=""):
        align = self.align if name == self.scratch else 1 << self.r.randint(2, 9)
        self.spaces.append(f"  space {name} {{ roles {roles} of unit reached_by {kinds} "
                           f"capacity {room or 1 << self.r.randint(12, 20)} @drawn alignment {align} @drawn"
                           f"{self.costs('bytes_per_cycle')} {more}}}")

    def format(self):
        r = self.r
        if r.random() < 0.4:
            return ""
        kind = r.choice(["block_bytes", "block_elements"])
        size = r.choice([8, 16, 32, 64, 128]) if kind == "block_bytes" else r.choice([1, 2, 3, 4, 6, 8, 16, 32])
        return (f"blocks {r.choice(ORDERS)} block_lines {r.choice([1, 2, 3, 4, 5, 8, 12, 16, 32])} @drawn "
                f"{kind} {size} @drawn ")

    def vector(self):
        kind, s, m = self.kinds[0], self.scratch, self.memory
        side = " with last_contiguous" if self.rows else ""
        form = side + (", block_broadcast" if self.blocks else "")
        at = f" into {s} from {s}{', ' + m if self.direct else ''} on {kind}"
        moves = " with last_contiguous, no_broadcast" if self.rows else ""
        self.legal += [f"legal move of all into {s} from {m} on {kind}{self.by()}{moves}",
                       f"legal move of all into {m} from {s} on {kind}{self.by()}{moves}"]
        compute = self.by()
        names = ", ".join(a for a in OFTEN_LACKING + RARELY_LACKING if a not in self.lacks)
        wants = [w for w in (self.rows and "last_contiguous", self.scratched and "reduce_scratch") if w]
        reductions = ", ".join(a for a in REDUCTIONS if a not in self.lacks)
        fills = "fill, iota" if "broadcast" in self.lacks else "fill, iota, broadcast"
        self.legal += [f"legal move of all{at}{compute}{side}", f"legal {fills} of f32{at}{compute}{side}",
                       f"legal {names} of f32{at}{compute}{form}"]
        if reductions:
            self.legal.append(f"legal {reductions} of f32{at}{compute}{' with ' + ', '.join(wants) if wants else ''}")
        if self.rows and self.r.random() < 0.5:
            self.legal.append(f"legal move of f32 into {s} from {s} on {kind}{compute} with transposes")
        slow = self.by()
        if "slow move" not in self.lacks:
            self.legal.append(f"legal move of all{at}{slow}")
        if "slow work" not in self.lacks:
            self.legal += [f"legal fill, iota, broadcast of whole{at}{slow}",
                           f"legal unary.*, binary.*, compare.*, ternary.*, reduce.*, scan.* of whole{at}{slow}",
                           f"legal reduce.mul, scan.* of f32{at}{slow}", f"legal cast of whole to whole{at}{slow}"]
        if "cast to whole" not in self.lacks:
            self.legal.append(f"legal cast of f32 to whole{at}{slow}")
        if "cast from whole" not in self.lacks:
            self.legal.append(f"legal cast of whole to f32{at}{slow}")

    def multiplier(self):
        kind, m = self.kinds[-1], self.memory
        left, right, sums = (word(self.r, self.used) for _ in range(3))
        way = [word(self.r, self.used) for _ in range(max(0, self.between - 1))]
        for name in way:
            self.space(name, "scratch", kind, more=self.format())
        self.space(left, "left", kind, more=self.format())
        self.space(right, "right", kind, more=self.format())
        self.space(sums, "accumulators", kind, more=self.format())
        before = m
        for name in way:
            self.legal.append(f"legal move of f32 into {name} from {before} on {kind}{self.by()} with formats, no_broadcast")
            before = name
        self.legal += [f"legal move of f32 into {left}, {right} from {before} on {kind}{self.by()} with formats, no_broadcast",
                       f"legal move of f32 into {m} from {sums} on {kind}{self.by()} with formats, no_broadcast",
                       f"legal fill of f32 into {sums} on {kind}{self.by()} with formats",
                       f"legal mma of f32 left f32 into {sums} from {left}, {right} on {kind}{self.by()} with formats"]

    def write(self):
        r, roles, kinds = self.r, "scratch", ", ".join(self.kinds)
        if self.between == 0:
            roles += ", accumulators" if self.near == "memory" else ", left, right, accumulators"
        reached = self.kinds[0] if self.between != 0 else kinds
        self.space(self.scratch, roles, reached, self.room)
        self.vector()
        if self.between == 0:
            s = self.scratch
            factors = self.memory if self.near == "memory" else s
            self.legal.append(f"legal mma of f32 left f32 into {s} from {factors} on {self.kinds[0]}{self.by()}")
        elif self.between is not None:
            self.multiplier()
        lines = [f"device {self.name} {{", '  source drawn "drawn at random"', f"  kinds {self.count_kinds()}"]
        if self.pipes:
            lines.append(f"  pipes {', '.join(self.pipes)}")
        if r.random() < 0.5:
            lines.append(f"  cycles_per_second {r.randint(1, 30)}e8 @drawn")
        memory = "memory, left, right" if self.near == "memory" else "memory"
        lines += [f"  dtypes whole = {WHOLE}", "  dtypes all = whole, f32",
                  f"  groups {r.randint(1, 40)} @drawn units_per_group {self.units} @drawn", "  device_barrier",
                  f"  mma_rows {self.mma[0]} @drawn mma_columns {self.mma[1]} @drawn mma_depth {self.mma[2]} @drawn",
                  f"  vector_bytes {r.choice([4, 16, 64, 256])} @drawn",
                  f"  space {self.memory} {{ roles {memory} of device reached_by {kinds} "
                  f"alignment {r.choice([1, 4, 32])} @drawn }}"]
        self.head = lines
