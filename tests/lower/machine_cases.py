"""Thirty questions to machine_bounds.py, answered by hand.

Each is a body of a group, a machine, and the answer: the least bytes of scratch, or what is lacking. A slice is 32
elements: 128 bytes of f32 and of i32, 256 of i64, 32 of u8 and bool, rounded up to the alignment. `plain` machines
take elements wherever they lie; `rows` want them side by side, but for a move within the scratch where `loose`. What
follows each case says how its number comes about.
"""
import description
import machine_bounds

ALL = "unary.*, binary.*, compare.*, ternary.*, reduce.*, scan.*"


def machine(capacity=1 << 20, alignment=4, functions=ALL, rows=False, loose=True, blocks=False, scratched=False, casts=True,
            whole=True, back=True, dtypes="all"):
    side = " with last_contiguous" if rows else ""
    lines = ['device toy {', 'source hand "worked by hand"', "kinds core", "dtypes whole = i8, u8, i32, i64, bool",
             "dtypes all = whole, f32", "groups 1 @hand units_per_group 1 @hand", "device_barrier",
             "space far { roles memory of device reached_by core alignment 1 @hand }",
             f"space near {{ roles scratch of unit reached_by core capacity {capacity} @hand alignment {alignment} @hand }}",
             f"legal move of {dtypes} into near from far on core{side}"]
    at = "into near from near on core"
    if back:
        lines.append(f"legal move of {dtypes} into far from near on core{side}")
    lines.append(f"legal fill, iota, broadcast of all {at}")
    if rows:
        lines.append(f"legal move of all {at} with last_contiguous")
    if loose:
        lines.append(f"legal move of all {at}")
    wants = [w for w in (rows and "last_contiguous", blocks and "block_broadcast") if w]
    lines.append(f"legal {functions} of f32 {at}{' with ' + ', '.join(wants) if wants else ''}")
    if scratched:
        lines = [line for line in lines if "reduce" not in line or line.startswith("space")]
        lines += [f"legal binary.*, unary.* of f32 {at}", f"legal reduce.* of f32 {at} with reduce_scratch"]
    if whole:
        lines.append(f"legal unary.*, binary.*, compare.*, ternary.*, reduce.* of whole {at}")
    if casts:
        lines.append(f"legal cast of all to all {at}")
    return description.read("\n".join([*lines, 'chip "one" {}', "}"]))


def body(given, *nodes, constants=()):
    lines = [f"constant %{name}: {kind} = [1]" for name, kind in constants]
    head = ", ".join(f"%{name}: {kind}" for name, kind in given)
    lines.append(f'    %r: f32[] = group(%o) {{body = graph "body" ({head}) {{')
    lines += [f"        {node}" for node in nodes] + ["        return %r", "    }}"]
    return machine_bounds.read_bodies("\n".join(lines))


AB = (("a", "f32[N, M]"), ("b", "f32[N, M]"))
A = (("a", "f32[N, M]"),)
ADD = body(AB, "%r: f32[N, M] = add(%a, %b)")
DOUBLE = body(A, "%r: f32[N, M] = add(%a, %a)")
EXP = body(A, "%r: f32[N, M] = exp(%a)")
SUB = body(AB, "%r: f32[N, M] = sub(%a, %b)")
TANH = body(A, "%r: f32[N, M] = tanh(%a)")
SCALE = body(A, "%r: f32[N, M] = mul(%a, %c)", constants=(("c", "f32[]"),))
CHAIN = body(AB, "%e: f32[N, M] = exp(%a)", "%f: f32[N, M] = exp(%b)", "%r: f32[N, M] = add(%e, %f)")
SUM = body(A, "%r: f32[N, 1] = reduce_sum(%a) {axes = [1], keep = 1}")
COLUMNS = body(A, "%r: f32[1, M] = reduce_sum(%a) {axes = [0], keep = 1}")
TURN = body(A, "%r: f32[M, N] = transpose(%a) {perm = [1, 0]}")
COPY = body(A, "%r: f32[N, M] = reshape(%a) {dims = [N, M]}")
WIDEN = body((("a", "i32[N]"),), "%r: i64[N] = cast(%a) {to = i64}")
NARROW = body(A, "%r: u8[N, M] = cast(%a) {to = u8}")
CHOOSE = body((*AB, ("q", "bool[N, M]")), "%r: f32[N, M] = select(%q, %a, %b)")
PRODUCT = body((("a", "f32[N, K]"), ("b", "f32[K, M]")), "%r: f32[N, M] = matmul(%a, %b) {to = f32}")
LOOKUP = body((("a", "f32[N, M]"), ("i", "i64[K]")), "%r: f32[K, M] = gather(%a, %i) {axis = 0}")
SOFTMAX = body(A, "%m: f32[N, 1] = reduce_max(%a) {axes = [1], keep = 1}", "%w: f32[N, M] = broadcast(%m) {dims = [N, M]}",
               "%d: f32[N, M] = sub(%a, %w)", "%e: f32[N, M] = exp(%d)",
               "%s: f32[N, 1] = reduce_sum(%e) {axes = [1], keep = 1}", "%v: f32[N, M] = broadcast(%s) {dims = [N, M]}",
               "%r: f32[N, M] = div(%e, %v)")

