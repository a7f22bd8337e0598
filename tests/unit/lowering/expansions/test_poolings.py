"""Pooling against ONNX's reference implementation: any window, any number of dimensions."""

import numpy as np
import pytest
from dace.sdfg.nodes import MapEntry, Tasklet
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.canonical_dag.annotation import Annotation
from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend import Program
from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Attribute, Node, assert_same, check_node, lowered, random, scopes


@st.composite
def poolings(draw: st.DrawFn) -> Node:
    op_type = draw(st.sampled_from(["MaxPool", "AveragePool"]))
    rank = draw(st.integers(1, 3))
    per_axis = st.lists(st.integers(1, 3), min_size=rank, max_size=rank)
    kernel, strides, dilations = draw(per_axis), draw(per_axis), draw(per_axis)
    attributes: dict[str, Attribute] = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    shape = (draw(st.integers(1, 2)), 2, *draw(st.lists(st.integers(3, 7), min_size=rank, max_size=rank)))
    spans = [(extent - 1) * dilation + 1 for extent, dilation in zip(kernel, dilations, strict=True)]
    pads = [draw(st.integers(0, extent - 1)) for extent in kernel * 2]
    attributes["pads"] = pads
    attributes["ceil_mode"] = draw(st.integers(0, 1))
    if op_type == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    for axis, span in enumerate(spans):
        assume(shape[2 + axis] + pads[axis] + pads[axis + rank] >= span)
    return Node(op_type, [random(shape)], attributes=attributes, opset=22)


def pooled(node: Node) -> Array:
    """Return what a pooling is by definition: window by window, element by element."""
    attributes, data = dict(node.attributes or {}), np.asarray(node.operands[0])
    rank = data.ndim - 2
    shape = [size.dim_value for size in node.model().graph.output[0].type.tensor_type.shape.dim]
    kernel, ones = per_axis(attributes["kernel_shape"]), [1] * rank
    strides, dilations = per_axis(attributes.get("strides", ones)), per_axis(attributes.get("dilations", ones))
    pads = automatic_pads(node, shape) or per_axis(attributes.get("pads", [0] * 2 * rank))
    result = np.zeros(shape, np.float64)
    for place in np.ndindex(*shape[2:]):
        values, counted = [], 0
        for element in np.ndindex(*kernel):
            at = [place[k] * strides[k] + element[k] * dilations[k] - pads[k] for k in range(rank)]
            inside = all(0 <= at[k] < data.shape[2 + k] for k in range(rank))
            in_padding = all(-pads[k] <= at[k] < data.shape[2 + k] + pads[k + rank] for k in range(rank))
            values += [data[(slice(None), slice(None), *at)]] if inside else []
            counted += in_padding if attributes.get("count_include_pad") else inside
        if node.op_type == "MaxPool":
            result[(slice(None), slice(None), *place)] = np.max(values, axis=0)
        else:
            result[(slice(None), slice(None), *place)] = np.sum(values, axis=0, dtype=np.float64) / counted
    return result.astype(data.dtype)


def per_axis(value: Attribute) -> list[int]:
    assert isinstance(value, list)
    return value


