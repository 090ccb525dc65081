#!/usr/bin/env python3
"""Times kernels for OpenCL devices beside those for this CPU, the two taking turns in one run: on PoCL, which is the same machine.

    opencl.py [NAME...] [--kind KIND,...] [--chip cpu|gpu] [--threads 2] [--seconds 1] [--rounds 7] [--models NAME,...]
              [--built DIR] [--bin DIR] [--json FILE]

In: small graphs made here, and given models of $UIR_MODELS_BUILT with their smallest data set; uir-bench-model in $UIR_BIN; an
OpenCL device, the first of the system. NAMEs are parts of the names of rows. A time is of a whole run of a session. Inputs and
results of the small graphs are in the device's memory, those of models and of the kind `copied` in the host's: runs copy them.
Each side keeps kernels in a cache of its own, and PoCL's is a new folder.
Out: a row for each graph: the median times of both, and the ratio cpu / OpenCL, which is the share of the CPU's speed. Then for
each kind the geometric mean, beside what chip cpu is to reach, and the worst row. Exit 1 where outputs differ or a graph does not
run; a share that is not reached is no failure.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

import numpy as np
import onnx

import models as bench
from operators import IMAGE, Case, convolution, random, real, whole

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import BIN, MODELS  # noqa: E402

# The share of the CPU's speed that a kind is to reach by chip cpu.
KINDS = {"products": 0.67, "elementwise": 0.5, "rows": 0.33, "moves": 0.3, "models": 0.33, "short": None, "copied": None}
SMALL_MODELS = "digits gru_seq lstm_classifier dlrm espcn ppocr_cls mobilenet_v2 minilm_l6 deit_tiny".split()


def product(m, n, k):
    return Case(f"{m}x{n}x{k}", "MatMul", [real(m, k)], [real(k, n)])


def products():
    for m, n, k in ((1, 1024, 1024), (1, 4096, 4096), (8, 1024, 1024), (17, 768, 768), (128, 768, 768), (512, 768, 3072),
                    (1000, 1003, 999)):
        yield product(m, n, k)
    yield Case("of_heads", "MatMul", [real(12, 128, 64), real(12, 64, 128)])
    yield Case("gemm", "Gemm", [real(64, 512)], [real(1000, 512), real(1000)], transB=1)
    yield convolution("conv_3x3", 64, 64, 56, 3)
    yield convolution("conv_1x1", 256, 64, 56, 1)


def elementwise():
    yield Case("add", "Add", [real(1 << 20), real(1 << 20)])
    for op in ("Relu", "Sigmoid", "Gelu", "Erf", "Exp"):
        yield Case(op.lower(), op, [real(512, 1024)])
    yield Case("add_columns", "Add", [real(1024, 1024), real(1024)])
    yield Case("pow", "Pow", [np.abs(real(512, 1024)), np.float32(1.7)])
    yield Case("where", "Where", [random.integers(0, 2, (512, 1024)).astype(bool), real(512, 1024), real(512, 1024)])
    yield Case("cast_to_f16", "Cast", [real(512, 1024)], to=onnx.TensorProto.FLOAT16)
    yield Case("quantise", "QuantizeLinear", [real(512, 1024)], [np.array(0.01, np.float32), np.array(3, np.uint8)])


def rows():
    yield Case("softmax_rows", "Softmax", [real(512, 1000)], axis=-1)
    yield Case("softmax_channels", "Softmax", [real(1, 21, 128, 128)], axis=1)
    yield Case("layer_norm", "LayerNormalization", [real(512, 768)], [real(768), real(768)])
    yield Case("instance_norm", "InstanceNormalization", [real(*IMAGE)], [real(64), real(64)])
    yield Case("arg_max_rows", "ArgMax", [real(64, 32000)], axis=-1)
    yield Case("sum_rows", "ReduceSum", [real(2048, 1000)], [whole(1)])
    yield Case("mean_pixels", "ReduceMean", [real(*IMAGE)], [whole(2, 3)])
    yield Case("max_columns", "ReduceMax", [real(1000, 1000)], [whole(0)])
    yield Case("cumulative_sum", "CumSum", [real(256, 1000)], [np.array(1, np.int64)])
    yield Case("max_pool", "MaxPool", [real(1, 64, 112, 112)], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


def moves():
    for name, shape, order in (("heads", (8, 128, 12, 64), [0, 2, 1, 3]), ("channels_last", IMAGE, [0, 2, 3, 1]),
                               ("channels_first", (1, 56, 56, 64), [0, 3, 1, 2]), ("matrix", (1000, 1000), [1, 0])):
        yield Case("transpose_" + name, "Transpose", [real(*shape)], perm=order)
    yield Case("gather_rows", "Gather", [real(30000, 256), random.integers(0, 30000, (8, 128))])
    yield Case("gather_columns", "Gather", [real(256, 4096)], [random.integers(0, 4096, 1000)], axis=1)
    yield Case("concat", "Concat", [real(*IMAGE), real(*IMAGE)], axis=1)
    yield Case("slice", "Slice", [real(1000, 1000)], [whole(0, 3), whole(1000, 900), whole(0, 1), whole(2, 1)])
    yield Case("pad_reflect", "Pad", [real(*IMAGE)], [whole(0, 0, 3, 3, 0, 0, 3, 3)], mode="reflect")
    yield Case("depth_to_space", "DepthToSpace", [real(*IMAGE)], blocksize=2)


def short():
    """What a launch takes."""
    yield Case("add_of_4096", "Add", [real(4096), real(4096)])
    yield Case("softmax_of_4096", "Softmax", [real(4, 1024)], axis=-1)
    yield Case("product_1x256x256", "MatMul", [real(1, 256)], [real(256, 256)])


def copied():
    yield Case("add", "Add", [real(1 << 20), real(1 << 20)])
    yield Case("softmax_rows", "Softmax", [real(512, 1000)], axis=-1)
    yield product(512, 768, 3072)


MAKERS = {"products": products, "elementwise": elementwise, "rows": rows, "moves": moves, "short": short, "copied": copied}


def take_turns(arguments, model, data, is_there, tolerance, scratch):
    """Medians in milliseconds of the CPU and of the device; why their outputs differ, or None; calls that no kernel made."""
    program, engines = os.path.join(arguments.bin, "uir-bench-model"), []
    try:
        for device in ("cpu", f"opencl:{arguments.chip}"):
            cache = os.path.join(scratch, "cache-" + device.partition(":")[0])
            bench.warm_cache(program, model, cache, "on", device)
            engines.append(bench.Engine([program, model, cache, str(arguments.threads), "on", device]))
            engines[-1].wait()
            other = int(engines[-1].ask("data " + data)[2])
        difference = bench.compare(*engines[::-1], tempfile.mkdtemp(dir=scratch), tempfile.mkdtemp(dir=scratch), tolerance)
        for engine in engines if is_there else ():
            engine.ask("place " + data)
        times = ([], [])
        for turn in range(arguments.rounds):
            for which in ((0, 1), (1, 0))[turn % 2]:
                times[which].extend(map(float, engines[which].ask(f"run {arguments.seconds / arguments.rounds}")))
        return [statistics.median(t) for t in times], difference, other
    finally:
        for engine in engines:
            engine.close()


def list_rows(arguments, folder):
    """Each row's kind, name, file and data set; a graph of this file is written when its turn comes."""
    for kind in arguments.kind:
        cases = {case.name: case for case in MAKERS[kind]()} if kind in MAKERS else dict.fromkeys(arguments.models)
        for name, case in cases.items():
            if arguments.names and not any(word in name for word in arguments.names):
                continue
            if case:
                case.write(os.path.join(folder, kind))
                place = os.path.join(folder, kind, name)
            yield kind, name, place if case else None


