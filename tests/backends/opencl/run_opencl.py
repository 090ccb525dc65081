#!/usr/bin/env python3
"""The programs on an OpenCL device of the system, as PoCL: chips, packages, folders of sources, messages, --check.

In: the programs in $UIR_BIN, the project's own model. Out: a line per failure, then `N passed, M failed, S skipped`;
without an OpenCL device all is skipped.
"""
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
from cli import DIFFERS, DIGITS, FAILED, PACK, RAN, RUN, RUN_PACKAGE, USAGE, Lacking, expect, run, run_tests  # noqa: E402

DATA = ["--data", os.path.join(os.path.dirname(DIGITS), "test_data_set_0")]
POCL = tempfile.TemporaryDirectory(prefix="uir-opencl-pocl-")
os.environ["POCL_CACHE_DIR"] = POCL.name


@contextlib.contextmanager
def folder():
    """A folder of the test's own, where there is a device."""
    if not has_device():
        raise Lacking("needs opencl: a device that the OpenCL library finds")
    with tempfile.TemporaryDirectory(prefix="uir-opencl-") as path:
        yield path


def has_device():
    listed = run(RUN, "--list-devices")
    return re.search(r"^opencl\n  chips: gpu, cpu$", listed.out, re.M) is not None


def join(*parts):
    return os.path.join(*parts)


def test_chips():
    """Each chip on any device, by the device's choice, its number, or both."""
    with folder():
        for name in ("opencl", "opencl:gpu", "opencl:cpu", "opencl:0", "opencl:cpu:0"):
            done = run(RUN, DIGITS, "--device", name, "--no-fallback", "--no-cache", *DATA)
            expect(done.returncode == RAN and "by opencl" in done.out, f"{name} runs the model", done)


def test_unknown_names():
    with folder():
        for name, words in (("opencl:fast", "gpu or cpu"), ("opencl:gpu:x", "gpu or cpu"), ("opencl:63", "counted from 0")):
            done = run(RUN, DIGITS, "--device", name, *DATA)
            expect(done.returncode == USAGE and words in done.err, f"{name} is refused", done)


def test_no_device():
    """No device, a driver that is not there, and libraries that are not OpenCL's: said, and nothing runs elsewhere."""
    with folder() as c:
        os.makedirs(join(c, "none"))
        os.makedirs(join(c, "wrong"))
        with open(join(c, "wrong", "broken.icd"), "w") as f:
            f.write("/no/such/driver.so\n")
        for place in ("none", "wrong"):
            changes = {"OCL_ICD_VENDORS": join(c, place)}
            done = run(RUN, DIGITS, "--device", "opencl:gpu", *DATA, env=changes)
            expect(done.returncode == FAILED and "finds no device" in done.err, f"{place}: refused", done)
            listed = run(RUN, "--list-devices", env=changes)
            expect("opencl: its driver finds no device" in listed.out.split("not there:")[1], f"{place}: listed", listed)
        library = subprocess.run(["sh", "-c", "ldconfig -p | sed -n 's/.*libm.so.6 .*=> //p' | head -1"], capture_output=True,
                                 text=True).stdout.strip()
        os.makedirs(join(c, "other"))
        if not library:
            raise Lacking("needs a library that is not OpenCL's")
        shutil.copy(library, join(c, "other", "libOpenCL.so.1"))
        done = run(RUN, DIGITS, "--device", "opencl", *DATA, env={"LD_LIBRARY_PATH": join(c, "other")})
        expect(done.returncode == FAILED and "lacks the function clGetPlatformIDs" in done.err, "another library", done)


def test_sources():
    """The program is written, edited, read again; another chip's, and an edited one, are told apart."""
    with folder() as c:
        gpu = [RUN, DIGITS, "--device", "opencl:gpu", *DATA]
        place, program = join(c, "k"), join(c, "k", "kernels.cl")
        done = run(*gpu, "--dump-source", place)
        expect(done.returncode == RAN and sorted(os.listdir(place)) == ["kernels.cl", "kernels.txt"], "written", done)
        with open(program) as f:
            text = f.read()
        done = run(*gpu, "--source", place)
        expect(done.returncode == RAN, "read", done)
        done = run(*gpu, "--dump-source", place)
        expect(done.returncode == RAN, "written over what was not edited", done)
        with open(program, "a") as f:
            f.write("\n// edited\n")
        done = run(*gpu, "--source", place)
        expect(done.returncode == RAN, "an edited program", done)
        done = run(*gpu, "--dump-source", place)
        expect(done.returncode == USAGE and "was edited" in done.err, "an edited program is kept", done)
        done = run(*gpu, "--dump-source", place, "--force")
        with open(program) as f:
            expect(done.returncode == RAN and f.read() == text, "written over by force", done)
        done = run(RUN, DIGITS, "--device", "opencl:cpu", *DATA, "--source", place)
        expect(done.returncode == USAGE and "another model or chip" in done.err, "another chip's", done)
        name = re.search(r"\b(k\d+_\w+)_phase0\(", text)
        expect(name, "kernels are named after their groups")
        at = text.index("{", name.end())
        with open(program, "w") as f:
            f.write(text[:at + 1] + " nowhere_to_be_found = 1; " + text[at + 1:])
        done = run(*gpu, "--source", place)
        expect(done.returncode == FAILED and name[1] in done.err and "nowhere_to_be_found" in done.err, "a fault", done)
        os.remove(program)
        done = run(*gpu, "--source", place)
        expect(done.returncode != RAN and "holds no kernels.cl" in done.err, "without its program", done)


