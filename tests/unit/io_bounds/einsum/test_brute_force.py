"""Curves against force: all tilings, all loop orders, each walked over tile by tile."""

from math import prod

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.io_bounds.curve import Curve, Halo, Rules, Tiles
from dfcompile.io_bounds.einsum.convolution import EVERY, Convolution, convolution_curve
from dfcompile.io_bounds.einsum.plain import PlainEinsum, gemm, innermost_loops, plain_curve
from dfcompile.io_bounds.einsum.window import WindowAxis
from dfcompile.io_bounds.einsum.window_orders import Kept
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.io_bounds.published_curves import crossed_product
from tests.unit.io_bounds.walks import Walked, WalkedTensor, front, points

MOST_MACS = 48  # of a shape that is walked over

rules = st.builds(Rules, st.sampled_from(Tiles), st.sampled_from(Halo), st.booleans())


def walked(einsum: PlainEinsum) -> Walked:
    tensors = []
    for tensor in einsum.tensors:
        ranks = tensor.ranks
        tensors.append(
            WalkedTensor(
                box=lambda ranges, ranks=ranks: tuple(ranges[rank] for rank in ranks),  # type: ignore[misc]
                shape=tuple(einsum.extents[rank] for rank in ranks),
                steps=tuple,
                axis_of_rank=tuple(ranks.index(rank) if rank in ranks else -1 for rank in range(len(einsum.extents))),
                is_result=tensor.is_result,
                units=tensor.units,
            )
        )
    return Walked(einsum.extents, tuple(tensors))


def walked_window(shape: Convolution, *, padded: bool) -> Walked:
    """Ranks N, C, K, then the outputs and the taps of all axes."""
    axes = shape.axes
    count = len(axes)

    def window(ranges: list[range]) -> tuple[range, ...]:
        found = [ranges[0], ranges[1]]
        for number, axis in enumerate(axes):
            out, tap = ranges[3 + number], ranges[3 + count + number]
            pad = axis.padding if padded else 0
            start = out.start * axis.stride + tap.start * axis.dilation - pad
            end = (out.stop - 1) * axis.stride + (tap.stop - 1) * axis.dilation - pad + 1
            found.append(range(start, end))
        return tuple(found)

    def steps(tiling: list[int]) -> tuple[int, ...]:
        moved = list(tiling)
        for number, axis in enumerate(axes):
            moved[3 + number] *= axis.stride
            moved[3 + count + number] *= axis.dilation
        return tuple(moved)

    sizes = tuple((axis.size if padded and axis.size else axis.span - (axis.padding if padded else 0)) for axis in axes)
    outputs, taps = tuple(axis.outputs for axis in axes), tuple(axis.taps for axis in axes)
    first, second = range(3, 3 + count), range(3 + count, 3 + 2 * count)
    window_axes = (0, 1, -1, *(2 + number for number in range(count)), *(2 + number for number in range(count)))
    return Walked(
        (shape.batch, shape.channels, shape.filters, *outputs, *taps),
        (
            WalkedTensor(window, (shape.batch, shape.channels, *sizes), steps, window_axes),  # type: ignore[arg-type]
            WalkedTensor(
                lambda ranges: (ranges[1], ranges[2], *(ranges[rank] for rank in second)),
                (shape.channels, shape.filters, *taps),
                tuple,
                (-1, 0, 1, *(-1 for _ in first), *(2 + number for number in range(count))),
            ),
            WalkedTensor(
                lambda ranges: (ranges[0], ranges[2], *(ranges[rank] for rank in first)),
                (shape.batch, shape.filters, *outputs),
                tuple,
                (0, -1, 1, *(2 + number for number in range(count)), *(-1 for _ in second)),
                is_result=True,
            ),
        ),
    )


def by_force(einsum: Walked, rules: Rules) -> dict[tuple[int, int], set[tuple[int, ...]]]:
    """The front, and all tilings that reach each of its points."""
    found = list(points(einsum, rules))
    kept = front([(size, traffic) for size, traffic, _ in found])
    return {point: {tiling for *at, tiling in found if tuple(at) == point} for point in kept}


def check(curve: Curve, expected: dict[tuple[int, int], set[tuple[int, ...]]]) -> None:
    assert list(zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True)) == list(expected)
    for tiling, reaching in zip(curve.tilings.tolist(), expected.values(), strict=True):
        assert tuple(tiling) in reaching


extents = st.integers(1, 7)


@given(extents, extents, extents, rules)
@examples(300)
def test_a_product_has_the_points_of_all_its_tilings(m: int, k: int, n: int, rules: Rules) -> None:
    assume(m * k * n <= MOST_MACS)
    einsum = gemm(m, k, n)
    curve = plain_curve(einsum, rules)

    check(curve, by_force(walked(einsum), rules))
    assert curve.least_traffic == einsum.compulsory_words + (0 if rules.elides_first_read else einsum.result_words)


