"""What reads between the elements of images: GridSample, AffineGrid, DeformConv, RoiAlign, MaxRoiPool."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from dfcompile.lowering import Choice
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Attribute, Node, assert_same, check_node, lowered, random, scopes

Reals = npt.NDArray[np.float32]
FLAGS = st.integers(0, 1)
FEW = st.integers(1, 2)


def between(shape: tuple[int, ...], least: float, most: float, seed: int = 0) -> Reals:
    return np.random.default_rng(seed).uniform(least, most, shape).astype(np.float32)


def check_with_onnxruntime(node: Node, *, choices: list[Choice] | None = None) -> None:
    answer = evaluated(node.model(), node.feeds)
    assert answer is not None
    found = interpret(lowered(node.model(), choices or ()), node.feeds)

    assert_same(found, {"y0": answer[1][0]}, 1e-4, 1e-4)


@examples(40)
@given(
    st.sampled_from(["nearest", "linear", "cubic"]),
    st.sampled_from(["zeros", "border", "reflection"]),
    FLAGS,
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(0, 2**32),
)
def test_grid_sample_of_any_rank(mode: str, padding: str, align: int, extents: list[int], seed: int) -> None:
    attributes: dict[str, Attribute] = {"mode": mode, "padding_mode": padding, "align_corners": align}
    if align and padding == "reflection":
        extents = [extent + 1 for extent in extents]  # the reference divides by the distance of the borders
    rank = len(extents)
    grid = between((2, *[2] * rank, rank), -2.2, 2.2, seed)
    node = Node("GridSample", [random((2, 2, *extents)), grid], attributes=attributes, opset=20)

    if (mode, padding, rank) == ("cubic", "border", 2):
        check_with_onnxruntime(node)  # the reference clamps a coordinate; PyTorch and onnxruntime do not
    elif (mode, padding) != ("cubic", "border"):
        check_node(node, rtol=1e-4, atol=1e-4)


def test_grid_sample_as_of_operator_set_16() -> None:
    attributes: dict[str, Attribute] = {"mode": "bicubic", "padding_mode": "reflection"}
    check_with_onnxruntime(
        Node("GridSample", [random((1, 3, 4, 5)), between((1, 6, 2, 2), -3, 3)], attributes=attributes, opset=16)
    )


def test_grid_sample_computes_places_once_for_all_channels() -> None:
    node = Node("GridSample", [random((1, 8, 4, 4)), between((1, 3, 3, 2), -1, 1)], opset=20)
    dag = extract(lowered(node.model(), [Choice("Sample", "map")]).sdfg)
    parallel = extract(lowered(node.model()).sdfg)

    points, taps = 9, 4
    assert max(dag.work.tolist()) == 8 * points * taps  # the elements that are read
    assert sorted(dag.work.tolist())[-2] <= points * taps
    assert dag.tasks_count == 11
    assert parallel.tasks_count == 10 + 8


def test_elements_without_real_numbers_are_not_interpolated() -> None:
    x, grid = random((1, 1, 3, 3), "int32"), between((1, 2, 2, 2), -1, 1)
    check_node(Node("GridSample", [x, grid], attributes={"mode": "nearest"}, opset=20))
    with pytest.raises(UnsupportedOpError, match="'mode' is 'linear' against 'nearest' for int32"):
        lowered(Node("GridSample", [x, grid], opset=20).model())


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("extents", [(3, 4), (2, 3, 4)])
def test_affine_grid(extents: tuple[int, ...], align: int) -> None:
    rank = len(extents)
    operands = [random((2, rank, rank + 1)), np.array([2, 1, *extents])]
    check_node(Node("AffineGrid", operands, [1], {"align_corners": align}, opset=20), atol=1e-4)


def test_affine_grid_of_one_element_between_corners_is_refused() -> None:
    operands = [random((1, 2, 3)), np.array([1, 1, 1, 4])]
    with pytest.raises(UnsupportedOpError, match=r"size \[1, 4\] with aligned corners against at least 2"):
        lowered(Node("AffineGrid", operands, [1], {"align_corners": 1}, opset=20).model())


@examples(25)
@given(FEW, FEW, FEW, FEW, FEW, st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_deformable_convolution(
    group: int, offset_group: int, kernel: int, stride: int, dilation: int, bias: bool, mask: bool, seed: int
) -> None:
    x, w = random((2, 4, 5, 4)), random((2 * group, 4 // group, kernel + 1, kernel))
    attributes: dict[str, Attribute] = {
        "group": group, "offset_group": offset_group, "strides": [stride, 1], "dilations": [1, dilation],
        "pads": [1, 0, 0, 1],
    }  # fmt: skip
    counts = (5 + 1 - (kernel + 1)) // stride + 1, 4 + 1 - ((kernel - 1) * dilation + 1) + 1
    places = offset_group * (kernel + 1) * kernel
    operands: list[Array | None] = [x, w, between((2, 2 * places, *counts), -2, 2, seed)]
    operands.append(random((2 * group,)) if bias else None)
    operands += [between((2, places, *counts), 0, 1, seed)] if mask else []

    check_with_onnxruntime(Node("DeformConv", operands, attributes=attributes, opset=19))


def test_deformable_convolution_checks_its_offsets() -> None:
    operands = [random((1, 2, 4, 4)), random((1, 2, 2, 2)), random((1, 6, 3, 3))]
    with pytest.raises(UnsupportedOpError, match=r"offsets or mask against \[1, 4, 3, 3\] places of two coordinates"):
        lowered(Node("DeformConv", operands, opset=19).model())


def regions(count: int, seed: int) -> Reals:
    """Return borders of regions, some of them outside of 6 x 6 elements."""
    begins = between((count, 2), -2, 4, seed)
    return np.concatenate([begins, begins + between((count, 2), 0.5, 7, seed + 1)], axis=1)


@examples(25)
@given(
    st.sampled_from(["avg", "max"]),
    st.sampled_from(["half_pixel", "output_half_pixel"]),
    FEW,
    st.integers(1, 3),
    st.sampled_from([1.0, 0.5]),
    st.integers(0, 2**32),
)
def test_regions_aligned(mode: str, coordinates: str, batch: int, ratio: int, scale: float, seed: int) -> None:
    attributes: Mapping[str, Attribute] = {
        "mode": mode, "coordinate_transformation_mode": coordinates, "sampling_ratio": ratio, "output_height": 2,
        "output_width": 3, "spatial_scale": scale,
    }  # fmt: skip
    operands = [random((batch, 2, 6, 5)), regions(3, seed), np.array([0, batch - 1, 0])]

    check_node(Node("RoiAlign", operands, attributes=attributes, opset=16), rtol=1e-4, atol=1e-4)


def test_as_many_points_as_a_region_has_are_refused() -> None:
    operands = [random((1, 2, 6, 5)), regions(3, 0), np.array([0, 0, 0])]
    with pytest.raises(UnsupportedOpError, match=r"'sampling_ratio' is 0 against at least 1 \(else points depend"):
        lowered(Node("RoiAlign", operands, opset=16).model())


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_largest_elements_of_regions(batch: int, seed: int) -> None:
    images = np.array([[0], [batch - 1], [0]], np.float32)
    operands = [random((batch, 2, 6, 5)), np.concatenate([images, np.abs(regions(3, seed))], axis=1)]
    attributes: Mapping[str, Attribute] = {"pooled_shape": [2, 3], "spatial_scale": 1.5}

    check_with_onnxruntime(Node("MaxRoiPool", operands, attributes=attributes))


def test_a_bin_reads_its_whole_image() -> None:
    operands = [random((1, 2, 6, 5)), np.array([[0, 0, 0, 3, 3]], np.float32)]
    program = lowered(Node("MaxRoiPool", operands, attributes={"pooled_shape": [2, 3]}).model())
    dag = extract(program.sdfg)

    assert scopes(program)[-3:] == ["op.max0", "op.max1", "op.empty"]
    assert sorted(dag.work.tolist())[-2:] == [2 * 2 * 3 * 5, 2 * 2 * 6 * 5]
