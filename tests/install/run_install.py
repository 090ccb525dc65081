#!/usr/bin/env python3
"""What `cmake --install` leaves: the examples build against that tree alone, by pkg-config as C11 and as C++17 and by the
CMake package, also after it was moved, and run; the libraries export the public names and no others; both headers are
C11 and C++17, and programs of an older header run.

In: the build beside $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import suite  # noqa: E402
from suite import BIN, DIGITS, ROOT, run_tests  # noqa: E402

BUILD = os.path.dirname(os.path.abspath(BIN))
PICTURES = os.path.join(os.path.dirname(DIGITS), "pictures")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
LIBRARIES = {"uir": "the whole", "uir_rt": "the runtime"}


def run(*command, code=0, **options):
    done = suite.run(*command, timeout=600, **options)
    if done.returncode != code:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Installed:
    """The tree, installed elsewhere and then moved: nothing may remember the first place."""

    def __enter__(self):
        self.kept = tempfile.TemporaryDirectory(prefix="uir install ")
        first, self.prefix = os.path.join(self.kept.name, "first"), os.path.join(self.kept.name, "prefix")
        run("cmake", "--install", BUILD, "--prefix", first)
        os.rename(first, self.prefix)
        self.library = os.path.dirname(next(os.path.join(d, f) for d, _, names in os.walk(self.prefix) for f in names
                                            if f == "libuir.so"))
        self.environment = {"PKG_CONFIG_PATH": os.path.join(self.library, "pkgconfig"), "LD_LIBRARY_PATH": self.library}
        return self

    def __exit__(self, *_):
        self.kept.cleanup()

    def flags(self, name, *more):
        # Quoted for a shell, as pkg-config does with spaces.
        import shlex
        return shlex.split(run("pkg-config", "--cflags", "--libs", *more, name, env=self.environment))

    def path(self, *parts):
        return os.path.join(self.kept.name, *parts)


def make_decoder(tree):
    """A decoder of one head: the mean of all embeddings so far, and the token's own, choose the next. And what it says."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save_model
    random = np.random.default_rng(3)
    words, channels, prompt, steps = 50, 8, [3, 1, 4], 9
    table = random.standard_normal((words, channels)).astype(np.float32)
    head = random.standard_normal((channels, words)).astype(np.float32)
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["e"]), helper.make_node("Unsqueeze", ["e", "one"], ["new"]),
             helper.make_node("Concat", ["past.key", "new"], ["present.key"], axis=2),
             helper.make_node("ReduceMean", ["present.key", "two"], ["mean"], keepdims=0),
             helper.make_node("Add", ["mean", "e"], ["h"]), helper.make_node("MatMul", ["h", "head"], ["logits"])]
    values = [("input_ids", TensorProto.INT64, ["batch", "sequence"]), ("past.key", 1, ["batch", 1, "past", channels]),
              ("logits", 1, ["batch", "sequence", words]), ("present.key", 1, ["batch", 1, "past + sequence", channels])]
    values = [helper.make_tensor_value_info(*v) for v in values]
    graph = helper.make_graph(nodes, "decoder", values[:2], values[2:], [
        numpy_helper.from_array(a, n) for a, n in ((table, "table"), (head, "head"), (np.array([1]), "one"), (np.array([2]), "two"))])
    path = tree.path("decoder.onnx")
    save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    tokens = list(prompt)
    for _ in range(steps):
        tokens.append(int(np.argmax((table[tokens].mean(0) + table[tokens[-1]]) @ head)))
    return [path, str(steps), *map(str, prompt)], " ".join(map(str, tokens[len(prompt):]))


def run_examples(tree, digits, buffers, generate=None, on_device=None, model=DIGITS):
    if on_device:
        out = run(on_device, DIGITS, "null:3", "2", env=tree.environment)
        assert out.startswith("0 bytes over the bus, by null\n"), out
    if generate:
        command, said = make_decoder(tree)
        out = run(generate, *command, env=tree.environment)
        assert out.startswith(said + "\n"), f"{out!r} instead of {said}"
    if digits:
        pictures = sorted(os.path.join(PICTURES, p) for p in os.listdir(PICTURES) if p.endswith(".png"))[:2]
        out = run(digits, DIGITS, *pictures, env=tree.environment)
        assert out.count("answer: ") == 2, out
    out = run(buffers, model, "3", env=tree.environment)
    assert "where the caller wants them" in out and "ELSEWHERE" not in out, out


def test_pkg_config(tree):
    for compiler, language in ((["cc", "-std=c11"], "c"), (["c++", "-std=c++17", "-x", "c++"], "c++")):
        programs = []
        for name in ("digits", "buffers", "generate", "on_device"):
            program = tree.path(f"{name}-{language}")
            source = shutil.copy(os.path.join(ROOT, "examples", name + ".c"), tree.kept.name)
            run(*compiler, *WARNINGS, source, "-x", "none", "-o", program, *tree.flags("uir"))
            programs.append(program)
        run_examples(tree, *programs)


