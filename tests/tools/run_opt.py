#!/usr/bin/env python3
"""uir-opt as its users meet it: errors in kernels' texts with their place, wrong options, texts that go on from where
they stopped, emitted sources, compilers started without a shell.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))

import layers
from cli import (BAD_FILE, FAILED, KERNEL, OPT, RAN, ROOT, USAGE, Case, expect, fails, main, run)


# ---- uir-opt ----
def test_kernel_text_errors():
    with Case() as c:
        for old, new, words in (("binary.mul.f32", "binary.mlu.f32", []), ("%x[p*t+r:1", "%q[p*t+r:1", ["q"]),
                                ("@scale", "@sc*/ale", []), ("@scale", '@"scale"', []), ("%y :", "%y\n\\ :", []),
                                ("dim M", "dim M;x", []), ("dim M", "dim $(x)", []), ("tile t", "tile ??/", []),
                                ("2.5", "2.5.5", []), ("on cpu", "on toaster", ["toaster"]), ("} }", "}", []),
                                ("phase", "phrase", []), ("[M,N] in 0", "[M,N in 0", []), ("@scale", "@sc\u00e4le", []),
                                ("@scale", "@sc\x1b[31male", []), ("@scale", "@sc\0ale", [])):
            k = c.write("k.igraph", KERNEL.replace(old, new))
            done = fails(BAD_FILE, *words, command=[OPT, k])
            place = re.search(r"k\.igraph:(\d+):(\d+): error: ", done.err)
            expect(place, "no line and column", done)
            lines = done.err.splitlines()
            expect(any(re.fullmatch(r" +\^", line) for line in lines), "no caret", done)
        k = c.write("k.igraph", KERNEL.replace("0:N], 2.5", "1:N], 2.5"))
        done = fails(BAD_FILE, "%y[p*t + r, 0:N]", command=[OPT, k, "--after", "verify"])
        expect(re.search(r"k\.igraph:\d+", done.err), "the verifier names the line", done)
        fails(BAD_FILE, command=[OPT, c.write("k.txt", "what is this?")])
        fails(BAD_FILE, command=[OPT, c.write("k.txt", b"")])
        fails(BAD_FILE, command=[OPT, c.write("k.txt", b"\xff\x00\xfe" * 100)])
        whole = KERNEL.encode()
        for length in range(7, len(whole) - 3, 11):
            fails(BAD_FILE, "k.igraph", command=[OPT, c.write("k.igraph", whole[:length])])


def test_running_kernels():
    with Case() as c:
        k = c.write("k.igraph", KERNEL)
        np.save(c.path("x.npy"), c.x)
        for device in ("interpreter", "vm", "cpu", "cpu:generic"):
            done = run(OPT, k, "--run", "--check", "--device", device, "--dim", "M=2", "--dim", "N=3", "--input",
                       "x=" + c.path("x.npy"), "--save", c.folder)
            expect(done.returncode == RAN and "agrees" in done.out, f"a kernel on {device}", done)
            expect(np.array_equal(np.load(c.path("y.npy")), c.x * np.float32(2.5)), f"its result on {device}", done)
        size = ["--dim", "M=2", "--dim", "N=3"]
        for code, words, arguments in ((USAGE, ["Q=3"], ["--dim", "Q=3"]), (USAGE, ["--dim", "M"], ["--dim", "M"]),
                                       (USAGE, ["M=x"], ["--dim", "M=x"]), (USAGE, ["t"], ["--tile", "t=65"]),
                                       (USAGE, ["M"], ["--dim", "M=5000"]), (USAGE, ["M"], ["--dim", "M=-1"]),
                                       (USAGE, ["z=1"], ["--tile", "z=1"]), (USAGE, ["gpu"], ["--device", "gpu"]),
                                       (USAGE, ["nosuch"], ["--device", "cpu:nosuch"]),
                                       (USAGE, ["nosuch"], ["--device", "vm:nosuch"]),
                                       (USAGE, ["nosuch"], ["--kernel", "nosuch"]),
                                       (USAGE, ["z=a.npy"], ["--input", "z=a.npy"]),
                                       (USAGE, ["y=a.npy"], ["--input", "y=a.npy"]),
                                       (BAD_FILE, ["absent.npy"], ["--input", "x=absent.npy"]),
                                       (BAD_FILE, ["f32[2,3]", "%x", "f32[1,1]"], ["--input", "x=" + c.path("x.npy")])):
            fails(code, *words, command=[OPT, k, "--run", *arguments])
        done = run(OPT, k, "--run", *size, "--save", k)
        expect(done.returncode == FAILED and "y.npy" in done.err, "an unwritable folder", done)
        fails(USAGE, "--run", command=[OPT, c.write("m.txt", run(OPT, c.model).stdout), "--run"])
        fails(USAGE, "unknown option", "did you mean --device?", command=[OPT, k, "--devcie", "vm"])
        fails(USAGE, "no file", command=[OPT])
        fails(USAGE, "-o", command=[OPT, k, "-o"])
        fails(USAGE, "nosuch", command=[OPT, k, "--after", "nosuch"])
        fails(USAGE, "nosuch", command=[OPT, c.model, "--after", "nosuch"])
        fails(BAD_FILE, "absent", command=[OPT, c.path("absent")])
        fails(BAD_FILE, "cannot read", command=[OPT, c.folder])


def test_texts_go_round():
    with Case() as c:
        whole = run(OPT, c.model)
        expect(whole.returncode == RAN, "a model's text", whole)
        stages = ["primitives"] + re.findall(r"^  ([a-z_-]+) ", run(OPT, "--list").out, re.M)
        expect(len(stages) > 1, f"the stages are {stages}")
        for stage in stages:
            text = c.path("stage.txt")
            done = run(OPT, c.model, "--after", stage, "-o", text)
            expect(done.returncode == RAN and not done.stdout, f"after {stage}", done)
            again = run(OPT, text, "--from", stage)
            expect(again.returncode == RAN and again.stdout == whole.stdout, f"on from {stage}", again)
        last = c.write("last.txt", whole.stdout)
        expect(run(OPT, last).stdout == whole.stdout, "the last text is itself again")
        for file in glob.glob(os.path.join(ROOT, "tests", "igraph", "*.igraph"))[:12] + [c.write("k.igraph", KERNEL)]:
            once = run(OPT, file)
            expect(once.returncode == RAN, "an iGraph's text", once)
            twice = run(OPT, c.write("again.igraph", once.stdout))
            expect(twice.stdout == once.stdout, f"{file}: the text is not itself again", twice)
        for file in glob.glob(os.path.join(ROOT, "tests", "ir", "loop", "**", "*.loop"), recursive=True):
            once = run(OPT, file)
            twice = run(OPT, c.write("again.loop", once.stdout))
            expect(once.returncode == RAN and twice.stdout == once.stdout, f"{file}: the text is not itself again", twice)


def test_emitted_source_holds_plain_names():
    with Case() as c:
        files = glob.glob(os.path.join(ROOT, "tests", "igraph", "**", "*.igraph"), recursive=True)
        emitted = 0
        for file in files + [c.write("k.igraph", KERNEL)]:
            if " on cpu" not in open(file).read():  # this build has no emitter for other devices
                continue
            if os.path.basename(os.path.dirname(file)).startswith("broken"):  # what the verifier refuses has no source
                done = fails(BAD_FILE, os.path.basename(file), command=[OPT, file, "--after", "emit"])
                expect(not done.stdout, "a source of a refused kernel", done)
                continue
            done = run(OPT, file, "--after", "emit")
            expect(done.returncode == RAN, "an emitted source", done)
            emitted += 1
            source = done.stdout
            expect(all(b in (9, 10) or 32 <= b < 127 for b in source), f"{file}: bytes that are not plain text")
            expect(b"??" not in source, f"{file}: a trigraph")
            names = re.findall(rb"[@%]([^\s,()\[\]{}:;*/+\-]*)", open(file, "rb").read().split(b"#")[0])
            expect(all(re.fullmatch(rb"[A-Za-z0-9_]*", name) for name in names), f"{file}: a name is not plain")
            expect(c.folder.encode() not in source and b".igraph" not in source, f"{file}: a path in the source")
        expect(emitted > 0, "nothing was emitted")


def test_compilers_start_without_a_shell():
    with Case() as c:
        k = c.write("k.igraph", KERNEL)
        command = [OPT, k, "--run", "--check", "--device", "cpu", "--dim", "M=2"]
        for compiler in (c.path("$(touch pwned)", "cc"), "$(touch pwned)", "`touch pwned`", "cc;touch pwned", "cc|touch pwned",
                         "/absent/cc", "touch\tpwned;"):
            done = run(*command, env={"CC": compiler}, cwd=c.folder)
            expect(done.returncode == FAILED and "compiler" in done.err, f"CC={compiler!r}", done)
            expect(not done.stdout, "results without a compiler", done)
            expect(not os.path.exists(c.path("pwned")), f"CC={compiler!r} was run by a shell", done)
        fails(FAILED, "/bin/false", "failed", command=command, env={"CC": "/bin/false"})
        done = run(*command, env={"CC": ""})
        expect(done.returncode == RAN, "an empty CC is none", done)
        for folder in ("with spaces $(touch pwned)", "quote\"'", "semi;colon", "new\nline"):
            os.mkdir(c.path(folder))
            done = run(*command, env={"TMPDIR": c.path(folder)}, cwd=c.folder)
            expect(done.returncode == RAN and "agrees" in done.out, f"TMPDIR={folder!r}", done)
            expect(os.listdir(c.path(folder)) == [], "files are left behind", done)
        expect(not os.path.exists(c.path("pwned")), "TMPDIR was run by a shell")
        fails(FAILED, "temporary folder", "TMPDIR", command=command, env={"TMPDIR": k})


def test_signals_end_the_compiler():
    """A compiler that sleeps, with a child of its own and one that will not be asked politely: nothing of it stays."""
    with Case() as c:
        k = c.write("k.igraph", KERNEL)
        os.mkdir(c.path("temporary"))
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            for stubborn in ("", "trap '' TERM INT\n"):
                pids = c.path("pids")
                compiler = c.write("cc.sh", f"#!/bin/sh\n{stubborn}sleep 300 &\necho $$ $! > '{pids}.new'\n"
                                            f"mv '{pids}.new' '{pids}'\nwait\nsleep 300\n")
                os.chmod(compiler, 0o700)
                p = subprocess.Popen([OPT, k, "--run", "--device", "cpu", "--dim", "M=2"], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, cwd=c.folder,
                                     env=dict(os.environ, CC="./cc.sh", TMPDIR=c.path("temporary")))
                start = time.monotonic()
                while not os.path.exists(pids) and time.monotonic() - start < 30:
                    time.sleep(0.01)
                expect(os.path.exists(pids) and os.listdir(c.path("temporary")), "the compiler began")
                p.send_signal(number)
                out, err = p.communicate(timeout=60)
                expect(p.returncode == code, f"exit {p.returncode} instead of {code} after {number!r}\n{err}")
                expect(not out and not err, f"an interrupted run says {out!r} {err!r}")
                expect(os.listdir(c.path("temporary")) == [], "files are left behind")
                for pid in open(pids).read().split():
                    while alive(int(pid)) and time.monotonic() - start < 30:  # killed, it may still be ending
                        time.sleep(0.01)
                    expect(not alive(int(pid)), f"process {pid} of the compiler is left behind")
                os.unlink(pids)


def alive(pid):
    """Whether the process runs; what has ended and was not waited for does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


# ---- compiles in proportion ----
def test_concatenating_blocks():
    """Work without a clock: lines of all kernels for each layer, and operands of the widest kernel."""
    with Case() as c:
        for form in layers.FORMS:
            lines = {}
            for count in (20, 60):
                layers.write(form, count, c.path("block.onnx"))
                done = run(OPT, c.path("block.onnx"), "--after", "igraph", timeout=600)
                expect(done.returncode == RAN, f"{form}, {count} layers", done)
                kernels = done.out.split("\nigraph @")[1:]
                widest = max(len(re.findall(r"^ *ptr .* in \d+$", k, re.M)) for k in kernels)
                expect(widest <= 40, f"{form}, {count} layers: a kernel has {widest} operands")
                lines[count] = sum(k.count("\n") for k in kernels) / count
            expect(lines[60] <= 2 * lines[20], f"{form}: lines of kernels a layer: {lines}")


if __name__ == "__main__":
    sys.exit(main(globals()))
