"""TopK, GatherND, ReverseSequence, Col2Im, BitCast: what is taken from where."""

import numpy as np
import pytest

from dfcompile.errors import UserError
from dfcompile.lowering import Choice, lower_to_canonical, lower_to_maps
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, Array, Node, check_node, lowered, random, scopes
from tests.onnx_text import program_from_text


@pytest.mark.parametrize("name", ["selection", "rank"])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
def test_the_first_of_equal_elements_comes_first(dtype: str, axis: int, largest: int, name: str) -> None:
    values = np.random.default_rng(axis + 1).integers(0, 3, (4, 5, 6)).astype(dtype)
    node = Node("TopK", [values, np.array([3])], [1], {"axis": axis, "largest": largest}, results=(1, 1))
    order = np.argsort(values.astype(np.int64) * (1 - 2 * largest), axis=axis, kind="stable")
    first = np.take(order, range(3), axis)
    program = lowered(node.model(), [Choice("TopK", name)])
    found = interpret(program, node.feeds)

    assert np.array_equal(found["y1"], first)
    assert np.array_equal(found["y0"], np.take_along_axis(values, first, axis))


@pytest.mark.parametrize("name", ["selection", "rank"])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_what_is_undefined_comes_last(dtype: str, largest: int, name: str) -> None:
    values = np.array([[1, np.nan, np.inf, np.nan, -np.inf], [np.nan] * 5, [3, 2, 1, 2, np.nan]], dtype)
    node = Node("TopK", [values, np.array([5])], [1], {"largest": largest}, results=(1, 1))
    found = interpret(lowered(node.model(), [Choice("TopK", name)]), node.feeds)
    first, last = ([2, 0, 4, 1, 3], [0, 1, 3, 2, 4]) if largest else ([4, 0, 2, 1, 3], [2, 1, 3, 0, 4])
    places = [first, [0, 1, 2, 3, 4], last]

    assert found["y1"].tolist() == places
    assert np.array_equal(found["y0"], np.take_along_axis(values, np.array(places), 1), equal_nan=True)


@pytest.mark.parametrize("k", [1, 2, 33])
def test_few_are_selected_one_after_another_and_many_are_ranked(k: int) -> None:
    node = Node("TopK", [random((2, 40)), np.array([k])], [1], results=(1, 1))

    names = {name.partition(".")[2].rstrip("0123456789") for name in scopes(check_node(node))}

    assert ("rank" in names) is (k > 32)


@pytest.mark.parametrize("name", ["selection", "rank"])
def test_nothing_is_computed_of_results_that_nobody_uses(name: str) -> None:
    text = "g (int64[4,6] x) => (int64[4,2] y) { [t] y, i = TopK(x, k) }"
    program = program_from_text(text, k=np.array([2]))
    choices = [Choice("TopK", name)]
    maps = lower_to_maps(lower_to_canonical(program, TABLE, choices), TABLE, choices)

    assert not any("places" in scope for scope in scopes(maps))


def test_more_steps_than_are_sensible_are_refused() -> None:
    node = Node("TopK", [random((1, 300)), np.array([257])], [1], results=(1, 1))

    with pytest.raises(UserError, match=r"K is 257 against at most 256 steps \(--expand TopK=rank\)"):
        lowered(node.model(), [Choice("TopK", "selection")])


def test_an_infinity_is_an_element_as_any_other() -> None:
    values = np.array([-np.inf, 1, np.inf, -np.inf], np.float32)

    check_node(Node("TopK", [values, np.array([4])], [1], results=(1, 1)))


@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize("within", [1, 2])
@pytest.mark.parametrize("constants", [(), (1,)])
def test_rows_at_places_of_several_dimensions(constants: tuple[int, ...], within: int, batch: int) -> None:
    shape = (2, 3, 4, 5, 2)
    extents = shape[batch : batch + within]
    places = np.random.default_rng(batch).integers(-np.array(extents), extents, (*shape[:batch], 3, within))

    check_node(Node("GatherND", [random(shape), places], constants, {"batch_dims": batch}))


@pytest.mark.parametrize("name", ["selection", "rank"])
def test_more_places_than_memory_holds_are_refused(name: str) -> None:
    """The numbers of 2^46 places are an array of half a petabyte."""
    text = f"g (float[{2**46}] x) => (y, i) <int64[1] k = {{1}}> {{ [op] y, i = TopK(x, k) }}"

    with pytest.raises(
        UserError, match=rf"node 'op': TopK\(.*: found sizes whose lowering by '{name}' needs more memory"
    ):
        lower_to_canonical(program_from_text(text), TABLE, [Choice("TopK", name)])


@pytest.mark.parametrize("batch", [-1, -(2**31)])
def test_no_batch_has_fewer_dimensions_than_none(batch: int) -> None:
    """ONNX's own inference ends the process."""
    text = "g (float[2,1] x, int64[2,1,1] i) => (y) { [op] y = GatherND<batch_dims=BATCH>(x, i) }"

    with pytest.raises(UserError, match=rf"node 'op': attribute 'batch_dims' is {batch} against at least 0"):
        program_from_text(text.replace("BATCH", str(batch)))


