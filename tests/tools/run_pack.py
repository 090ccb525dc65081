#!/usr/bin/env python3
"""uir-pack, and packages in uir-run and in uir-run-package, which has no compiler: what is written, where it runs, who is
trusted, and what happens to packages that are damaged, too new, or cannot be made.

In: the programs in $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import io
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from cli import (BAD_FILE, BIN, DIFFERS, FAILED, PACK, RAN, ROOT, RUN, RUN_PACKAGE, UNSUPPORTED, USAGE, Case, expect,
                 external_model, fails, is_clean, make_model, need_processes, need_program, product_model, run, run_tests,
                 save, slow, value, write_set)

NO_COMPILER = {"CC": "/bin/false", "PATH": "/nonexistent"}


def packed(c, *arguments, name="model.uir"):
    """The package of the case's model."""
    done = run(PACK, c.model, "-o", c.path(name), "--quiet", *arguments)
    expect(done.returncode == RAN and not done.stdout and not done.stderr, "packing", done)
    return c.path(name)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def only_in(c, *names):
    found = set(os.listdir(c.folder)) - {"model.onnx"}
    expect(found == set(names), f"{found} lies there, not {names}")


# ---- packages that are made ----
def test_a_package_runs_everywhere():
    with Case() as c:
        p = packed(c)
        only_in(c, "model.uir")
        data = write_set(c.path("data"), c.x, c.y)
        for program in (RUN, RUN_PACKAGE):
            for arguments, by in ((["--trusted", "--no-vm"], "cpu"), ([], "vm"), (["--trusted", "--device", "vm"], "vm"),
                                  (["--trusted", "--threads", "2"], "cpu")):
                done = run(program, p, "--data", data, "--no-fallback", "--json", *arguments, env=NO_COMPILER)
                expect(done.returncode == RAN and done.err.count("--trusted") == (not arguments), "running a package", done)
                told = json.loads(done.out)
                expect(told["ran_on"] == by and told["compiled"] == 0 and told["calls"]["host"] == 0, f"by {by}", done)
                expect(all(o["agree"] for o in told["outputs"]), "its outputs", done)
            done = run(program, p, "--data", write_set(c.path("other"), c.x, c.y + 1))
            expect(done.returncode == DIFFERS, "outputs that differ", done)
            fails(FAILED, "VM", "--trusted", command=[program, p, "--no-vm", "--data", data])


def test_known_by_its_bytes():
    with Case() as c:
        p = packed(c, name="package.onnx")
        model = shutil.copy(c.model, c.path("model.uir"))
        np.save(c.path("x.npy"), c.x)
        for path in (p, model):
            done = run(RUN, path, "--no-cache", "--input", "x=" + c.path("x.npy"))
            expect(done.returncode == RAN, "known by what it holds", done)


def test_default_name_and_report():
    with Case() as c:
        done = run(PACK, c.model, "--no-native")
        expect(done.returncode == RAN and "1 kernels" in done.out and "model.uir" in done.out, "the report", done)
        only_in(c, "model.uir")


def test_same_bytes_in_any_folder():
    need_program("taskset")
    with Case() as a, Case() as b:
        kinds = (["--device", "cpu:generic"], ["--no-native"], ["--device", "vm"])
        for i, kind in enumerate(kinds):
            first = packed(a, *kind, name=f"{i}.uir")
            os.makedirs(b.path("deep", "er"), exist_ok=True)
            # On one core: how many compile side by side decides nothing.
            one = min(os.sched_getaffinity(0))
            done = run("taskset", "-c", str(one), PACK, b.model, "--quiet", "--output=" + b.path("deep", "er", "x.uir"), *kind,
                       cwd=b.path("deep"),
                       env={"TMPDIR": b.path("deep"), "HOME": b.folder})
            expect(done.returncode == RAN, "packing elsewhere", done)
            expect(read(first) == read(b.path("deep", "er", "x.uir")), f"other bytes with {kind}")
        os.utime(a.model, (1, 1))
        expect(read(packed(a, *kinds[0], name="again.uir")) == read(a.path("0.uir")), "other bytes the second time")


