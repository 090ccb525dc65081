#!/usr/bin/env python3
"""Files that were made to do harm, and variations of them: every program, with defaults, gives an answer or a message, an
exit code of 0 to 5, within 10 s and 4 GB. One whose honest work is more, a run of what took no time to load and compile,
ends by `--limit-seconds 5` with that message.

    run_attacks.py [--variations N] [--seed S] [--jobs J] [--processor] [--keep DIR] [FILE...]

In: the programs in $UIR_BIN; the files of the folder $UIR_ATTACKS (default: ../review/attacks beside $UIR_MODELS); those
that are named are taken in their place. N variations in all (default: 0, the files themselves): bits, cuts, numbers,
fields that are doubled, dropped or taken from another file, records of packages with the hashes made right. --processor
counts processor time in place of the clock, on a busy machine. Out: a line per failure, with the variation in --keep;
then `N passed, M failed, S skipped`.
"""
import concurrent.futures
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN, DIGITS, GIVEN_MODELS, Suite, make_parser  # noqa: E402

ATTACKS = os.environ.get("UIR_ATTACKS") or os.path.join(GIVEN_MODELS, "..", "review", "attacks")
SECONDS, BYTES = 10, 4 << 30
LIMIT, LIMIT_SAID = ["--limit-seconds", "5"], b"running the model takes more than 5 seconds"
MOST_CLOCK = 150  # of a run of which processor time is counted

# What opens a file of each ending; {} is the file.
COMMANDS = {
    ".onnx": [["uir-run", "{}"], ["uir-opt", "{}"]],
    ".uir": [["uir-run-package", "{}"], ["uir-run", "{}"]],
    ".npy": [["uir-run", os.path.join(ATTACKS, f"y_{m}.onnx"), "--input", "x={}"] for m in ("softmax", "cumsum", "resize")],
    ".jpg": [["uir-run", DIGITS, "--input", "picture={}"]],
    ".png": [["uir-run", DIGITS, "--input", "picture={}"]],
}


# ---- variations -------------------------------------------------------------------------------------------------------
def read_varint(data, at):
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 0x80:
            return value, at
    raise ValueError


def write_varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def parse_fields(data, depth=0):
    """A message as a list of [key, value]: a number, bytes, or a list of fields where these read as a message."""
    fields, at = [], 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key >> 3 == 0 or key & 7 not in (0, 1, 2, 5):
            raise ValueError
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            length, at = read_varint(data, at) if key & 7 == 2 else (8 if key & 7 == 1 else 4, at)
            value = data[at:at + length]
            at += length
            if len(value) != length:
                raise ValueError
            if key & 7 == 2 and depth < 12 and length > 1:
                try:
                    value = parse_fields(value, depth + 1)
                except ValueError:
                    pass
        fields.append([key, value])
    return fields


def write_fields(fields):
    out = bytearray()
    for key, value in fields:
        body = write_fields(value) if isinstance(value, list) else value
        out += write_varint(key) + (write_varint(body) if key & 7 == 0 else
                                    (write_varint(len(body)) if key & 7 == 2 else b"") + body)
    return bytes(out)


def lists_of(fields, found):
    found.append(fields)
    for _, value in fields:
        if isinstance(value, list) and value:
            lists_of(value, found)
    return found


def change_fields(data, other, numbers):
    """One or two fields of a protobuf message: a number, a field doubled, dropped, moved, or taken from another file."""
    fields = parse_fields(data)
    for _ in range(numbers.choice((1, 1, 2, 3))):
        place = numbers.choice([f for f in lists_of(fields, []) if f])
        at = numbers.randrange(len(place))
        kind = numbers.randrange(5)
        if kind == 0:
            integers = [(f, i) for f in lists_of(fields, []) for i, (_, v) in enumerate(f) if isinstance(v, int)]
            place, at = numbers.choice(integers) if integers else (place, at)
            if isinstance(place[at][1], int):
                was = place[at][1]
                place[at][1] = numbers.choice((0, 1, 2, was + 1, was * 2, was * 1000, -1, 1 << 31, 1 << 40, (1 << 63) - 1,
                                               1 << 62, numbers.randrange(64)))
        elif kind == 1:
            place[at:at] = [place[at]] * numbers.choice((1, 1, 2, 40))
        elif kind == 2:
            del place[at]
        elif kind == 3:
            place.insert(numbers.randrange(len(place)), place.pop(at))
        else:
            theirs = [f for group in lists_of(parse_fields(other), []) for f in group if f[0] == place[at][0]]
            if theirs:
                place[at] = numbers.choice(theirs)
        if not fields:
            break
    return write_fields(fields)


