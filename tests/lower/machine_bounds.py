"""What a machine can do of a group, by its description and the group's text alone: none of the compiler's code or tables.

Two questions. Do its instructions suffice: has each function one of its own, or simpler ones that make it up; is there a
way to bring operands to where it works and results away, and to put elements in another order where the group does? And
a bound: has its scratch room for what is alive at once, where rows are streamed, a slice of 32 elements of each value, or
of a row that is reordered one more slice at either end? Yes to both: it can be done.
"""
import re

WORK = 32  # elements of a slice
F32 = "f32"
# A function of f32 by simpler ones, and values that are alive on the way at once.
MADE_OF = {
    "unary.neg": (["binary.mul"], 0), "unary.abs": (["binary.max", "unary.neg"], 1),
    "binary.sub": (["binary.add", "unary.neg"], 1), "binary.min": (["ternary.select", "compare.lt"], 1),
    "binary.max": (["ternary.select", "compare.gt"], 1), "compare.gt": (["compare.lt"], 0),
    "compare.ge": (["compare.le"], 0), "unary.sign": (["ternary.select", "compare.gt", "compare.lt"], 2),
    "binary.div": (["binary.mul", "unary.reciprocal"], 1), "unary.reciprocal": (["binary.div"], 0),
    "unary.trunc": (["compare.lt", "unary.abs", "ternary.select", "to i32", "from i32"], 3),
    "unary.floor": (["unary.trunc", "compare.gt", "binary.sub", "ternary.select"], 3),
    "unary.ceil": (["unary.trunc", "compare.lt", "binary.add", "ternary.select"], 3),
    "unary.round": (["compare.lt", "unary.abs", "binary.add", "binary.sub", "ternary.select"], 3),
    "unary.exp": (["binary.mul", "binary.add", "binary.max", "binary.min"], 3),
    "unary.sigmoid": (["unary.exp", "unary.neg", "unary.abs", "compare.lt", "ternary.select", "binary.add", "binary.div"], 3),
    "unary.tanh": (["unary.exp", "unary.abs", "unary.neg", "binary.mul", "binary.add", "binary.sub", "binary.div",
                    "compare.lt", "ternary.select"], 6),
    "unary.erf": (["unary.exp", "unary.abs", "unary.neg", "binary.mul", "binary.add", "binary.sub", "binary.div",
                   "compare.lt", "ternary.select"], 8),
    "unary.sin": (["unary.round", "unary.floor", "unary.neg", "binary.mul", "binary.add", "binary.sub", "compare.eq",
                   "compare.ge", "ternary.select"], 8),
    "unary.cos": (["unary.sin"], 1),
}
UNARY = {"neg", "abs", "sign", "sqrt", "floor", "ceil", "round", "trunc", "exp", "log", "tanh", "erf", "sigmoid", "sin",
         "cos"}
BINARY = {"add", "sub", "mul", "div", "mod", "min", "max"}
COMPARE = {"eq", "ne", "lt", "le", "gt", "ge"}
REDUCE = {"reduce_sum": "reduce.add", "reduce_max": "reduce.max", "reduce_min": "reduce.min", "window_max": "reduce.max"}
PRODUCTS = {"matmul", "conv"}
VIEWS = {"broadcast", "reshape"}
# What puts elements in another order, or takes some of them.
ORDERS = {"transpose", "slice", "concat", "gather", "gather_nd", "windows", "conv", "window_max", "scan_sum", "dim_values",
          "arg_max"}
SIZES = {"i8": 1, "u8": 1, "bool": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "f32": 4, "i64": 8, "u64": 8}
NODE = re.compile(r"^\s+(%[\w.]+)(?: \"[^\"]*\")?: (\w+)\[([^\]]*)\](\S*).*? = (\w+)\(([^)]*)\)(.*)$")
PARAMETER = re.compile(r"(%[\w.]+)(?: \"[^\"]*\")?: (\w+)\[([^\]]*)\](:\()?")


class Node:
    def __init__(self, name, dtype, dims, op, inputs, attributes):
        self.name, self.dtype, self.dims, self.op, self.inputs, self.attributes = name, dtype, dims, op, inputs, attributes


class Body:
    def __init__(self):
        self.types, self.dims, self.nodes, self.results, self.placed = {}, {}, [], [], False


def split_dims(text):
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return parts + [part.strip()] if part.strip() else parts


