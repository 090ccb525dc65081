"""ONNX test folders in other clothes, run by conformance_suite: what a rule decides from shapes and constants must come out
the same when it learns them at another time.

  plain      as it is
  symbolic   every extent of every tensor input is a symbol, but the length of a list (integers or booleans of rank 1)
  unsized    the length of each list, too; results keep their ranks, which some lists' lengths follow from
  lists      integer and boolean inputs of rank 0 and 1 (axes, starts, pads, sizes ..) are constants
  constant   every input is a constant: the whole model folds
  inputs     every constant (initializers, Constant nodes of the main graph) is an input, with symbols for extents

  run_variants.py [--device NAME] [--interpret] [--folder DIR] [VARIANT...]

Default: the onnx suite's node tests on the interpreter, all variants but `plain`. Function bodies (`_expanded`) are left out: they are
the same rules again. A test with several data sets is taken with its first. Writes to build/variants."""
import glob
import os
import shutil
import sys

import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from suite import ROOT, Suite, make_parser, read_counts, run  # noqa: E402

TESTS = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "node")
OUT = os.path.join(ROOT, "build", "variants")
LISTS = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)


def tensor_type(value):
    return value.type.tensor_type if value.type.HasField("tensor_type") else None


def is_list(kind):
    return kind.elem_type in LISTS and len(kind.shape.dim) == 1


def free_dims(model, lists):
    """Makes a symbol of each extent; how many were made."""
    count = 0
    for value in model.graph.input:
        kind = tensor_type(value)
        if kind is None or (is_list(kind) and not lists):
            continue
        for dim in kind.shape.dim:
            dim.Clear()
            dim.dim_param = f"D{count}"
            count += 1
    return count


def make_symbolic(model, _folder):
    return list(range(len(model.graph.input))) if free_dims(model, False) else None


def make_unsized(model, _folder):
    """Where there are lists: else it is the variant before."""
    lists = any(is_list(kind) for kind in map(tensor_type, model.graph.input) if kind is not None)
    return list(range(len(model.graph.input))) if lists and free_dims(model, True) else None


def make_constant(model, folder, lists_only=False):
    """Turns inputs into initializers; the numbers of those that stay, or None when nothing changed."""
    stay, made = [], []
    for number, value in enumerate(model.graph.input):
        kind = tensor_type(value)
        path = os.path.join(folder, "test_data_set_0", f"input_{number}.pb")
        wanted = kind is not None and kind.elem_type != TensorProto.STRING and os.path.exists(path)
        if lists_only:
            wanted = wanted and kind.elem_type in LISTS and len(kind.shape.dim) < 2
        if not wanted:
            stay.append((number, value))
            continue
        tensor = TensorProto()
        with open(path, "rb") as f:
            tensor.ParseFromString(f.read())
        tensor.name = value.name
        made.append(tensor)
    values = [value for _, value in stay]
    del model.graph.input[:]
    model.graph.input.extend(values)
    model.graph.initializer.extend(made)
    return [number for number, _ in stay] if made else None


def make_lists(model, folder):
    return make_constant(model, folder, True)


def make_inputs(model, _folder):
    """Turns constants into inputs, whose tensors come after the numbers of those that were inputs before."""
    graph = model.graph
    constants = [t for t in graph.initializer if t.data_type != TensorProto.STRING]
    for node in list(graph.node):
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx") and node.attribute[0].name == "value":
            tensor = TensorProto()
            tensor.CopyFrom(node.attribute[0].t)
            tensor.name = node.output[0]
            constants.append(tensor)
            graph.node.remove(node)
    stay = [number for number, value in enumerate(graph.input) if value.name not in {t.name for t in constants}]
    for t in constants:
        graph.initializer.remove(t) if t in graph.initializer else None
    values = [graph.input[number] for number in stay]
    values += [helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)) for t in constants]
    del graph.input[:]
    graph.input.extend(values)
    free_dims(model, False)
    del graph.value_info[:]
    return stay + [numpy_helper.to_array(t) for t in constants] if constants else None


def make_plain(model, _folder):
    return list(range(len(model.graph.input)))


VARIANTS = {"plain": make_plain, "symbolic": make_symbolic, "unsized": make_unsized, "lists": make_lists, "constant": make_constant,
            "inputs": make_inputs}


def drop_overridden(model, folder):
    """A default that the data set gives another value of is an input like others."""
    given = {value.name for number, value in enumerate(model.graph.input)
             if os.path.exists(os.path.join(folder, "test_data_set_0", f"input_{number}.pb"))}
    stay = [t for t in model.graph.initializer if t.name not in given]
    del model.graph.initializer[:]
    model.graph.initializer.extend(stay)


def write(variant, folder):
    model = onnx.load(os.path.join(folder, "model.onnx"))
    drop_overridden(model, folder)
    inputs = VARIANTS[variant](model, folder)
    if inputs is None:
        return
    for value in model.graph.output:
        if tensor_type(value) is not None and variant != "unsized":
            value.type.tensor_type.ClearField("shape")
        elif tensor_type(value) is not None:
            for dim in value.type.tensor_type.shape.dim:
                dim.Clear()
    target = os.path.join(OUT, variant, "node", os.path.basename(folder))
    data = os.path.join(target, "test_data_set_0")
    os.makedirs(data)
    onnx.save(model, os.path.join(target, "model.onnx"))
    for new, old in enumerate(inputs):
        path = os.path.join(data, f"input_{new}.pb")
        if not isinstance(old, int):
            onnx.save_tensor(numpy_helper.from_array(old), path)
        elif os.path.exists(given := os.path.join(folder, "test_data_set_0", f"input_{old}.pb")):
            os.symlink(given, path)
    for path in glob.glob(os.path.join(folder, "test_data_set_0", "output_*.pb")):
        os.symlink(path, os.path.join(data, os.path.basename(path)))


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--device", default="interpreter")
    parser.add_argument("--interpret", action="store_true")
    parser.add_argument("--folder", default=TESTS, help="of the tests, each a folder with a model and data sets")
    parser.add_argument("variants", nargs="*", metavar="VARIANT")
    options = parser.parse_args()
    tests = [os.path.join(os.path.abspath(options.folder), name) for name in sorted(os.listdir(options.folder))
             if not name.endswith("_expanded") and "_expanded_" not in name]
    suite, left_out = Suite(), 0
    for variant in options.variants or list(VARIANTS)[1:]:
        shutil.rmtree(os.path.join(OUT, variant), ignore_errors=True)
        for test in tests:
            if os.path.exists(os.path.join(test, "model.onnx")):
                write(variant, test)
        if not os.path.isdir(os.path.join(OUT, variant)):
            continue
        result = run("conformance_suite", "--data", os.path.join(OUT, variant), "--device", options.device, "--timeout", "120",
                     *["--interpret"] * options.interpret, cwd=ROOT)
        for line in result.stdout.splitlines():
            if line.startswith("FAILED"):
                print(f"{variant}: {line}")
        counts = read_counts(result.stdout)
        if not counts:
            suite.tell(False, f"{variant}: the suite ended with {result.returncode} and no sum")
            continue
        passed, failed, skipped = counts
        print(f"{variant}: {passed} passed, {failed} fail, {skipped} unsupported or random")
        suite.add(passed, failed)
        left_out += skipped
    if left_out:
        suite.skip(f"{left_out} variants: unsupported or random, as conformance_suite lists them", left_out)
    return suite.end()


if __name__ == "__main__":
    sys.exit(main())