units = st.tuples(*(st.sampled_from((1, 2, 4)) for _ in range(3)))


@given(extents, extents, extents, units, rules)
@examples(100)
def test_words_of_a_product_may_have_sizes_of_their_own(
    m: int, k: int, n: int, units: tuple[int, ...], rules: Rules
) -> None:
    assume(m * k * n <= MOST_MACS)
    einsum = gemm(m, k, n)
    tensors = tuple(replace(tensor, units=size) for tensor, size in zip(einsum.tensors, units, strict=True))
    einsum = replace(einsum, tensors=tensors)

    check(plain_curve(einsum, rules), by_force(walked(einsum), rules))


@given(st.lists(st.integers(1, 4), min_size=5, max_size=5), rules)
@examples(150)
def test_products_that_share_operands_have_the_points_of_all_their_tilings(sizes: list[int], rules: Rules) -> None:
    assume(prod(sizes) <= MOST_MACS)
    heads, groups, m, k, n = sizes
    einsum = crossed_product(heads, groups, m, k, n)
    curve = plain_curve(einsum, rules)

    check(curve, by_force(walked(einsum), rules))
    assert set(innermost_loops(einsum, tuple(curve.tilings[0].tolist()), rules)) <= set(einsum.ranks)


@st.composite
def axes(draw: st.DrawFn) -> WindowAxis:
    found = WindowAxis(
        draw(st.integers(1, 5)), draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    )
    padding = draw(st.integers(0, 2))
    assume(padding < found.span)
    return WindowAxis(
        found.outputs, found.taps, found.stride, found.dilation, padding, draw(st.integers(1, found.span - padding))
    )


convolutions = st.builds(
    Convolution,
    st.integers(1, 2),
    st.just(1),
    st.integers(1, 3),
    st.integers(1, 3),
    st.lists(axes(), min_size=1, max_size=2).map(tuple),
)


@given(convolutions, rules)
@examples(100)
def test_a_convolution_has_the_points_of_all_its_tilings(shape: Convolution, rules: Rules) -> None:
    assume(shape.macs <= MOST_MACS)
    curve = convolution_curve(shape, rules)

    check(curve, by_force(walked_window(shape, padded=rules.halo is Halo.TRUE), rules))


@given(convolutions, rules, st.sets(st.sampled_from(("I", "W", "O")), min_size=1))
@examples(100)
def test_a_convolution_moves_nothing_of_what_is_held(shape: Convolution, rules: Rules, moved: set[Kept]) -> None:
    assume(shape.macs <= MOST_MACS)
    whole = walked_window(shape, padded=rules.halo is Halo.TRUE)
    letters: tuple[Kept, ...] = ("I", "W", "O")
    tensors = tuple(tensor for letter, tensor in zip(letters, whole.tensors, strict=True) if letter in moved)
    curve = convolution_curve(shape, rules, frozenset(moved))
    expected = by_force(Walked(whole.extents, tensors), rules)

    assert list(zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True)) == list(expected)


@given(convolutions, units, rules)
@examples(100)
def test_words_of_a_convolution_may_have_sizes_of_their_own(
    shape: Convolution, units: tuple[int, ...], rules: Rules
) -> None:
    assume(shape.macs <= MOST_MACS)
    whole = walked_window(shape, padded=rules.halo is Halo.TRUE)
    tensors = tuple(replace(tensor, units=size) for tensor, size in zip(whole.tensors, units, strict=True))
    sizes: dict[Kept, int] = dict(zip(("I", "W", "O"), units, strict=True))

    check(convolution_curve(shape, rules, EVERY, sizes), by_force(Walked(whole.extents, tensors), rules))


@given(convolutions, st.booleans(), st.integers(2, 3))
@examples(100)
def test_more_freedom_never_moves_more(shape: Convolution, elides: bool, groups: int) -> None:
    curves = {(tiles, halo): convolution_curve(shape, Rules(tiles, halo, elides)) for tiles in Tiles for halo in Halo}
    for halo in Halo:
        divisors, integer = curves[Tiles.DIVISORS, halo], curves[Tiles.INTEGER, halo]
        for size, traffic in zip(divisors.sizes.tolist(), divisors.traffic.tolist(), strict=True):
            assert halo is Halo.FORGET or (integer.at(size) or 0) <= traffic  # whose rule finds what is not there
    real = convolution_curve(shape.unpadded(), Rules(Tiles.INTEGER, Halo.TRUE, elides))
    forgotten = curves[Tiles.INTEGER, Halo.FORGET]
    for size, traffic in zip(forgotten.sizes.tolist(), forgotten.traffic.tolist(), strict=True):
        assert (real.at(size) or 0) <= traffic
    grouped = Convolution(shape.batch, groups, shape.channels, shape.filters, shape.axes)
    whole = convolution_curve(grouped, Rules())

    assert np.array_equal(whole.traffic, groups * convolution_curve(shape, Rules()).traffic)
