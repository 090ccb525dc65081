#!/usr/bin/env python3
"""A group by itself: `extract_group.py TEXT GROUP [OLD=NEW,...]` prints a module that has nothing but that group.

In: what `uir-opt M.onnx --after fusion` prints, the group's name in it ("group_5"), and numbers to put in place of others
wherever they stand, so that what a real model computes in large can be interpreted in little. Out: the module's text, its
operands as inputs; what does not lie row after row is converted by groups of its own before and after. What the body
takes from outside must be a constant that the text spells out.
"""
import re
import sys

LAYOUT = r"(?::\((?:[^()]|\([^()]*\))*\))?"
TYPE = rf"\w+\[[^\]]*\]{LAYOUT}(?: \{{[^}}]*\}})?"
MADE = re.compile(rf"(%[\w.]+)(?: \"[^\"]*\")?: ({TYPE})")


def find_group(text, name):
    for found in re.finditer(r'^( +)(%[^\n]*?) = group\(([^\n]*?)\) \{body = graph "(\w+)" \(([^\n]*?)\) \{\n(.*?)\n\1\}', text,
                             re.M | re.S):
        if found[4] == name:
            return found
    sys.exit(f"there is no {name}")


def shrink(text, pairs):
    table = dict(pairs)
    return re.sub(r"(?<![\w.%\"_])\d+(?![\w.\"])", lambda n: table.get(n[0], n[0]), text)


def plain(made):
    return re.sub(r"\]:\(.*\)", "]", re.sub(r" \{.*\}", "", made))


def convert(result, operand, to, source, number):
    """A group that does nothing but lay out a value in another way."""
    dims = re.search(r"\[(.*?)\]", to)[1]
    return [f'    {result}: {to} = group({operand}) {{body = graph "convert_{number}" (%c{number}: {source}) {{',
            f"        %d{number}: {to} = reshape(%c{number}) {{dims = [{dims}]}}", f"        return %d{number}", "    }}"]


def extract(text, name, pairs):
    group = find_group(text, name)
    operands = [o for o in group[3].split(", ") if o]
    parameters, results = MADE.findall(group[5]), MADE.findall(group[2])
    body = re.sub(r'(?: (?:name |from )?"[^"\n]*")+$', "", group[6], flags=re.M)
    inside = {m[0] for m in MADE.findall(body)} | {p[0] for p in parameters}
    outside = sorted(set(re.findall(r"%[\w.]+", body)) - inside)
    lines = []
    for value in outside:
        line = re.search(rf"^constant {re.escape(value)}(?: \"[^\"]*\")?: .* = \[.*$", text, re.M)
        if not line:
            sys.exit(f"{value} is no constant that is spelled out")
        lines.append(line[0])
    types = {o: re.sub(r" \{.*\}", "", p[1]) for o, p in zip(operands, parameters)}
    before, after, given, number = [], [], [], 0
    for o, made in types.items():
        given.append(f"{o}_given: {plain(made)}" if plain(made) != made else f"{o}: {made}")
        if plain(made) != made:
            number += 1
            before += convert(o, f"{o}_given", made, plain(made), number)
    returned = []
    for value, made in results:
        returned.append(value if plain(made) == made else f"{value}_given")
        if plain(made) != made:
            number += 1
            after += convert(f"{value}_given", value, plain(made), made, number)
    made = ", ".join(f"{value}: {kind}" for value, kind in results)
    whole = "\n".join(lines + [f'graph "{name}" ({", ".join(given)}) {{', *before,
                               f'    {made} = group({group[3]}) {{body = graph "body" ({group[5]}) {{', body, "    }}",
                               *after, f"    return {', '.join(returned)}", "}"])
    whole = shrink(whole, pairs)
    sizes = [line for line in re.findall(r"^size .*$", text, re.M)
             if re.search(rf"(?<![\w%]){re.escape(line.split()[1])}(?!\w)", whole)]
    names = ", ".join(line.split()[1] for line in sizes)
    if names:  # an input that says what they are: others are of expressions of them
        whole = re.sub(r'^(graph "\w+" \()', rf"\1%sizes: u8[{names}], ", whole, flags=re.M)
    return "\n".join(["# stage: fusion", re.search(r"^module .*$", text, re.M)[0], *sizes, whole]) + "\n"


if __name__ == "__main__":
    with open(sys.argv[1]) as given_text:
        words = [p.split("=") for p in sys.argv[3].split(",")] if len(sys.argv) > 3 and sys.argv[3] else []
        sys.stdout.write(extract(given_text.read(), sys.argv[2], words))
