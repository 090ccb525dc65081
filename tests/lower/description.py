"""Descriptions of devices (docs/devices.md) as data, read by code of its own: what the compiler makes of the same text is
none of its business. The first chip is what is read."""
import re

ROLES = ("memory", "scratch", "registers", "left", "right", "accumulators")
TOKEN = re.compile(r'\s*(?:#[^\n]*\n\s*)*("[^"]*"|@\w+|[A-Za-z_][\w]*(?:\.(?:\w+|\*))*|\*|[\d.eE+]+|[{}=,-])')


class Space:
    def __init__(self, name):
        self.name, self.roles, self.kinds, self.scope = name, set(), set(), "unit"
        self.blocks, self.cache, self.numbers = None, False, {"alignment": 1}

    def __getattr__(self, name):
        return self.__dict__["numbers"].get(name, 0)


COSTS = ("cycles", "cycles_per_element", "repeats", "latency", "bytes_per_cycle")


class Legal:
    """One instruction that is legal: `other` None where its dtypes are those of `dtypes`."""

    def __init__(self, iop, form, dtypes, other=None, right=None):
        self.iop, self.dtypes, self.other, self.right = iop, dtypes, other, right
        self.into, self.source, self.kinds, self.constraints, self.pipe = (set(form["into"]), set(form["from"]),
                                                                           set(form["on"]), set(form["with"]), form["by"])
        self.costs = {word: form[word] for word in COSTS}

    def names(self, iop):
        return self.iop in ("*", iop) or (self.iop.endswith(".*") and iop.startswith(self.iop[:-1]))


class Device:
    def __init__(self):
        self.name, self.kinds, self.pipes, self.barrier = "", {}, [], False
        self.numbers, self.spaces, self.legal = {}, {}, []

    def with_role(self, role):
        return next((s for s in self.spaces.values() if role in s.roles), None)


class Reader:
    def __init__(self, text):
        self.tokens, at = [], 0
        while True:
            found = TOKEN.match(text, at)
            if not found:
                break
            self.tokens.append(found[1])
            at = found.end()
        self.at, self.device, self.sets, self.forms, self.own = 0, Device(), {}, {}, None

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, word):
        is_next = self.peek() == word
        self.at += is_next
        return is_next

    def listed(self):
        names = [self.take()]
        while self.accept(","):
            names.append(self.take())
        return names

    def number(self):
        value = int(self.take())
        self.take()  # where it is from
        return value

    def kinds(self):
        """Names, and of some how many a group has."""
        counts = {}
        while True:
            name = self.take()
            counts[name] = self.number() if self.peek().isdigit() else 0
            if not self.accept(","):
                return counts

    def dtypes(self):
        kept, takes = set(), False
        while True:
            name = self.take()
            some = self.sets.get(name, {name})
            kept = kept - some if takes else kept | some
            takes = self.accept("-")
            if not takes and not self.accept(","):
                return kept

    def form(self):
        form = {"into": [], "from": [], "on": [], "with": [], "by": None, **{word: 0 for word in COSTS}}
        while self.peek() in ("as", "into", "from", "on", "by", "with", *COSTS):
            word = self.take()
            if word in COSTS:
                form[word] = self.number()
            elif word == "as":
                other = self.forms[self.take()]
                for key in ("into", "from", "on", "with"):
                    form[key] = form[key] + other[key]
                for key in ("by", *COSTS):
                    form[key] = other[key] or form[key]
            elif word == "by":
                form["by"] = self.take()
            else:
                form[word] = form[word] + self.listed()
        return form

    def space(self):
        name = self.take()
        space = self.device.spaces.setdefault(name, Space(name))
        self.take()
        while not self.accept("}"):
            word = self.take()
            if word == "roles":
                space.roles = set(self.listed())
            elif word == "of":
                space.scope = self.take()
            elif word == "reached_by":
                space.kinds = set(self.listed())
            elif word == "cache":
                space.cache = True
            elif word == "blocks":
                space.blocks = self.take()
            else:
                space.numbers[word] = self.number()

    def rows(self):
        iops = self.listed()
        self.take()  # of
        dtypes, other, right = self.dtypes(), None, None
        if self.accept("to") or self.accept("left"):
            other = self.dtypes()
        if self.accept("right"):
            right = self.dtypes()
        form = self.form()
        return [Legal(iop, form, dtypes, other, right) for iop in iops]

    def item(self, rows):
        word = self.take()
        if word == "source":
            self.at += 2
        elif word == "kinds":
            self.device.kinds = self.kinds()
        elif word == "pipes":
            self.device.pipes = self.listed()
        elif word == "device_barrier":
            self.device.barrier = True
        elif word == "dtypes":
            name = self.take()
            self.take()
            self.sets[name] = self.dtypes()
        elif word == "form":
            name = self.take()
            self.take()
            self.forms[name] = self.form()
        elif word == "space":
            self.space()
        elif word == "legal":
            rows += self.rows()
        else:
            self.device.numbers[word] = float(self.take())
            self.take()

    def read(self):
        self.take()
        self.device.name = self.take()
        self.take()
        common, own = [], []
        while self.peek() != "chip":
            self.item(common)
        self.at += 3
        while not self.accept("}"):
            self.item(own)
        self.device.legal = own + common
        return self.device


def read(text):
    return Reader(text).read()
