"""What script/test runs: the builds, ctest on two of them, and the suites of tests/suites.txt; then one sum of it all.

In: the options of script/test. Out: a progress line per step, the end of the log of what failed, the reasons of what was
skipped, and as the last line `N passed, M failed, S skipped`. Logs land in build/test-logs/.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import signal
import string
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

from suite import GIVEN_MODELS, ROOT, read_counts

LOGS = os.path.join(ROOT, "build", "test-logs")
MODELS_BUILT = os.path.join(ROOT, "build", "models")
TIERS = ["fast", "default", "long"]
SUITE_TIMEOUT_S = 1500
ABREAST = (os.cpu_count() or 1) + 1  # tests wait for disks, time limits and each other: one more than the cores
CMOCKA = {"passed": r"^\[  PASSED  \] (\d+) test", "failed": r"^\[  FAILED  \] (\d+) test",
          "skipped": r"^\[  SKIPPED \] (\d+) test"}
SANITIZER_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
THREAD_SANITIZER_ENVIRONMENT = {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}

Suite = collections.namedtuple("Suite", "name tier alone made command")


class Counts:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def is_nothing(self):
        return not (self.passed or self.failed or self.skipped)

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class Report:
    """Sums and prints; safe from several threads. Skips are told by reason; which test it was is in the suite's log."""

    def __init__(self):
        self.start = time.monotonic()
        self.total = Counts()
        self.reasons = collections.Counter()
        self.failures = []
        self.lock = threading.Lock()

    def say(self, text):
        with self.lock:
            print(f"[{time.monotonic() - self.start:5.0f} s] {text}", flush=True)

    def record(self, name, counts, seconds, reasons=(), log=""):
        with self.lock:
            self.total.add(counts)
            self.reasons.update((name, re.sub(r"^test_\w+: ", "", reason)) for reason in reasons)
            if counts.failed:
                self.failures.append((name, log))
            print(f"[{time.monotonic() - self.start:5.0f} s] {name}: {counts} ({seconds:.0f} s)", flush=True)
            if counts.failed:
                print("\n".join("    " + line for line in log.splitlines()[-60:]), flush=True)

    def finish(self):
        for name, _ in self.failures:
            print(f"failed: {name} (build/test-logs/{name}.log)")
        for (name, reason), count in self.reasons.items():
            print(f"skipped: {name}: {reason}" + (f" ({count} times)" if count > 1 else ""))
        print(self.total, flush=True)
        return 1 if self.total.failed or not self.total.passed else 0


class Processes:
    """Children run in groups of their own, so that an interrupt or a time limit ends all that they started."""

    def __init__(self):
        self.running = set()
        self.lock = threading.Lock()

    def run(self, command, log, environment=None, timeout=SUITE_TIMEOUT_S):
        """Exit status and output (standard error in it); the output is in `log` as well."""
        with open(log, "wb") as out:
            child = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                     env={**os.environ, **(environment or {})}, start_new_session=True)
            with self.lock:
                self.running.add(child)
            try:
                status = child.wait(timeout)
            except subprocess.TimeoutExpired:
                self.end(child)
                status = child.wait()
                out.write(f"\nended after {timeout} s\n".encode())
            finally:
                with self.lock:
                    self.running.discard(child)
        with open(log, encoding="utf-8", errors="replace") as f:
            return status, f.read()

    @staticmethod
    def end(child):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end_all(self):
        with self.lock:
            for child in self.running:
                self.end(child)


def read_suites(path):
    suites = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            fields = line.split("#", 1)[0].split()
            if not fields:
                continue
            if len(fields) < 4 or fields[1] not in TIERS or not re.fullmatch("(1|all)(,made)?", fields[2]):
                sys.exit(f"{path}:{number}: expected: name, one of {TIERS}, 1 or all (`,made`), command")
            suites.append(Suite(fields[0], fields[1], fields[2].startswith("all"), fields[2].endswith(",made"), fields[3:]))
    return suites


def missing(reasons):
    """How many of the reasons for a skip are that something is missing (`needs NAME: ...`) that $UIR_REQUIRE names."""
    required = os.environ.get("UIR_REQUIRE", "").split(",")
    found = (re.match(r"(?:test_\w+: )?needs (\w+): ", reason) for reason in reasons)
    return sum(bool(match) and match.group(1) in required for match in found)


