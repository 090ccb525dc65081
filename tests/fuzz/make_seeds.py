#!/usr/bin/env python3
"""Small inputs for the guided targets to begin with: `make_seeds.py FOLDER` fills FOLDER/NAME for each target from what
the tree and the onnx package have.

In: the programs in $UIR_BIN. Out: a line for each target with its number of files. What the same programs made stays;
who comes while another makes them waits.
"""
import fcntl
import glob
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.parser
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("UIR_BIN", os.path.join(ROOT, "build", "release", "bin"))
NODES = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
MOST_BYTES, MOST_KERNEL, MOST_BROKEN = 4096, 1024, 2048  # the verifier takes a second for a large kernel


def models(every=1):
    found = sorted(p for p in glob.glob(os.path.join(NODES, "*", "model.onnx")) if os.path.getsize(p) <= MOST_BYTES)
    return found[::every]


class Seeds:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder)

    def add(self, data):
        if isinstance(data, str):
            data = data.encode()
        if data:
            with open(os.path.join(self.folder, hashlib.sha256(data).hexdigest()[:16]), "wb") as f:
                f.write(data)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def ask(*command):
    """What a program says; "" when it fails: not every model has every stage."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stdout if done.returncode == 0 else ""


def stage(model, name):
    return ask(os.path.join(BIN, "uir-opt"), model, "--after", name, "--constants", "inline")


def items(text, word):
    """The functions or kernels of a text, each whole."""
    return re.findall(rf"^{word} @.*?^}}\n", text, re.M | re.S)


FUNCTIONS = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
graph (float[N] x, bool b) => (float[N] y, float[N] z) <float[2] w = {1.0, 2.0}> {
    h = own.outer <alpha = 2.0, deep = [1, 2]> (x)
    y = own.inner (h)
    z = If (b) <then_branch = t () => (float[N] p) { p = own.inner (h) }, else_branch = e () => (float[N] q) { q = Neg (x) }>
}
<domain: "own", opset_import: ["" : 21, "own" : 1]>
outer <alpha: float = 1.0, deep: ints, text: string = "none"> (a) => (c) {
    k = Constant <value_float: float = @alpha> ()
    l = Constant <value_ints: ints = @deep> ()
    m = own.inner (a)
    c = Mul (m, k)
}
<domain: "own", opset_import: ["" : 21]>
inner (a) => (c) { c = Abs (a) }
"""


def tensors():
    """A tensor of every type, its numbers in fields of their own and as bytes."""
    for kind in TensorProto.DataType.values():
        for raw in (False, True):
            values = [b"a", b"b"] * 3 if kind == TensorProto.STRING else [0, 1, 1, 0, 1, 0]
            try:
                yield helper.make_tensor("t", kind, [2, 3], b"\1" * 96 if raw else values, raw=raw)
            except (ValueError, TypeError, KeyError, AssertionError):
                continue


def add_onnx(seeds):
    for path in models():
        seeds.add(read(path))
    seeds.add(onnx.parser.parse_model(FUNCTIONS).SerializeToString())
    for tensor in tensors():
        for given in ({"initializer": [tensor]}, {"nodes": [helper.make_node("Constant", [], ["t"], value=tensor)]}):
            nodes = [*given.pop("nodes", []), helper.make_node("Identity", ["t"], ["y"], "named")]
            out = helper.make_tensor_value_info("y", tensor.data_type, [2, 3])
            seeds.add(helper.make_model(helper.make_graph(nodes, "g", [], [out], **given)).SerializeToString())
    for sparse in sparse_tensors():
        out = helper.make_tensor_value_info("y", sparse.values.data_type, list(sparse.dims))
        graph = helper.make_graph([helper.make_node("Identity", ["t"], ["y"])], "g", [], [out])
        graph.sparse_initializer.append(sparse)
        seeds.add(helper.make_model(graph).SerializeToString())
        constant = helper.make_node("Constant", [], ["y"], sparse_value=sparse)
        seeds.add(helper.make_model(helper.make_graph([constant], "g", [], [out])).SerializeToString())
    for attribute in ({"value_float": 1.0}, {"value_floats": [1.0, 2.0]}, {"value_string": "a"}, {"value_ints": [1]},
                      {"value_strings": ["a", "b"]}, {"value": external_tensor({"location": "data.bin"})}):
        node, out = helper.make_node("Constant", [], ["y"], **attribute), helper.make_tensor_value_info("y", 1, None)
        model = helper.make_model(helper.make_graph([node], "g", [], [out]))
        for key in ("a", "b", "a"):
            model.metadata_props.add(key=key, value="v")
        seeds.add(model.SerializeToString())
    for shape in (["N", "N+1", "2*N-1", "M%2", "(N+1)/2"], [1] * 40, [-1, -7], [None, "N", "N"], ["04/335", "'a b'", ""]):
        graph = onnx.parser.parse_graph("g (float[N, M] x) => (float y) { y = Identity (x) }")
        graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, shape))
        graph.input.append(helper.make_tensor_value_info("z", 1, shape))
        seeds.add(helper.make_model(graph).SerializeToString())
    seeds.add(nested(60))
    for location in LOCATIONS:
        seeds.add(location)  # the target takes short inputs for paths too
    for data in external_models():
        seeds.add(data)