@slow
def test_several_variants():
    with Case() as c:
        sizes = [os.path.getsize(packed(c, "--device", d, name=d.replace(":", "_") + ".uir"))
                 for d in ("vm", "cpu:generic", "cpu:generic,cpu:avx2,cpu:avx512")]
        expect(sizes == sorted(set(sizes)), f"sizes {sizes}")
        data = write_set(c.path("data"), c.x, c.y)
        done = run(RUN, c.path("cpu_generic,cpu_avx2,cpu_avx512.uir"), "--data", data, "--trusted", "--no-vm")
        expect(done.returncode == RAN, "the best variant runs", done)
        same = packed(c, "--device", "cpu:generic", "--device", "cpu:avx2", "--device", "cpu:avx512", name="same.uir")
        expect(read(same) == read(c.path("cpu_generic,cpu_avx2,cpu_avx512.uir")), "a list and several options")
        twice = packed(c, "--device", "cpu:generic,cpu:generic", name="twice.uir")
        expect(read(twice) == read(c.path("cpu_generic.uir")), "a variant named twice")


def test_names_of_outputs():
    """Those of the model, whatever becomes of the nodes that gave them: fresh, from the cache, and packed."""
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Identity", ["h"], ["first"]),
             helper.make_node("Dropout", ["h"], ["second"]), helper.make_node("Identity", ["x"], ["same"]),
             helper.make_node("Relu", ["x"], ["twin"]), helper.make_node("Add", ["h", "x"], ["sum"])]
    names = ["second", "h", "same", "sum", "first", "twin"]
    with Case() as c:
        c.model = save(make_model(nodes, [value("x", [3])], [value(n, None) for n in names]), c.path("model.onnx"))
        for how in ("fresh", "cached"):
            done = run(RUN, c.model, "--device", "vm", "--cache", c.path("cache"), "--json")
            told = json.loads(done.out)
            expect([o["name"] for o in told["outputs"]] == names, f"{how}: {told['outputs']}")
            expect((told["compile_ms"] == 0) == (how == "cached"), f"{how}: compiled in {told['compile_ms']} ms")
        p = packed(c, "--no-native")
        for program in (RUN, RUN_PACKAGE):
            told = json.loads(run(program, p, "--json").out)
            expect([o["name"] for o in told["outputs"]] == names, f"packed: {told['outputs']}")


def test_dims_of_a_package():
    with Case() as c:
        p = packed(c, "--no-native")
        for program in (RUN, RUN_PACKAGE):
            done = run(program, p, "--dim", "batch=5", "--json")
            expect(done.returncode == RAN and json.loads(done.out)["outputs"][0]["shape"] == [5, 4], "a free dim", done)
            fails(USAGE, "bacth", "did you mean 'batch'", command=[program, p, "--dim", "bacth=5"])
            fails(USAGE, "did you mean 'x'", command=[program, p, "--shape", "xx=1x3"])
            np.save(c.path("x.npy"), c.x[:, :2])
            fails(BAD_FILE, "x", "f32[batch, 3]", command=[program, p, "--input", "x=" + c.path("x.npy")])


def test_saving_by_the_runtime_alone():
    with Case() as c:
        p = packed(c, "--no-native")
        data = write_set(c.path("data"), c.x, c.y)
        for form in ("pb", "npy"):
            done = run(RUN_PACKAGE, p, "--data", data, "--save", c.path(form), "--format", form)
            expect(done.returncode == RAN, f"saving {form}", done)
        proto = onnx.load_tensor(c.path("pb", "output_0.pb"))
        expect(np.array_equal(numpy_helper.to_array(proto), c.y), "what a .pb holds")
        expect(np.array_equal(np.load(c.path("npy", "y.npy")), c.y), "what an .npy holds")


def test_the_runtime_alone_is_small():
    library = os.path.join(os.path.dirname(BIN), "lib", "public", "libuir_rt.so")
    sizes = run("size", library).out.splitlines()[1].split()
    expect(int(sizes[0]) + int(sizes[1]) < 1_500_000, f"{sizes[:3]} bytes of code and data")
    names = [line.split()[-1] for line in run("nm", "-D", "--defined-only", library).out.splitlines()]
    expect(names and all(n.startswith("uir_") for n in names), f"exported: {[n for n in names if n[:4] != 'uir_']}")
    with Case() as c:
        fails(UNSUPPORTED, "uir-pack", command=[RUN_PACKAGE, c.model])


def test_a_copied_program_runs():
    """One file besides the package: nothing of it is found through where it was built."""
    with Case() as c:
        p = packed(c, "--no-native")
        os.makedirs(c.path("elsewhere"))
        program = shutil.copy(RUN_PACKAGE, c.path("elsewhere", "uir-run-package"))
        linked = run("ldd", program)
        expect("libuir" not in linked.out and "protobuf" not in linked.out and "not found" not in linked.out, "what it links", linked)
        expect("RUNPATH" not in run("readelf", "-d", program).out, "a folder of the build is in it")
        done = run(program, p, "--device", "vm", cwd=c.path("elsewhere"))
        expect(done.returncode == RAN, "a copy", done)


