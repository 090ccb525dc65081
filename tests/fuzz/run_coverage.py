#!/usr/bin/env python3
"""Lines that the guided targets' corpora reach, by file: `run_coverage.py [--build FOLDER] [PREFIX...]`. Builds the
targets with clang's coverage in build/coverage, runs each on what run_targets.py kept and began with, and prints the
files of the given prefixes (default: what reads what comes from outside).

Out: a line a file, then `N passed, M failed, S skipped`: a file passes with over 90 % of its lines.
"""
import json
import os
import shutil
import subprocess
import sys

from run_targets import BUILD, TARGETS

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import ROOT, Suite, make_parser  # noqa: E402

WANTED = 90
READERS = ["frontend/", "package/", "runtime/verify", "backends/vm/load.c",
           "api/npy.c", "api/zip.c", "api/image.c", "image/", "ir/graph/graph_parse.c", "ir/graph/graph_verify.c",
           "ir/graph/graph_print.c", "ir/loop_parse", "ir/loop/loop_verify.c", "ir/loop/loop_print.c", "ir/kernel/igraph_parse",
           "ir/kernel/verify/igraph_verify", "ir/kernel/igraph_print.c", "base/tokenizer.c"]


def build(folder):
    flags = "-DCMAKE_C_FLAGS=-O1 -fprofile-instr-generate -fcoverage-mapping"
    kind = ["-DCMAKE_BUILD_TYPE=None", "-DCMAKE_C_COMPILER=clang", flags]
    for command in (["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *kind],
                    ["cmake", "--build", folder, "--target", "fuzz_targets"]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit("\n".join((done.stdout + done.stderr).splitlines()[-30:]))


def measure(folder):
    """(file, lines covered, lines) of every file."""
    programs, profiles = [], []
    for target in TARGETS:
        program, profile = os.path.join(folder, "bin", "fuzz_target_" + target), os.path.join(folder, target + ".profraw")
        given = [os.path.join(BUILD, kind, target) for kind in ("seeds", "corpus")]
        given.append(os.path.join(ROOT, "tests", "fuzz", "found", target))
        done = subprocess.run([program, *(g for g in given if os.path.isdir(g))], capture_output=True, text=True,
                              errors="replace", env=dict(os.environ, LLVM_PROFILE_FILE=profile))
        if done.returncode != 0:
            print(f"{target}: ended with {done.returncode}: {done.stderr[-300:]}")
        if os.path.exists(profile):
            programs.append(program)
            profiles.append(profile)
    merged = os.path.join(folder, "merged.profdata")
    subprocess.run(["llvm-profdata", "merge", "-sparse", *profiles, "-o", merged], check=True)
    objects = [word for program in programs[1:] for word in ("-object", program)]
    said = subprocess.run(["llvm-cov", "export", "-summary-only", "-instr-profile", merged, programs[0], *objects],
                          check=True, capture_output=True, text=True).stdout
    for file in json.loads(said)["data"][0]["files"]:
        lines = file["summary"]["lines"]
        yield os.path.relpath(file["filename"], ROOT), lines["covered"], lines["count"]


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "coverage"))
    parser.add_argument("prefixes", nargs="*", metavar="PREFIX")
    chosen = parser.parse_args()
    missing = [p for p in ("clang", "llvm-cov", "llvm-profdata") if not shutil.which(p)]
    suite = Suite()
    if missing:
        suite.skip(f"{', '.join(missing)} not installed")
        return suite.end()
    build(os.path.abspath(chosen.build))
    for path, covered, count in sorted(measure(os.path.abspath(chosen.build))):
        if count and path.endswith(".c") and path.startswith(tuple(chosen.prefixes or READERS)):
            share = 100 * covered / count
            suite.add(share > WANTED, share <= WANTED)
            print(f"{share:5.1f} %  {covered:5} of {count:5}  {path}")
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
