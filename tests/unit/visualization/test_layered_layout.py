"""Layers: arrows lead downwards, shapes do not overlap, chains are straight."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.visualization import dag_drawing
from dfcompile.visualization.dag_drawing import lay_out

GAP, BEND = 10.0, 6.0


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], list[tuple[int, int]]]:
    """Widths of nodes, and edges to higher numbers."""
    widths = draw(st.lists(st.floats(1, 200), min_size=1, max_size=12))
    pairs = [(source, target) for target in range(len(widths)) for source in range(target)]
    return widths, draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []


@given(graphs())
def test_arrows_lead_down_and_shapes_stand_apart_within_the_picture(
    graph: tuple[list[float], list[tuple[int, int]]],
) -> None:
    widths, edges = graph
    layout = lay_out(widths, edges, GAP, BEND)
    rows: dict[int, list[tuple[float, float]]] = {}
    for layer, centre, width in zip(layout.layer, layout.centre, widths, strict=True):
        rows.setdefault(layer, []).append((centre - width / 2, centre + width / 2))
    for (source, _), bends in zip(edges, layout.bends, strict=True):
        for step, place in enumerate(bends):
            rows[layout.layer[source] + 1 + step].append((place - BEND / 2, place + BEND / 2))

    assert all(
        len(bends) == layout.layer[target] - layout.layer[source] - 1 >= 0
        for (source, target), bends in zip(edges, layout.bends, strict=True)
    )
    for row in rows.values():
        assert all(after[0] - before[1] >= GAP - 1e-6 for before, after in pairwise(sorted(row)))
        assert all(-1e-6 <= left <= right <= layout.width + 1e-6 for left, right in row)


def test_a_source_stands_right_above_what_reads_it_first() -> None:
    # 0 -> 1 -> 2 -> 4, and 3 -> 4.
    layout = lay_out([10, 10, 10, 10, 10], [(0, 1), (1, 2), (2, 4), (3, 4)], GAP, BEND)

    assert layout.layer == (0, 1, 2, 2, 3)


def test_a_leaf_beside_a_chain_does_not_bend_it() -> None:
    layout = lay_out([50, 50, 50, 50], [(0, 2), (1, 2), (2, 3)], GAP, BEND)
    straight = lay_out([50, 50, 50, 50, 50], [(0, 1), (1, 3), (2, 3), (3, 4)], GAP, BEND)

    assert abs(layout.centre[2] - layout.centre[3]) < 1
    assert max(straight.centre[node] for node in (0, 1, 3, 4)) - min(straight.centre[node] for node in (0, 1, 3, 4)) < 2
    assert straight.centre[2] > straight.centre[1] + 50


def test_crossings_that_can_be_avoided_are() -> None:
    # Two pairs, written down crosswise.
    layout = lay_out([10] * 6, [(0, 3), (1, 2), (0, 5), (1, 4)], GAP, BEND)

    assert (layout.centre[0] < layout.centre[1]) == (layout.centre[3] < layout.centre[2])


def test_long_arrows_beyond_the_limit_are_straight(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = [(node, node + 1) for node in range(30)] + [(0, 30)]
    bends = lay_out([10] * 31, edges, GAP, BEND).bends[-1]
    monkeypatch.setattr(dag_drawing, "MOST_BENDS", 28)

    assert len(bends) == 29
    assert lay_out([10] * 31, edges, GAP, BEND).bends[-1] == ()