def offered(program):
    """The options that --help names."""
    return set(re.findall(r"^  --([a-z-]+)", run(program, "--help").out, re.MULTILINE))


def test_help_offers_what_there_is():
    done = run(RUN_PACKAGE, "--help")
    for word in (".npz", ".png", ".jpg", ".bmp"):
        expect(word not in done.out, f"{word} is offered", done)
    named = set(re.findall(r"--([a-z][a-z-]*)", done.out))
    expect(named <= offered(RUN_PACKAGE), f"{named - offered(RUN_PACKAGE)} are spoken of, and not there", done)
    lacking = offered(RUN) - offered(RUN_PACKAGE)
    expect({"check", "reduce", "dump-source", "source", "list-ops", "cache", "preprocess"} <= lacking, f"{lacking} are not offered")
    with Case() as c:
        p = packed(c, "--no-native")
        for option in sorted(lacking):
            done = fails(UNSUPPORTED, "--" + option, "uir-run, which has this option", command=[RUN_PACKAGE, p, "--" + option])
            expect(len(done.err.splitlines()) == 2, "said once", done)
        done = fails(USAGE, "unknown option", command=[RUN_PACKAGE, p, "--chek"])
        expect("did you mean" not in done.err, "what is not there is proposed", done)
        for option in ("--can-run", "--explain", "--profile", "--bench=", "--plan", "--json"):
            done = run(RUN_PACKAGE, p, option.rstrip("="), "--seconds", "0", "--device", "vm")
            expect(done.returncode == RAN and done.out, option, done)


# ---- native code ----
def test_the_price_of_no_trust_is_said():
    with Case() as c:
        p, plain = packed(c), packed(c, "--no-native", name="plain.uir")
        for program in (RUN, RUN_PACKAGE):
            done = run(program, p, "--bench", "--seconds", "0")
            expect(done.returncode == RAN and done.err.count("--trusted") == 1 and "slower" in done.err, "said once", done)
            expect("--trusted" not in done.out, "on standard output", done)
            for words in ([p, "--quiet"], [p, "--trusted"], [p, "--device", "vm"], [plain]):
                done = run(program, *words)
                expect(done.returncode == RAN and not done.err, f"{words}", done)


# What a system may refuse when native code is to be loaded; each is the whole of a library that is loaded first.
REFUSALS = {
    "vm.memfd_noexec": "#include <errno.h>\nint memfd_create(const char *n, unsigned f) { (void)n, (void)f; errno = EACCES; return -1; }",
    "mount /proc": "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <fcntl.h>\n#include <string.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n"
                      "void *dlopen(const char *p, int f) { (void)p, (void)f; return 0; }\n"
                      "int access(const char *p, int m) {\n"
                      "  return strncmp(p, \"/proc\", 5) ? (int)syscall(SYS_faccessat, AT_FDCWD, p, m) : -1; }",
    "segment": "#define _GNU_SOURCE\n#include <dlfcn.h>\nvoid *dlopen(const char *p, int f) { (void)p, (void)f; return 0; }\n"
               "char *dlerror(void) { return \"failed to map segment from shared object\"; }",
    "the dynamic linker withholds": "#define _GNU_SOURCE\n#include <dlfcn.h>\nvoid *dlopen(const char *p, int f) { (void)p, (void)f; return 0; }\n"
              "char *dlerror(void) { return 0; }",
    "cannot be stored": "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <errno.h>\n#include <string.h>\n#include <unistd.h>\n#include <sys/mman.h>\n"
               "#include <sys/syscall.h>\nstatic int made = -1;\n"
               "int memfd_create(const char *n, unsigned f) { return made = (int)syscall(SYS_memfd_create, n, f); }\n"
               "ssize_t write(int d, const void *b, size_t n) { if (d == made) { errno = ENOSPC; return -1; }\n"
               "  return syscall(SYS_write, d, b, n); }",
}


