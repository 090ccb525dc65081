"""What the suites in Python share: where programs and models are, running a program, counting, arguments, the last line.

In: $UIR_BIN, the programs; $UIR_MODELS_BUILT, the written-out models; $UIR_MODELS, the given ones. Without these: those of
the checkout. A file in a folder of tests/ finds this one by

    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    from suite import Suite, run  # noqa: E402

and is one of two kinds. Either it has one Suite, tells it of each case, and ends with `sys.exit(suite.end())`; or its
tests are functions test_NAME that raise AssertionError, and it ends with `sys.exit(run_tests(globals()))`. Both print
`FAILED ...` for a failure, `skip: REASON` for what was not tested, and as the last line `N passed, M failed, S skipped`.
A reason `needs NAME: ...` makes the skip a failure where $UIR_REQUIRE holds NAME (runner.py).
"""
import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("UIR_BIN") or os.path.join(ROOT, "build", "release", "bin")
MODELS = os.environ.get("UIR_MODELS_BUILT") or os.path.join(ROOT, "build", "models")
GIVEN_MODELS = os.environ.get("UIR_MODELS") or os.path.join(ROOT, "..", "shared", "models")
DIGITS = os.path.join(ROOT, "models", "digits", "digits.onnx")
NO_MODELS = f"needs models: {MODELS} does not hold them; script/test writes them out of the folder that UIR_MODELS names"
LIMIT_S = 1500  # of a program, where its caller sets no other: what script/test gives a suite


# ---- programs ----
def environment(changes=None):
    """The environment with these changes; None takes a variable away."""
    return {name: value for name, value in {**os.environ, **(changes or {})}.items() if value is not None}


def run(program, *words, timeout=LIMIT_S, env=None, **options):
    """Runs a program of the build, or any other, by its name or path to its end: its exit status and output as text.

    `env` holds changes of the environment. subprocess.TimeoutExpired after `timeout` seconds."""
    built = os.path.join(BIN, program)
    command = [built if "/" not in program and os.path.exists(built) else program, *map(str, words)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                          timeout=timeout, env=environment(env), **options)


def find_programs(folder, program):
    """The folder of a build's programs, which `program` is one of: `folder` itself or its bin. SystemExit where it is in neither."""
    for place in (os.path.join(folder, "bin"), folder):
        if os.path.exists(os.path.join(place, program)):
            return place
    raise SystemExit(f"there is no {program} in {folder}; name the folder of a build")


def select(device):
    """The words that name a device, or a file of its own."""
    return ("--device-file", device) if device.endswith(".device") else ("--device", device)


def find_model(name):
    """The file of a written-out model, or of the project's own, "digits"; it may not exist."""
    return DIGITS if name == "digits" else os.path.join(MODELS, name, "model.onnx")


def list_models():
    """The names of the written-out models; none where the folder is missing."""
    return sorted(os.listdir(MODELS)) if os.path.isdir(MODELS) else []


# ---- counting ----
def read_counts(output):
    """Passed, failed and skipped by the last such line of a program's output; None without one."""
    found = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$", output, re.M)
    return tuple(int(number or 0) for number in found[-1]) if found else None


class Suite:
    """Counts, and prints each failure and skip as it comes. It belongs to one thread."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0

    def tell(self, good, what):
        """Counts one case, and returns whether it was good."""
        self.add(bool(good), not good)
        if not good:
            print("FAILED", what, flush=True)
        return bool(good)

    def skip(self, reason, count=1):
        self.skipped += count
        print("skip:", reason, flush=True)

    def add(self, passed, failed=0, skipped=0):
        """Cases that were counted, and told of, elsewhere."""
        self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped

    def end(self):
        """Prints the last line. The exit status: 1 where a case failed, and where nothing ran."""
        nothing = not (self.passed or self.failed or self.skipped)
        if nothing:
            print("FAILED nothing ran")
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped", flush=True)
        return int(nothing or self.failed != 0)


# ---- test functions ----
class Lacking(Exception):
    """What a test needs is missing on this machine: it is skipped, for the reason that this says."""


def slow(test):
    """Marks a test that takes many seconds: `script/test --fast` leaves it out."""
    test.slow = True
    return test


def run_tests(names, words=None, *given):
    """Runs the test_ functions among the names, or those that hold one of the words, each with what is given. Where `words`
    is None, the command line has them, and may have `--shard K/N`. Returns the exit status."""
    suite, shard = Suite(), (1, 1)
    if words is None:
        parser = make_parser("Runs the tests whose names hold one of the words; without words all.", shard=shard)
        parser.add_argument("words", nargs="*", metavar="WORD")
        options = parser.parse_args()
        words, shard = options.words, options.shard
    chosen = [name for name in sorted(names) if name.startswith("test_") and (not words or any(word in name for word in words))]
    for name in take_shard(chosen, shard):
        test = names[name]
        if hasattr(test, "slow") and os.environ.get("UIR_TIER") == "fast":
            continue
        try:
            test(*given)
            suite.add(1)
        except Lacking as reason:
            suite.skip(f"{name}: {reason}")
        except (AssertionError, subprocess.SubprocessError) as e:
            suite.tell(False, f"{name}: {e}")
    return suite.end()


# ---- arguments ----
def read_shard(text):
    """The argument K/N of --shard as two numbers."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r}: write K/N, with K from 1 to N")
    return int(match[1]), int(match[2])


def take_shard(cases, shard):
    """Of a list of cases those of the shard K/N: every N-th from the K-th. All shards together have each case once."""
    number, count = shard
    return cases[number - 1 :: count]


COMMON = {
    "count": (int, "N", "how many cases are drawn"),
    "seed": (int, "S", "of the first case; the others follow"),
    "only": (str, "TEXT", "nothing but the cases whose names hold it"),
    "jobs": (int, "J", "cases at a time"),
    "shard": (read_shard, "K/N", "the K-th of N parts of the cases"),
    "keep": (str, "DIR", "where the cases that fail are left"),
}


def make_parser(doc, **defaults):
    """A parser with a file's docstring as its help, and those of the common arguments that are given a default."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        kind, metavar, text = COMMON[name]
        parser.add_argument("--" + name, type=kind, metavar=metavar, default=default, help=text)
    return parser
