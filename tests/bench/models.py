#!/usr/bin/env python3
"""Times whole models beside ONNX Runtime or OpenVINO, the two taking turns in one run, and compares what they give.

    models.py [NAME...] [--threads 1,2] [--seconds 2] [--rounds 7] [--models DIR] [--bin DIR] [--all-sets] [--cpu-time] [--json FILE]
              [--peer onnxruntime|openvino] [--peak]

In: models of $UIR_MODELS_BUILT (else build/models) with their data sets, uir-bench-model in $UIR_BIN. Of each model the smallest
and the largest data set by the bytes of its inputs. Each engine has a process of its own that stays open, with its inputs bound,
so that no start is in a time; while one runs, the other waits. A peer has its default options but for the threads, and OpenVINO
the precision f32, as ONNX Runtime has; it is no part of what the project installs: `build/venv/bin/python -m pip install openvino`.
With --peak the threads' multiply-adds take a turn, too, as many as the model has, and the row says what share of them ours reached.
With --cpu-time the time is the processor time of the process: what one thread takes, also where other processes take the machine.
Out: a row per data set and number of threads: the median time of a run of both, the ratio (theirs / ours: above 1 ours is
faster), the peak of anonymous memory that opening the model and a first run of the set added to the process (ours with compiled
kernels in the cache). Then the geometric mean and the worst ratio. Exit 1 where outputs differ or a model does not run.
"""
import argparse
import glob
import json
import math
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN, MODELS as BUILT_MODELS, ROOT  # noqa: E402

MODELS = ("digits minilm_l6 bert_base gpt2_kv llama_160m llama_tiny_op23 whisper_tiny_encoder whisper_tiny_decoder "
          "lstm_classifier gru_seq dlrm mlp_mixer deit_tiny swin_tiny").split()
PEER_OPTION = "--peer-process"
LIMIT_S = 600
WATCH_S = 0.002
DEFAULT_TOLERANCE = {"rtol": 1e-3, "atol_relative_to_max": 1e-5}


class Failed(Exception):
    pass


# ---- the peers' process: the same lines as uir-bench-model ----
def read_values(folder, count):
    from onnx import load_tensor, numpy_helper
    return [numpy_helper.to_array(load_tensor(os.path.join(folder, f"input_{i}.pb"))) for i in range(count)]


def save_values(named, folder):
    from onnx import numpy_helper
    for i, (name, array) in enumerate(named):
        with open(os.path.join(folder, f"output_{i}.pb"), "wb") as f:
            f.write(numpy_helper.from_array(array, name).SerializeToString())


class OnnxRuntime:
    def __init__(self, threads):
        import onnxruntime
        self.module, self.threads = onnxruntime, threads

    def open(self, model):
        options = self.module.SessionOptions()
        options.intra_op_num_threads = self.threads
        self.session = self.module.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def bind(self, folder):
        self.binding = self.session.io_binding()
        ports = self.session.get_inputs()
        for port, array in zip(ports, read_values(folder, len(ports))):
            self.binding.bind_ortvalue_input(port.name, self.module.OrtValue.ortvalue_from_numpy(array))
        for port in self.session.get_outputs():
            self.binding.bind_output(port.name)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def outputs(self):
        return [(port.name, value.numpy()) for port, value in zip(self.session.get_outputs(), self.binding.get_outputs())]


class OpenVino:
    def __init__(self, threads):
        import openvino
        self.module = openvino
        self.options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}

    def open(self, model):
        self.request = self.module.Core().compile_model(model, "CPU", self.options).create_infer_request()

    def bind(self, folder):
        for i, array in enumerate(read_values(folder, len(self.request.model_inputs))):
            self.request.set_input_tensor(i, self.module.Tensor(array))

    def run(self):
        self.request.infer()

    def outputs(self):
        ports = self.request.model_outputs
        return [(port.any_name, self.request.get_output_tensor(i).data.copy()) for i, port in enumerate(ports)]


PEERS = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}


def time_run(peer, clock):
    start = clock()
    peer.run()
    return (clock() - start) * 1e3


