#!/usr/bin/env python3
"""Faults around a compile: a compiler that is absent, fails, hangs or is killed; a disk that is full; a cache that is
read-only, foreign or damaged; two processes at once; signals; a processor with fewer instructions. Each time the run answers
or says why, nothing is left behind, and the next start works.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

from cli import (BAD_FILE, FAILED, PACK, RAN, RUN, RUN_PACKAGE, USAGE, Case, Lacking, expect, fails, need_processes,
                 need_program, run, run_tests, write_set)

STRICT = ["--no-vm", "--no-fallback"]


class Compile(Case):
    """A case with a cache and a temporary folder of its own, and paths without blanks for compilers."""

    def __enter__(self):
        super().__enter__()
        self.plain = tempfile.mkdtemp(prefix="uir-faults-")
        self.cache, self.tmp = os.path.join(self.plain, "cache"), os.path.join(self.plain, "tmp")
        os.mkdir(self.tmp)
        self.data = write_set(self.path("data"), self.x, self.y)
        self.command = [RUN, self.model, "--data", self.data, "--cache", self.cache]
        return self

    def __exit__(self, *what):
        shutil.rmtree(self.plain, ignore_errors=True)
        super().__exit__(*what)

    def compiler(self, script):
        """A compiler that does what the shell script says."""
        path = os.path.join(self.plain, "compiler")
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + script)
        os.chmod(path, 0o755)
        return {"CC": path, "TMPDIR": self.tmp}

    def clean(self, what):
        expect(not os.listdir(self.tmp), f"{what}: {os.listdir(self.tmp)} is left in the temporary folder")

    def works(self, what, *more, compiled=None):
        done = run(self.command, *STRICT, "--json", *more, env={"TMPDIR": self.tmp})
        expect(done.returncode == RAN, f"{what}: the next start", done)
        told = json.loads(done.out)
        expect(told["calls"]["native"] > 0 and told["agree"], f"{what}: by compiled kernels", done)
        expect(compiled is None or (told["compiled"] > 0) == compiled, f"{what}: compiled {told['compiled']}", done)
        self.clean(what)


def test_compilers_that_do_not_compile():
    with Compile() as c:
        broken = {"absent": {"CC": c.plain + "/nowhere", "TMPDIR": c.tmp}, "failing": c.compiler("exit 1\n"),
                  "killed": c.compiler("kill -9 $$\n"), "silent": c.compiler("exit 0\n"),
                  "hanging": c.compiler("exec sleep 1000\n")}
        for what in broken:
            env = c.compiler({"failing": "exit 1\n", "killed": "kill -9 $$\n",
                              "hanging": "exec sleep 1000\n"}.get(what, "exit 0\n"))
            env["CC"] = broken[what]["CC"]
            done = run(c.command, env=env)  # the VM answers, and it is said why
            expect(done.returncode == RAN and "agrees" in done.out, f"a compiler that is {what}", done)
            expect("warning" in done.err and "VM" in done.err, f"a compiler that is {what}: no warning", done)
            c.clean(what)
            fails(FAILED, command=[c.command, *STRICT], env=env)
            c.clean(what)
        c.works("after them", compiled=True)
        c.works("from the cache", compiled=False)


def test_signals_while_compiling():
    with Compile() as c:
        began = os.path.join(c.plain, "began")
        env = c.compiler(f"touch {began}\nexec sleep 60\n")
        for number in (signal.SIGINT, signal.SIGTERM):
            for more in ([], STRICT):
                p = subprocess.Popen([*c.command, *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                     env=dict(os.environ, **env))
                deadline = time.time() + 30
                while not os.path.exists(began) and p.poll() is None and time.time() < deadline:
                    time.sleep(0.02)
                expect(os.path.exists(began), "the compiler was not started")
                time.sleep(0.1)
                start = time.time()
                p.send_signal(number)
                said = p.communicate(timeout=30)[1]
                expect(p.returncode == 128 + number, f"exit {p.returncode} after signal {number}: {said!r}")
                expect(time.time() - start < 10 and not said, f"it went on, or said {said!r}")
                c.clean(f"signal {number}")
                os.remove(began)
        c.works("after signals", compiled=True)


# Notes what it compiles or links; the source that $HOLD names takes for ever, in a process of its own.
LOGGING = """for last; do :; done
echo "$last" >> "$0.log"
if [ "$last" = "$HOLD" ]; then sleep 1000 & echo $! > "$0.held"; wait; fi
exec cc "$@"
"""


def is_alive(process):
    """Whether it stays: what was killed may take a while to go on a busy machine."""
    need_processes()
    deadline = time.time() + 20
    while time.time() < deadline:
        try:
            with open(f"/proc/{process}/stat") as f:
                if f.read().rpartition(")")[2].split()[0] in "ZX":
                    return False
        except OSError:
            return False
        time.sleep(0.02)
    return True


class BrokenOff(Compile):
    """A model of two source files at least, and a compiler that tells what it was asked for."""

    def __enter__(self):
        super().__enter__()
        self.env = self.compiler(LOGGING)
        return self

    def hold(self):
        return dict(self.env, HOLD="kernels01.c")

    def asked(self):
        """What was compiled or linked since this was called last."""
        try:
            with open(self.env["CC"] + ".log") as f:
                words = f.read().split()
            os.remove(self.env["CC"] + ".log")
            return words
        except FileNotFoundError:
            return []

    def held(self):
        """The process that is held, once there is one."""
        deadline = time.time() + 30
        while time.time() < deadline:
            try:
                with open(self.env["CC"] + ".held") as f:
                    return int(f.read())
            except (OSError, ValueError):
                time.sleep(0.02)
        raise AssertionError("the compiler was not started")

    def entries(self, cache=None):
        """The cache's entries that are code, by name."""
        found = {}
        for name in os.listdir(cache or self.cache):
            try:
                with open(os.path.join(cache or self.cache, name), "rb") as f:
                    entry = f.read()[4096:]
            except FileNotFoundError:  # a temporary file of a compile that goes on
                continue
            if entry.startswith(b"\x7fELF"):
                found[name] = entry
        return found

    def finish(self, what):
        """The next start compiles what is missing, and leaves the cache as if nothing had happened."""
        self.asked()
        done = run(self.command, *STRICT, "--json", env=self.env)
        asked = self.asked()
        expect(done.returncode == RAN and json.loads(done.out)["compiled"] > 0, f"{what}: the next start", done)
        expect("kernels00.c" not in asked and "kernels01.c" in asked, f"{what}: the next start compiles {asked}")
        self.clean(what)
        done = run(self.command, *STRICT, env=self.env)
        expect(done.returncode == RAN and not self.asked(), f"{what}: all is in the cache", done)
        whole = os.path.join(self.plain, "whole")
        done = run([whole if word == self.cache else word for word in self.command], *STRICT, env=self.env)
        expect(done.returncode == RAN and "kernels00.c" in self.asked(), f"{what}: at one go", done)
        expect(len(self.entries()) == 1 and self.entries() == self.entries(whole), f"{what}: other entries than of a compile at one go: "
               f"{sorted(self.entries())} {sorted(self.entries(whole))}")
        self.clean(what)