def nested(levels):
    """A model whose last type holds another, and so on; written as bytes, since onnx reads no such depth either."""
    body = b""
    for tag in [0x0a, 0x22] * levels + [0x12, 0x5a, 0x3a]:  # elem_type in sequence_type, type of an input of the graph
        length, size = len(body), b""
        while length > 127:
            size, length = size + bytes([length & 127 | 128]), length >> 7
        body = bytes([tag]) + size + bytes([length]) + body
    return body


def sparse_tensors():
    """Elements by number and by indices of each axis, of each kind of element; and of more than there is room for."""
    places = [np.array([1, 4]), np.array([[0, 1], [1, 1]]), np.array([4, 1]), np.array([[0, 1], [2, 0]])]
    for values in (np.ones(2, np.float32), np.array([3, -4], np.int16), np.array([True, True]), np.array(["a", "b"])):
        for indices in places:
            yield onnx.SparseTensorProto(values=numpy_helper.from_array(values, "t"), dims=[2, 3],
                                         indices=numpy_helper.from_array(indices, "i"))
    yield onnx.SparseTensorProto(values=numpy_helper.from_array(np.ones(2, np.float32), "t"), dims=[1 << 20, 1 << 20],
                                 indices=numpy_helper.from_array(places[0], "i"))


def external_tensor(given, dtype=TensorProto.FLOAT):
    tensor = TensorProto(name="t", data_type=dtype, dims=[2, 3], data_location=TensorProto.EXTERNAL)
    for key, value in given.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


LOCATIONS = ("data.bin", "below/data.bin", "link", "out", "circle", "pipe", "below", "none", "../data.bin", "/etc/hostname",
             "", "below//data.bin", "./data.bin", "below/../data.bin", "data.bin/", "out/x", "x" * 270 + "/y", "x/" * 2500)


def external_models():
    """Tensors in files, of each name that target_onnx.c knows; each at several lengths, which choose how it is loaded."""
    for location in LOCATIONS:
        for offset, length in ((None, None), (0, 24), (4000, 24), (4090, 24), (64, 23), (-1, 24), (1 << 62, 24)):
            given = {"location": location, "offset": offset, "length": length}
            data = model_of(external_tensor({key: value for key, value in given.items() if value is not None}))
            for more in (0, 4, 6, 28, 30) if offset == 0 else (4, 28):
                text = b"#" * ((more - len(data) - 2) % 32)  # a documentation string of so many bytes
                yield data + b"\x32" + bytes([len(text)]) + text
    twice = external_tensor({"location": "data.bin", "length": 24})
    twice.external_data.add(key="location", value="link")
    for tensor in (twice, external_tensor({}), external_tensor({"location": "data.bin", "colour": "red"}),
                   external_tensor({"location": "data.bin", "checksum": "00"}),
                   external_tensor({"location": "data.bin"}, TensorProto.STRING),
                   external_tensor({"location": "data.bin", "length": 6}, TensorProto.BOOL),
                   TensorProto(name="t", data_type=TensorProto.UINT32, dims=[1], uint64_data=[1 << 40]),
                   TensorProto(name="t", data_type=TensorProto.INT4, dims=[1], raw_data=b"\xff"),
                   TensorProto(name="t", data_type=99, dims=[1], raw_data=b"\xff")):
        yield model_of(tensor)


