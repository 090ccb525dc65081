"""What the cases share: a model of one node or a few, and what ONNX Runtime says to it."""
import numpy as np
import onnxruntime as ort
from onnx import helper, numpy_helper

RANDOM = np.random.default_rng(13)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def texts(*values):
    return np.array(values, dtype=object)


def value_info(name, value):
    dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, dtype, value.shape)


def model_of(op, inputs, outputs=1, domain="", opset=22, ml=5, constants=(), **attributes):
    """A model of one node; inputs numbered in `constants` are initializers. The types of outputs are left open."""
    names = [f"x{i}" if value is not None else "" for i, value in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    graph = helper.make_graph(
        [node], op, [value_info(n, v) for i, (n, v) in enumerate(zip(names, inputs)) if n and i not in constants],
        [helper.make_empty_tensor_value_info(name) for name in results],
        [numpy_helper.from_array(inputs[i], names[i]) for i in constants])
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", ml)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def run_ort(model, inputs):
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {port.name: value for port, value in zip(session.get_inputs(), inputs)})


def by_ort(name, op, inputs, outputs=1, constants=(), **attributes):
    model = model_of(op, inputs, outputs, constants=constants, **attributes)
    given = [value for i, value in enumerate(inputs) if value is not None and i not in constants]
    try:
        return name, model, given, run_ort(model, given)
    except ort.capi.onnxruntime_pybind11_state.NotImplemented:
        # It lacks the element type: what it says to the same numbers as f32.
        cast = [value.astype(np.float32) for value in inputs]
        return name, model, given, run_ort(model_of(op, cast, outputs, **attributes), cast)