def serve_peer(name, model, threads, clock):
    import onnx  # noqa: F401 before "ready", so that its memory is not the model's
    try:
        peer = PEERS[name](threads)
    except ImportError as e:
        print("error", e, flush=True)
        return
    print("ok ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    peer.open(model)
    print("ok", (time.perf_counter() - start) * 1e3, flush=True)
    for line in sys.stdin:
        word, _, argument = line.rstrip("\n").partition(" ")
        if word == "data":
            peer.bind(argument)
            print("ok", time_run(peer, clock), flush=True)
        elif word == "save":
            save_values(peer.outputs(), argument)
            print("ok", flush=True)
        else:
            times, end = [], time.perf_counter() + float(argument)
            while not times or time.perf_counter() < end:
                times.append(time_run(peer, clock))
            print("ok", *times, flush=True)


# ---- the side that asks ----
def anonymous_bytes(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            for line in f:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


class Engine:
    """A process that answers lines. `peak` is the most anonymous memory seen while a watched answer was awaited."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.peak = self.base = 0

    def wait(self, watched=False):
        end, answer = time.monotonic() + LIMIT_S, b""
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], WATCH_S if watched else 1)
            if watched:
                self.peak = max(self.peak, anonymous_bytes(self.process.pid))
            part = os.read(self.process.stdout.fileno(), 1 << 20) if ready else None
            if part == b"":
                raise Failed("its process ended" + (f": {answer.decode().strip()}" if answer else ""))
            answer += part or b""
            if time.monotonic() > end:
                raise Failed(f"no answer within {LIMIT_S} s")
        words = answer.decode().split()
        if words[0] != "ok":
            raise Failed(answer.decode().strip())
        return words[1:]

    def ask(self, line, watched=False):
        self.process.stdin.write(line.encode() + b"\n")
        return self.wait(watched)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def start_peer(name, model, threads, clock=()):
    """A peer's process that has yet to open the model."""
    engine = Engine([sys.executable, "-B", os.path.abspath(__file__), PEER_OPTION, name, model, str(threads), *clock])
    engine.wait()
    engine.base = anonymous_bytes(engine.process.pid)
    return engine


def warm_cache(program, model, cache, *words):
    """Opened once beforehand, so that the compiled kernels are there. `words` come after the number of threads."""
    engine = Engine([program, model, cache, "1", *words])
    try:
        engine.wait()
    finally:
        engine.close()


def compare(ours, theirs, folder_ours, folder_theirs, tolerance):
    """Why the saved outputs differ, or None."""
    import numpy as np
    from onnx import load_tensor, numpy_helper
    ours.ask("save " + folder_ours)
    theirs.ask("save " + folder_theirs)
    for path in sorted(glob.glob(os.path.join(folder_theirs, "output_*.pb"))):
        name = os.path.basename(path)
        want = numpy_helper.to_array(load_tensor(path))
        got = numpy_helper.to_array(load_tensor(os.path.join(folder_ours, name)))
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"{name} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        if not want.size:
            continue
        if want.dtype.kind != "f":
            if not np.array_equal(got, want):
                return f"{name}: {np.count_nonzero(got != want)} of {want.size} elements differ"
            continue
        g, w = got.astype(np.float64), want.astype(np.float64)
        limit = tolerance.get("atol", 0) + tolerance.get("atol_relative_to_max", 0) * np.abs(w).max() + \
            tolerance.get("rtol", 0) * np.abs(w)
        if (~(np.abs(g - w) <= limit)).any():
            return f"{name}: {np.count_nonzero(~(np.abs(g - w) <= limit))} of {w.size} elements differ"
    return None


def find_sets(folder, all_sets):
    sets = sorted(glob.glob(os.path.join(folder, "test_data_set_*")))
    sizes = {s: sum(os.path.getsize(p) for p in glob.glob(os.path.join(s, "input_*.pb"))) for s in sets}
    sets.sort(key=lambda s: (sizes[s], s))
    return sets if all_sets or len(sets) < 2 else [sets[0], sets[-1]]


def find_model(arguments, name):
    for folder in (os.path.join(arguments.models, name), os.path.join(ROOT, "models", name)):
        for file in ("model.onnx", name + ".onnx"):
            if os.path.exists(os.path.join(folder, file)):
                return folder, os.path.join(folder, file)
    raise Failed(f"there is no {name} in {arguments.models}; script/test writes the models out")


def tolerance_of(folder):
    path = os.path.join(folder, "info.json")
    if not os.path.exists(path):
        return DEFAULT_TOLERANCE
    with open(path) as f:
        return json.load(f).get("tolerance", DEFAULT_TOLERANCE)


def memory_added(engine):
    return max(engine.peak - engine.base, 0)


def measure_set(arguments, model, data, threads, tolerance, scratch):
    """One row: both engines opened anew, so that the memory is that of this data set."""
    program = os.path.join(arguments.bin, "uir-bench-model")
    cache = os.path.join(scratch, "cache")
    clock = ["cpu"] if arguments.cpu_time else []
    ours = theirs = None
    try:
        theirs = start_peer(arguments.peer, model, threads, clock)
        theirs.ask("open", watched=True)
        theirs.ask("data " + data, watched=True)
        ours = Engine([program, model, cache, str(threads)] + clock)
        ours.base = 0
        ours.wait(watched=True)
        native, other = map(int, ours.ask("data " + data, watched=True)[1:3])
        flops = int(ours.ask("count")[0]) if arguments.peak else None
        difference = compare(ours, theirs, tempfile.mkdtemp(dir=scratch), tempfile.mkdtemp(dir=scratch), tolerance)
        times, limits = {ours: [], theirs: []}, []
        for turn in range(arguments.rounds):
            for engine in ((ours, theirs), (theirs, ours))[turn % 2]:
                times[engine] += map(float, engine.ask(f"run {arguments.seconds / arguments.rounds}"))
            if arguments.peak:
                limits += map(float, ours.ask(f"limit multiply {flops} {arguments.seconds / arguments.rounds}"))
        a, b = statistics.median(times[ours]), statistics.median(times[theirs])
        return {"ours_ms": a, "theirs_ms": b, "ratio": b / a, "ours_bytes": memory_added(ours),
                "theirs_bytes": memory_added(theirs), "flops": flops, "peak": statistics.median(limits) / a if limits else None,
                "native_calls": native, "other_calls": other,
                "difference": difference, "runs": [len(times[ours]), len(times[theirs])]}
    finally:
        for engine in (ours, theirs):
            if engine:
                engine.close()


# ---- the table ----
def short_time(ms):
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1e3:.3g} s"


def show(row, wide):
    note = ", ".join(filter(None, [
        row["difference"], f"{row['other_calls']} calls by VM, host or interpreter" if row["other_calls"] else "",
        f"{100 * row['peak']:.0f}% of the multiply-adds that the threads can do" if row["peak"] else ""]))
    name = f"{row['model']} {row['set']}"
    figures = (f"{short_time(row['ours_ms']):>9} {short_time(row['theirs_ms']):>9} {row['ratio']:6.2f} "
               f"{row['ours_bytes'] / 1e6:7.1f} {row['theirs_bytes'] / 1e6:7.1f} MB")
    if wide:
        print(f"{name:<26} {row['threads']} {figures}", flush=True)
    else:
        print(f"{name}, {row['threads']} thr.\n  {figures}", flush=True)
    if note:
        print(f"  {note}", flush=True)


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def summarise(rows, threads):
    mine = [row for row in rows if row["threads"] == threads]
    if not mine:
        return
    by_model = {}
    for row in mine:
        by_model.setdefault(row["model"], []).append(row["ratio"])
    worst = min(mine, key=lambda row: row["ratio"])
    heavier = sum(row["ours_bytes"] > row["theirs_bytes"] for row in mine)
    print(f"{threads} thread{'s' * (threads > 1)}: geometric mean {geometric_mean([geometric_mean(r) for r in by_model.values()]):.2f}, "
          f"worst {worst['ratio']:.2f} ({worst['model']} {worst['set']}), {len(by_model)} models; "
          f"more memory than theirs: {heavier} of {len(mine)} rows")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="models (default: " + " ".join(MODELS) + ")")
    parser.add_argument("--threads", default="1,2", help="numbers of threads, separated by commas (default 1,2)")
    parser.add_argument("--seconds", type=float, default=2, help="how long each engine runs for a row (default 2)")
    parser.add_argument("--rounds", type=int, default=7, help="turns that this is cut into (default 7)")
    parser.add_argument("--peer", choices=PEERS, default="onnxruntime", help="beside what (default onnxruntime)")
    parser.add_argument("--peak", action="store_true", help="the share of the threads' multiply-adds, too")
    parser.add_argument("--all-sets", action="store_true", help="every data set, not only the smallest and the largest")
    parser.add_argument("--cpu-time", action="store_true", help="processor time instead of the wall's")
    parser.add_argument("--models", default=BUILT_MODELS)
    parser.add_argument("--bin", default=BIN)
    parser.add_argument("--json", metavar="FILE", help="also writes the rows there")
    arguments = parser.parse_args()
    arguments.threads = [int(word) for word in arguments.threads.split(",")]
    return arguments


