from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.lowering.expansions.tiled_conv import (
    MOST_PRODUCTS,
    ShortConvolution,
    cook_toom,
    exact_cook_toom,
    fourier,
    single_tap,
)
from tests.examples import examples

numbers = st.fractions(min_value=-9, max_value=9, max_denominator=9)


@given(data=st.data(), outputs=st.integers(1, MOST_PRODUCTS), taps=st.integers(1, MOST_PRODUCTS))
@examples(60)
def test_cook_toom_is_the_convolution_exactly(data: st.DataObject, outputs: int, taps: int) -> None:
    taps = min(taps, MOST_PRODUCTS + 1 - outputs)
    tile = outputs + taps - 1
    x = data.draw(st.lists(numbers, min_size=tile, max_size=tile))
    w = data.draw(st.lists(numbers, min_size=taps, max_size=taps))
    of_data, of_filters, of_result = exact_cook_toom(outputs, taps)
    products = [
        sum(a * b for a, b in zip(row, x, strict=True)) * sum(a * b for a, b in zip(other, w, strict=True))
        for row, other in zip(of_data, of_filters, strict=True)
    ]
    found = [sum((a * b for a, b in zip(row, products, strict=True)), Fraction()) for row in of_result]

    assert found == [sum(x[at + tap] * w[tap] for tap in range(taps)) for at in range(outputs)]


@pytest.mark.parametrize(("outputs", "taps", "products"), [(2, 3, 4), (4, 3, 6), (2, 5, 6), (1, 3, 3), (3, 1, 3)])
def test_cook_toom_takes_as_many_products_as_elements(outputs: int, taps: int, products: int) -> None:
    found = cook_toom(outputs, taps)

    assert (found.outputs, found.taps, found.products, found.tile) == (outputs, taps, products, products)


def test_cook_toom_is_that_of_the_paper() -> None:
    """F(2, 3) of [lavin16], but for the signs and the order of the products."""
    found = cook_toom(2, 3)

    assert np.abs(found.data).tolist() == [[1, 0, 1, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 1, 0, 1]]
    assert np.abs(found.filters).tolist() == [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, 0.5, 0.5], [0, 0, 1]]
    assert np.abs(found.result).tolist() == [[1, 1, 1, 0], [0, 1, 1, 1]]


@st.composite
def spectra(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """A tile of any length, taps, stride and dilation that fit."""
    taps, stride, dilation = draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    window = dilation * (taps - 1) + 1
    return window + draw(st.integers(0, 20)), taps, stride, dilation


@given(spectra(), st.integers(0, 2**32 - 1))
@examples(60)
def test_fourier_is_the_convolution(case: tuple[int, int, int, int], seed: int) -> None:
    tile, taps, stride, dilation = case
    short = fourier(*case)
    generator = np.random.default_rng(seed)
    x, w = generator.uniform(-1, 1, tile), generator.uniform(-1, 1, taps)
    places = range(0, tile - dilation * (taps - 1), stride)
    expected = [sum(x[place + dilation * tap] * w[tap] for tap in range(taps)) for place in places]

    assert np.max(np.abs(_convolved(short, x, w) - expected)) < 1e-12


@pytest.mark.parametrize(("tile", "products"), [(1, 1), (2, 2), (4, 5), (5, 7), (8, 11), (16, 23), (32, 47)])
def test_fourier_takes_three_products_per_complex_number(tile: int, products: int) -> None:
    assert fourier(tile, 1).products == products


def test_single_tap_is_a_product() -> None:
    assert _convolved(single_tap(), np.array([3.0]), np.array([5.0])).tolist() == [15.0]


def _convolved(short: ShortConvolution, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.asarray(short.result @ ((short.filters @ w) * (short.data @ x)))


def test_convolutions_of_one_shape_are_computed_once_and_cannot_be_changed() -> None:
    assert cook_toom(2, 3) is cook_toom(2, 3)
    assert fourier(8, 3) is fourier(8, 3)
    assert fourier(128, 3) is not fourier(128, 3), "large ones are not kept"

    for short in (cook_toom(2, 3), fourier(8, 3)):
        assert not any(matrix.flags.writeable for matrix in (short.data, short.filters, short.result))
