"""Transposed convolutions: one operator, or one convolution per remainder of places by the strides."""

from math import gcd

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UnsupportedOpError
from dfcompile.lowering import Choice
from tests.examples import examples
from tests.onnx_nodes import Attribute, Node, check_node, random


@examples(40)
@given(st.integers(1, 2), st.integers(1, 2), st.booleans(), st.data())
def test_transposed_convolution(rank: int, group: int, has_bias: bool, data: st.DataObject) -> None:
    sizes = st.lists(st.integers(1, 3), min_size=rank, max_size=rank)
    kernel, strides, dilations = data.draw(sizes), data.draw(sizes), data.draw(sizes)
    extents = data.draw(st.lists(st.integers(2, 4), min_size=rank, max_size=rank))
    pads = [data.draw(st.integers(0, (size - 1) // 2)) for size in kernel * 2]
    paddings = [data.draw(st.integers(0, stride - 1)) for stride in strides]
    attributes: dict[str, Attribute] = {
        "kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads, "output_padding": paddings,
        "group": group,
    }  # fmt: skip
    x, w = random((2, 2 * group, *extents)), random((2 * group, 3, *kernel), seed=1)
    bias = [random((3 * group,), seed=2)] if has_bias else []
    full = [(extents[k] - 1) * strides[k] + dilations[k] * (kernel[k] - 1) + 1 + paddings[k] for k in range(rank)]
    sums = np.zeros((2, 3 * group, *full), np.float64)
    for place in np.ndindex(*extents):
        for element in np.ndindex(*kernel):
            at = tuple(place[k] * strides[k] + element[k] * dilations[k] for k in range(rank))
            for g in range(group):
                rows, channels = slice(3 * g, 3 * g + 3), slice(2 * g, 2 * g + 2)
                values = x[(slice(None), channels, *place)] @ w[(channels, slice(None), *element)]
                sums[(slice(None), rows, *at)] += values
    inside = (slice(pads[k], full[k] - pads[k + rank]) for k in range(rank))
    kept = sums[(slice(None), slice(None), *inside)]
    shift = bias[0].reshape(-1, *[1] * rank) if bias else 0
    node, expected = Node("ConvTranspose", [x, w, *bias], [1, 2], attributes), (kept + shift).astype(np.float32)
    check_node(node, expected)
    try:
        check_node(node, expected, choices=[Choice("ConvTranspose", "phases")])
    except UnsupportedOpError:
        columns = zip(strides, kernel, dilations, paddings, strict=True)
        assert any(s > size or gcd(s, dilation) > 1 or behind for s, size, dilation, behind in columns)


@pytest.mark.parametrize(("auto_pad", "first"), [("SAME_UPPER", 1), ("SAME_LOWER", 2)])
def test_what_a_transposed_convolution_crops_unevenly_is_more_on_one_side(auto_pad: str, first: int) -> None:
    """Of 4 + 3 elements 4 are left: one more is cut off behind, or before."""
    x, w = np.array([[[1, 10, 100, 1000]]], np.float32), np.array([[[1, 2, 3, 4]]], np.float32)
    whole = np.convolve(x[0, 0], w[0, 0])
    node = Node("ConvTranspose", [x, w], attributes={"auto_pad": auto_pad, "strides": [1]})

    check_node(node, whole[first : first + 4].reshape(1, 1, 4).astype(np.float32))


@pytest.mark.parametrize("bias", [0, 1])
def test_phases_multiply_nothing_but_padding_in_vain(bias: int) -> None:
    """Of 2 x 2 phases with 2 x 2 of 4 x 4 taps each; the other way has a task per filter, this one per phase."""
    x, w = random((1, 3, 8, 8)), random((3, 2, 4, 4), seed=1)
    attributes: dict[str, Attribute] = {"strides": [2, 2], "pads": [1, 1, 1, 1]}
    node = Node("ConvTranspose", [x, w, *([random((2,), seed=2)] * bias)], [1, 2], attributes)

    dag = extract(check_node(node, choices=[Choice("ConvTranspose", "phases")]).sdfg)

    products = [kernel for kernel in dag.kernels if kernel.op == "Convolution"]
    assert [(kernel.m, kernel.k, kernel.n) for kernel in products] == [(2, 3 * 4, 64)] * 4
    assert sum(kernel.op == "Copy" for kernel in dag.kernels) == 8  # filters and results of each phase


@pytest.mark.parametrize(
    ("kernel", "attributes", "reason"),
    [
        (2, {"strides": [3, 3]}, "stride 3 against windows that reach every result"),
        (32, {"strides": [16, 16]}, "256 convolutions, of strides \\(16, 16\\), against at most 64"),
        (2, {"strides": [2, 2], "dilations": [2, 2]}, "stride 2 against windows that reach every result"),
    ],
)
def test_what_phases_do_not_take(kernel: int, attributes: dict[str, Attribute], reason: str) -> None:
    node = Node("ConvTranspose", [random((1, 1, 2, 2)), random((1, 1, kernel, kernel))], [1], attributes)

    with pytest.raises(UnsupportedOpError, match=reason):
        check_node(node, choices=[Choice("ConvTranspose", "phases")])