def model_of(tensor):
    node, out = helper.make_node("Identity", ["t"], ["y"]), helper.make_tensor_value_info("y", 1, [2, 3])
    return helper.make_model(helper.make_graph([node], "g", [], [out], initializer=[tensor])).SerializeToString()


def add_value(seeds):
    for tensor in tensors():
        seeds.add(tensor.SerializeToString())
    for path in sorted(glob.glob(os.path.join(NODES, "*", "*", "*.pb")))[::9]:
        if os.path.getsize(path) <= 1024:
            seeds.add(read(path))
    a = numpy_helper.from_array(np.arange(6, dtype=np.float32), "a")
    sequence = onnx.SequenceProto(name="s", elem_type=onnx.SequenceProto.TENSOR, tensor_values=[a, a])
    seeds.add(sequence.SerializeToString())
    nested = onnx.SequenceProto(name="n", elem_type=onnx.SequenceProto.SEQUENCE, sequence_values=[sequence])
    for proto in (nested, onnx.OptionalProto(name="o", elem_type=onnx.OptionalProto.TENSOR, tensor_value=a),
                  onnx.OptionalProto(name="o", elem_type=onnx.OptionalProto.SEQUENCE, sequence_value=sequence),
                  onnx.OptionalProto(name="e")):
        seeds.add(proto.SerializeToString())
    for dtype in "<f4 >f4 <f2 >f8 ? |u1 |i1 <i8 >i2 <c8 >c16 <u4 <u2 <U3 |S3 O".split():
        for order in "CF":
            buffer = io.BytesIO()
            np.save(buffer, np.arange(6).reshape(2, 3).astype(dtype, order=order), allow_pickle=True)
            seeds.add(buffer.getvalue())
    for write in (np.savez, np.savez_compressed):
        for arrays in ({"a": np.zeros((40, 5))}, {"a": np.arange(3), "b": np.random.default_rng(1).random(30)}):
            buffer = io.BytesIO()
            write(buffer, **arrays)
            seeds.add(buffer.getvalue())


def add_picture(seeds):
    for path in glob.glob(os.path.join(NODES, "test_image_decoder*", "*", "input_0.pb")):
        proto = TensorProto()
        proto.ParseFromString(read(path))
        seeds.add(numpy_helper.to_array(proto).tobytes()[:20000])
    picture = Image.effect_noise((13, 9), 80)
    options = [("PNG", m, {}) for m in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")]
    ways = ({}, {"progressive": True}, {"subsampling": 2, "quality": 20})
    options += [("JPEG", m, o) for m in ("L", "RGB", "CMYK") for o in ways]
    options += [("JPEG", "RGB", {"restart_marker_blocks": 1}), ("PNG", "RGB", {"compress_level": 0})]
    options += [("BMP", m, {}) for m in ("1", "L", "P", "RGB", "RGBA")] + [("PPM", m, {}) for m in ("1", "L", "RGB")]
    fax = ("group3", "group4", "tiff_ccitt")
    options += [("TIFF", m, {"compression": c}) for m in ("L", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I;16")
                for c in (None, "tiff_lzw", "tiff_adobe_deflate", "packbits")]
    options += [("TIFF", "1", {"compression": c}) for c in fax] + [("TIFF", "RGB", {"compression": "jpeg"}),
                                                                   ("TIFF", "RGB", {"big_tiff": True})]
    options += [("WEBP", m, {"lossless": w}) for m in ("L", "RGB", "RGBA") for w in (False, True)]
    options += [("JPEG2000", m, dict(o, no_jp2=bare)) for m in ("L", "LA", "RGB", "RGBA", "I;16") for bare in (False, True)
                for o in ({}, {"irreversible": True, "quality_layers": [30, 10]}, {"tile_size": (8, 8)},
                          {"precinct_size": (32, 32), "progression": "RPCL"})]
    for kind, mode, more in options:
        buffer = io.BytesIO()
        picture.convert("I" if mode == "I;16" else "RGB").convert(mode).save(buffer, kind, **more)
        seeds.add(buffer.getvalue())
    seeds.add("P3\n2 1\n255\n1 2 3 4 5 6\n")
    seeds.add("P2\n# grey\n2 1\n9\n1 2\n")


def add_graph(seeds):
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "ir", "graph", "cases", "*.txt"))):
        for case in re.split(r"^# case: .*\n", read(path).decode(), flags=re.M)[1:]:
            lines = [line for line in case.split("\n# expect")[0].splitlines() if line[:2] != "# "]
            seeds.add("\n".join(["module opset 1", *lines, ""]))
    for number, path in enumerate(models(every=9)):
        for name in (("primitives", "onnx"), ("fusion",))[number % 2]:
            text = stage(path, name)
            if len(text) <= MOST_BYTES:
                seeds.add(text)