def automatic_pads(node: Node, counts: list[int]) -> list[int]:
    attributes = dict(node.attributes or {})
    mode = attributes.get("auto_pad", "NOTSET")
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        return []
    begins, ends = [], []
    for count, stride, kernel, extent in zip(
        counts[2:],
        per_axis(attributes["strides"]),
        per_axis(attributes["kernel_shape"]),
        np.asarray(node.operands[0]).shape[2:],
        strict=True,
    ):
        total = max((count - 1) * stride + kernel - extent, 0)
        begins.append(total // 2 if mode == "SAME_UPPER" else total - total // 2)
        ends.append(total - begins[-1])
    return begins + ends


@examples(60)
@given(poolings())
def test_kernel_strides_dilations_pads_and_ceil_mode(node: Node) -> None:
    check_node(node, pooled(node))


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("extent", [6, 7])
def test_automatic_padding(op_type: str, auto_pad: str, extent: int) -> None:
    attributes: dict[str, Attribute] = {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": auto_pad}
    node = Node(op_type, [random((1, 2, extent, 5))], attributes=attributes, opset=22)
    check_node(node, pooled(node))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16", "float64"])
def test_maximum_of_other_data_types_with_padding(dtype: str) -> None:
    attributes: dict[str, Attribute] = {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}
    value = random((1, 1, 3, 3), dtype)
    node = Node("MaxPool", [-np.abs(value) if dtype == "int8" else value], attributes=attributes, opset=22)
    check_node(node, pooled(node))


@pytest.mark.parametrize("op_type", ["GlobalMaxPool", "GlobalAveragePool"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (1, 2, 2, 3, 2)])
def test_global_pooling(op_type: str, shape: tuple[int, ...]) -> None:
    value = random(shape)
    axes = tuple(range(2, len(shape)))
    expected = value.max(axes, keepdims=True) if op_type == "GlobalMaxPool" else value.mean(axes, keepdims=True)
    check_node(Node(op_type, [value]), expected)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_pooling_with_a_norm(order: int) -> None:
    check_node(Node("LpPool", [random((1, 2, 5, 4))], attributes={"kernel_shape": [2, 3], "p": order}, opset=22))


@pytest.mark.parametrize("size", [1, 3, 4])
def test_normalisation_over_neighbouring_channels(size: int) -> None:
    attributes: dict[str, Attribute] = {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}
    value = random((2, 5, 3, 2))
    squares = np.zeros_like(value)
    for channel in range(5):
        first = max(channel - (size - 1) // 2, 0)
        squares[:, channel] = (value[:, first : channel + size // 2 + 1] ** 2).sum(axis=1)
    expected = value / (1.5 + 0.3 / size * squares) ** 0.6
    check_node(Node("LRN", [value], attributes=attributes), expected)


def loop_order(program: Program, scope: str) -> list[str]:
    state = program.sdfg.start_state
    for node in state.nodes():
        if not isinstance(node, Tasklet):
            continue
        annotation = Annotation.of_location(node.location, node.label)
        if annotation.scope == scope and not annotation.is_initialisation:
            entry = state.entry_node(node)
            assert isinstance(entry, MapEntry)
            return list(entry.map.params)
    raise AssertionError(f"no scope {scope}")


def test_windows_that_tile_the_data_read_it_row_by_row() -> None:
    program = check_node(
        Node("MaxPool", [random((1, 2, 4, 6))], attributes={"kernel_shape": [2, 3], "strides": [2, 3]})
    )

    assert loop_order(program, "op") == ["b", "c", "y0", "k0", "y1", "k1"]


@pytest.mark.parametrize(("extent", "stride"), [(5, 2), (5, 1)])
def test_windows_that_overlap_or_leave_a_rest_finish_one_result_after_the_other(extent: int, stride: int) -> None:
    attributes: dict[str, Attribute] = {"kernel_shape": [2, 2], "strides": [stride, stride]}
    program = check_node(Node("MaxPool", [random((1, 2, extent, 4))], attributes=attributes))

    assert loop_order(program, "op") == ["b", "c", "y0", "y1", "k0", "k1"]


def test_average_divides_by_a_number_or_by_an_array_of_numbers() -> None:
    inner = check_node(Node("AveragePool", [random((1, 1, 4, 4))], attributes={"kernel_shape": [2, 2]}))
    attributes: dict[str, Attribute] = {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}
    padded = check_node(Node("AveragePool", [random((1, 1, 4, 4))], attributes=attributes))

    assert not inner.parameters
    assert [value.shape for value in padded.parameters.values()] == [(1, 1, 5, 5)]
    assert scopes(padded) == ["op.pad.border0", "op.pad.border1", "op.pad", "op.window", "op.divide"]


def test_a_window_far_larger_than_the_data_is_counted_without_its_elements() -> None:
    attributes: dict[str, Attribute] = {"auto_pad": "SAME_UPPER", "kernel_shape": [2**40, 3], "strides": [2, 2]}
    node = Node("AveragePool", [random((1, 1, 5, 5))], attributes=attributes)

    (sizes,) = lowered(node.model()).parameters.values()
    assert sizes.ravel().tolist() == [10, 15, 10] * 3


def test_only_padding_in_a_window_is_minus_infinity() -> None:
    node = Node("MaxPool", [np.full((1, 1, 2), -np.inf, np.float32)], attributes={"kernel_shape": [2]})
    check_node(node, pooled(node))


@examples(40)
@given(poolings(), st.integers(0, 1))
def test_places_of_maxima(node: Node, storage_order: int) -> None:
    attributes = {name: value for name, value in (node.attributes or {}).items() if name != "count_include_pad"}
    attributes["storage_order"] = storage_order
    data = random(np.asarray(node.operands[0]).shape).round(1)  # several elements may be as large
    both = Node("MaxPool", [data], attributes=attributes, results=(1, 1), opset=22)
    answer = evaluated(both.model(), both.feeds)
    assume(answer is not None)  # it takes no dilation in some forms
    assert answer is not None
    found = interpret(lowered(both.model()), both.feeds)

    assert_same(found, dict(zip(("y0", "y1"), answer[1], strict=True)), 0, 0)


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 0]])
def test_pooling_undone(pads: list[int]) -> None:
    data = random((2, 2, 6, 4))
    attributes: dict[str, Attribute] = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": pads}
    pooled_once = Node("MaxPool", [data], attributes=attributes, results=(1, 1), opset=22)
    largest, places = interpret(lowered(pooled_once.model()), pooled_once.feeds).values()
    node = Node("MaxUnpool", [largest, places], attributes=attributes, opset=22)
    kept = node.reference()["y0"]
    program = check_node(node, kept)

    assert np.count_nonzero(kept) == largest.size
    assert scopes(program) == ["op.copy", "op.update"]


def test_pooling_undone_to_another_size_is_refused() -> None:
    operands = [random((1, 1, 2, 2)), np.array([[[[5, 7], [13, 15]]]]), np.array([1, 1, 5, 5])]
    attributes: dict[str, Attribute] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    with pytest.raises(
        UnsupportedOpError, match=r"result float32\[1,1,5,5\] against the size \[4, 4\] that its windows"
    ):
        lowered(Node("MaxUnpool", operands, [2], attributes, opset=22).model())