# what, bodies, what the machine differs by, bytes or what is lacking
CASES = [
    ("two operands and a result: 3 x 128", ADD, {}, 384),
    ("slices begin at multiples of 512: 3 x 512", ADD, {"alignment": 512}, 1536),
    ("one operand, read twice, and a result: 2 x 128", DOUBLE, {}, 256),
    ("an operand and a result: 2 x 128", EXP, {}, 256),
    ("a number is in the instruction: 2 x 128", SCALE, {}, 256),
    ("e, while f is made of b: 3 x 128; then e, f, r: 3 x 128", CHAIN, {}, 384),
    ("a - b = a + -b: a, b, r, and -b: 4 x 128", SUB, {"functions": "unary.neg, binary.add"}, 512),
    ("without a negation too, by a product", SUB, {"functions": "binary.mul, binary.add"}, 512),
    ("neither a difference nor a negation", SUB, {"functions": "binary.add"}, "binary.sub of f32"),
    ("e^x of sums and products, kept in range: a, r, and 3 on the way", EXP,
     {"functions": "binary.mul, binary.add, binary.max, binary.min"}, 640),
    ("and nothing keeps it in range", EXP, {"functions": "binary.mul, binary.add"}, "unary.exp of f32"),
    ("max by a choice of what is greater, that by less: 3 + 1 for it", EXP,
     {"functions": "binary.mul, binary.add, compare.lt, ternary.select"}, 768),
    ("tanh has an instruction: 2 x 128", TANH, {}, 256),
    ("by exponentials: a, r, and 6 on the way: 8 x 128", TANH,
     {"functions": "unary.exp, unary.abs, unary.neg, binary.*, compare.lt, ternary.select"}, 1024),
    ("a, r, what a step leaves: 3 x 128", SUM, {}, 384),
    ("and what the instruction wants besides: 4 x 128", SUM, {"scratched": True}, 512),
    ("nothing adds up rows", SUM, {"functions": "binary.*"}, "reduce.add of f32"),
    ("columns, by rows that lie side by side: a, r, a step, and 2 to put in order", COLUMNS, {"rows": True}, 640),
    ("columns, wherever they lie: 3 x 128", COLUMNS, {}, 384),
    ("turned: what is read and what is made: 2 x 128", TURN, {}, 256),
    ("turned by single elements, beside a row at either end: 4 x 128", TURN, {"rows": True}, 512),
    ("turned, and only rows move", TURN, {"rows": True, "loose": False}, "a move of single elements of f32"),
    ("a copy wants a slice at either end", COPY, {"rows": True, "loose": False}, 256),
    ("nothing comes back from the scratch", COPY, {"back": False}, "a move of f32 from the scratch"),
    ("32 of i32 and 32 of i64: 128 + 256", WIDEN, {}, 384),
    ("no casts", NARROW, {"casts": False}, "cast from f32 to u8"),
    ("a mark of 32 bytes each: 32 + 3 x 128", CHOOSE, {}, 416),
    ("two operands, the sums, their products and a step's: 5 x 128", PRODUCT, {}, 640),
    ("an index below 0 counts from the end, and nothing compares whole numbers", LOOKUP, {"whole": False},
     "compare.lt of i64"),
    ("most is alive at the last: e, s, r; at the sum of e: e, s, a step: 3 x 128; a block repeats s: 4 x 128", SOFTMAX,
     {"blocks": True}, 512),
]


def check(tell):
    for what, bodies, differs, answer in CASES:
        oracle = machine_bounds.Oracle(machine(**differs))
        can, why = oracle.judge(bodies)
        if isinstance(answer, str):
            tell(not can and why == "lacks " + answer, f"by hand: {what}: {why or 'it can be done'}")
            continue
        lacking, within = oracle.instructions(bodies[0])
        bound = None if lacking else oracle.bound(bodies[0], within)
        tell(can and bound == answer, f"by hand: {what}: {answer}, not {why or bound}")
        fits, short = (machine_bounds.Oracle(machine(answer - less, **differs)).judge(bodies)[0] for less in (0, 1))
        tell(fits and not short, f"by hand: {what}: {answer} bytes are enough, one less is not")
    tell(len(CASES) == 30, "thirty cases by hand")