def add_loop(seeds):
    for path in models(every=23):
        for name in ("loop", "schedule"):
            for text in items(stage(path, name), "func"):
                if len(text) <= MOST_BYTES:
                    seeds.add(text)


# Of small fixed sizes, so that proofs are quick: a loop with its syncs; two bodies; rows of blocks.
KERNELS = ["""igraph @loop on ascend synchronised {
  ptr %x : dram f32 [64, 16] in 0   ptr %y : dram f32 [64, 16] out 0
  ptr %i, %o : ub f32 [1, 16] x2 by l
  phase { parallel c : 8 unit
    loop l : 8 {
      sync.V.MTE2 %i dist 2
      move.dram.ub.f32  %i[0:1, 0:16], %x[8*c+l, 0:16]
      sync.MTE2.V %i
      sync.MTE3.V %o dist 2
      unary.exp.f32  %o[0:1, 0:16], %i[0:1, 0:16]
      sync.V.MTE3 %o
      move.ub.dram.f32  %y[8*c+l, 0:16], %o[0:1, 0:16]
  } }
}
""", """igraph @bodies on ascend {
  ptr %x : dram f16 [32, 16] in 0   ptr %w : dram f16 [16, 16] const 0   ptr %y : dram f32 [32, 16] out 0
  ptr %a1 : l1 f16 [16, 16]:((16,1),(16,1)):((16,256),(1,256))
  ptr %b1 : l1 f16 [16, 16]:((16,1),(16,1)):((16,256),(1,256))
  ptr %a0 : l0a f16 [16, 16]:((16,1),(16,1)):((16,256),(1,256))
  ptr %b0 : l0b f16 [16, 16]:((16,1),(16,1)):((16,256),(1,256))
  ptr %c : l0c f32 [16, 16]:((16,1),(16,1)):((16,256),(1,256))
  ptr %t : ub f32 [8, 16]   ptr %acc : dram f32 [32, 16] work
  phase { parallel p : 2 group
    on cube {
      fill.f32  %c, 0
      move.dram.l1.f16  %a1, %x[p*16:16, 0:16]
      move.dram.l1.f16  %b1, %w
      move.l1.l0a.f16   %a0, %a1
      move.l1.l0b.f16   %b0, %b1
      mma.f32.f16.f16   %c, %a0, %b0
      move.l0c.dram.f32  %acc[p*16:16, 0:16], %c
      sync.cube.vector
    } on vector u:2 {
      sync.cube.vector
      move.dram.ub.f32  %t, %acc[p*16+u*8:8, 0:16]
      unary.exp.f32     %t, %t
      move.ub.dram.f32  %y[p*16+u*8:8, 0:16], %t
    }
  }
}
""", """igraph @rows on ascend {
  ptr %x : dram f32 [64, 64] in 0   ptr %y : dram f32 [64, 64] out 0
  ptr %i : ub f32 [8, 64]   ptr %m : ub f32 [8, 1]:(8,1):(1,1)   ptr %b : ub f32 [8, 8]   ptr %w : ub f32 [8, 8]
  phase { parallel c : 8 unit
    move.dram.ub.f32         %i, %x[8*c:8, 0:64]
    reduce.max.row.unit.f32  %m[0:8, 0:1], %i[0:8, 0:64] scratch %w
    broadcast.row.unit.f32   %b[0:8, 0:8], %m[0:8, 0:1]
    binary.sub.f32           %i[0:8, 0:64], %i[0:8, 0:64], %b block
    move.ub.dram.f32         %y[8*c:8, 0:64], %i
  }
}
""", """igraph @group on warps {
  ptr %x : dram f32 [4, 64] in 0   ptr %y : dram f32 [4, 64] out 0
  ptr %e : smem f32 [8, 8]   ptr %v : reg f32 [1, 8]
  phase { parallel r : 4 group, u : 8 unit
    loop l : 3 {
      move.dram.smem.f32  %e[u, 0:8], %x[r, u*8:8]
      sync.group
      move.smem.reg.f32   %v, %e[7-u, 0:8]
      sync.group
      move.reg.dram.f32   %y[r, u*8:8], %v
  } }
}
"""]