def test_an_answer_ends_the_compile():
    """The process ends with its answer; what is compiled by then is kept, and each start gets further."""
    with BrokenOff() as c:
        done = run(c.command, "--json", env=c.hold())
        expect(done.returncode == RAN and json.loads(done.out)["calls"]["vm"] > 0 and "the next start continues the compile" in done.err,
               "the VM answers", done)
        expect(not is_alive(c.held()), "a compiler goes on after the end")
        c.clean("after an answer")
        c.finish("after an answer")


def test_a_killed_compile_goes_on():
    with BrokenOff() as c:
        p = subprocess.Popen([*c.command, *STRICT], stdout=subprocess.DEVNULL, env=dict(os.environ, **c.hold()))
        held, deadline = c.held(), time.time() + 60
        while time.time() < deadline and p.poll() is None and not any(b"kernels00.c" in e for e in c.entries().values()):
            time.sleep(0.02)
        expect(p.poll() is None and c.entries(), "a file is not kept while another is compiled")
        p.kill()
        p.wait()
        os.kill(held, signal.SIGKILL)  # nobody ended it
        for folder in os.listdir(c.tmp):
            shutil.rmtree(os.path.join(c.tmp, folder))
        c.finish("after a kill")


def test_another_compiler_begins_anew():
    with BrokenOff() as c:
        expect(run(c.command, env=c.hold()).returncode == RAN, "the VM answers")
        c.asked()
        c.compiler("# another\n" + LOGGING)
        expect(run(c.command, *STRICT, env=c.env).returncode == RAN, "another compiler")
        expect("kernels00.c" in c.asked(), "a file of another compiler was taken")


def test_caches_that_cannot_be_used():
    with Compile() as c:
        with open(os.path.join(c.plain, "file"), "w") as f:
            f.write("x")
        os.mkdir(os.path.join(c.plain, "shared"))
        os.chmod(os.path.join(c.plain, "shared"), 0o777)
        os.mkdir(os.path.join(c.plain, "locked"), 0o500)
        places = ["file", "file/below", "shared", "locked"]
        if os.geteuid() == 0:
            os.mkdir(os.path.join(c.plain, "foreign"), 0o700)
            os.chown(os.path.join(c.plain, "foreign"), 12345, 12345)
            places += ["foreign"]
        if os.path.exists("/dev/full"):
            places += ["../../dev/full"]
        for place in places:
            done = run(RUN, c.model, "--data", c.data, "--cache", os.path.join(c.plain, place), *STRICT, env={"TMPDIR": c.tmp})
            expect(done.returncode == RAN and "agrees" in done.out, f"a cache at {place}", done)
            root_may = place == "locked" and os.geteuid() == 0
            expect(root_may or "warning" in done.err, f"a cache at {place}: no warning", done)
            c.clean(place)
        c.works("elsewhere", compiled=True)