@slow
def test_native_code_that_cannot_be_loaded():
    """Why is said, once, whoever asked for it; the answer is the VM's."""
    need_processes()  # and native code is loaded through /proc
    with Case() as c, tempfile.TemporaryDirectory() as plain:  # names in LD_PRELOAD have no blanks
        p, data = packed(c), write_set(c.path("data"), c.x, c.y)
        for word, source in REFUSALS.items():
            with open(os.path.join(plain, "first.c"), "w") as f:
                f.write(source)
            library = os.path.join(plain, "first.so")
            expect(subprocess.run(["cc", "-shared", "-fPIC", "-o", library, f.name]).returncode == 0, "compiling " + word)
            env = {"LD_PRELOAD": library, "LANG": "C", "CC": "env -u LD_PRELOAD cc"}
            for program in (RUN, RUN_PACKAGE):
                done = run(program, p, "--trusted", "--data", data, "--json", env=env)
                expect(done.returncode == RAN and json.loads(done.out)["ran_on"] == "vm", word, done)
                expect(done.err.count(word) == 1 and "warning" in done.err, f"{word} is not said once", done)
                expect(json.loads(done.out)["nodes"][0]["why"].count(word) == 1, f"--explain does not say {word}", done)
                fails(FAILED, word, "--no-vm", command=[program, p, "--trusted", "--data", data, "--no-vm"], env=env)
            for cache in ("--no-cache", "--cache=" + c.path("cache")):
                fails(FAILED, word, command=[RUN, c.model, "--data", data, cache, "--no-vm"], env=env)
        # The kernels are in the cache: what cannot be loaded now is no reason to compile them again.
        done = run(RUN, c.model, "--data", data, "--no-vm", "--cache", c.path("cache"))
        expect(done.returncode == RAN, "kernels in the cache", done)
        done = run(RUN, c.model, "--data", data, "--json", "--cache", c.path("cache"), env=dict(env, CC="/bin/false"))
        told = json.loads(done.out)
        expect(done.returncode == RAN and told["ran_on"] == "vm" and told["compile_ms"] == 0, "compiled again", done)
        expect(done.err.count(word) == 1 and told["nodes"][0]["why"].count(word) == 1, f"{word} is not said once", done)


def test_native_code_for_another_machine():
    need_program("aarch64-linux-gnu-gcc")
    with Case() as c:
        p, data = packed(c, "--device", "cpu:aarch64"), write_set(c.path("data"), c.x, c.y)
        for program in (RUN, RUN_PACKAGE):
            done = run(program, p, "--trusted", "--data", data)
            expect(done.returncode == RAN and done.err.count("aarch64") == 1 and "this machine" in done.err, "why the VM ran it", done)
            done = run(program, p, "--data", data)
            expect(done.returncode == RAN and not done.err, "trust would not help", done)


def test_a_statically_linked_program():
    """It loads native code where it can, and says why where it cannot."""
    source = """#include "uir/uir.h"
#include <stdio.h>
int main(int count, char **words) {
    uir_context *context;
    uir_model *model;
    uir_session *session;
    uir_package_open_options options = {.struct_size = sizeof options, .trusted = true};
    (void)count;
    if (uir_context_create(NULL, &context) != UIR_STATUS_OK) return 1;
    uir_status status = uir_model_open_package_file(context, words[1], &options, &model);
    if (status == UIR_STATUS_OK) status = uir_session_create(model, NULL, &session);
    for (size_t i = 0; i < uir_context_message_count(context); i++) puts(uir_context_get_message_text(context, i));
    printf("status %d\\n", (int)status);
    if (status != UIR_STATUS_OK) return 1;
    uir_session_destroy(session);
    uir_model_destroy(model);
    uir_context_destroy(context);
    return 0;
}
#ifdef NO_LINKER
#include <dlfcn.h>
void *dlopen(const char *path, int flags) { (void)path, (void)flags; return NULL; }
char *dlerror(void) { return "Dynamic loading not supported"; }
void *dlsym(void *object, const char *name) { (void)object, (void)name; return NULL; }
int dlclose(void *object) { (void)object; return 0; }
#endif
"""
    with Case() as c:
        p, s = packed(c), c.write("static.c", source)
        library = os.path.join(os.path.dirname(BIN), "lib", "public", "libuir_rt.a")
        needs = run("pkg-config", "--static", "--libs", os.path.join(os.path.dirname(BIN), "uir_rt.pc")).out.split()
        needs = [n for n in needs if n.startswith("-l") and n != "-luir_rt"]
        for macros, said in (([], None), (["-DNO_LINKER"], "Dynamic loading not supported")):
            made = run("cc", "-w", "-static", *macros, "-I", os.path.join(ROOT, "include"), s, library, "-o", c.path("static"),
                       *needs)
            expect(made.returncode == 0, "linking", made)
            done = run(c.path("static"), p)
            expect(done.returncode == 0 and "status 0" in done.out, "a static program", done)
            expect(said is None or done.out.count(said) == 1, "why no native code runs", done)


