"""Conversions of layouts, by hand: what they charge, and the way that is taken where there are several."""

import pytest

from dfcompile.canonical_dag import LoopKind
from dfcompile.dfmodel_backend.inter_chip.conversions import Conversions, TensorGroup, Way
from dfcompile.dfmodel_backend.inter_chip.splits import split_of
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.dfmodel_backend.workload.graph import ExchangeKind, Layout, Partial, Split
from tests.unit.dfmodel_backend.inter_chip.test_chip_counts import GB_PER_S, networked

ROWS, COLUMNS = 64, 32
ELEMENTS = ROWS * COLUMNS
SIZE = 4 * ELEMENTS
SUM = Partial(LoopKind.SUM)
LATENCY_NS = 3.0


def by_rows(*chips: int, place: int = 0) -> Split:
    return split_of(ELEMENTS, COLUMNS, ROWS, chips, place)


def by_columns(*chips: int, place: int = 0) -> Split:
    return split_of(ELEMENTS, 1, COLUMNS, chips, place)


def way(kind: str, chips: tuple[int, ...], given: Layout, needed: Layout) -> Way:
    return Conversions(TensorGroup.of(networked(kind, *chips)), ELEMENTS, 4).way(given, needed)


def total_ns(steps: Way) -> float:
    return sum(step.time_ns for step in steps)


CASES = [
    ((SUM,), (None,), ExchangeKind.ALL_REDUCE, 2 * 3 * SIZE, 2 * 3 / 4 * SIZE / GB_PER_S + 2 * 3 * LATENCY_NS),
    ((SUM,), (by_rows(4),), ExchangeKind.REDUCE_SCATTER, 3 * SIZE, 3 / 4 * SIZE / GB_PER_S + 3 * LATENCY_NS),
    ((by_rows(4),), (None,), ExchangeKind.ALL_GATHER, 3 * SIZE, 3 / 4 * SIZE / GB_PER_S + 3 * LATENCY_NS),
    ((by_rows(4),), (by_columns(4),), ExchangeKind.ALL_TO_ALL, 3 * SIZE // 4, SIZE / 8 / GB_PER_S + 3 * LATENCY_NS),
    ((None,), (by_rows(4),), ExchangeKind.SLICE, 0, 0.0),
]


@pytest.mark.parametrize(("given", "needed", "kind", "moved", "time_ns"), CASES, ids=[case[2] for case in CASES])
def test_a_ring_of_four(given: Layout, needed: Layout, kind: ExchangeKind, moved: int, time_ns: float) -> None:
    (step,) = way("r", (4,), given, needed)

    assert (step.kind, step.message_bytes, step.moved_bytes) == (kind, SIZE, moved)
    assert step.time_ns == pytest.approx(time_ns)


def test_an_all_reduce_on_a_torus_scatters_along_one_dimension_and_reduces_what_is_left_along_the_other() -> None:
    steps = way("r_r", (4, 2), (SUM, SUM), (None, None))
    group = TensorGroup.of(networked("r_r", 4, 2))

    assert total_ns(steps) == pytest.approx(group.time_ns(Collective.ALL_REDUCE, SIZE))


@pytest.mark.parametrize("kind", ["r_r", "r_sw", "sw_sw", "fc_fc", "r_fc"])
@pytest.mark.parametrize(
    ("given", "needed", "collective"),
    [
        ((SUM, SUM), (None, None), Collective.ALL_REDUCE),
        ((by_rows(2, 4, place=1), by_rows(2, 4)), (None, None), Collective.ALL_GATHER),
        ((by_rows(2, 4, place=1), by_rows(2, 4)), (by_columns(2, 4, place=1), by_columns(2, 4)), Collective.ALL_TO_ALL),
    ],
)
def test_no_way_is_dearer_than_all_chips_at_once(
    kind: str, given: Layout, needed: Layout, collective: Collective
) -> None:
    together = TensorGroup.of(networked(kind, 4, 2)).time_ns(collective, SIZE)

    assert total_ns(way(kind, (4, 2), given, needed)) <= together * (1 + 1e-9)


def test_what_other_dimensions_leave_is_exchanged_along_one() -> None:
    (step,) = way("r_r", (4, 2), (by_rows(4), by_columns(2)), (None, by_columns(2)))

    assert step.message_bytes == SIZE // 2
    assert step.moved_bytes == 3 * SIZE
    assert step.time_ns == pytest.approx(3 / 4 * SIZE / 2 / GB_PER_S + 3 * LATENCY_NS)


def test_in_a_hierarchy_all_inner_groups_pass_one_gateway() -> None:
    """Half of the tensor along each inner chip, all of it over the gateway, and along inner links from there."""
    (step,) = way("r_sw", (4, 2), (by_columns(4), by_rows(2)), (by_columns(4), None))

    assert step.message_bytes == SIZE // 4
    assert step.time_ns == pytest.approx((3 / 4 + 1 / 2) * SIZE / GB_PER_S + (3 + 1) * LATENCY_NS)


def test_readers_that_need_the_same_share_a_conversion_and_a_copy_may_be_the_start_of_another() -> None:
    """All-gathered for one reader, a slice of that is free for the other; an all-to-all would not be."""
    conversions = Conversions(TensorGroup.of(networked("r", 4)), ELEMENTS, 4)
    ways = conversions.plan((by_rows(4),), ((by_columns(4),), (None,)))

    assert [step.kind for steps in ways for step in steps] == [ExchangeKind.ALL_GATHER, ExchangeKind.SLICE]


def test_partial_results_that_nobody_reads_are_scattered_not_made_whole() -> None:
    conversions = Conversions(TensorGroup.of(networked("r", 4)), ELEMENTS, 4)
    target = conversions.completed((SUM,))

    assert [step.kind for step in conversions.way((SUM,), target)] == [ExchangeKind.REDUCE_SCATTER]