def main():
    arguments = parse_arguments()
    wide = shutil.get_terminal_size((100, 24)).columns >= 78
    rows, failures = [], []
    if wide:
        print(f"{'model, data set':<26} t {'ours':>9} {'theirs':>9} {'ratio':>6} {'ours':>7} {'theirs':>7}")
    else:
        print("model, data set, threads\n  time of ours, theirs, ratio, memory of ours, theirs")
    with tempfile.TemporaryDirectory(prefix="uir-bench-") as scratch:
        for name in arguments.names or MODELS:
            try:
                folder, model = find_model(arguments, name)
                warm_cache(os.path.join(arguments.bin, "uir-bench-model"), model, os.path.join(scratch, "cache"))
            except Failed as e:
                failures.append(f"{name}: {e}")
                print(textwrap.shorten(failures[-1], 300), flush=True)
                continue
            for data in find_sets(folder, arguments.all_sets):
                for threads in arguments.threads:
                    label = data.rsplit("_", 1)[1]
                    try:
                        row = measure_set(arguments, model, data, threads, tolerance_of(folder), scratch)
                    except Failed as e:
                        failures.append(f"{name} {label}, {threads} threads: {e}")
                        print(textwrap.shorten(failures[-1], 300), flush=True)
                        continue
                    rows.append({"model": name, "set": label, "threads": threads, **row})
                    show(rows[-1], wide)
    for threads in arguments.threads:
        summarise(rows, threads)
    if arguments.json:
        with open(arguments.json, "w") as f:
            json.dump(rows, f, indent=1)
    wrong = [row for row in rows if row["difference"]]
    print(f"{len(rows)} rows, outputs agree in {len(rows) - len(wrong)}; {len(failures)} did not run")
    return 1 if wrong or failures or not rows else 0


if __name__ == "__main__":
    if sys.argv[1:2] == [PEER_OPTION]:
        serve_peer(sys.argv[2], sys.argv[3], int(sys.argv[4]), time.process_time if sys.argv[5:] else time.perf_counter)
    else:
        sys.exit(main())