def test_a_package_carries_its_tolerance():
    with Case() as c, Case() as away:
        data = write_set(c.path("data"), c.x, c.y * np.float32(1.04))
        plain = read(packed(c, "--no-native", name="plain.uir"))
        c.write("info.json", json.dumps({"tolerance": {"rtol": 0.05, "atol_relative_to_max": 0.015625}}))
        p = packed(c, "--no-native", name="stated.uir")
        expect(read(p) != plain and read(packed(c, "--no-native", name="again.uir")) == read(p), "its bytes")
        for program in (RUN, RUN_PACKAGE):
            moved = shutil.copy(p, away.path("moved.uir"))
            done = run(program, moved, "--data", data)
            expect(done.returncode == RAN and "rtol 0.05, 0.015625 of the greatest expected magnitude (the package)" in
                   done.out, "the tolerance of the package", done)
            expect(run(program, moved, "--data", data, "--rtol", "0.01", "--atol", "0").returncode == DIFFERS, "--rtol")
            done = run(program, shutil.copy(c.path("plain.uir"), away.path("plain.uir")), "--data", data)
            expect(done.returncode == DIFFERS and "default" in done.out, "a package without one", done)


# ---- what is refused ----
# Sizes that a model cannot take: op, attributes, shapes of inputs as declared and as given, constants, the words about it.
MISFITS = [
    ("Add", {}, {"a": (["n"], [3]), "b": (["m"], [4])}, {}, "3 by 4 at axis 0: dim 0 of operand 0 (n) must be 1 or 4"),
    ("MatMul", {}, {"a": (["n", "k"], [2, 3]), "b": (["l", "m"], [4, 5])}, {}, "l is 4 and must be 3, as k"),
    ("Gemm", {"transB": 1}, {"a": (["n", "k"], [2, 3]), "b": (["m", "l"], [4, 5])}, {}, "l is 5 and must be 3, as k"),
    ("Conv", {}, {"a": (["n", "c", "h", "w"], [1, 3, 5, 5]), "b": ([4, "d", 3, 3], [4, 2, 3, 3])}, {}, "d is 2 and must be 3, as c"),
    ("MaxPool", {"kernel_shape": [3, 3]}, {"a": (["n", 3, "h", "w"], [1, 3, 1, 1])}, {},
     "dim 2 of the result is -1 (h - 2) and must be at least 0"),
    ("Concat", {"axis": 1}, {"a": (["n", 2], [3, 2]), "b": (["m", 2], [4, 2])}, {},
     "m is 4 and must be 3, as n"),
    ("Reshape", {}, {"a": (["n"], [7])}, {"s": [2, 3]}, "the number of elements of operand 0 is 7 (n) and must be 6"),
    ("Expand", {}, {"a": (["n", 2], [3, 2])}, {"s": [4, 2]}, "3 by 4 at axis 0: dim 0 of operand 0 (n) must be 1 or 4"),
    ("Pad", {}, {"a": (["n"], [3])}, {"s": [-2, -2]}, "dim 0 of the result is -1 (n - 4) and must be at least 0"),
    ("LayerNormalization", {}, {"a": (["n", "c"], [2, 3]), "b": (["d"], [4])}, {}, "3 by 4 at axis 1: dim 1 of operand 0 (c) must be 1 or 4"),
    ("Einsum", {"equation": "ij,jk->ik"}, {"a": (["n", "k"], [2, 3]), "b": (["l", "m"], [4, 5])}, {}, "3 by 4 at axis 1: dim 1 of operand 0 (k) must be 1 or 4"),
]


