#!/usr/bin/env python3
"""Times models of one operator each beside ONNX Runtime: convolutions, pools, norms, reductions, movements, products, recurrences.

    operators.py [PART...] [any option of models.py]

In: PARTs of names (default: all). Out: what models.py prints of these models, whose inputs and results are row-major, as somebody
has them who tries an operator by itself: what is slow by a factor shows here, where in a whole model it would be a small share.
Recurrences of random weights amplify rounding, so that their outputs may be said to differ.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
SEED, OPSET = 3, 20
IMAGE = (1, 64, 56, 56)
random = np.random.default_rng(SEED)


def real(*shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def whole(*values):
    return np.array(values, np.int64)


class Case:
    """One node: what it reads when it runs (`inputs`), its constants, its attributes."""

    def __init__(self, name, op, inputs, constants=(), outputs=1, **attributes):
        self.name, self.op, self.attributes = name, op, attributes
        self.inputs, self.constants, self.outputs = list(inputs), list(constants), outputs

    def write(self, folder):
        names = [f"x{i}" for i in range(len(self.inputs))] + [f"c{i}" if c is not None else "" for i, c in enumerate(self.constants)]
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, results, **self.attributes)
        ports = [helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
                 for i, a in enumerate(self.inputs)]
        graph = helper.make_graph([node], self.name, ports, [helper.make_empty_tensor_value_info(r) for r in results],
                                  [numpy_helper.from_array(c, f"c{i}") for i, c in enumerate(self.constants) if c is not None])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        data = os.path.join(folder, self.name, "test_data_set_0")
        os.makedirs(data)
        onnx.save(onnx.shape_inference.infer_shapes(model), os.path.join(folder, self.name, "model.onnx"))
        for i, array in enumerate(self.inputs):
            with open(os.path.join(data, f"input_{i}.pb"), "wb") as f:
                f.write(numpy_helper.from_array(array, f"x{i}").SerializeToString())


def convolution(name, channels, filters, size, kernel, stride=1, groups=1, dilation=1, dims=2):
    pad = [kernel // 2 * dilation] * 2 * dims
    size = size if isinstance(size, tuple) else (size,) * dims
    return Case(name, "Conv", [real(1, channels, *size)], [real(filters, channels // groups, *[kernel] * dims)], pads=pad,
                strides=[stride] * dims, group=groups, dilations=[dilation] * dims)


def transposed(name, kernel, stride, pad, **more):
    return Case(name, "ConvTranspose", [real(1, 64, 28, 28)], [real(64, 32, kernel, kernel)], strides=[stride] * 2, pads=[pad] * 4, **more)


def recurrence(op, gates, batch=1, directions=1, **more):
    constants = [real(directions, gates * 128, 64), real(directions, gates * 128, 128), real(directions, 2 * gates * 128)]
    name = op.lower() + (f"_batch{batch}" if batch > 1 else "") + ("_both" if directions > 1 else "")
    return Case(name, op, [real(50, batch, 64)], constants, hidden_size=128, **more)


def cases():
    yield convolution("conv_3x3", 64, 64, 56, 3)
    yield convolution("conv_3x3_of_128", 128, 128, 28, 3)
    yield convolution("conv_3x3_of_256", 256, 256, 14, 3)
    yield convolution("conv_3x3_of_8", 8, 8, 112, 3)
    yield convolution("conv_3x3_of_16", 16, 16, 112, 3)
    yield convolution("conv_3x3_to_3", 64, 3, 112, 3)
    yield convolution("conv_3x3_stride_2", 64, 128, 56, 3, 2)
    yield convolution("conv_3x3_dilated", 64, 64, 28, 3, dilation=2)
    yield convolution("conv_1x1_down", 256, 64, 56, 1)
    yield convolution("conv_1x1_up", 64, 256, 56, 1)
    yield convolution("conv_5x5", 32, 32, 28, 5)
    yield convolution("conv_7x7_of_3", 3, 64, 224, 7, 2)
    yield convolution("conv_groups_of_32", 128, 128, 28, 3, groups=4)
    yield convolution("conv_groups_of_4", 128, 128, 28, 3, groups=32)
    for kernel, size in ((3, 56), (5, 28), (7, 28)):
        yield convolution(f"depthwise_{kernel}x{kernel}", 96, 96, size, kernel, groups=96)
    yield convolution("depthwise_3x3_stride_2", 96, 96, 56, 3, 2, groups=96)
    yield convolution("conv_1d", 80, 128, 1000, 5, dims=1)
    yield convolution("conv_3d", 16, 16, (8, 28, 28), 3, dims=3)
    yield transposed("transposed_2x2", 2, 2, 0)
    yield transposed("transposed_3x3", 3, 2, 1, output_padding=[1, 1])
    yield transposed("transposed_4x4", 4, 2, 1)
    yield Case("max_pool_3x3", "MaxPool", [real(1, 64, 112, 112)], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    yield Case("max_pool_5x5", "MaxPool", [real(1, 128, 20, 20)], kernel_shape=[5, 5], pads=[2] * 4)
    yield Case("average_pool_3x3", "AveragePool", [real(*IMAGE)], kernel_shape=[3, 3], pads=[1] * 4)
    yield Case("global_average_pool", "GlobalAveragePool", [real(1, 512, 14, 14)])
    yield Case("instance_norm", "InstanceNormalization", [real(*IMAGE)], [real(64), real(64)])
    yield Case("group_norm", "GroupNormalization", [real(*IMAGE)], [real(8), real(8)], num_groups=8)
    yield Case("layer_norm", "LayerNormalization", [real(128, 768)], [real(768), real(768)])
    yield Case("softmax_rows", "Softmax", [real(512, 1000)], axis=-1)
    yield Case("softmax_channels", "Softmax", [real(1, 21, 128, 128)], axis=1)
    yield Case("arg_max_channels", "ArgMax", [real(1, 21, 128, 128)], axis=1)
    yield Case("arg_max_rows", "ArgMax", [real(64, 32000)], axis=-1)
    yield Case("top_k", "TopK", [real(16, 32000)], [whole(50)], outputs=2)
    yield Case("reduce_pixels", "ReduceMean", [real(*IMAGE)], [whole(2, 3)])
    yield Case("reduce_channels", "ReduceMean", [real(*IMAGE)], [whole(1)])
    yield Case("reduce_columns", "ReduceMax", [real(1000, 1000)], [whole(0)])
    yield Case("cumulative_sum", "CumSum", [real(256, 1000)], [np.array(1, np.int64)])
    yield Case("resize_linear", "Resize", [real(1, 64, 28, 28)], [None, np.array([1, 1, 2, 2], np.float32)], mode="linear")
    yield Case("resize_nearest", "Resize", [real(1, 64, 28, 28)], [None, np.array([1, 1, 2, 2], np.float32)], mode="nearest",
               coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    for name, shape, order in (("heads", (8, 128, 12, 64), [0, 2, 1, 3]), ("to_channels_last", IMAGE, [0, 2, 3, 1]),
                               ("to_channels_first", (1, 56, 56, 64), [0, 3, 1, 2]), ("matrix", (1000, 1000), [1, 0])):
        yield Case("transpose_" + name, "Transpose", [real(*shape)], perm=order)
    yield Case("concat_channels", "Concat", [real(*IMAGE), real(*IMAGE)], axis=1)
    yield Case("pad_reflect", "Pad", [real(*IMAGE)], [whole(0, 0, 3, 3, 0, 0, 3, 3)], mode="reflect")
    yield Case("depth_to_space", "DepthToSpace", [real(*IMAGE)], blocksize=2)
    yield Case("space_to_depth", "SpaceToDepth", [real(*IMAGE)], blocksize=2)
    yield Case("gather_rows", "Gather", [real(30000, 256), random.integers(0, 30000, (8, 128))], axis=0)
    yield Case("scatter_rows", "ScatterND", [real(1000, 256), random.permutation(1000)[:200].reshape(200, 1), real(200, 256)])
    yield Case("one_hot", "OneHot", [random.integers(0, 1000, (256,))], [np.array(1000, np.int64), np.array([0, 1], np.float32)])
    yield Case("grid_sample", "GridSample", [real(1, 32, 56, 56), real(1, 56, 56, 2)])
    yield Case("gemm", "Gemm", [real(64, 512)], [real(1000, 512), real(1000)], transB=1)
    yield Case("matrix_vector", "MatMul", [real(1, 2048)], [real(2048, 1000)])
    yield Case("products_of_heads", "MatMul", [real(12, 128, 64), real(12, 64, 128)])
    yield Case("products_of_8", "MatMul", [real(1000, 8, 8), real(1000, 8, 8)])
    for batch, directions in ((1, 1), (16, 1), (1, 2)):
        yield recurrence("LSTM", 4, batch, directions, direction="bidirectional" if directions > 1 else "forward")
    yield recurrence("GRU", 3, linear_before_reset=1)
    for op in ("Gelu", "Erf", "Sin"):
        yield Case(op.lower(), op, [real(512, 1024)])
    yield Case("cast_to_f16", "Cast", [real(512, 1024)], to=onnx.TensorProto.FLOAT16)
    yield Case("cast_to_i64", "Cast", [real(512, 1024)], to=onnx.TensorProto.INT64)
    yield Case("quantise", "QuantizeLinear", [real(512, 1024)], [np.array(0.01, np.float32), np.array(3, np.uint8)])


def main():
    words, options = [], sys.argv[1:]
    while options and not options[0].startswith("-"):
        words.append(options.pop(0))
    if options and options[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    with tempfile.TemporaryDirectory(prefix="uir-operators-") as folder:
        names = []
        for case in cases():
            if not words or any(word in case.name for word in words):
                case.write(folder)
                names.append(case.name)
        if not names:
            raise SystemExit("operators.py: no operator is called so; there are: " + " ".join(case.name for case in cases()))
        return subprocess.run([sys.executable, os.path.join(HERE, "models.py"), *names, "--models", folder, *options]).returncode


if __name__ == "__main__":
    sys.exit(main())