def add_igraph(seeds):
    for text in KERNELS:
        seeds.add(text)
    for path in sorted(glob.glob(os.path.join(ROOT, "tests", "ir", "kernel", "**", "*.igraph"), recursive=True)):
        for text in items(read(path).decode(), "igraph"):
            if len(text) <= (MOST_BROKEN if "broken" in path else MOST_KERNEL):  # a fault is found soon
                seeds.add(text)
    for path in models(every=29):
        for name in ("igraph", "runs"):
            for text in items(stage(path, name), "igraph"):
                if len(text) <= MOST_KERNEL:
                    seeds.add(text)


def add_package(seeds):
    words = ("loop", "if", "scan", "nonzero", "topk", "nonmax", "sequence", "range", "reshape", "unique", "concat")
    chosen = [p for p in models() if any(w in os.path.dirname(p) for w in words)][::4] + models(every=20)
    with tempfile.TemporaryDirectory() as folder:
        for path in chosen:
            package = os.path.join(folder, "p.uir")
            for model in (path, free_sizes(path, os.path.join(folder, "m.onnx"))):
                command = [os.path.join(BIN, "uir-pack"), model, "-o", package, "--no-native", "--quiet"]
                if model and subprocess.run(command, capture_output=True, timeout=120).returncode == 0:
                    seeds.add(read(package))


def free_sizes(path, out):
    """The model with inputs of any sizes, of the same rank."""
    model = onnx.load(path)
    for value in [*model.graph.input, *model.graph.output]:
        if not value.type.HasField("tensor_type"):
            return None
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            dim.dim_param = f"n{axis}" if value in model.graph.input[:] else f"{value.name}_{axis}"
    onnx.save(model, out)
    return out


def add_bytecode(seeds):
    files = glob.glob(os.path.join(ROOT, "tests", "ir", "kernel", "*.igraph"))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([os.path.join(BIN, "fuzz_encode"), folder, *files], check=True, capture_output=True)
        for name in os.listdir(folder):
            seeds.add(read(os.path.join(folder, name)))


def fingerprint():
    """Of what makes seeds: packages of another version are refused at their first bytes."""
    total = hashlib.sha256(read(os.path.abspath(__file__)))
    for program in ("uir-opt", "uir-pack", "fuzz_encode"):
        total.update(read(os.path.join(BIN, program)))
    return total.hexdigest()


def main():
    os.environ.update(XDG_CACHE_HOME=os.path.join(sys.argv[1], ".cache"))
    makers = {n[4:]: f for n, f in globals().items() if n.startswith("add_")}
    made_by = fingerprint()
    os.makedirs(sys.argv[1], exist_ok=True)
    lock = os.open(sys.argv[1], os.O_RDONLY)  # held until the process ends
    fcntl.flock(lock, fcntl.LOCK_EX)
    for name, make in makers.items():
        place = os.path.join(sys.argv[1], name)
        mark = place + ".made-by"
        if os.path.isdir(place) and not (os.path.exists(mark) and read(mark).decode() == made_by):
            shutil.rmtree(place)
        if not os.path.isdir(place):
            shutil.rmtree(place + ".part", ignore_errors=True)
            make(Seeds(place + ".part"))
            os.rename(place + ".part", place)
            with open(mark, "w", encoding="ascii") as f:
                f.write(made_by)
        print(name, len(os.listdir(place)))


if __name__ == "__main__":
    main()
