"""Lists whose length the model does not declare (TopK's k, a shape, pads, axes ..): a symbol, or an input without any
shape. Also what opsets below 9 leave open: Tile of opset 1 by numbers of any type, Scan of opset 8 by lengths."""
import numpy as np
from made import floats, run_ort
from made_opsets import model as old_model
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

F = TensorProto.FLOAT
LISTS = (np.dtype(np.int64),)


def integers(*values):
    return np.array(values, np.int64)


def numbers(*values):
    return np.array(values, np.float32)


def row(op, *inputs, outputs=1, rank=None, opset=21, lists=(), attributes=None):
    """`rank`: of the results, declared. `lists`: which inputs are lists; those of integers without being named."""
    return op, inputs, outputs, rank, opset, lists, attributes or {}


X = floats(2, 3, 4)
ROWS = {
    "top_k": row("TopK", X, integers(2), outputs=2),
    "expand": row("Expand", X, integers(2, 1, 1)),
    "expand_short": row("Expand", X, integers(1, 4)),
    "expand_declared": row("Expand", X, integers(5, 2, 3, 4), rank=4),
    "expand_none": row("Expand", X, integers()),
    "reshape": row("Reshape", X, integers(4, -1), rank=2),
    "constant_of_shape": row("ConstantOfShape", integers(4, 6), rank=2),
    "tile": row("Tile", X, integers(1, 2, 3)),
    "pad": row("Pad", X, integers(0, 1, 2, 1, 0, 1)),
    "pad_axes": row("Pad", X, integers(2, 1), None, integers(-1)),
    "slice": row("Slice", X, integers(0, 1), integers(1, 3)),
    "slice_axes": row("Slice", X, integers(0, 1), integers(1, 3), integers(1, 2), integers(1, 2)),
    "split": row("Split", X, integers(1, 3), outputs=2, attributes={"axis": 2}),
    "resize_sizes": row("Resize", X, None, None, integers(2, 6, 4)),
    "resize_scales": row("Resize", X, None, numbers(1, 2, 1), lists=(2,)),
    "resize_axes": row("Resize", X, None, None, integers(6, 4), attributes={"axes": [1, 2]}),
    "resize_10": row("Resize", X, numbers(1, 2, 1), lists=(1,), opset=10),
    "resize_roi": row("Resize", X, numbers(0, 0.1, 0.1, 1, 0.9, 0.8), None, integers(2, 6, 4), lists=(1,),
                      attributes={"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear"}),
    "upsample": row("Upsample", X, numbers(1, 2, 1), lists=(1,), opset=9),
    "squeeze": row("Squeeze", X.reshape(1, 6, 1, 4), integers(0, 2), rank=2),
    "unsqueeze": row("Unsqueeze", X, integers(0, 2), rank=5),
    "center_crop_pad": row("CenterCropPad", X, integers(2, 2, 5)),
    "center_crop_pad_axes": row("CenterCropPad", X, integers(2), attributes={"axes": [1]}),
    "reduce_keep": row("ReduceSum", X, integers(0, 2)),
    "reduce_drop": row("ReduceMean", X, integers(0, 2), rank=1, attributes={"keepdims": 0}),
    "affine_grid": row("AffineGrid", floats(2, 2, 3), integers(2, 3, 4, 5)),
    "max_unpool": row("MaxUnpool", floats(1, 1, 2, 2), integers(5, 7, 13, 15).reshape(1, 1, 2, 2), integers(1, 1, 4, 4),
                      attributes={"kernel_shape": [2, 2], "strides": [2, 2]}),
    "col2im": row("Col2Im", floats(1, 5, 5), integers(5, 5), integers(1, 5), rank=4),
    "col2im_strides": row("Col2Im", floats(1, 5, 5), integers(5, 5), integers(1, 5), attributes={"strides": [1, 1]}),
}
FREE = {"affine_grid": (1, 2), "max_unpool": (2, 3), "col2im": (1, 2), "col2im_strides": (1, 2)}  # fixed dims of input 0


