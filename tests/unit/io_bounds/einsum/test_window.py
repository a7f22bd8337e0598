"""Tiles of windows that are left out are no better than those that are kept."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.io_bounds.curve import Rules, Tiles
from dfcompile.io_bounds.einsum.convolution import Convolution, convolution_curve
from dfcompile.io_bounds.einsum.window import STAYS, WindowAxis, axis_tables, tables_of
from tests.examples import examples


@st.composite
def axes(draw: st.DrawFn) -> WindowAxis:
    outputs, taps, stride, dilation = (draw(st.integers(1, most)) for most in (20, 7, 4, 4))
    span = WindowAxis(outputs, taps, stride, dilation).span
    padding = draw(st.integers(0, 8))
    assume(padding < span)
    return WindowAxis(outputs, taps, stride, dilation, padding, draw(st.integers(max(1, span - padding - 8), span)))


@given(axes())
@examples(200)
def test_every_pair_of_tiles_is_met_by_one_that_is_kept(axis: WindowAxis) -> None:
    kept = axis_tables(axis, Tiles.INTEGER)
    every = tables_of(axis, np.arange(1, axis.outputs + 1), np.arange(1, axis.taps + 1))
    for pair in range(len(every.footprint)):
        as_small = (kept.outputs <= every.outputs[pair]) & (kept.taps <= every.taps[pair])
        as_small &= kept.footprint <= every.footprint[pair]
        as_few = -(-axis.outputs // kept.outputs) <= -(-axis.outputs // every.outputs[pair])
        as_few &= -(-axis.taps // kept.taps) <= -(-axis.taps // every.taps[pair])
        as_short = kept.shared[STAYS] <= every.shared[STAYS][pair]
        as_shared = np.ones(len(kept.footprint), dtype=np.bool_)
        for roles, column in kept.shared.items():
            if roles != STAYS:
                as_shared &= column >= every.shared[roles][pair]

        assert (as_small & as_few & as_short & as_shared).any()


def test_too_many_pairs_of_tiles_are_refused_in_one_line() -> None:
    axis = WindowAxis(30_000, 10, 5, 1, 3, 150_000)

    with pytest.raises(UserError, match="window of 10 at 30000 places: 300,000 pairs of tiles against 20,000 at most"):
        axis_tables(axis, Tiles.INTEGER)


def test_four_axes_are_bounded_in_no_time() -> None:
    axis, alone = WindowAxis(2, 2), WindowAxis(1, 1)
    rules = Rules()

    four = convolution_curve(Convolution(1, 1, 2, 2, (axis,) * 4), rules)
    three = convolution_curve(Convolution(1, 1, 2, 2, (axis,) * 3), rules)
    beside = convolution_curve(Convolution(1, 1, 2, 2, (axis, alone, axis, axis)), rules)

    assert four.least_traffic == 2 * 3**4 + 4 * 2**4 + 2 * 2**4
    assert (beside.sizes.tolist(), beside.traffic.tolist()) == (three.sizes.tolist(), three.traffic.tolist())
