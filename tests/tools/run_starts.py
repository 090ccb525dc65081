#!/usr/bin/env python3
"""A start takes over what the one before has finished: once a start has made the package, no later one spends time on
the front half of the compile, whether it was ended, killed, had no compiler, or runs beside others; what is kept for
that goes when native code is there.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

from cli import DIGITS, RAN, RUN, Case, expect, run, run_tests

DATA = os.path.join(os.path.dirname(DIGITS), "test_data_set_0")
FRONT = {"decomposing", "cleaning up", "laying out", "fusion", "loop", "schedule", "igraph", "runs", "writing"}
KEPT = b"uir sources 1 "


SCRIPTS = tempfile.TemporaryDirectory(prefix="uir-starts-")  # no blanks in its path, at which CC is split


def compiler(words):
    """A compiler that does something first."""
    path = os.path.join(SCRIPTS.name, "cc")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"#!/bin/sh\n{words}\nexec cc \"$@\"\n")
    os.chmod(path, 0o755)
    return path


def start(c, *words, cc=None, environment=None):
    """The stages that a start names, and by what the model ran."""
    environment = {"UIR_DEBUG": "1", **({"CC": cc} if cc else {}), **(environment or {})}
    done = run(RUN, DIGITS, "--data", DATA, "--cache", c.path("cache"), *words, env=environment)
    expect(done.returncode == RAN and "agrees" in done.out, "a start", done)
    stages = set(re.findall(r"^uir-run: ([a-z ]+)$", done.err, re.M))
    return stages, re.findall(r"by (\w+)$", done.out, re.M)[-1]


def keeps_sources(c):
    folder = c.path("cache")
    found = []
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as f:
            if KEPT in f.read(1 << 16):
                found.append(os.path.join(folder, name))
    return found


def test_each_start_goes_on():
    with Case() as c:
        slow = compiler("sleep 3")
        stages, by = start(c, cc=slow)
        expect(FRONT <= stages and by == "vm", f"the first start: {stages} by {by}")
        expect(keeps_sources(c), "nothing is kept to go on from")
        for _ in range(2):
            stages, by = start(c, cc=slow)
            expect(not FRONT & stages and by == "vm", f"a later start: {stages} by {by}")
        stages, by = start(c, "--no-vm")
        expect(not FRONT & stages and "compiling kernels" in stages and by == "cpu", f"the one that waits: {stages} by {by}")
        expect(not keeps_sources(c), "sources stay behind")
        stages, by = start(c)
        expect(not FRONT & stages and by == "cpu", f"the last: {stages} by {by}")


def test_a_start_that_is_killed():
    with Case() as c:
        marker = os.path.join(SCRIPTS.name, "began")
        stuck = compiler(f"touch {marker}; sleep 60")
        child = subprocess.Popen([RUN, DIGITS, "--data", DATA, "--cache", c.path("cache"), "--no-vm"], env={**os.environ, "CC": stuck},
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + 60
        while not os.path.exists(marker) and time.monotonic() < until:
            time.sleep(0.02)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        expect(os.path.exists(marker), "no compiler was started")
        stages, by = start(c, "--no-vm")
        expect(not FRONT & stages and by == "cpu", f"after a kill: {stages} by {by}")


def test_without_a_compiler():
    with Case() as c:
        for number in range(3):
            stages, by = start(c, cc=c.path("none"))
            expect(by == "vm" and bool(FRONT & stages) == (number == 0), f"start {number}: {stages} by {by}")
        stages, by = start(c, "--no-vm")
        expect(not FRONT & stages and by == "cpu", f"with a compiler: {stages} by {by}")


def test_starts_beside_each_other():
    with Case() as c:
        start(c, cc=compiler("sleep 1"))
        command = [RUN, DIGITS, "--data", DATA, "--cache", c.path("cache"), "--no-vm"]
        children = [subprocess.Popen(command, env={**os.environ, "UIR_DEBUG": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                    for _ in range(4)]
        for child in children:
            out = child.communicate(timeout=120)[0]
            expect(child.returncode == RAN and "agrees" in out, f"beside others: {child.returncode}: {out}")
            expect(not FRONT & set(re.findall(r"^uir-run: ([a-z ]+)$", out, re.M)), f"beside others: {out}")
        expect(not keeps_sources(c), "sources stay behind")


def test_damaged_sources_cost_time_alone():
    with Case() as c:
        start(c, cc=compiler("sleep 3"))
        for path in keeps_sources(c):
            with open(path, "r+b") as f:
                f.seek(-100, os.SEEK_END)
                f.write(b"damage")
        stages, by = start(c, "--no-vm")
        expect(FRONT <= stages and by == "cpu", f"after damage: {stages} by {by}")


def test_the_compilers_time_is_named():
    """One that takes too much of the processor is ended, and the message says what raises the limit."""
    with Case() as c:
        busy = compiler("while :; do :; done")
        done = run(RUN, DIGITS, "--data", DATA, "--no-cache", "--no-vm", "--limit-cc-seconds", "0.5", env={"CC": busy})
        expect(done.returncode != RAN and "--limit-cc-seconds" in done.err, "a limit of half a second", done)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
