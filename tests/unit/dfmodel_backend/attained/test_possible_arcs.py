"""Which sets of kernels the search may choose."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dfcompile.dfmodel_backend.attained.search as module
from dfcompile.dfmodel_backend.attained.search import possible_arcs
from dfcompile.dfmodel_backend.kernel_sets import FusionShape


def _shape(rng: random.Random, count: int) -> FusionShape:
    """Return kernels that read those shortly before them."""
    predecessors = tuple(
        sum({1 << rng.randrange(max(0, kernel - 4), kernel) for _ in range(rng.randrange(3))}) if kernel else 0
        for kernel in range(count)
    )
    return FusionShape(predecessors, ((1 << count) - 1,) * count, count)


def _reachable(shape: FusionShape, most: int) -> set[tuple[int, int]]:
    """Return pairs of prefixes of the orders that differ by at most so many kernels and are joined by single steps."""
    lattice = shape.intervals()
    return {
        (before, after) for before in lattice for after in lattice.supersets(before, most, lambda _: True)
    }  # by the walk that small graphs take


def _pairs(shape: FusionShape) -> list[tuple[int, int]]:
    arcs, is_complete = possible_arcs(shape, lambda _units: True)
    assert not is_complete
    for arc in range(len(arcs.added)):
        before, after = arcs.down_sets[int(arcs.before[arc])], arcs.down_sets[int(arcs.after[arc])]
        assert arcs.mask(arc) == before ^ after
        assert before & after == before
    order = list(zip(arcs.after.tolist(), arcs.before.tolist(), strict=True))
    assert order == sorted(set(order))
    return [(arcs.down_sets[before], arcs.down_sets[after]) for after, before in order]


@given(rng=st.randoms(use_true_random=False), count=st.integers(8, 40), limit=st.integers(60, 400))
def test_large_graphs_have_short_sets_and_long_ones_from_start_or_to_end(
    rng: random.Random, count: int, limit: int
) -> None:
    shape = _shape(rng, count)
    everything = shape.every_kernel
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_DOWN_SETS", 3)
        patch.setattr(module, "MOST_ARCS", limit)
        found = set(_pairs(shape))
    most = count // 2
    while most and len(_reachable(shape, most)) > limit:
        most //= 2
    if most:
        short, prefixes = _reachable(shape, most), set(shape.intervals())
    else:
        most, prefixes = 1, {(1 << done) - 1 for done in range(count + 1)}
        short = set(pairwise(sorted(prefixes)))
    long = {(0, after) for after in prefixes if after.bit_count() > most}
    long |= {(before, everything) for before in prefixes if count - before.bit_count() > most}
    assert found == short | long


def test_small_graphs_have_all_sets() -> None:
    shape = FusionShape((0, 0, 0b11), (0b111,) * 3, 3)
    arcs, is_complete = possible_arcs(shape, lambda _units: True)
    assert is_complete
    assert {arcs.mask(arc) for arc in range(len(arcs.added))} == {1, 2, 3, 4, 5, 6, 7}
