"""Chains against walks over every template, every tile, every tensor held or spilled; and the tool's figures."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.io_bounds.curve import Curve, Rules
from dfcompile.io_bounds.fusion.chain import Fusion, Segment, chain_curve, layer_curve, segment_curve
from tests.examples import examples
from tests.unit.io_bounds.fusion.chain_walks import (
    Point,
    Stage,
    flash_points,
    layer_points,
    segment_points,
    tiled_points,
)
from tests.unit.io_bounds.walks import front

RULES = Rules()
held_ends = st.tuples(st.booleans(), st.booleans())


def of(curve: Curve) -> list[Point]:
    return list(zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True))


def at(points: Sequence[Point], size: int) -> int | None:
    return min((moved for taken, moved in points if taken <= size), default=None)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 4), held_ends)
@examples(60)
def test_a_layer_has_the_points_of_all_its_tilings(rows: int, taken: int, given: int, ends: tuple[bool, bool]) -> None:
    assert of(layer_curve(rows, taken, given, RULES, ends)) == front(list(layer_points(rows, taken, given, ends)))


@given(st.integers(1, 4), st.lists(st.integers(1, 4), min_size=3, max_size=4), held_ends)
@examples(60)
def test_segments_have_the_points_of_all_templates(rows: int, widths: list[int], ends: tuple[bool, bool]) -> None:
    segment = Segment(rows, tuple(widths), ends)

    assert of(segment_curve(segment, RULES)) == front(list(segment_points(rows, widths, ends)))


def named_points(fusion: Fusion, rows: int, widths: Sequence[int]) -> Iterator[Point]:
    """The published templates of row tiles through all of a chain of two or three layers."""
    layers, slices = len(widths) - 1, range(1, widths[1] + 1)
    first, last = Stage(1, takes_columns=True), Stage(1, gives_columns=True)
    match fusion:
        case Fusion.RELAX_IO:
            yield from tiled_points(rows, widths, [first, *[Stage(1)] * (layers - 2), last])
        case Fusion.RELAX_IO_KN if layers == 2:
            for width in slices:
                yield from tiled_points(rows, widths, [Stage(2, True, True, width)])
        case Fusion.RELAX_IO_KN:
            for width in slices:
                yield from tiled_points(rows, widths, [Stage(2, True, False, width), last])
        case Fusion.FLASH if layers == 2:
            yield from flash_points(rows, widths)
        case _:
            yield from tiled_points(rows, widths, [Stage(1)] * layers)


@given(
    st.sampled_from((Fusion.RELAX_IO, Fusion.RELAX_IO_KN, Fusion.FLASH)),
    st.integers(1, 4),
    st.lists(st.integers(1, 4), min_size=3, max_size=4),
)
@examples(100)
def test_named_templates_have_the_points_of_their_walks(fusion: Fusion, rows: int, widths: list[int]) -> None:
    assert of(chain_curve(rows, widths, RULES, fusion)) == front(list(named_points(fusion, rows, widths)))


@given(
    st.sampled_from((Fusion.UNFUSED, Fusion.UNTILED, Fusion.SEGMENTED)),
    st.integers(1, 3),
    st.lists(st.integers(1, 3), min_size=3, max_size=4),
)
@examples(60)
def test_chains_are_the_least_over_all_that_is_held_spilled_or_fused(
    fusion: Fusion, rows: int, widths: list[int]
) -> None:
    curve, layers = chain_curve(rows, widths, RULES, fusion), len(widths) - 1
    states = {Fusion.UNFUSED: "s", Fusion.UNTILED: "sh", Fusion.SEGMENTED: "shf"}[fusion]
    known: dict[tuple[tuple[int, ...], tuple[bool, bool]], list[Point]] = {}

    def points(part: tuple[int, ...], ends: tuple[bool, bool]) -> list[Point]:
        if (part, ends) not in known:
            known[part, ends] = list(segment_points(rows, part, ends))
        return known[part, ends]

    for size in range(1, 50):
        found = []
        for choice in product(states, repeat=layers - 1):
            between = dict(enumerate(choice, start=1))
            cuts = [0, *(place for place in between if between[place] != "f"), layers]
            parts = [
                at(points(tuple(widths[first : last + 1]), (between.get(first) == "h", between.get(last) == "h")), size)
                for first, last in pairwise(cuts)
            ]
            if None not in parts:
                found.append(sum(part for part in parts if part is not None))

        assert curve.at(size) == min(found, default=None)


def test_a_chain_that_is_too_long_is_refused() -> None:
    with pytest.raises(UserError, match="found 9 layers against 1 to 8"):
        chain_curve(4, [2] * 10, RULES)
