"""Options, demotion, order and size of what `schedule` returns."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.errors import UserError, VerificationError
from dfcompile.scheduler import ScheduleOptions, collect_partitioners, gangs, schedule, schedule_non_streaming
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.gangs import gangs_of
from dfcompile.scheduler.gaps import GapIndex
from dfcompile.scheduler.timing import ceil_ratio, int64_column
from tests.examples import examples
from tests.strategies import canonical_dags


def _join(volume: int) -> CanonicalDag:
    """Fork -> join directly and past a sum and a spread."""
    builder = DagBuilder("join")
    memory = builder.add_memory(builder.add_scope("memory"))
    fork, total, spread, join = builder.add_tasks(builder.add_scope("task"), 4)
    for source, target, elements in (
        (memory, fork, volume),
        (fork, join, volume),
        (fork, total, volume),
        (total, spread, 1),
        (spread, join, volume),
    ):
        builder.add_edge(source, target, elements)
    return builder.finish()


@pytest.mark.parametrize("pes", [0, -4])
def test_machine_without_elements_is_rejected(pes: int) -> None:
    with pytest.raises(UserError, match=f"pes: found {pes}, expected at least 1"):
        ScheduleOptions(pes)
    with pytest.raises(UserError, match=f"pes: found {pes}, expected at least 1"):
        schedule_non_streaming(_join(8), pes)


def test_unknown_partition_names_the_nearest() -> None:
    with pytest.raises(UserError, match=r"partition 'sb-rxl': unknown \(did you mean 'sb-rlx'\?\)"):
        schedule(_join(8), ScheduleOptions(2, "sb-rxl"))


def test_demotion_sends_streams_that_a_fifo_would_hold_whole_through_memory() -> None:
    dag = _join(8)
    kept, demoted = (schedule(dag, ScheduleOptions(4, demote=demote, fifos="rule")) for demote in (False, True))

    assert kept.streamed.tolist() == [False, True, True, True, True]
    assert kept.fifo_capacity.tolist() == [0, 8, 1, 1, 1]
    assert demoted.streamed.tolist() == [False, False, True, False, True]
    assert demoted.makespan_cycles >= kept.makespan_cycles


@examples(100)
@given(canonical_dags(), st.integers(1, 5))
def test_relaxed_blocks_are_full_but_the_last(dag: CanonicalDag, pes: int) -> None:
    blocks = collect_partitioners()["sb-rlx"].partition(dag, pes)

    tasks = np.bincount(blocks.block[dag.is_computational], minlength=1)
    assert (tasks[:-1] == pes).all()
    assert Blocks.of(dag, blocks.block.tolist()).block.tolist() == blocks.block.tolist()


def test_partition_that_leads_back_is_rejected() -> None:
    dag = _join(8)

    with pytest.raises(VerificationError, match=r"edge 'task\[0\]' -> 'task\[3\]': leads back to an earlier block"):
        Blocks.of(dag, [0, 1, 1, 1, 0])


def test_products_beyond_64_bits_are_exact() -> None:
    big = np.array([2**62, 7], dtype=np.int64)

    assert ceil_ratio(big, big, big).tolist() == [2**62, 7]
    assert ceil_ratio(big, big, big - 1).tolist() == [2**62 + 2, 9]
    with pytest.raises(UserError, match=f"a time of {2**63} cycles does not fit in 64 bits"):
        int64_column([1, 2**63])


@pytest.mark.parametrize("known", [0, 1500])
def test_gaps_are_found_as_in_a_plain_list(known: int) -> None:
    choice = np.random.default_rng(0)
    begins, lengths = choice.integers(0, 5000, known), choice.integers(0, 60, known)
    gaps = list(zip(begins.tolist(), (begins + lengths).tolist(), range(known), strict=True))
    index, plain = GapIndex.of(gaps), [gap for gap in gaps if gap[1] > gap[0]]
    for number in range(known, known + 1200):
        for _ in range(3):
            start = int(choice.integers(0, 5000))
            end = start + int(choice.integers(0, 60))
            index.add(start, end, number)
            plain += [(start, end, number)] if end > start else []
        ready, duration = int(choice.integers(0, 5200)), int(choice.integers(1, 60))
        latest = ready + int(choice.integers(0, 100)) * (number % 3)
        fitting = [gap for gap in plain if max(gap[0], ready) <= min(latest, gap[1] - duration)]
        found = min(fitting, key=lambda gap: (max(gap[0], ready), gap), default=None)
        booked = index.book(ready, duration, latest, 1)
        if found is None:
            assert not booked
        else:
            begin = max(found[0], ready)
            assert booked == [(begin, found[2])]
            plain.remove(found)
            left = ((found[0], begin), (begin + duration, found[1]))
            plain += [(first, last, found[2]) for first, last in left if first < last]


@pytest.mark.parametrize("known", [0, 40, 1500])
def test_gaps_are_booked_together_as_one_by_one(known: int) -> None:
    choice = np.random.default_rng(1)
    begins, lengths = choice.integers(0, 900, known), choice.integers(0, 90, known)
    gaps = list(zip(begins.tolist(), (begins + lengths).tolist(), range(known), strict=True))
    together, apart = GapIndex.of(gaps), GapIndex.of(gaps)
    for number in range(300):
        for pe in range(known + 4 * number, known + 4 * number + 4):
            start, length = int(choice.integers(0, 900)), int(choice.integers(0, 200))
            for index in (together, apart):
                index.add(start, start + length, pe)
        ready, duration, most = (int(choice.integers(low, high)) for low, high in ((0, 900), (1, 20), (1, 60)))
        latest = ready + int(choice.integers(0, 300)) * (number % 3)
        booked = together.book(ready, duration, latest, most)

        assert booked == [pair for _ in range(most) for pair in apart.book(ready, duration, latest, 1)]


def test_no_gangs_are_placed_in_no_time() -> None:
    dag = DagBuilder("nothing").finish()
    blocks = collect_partitioners()["sb-rlx"].partition(dag, 4)

    assert gangs.place_in_order(dag, gangs_of(dag, blocks, np.zeros(0, dtype=np.bool_), 0), 4, []).makespan_cycles == 0