def test_sizes_that_a_model_cannot_take():
    """The same words and code, whatever runs the model: the node, its dims and what they are."""
    for op, attributes, inputs, constants, words in MISFITS:
        with Case() as c:
            node = helper.make_node(op, [*inputs, *constants], ["y"], name="the node", **attributes)
            initializers = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in constants.items()]
            m = save(make_model([node], [value(n, declared) for n, (declared, _) in inputs.items()], [value("y", None)],
                                initializers), c.path("m.onnx"))
            given = []
            for n, (_, shape) in inputs.items():
                np.save(c.path(n + ".npy"), np.zeros(shape, np.float32))
                given += ["--input", f"{n}={c.path(n)}.npy"]
            expect(run(PACK, m, "-o", c.path("m.uir"), "--no-native").returncode == RAN, f"{op}: no package")
            said = [fails(BAD_FILE, "the node", words, command=[*command, "--quiet", *given]).err.split(": ", 1)[1]
                    for command in ([RUN, m, "--device", "interpreter"], [RUN, m, "--device", "vm"], [RUN, m],
                                    [RUN_PACKAGE, c.path("m.uir")])]
            expect(len(set(said)) == 1, f"{op}: not the same words: {said}")


def test_pictures():
    """ImageDecoder in a package, for the runtime alone: whole pictures, and those that are cut off, damaged or boast."""
    gradient = np.add.outer(np.arange(30) * 7, np.arange(40) * 5).astype(np.uint8)
    pixels = np.stack([gradient, 255 - gradient, gradient // 2], axis=2)

    def encoded(kind, **options):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, kind, **options)
        return file.getvalue()

    def boasting(picture, at, order):
        return picture[:at] + struct.pack(order + "HH", 60000, 60000) + picture[at + 4:]
    jpeg, png, bmp = encoded("JPEG", quality=90), encoded("PNG"), encoded("BMP")
    frame = jpeg.index(b"\xff\xc0") + 5
    huge_bmp = bmp[:18] + struct.pack("<II", 60000, 60000) + bmp[26:200]
    good = (jpeg, png, bmp, encoded("PPM"), encoded("JPEG", progressive=True))
    bad = ((jpeg[:-200], "JPEG picture is cut off"), (jpeg[:100], "JPEG"), (boasting(jpeg, frame, ">"), "more pixels than its bytes can hold"),
           (png[:-40], "PNG picture is damaged"), (png[:60] + b"\xff" * 8 + png[68:], "PNG picture is damaged"),
           (huge_bmp, "more pixels than its bytes can hold"), (bmp[:500], "more pixels than its bytes can hold"),
           (b"P6 60000 60000 255 " + b"x" * 80, "more pixels than its bytes can hold"),
           (b"no picture", "not in a known picture format"), (b"", "not in a known picture format"))
    extra = ((encoded("TIFF"), "TIFF", "libtiff.so.6"), (encoded("WEBP", lossless=True), "WebP", "libwebp.so.7"),
             (encoded("JPEG2000"), "JPEG 2000", "libopenjp2.so.7"))
    with Case() as c:
        model = make_model([helper.make_node("ImageDecoder", ["x"], ["y"], name="decode", pixel_format="RGB")],
                           [value("x", ["bytes"], TensorProto.UINT8)], [value("y", ["h", "w", 3], TensorProto.UINT8)])
        done = run(PACK, save(model, c.model), "-o", c.path("model.uir"), "--quiet")
        expect(done.returncode == RAN, "packing", done)
        damaged = c.path("damaged")  # a folder of libraries that cannot be opened
        os.mkdir(damaged)
        for *_, library in extra:
            open(os.path.join(damaged, library), "wb").close()
        for program, *first in ((RUN_PACKAGE, c.path("model.uir")), (RUN, c.path("model.uir")), (RUN, c.model, "--device", "vm"),
                                (RUN, c.model, "--device", "interpreter")):
            alone = program == RUN_PACKAGE  # without the libraries of these formats, which it says
            here = good if alone else good + tuple(picture for picture, *_ in extra)
            for picture, name, library in extra:
                data = write_set(c.path("extra"), np.frombuffer(picture, np.uint8))
                why = f"the picture is {name}, which only libuir decodes" if alone else f"{name} pictures are decoded by {library} ("
                fails(UNSUPPORTED, why, "decode", command=[program, *first, "--data", data], env={"LD_LIBRARY_PATH": damaged})
            for picture in here:
                data = write_set(c.path("good"), np.frombuffer(picture, np.uint8), np.asarray(Image.open(io.BytesIO(picture)).convert("RGB")))
                done = run(program, *first, "--data", data)
                expect(done.returncode == RAN and "agrees" in done.out, f"{picture[:4]}", done)
            for picture, why in bad:
                data = write_set(c.path("bad"), np.frombuffer(picture, np.uint8))
                done = run(program, *first, "--data", data)
                expect(done.returncode in (BAD_FILE, UNSUPPORTED) and why in done.err and "decode" in done.err, f"{picture[:4]}: {why}", done)


def test_what_no_package_holds():
    """Text, sequences: what, where, and what to do."""
    text = TensorProto.STRING
    with Case() as c:
        model = make_model([helper.make_node("StringConcat", ["a", "b"], ["joined"], name="join")],
                           [value("a", ["n"], text), value("b", ["n"], text)], [value("joined", ["n"], text)])
        fails(UNSUPPORTED, "node 'join'", "value 'a'", "holds no text", "pack a model of numeric tensors", command=(PACK, save(model, c.model), "-o", c.path("m.uir")))
        np.save(c.path("a.npy"), np.array(["x", "y"]))
        done = run(RUN, c.model, "--input", "a=" + c.path("a.npy"), "--input", "b=" + c.path("a.npy"))
        expect(done.returncode == RAN and "the interpreter runs the model" in done.err and "holds no text" in done.err, "a warning", done)
        model = make_model([helper.make_node("SplitToSequence", ["x"], ["parts"], name="cut")], [value("x", [4])],
                           [helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None)])
        fails(UNSUPPORTED, "holds no sequences", "pack a model of numeric tensors", command=(PACK, save(model, c.model), "-o", c.path("m.uir")))