def require(counts, output):
    """The reasons for skips; those for something missing that is required are counted as failures."""
    reasons = re.findall(r"^skip: (.*)$", output, re.M)
    required = min(missing(reasons), counts.skipped)
    counts.add(Counts(failed=required, skipped=-required))
    return reasons


class Runner:
    def __init__(self, tier):
        self.tier = tier
        self.report = Report()
        self.processes = Processes()
        self.own_cpu = None  # what UIR_CPU is without a variant that this machine does not run

    def wants(self, tier):
        return TIERS.index(tier) <= TIERS.index(self.tier)

    def log(self, name):
        return os.path.join(LOGS, name + ".log")

    def build(self, name, preset, target="all"):
        """Configures and builds a preset, whose warnings are errors; one test. Returns whether it built."""
        begin = time.monotonic()
        command = f"cmake --preset {preset} && cmake --build --preset {preset} --target {target} -- -k 0"
        status, output = self.processes.run(["script/lock", f"build/.lock-{preset}", "sh", "-c", command], self.log(name))
        output = "\n".join(line for line in output.splitlines() if not line.startswith(("[", "-- ")))
        self.report.record(name, Counts(int(status == 0), int(status != 0)), time.monotonic() - begin, log=output)
        return status == 0

    def ctest(self, name, preset, environment, label=None):
        """Runs a build's ctest tests (those of a label) and counts the cmocka cases in their output."""
        begin = time.monotonic()
        junit = os.path.join(LOGS, name + ".xml")
        if os.path.exists(junit):
            os.remove(junit)
        command = ["ctest", "--test-dir", f"build/{preset}", "--no-tests=error", "-j", str(ABREAST),
                   "--timeout", "900", "--output-on-failure", "--output-junit", junit,
                   "--test-output-size-passed", "4000000", "--test-output-size-failed", "4000000"]
        excluded = [tier for tier in TIERS[1:] if not self.wants(tier)] + (["release-only"] if preset != "release" else [])
        if excluded:
            command += ["-LE", "^(" + "|".join(excluded) + ")$"]
        if label:
            command += ["-L", f"^{label}$"]
        status, output = self.processes.run(command, self.log(name), environment)
        counts, reasons = Counts(), []
        try:
            for case in xml.etree.ElementTree.parse(junit).getroot().iter("testcase"):
                counts.add(self.count_case(case, reasons))
        except (OSError, xml.etree.ElementTree.ParseError) as e:
            counts.failed += 1
            output += f"\n{junit}: {e}"
        if status != 0 and not counts.failed:
            counts.failed = 1
        self.report.record(name, counts, time.monotonic() - begin, reasons, output)

    @staticmethod
    def count_output(output):
        """The counts of a program: of its cmocka cases and of its own closing line; and whether it told any."""
        told = {key: re.findall(pattern, output, re.M) for key, pattern in CMOCKA.items()}
        counts = Counts(**{key: sum(map(int, numbers)) for key, numbers in told.items()})
        own = read_counts(output)
        if own:
            counts.add(Counts(*own))
        return counts, bool(own or any(told.values()))

    @staticmethod
    def count_case(case, reasons):
        """The counts of one ctest test: of its cmocka cases, or of its own closing line, or one."""
        output = case.findtext("system-out") or ""
        ok = case.get("status") == "run"
        counts, told = Runner.count_output(output)
        reasons += require(counts, output)
        if ok and not told:
            counts.passed = 1
        if not counts.failed and (not ok or counts.is_nothing()):
            counts.failed = 1
        return counts

    def suite(self, suite, environment):
        begin = time.monotonic()
        self.report.say(f"{suite.name} ...")
        command = [string.Template(word).safe_substitute(environment) for word in suite.command]
        if command[0].endswith(".py"):
            command = [sys.executable, *command]
        elif "/" not in command[0]:
            command[0] = os.path.join(environment["UIR_BIN"], command[0])
        if not suite.made and self.own_cpu is not None:
            environment = {**environment, "UIR_CPU": self.own_cpu}
        status, output = self.processes.run(command, self.log(suite.name), environment)
        counts, found = self.count_output(output)
        if not counts.failed and (status != 0 or counts.is_nothing()):
            output += f"\nexit status {status}" + (", and nothing ran" if found else ", and no line `N passed, M failed, S skipped`")
            counts.failed = 1
        reasons = require(counts, output)
        self.report.record(suite.name, counts, time.monotonic() - begin, reasons, output)

    def suites(self, suites):
        environment = {"UIR_BIN": os.path.join(ROOT, "build", "release", "bin"), "UIR_MODELS_BUILT": MODELS_BUILT,
                       "UIR_TIER": self.tier, "PYTHONDONTWRITEBYTECODE": "1"}
        chosen = [s for s in suites if self.wants(s.tier)]
        if os.environ.get("UIR_CPU"):
            done = subprocess.run([os.path.join(environment["UIR_BIN"], "uir-cpu-here")], capture_output=True, text=True)
            if done.returncode == 1:
                self.own_cpu = done.stdout.strip()
                self.report.say(f"UIR_CPU={os.environ['UIR_CPU']} is not run here: native code is for "
                                f"UIR_CPU={self.own_cpu!r} where a suite is not marked `made`")
        with concurrent.futures.ThreadPoolExecutor(ABREAST) as pool:
            for done in [pool.submit(self.suite, s, environment) for s in chosen if not s.alone]:
                done.result()
        for s in chosen:
            if s.alone:
                self.suite(s, environment)

    def models(self):
        """Writes out the given models, once; what is there already is left alone."""
        if not os.path.isdir(GIVEN_MODELS):
            reasons = [f"needs models: no folder {GIVEN_MODELS}; UIR_MODELS names the one that holds the given models"]
            self.report.record("models", Counts(failed=1) if missing(reasons) else Counts(skipped=1), 0, reasons)
            return
        for name, script, options in (("models", "materialize.py", []),
                                      ("trained-models", "real.py", ["--cache", os.path.join(ROOT, "build", "wheels")])):
            begin = time.monotonic()
            command = [sys.executable, "-B", os.path.join(GIVEN_MODELS, script), "--out", MODELS_BUILT, *options]
            self.report.say(f"{name}: writing them out ...")
            status, output = self.processes.run(command, self.log(name))
            reasons = [] if status == 0 else [f"{script} failed (without a network the first time?): "
                                              f"{output.strip().splitlines()[-1:]}"]
            self.report.record(name, Counts(skipped=int(status != 0)), time.monotonic() - begin, reasons)

    def run(self, suites):
        self.report.say(f"building, warnings as errors; logs in build/test-logs/; tier: {self.tier}")
        built = self.build("build-gcc", "release")
        if built:
            self.ctest("ctest", "release", {})
        if self.wants("default"):
            self.build("build-clang", "clang", "all" if self.wants("long") else "uir_installed")
            if self.build("build-asan", "asan", "uir_tests"):
                self.ctest("ctest-asan", "asan", SANITIZER_ENVIRONMENT)
            if self.build("build-tsan", "tsan", "uir_threads_tests"):
                self.ctest("ctest-tsan", "tsan", THREAD_SANITIZER_ENVIRONMENT, "threads")
            self.models()
        if built:
            self.suites(suites)
        return self.report.finish()


def main():
    parser = argparse.ArgumentParser(prog="script/test", description="Builds everything and runs the tests.")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--fast", dest="tier", action="store_const", const="fast", help="a few minutes' worth")
    group.add_argument("--long", dest="tier", action="store_const", const="long", help="the long campaigns as well")
    parser.set_defaults(tier="default")
    runner = Runner(parser.parse_args().tier)
    os.makedirs(LOGS, exist_ok=True)
    os.environ["UIR_STRICT"] = "1"  # a fault of the compiler is an error wherever a test meets it

    def interrupted(number, _frame):
        runner.processes.end_all()
        os._exit(128 + number)

    signal.signal(signal.SIGINT, interrupted)
    signal.signal(signal.SIGTERM, interrupted)
    sys.exit(runner.run(read_suites(os.path.join(ROOT, "tests", "suites.txt"))))


if __name__ == "__main__":
    main()
