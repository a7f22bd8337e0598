"""Models of operator sets 1 to 6 mean what these said: the models that ONNX publishes, and what they do not have."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from dfcompile.errors import UserError
from dfcompile.frontend import ReadOptions
from dfcompile.frontend.onnx_model import program_of
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Attribute, assert_same, lowered

PUBLISHED = Path(onnx.__file__).parent / "backend" / "test" / "data"
LARGE = (
    "test_operator_conv",  # 68 million products, of a convolution like the others
    "test_MaxPool1d_stride_padding_dilation",  # a million elements, as in two dimensions
)


def first_of_each_form() -> list[Path]:
    """Return one published model for each set of operators, names of attributes and numbers of operands."""
    found: dict[object, Path] = {}
    for kind in ("pytorch-converted", "pytorch-operator"):
        for path in sorted(PUBLISHED.glob(f"{kind}/*/model.onnx")):
            if path.parent.name not in LARGE:
                nodes = onnx.load(str(path)).graph.node
                form = {(node.op_type, *sorted(one.name for one in node.attribute), len(node.input)) for node in nodes}
                found.setdefault(frozenset(form), path.parent)
    return list(found.values())


FOLDERS = first_of_each_form()


def old_model(
    op_type: str,
    operands: Sequence[Array],
    attributes: Mapping[str, Attribute],
    opset: int,
    constants: Sequence[int] = (),
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Return a model of one node, in the form of files of that time, and its feeds."""
    names = [f"x{at}" for at in range(len(operands))]
    node = helper.make_node(op_type, names, ["y"], name="old")
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in zip(names, operands, strict=True)
    ]
    graph = helper.make_graph(
        [node],
        "old",
        inputs,
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(operands[at], names[at]) for at in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)
    return model, {
        name: value for at, (name, value) in enumerate(zip(names, operands, strict=True)) if at not in constants
    }


def reals(*shape: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def read(folder: Path, kind: str) -> list[Array]:
    paths = sorted(folder.glob(f"test_data_set_0/{kind}_*.pb"), key=lambda path: int(path.stem.rpartition("_")[2]))
    return [numpy_helper.to_array(onnx.load_tensor(str(path))) for path in paths]


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_published_models(folder: Path) -> None:
    model, given_values = onnx.load(str(folder / "model.onnx")), read(folder, "input")
    initializers = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input]
    if len(given_values) < len(names):
        names = [name for name in names if name not in initializers]
    feeds = {name: value for name, value in zip(names, given_values, strict=True) if name not in initializers}
    for value in [value for value in model.graph.input if value.name in feeds]:
        if feeds[value.name].dtype.kind == "i" and len(feeds) > 1:  # such as how often a Tile repeats
            model.graph.initializer.append(numpy_helper.from_array(feeds.pop(value.name), value.name))

    expected = dict(zip((value.name for value in model.graph.output), read(folder, "output"), strict=True))
    assert_same(interpret(lowered(model), feeds), expected, 1e-4, 1e-5)


