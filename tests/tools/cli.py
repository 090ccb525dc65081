"""What the tests of the programs share: running them, judging what they say, making models and data.

In: the programs in $UIR_BIN.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
# Some of these for the users of this file.
from suite import (BIN, DIGITS, GIVEN_MODELS, MODELS, NO_MODELS, ROOT, Lacking, Suite, find_model, list_models,  # noqa: E402, F401
                   make_parser, run_tests, slow)

RUN, OPT = os.path.join(BIN, "uir-run"), os.path.join(BIN, "uir-opt")
PACK, RUN_PACKAGE = os.path.join(BIN, "uir-pack"), os.path.join(BIN, "uir-run-package")
RAN, DIFFERS, USAGE, BAD_FILE, UNSUPPORTED, FAILED = range(6)

# What UIR_CPU made kernels for. The tests go on with what this machine runs: its own variant in place of a foreign one.
MADE_FOR = os.environ.get("UIR_CPU", "")
if MADE_FOR:
    os.environ["UIR_CPU"] = subprocess.run([os.path.join(BIN, "uir-cpu-here")], capture_output=True, text=True).stdout.strip()
IS_FOREIGN = MADE_FOR != os.environ.get("UIR_CPU", "")

# What a name may hold: none of it may reach a terminal, a shell or a path as it is.
HOSTILE = ['"quoted"', "*/ int x; /*", "a\nb\r", "??/", "back\\slash\\", "$(touch pwned)", "`touch pwned`", "\x1b[31mred",
           "../../up", "%s%n", "na\u00efve", "a=b", " ", "-o"]
FORBIDDEN = set(range(0x20)) - {0x0A} | {0x7F}


KERNEL = """igraph @scale on cpu {
  dim M in 0..4096, N in 1..4096
  tile t in 1..64
  candidate t = 8
  ptr %x : dram f32 [M,N] in 0
  ptr %y : dram f32 [M,N] out 0
  phase { parallel p : ceildiv(M,t) group
    loop r : t when p*t+r < M {
      binary.mul.f32 %y[p*t+r:1, 0:N], %x[p*t+r:1, 0:N], 2.5
  } }
}
"""


# Kernels that the tests of one program compile are compiled once; never in the caller's own cache.
CACHE = tempfile.TemporaryDirectory(prefix="uir-cli-cache-")
os.environ["XDG_CACHE_HOME"] = CACHE.name
os.environ.setdefault("UIR_STRICT", "1")  # a fault of the compiler fails whatever meets it
# Where the device does not matter: the one that needs no compiler.
INTERPRET = [RUN, "--device", "interpreter"]


def flat(command):
    """The words of a command, each as bytes; lists in it are words too."""
    words = []
    for c in command:
        words += flat(c) if isinstance(c, list) else [c if isinstance(c, bytes) else os.fsencode(str(c))]
    return words


def run(*command, env=None, cwd=None, timeout=120):
    environment = dict(os.environ, **(env or {}))
    command = flat(command)
    done = subprocess.run(command, cwd=cwd, capture_output=True, stdin=subprocess.DEVNULL, timeout=timeout,
                          env=environment)
    done.out, done.err = done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    return done


def expect(condition, what, done=None):
    if not condition:
        raise AssertionError(what + (f"\n{done.args}\nexit {done.returncode}\n{done.out}\n{done.err}" if done else ""))


def is_clean(data):
    """Valid UTF-8 without a byte that a terminal acts on."""
    try:
        return not FORBIDDEN & set(data) and not re.search("[\x80-\x9f]", data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def fails(code, *words, command, **options):
    """The command ends with `code`, and its message holds every word; nothing is on standard output."""
    done = run(*command, **options)
    expect(done.returncode == code, f"exit {code} expected", done)
    expect(is_clean(done.stderr), "the message holds bytes that a terminal acts on", done)
    for word in words:
        expect(word in done.err, f"the message does not hold '{word}'", done)
    expect(done.err.startswith(("uir-run: ", "uir-opt: ", "uir-pack: ", "uir-tune: ", "uir-run-package: ")), "the message does not say who speaks", done)
    if b"--json" in flat(command):
        told = json.loads(done.stdout)
        expect("problems" in told or "fault" in told or told["code"] == code and told["message"] and set(told) == ERROR_FIELDS,
               "why it failed, as JSON", done)
    else:
        expect(not done.stdout, "a failure writes to standard output", done)
    said = [line for line in done.err.splitlines() if line.startswith("uir-")]
    expect(len(said) == len(set(said)), "the same is said twice", done)
    return done


ERROR_FIELDS = {"version", "error", "message", "hint", "code"}


def value(name, shape, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def make_model(nodes, inputs, outputs, initializers=(), opset=20):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def save(model, path):
    with open(path, "wb") as f:
        f.write(model if isinstance(model, bytes) else model.SerializeToString())
    return path


def product_model(rows=3):
    weights = numpy_helper.from_array(np.arange(rows * 4, dtype=np.float32).reshape(rows, 4), "w")
    return make_model([helper.make_node("MatMul", ["x", "w"], ["y"], name="product")], [value("x", ["batch", rows])],
                      [value("y", None)], [weights])


def write_set(folder, x, y=None):
    os.makedirs(folder, exist_ok=True)
    for name, array in (("input_0", x), ("output_0", y)):
        if array is not None:
            save(numpy_helper.from_array(array), os.path.join(folder, name + ".pb"))
    return folder


class Case:
    """A folder of its own with a model in it; gone at the end."""

    def __enter__(self):
        self.kept = tempfile.TemporaryDirectory(prefix="uir cli $(touch pwned) ")
        self.folder = self.kept.name
        self.model = save(product_model(), self.path("model.onnx"))
        self.x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
        self.y = self.x @ np.arange(12, dtype=np.float32).reshape(3, 4)
        return self

    def __exit__(self, *_):
        self.kept.cleanup()

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        return self.path(name)


def external_model(location, offset=None, length=None):
    m = product_model()
    w = m.graph.initializer[0]
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        if text is not None:
            entry = w.external_data.add()
            entry.key, entry.value = key, text
    return m


def hostile_model(name, op="Relu"):
    return make_model([helper.make_node(op, [name], [name + "o"], name=name)], [value(name, [name, 3])],
                      [value(name + "o", None)])


def need_program(name):
    if not shutil.which(name):
        raise Lacking(f"{name} is not installed")


def need_processes():
    if not os.path.exists("/proc/self/stat"):
        raise Lacking("there is no /proc to look for processes in")