def test_packages():
    """A package runs on devices of its chip, trusted only."""
    with folder() as c:
        package = join(c, "p.uir")
        done = run(PACK, DIGITS, "-o", package, "--device", "opencl:gpu")
        expect(done.returncode == RAN, "packed", done)
        for name in ("opencl", "opencl:gpu", "opencl:gpu:0"):
            done = run(RUN_PACKAGE, package, "--device", name, "--trusted", *DATA)
            expect(done.returncode == RAN and "by opencl" in done.out, f"{name} runs the package", done)
        for words, said in ((["--device", "opencl:gpu"], "not trusted"), (["--device", "opencl:cpu", "--trusted"], "chip gpu"),
                            (["--trusted"], "is for device opencl"), (["--device", "vm"], "is for device opencl")):
            done = run(RUN_PACKAGE, package, *words, *DATA)
            expect(done.returncode == FAILED and said in done.err, f"{words}: refused", done)
        done = run(PACK, DIGITS, "-o", package, "--device", "opencl", env={"OCL_ICD_VENDORS": c})
        expect(done.returncode == RAN, "packed for gpu, where no device says what it is", done)
        done = run(RUN_PACKAGE, package, "--device", "opencl:gpu", "--trusted", *DATA)
        expect(done.returncode == RAN, "and runs", done)


def test_second_start():
    """Nothing is built again where the cache has it."""
    with folder() as c:
        for origin in ("its source", "the cache", "the cache"):
            with tempfile.TemporaryDirectory() as pocl:
                done = run(RUN, DIGITS, "--device", "opencl:gpu", "--explain", "--cache", join(c, "cache"), *DATA,
                           env={"POCL_CACHE_DIR": pocl})
            expect(done.returncode == RAN and f"the device's code was made of {origin}\n" in done.out, origin, done)


def test_check():
    """The device's kernels, each alone, have the VM's bits."""
    with folder():
        for chip in ("gpu", "cpu"):
            done = run(RUN, DIGITS, "--device", f"opencl:{chip}", "--check", *DATA, timeout=400)
            expect(done.returncode == RAN and re.search(rf"^check opencl:{chip} +[1-9]\d* agree", done.out, re.M), chip, done)


def test_check_sources():
    """The kernels of a folder are checked, and one that writes beside its memory is found."""
    with folder() as c:
        place, program = join(c, "k"), join(c, "k", "kernels.cl")
        command = [RUN, DIGITS, "--device", "opencl:cpu", "--no-cache", *DATA]
        done = run(*command, "--dump-source", place)
        expect(done.returncode == RAN, "written", done)
        done = run(*command, "--check", "--source", place)
        expect(done.returncode == RAN and re.search(r"^check opencl:cpu +[1-9]\d* agree", done.out, re.M), "as written", done)
        with open(program) as f:
            text = f.read()
        for pattern, change, said in ((r"(k1_pad_phase0(?s:.*?)flat <)( end)", r"\1=\2", "has written behind the memory of %y0"),
                                      (r"v_mul_f32\(t3, v_set_f32\(0.003921569f\)\)", "t3", "result 0: element")):
            edited, count = re.subn(pattern, change, text, count=1)
            expect(count == 1, f"the program has {pattern}")
            with open(program, "w") as f:
                f.write(edited)
            done = run(*command, "--check", "--source", place)
            expect(done.returncode == DIFFERS and "stage opencl:cpu differs" in done.err and said in done.err, change, done)
        done = run(RUN, DIGITS, "--device", "interpreter", "--check", "--source", place, *DATA)
        expect(done.returncode == USAGE, "a device that builds no sources", done)


if __name__ == "__main__":
    sys.exit(run_tests(globals()))