@examples(40)
@given(st.data())
def test_second_operand_stands_where_its_axis_says(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    first = data.draw(st.integers(0, len(shape) - 1))
    last = data.draw(st.integers(first + 1, len(shape)))
    left, right = reals(*shape), reals(*shape[first:last])
    axis = first - len(shape) if data.draw(st.booleans()) else first
    op_type, function = data.draw(st.sampled_from([("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply)]))
    opset = data.draw(st.sampled_from([1, 5, 6]))
    model, feeds = old_model(op_type, [left, right], {"broadcast": 1, "axis": axis}, opset)

    expected = function(left, right.reshape(*right.shape, *(1,) * (len(shape) - last)))
    assert_same(interpret(lowered(model), feeds), {"y": expected}, 1e-6, 1e-6)


X = reals(2, 3, 4)
FORMS: Mapping[str, tuple[str, Sequence[Array], Mapping[str, Attribute], int, Sequence[int], Array]] = {
    "the last dimensions without an axis": ("Add", [X, reals(4)], {"broadcast": 1}, 6, (), X + reals(4)),
    "one element wherever its axis is": (
        "Pow", [abs(X), np.full((1,), 2, np.float32)], {"broadcast": 1, "axis": 0}, 1, (), X * X,
    ),
    "names of element types": ("Cast", [X], {"to": "INT32"}, 1, (), X.astype(np.int32)),
    "channels by default": ("Concat", [X, X], {}, 1, (), np.concatenate([X, X], 1)),
    "no mask": ("Dropout", [X], {"is_test": 1, "ratio": 0.5}, 6, (), X),
    "a sum that is broadcast": (
        "Gemm", [reals(2, 3), reals(3, 4), reals(4)], {"broadcast": 1}, 6, (), reals(2, 3) @ reals(3, 4) + reals(4),
    ),
    "a power that is a real": (
        "GlobalLpPool", [X], {"p": 2.0}, 1, (), np.sqrt((X * X).sum(2, keepdims=True)),
    ),
    "a slope per channel": (
        "PRelu", [X, reals(3)], {}, 6, (1,), np.where(X < 0, X * reals(3)[:, None], X).astype(np.float32),
    ),
    "paddings": ("Pad", [X], {"paddings": [0, 0, 1, 0, 1, 0]}, 1, (), np.pad(X, ((0, 0), (0, 1), (1, 0)))),
    "a shape that is an attribute": ("Reshape", [X], {"shape": [0, -1]}, 1, (), X.reshape(2, 12)),
    "rounded numbers of Selu": (
        "Selu", [X], {}, 1, (), (1.0507 * np.where(X > 0, X, 1.6732 * np.expm1(X))).astype(np.float32),
    ),
    "a Tile along one axis": (
        "Tile", [X, np.array([3], np.float32), np.array([1], np.float32)], {}, 1, (1, 2), np.tile(X, (1, 3, 1)),
    ),
    "scales of height and width": (
        "Upsample", [reals(1, 2, 2, 3)], {"height_scale": 2.0, "width_scale": 3.0}, 1, (),
        reals(1, 2, 2, 3).repeat(2, 2).repeat(3, 3),
    ),
    "where results might be put": ("Relu", [X], {"consumed_inputs": [0]}, 1, (), np.maximum(X, 0)),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_what_an_operator_once_meant(
    form: tuple[str, Sequence[Array], Mapping[str, Attribute], int, Sequence[int], Array],
) -> None:
    op_type, operands, attributes, opset, constants, expected = form
    model, feeds = old_model(op_type, operands, attributes, opset, constants)

    assert_same(interpret(lowered(model), feeds), {"y": expected}, 1e-5, 1e-6)


def test_lengths_of_a_split_that_are_an_operand() -> None:
    x, lengths = reals(5, 2), np.array([2, 3], np.float32)
    model, feeds = old_model("Split", [x, lengths], {"axis": 0}, 1, (1,))
    model.graph.node[0].output.append("z")
    model.graph.output.append(helper.make_empty_tensor_value_info("z"))

    assert_same(interpret(lowered(model), feeds), {"y": x[:2], "z": x[2:]}, 0, 0)


@pytest.mark.parametrize(
    ("op_type", "operands", "attributes", "opset", "message"),
    [
        ("Dropout", [X], {}, 6, "attribute 'is_test' is 0, which trains, against 1"),
        ("BatchNormalization", [X, *[reals(3)] * 4], {}, 6, "attribute 'is_test' is 0, which trains, against 1"),
        ("Add", [X, reals(4)], {}, 6, "operands of 3 and 1 dimensions against attribute 'broadcast'"),
        ("Mul", [X, reals(3)], {"broadcast": 1, "axis": 3}, 6, "axis 3 against operands of 3 and 1 dimensions"),
        ("Cast", [X], {"to": "FLOTE"}, 1, "attribute 'to' is 'FLOTE' against the name of an element type"),
        ("LpPool", [X], {"p": 1.5, "kernel_shape": [2]}, 1, "attribute 'p' is 1.5 against an integer"),
        ("Tile", [X, reals(1), reals(1)], {}, 1, "operand 1 is computed by the model against a constant"),
    ],
)
def test_what_has_no_meaning_now_is_refused_by_name(
    op_type: str, operands: Sequence[Array], attributes: Mapping[str, Attribute], opset: int, message: str
) -> None:
    model, _ = old_model(op_type, operands, attributes, opset)

    with pytest.raises(UserError) as caught:
        program_of("old", model, ReadOptions())

    assert str(caught.value) == f"node 'old': {op_type} of operator set {opset}: {message}"