def test_cmake_package(tree):
    source = shutil.copytree(os.path.join(ROOT, "examples"), tree.path("examples"))
    build = tree.path("build")
    run("cmake", "-G", "Ninja", "-S", source, "-B", build, "-DCMAKE_PREFIX_PATH=" + tree.prefix)
    run("cmake", "--build", build)
    run_examples(tree, *(os.path.join(build, "uir-" + name) for name in ("digits", "buffers", "generate", "on-device")))
    package = make_package(tree)
    run_examples(tree, os.path.join(build, "uir-digits-uir_static"), os.path.join(build, "uir-buffers"))
    for library in ("uir_rt", "uir_rt_static"):
        program = os.path.join(build, "uir-buffers-" + library)
        run_examples(tree, None, program, model=package)
        assert "protobuf" not in run("ldd", program, env=tree.environment)
        run(program, DIGITS, code=4, env=tree.environment)


def make_package(tree):
    """Of a model of one product, which no digit needs."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "tools"))
    import cli
    model = cli.save(cli.product_model(), tree.path("model.onnx"))
    package = tree.path("model.uir")
    run(os.path.join(tree.prefix, "bin", "uir-pack"), model, "-o", package)
    return package


def test_programs(tree):
    names = os.listdir(os.path.join(tree.prefix, "bin"))
    assert {"uir-run", "uir-pack", "uir-tune", "uir-opt", "uir-run-package"} <= set(names), names
    package = make_package(tree)
    bare = {"LD_LIBRARY_PATH": None, "PATH": "/nonexistent", "CC": "/bin/false"}
    for name in ("uir-run", "uir-run-package"):
        assert "y f32[1,4]" in run(os.path.join(tree.prefix, "bin", name), package, "--trusted", "--no-vm", env=bare)


def read_headers(tree):
    """The names of the functions and of the structures that grow."""
    functions, structures = set(), set()
    for header in ("uir.h", "device.h", "tools.h"):
        with open(os.path.join(tree.prefix, "include", "uir", header), encoding="utf-8") as f:
            text = f.read()
        functions |= set(re.findall(r"^UIR_API [^;]*?\b(uir_\w+)\(", text, re.M))
        structures |= set(re.findall(r"^typedef struct (uir_\w+) {\s*size_t struct_size;", text, re.M))
    assert len(functions) > 40 and len(structures) > 20, (functions, structures)
    return sorted(functions), sorted(structures)


def test_languages(tree):
    functions, structures = read_headers(tree)
    for name, macro, rows in (("functions", "FUNCTION", functions), ("structures", "STRUCTURE", structures)):
        with open(tree.path(name + ".inc"), "w", encoding="utf-8") as f:
            f.writelines(f"{macro}({row})\n" for row in rows)
    source = shutil.copy(os.path.join(ROOT, "tests", "install", "header.c"), tree.kept.name)
    package = make_package(tree)
    for library in LIBRARIES:
        for compiler in (["cc", "-std=c11"], ["c++", "-std=c++17", "-x", "c++"]):
            program = tree.path("header")
            run(*compiler, *WARNINGS, "-I", tree.kept.name, source, "-x", "none", "-o", program, *tree.flags(library))
            out = run(program, DIGITS if library == "uir" else package, env=tree.environment)
            assert out.startswith(f"{len(functions)} functions, {len(structures)} structures\nf32 "), out


def test_older(tree):
    program = tree.path("older")
    run("cc", "-std=c11", *WARNINGS, os.path.join(ROOT, "tests", "install", "older.c"), "-o", program,
        *tree.flags("uir", "--libs"))
    assert run(program, DIGITS, tree.path("older.uir"), env=tree.environment) == "0 failures\n"


def test_libraries(tree):
    public = set(read_headers(tree)[0])
    for name in LIBRARIES:
        path = os.path.join(tree.library, f"lib{name}.so")
        assert re.search(rf"SONAME.*lib{name}\.so\.0\b", run("readelf", "-d", path))
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path))
        assert needed and not [n for n in needed if re.match("libtiff|libwebp|libopenjp2", n)], f"lib{name} loads {needed} with it"
        assert f"lib{name}.a" in os.listdir(tree.library)
        exported = {line.split()[-1] for line in run("nm", "-D", "--defined-only", path).splitlines()}
        assert exported == public, f"lib{name}: exported {exported - public}, missing {public - exported}"
        assert run("pkg-config", "--modversion", name, env=tree.environment).strip() == "0.1.0"
    everything = subprocess.run(["grep", "-rl", ROOT, tree.prefix, "--include=*.pc", "--include=*.cmake", "--include=*.h"],
                                capture_output=True, text=True).stdout
    assert not everything, f"the checkout is named in {everything}"


def test_names_are_defined_once(tree):
    """An archive that has a function twice works by the order of its members, if at all."""
    archives = [f for f in os.listdir(tree.library) if f.endswith(".a")]
    assert set(archives) == {f"lib{name}.a" for name in LIBRARIES}, archives
    for archive in archives:
        said = run("nm", "-g", "--defined-only", os.path.join(tree.library, archive))
        names = collections.Counter(re.findall(r"^[0-9a-f]+ [A-TX-Z] (\w+)$", said, re.M))
        assert len(names) > 300, f"{archive}: {len(names)} names"
        twice = sorted(name for name, count in names.items() if count > 1)
        assert not twice, f"{archive} defines twice: {twice}"


def test_static(tree):
    """A program that loads an ONNX model, or a package: by libuir.a, or libuir_rt.a, in part, whole, and without any shared library."""
    functions, structures = read_headers(tree)
    for name, macro, rows in (("functions", "FUNCTION", functions), ("structures", "STRUCTURE", structures)):
        with open(tree.path(name + ".inc"), "w", encoding="utf-8") as f:
            f.writelines(f"{macro}({row})\n" for row in rows)
    source, package = os.path.join(ROOT, "tests", "install", "header.c"), make_package(tree)
    bare = {"LD_LIBRARY_PATH": None}
    for library in LIBRARIES:
        flags = tree.flags(library, "--static")
        archive = os.path.join(tree.library, f"lib{library}.a")
        rest = [f for f in flags if f != "-l" + library]
        for way in ([archive, *rest], ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", *rest], ["-static", archive, *rest]):
            program = tree.path("static")
            run("cc", "-std=c11", *WARNINGS, "-I", tree.kept.name, source, "-o", program, *way)
            assert "libuir" not in subprocess.run(["ldd", program], capture_output=True, text=True).stdout
            out = run(program, DIGITS if library == "uir" else package, env=bare)
            assert "\nf32 " in out, out


def test_licences(tree):
    for name in ("LICENSE", "THIRD_PARTY.md", "docs/guide.md", "examples/digits.c"):
        assert os.path.isfile(os.path.join(tree.prefix, "share", "doc", "uir", name)), f"{name} is not installed"


def test_script_run_builds_what_is_installed(tree):
    """What `script/run` asks of ninja makes every file of the build that `cmake --install` takes."""
    with open(os.path.join(ROOT, "script", "run"), encoding="utf-8") as f:
        targets = re.search(r'ninja -C "\$build" ([^;#]+);', f.read()).group(1).split()
    made = set(run("ninja", "-C", BUILD, "-t", "inputs", *targets).split("\n"))
    made |= {output for target in targets for output in re.findall(r"^ {4}([^\s|]+)$", run("ninja", "-C", BUILD, "-t", "query", target), re.M)}
    taken = set()
    for folder, folders, files in os.walk(BUILD):
        if "cmake_install.cmake" in files:
            with open(os.path.join(folder, "cmake_install.cmake"), encoding="utf-8") as f:
                taken |= {os.path.relpath(t, BUILD) for t in re.findall(rf'"({re.escape(BUILD)}/(?:bin|lib)/[^"]+)"', f.read())}
    taken = {t for t in taken if os.path.isfile(os.path.join(BUILD, t)) and not os.path.islink(os.path.join(BUILD, t))}
    assert len(taken) > 6, taken
    missing = {t for t in taken if t not in made and not any(m.startswith(t) for m in made)}
    assert not missing, f"script/run does not make {sorted(missing)}"


def check_hardened(path, *more):
    """What the linker does against the use of a fault, as the file has it."""
    said = run("readelf", "-lWd", path)
    stack = re.search(r"GNU_STACK\s+(?:0x\w+\s+){5}(\w+)\s", said)
    assert stack and "E" not in stack.group(1), f"{path}: the stack may be executed\n{said}"
    assert "GNU_RELRO" in said, f"{path}: its tables stay writable\n{said}"
    assert not re.search(r"\bLOAD\s.*\bRWE\b", said), f"{path}: what is written may be executed\n{said}"
    for flag in ("NOW", *more):
        assert re.search(rf"\(FLAGS_1\).*\b{flag}\b", said), f"{path}: no {flag}\n{said}"


def test_hardened(tree):
    for name in LIBRARIES:
        check_hardened(os.path.join(tree.library, f"lib{name}.so"))
    for name in ("uir-run", "uir-pack", "uir-tune", "uir-opt", "uir-run-package"):
        program = os.path.join(tree.prefix, "bin", name)
        check_hardened(program, "PIE")
        # An optimised build's: the stack is watched, and so are the C library's copies.
        names = run("nm", "-D", "--undefined-only", program)
        assert "__stack_chk_fail" in names and re.search(r"__mem\w+_chk", names), f"{program}:\n{names}"


def test_hardened_kernels(tree):
    """The object that a compile makes of a model's kernels."""
    package = make_package(tree)
    with open(package, "rb") as f:
        packed = f.read()
    begin = packed.index(b"\x7fELF")
    with open(tree.path("kernels.so"), "wb") as f:
        f.write(packed[begin:])
    check_hardened(tree.path("kernels.so"))


def main():
    with Installed() as tree:
        return run_tests(globals(), [], tree)


if __name__ == "__main__":
    sys.exit(main())