def measure(arguments, kind, name, place, scratch):
    if place:
        model, folder = os.path.join(place, "model.onnx"), place
    else:
        folder, model = bench.find_model(argparse.Namespace(models=arguments.built), name)
    return take_turns(arguments, model, bench.find_sets(folder, False)[0], kind not in ("copied", "models"),
                      bench.tolerance_of(folder), scratch)


def summarise(arguments, results):
    for kind in arguments.kind:
        mine = [row for row in results if row["kind"] == kind]
        if not mine:
            continue
        worst = min(mine, key=lambda row: row["share"])
        wanted = f" of {KINDS[kind]} wanted" if arguments.chip == "cpu" and KINDS[kind] else ""
        print(f"{kind}: geometric mean {bench.geometric_mean([row['share'] for row in mine]):.2f}{wanted}, {len(mine)} rows, "
              f"worst {worst['share']:.2f} ({worst['name']})")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of names (default: all)")
    parser.add_argument("--kind", default=",".join(KINDS), help="of " + ",".join(KINDS))
    parser.add_argument("--chip", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1, help="how long each side runs for a row (default 1)")
    parser.add_argument("--rounds", type=int, default=7, help="turns that this is cut into (default 7)")
    parser.add_argument("--models", default=",".join(SMALL_MODELS), help="given models, separated by commas")
    parser.add_argument("--built", default=MODELS, metavar="DIR", help="the folder of the given models")
    parser.add_argument("--bin", default=BIN)
    parser.add_argument("--json", metavar="FILE", help="also writes the rows there")
    arguments = parser.parse_args()
    arguments.kind, arguments.models = arguments.kind.split(","), arguments.models.split(",")
    if set(arguments.kind) - set(KINDS):
        parser.error("--kind takes " + ", ".join(KINDS))
    return arguments


def main():
    arguments = parse_arguments()
    results, failures = [], 0
    os.environ["POCL_MAX_PTHREAD_COUNT"] = str(arguments.threads)
    print(f"{'kind and row':<36} {'cpu':>9} {'opencl':>9}  share")
    with tempfile.TemporaryDirectory(prefix="uir-opencl-") as scratch:
        os.environ["POCL_CACHE_DIR"] = os.path.join(scratch, "pocl")
        os.mkdir(os.environ["POCL_CACHE_DIR"])
        for kind, name, place in list_rows(arguments, scratch):
            try:
                (cpu, device), difference, other = measure(arguments, kind, name, place, scratch)
            except (bench.Failed, OSError, ValueError) as e:
                failures += 1
                print(f"{kind} {name}: {e}", flush=True)
                continue
            results.append({"kind": kind, "name": name, "cpu_ms": cpu, "opencl_ms": device, "share": cpu / device,
                            "other_calls": other, "difference": difference})
            notes = [difference, f"{other} calls by VM, host or interpreter" if other else None]
            print(f"{kind + ' ' + name:<36} {cpu:9.3f} {device:9.3f} {cpu / device:6.2f}  {', '.join(filter(None, notes))}".rstrip(),
                  flush=True)
    summarise(arguments, results)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)
    wrong = sum(row["difference"] is not None for row in results)
    print(f"{len(results)} rows, outputs agree in {len(results) - wrong}; {failures} did not run")
    return 1 if wrong or failures or not results else 0


if __name__ == "__main__":
    sys.exit(main())