@pytest.mark.parametrize("largest", [-1, 2])
def test_what_is_neither_largest_nor_smallest_is_refused(largest: int) -> None:
    node = Node("TopK", [random((3,)), np.array([1])], [1], {"largest": largest}, results=(1, 1))
    with pytest.raises(UserError, match=rf"node 'op': attribute 'largest' is {largest} against 0 or 1"):
        lowered(node.model())


@pytest.mark.parametrize("constants", [(), (1,)])
@pytest.mark.parametrize("time_axis", [0, 1])
def test_sequences_are_reversed_as_far_as_they_go(time_axis: int, constants: tuple[int, ...]) -> None:
    shape = (5, 3, 2) if time_axis == 0 else (3, 5, 2)
    attributes = {"time_axis": time_axis, "batch_axis": 1 - time_axis}

    check_node(Node("ReverseSequence", [random(shape), np.array([5, 1, 3])], constants, attributes))


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_products(reverse: int, exclusive: int) -> None:
    values = random((2, 4, 3)).astype(np.float64)
    shifted = np.concatenate([np.ones((2, 1, 3)), np.flip(values, 1) if reverse else values], axis=1)
    products = np.cumprod(shifted, axis=1)[:, :-1] if exclusive else np.cumprod(shifted, axis=1)[:, 1:]
    attributes = {"exclusive": exclusive, "reverse": reverse}
    node = Node("CumProd", [values, np.array(1)], [1], attributes, opset=26)

    check_node(node, np.flip(products, 1) if reverse else products)


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 0, 2, 1)])
def test_windows_are_added_up(pads: tuple[int, ...]) -> None:
    attributes = {"strides": [2, 1], "dilations": [1, 2], "pads": pads}
    counts = [(5 + pads[0] + pads[2] - 2) // 2 + 1, 6 + pads[1] + pads[3] - 4]
    operands = [random((2, 3 * 6, counts[0] * counts[1])), np.array([5, 6]), np.array([2, 3])]

    check_node(Node("Col2Im", operands, [1, 2], attributes))


@pytest.mark.parametrize("rank", [1, 3])
def test_windows_of_other_dimensions_are_added_up(rank: int) -> None:
    """Against the sum as it is defined: onnxruntime has other values where there are pads."""
    kernel, counts, strides, dilations = (2, 3, 1)[:rank], (3, 2, 2)[:rank], (1, 2, 3)[:rank], (2, 1, 1)[:rank]
    pads, rests = (1, 0, 2)[:rank], (0, 1, 1)[:rank]
    spans = [s * (c - 1) + d * (k - 1) + 1 for s, c, d, k in zip(strides, counts, dilations, kernel, strict=True)]
    image = [span - begin - end for span, begin, end in zip(spans, pads, rests, strict=True)]
    windows = random((2, 3, *kernel, *counts))
    padded = np.zeros((2, 3, *spans))
    for place in np.ndindex(*kernel, *counts):
        at = (s * y + d * k for s, y, d, k in zip(strides, place[rank:], dilations, place[:rank], strict=True))
        padded[(slice(None), slice(None), *at)] += windows[(slice(None), slice(None), *place)]
    whole = slice(None)
    cropped = (whole, whole, *(slice(begin, begin + extent) for begin, extent in zip(pads, image, strict=True)))
    operands = [windows.reshape(2, 3 * np.prod(kernel), -1), np.array(image), np.array(kernel)]
    attributes = {"strides": strides, "dilations": dilations, "pads": (*pads, *rests)}

    check_node(Node("Col2Im", operands, [1, 2], attributes), padded[cropped].astype(np.float32))


@pytest.mark.parametrize(("dtype", "to", "number"), [("float32", "int32", 6), ("int64", "float64", 11)])
def test_bits_as_another_type(dtype: str, to: str, number: int) -> None:
    values = random((2, 3), dtype)
    node = Node("BitCast", [values], attributes={"to": number}, opset=26)

    check_node(node, values.view(to))


@pytest.mark.parametrize(
    ("op_type", "operands", "message"),
    [
        ("GatherND", [random((3, 4)), np.array([[3, 0]])], r"index \[3, 0\] against 3×4 elements"),
        ("GatherND", [random((3,)), np.array([[0, 0]])], "indices of 2 dimensions against 1 to 1"),
        ("TopK", [random((3,)), np.array([4])], "K"),
        ("ReverseSequence", [random((3, 2)), np.array([1, 4])], "length 4 against 0 to 3"),
        ("ReverseSequence", [random((3, 2)), np.array([1])], "'x1' is 1 against 2 lengths"),
        ("Col2Im", [random((1, 4, 5)), np.array([3, 3]), np.array([2, 2])], r"against \[2, 2\] blocks of 2×2"),
    ],
)
def test_what_does_not_fit_is_refused(op_type: str, operands: list[Array], message: str) -> None:
    node = Node(op_type, operands, constants=range(1, len(operands)), results=(1, 1) if op_type == "TopK" else (1,))

    with pytest.raises(UserError, match=f"node 'op': .*{message}"):
        lowered(node.model())