def test_what_a_package_cannot():
    with Case() as c:
        p = packed(c, "--no-native")
        fails(UNSUPPORTED, "interpreter", command=[RUN, p, "--device", "interpreter"])
        fails(UNSUPPORTED, "--check", command=[RUN, p, "--check"])
        fails(UNSUPPORTED, "toaster", command=[RUN, p, "--device", "toaster"])


def test_nodes_without_a_kernel_are_listed():
    nodes = [helper.make_node("Unique", ["a"], ["c"], name="first"), helper.make_node("Unique", ["c"], ["d"], name="second"),
             helper.make_node("Relu", ["x"], ["y"], name="third")]
    model = make_model(nodes, [value("a", ["n"]), value("x", ["n"])], [value("d", None), value("y", ["n"])])
    with Case() as c:
        m = save(model, c.path("unique.onnx"))
        done = fails(UNSUPPORTED, "first", "second", command=[PACK, m, "-o", c.path("p.uir")])
        expect("third" not in done.err, "a node with a kernel is named", done)
        only_in(c, "unique.onnx")


def test_wrong_usage():
    with Case() as c:
        for words, arguments in ((["no model"], []), (["no-nativ", "did you mean --no-native"], [c.model, "--no-nativ"]),
                                 (["did you mean cpu"], [c.model, "--device", "cpi"]), (["--output"], [c.model, "-o"]),
                                 (["toaster"], [c.model, "--device", "cpu,toaster"]), (["''"], [c.model, "--device", ""]),
                                 (["at most"], [c.model, "--device", ",".join(["cpu"] * 17)]),
                                 (["one model"], [c.model, c.model]), (["no value"], [c.model, "--no-native=1"])):
            fails(USAGE, *words, command=[PACK, *arguments])
        done = run(PACK, c.model, "--device", "cpu:nosuch")
        expect(done.returncode in (USAGE, UNSUPPORTED) and "nosuch" in done.err, "a variant that is none", done)
        only_in(c)
        for option in ("--help", "-h", "--version"):
            done = run(PACK, option)
            expect(done.returncode == RAN and done.out and not done.stderr and is_clean(done.stdout), option, done)


def test_data_that_lies_elsewhere():
    """--external-data: what the model's file leaves out is found there, and is in the package."""
    with Case() as c:
        m = os.path.join(c.path("m"), "model.onnx")
        os.makedirs(c.path("m")), os.makedirs(c.path("weights"))
        save(external_model("w.bin"), m)
        with open(os.path.join(c.path("weights"), "w.bin"), "wb") as f:
            f.write(product_model().graph.initializer[0].raw_data)
        made = [PACK, m, "-o", c.path("m.uir"), "--no-native"]
        fails(BAD_FILE, "w.bin", command=made)
        fails(BAD_FILE, "w.bin", command=[*made, "--external-data", c.path("m")])
        done = run(*made, "--external-data", c.path("weights"))
        expect(done.returncode == RAN, "data in the folder that is named", done)
        shutil.rmtree(c.path("weights"))
        write_set(c.path("data"), c.x, c.y)
        done = run(RUN_PACKAGE, c.path("m.uir"), "--data", c.path("data"))
        expect(done.returncode == RAN and "agrees" in done.out, "the package without the data", done)