def read_bodies(text):
    """The bodies of a module's groups; constants are numbers in their instructions."""
    constants = re.findall(r"^constant (%[\w.]+)(?: \"[^\"]*\")?: (\w+)\[([^\]]*)\]", text, re.M)
    bodies = []
    for line in text.split("\n"):
        if " = group(" in line:
            body = Body()
            for name, dtype, dims in constants:
                body.types[name], body.dims[name] = dtype, split_dims(dims)
            for name, dtype, dims, layout in PARAMETER.findall(line.split("{body =")[1]):
                body.types[name], body.dims[name] = dtype, split_dims(dims)
                body.placed = body.placed or bool(layout)
            body.placed = body.placed or "]:(" in line.split(" = group(")[0]
            body.constants = {c[0] for c in constants if not split_dims(c[2])}
            bodies.append(body)
        elif bodies and line.strip().startswith("return ") and not bodies[-1].results:
            bodies[-1].results = line.split("return ")[1].split(", ")
        elif bodies and not bodies[-1].results and (found := NODE.match(line)):
            inputs = [i for i in found[6].split(", ") if i]
            node = Node(found[1], found[2], split_dims(found[3]), found[5], inputs, found[7])
            bodies[-1].nodes.append(node)
            bodies[-1].types[node.name], bodies[-1].dims[node.name] = node.dtype, node.dims
    return bodies


