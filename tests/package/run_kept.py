#!/usr/bin/env python3
"""Packages of the version before, which are kept: they open, and give the bits that they gave then.

In: the folders of tests/package/kept, each with a package, its model, and a data set with the results of the library that
made it; the programs in $UIR_BIN. A package without a device is still written in that version. Packages of other versions
are refused. Out: a line per failure, then `N passed, M failed, S skipped`.
"""
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import Suite, run  # noqa: E402

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kept")
VERSION_AT = 8  # the package's version, in its header
suite = Suite()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def check_runs(folder, scratch):
    """The same bits by both programs, and on a device whose packages have a later version."""
    package, data = os.path.join(folder, "model.uir"), os.path.join(folder, "test_data_set_0")
    expected = {os.path.basename(path): read(path) for path in glob.glob(os.path.join(data, "output_*.pb"))}
    for program, device in (("uir-run", "vm"), ("uir-run-package", "vm"), ("uir-run", "cpu"), ("uir-run", "null:5")):
        out = os.path.join(scratch, program + device.replace(":", "_"))
        done = run(program, package, "--device", device, "--data", data, "--save", out, "--quiet")
        found = {os.path.basename(path): read(path) for path in glob.glob(os.path.join(out, "*.pb"))}
        suite.tell(done.returncode == 0 and found == expected and expected,
                   f"{package} by {program} on {device}: exit {done.returncode}, {done.stderr}")


def read_version(path, *words):
    done = run("uir-run", path, "--info", "--json", *words)
    return json.loads(done.stdout)["package"]["version"] if done.returncode == 0 else done.stderr


def check_writes(folder, version, scratch):
    """The model is packed in the same version without a device, in the next one for a device."""
    model, package = os.path.join(folder, "model.onnx"), os.path.join(scratch, "again.uir")
    suite.tell(read_version(os.path.join(folder, "model.uir")) == version, f"{folder} is not of version {version}")
    run("uir-pack", model, "-o", package, "--device", "vm", "--quiet")
    suite.tell(read_version(package) == version, f"a package for the VM is of version {read_version(package)}")
    run("uir-pack", model, "-o", package, "--device", "null", "--quiet")
    made = read_version(package, "--device", "null")
    suite.tell(made == version + 1, f"a package for null is of version {made}")


def check_others(folder, version, scratch):
    package = bytearray(read(os.path.join(folder, "model.uir")))
    for other in (version - 1, version + 2):
        path = os.path.join(scratch, f"version_{other}.uir")
        package[VERSION_AT] = other
        with open(path, "wb") as f:
            f.write(package)
        for program in ("uir-run", "uir-run-package"):
            done = run(program, path, "--quiet")
            suite.tell(done.returncode == 3 and f"a package of version {other}" in done.stderr and
                       f"reads versions {version} and {version + 1}" in done.stderr and "pack the model again" in done.stderr,
                       f"version {other} by {program}: exit {done.returncode}, {done.stderr}")


def main():
    for folder in sorted(glob.glob(os.path.join(KEPT, "version_*"))):
        with tempfile.TemporaryDirectory(prefix="uir-kept-") as scratch:
            version = int(folder.rsplit("_", 1)[1])
            check_runs(folder, scratch)
            check_writes(folder, version, scratch)
            check_others(folder, version, scratch)
    sys.exit(suite.end())


if __name__ == "__main__":
    main()
