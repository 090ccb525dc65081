"""Ops as opsets 1 to 6 have them: attributes that became inputs, placed broadcasts, names of element types."""
import numpy as np
from onnx import helper

RANDOM = np.random.default_rng(13)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def model(opset, op, inputs, outputs, initializers=(), **attributes):
    names = [chr(ord("a") + i) for i in range(len(inputs))]
    results = [f"y{i}" for i in range(len(outputs))]
    constants = {names[i]: inputs[i] for i in initializers}

    def info(name, value):
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)

    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attributes)], op,
        [info(n, v) for n, v in zip(names, inputs) if n not in constants], [info(n, v) for n, v in zip(results, outputs)],
        [helper.make_tensor(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape, v.flatten()) for n, v in
         constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)
    return made, [v for n, v in zip(names, inputs) if n not in constants], outputs


def placed(b, rank, axis):
    return b.reshape(b.shape + (1,) * (rank - axis - b.ndim))


def binary():
    rows = (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide),
            ("Pow", lambda a, b: np.abs(a) ** b), ("Greater", np.greater), ("Less", np.less))
    x = floats(2, 3, 4, 5)
    for op, function in rows:
        a = np.abs(x) if op == "Pow" else x
        for axis, shape in ((0, (2,)), (1, (3, 4)), (1, (3,)), (2, (4, 5)), (-1, (5,)), (None, (4, 5)), (1, (1,))):
            b = floats(*shape)
            attributes = {"broadcast": 1} if axis is None else {"broadcast": 1, "axis": axis}
            start = 4 - b.ndim if axis is None else axis % 4
            y = function(a, placed(b, 4, start))
            opset = 6 if op in ("Add", "Sub", "Mul", "Div") else 1
            yield (f"{op.lower()}_axis_{axis}_{'x'.join(map(str, shape))}",) + model(opset, op, [a, b], [y], **attributes)
    p, q = x > 0, floats(3) > 0
    yield ("and_axis_1",) + model(1, "And", [p, q], [p & placed(q, 4, 1)], broadcast=1, axis=1)
    yield ("add_1_equal_shapes",) + model(1, "Add", [x, x], [x + x], consumed_inputs=[0, 0])


def others():
    x = floats(2, 3, 4)
    slope = np.array([0.1, 0.2, 0.3], np.float32)
    yield ("prelu_6",) + model(6, "PRelu", [x, slope], [np.where(x < 0, x * slope[:, None], x)])
    yield ("prelu_1_shared",) + model(1, "PRelu", [x, slope[:1]], [np.where(x < 0, x * slope[0], x)])
    for name, dtype in (("INT32", np.int32), ("DOUBLE", np.float64), ("BOOL", np.bool_), ("UINT8", np.uint8)):
        v = np.abs(x) * 3
        yield (f"cast_1_{name.lower()}",) + model(1, "Cast", [v], [v.astype(dtype)], to=name)
    yield ("concat_1",) + model(1, "Concat", [x, x], [np.concatenate([x, x], 1)])
    yield ("reshape_1",) + model(1, "Reshape", [x], [x.reshape(2, 12)], shape=[0, -1])
    yield ("pad_1",) + model(1, "Pad", [x], [np.pad(x, ((1, 0), (0, 2), (1, 1)), constant_values=2)],
                             paddings=[1, 0, 1, 0, 2, 1], value=2.0)
    yield ("tile_1",) + model(1, "Tile", [x, np.array(3, np.int64), np.array(1, np.int64)], [np.tile(x, (1, 3, 1))],
                              initializers=(1, 2))
    yield ("split_1",) + model(1, "Split", [x], [x[:, :1], x[:, 1:]], axis=1, split=[1, 2])
    image = floats(1, 2, 3, 4)
    yield ("upsample_1",) + model(1, "Upsample", [image], [image.repeat(2, 2).repeat(3, 3)], height_scale=2.0,
                                  width_scale=3.0, mode="nearest")
    norm = np.sqrt((image ** 2).sum(axis=(2, 3), keepdims=True))
    yield ("global_lp_pool_1",) + model(1, "GlobalLpPool", [image], [norm], p=2.0)
    yield ("selu_1",) + model(1, "Selu", [x], [np.where(x > 0, 1.0507 * x, 1.0507 * 1.6732 * (np.exp(x) - 1)).astype(
        np.float32)])
    yield ("clip_1",) + model(1, "Clip", [x], [np.clip(x, -0.5, 0.5)], min=-0.5, max=0.5)
    yield ("dropout_6_test",) + model(6, "Dropout", [x], [x], is_test=1, ratio=0.3)
    channel = [np.abs(floats(2)) + 0.5 for _ in range(4)]
    s, b, m, v = (c[:, None, None] for c in channel)
    y = (image - m) / np.sqrt(v + 1e-5) * s + b
    yield ("batch_normalization_6",) + model(6, "BatchNormalization", [image] + channel, [y], is_test=1, epsilon=1e-5)
    each = [np.abs(floats(2, 3, 4)) + 0.5 for _ in range(4)]
    s, b, m, v = each
    for opset in (6, 7):
        test = {"is_test": 1} if opset == 6 else {}
        yield (f"batch_normalization_{opset}_each",) + model(
            opset, "BatchNormalization", [image] + each, [(image - m) / np.sqrt(v + 1e-5) * s + b], spatial=0, **test)


def cases():
    yield from binary()
    yield from others()


def hostile():
    x = floats(2, 3)
    for name, op, inputs, attributes in (
            ("add_axis_outside", "Add", [x, floats(2)], {"broadcast": 1, "axis": 7}),
            ("add_axis_no_room", "Add", [x, floats(3, 2)], {"broadcast": 1, "axis": 1}),
            ("cast_name", "Cast", [x], {"to": "NUMBER"}), ("reshape_no_shape", "Reshape", [x], {}),
            ("tile_no_axis", "Tile", [x, np.array(2, np.int64)], {}),
            ("upsample_zero", "Upsample", [floats(1, 1, 2, 2)], {"height_scale": 0.0, "width_scale": 1.0}),
            ("lp_pool_p", "GlobalLpPool", [floats(1, 1, 2, 2)], {"p": 0.5})):
        yield name, model(1, op, inputs, [x], **attributes)[0]