class Oracle:
    def __init__(self, device):
        self.device = device
        self.scratch = next((s for s in device.spaces.values() if "scratch" in s.roles and not s.cache), None)
        self.memory = device.with_role("memory")

    def rows(self, iop, dtype, into, source, other=None):
        return [row for row in self.device.legal
                if row.names(iop) and dtype in row.dtypes and into in row.into and (source is None or source in row.source)
                and (other is None or other in (row.other or row.dtypes))]

    def here(self, iop, dtype, other=None):
        """Rows of it within the scratch."""
        return self.rows(iop, dtype, self.scratch.name, self.scratch.name, other)

    def lacks(self, iop, dtype, above=()):
        """What is lacking of a function of that dtype, and values alive on its way."""
        if iop in ("to i32", "from i32"):
            pair = (F32, "i32") if iop == "to i32" else ("i32", F32)
            return (None, 1) if self.here("cast", *pair) else (f"cast from {pair[0]} to {pair[1]}", 0)
        if self.here(iop, dtype):
            return None, 0
        if dtype != F32 or iop not in MADE_OF or iop in above:
            return f"{iop} of {dtype}", 0
        pieces, values = MADE_OF[iop]
        deepest = 0
        for piece in pieces:
            lacking, more = self.lacks(piece, dtype, (*above, iop))
            if lacking:
                return f"{iop} of {dtype}", 0
            deepest = max(deepest, more)
        return None, values + deepest

    def wants(self, node, body):
        """The functions of a node, each with its dtype."""
        dtype = body.types.get(node.inputs[0], node.dtype) if node.inputs else node.dtype
        if node.op in UNARY:
            return [("unary." + node.op, dtype)]
        if node.op in BINARY:
            return [("binary." + node.op, dtype)]
        if node.op in COMPARE:
            return [("compare." + node.op, dtype)]
        if node.op in REDUCE:
            return [(REDUCE[node.op], dtype)]
        if node.op == "select":
            return [("ternary.select", node.dtype)]
        if node.op == "is_nan":
            return [("compare.ne", dtype)]
        if node.op in PRODUCTS:
            return [("binary.mul", dtype), ("reduce.add", node.dtype), ("binary.add", node.dtype)]
        if node.op == "scan_sum":
            return [("scan.add", dtype)]
        if node.op == "arg_max":
            return [("compare.gt", dtype), ("compare.lt", node.dtype), ("compare.eq", dtype), ("compare.ne", dtype),
                    ("ternary.select", dtype), ("ternary.select", node.dtype), ("iota", node.dtype), ("binary.and", "bool"),
                    ("binary.or", "bool"), ("binary.min", node.dtype)]
        if node.op == "iota":
            return [("iota", node.dtype)]
        if node.op in ("gather", "gather_nd"):  # indices below 0 count from the end
            index = body.types[node.inputs[1]]
            return [("compare.lt", index), ("binary.add", index), ("ternary.select", index)]
        return []

    def instructions(self, body):
        """What is lacking, or None, and values alive within the node that takes the most."""
        s, m = self.scratch.name, self.memory.name
        most = 0
        for dtype in {body.types[v] for v in body.types if v not in body.constants}:
            if not self.rows("move", dtype, s, m):
                return f"a move of {dtype} to the scratch", 0
            if not self.rows("move", dtype, m, s):
                return f"a move of {dtype} from the scratch", 0
        ordered = self.sorts(body)
        for node in body.nodes:
            for dtype in {node.dtype, *(body.types[i] for i in node.inputs)}:
                free = [r for r in self.here("move", dtype) if not r.constraints & {"last_contiguous", "transposes"}]
                if ordered and self.wants_rows() and not free:
                    return f"a move of single elements of {dtype}", 0
            if node.op == "cast":
                source = body.types[node.inputs[0]]
                if source != node.dtype and not self.here("cast", source, node.dtype):
                    if not (source != F32 != node.dtype and self.here("cast", source, F32) and self.here("cast", F32, node.dtype)):
                        return f"cast from {source} to {node.dtype}", 0
            if node.op == "broadcast" and self.repeats() and not self.here("broadcast", node.dtype):
                return f"broadcast of {node.dtype}", 0
            for iop, dtype in self.wants(node, body):
                lacking, values = self.lacks(iop, dtype)
                if lacking:
                    return lacking, 0
                most = max(most, values)
        return None, most

    def repeats(self):
        """Does what repeats along a row have to be written out?"""
        return any("block_broadcast" in r.constraints for r in self.device.legal if self.scratch.name in r.into)

    def wants_rows(self):
        return any("last_contiguous" in r.constraints for r in self.device.legal if self.scratch.name in r.into)

    def sorts(self, body):
        """Are elements put in another order?"""
        if body.placed or any(n.op in ORDERS for n in body.nodes):
            return True
        for node in body.nodes:
            axes = re.search(r"axes = \[([\d, ]+)\]", node.attributes)
            if node.op in REDUCE and axes and split_dims(axes[1])[-1] != str(len(body.dims[node.inputs[0]]) - 1):
                return True
            if node.op == "reshape" and body.dims[node.inputs[0]][-1:] != node.dims[-1:]:
                return True
            if node.op == "matmul":
                return True
            if node.op == "broadcast" and body.dims[node.inputs[0]][-1:] not in (node.dims[-1:], [], ["1"]):
                return True
        return False

    def block(self, dtype, elements=WORK):
        least, align = elements * SIZES[dtype], self.scratch.alignment
        return (least + align - 1) // align * align

    def bound(self, body, within=0):
        """Bytes that are alive at once: of a node its operands, what it makes, what later nodes need, what it takes within
        (`within` values)."""
        source = {}
        for node in body.nodes:
            if node.op in VIEWS and node.inputs:
                source[node.name] = source.get(node.inputs[0], node.inputs[0])
        name = lambda v: source.get(v, v)
        made, last = {}, {}
        for at, node in enumerate(body.nodes):
            for i in node.inputs:
                last[name(i)] = at
            made[node.name] = at
        most = 0
        for at, node in enumerate(body.nodes):
            if node.op in VIEWS:
                continue
            values = {name(i) for i in node.inputs if name(i) not in body.constants} | {node.name}
            values |= {v for v, begun in made.items() if begun < at and v not in source and last.get(v, -1) > at}
            bytes_ = sum(self.block(body.types[v]) for v in values)
            widest = max((self.block(body.types[v]) for v in values), default=0)
            extra = within
            if node.op in REDUCE or node.op in PRODUCTS or node.op == "arg_max":
                extra += 1 + any("reduce_scratch" in r.constraints for r in self.here("reduce.add", F32))
            if node.op in PRODUCTS:
                extra += 1
            if node.op == "arg_max":
                extra += 4
            if any("block_broadcast" in r.constraints for r in self.device.legal):
                extra += 1
            most = max(most, bytes_ + extra * widest)
        if self.wants_rows() and self.sorts(body):
            most += 2 * max((self.block(t) for t in body.types.values()), default=0)
        elif not body.nodes or not most:
            most = 2 * max((self.block(t) for t in body.types.values()), default=0)
        return most

    def judge(self, bodies):
        """(True, "") or (False, what is lacking, or does not fit)."""
        if not self.scratch or not self.memory:
            return False, "no space to work in"
        for body in bodies:
            lacking, within = self.instructions(body)
            if lacking:
                return False, "lacks " + lacking
            bound = self.bound(body, within)
            if self.scratch.capacity and bound > self.scratch.capacity:
                return False, f"needs {bound} bytes, there are {self.scratch.capacity}"
        return True, ""
