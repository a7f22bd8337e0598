"""Operators that only move elements, against ONNX's reference implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UnsupportedOpError
from dfcompile.lowering import Choice
from tests.examples import examples
from tests.onnx_nodes import Array, Attribute, Node, check_node, random, scopes

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)
extents = st.lists(st.integers(2, 5), min_size=1, max_size=3).map(tuple)


@examples(30)
@given(shapes, st.sampled_from(["result-order", "data-order"]), st.data())
def test_transpose_by_any_permutation(shape: tuple[int, ...], name: str, data: st.DataObject) -> None:
    permutation = data.draw(st.permutations(range(len(shape))))
    node = Node("Transpose", [random(shape)], attributes={"perm": permutation})
    check_node(node, choices=[Choice("Transpose", name)])


@pytest.mark.parametrize("name", ["result-order", "data-order"])
def test_transpose_that_is_not_its_own_inverse(name: str) -> None:
    node = Node("Transpose", [random((2, 3, 4))], attributes={"perm": [1, 2, 0]})
    check_node(node, choices=[Choice("Transpose", name)])


def test_transpose_without_permutation_reverses_the_axes() -> None:
    check_node(Node("Transpose", [random((2, 3, 4))]))


def test_transpose_that_moves_only_extents_of_one_is_a_view() -> None:
    program = check_node(Node("Transpose", [random((2, 1, 3))], attributes={"perm": [1, 0, 2]}))

    assert len(scopes(program)) == 1  # the copy from an input to an output, which must be two arrays


@examples(60)
@given(extents, st.data())
def test_slice_with_any_start_and_step(shape: tuple[int, ...], data: st.DataObject) -> None:
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), min_size=1, unique=True))
    starts: list[int] = []
    ends: list[int] = []
    steps: list[int] = []
    for axis in axes:
        step = data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3]))
        length = shape[axis]
        first = data.draw(st.integers(0, length - 1))
        beyond = data.draw(st.sampled_from([-(10**6), -length - 1] if step < 0 else [10**6, length]))
        starts.append(data.draw(st.sampled_from([first, first - length])))
        ends.append(
            data.draw(st.sampled_from([beyond, first + (1 if step > 0 else -1) if step > 0 or first else beyond]))
        )
        steps.append(step)
    signed = [axis - len(shape) if data.draw(st.booleans()) else axis for axis in axes]
    operands: list[Array] = [random(shape), *(np.array(each, np.int64) for each in (starts, ends, signed, steps))]
    check_node(Node("Slice", operands, [1, 2, 3, 4]))


def test_slice_without_axes_and_steps() -> None:
    check_node(Node("Slice", [random((4, 5)), np.array([1, -3]), np.array([3, 100])], [1, 2]))
    check_node(Node("Slice", [random((4, 5)), np.array([1]), np.array([3])], [1, 2]))


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_split_into_given_lengths(axis: int, opset: int) -> None:
    length = 5 if axis == 0 else 6
    lengths = np.array([2, length - 3, 1], np.int64)
    check_node(Node("Split", [random((5, 6)), lengths], [1], {"axis": axis}, (1, 1, 1), opset))


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_split_into_a_number_of_parts(count: int) -> None:
    node = Node("Split", [random((7, 2))], attributes={"num_outputs": count}, results=(1,) * count)
    pieces = np.array_split(random((7, 2)), [-(-7 // count) * part for part in range(1, count)])
    if count == 1:
        check_node(node, pieces[0])
    else:
        check_node(node)


@examples(30)
@given(extents, st.integers(1, 4), st.data())
def test_concatenation_along_any_axis(shape: tuple[int, ...], count: int, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    operands = []
    for position in range(count):
        part = list(shape)
        part[axis] = data.draw(st.integers(1, 3))
        operands.append(random(part, seed=position))
    check_node(Node("Concat", operands, attributes={"axis": axis}))


@examples(30)
@given(shapes, st.data())
def test_expand_in_both_directions(shape: tuple[int, ...], data: st.DataObject) -> None:
    target = [data.draw(st.sampled_from([1, extent] if extent > 1 else [1, 3])) for extent in shape]
    target = [2, *target] if data.draw(st.booleans()) else target[data.draw(st.integers(0, 1)) :]
    check_node(Node("Expand", [random(shape), np.array(target, np.int64)], [1]))


@examples(30)
@given(shapes, st.data())
def test_tile_repeats_every_axis(shape: tuple[int, ...], data: st.DataObject) -> None:
    repeats = data.draw(st.lists(st.integers(1, 3), min_size=len(shape), max_size=len(shape)))
    check_node(Node("Tile", [random(shape), np.array(repeats, np.int64)], [1]))


@examples(60)
@given(extents, st.sampled_from(["constant", "edge", "reflect", "wrap"]), st.data())
def test_pad_in_any_mode(shape: tuple[int, ...], mode: str, data: st.DataObject) -> None:
    pads = [data.draw(st.integers(-1 if mode == "constant" else 0, extent - 1)) for extent in shape * 2]
    pads = [pads[axis] if shape[axis % len(shape)] > 2 else max(pads[axis], 0) for axis in range(len(pads))]
    border = data.draw(st.sampled_from([None, 1.5]))
    value = [] if border is None else [np.array(border, np.float32)]
    widths = list(zip(pads[: len(shape)], pads[len(shape) :], strict=True))
    grown = [(max(begin, 0), max(end, 0)) for begin, end in widths]
    constant = {"constant_values": border or 0} if mode == "constant" else {}
    expected = np.pad(random(shape), grown, mode=mode, **constant)  # type: ignore[call-overload]
    cropped = expected[tuple(slice(max(-begin, 0), min(end, 0) or None) for begin, end in widths)]
    check_node(
        Node("Pad", [random(shape), np.array(pads, np.int64), *value], [1, 2], {"mode": mode}, opset=19), cropped
    )


def test_pad_of_some_axes() -> None:
    operands = [random((2, 3, 4)), np.array([1, 2, 0, 1]), None, np.array([-1, 0])]
    check_node(Node("Pad", operands, [1, 3], opset=18))


@pytest.mark.parametrize("dtype", ["int32", "bool", "float64"])
def test_pad_of_other_data_types(dtype: str) -> None:
    operands = [random((2, 3), dtype), np.array([1, 0, 0, 2]), np.array(1, dtype)]
    check_node(Node("Pad", operands, [1, 2]))


@pytest.mark.parametrize(
    ("mode", "pads", "reason"),
    [
        ("reflect", [3, 0], r"padding \(3, 0\) of axis 0 against 2 at most in mode 'reflect'"),
        ("edge", [-1, 0], r"negative padding \(-1, 0\) of axis 0 in mode 'edge'"),
        ("mirror", [1, 0], "'mode' is 'mirror' against constant, edge, reflect, wrap"),
    ],
)
def test_pad_that_is_no_affine_piece_is_refused(mode: str, pads: list[int], reason: str) -> None:
    with pytest.raises(UnsupportedOpError, match=f"node 'op': Pad.*{reason}"):
        check_node(Node("Pad", [random((3,)), np.array(pads)], [1], {"mode": mode}), random((3,)))


def test_border_that_the_model_computes_is_refused() -> None:
    with pytest.raises(UnsupportedOpError, match="'constant_value' is computed by the model against a constant"):
        check_node(Node("Pad", [random((3,)), np.array([1, 0]), np.array(1, np.float32)], [1]))


@examples(40)
@given(extents, st.data())
def test_gather_of_constant_indices(shape: tuple[int, ...], data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    index = st.integers(-shape[axis], shape[axis] - 1)
    count = data.draw(st.integers(1, 6))
    indices = np.array(data.draw(st.lists(index, min_size=count, max_size=count)), np.int64)
    form = data.draw(st.sampled_from(["scalar", "vector", "matrix"]))
    given_indices = {"scalar": indices[0], "vector": indices, "matrix": indices.reshape(1, -1)}[form]
    check_node(Node("Gather", [random(shape), np.array(given_indices)], [1], {"axis": axis}))


def test_gather_of_a_range_is_one_task() -> None:
    program = check_node(Node("Gather", [random((9, 2)), np.array([7, 5, 3, 1])], [1]))

    assert scopes(program) == ["op"]


def test_gather_of_scattered_indices_is_one_task_that_looks_them_up() -> None:
    indices = np.random.default_rng(0).permutation(1000)
    program = check_node(Node("Gather", [random((1000,)), indices], [1]))

    assert scopes(program) == ["op"]


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode: str) -> None:
    check_node(Node("DepthToSpace", [random((2, 12, 2, 3))], attributes={"blocksize": 2, "mode": mode}))


def test_space_to_depth() -> None:
    x = random((2, 3, 4, 6))
    expected = x.reshape(2, 3, 2, 2, 3, 2).transpose(0, 3, 5, 1, 2, 4).reshape(2, 12, 2, 3)
    check_node(Node("SpaceToDepth", [x], attributes={"blocksize": 2}), expected)


@pytest.mark.parametrize(
    ("op_type", "operands", "constants", "attributes"),
    [
        ("Reshape", [(2, 6), [3, 4]], [1], {}),
        ("Reshape", [(2, 6), [0, -1, 2]], [1], {}),
        ("Flatten", [(2, 3, 4)], [], {"axis": 2}),
        ("Squeeze", [(2, 1, 3), [1]], [1], {}),
        ("Unsqueeze", [(2, 3), [0, 3]], [1], {}),
        ("Identity", [(2, 3)], [], {}),
    ],
)
def test_a_new_shape_between_input_and_output_is_one_copy(
    op_type: str, operands: list[tuple[int, ...] | list[int]], constants: list[int], attributes: dict[str, Attribute]
) -> None:
    values = [random(value) if isinstance(value, tuple) else np.array(value, np.int64) for value in operands]
    program = check_node(Node(op_type, values, constants, attributes))

    assert scopes(program) == ["op"]
    assert extract(program.sdfg).nodes_count == 3


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("diagonal", [-1, 0, 2])
def test_triangle_of_matrices(upper: int, diagonal: int) -> None:
    check_node(Node("Trilu", [random((2, 3, 4)), np.array(diagonal)], [1], {"upper": upper}))


@pytest.mark.parametrize("op_type", ["Squeeze", "Unsqueeze"])
def test_one_axis_may_be_a_scalar(op_type: str) -> None:
    x = random((2, 1, 3))
    expected = x[:, 0] if op_type == "Squeeze" else x[:, None]
    check_node(Node(op_type, [x, np.array(1)], [1]), expected)
