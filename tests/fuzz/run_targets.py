#!/usr/bin/env python3
"""The guided fuzz targets by libFuzzer: `run_targets.py [--minutes N | --runs N] [--memory] [--jobs J] [TARGET...]`.
Builds the preset `fuzz`, or with --memory `msan`, the memory sanitizer's; makes the seeds, and runs each target for N
minutes (default: 1; all targets) or on N inputs, J at a time. What is learned stays in the preset's build folder, in
corpus/TARGET; what is found lies in found/TARGET.

In: the programs in $UIR_BIN. Out: for each target a line, for each file that was found one with what reproduces it;
then `N passed, M failed, S skipped`.
"""
import concurrent.futures
import glob
import math
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import ROOT, Suite, make_parser  # noqa: E402

BUILD = os.path.join(ROOT, "build", "fuzz")
TARGETS = sorted(os.path.basename(p)[7:-2] for p in glob.glob(os.path.join(ROOT, "tests", "fuzz", "target_*.c")))
MOST_FOUND = 20  # of a target: then something is so near that nothing else is seen
# With comparisons traced, under the sanitizers, a second of the verifier is some forty, and other work adds to that.
OPTIONS = ["-timeout=100", "-report_slow_units=60", "-rss_limit_mb=3072", "-max_len=8192", "-print_final_stats=1",
           "-reload=0", "-verbosity=1"]


def run_target(target, preset, minutes, runs):
    """Files that were found and lines to say. A target that ends early, because it has found something, goes on."""
    build = os.path.join("build", preset)
    corpus, found = (os.path.join(ROOT, build, kind, target) for kind in ("corpus", "found"))
    program = os.path.join(build, "bin", "fuzz_target_" + target)
    for folder in (corpus, found):
        os.makedirs(folder, exist_ok=True)
    before, end = set(os.listdir(found)), time.monotonic() + 60 * minutes
    executed = covered = good = 0
    environment = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1", UBSAN_OPTIONS="print_stacktrace=1",
                       MSAN_OPTIONS="intercept_memcmp=0")  # libpng compares what the sanitizer has not seen it write
    while time.monotonic() < end and executed < runs and len(set(os.listdir(found)) - before) < MOST_FOUND:
        given = [os.path.join(BUILD, "seeds", target), os.path.join(ROOT, "tests", "fuzz", "found", target)]
        left = max(1, int(min(end - time.monotonic(), 1e6)))
        how_long = f"-max_total_time={left}" if runs == math.inf else f"-runs={runs - executed}"
        command = [program, *OPTIONS, how_long, f"-artifact_prefix={found}/", corpus,
                   *(folder for folder in given if os.path.isdir(folder))]
        with open(os.path.join(found, "..", target + ".log"), "w+", encoding="utf-8", errors="replace") as log:
            code = subprocess.run(command, cwd=ROOT, stdout=log, stderr=log, env=environment).returncode
            log.seek(0)
            said = log.read()
        executed += int((re.findall(r"number_of_executed_units: (\d+)", said) or ["0"])[-1])
        good += int((re.findall(r"fuzz target: (\d+) of \d+ inputs were well formed", said) or ["0"])[-1])
        covered = int((re.findall(r"cov: (\d+)", said) or ["0"])[-1])
        if code == 0:
            break
        if not set(os.listdir(found)) - before:
            return ["?"], [f"{target}: ended with {code}, see {log.name}"]
    new = sorted(set(os.listdir(found)) - before)
    lines = [f"{target}: {executed} runs, {good} of well-formed inputs, {covered} edges, "
             f"{len(os.listdir(corpus))} inputs kept, {len(new)} found"]
    return new, lines + [f"  {program} {build}/found/{target}/{name}" for name in new]


def main():
    parser = make_parser(__doc__, jobs=max(1, (os.cpu_count() or 1) - 1))
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, default=1)
    length.add_argument("--runs", type=int, help="inputs, in place of minutes")
    parser.add_argument("--memory", action="store_const", const="msan", default="fuzz", dest="preset",
                        help="under the memory sanitizer")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    chosen = parser.parse_args()
    unknown = [t for t in chosen.targets if t not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]}; there are: {', '.join(TARGETS)}")
    targets, suite = chosen.targets or TARGETS, Suite()
    if not shutil.which("clang"):
        suite.skip("clang is not installed", len(targets))
        return suite.end()
    for command in (["cmake", "--preset", chosen.preset], ["cmake", "--build", "--preset", chosen.preset],
                    [sys.executable, "-B", os.path.join("tests", "fuzz", "make_seeds.py"), os.path.join(BUILD, "seeds")]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit("\n".join((done.stdout + done.stderr).splitlines()[-30:]))
    minutes = math.inf if chosen.runs else chosen.minutes
    with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
        for found, lines in pool.map(lambda t: run_target(t, chosen.preset, minutes, chosen.runs or math.inf), targets):
            print("\n".join(lines), flush=True)
            suite.add(not found, bool(found))
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