def test_a_full_disk():
    limited = ["sh", "-c", "trap '' XFSZ; ulimit -f $0; exec \"$@\""]  # no file may grow beyond so many blocks
    # On a file system of so few KiB. Half an entry may not stay there.
    small = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o mode=700,size=$0k none \"$1\" || exit 99; shift; \"$@\"; "
             "code=$?; for f in \"$UIR_SMALL\"/tmp-*; do [ ! -e \"$f\" ] || exit 98; done; exit $code"]
    with Compile() as c:
        for blocks in (0, 1, 4, 8, 16, 24, 32):
            done = run(*limited, str(blocks), c.command, env={"TMPDIR": c.tmp})
            expect(done.returncode == RAN and "agrees" in done.out, f"files of at most {blocks} blocks", done)
            expect(blocks > 8 or "warning" in done.err and "error: " not in done.err.replace("compiled and loaded: error: ", ""),
                   f"files of at most {blocks} blocks: no warning", done)
            c.clean(f"{blocks} blocks")
        c.works("after files that are too large")
        if run("unshare", "-rm", "true").returncode:
            raise Lacking("no file system can be mounted")
        place = os.path.join(c.plain, "small")
        os.mkdir(place)
        for size in (4, 8, 16, 24, 32, 48):
            for tmp, strict in ((c.tmp, STRICT), (place, [])):
                command = [RUN, c.model, "--data", c.data, "--cache", place, *strict]
                done = run(*small, str(size), place, command, env={"TMPDIR": tmp, "UIR_SMALL": place})
                expect(done.returncode == RAN and "agrees" in done.out, f"a disk of {size} KiB", done)
                expect(size > 16 or "warning" in done.err, f"a disk of {size} KiB: no warning", done)
                c.clean(f"a disk of {size} KiB")
        c.works("elsewhere", compiled=False)


def test_kernels_of_another_build():
    with Compile() as c:
        c.works("at first", compiled=True)
        c.works("the same build", compiled=False)
        other = shutil.copy(RUN, os.path.join(c.plain, "uir-run"))
        for compiled in (True, False):
            done = run(other, c.command[1:], *STRICT, "--json", env={"TMPDIR": c.tmp})
            expect(done.returncode == RAN and (json.loads(done.out)["compiled"] > 0) == compiled, "another build", done)
        c.works("the first build again", compiled=False)


def test_damaged_cache():
    with Compile() as c:
        c.works("at first", compiled=True)
        files = [os.path.join(d, f) for d, _, names in os.walk(c.cache) for f in names]
        expect(files, "there is no cache")
        seeded = random.Random(1)
        for round in range(4):
            for path in files:
                if not os.path.exists(path) or not os.path.getsize(path):
                    continue
                with open(path, "r+b") as f:
                    at = seeded.randrange(os.path.getsize(path))
                    f.seek(at)
                    byte = f.read(1)[0] ^ (1 << seeded.randrange(8))
                    f.seek(at)
                    f.write(bytes([byte]))
            c.works(f"damage {round}")
            c.works(f"after damage {round}", compiled=False)


def test_two_at_once():
    with Compile() as c:
        command = [*c.command, *STRICT, "--json"]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    env=dict(os.environ, TMPDIR=c.tmp)) for _ in range(3)]
        for p in running:
            out, err = p.communicate(timeout=120)
            expect(p.returncode == RAN and json.loads(out)["agree"] and not err, f"one of three: {p.returncode} {err!r}")
        c.works("after them", compiled=False)


def test_dims_outside_the_facts():
    with Compile() as c:
        np.save(c.path("x.npy"), np.zeros((2, 4), np.float32))
        for device in ("cpu", "vm"):
            fails(BAD_FILE, "'x'", command=[RUN, c.model, "--cache", c.cache, "--device", device, "--input",
                                            "x=" + c.path("x.npy")])
        fails(USAGE, "batch", command=[RUN, c.model, "--cache", c.cache, "--dim", "batch=-1"])
        done = run(RUN, c.model, "--cache", c.cache, "--dim", "batch=0", *STRICT)
        expect(done.returncode == RAN, "no rows", done)


def test_a_processor_without_avx():
    need_program("qemu-x86_64")
    if os.uname().machine != "x86_64":
        raise Lacking("this is no x86-64")
    old = ["qemu-x86_64", "-cpu", "Nehalem"]
    with Compile() as c:
        p = c.path("model.uir")
        done = run(PACK, c.model, "-o", p, "--quiet", "--device", "cpu:generic,cpu:avx2")
        expect(done.returncode == RAN, "packing", done)
        # The compiler is a program of this machine: qemu passes it through.
        done = run(*old, c.command, *STRICT, "--json", env={"TMPDIR": c.tmp}, timeout=300)
        expect(done.returncode == RAN and json.loads(done.out)["agree"], "a model", done)
        for program in (RUN, RUN_PACKAGE):
            for more, by in ((["--trusted", "--no-vm"], "cpu"), ([], "vm")):
                done = run(*old, program, p, "--data", c.data, "--json", *more, timeout=300)
                expect(done.returncode == RAN and json.loads(done.out)["agree"], f"a package by {by}", done)
                expect(json.loads(done.out)["ran_on"] == by, f"not by {by}", done)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
