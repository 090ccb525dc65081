#!/usr/bin/env python3
"""Builds of the runtime alone (UIR_RUNTIME_ONLY): for this machine with nothing of protobuf, cJSON or pkg-config in reach,
and for aarch64 by the toolchain file, run under qemu. What they make runs packages to the same bits as this build.

In: the build beside $UIR_BIN. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import os
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import suite  # noqa: E402
from suite import BIN, DIGITS, ROOT, Lacking, run_tests  # noqa: E402

DATA = os.path.join(os.path.dirname(DIGITS), "test_data_set_0")
ALLOWED = r"libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux[-\w]*\.so\.\d"
CROSS, QEMU = "aarch64-linux-gnu-gcc", "qemu-aarch64"


def run(*command, code=0, **options):
    done = suite.run(*command, timeout=900, **options)
    if done.returncode != code:
        raise AssertionError(f"{command}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout + done.stderr


def build(folder, *options):
    """The folder of the programs of a build with warnings as errors; not optimised but with `script/test --long`, which
    takes half the time."""
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", folder, "-DUIR_RUNTIME_ONLY=ON", "-DUIR_WERROR=ON",
        "-DPKG_CONFIG_EXECUTABLE=/nonexistent", "-DPROTOC_C=/nonexistent", "-DUIR_ONNX_PROTO=",
        "-DCMAKE_BUILD_TYPE=" + ("Release" if os.environ.get("UIR_TIER") == "long" else "None"), *options)
    run("cmake", "--build", folder)
    programs = os.listdir(os.path.join(folder, "bin"))
    assert programs == ["uir-run-package"], programs
    libraries = {f.split(".")[0] for f in os.listdir(os.path.join(folder, "lib", "public"))}
    assert libraries == {"libuir_rt"}, libraries
    for file in ("bin/uir-run-package", "lib/public/libuir_rt.so"):
        needed = re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", os.path.join(folder, file)))
        assert needed and all(re.fullmatch(ALLOWED, n) for n in needed), f"{file} needs {needed}"
    return os.path.join(folder, "bin", "uir-run-package")


def outputs(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".pb"):
            with open(os.path.join(folder, name), "rb") as f:
                found[name] = f.read()
    assert found
    return found


def check_runs(scratch, program, device, way=()):
    """The package by native code and by the VM, beside this build's own answer."""
    package, expected = os.path.join(scratch, "digits.uir"), os.path.join(scratch, "expected")
    run(os.path.join(BIN, "uir-pack"), DIGITS, "-o", package, "--device", device)
    run(os.path.join(BIN, "uir-run-package"), package, "--data", DATA, "--save", expected)
    for number, options in enumerate((["--trusted", "--no-vm"], ["--device", "vm"])):
        folder = os.path.join(scratch, f"got{number}")
        said = run(*way, program, package, "--data", DATA, "--save", folder, *options)
        assert "agrees" in said and "by " + ("cpu", "vm")[number] in said, said
        assert outputs(folder) == outputs(expected), f"other bits with {options}"
    for option in ("--json", "--trace=t"):
        said = run(*way, program, package, option, code=4)
        assert "built without cJSON" in said, said
    said = run(*way, program, "--help")
    assert "--trusted" in said and "--json" not in said, said


def test_this_machine():
    with tempfile.TemporaryDirectory(prefix="uir runtime ") as scratch:
        check_runs(scratch, build(os.path.join(scratch, "build")), "cpu")


def test_aarch64():
    lacking = [c for c in (CROSS, QEMU) if not shutil.which(c)]
    if lacking:
        raise Lacking(f"{', '.join(lacking)} not installed")
    toolchain = os.path.join(ROOT, "cmake", "toolchains", "aarch64-linux-gnu.cmake")
    with tempfile.TemporaryDirectory(prefix="uir runtime ") as scratch:
        program = build(os.path.join(scratch, "build"), "-DCMAKE_TOOLCHAIN_FILE=" + toolchain)
        assert "AArch64" in run("readelf", "-h", program)
        check_runs(scratch, program, "cpu:aarch64", (QEMU, "-L", "/usr/aarch64-linux-gnu"))


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