def model_of(name, declared):
    """`declared`: "all", "symbols" or "nothing", of lists; all is for ONNX Runtime, which refuses many of the others."""
    op, inputs, outputs, rank, opset, lists, attributes = ROWS[name]
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    infos = []
    for i, value in enumerate(inputs):
        if value is None:
            continue
        is_list = i in lists or (value.dtype in LISTS and value.ndim == 1)
        dims = [d if name in FREE and (i or a in FREE[name]) else f"d{i}_{a}" for a, d in enumerate(value.shape)]
        dims = {"symbols": [f"n{i}"], "nothing": None}[declared] if is_list and declared != "all" else dims
        dims = value.shape if declared == "all" else dims
        infos.append(helper.make_tensor_value_info(names[i], helper.np_dtype_to_tensor_dtype(value.dtype), dims))
    ports = [helper.make_empty_tensor_value_info(y) if rank is None else
             helper.make_tensor_value_info(y, F, [f"{y}_{a}" for a in range(rank)]) for y in results]
    graph = helper.make_graph([helper.make_node(op, names, results, **attributes)], op, infos, ports)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def make(name, declared):
    given = [value for value in ROWS[name][1] if value is not None]
    whole = model_of(name, "all")
    if name == "resize_roi":  # ONNX Runtime is not what the reference says, with fixed shapes too
        expected = ReferenceEvaluator(whole).run(None, {port.name: v for port, v in zip(whole.graph.input, given)})
    else:
        expected = run_ort(whole, given)
    return f"length_{name}_{declared}", model_of(name, declared), given, expected


def scan(lengths, direction, symbolic):
    """Sums along each sequence; behind its end zeros."""
    def info(name, dims, dtype=F):
        return helper.make_tensor_value_info(name, dtype, dims)

    x, start = floats(2, 4, 3), floats(2, 3)
    body = helper.make_graph([helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Neg", ["t"], ["o"])], "body",
                             [info("s", [3]), info("e", [3])], [info("t", [3]), info("o", [3])])
    node = helper.make_node("Scan", ["n", "start", "x"], ["end", "y"], body=body, num_scan_inputs=1,
                            directions=[direction])
    batch, steps = ("b", "t") if symbolic else (2, 4)
    graph = helper.make_graph([node], "scan", [info("n", [batch], TensorProto.INT64), info("start", [batch, 3]),
                                               info("x", [batch, steps, 3])],
                              [info("end", [batch, 3]), info("y", [batch, steps, 3])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=3)
    end, y = start.copy(), np.zeros_like(x)
    for i, length in enumerate(lengths):
        for t in range(length):
            end[i] += x[i, length - 1 - t if direction else t]
            y[i, t] = -end[i]
    name = f"scan_8_{'_'.join(map(str, lengths))}_{direction}{'_symbolic' if symbolic else ''}"
    given = [integers(*lengths), start, x]
    if 0 not in lengths:  # ONNX Runtime wants one step at least
        for mine, theirs in zip([end, y], run_ort(model, given)):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6, err_msg=name)
    return name, model, given, [end, y]


def tiles():
    x = floats(2, 3)
    for name, tile, axis in (("float", numbers(2), numbers(1)), ("negative", numbers(3), numbers(-2)),
                             ("scalar", np.float32(2), np.float32(0)), ("none", numbers(0), numbers(1))):
        count, place = int(np.ravel(tile)[0]), int(np.ravel(axis)[0])
        y = np.concatenate([x] * count, place) if count else np.zeros((2, 0), np.float32)
        for constants in ((), (1, 2), (2,)):
            yield (f"tile_1_{name}_{len(constants)}",) + old_model(
                1, "Tile", [x, np.asarray(tile), np.asarray(axis)], [y], initializers=constants)


def cases():
    for name in ROWS:
        for declared in ("symbols", "nothing"):
            yield make(name, declared)
    for lengths in ((3, 4), (1, 2), (4, 4), (0, 3)):
        for direction in (0, 1):
            for symbolic in (False, True):
                yield scan(lengths, direction, symbolic)
    yield from tiles()


def hostile():
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "s"], ["y"])], "no rank at all",
                              [helper.make_tensor_value_info("x", F, [2, 3]),
                               helper.make_tensor_value_info("s", TensorProto.INT64, ["n"])],
                              [helper.make_empty_tensor_value_info("y")])
    yield "reshape_no_rank", helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