def test_bad_models_and_places():
    with Case() as c:
        fails(BAD_FILE, "nosuch", command=[PACK, c.path("nosuch.onnx")])
        fails(BAD_FILE, command=[PACK, c.write("bad.onnx", b"\xff" * 100)])
        fails(BAD_FILE, command=[PACK, c.path()])
        fails(UNSUPPORTED, "Frobnicate", command=[PACK, save(make_model(
            [helper.make_node("Frobnicate", ["x"], ["y"])], [value("x", [1])], [value("y", None)]), c.path("op.onnx"))])
        os.unlink(c.path("bad.onnx")), os.unlink(c.path("op.onnx"))
        os.mkdir(c.path("folder"))
        for place in (c.path("none", "p.uir"), c.path("folder"), "/dev/full", "/proc/p.uir"):
            fails(FAILED, place, command=[PACK, c.model, "--no-native", "-o", place])
        only_in(c, "folder")


def test_an_old_package_survives_a_failure():
    with Case() as c:
        p = packed(c, "--no-native")
        before = read(p)
        fails(FAILED, command=[PACK, c.model, "-o", p], env={"CC": "/bin/false"})
        expect(read(p) == before, "the package that was there")
        only_in(c, "model.uir")


def test_signals():
    with Case() as c, tempfile.TemporaryDirectory() as plain:  # CC is split at blanks
        slow = os.path.join(plain, "slow")
        with open(slow, "w") as f:
            f.write(f"#!/bin/sh\ntouch {plain}/began\nexec sleep 60\n")
        os.chmod(slow, 0o755)
        os.mkdir(c.path("tmp"))
        for number in (signal.SIGINT, signal.SIGTERM):
            p = subprocess.Popen([PACK, c.model, "-o", c.path("p.uir")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=dict(os.environ, CC=slow, TMPDIR=c.path("tmp")))
            deadline = time.time() + 20
            while not os.path.exists(plain + "/began") and p.poll() is None and time.time() < deadline:
                time.sleep(0.02)
            expect(os.path.exists(plain + "/began"), "the compiler was not started")
            os.remove(plain + "/began")
            start = time.time()
            p.send_signal(number)
            p.communicate(timeout=30)
            expect(p.returncode == 128 + number, f"exit {p.returncode} after signal {number}")
            expect(time.time() - start < 5, "it went on")
            expect(not os.listdir(c.path("tmp")), "something is left in the temporary folder")
        only_in(c, "tmp")


# ---- packages that are not what they were ----
def test_a_newer_version():
    with Case() as c:
        data = bytearray(read(packed(c, "--no-native")))
        ours = data[8]
        data[8] += 9
        p = c.write("new.uir", bytes(data))
        for program in (RUN, RUN_PACKAGE):
            fails(BAD_FILE, f"version {ours + 9}", f"versions {ours} and {ours + 1}", command=[program, p])


def test_damaged_weights_are_said_first():
    with Case() as c:
        weights = np.random.default_rng(2).standard_normal((3, 4)).astype(np.float32)
        c.model = save(make_model([helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", ["batch", 3])], [value("y", None)],
                                  [numpy_helper.from_array(weights, "w")]), c.path("model.onnx"))
        data = bytearray(read(packed(c, "--no-native")))
        at = data.find(weights[1, 2].tobytes())
        expect(at > 0, "where the weights lie")
        data[at + 1] ^= 4
        p = c.write("p.uir", bytes(data))
        for program in (RUN, RUN_PACKAGE):
            for more in ([], ["--data", write_set(c.path("data"), c.x, c.y)], ["--dim", "batch=2"]):
                done = fails(BAD_FILE, "damaged", command=[program, p, *more])
                expect("damaged" in done.err.splitlines()[0], "something else is said first", done)


def test_damaged_packages():
    with Case() as c:
        whole = read(packed(c))
        numbers = random.Random(4)
        for program in (RUN, RUN_PACKAGE):
            for _ in range(40):
                data = bytearray(whole)
                data[numbers.randrange(8, len(data))] ^= 1 << numbers.randrange(8)
                fails(BAD_FILE, "package", command=[program, c.write("p.uir", bytes(data)), "--trusted"])
            for length in (8, 9, 31, 32, 100, len(whole) // 2, len(whole) - 1):
                fails(BAD_FILE, command=[program, c.write("p.uir", whole[:length])])
            fails(BAD_FILE, command=[program, c.write("p.uir", whole + b"x")])


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
