"""What becomes a constant when the model is read, also where it is an output, and what is selected by constants."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from dfcompile.errors import UserError
from dfcompile.frontend import ReadOptions
from dfcompile.frontend.onnx_model import program_of
from dfcompile.lowering import lower_to_canonical, lower_to_maps, registered_expansions
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Node, check_node, lowered, random, scopes
from tests.onnx_text import model_from_text, program_from_text

TABLE = registered_expansions()
X = random((2, 3))


@pytest.mark.parametrize(
    ("op_type", "operands", "attributes", "expected"),
    [
        ("Shape", [X], {}, np.array([2, 3])),
        ("Shape", [X], {"start": -1}, np.array([3])),
        ("Size", [X], {}, np.array(6)),
        ("EyeLike", [X], {"k": 1}, np.eye(2, 3, 1, dtype=np.float32)),
        ("EyeLike", [X], {"dtype": 7}, np.eye(2, 3, dtype=np.int64)),
    ],
)
def test_what_a_shape_gives_is_copied_to_its_output(
    op_type: str, operands: list[Array], attributes: dict[str, int], expected: Array
) -> None:
    program = check_node(Node(op_type, operands, attributes=attributes), expected)

    assert scopes(program) == ["y0_copy"]


def test_a_shape_that_is_an_output_is_a_constant_to_others() -> None:
    program = program_from_text(
        "g (float[2,3] x) => (int64[2] s, float[2,3] y) { s = Shape(x) f = Identity(x) y = Expand(f, s) }"
    )

    assert [port.name for port in program.outputs] == ["s", "y"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "int64"])
def test_a_range_of_constants(dtype: str) -> None:
    operands = [np.array(value, dtype) for value in (1, 6, 2)]

    check_node(Node("Range", operands, [0, 1, 2], opset=27), np.array([1, 3, 5], dtype))


def test_a_range_of_too_much_is_not_made() -> None:
    operands = [np.array(value, "float16") for value in (0, np.inf, 1)]
    with pytest.raises(UserError, match=r"node 'op': the shape of 'y0' depends on data"):
        lowered(Node("Range", operands, [0, 1, 2], opset=27).model())


def test_what_stands_between_the_elements_of_a_window_plays_no_part() -> None:
    """The reference implementation multiplies it by 0, of which infinity leaves nothing defined."""
    x = np.array([1, np.inf, 2, 5], np.float32).reshape(1, 1, 4)
    program = program_from_text(
        "g (float[1,1,1] z) => (float[1,1,1] y) { a = Conv<dilations = [2], strides = [2]>(x, w) y = Add(a, z) }",
        x=x, w=np.array([[[3, 4]]], np.float32),
    )  # fmt: skip
    maps = lower_to_maps(lower_to_canonical(program, TABLE), TABLE)

    assert interpret(maps, {"z": np.zeros((1, 1, 1), np.float32)})["y"].tolist() == [[[11.0]]]


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_what_a_constant_selects_are_elements_at_indices(axis: int | None) -> None:
    x, condition = random((4, 6)), np.array([True, False, True, True])
    attributes = {} if axis is None else {"axis": axis}
    node = Node("Compress", [x, condition], [1], attributes)

    check_node(node, np.compress(condition, x, axis))


def test_what_data_selects_is_refused() -> None:
    with pytest.raises(UserError, match=r"node 'op': the shape of 'y0' depends on data .* \(Compress of values"):
        lowered(Node("Compress", [random((4,)), random((4,), "bool")]).model())


def test_the_shape_of_a_selection_is_known_to_what_follows() -> None:
    text = """g (float[4,6] x) => (y) {
        c = Constant<value=bool[4] {1,0,1,1}>() s = Compress<axis=0>(x, c) n = Shape(s) z = Relu(s) y = Expand(z, n)
    }"""

    (port,) = program_from_text(text).outputs

    assert port.shape == (3, 6)


def test_positions_that_depend_on_data_are_refused() -> None:
    text = '<ir_version: 9, opset_import: ["" : 18]> g (float[4,6] x) => (y) { [n] y = NonZero(x) }'
    with pytest.raises(UserError, match=r"node 'n': the shape of 'y' depends on data"):
        program_of("g", onnx.parser.parse_model(text), ReadOptions())


@pytest.mark.parametrize(
    ("opset", "node", "shapes"),
    [
        (11, "a, b = Split<axis=1, split=[2,5]>(w)", ("6,2", "6,5")),
        (13, "a, b = Split<axis=-1>(w, n)", ("6,3", "6,4")),
        (13, "a, b = Split(w)", ("3,7", "3,7")),
        (18, "a, b = Split<axis=1, num_outputs=2>(w)", ("6,4", "6,3")),
        (18, "a, b = Split<num_outputs=2, axis=-2>(w)", ("3,7", "3,7")),
        (13, "a = Transpose(w) b = Transpose<perm=[1,0]>(w)", ("7,6", "7,6")),
        (13, "a = Transpose<perm=[0,1]>(w) b = Transpose<perm=[1,0]>(a)", ("6,7", "7,6")),
    ],
)
def test_parts_of_constants_are_those_of_the_reference(opset: int, node: str, shapes: tuple[str, str]) -> None:
    w, n = np.arange(42, dtype=np.float32).reshape(6, 7), np.array([3, 4], np.int64)
    types = f"(float[1] x) => (float[{shapes[0]}] y, float[{shapes[1]}] z)"
    model = model_from_text(f"g {types} {{ {node} y = Add(a, x) z = Add(b, x) }}", w=w, n=n)
    model.opset_import[0].version = opset
    x = np.ones(1, np.float32)

    maps = lowered(model)
    found = interpret(maps, {"x": x})

    assert {scope.partition("_")[0] for scope in scopes(maps)} == {"Add"}  # nothing else is left
    for port, theirs in zip(maps.outputs, ReferenceEvaluator(model).run(None, {"x": x}), strict=True):
        np.testing.assert_array_equal(found[port.name], theirs)


def test_a_part_without_a_name_is_left_out() -> None:
    text = "g (float[1] x) => (float[3] y) { a, b = Split(w) y = Add(b, x) }"
    model = model_from_text(text, w=np.arange(6, dtype=np.float32))
    model.graph.node[0].output[0] = ""
    maps = lowered(model)

    assert scopes(maps) == ["Add_0"]
    assert interpret(maps, {"x": np.ones(1, np.float32)})[maps.outputs[0].name].tolist() == [4, 5, 6]


@pytest.mark.parametrize("extents", [[4, 4], [1, 2], [2, 2, 2]])
def test_parts_that_are_not_those_of_a_constant_are_refused(extents: list[int]) -> None:
    text = "g (float[1] x) => (float[P] y) { a, b = Split(w, n) y = Add(b, x) }"
    with pytest.raises(UserError):
        lowered(model_from_text(text, w=np.arange(6, dtype=np.float32), n=np.array(extents)))