def change_bytes(data, numbers):
    data = bytearray(data)
    for _ in range(numbers.choice((1, 1, 2, 8))):
        if data:
            data[numbers.randrange(len(data))] ^= 1 << numbers.randrange(8)
    return bytes(data[:numbers.randrange(len(data) + 1)] if numbers.randrange(5) == 0 else data)


def vary(path, others, number, out):
    """Writes a variation of the file; the same for the same number."""
    numbers = random.Random(number)
    with open(path, "rb") as f:
        data = f.read()
    with open(numbers.choice(others), "rb") as f:
        other = f.read()
    if path.endswith(".uir") and numbers.randrange(5):
        for turn in range(numbers.choice((1, 1, 2, 4))):
            subprocess.run([os.path.join(BIN, "fuzz_target_package"), "--mutate", str(numbers.randrange(1 << 31)),
                            out if turn else path, out], check=True)
        return
    try:
        by_fields = path.endswith(".onnx") and numbers.randrange(5)
        data = change_fields(data, other, numbers) if by_fields else change_bytes(data, numbers)
    except ValueError:
        data = change_bytes(data, numbers)
    with open(out, "wb") as f:
        f.write(data)


# ---- runs -------------------------------------------------------------------------------------------------------------
def keep_to_memory():
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def ends_by_limit(command, cache, processor):
    """Whether it is the run, nothing before it, that takes so long, and is ended in time."""
    with tempfile.TemporaryFile() as said:
        wrong = run([*command, *LIMIT], cache, processor, said)
        said.seek(0)
        return not wrong and LIMIT_SAID in said.read()


def processor_time(pid):
    """Seconds of a process that nobody has waited for yet, and of its children that ended."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
        ticks = f.read().rsplit(")", 1)[1].split()[11:15]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def run(command, cache, processor, said=subprocess.DEVNULL):
    """What is wrong, or ""; `said` takes the messages."""
    began, most = time.monotonic(), MOST_CLOCK if processor else SECONDS
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=nothing, stderr=said,
                                   preexec_fn=keep_to_memory, start_new_session=True,
                                   env=dict(os.environ, XDG_CACHE_HOME=cache))
        while True:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() - began > most or processor and processor_time(process.pid) > SECONDS + 1:
                os.killpg(process.pid, 9)
                pid, status, used = os.wait4(process.pid, 0)
                return f"takes over {time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.1f} s of processor time"
            time.sleep(0.01)
    process.returncode = 0  # it was waited for
    took, code = used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status)
    if code < 0:
        return f"signal {-code}"
    if code > 5:
        return f"exit code {code}"
    return f"takes {took:.1f} s of processor time" if processor and took > SECONDS else ""


def check(case, scratch, chosen):
    """Lines of what is wrong with one case: a file, and the number of a variation or None."""
    path, others, number = case
    name = os.path.basename(path) + ("" if number is None else f" variation {number}")
    ending, lines = os.path.splitext(path)[1], []
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        file = path
        if number is not None:
            file = os.path.join(folder, "v" + ending)
            vary(path, others, number, file)
        for command in COMMANDS[ending]:
            words = [os.path.join(BIN, command[0]), *(w.replace("{}", file) for w in command[1:])]
            cache = os.path.join(folder, "cache")
            wrong = run(words, cache, chosen.processor)
            if wrong and not (wrong.startswith("takes") and ends_by_limit(words, cache, chosen.processor)):
                lines.append(f"{name}: {command[0]} {wrong}")
        if lines and number is not None and chosen.keep:
            os.makedirs(chosen.keep, exist_ok=True)
            shutil.copy(file, os.path.join(chosen.keep, f"{os.path.basename(path)}-{number}{ending}"))
    return lines


def main():
    parser = make_parser(__doc__, seed=1, jobs=1, keep=None)
    parser.add_argument("--variations", type=int, default=0)
    parser.add_argument("--processor", action="store_true")
    parser.add_argument("files", nargs="*")
    chosen, suite = parser.parse_args(), Suite()
    if not chosen.files and not os.path.isdir(ATTACKS):
        suite.skip(f"no folder {ATTACKS}; UIR_ATTACKS names the one that holds the files")
        return suite.end()
    files = chosen.files or [os.path.join(ATTACKS, n) for n in sorted(os.listdir(ATTACKS))]
    files = [f for f in files if os.path.splitext(f)[1] in COMMANDS]
    cases = [] if chosen.variations and chosen.files else [(f, [], None) for f in files]
    for i in range(chosen.variations):
        path = files[i % len(files)]
        others = [f for f in files if os.path.splitext(f)[1] == os.path.splitext(path)[1]]
        cases.append((path, others, chosen.seed * 1000003 + i))
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for lines in pool.map(lambda case: check(case, scratch, chosen), cases):
            suite.tell(not lines, "\n".join(lines))
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
