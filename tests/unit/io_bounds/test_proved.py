"""Proved bounds lie below every tiling, and hold in numbers that are easily known."""

from math import isqrt

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.io_bounds.curve import Halo, Rules, Tiles
from dfcompile.io_bounds.einsum.convolution import Convolution, convolution_curve
from dfcompile.io_bounds.einsum.plain import gemm, plain_curve
from dfcompile.io_bounds.einsum.window import WindowAxis
from dfcompile.io_bounds.proved import Contracted, cube_root, proved_words
from tests.examples import examples
from tests.unit.io_bounds.published_curves import crossed_product

rules = st.builds(Rules, st.sampled_from(Tiles), st.sampled_from(Halo), st.booleans())


def least_words(shape: Contracted, size: int, rules: Rules) -> int:
    """Return what moves at least, with the first visits to the result where they read."""
    return proved_words(shape, size) + (0 if rules.elides_first_read else shape.result_words)


@given(st.integers(1, 4), st.integers(1, 60), st.integers(1, 60), st.integers(1, 60), rules)
@examples(300)
def test_no_tiling_of_a_product_is_below_the_proof(heads: int, m: int, k: int, n: int, rules: Rules) -> None:
    einsum = gemm(m, k, n) if heads == 1 else crossed_product(heads, 1, m, k, n)
    curve = plain_curve(einsum, rules)
    for size, traffic in zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True):
        least = least_words(einsum.contracted, size, rules)

        assert least <= traffic


@st.composite
def axes(draw: st.DrawFn) -> WindowAxis:
    outputs, taps, stride, dilation, padding = (draw(st.integers(1, most)) for most in (9, 4, 3, 3, 3))
    span = WindowAxis(outputs, taps, stride, dilation).span
    padding = min(padding - 1, span - 1)
    return WindowAxis(outputs, taps, stride, dilation, padding, draw(st.integers(1, span - padding)))


@given(
    st.builds(
        Convolution,
        st.integers(1, 3),
        st.integers(1, 2),
        st.integers(1, 8),
        st.integers(1, 8),
        st.lists(axes(), min_size=1, max_size=2).map(tuple),
    ),
    rules,
)
@examples(300)
def test_no_tiling_of_a_convolution_is_below_the_proof(shape: Convolution, rules: Rules) -> None:
    curve = convolution_curve(shape, rules)
    contracted = shape.contracted
    for size, traffic in zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True):
        least = least_words(contracted, size, rules)

        assert least <= traffic


@given(axes())
@examples(100)
def test_the_reuse_of_a_word_is_no_less_than_the_pairs_that_read_it(axis: WindowAxis) -> None:
    taken: dict[int, int] = {}
    for output in range(axis.outputs):
        for tap in range(axis.taps):
            place = output * axis.stride + tap * axis.dilation - axis.padding
            if 0 <= place < (axis.size or axis.span):
                taken[place] = taken.get(place, 0) + 1

    assert max(taken.values(), default=1) <= axis.reuse
    assert axis.touched == len(taken)
    assert axis.products == sum(taken.values())


def test_large_products_come_near_twice_their_work_over_the_root_of_the_buffer() -> None:
    size, extent = 2**20, 2**14
    least = proved_words(gemm(extent, extent, extent).contracted, size)
    known = 2 * extent**3 // isqrt(size) - 2 * size  # [smith19]

    assert known <= least <= 1.001 * 2 * extent**3 / isqrt(size)


@given(st.integers(0, 10**60))
def test_cube_roots_are_exact(number: int) -> None:
    root = cube_root(number)

    assert root**3 <= number < (root + 1) ** 3
