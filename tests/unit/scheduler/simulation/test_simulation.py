"""The simulator on graphs whose times are known, and against the plain replay."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64
from dfcompile.errors import UserError, VerificationError
from dfcompile.records import replace
from dfcompile.scheduler.simulation import NEVER, Replay, simulate, unit_replay
from dfcompile.scheduler.simulation.access_sequence import Counts, Place, Rows, sequence_of
from dfcompile.scheduler.simulation.access_times import relax
from dfcompile.scheduler.simulation.stretch import Stretch
from tests.examples import examples
from tests.unit.scheduler.plain_replay import plain_replay, replays
from tests.unit.scheduler.streams import all_streamed, bypass, chain, scaled, stream_graph

Case = tuple[CanonicalDag, Replay]


@pytest.mark.parametrize("volume", [1, 7, 2048, 10**6, 10**12])
def test_elementwise_chain_takes_its_volume_and_its_depth(volume: int) -> None:
    dag = chain(8, volume)

    found = simulate(dag, all_streamed(dag, 1))

    assert found.makespan_cycles == volume + 8 - 1
    assert found.start.tolist()[1:-1] == list(range(8))
    assert found.read_stall.sum() == found.write_stall.sum() == 0


def test_chain_through_memory_takes_its_work() -> None:
    dag = chain(8, 2048)
    replay = replace(all_streamed(dag, 1), streamed=np.zeros(dag.edges_count, dtype=np.bool_))

    assert simulate(dag, replay).makespan_cycles == 8 * 2048


def test_slow_reader_holds_up_its_writer_once_the_fifo_is_full() -> None:
    dag = stream_graph([("in", "fast", 100), ("fast", "slow", 100), ("slow", "out", 400)])

    found = simulate(dag, all_streamed(dag, 5))

    # Reads of the slow task at 1, 5, 9, …, 397; the last write finds a place when element 95 is read.
    assert found.end.tolist() == [0, 1 + 4 * 94, 1 + 400, 401]
    assert found.write_stall.tolist() == [0, 1 + 4 * 94 - 100, 0]
    assert found.read_stall.tolist() == [0, 0, 0]
    assert found.peak.tolist() == [0, 5, 0]


def test_slow_writer_starves_its_reader() -> None:
    dag = stream_graph([("in", "sum", 400), ("sum", "next", 100), ("next", "out", 100)])

    found = simulate(dag, all_streamed(dag, 3))

    assert found.start.tolist()[1:3] == [0, 4]
    assert found.end.tolist() == [0, 400, 401, 401]
    assert found.read_stall.tolist() == [0, 401 - 4 - 100, 0]
    assert found.peak.tolist() == [0, 1, 0]


ROWS = st.builds(Rows, st.sampled_from((0, 0, 1, 3)), st.sampled_from((0, 0, 1, 2)))


def _numbers(counts: Counts) -> Int64:
    return np.arange(counts.start, counts.stop) if isinstance(counts, slice) else counts


@given(st.integers(1, 30), st.integers(1, 30), st.lists(st.integers(0, 30), max_size=3), ROWS)
def test_access_sequence_writes_what_it_has_read_however_it_is_cut(
    reads: int, writes: int, cuts: list[int], rows: Rows
) -> None:
    whole = Place(reads, writes)
    places = [Place(min(cut, reads), min(cut, reads) * writes // reads) for cut in sorted([0, *cuts, reads])]
    read = written = clock = 0
    for begin, end in pairwise(places):
        sequence = sequence_of(whole, begin, end, rows)
        puts_before = _numbers(sequence.puts_before) + written
        gets_before = _numbers(sequence.gets_before) + read

        assert puts_before.tolist() == [number * writes // reads for number in range(begin.reads, end.reads)]
        assert gets_before.tolist() == [
            -(-number * reads // writes) for number in range(begin.writes + 1, end.writes + 1)
        ]
        upsamples = writes >= reads
        going_on = rows.reads * np.arange(begin.reads, end.reads) + rows.writes * puts_before
        assert (sequence.get_waits + clock - going_on).tolist() == (
            puts_before.tolist() if upsamples else list(range(begin.reads, end.reads))
        )
        going_on = rows.reads * gets_before + rows.writes * np.arange(begin.writes, end.writes)
        assert (sequence.put_waits + clock - going_on).tolist() == (
            list(range(begin.writes + 1, end.writes + 1)) if upsamples else gets_before.tolist()
        )
        read, written, clock = end.reads, end.writes, clock + sequence.cycles

    assert (read, written, clock) == (reads, writes, max(reads, writes) + rows.reads * reads + rows.writes * writes)


def _agrees(case: Case) -> None:
    dag, replay = case
    found = simulate(dag, replay)
    plain = plain_replay(dag, replay)

    assert found.end.tolist() == plain.end
    assert found.start.tolist() == plain.start
    assert bool(found.deadlock) == (NEVER in plain.end)
    if not found.deadlock:
        assert found.makespan_cycles == max(plain.end)
        assert plain.passed == np.where(replay.streamed, dag.edge_volume, 0).tolist()


@examples(75)
@given(replays(most_hop=3, most_pipeline=4))
def test_simulation_agrees_with_the_plain_replay(case: Case) -> None:
    _agrees(case)


@examples(60)
@given(replays(max_volume=4, most_hop=3, most_pipeline=4, most_capacity=12), st.sampled_from([30, 77]))
def test_repeated_traffic_agrees_with_the_plain_replay(case: Case, factor: int) -> None:
    _agrees((scaled(case[0], factor), case[1]))


@examples(60)
@given(replays(most_capacity=6, most_hop=3, most_pipeline=4))
def test_simulation_without_details_finds_the_same_times_but_no_stalls_and_peaks(case: Case) -> None:
    whole = simulate(*case)
    found = simulate(*case, details=False)

    assert found.makespan_cycles == whole.makespan_cycles
    assert found.start.tolist() == whole.start.tolist()
    assert found.end.tolist() == whole.end.tolist()
    assert found.deadlock == whole.deadlock
    for column in (found.read_stall, found.write_stall, found.peak):
        assert column.tolist() == [0] * case[0].edges_count


def test_tasks_that_do_not_stream_run_block_after_block() -> None:
    dag = stream_graph([("in", "x0", 4), ("in", "x1", 7), ("x0", "y0", 4), ("in", "y1", 3), ("y0", "out", 4)])
    replay = replace(
        all_streamed(dag, 1),
        streamed=np.zeros(dag.edges_count, dtype=np.bool_),
        block=np.array([0, 0, 0, 1, 1, 1], dtype=np.int32),
    )

    assert simulate(dag, replay).start.tolist() == [0, 0, 0, 4, 0, 8]
    assert simulate(dag, replace(replay, barrier=True)).start.tolist() == [0, 0, 0, 7, 7, 11]


@contextmanager
def _in_small_parts() -> Iterator[None]:
    """Cut whatever is longer than a few accesses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unit_replay, "_PART_ELEMENTS", 5)
        patch.setattr(unit_replay, "_PART_HELD", 0)
        patch.setattr(unit_replay, "_MOST_ROUND_ELEMENTS", 5)
        yield


@examples(75)
@given(replays(most_capacity=6, most_hop=3, most_pipeline=4))
def test_replay_in_parts_agrees_with_the_plain_replay(case: Case) -> None:
    with _in_small_parts():
        _agrees(case)


@examples(50)
@given(replays(most_capacity=30, most_hop=3, most_pipeline=4))
def test_replay_in_parts_finds_the_stalls_and_peaks_of_a_whole_one(case: Case) -> None:
    whole = simulate(*case)
    with _in_small_parts():
        found = simulate(*case)

    for column in ("read_stall", "write_stall", "peak"):
        assert getattr(found, column).tolist() == getattr(whole, column).tolist()


@examples(50)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=3), st.integers(20, 60), st.integers(1, 50))
def test_parts_between_which_fifos_hold_elements_agree(path: list[int], volume: int, capacity: int) -> None:
    case = (bypass(volume, path), all_streamed(bypass(volume, path), capacity))
    whole = simulate(*case)
    with _in_small_parts():
        _agrees(case)
        found = simulate(*case)

    for column in ("read_stall", "write_stall", "peak"):
        assert getattr(found, column).tolist() == getattr(whole, column).tolist()


def test_parts_of_long_traffic_that_never_repeats_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def counted(stretch: Stretch) -> bool:
        lengths.append(sum(len(sent) for sent in stretch.sent))
        return relax(stretch)

    monkeypatch.setattr(unit_replay, "relax", counted)
    monkeypatch.setattr(unit_replay, "_PART_ELEMENTS", 1000)
    dag = stream_graph([("in", "a", 20_011), ("a", "b", 19_997), ("b", "c", 10_007), ("c", "out", 1)])

    found = simulate(dag, all_streamed(dag, 2))

    assert found.makespan_cycles == 20_013
    assert sum(lengths) >= 30_004
    assert max(lengths) <= 1_050


@pytest.mark.parametrize("capacity", [1, 2, 3, 4, 6, 9])
def test_periods_of_any_length_are_leapt_over_exactly(capacity: int) -> None:
    dag = bypass(1500, [1500] * 7)

    _agrees((dag, all_streamed(dag, capacity)))


@pytest.mark.parametrize(("slow", "late"), [(1, 1), (700, 1000), (5000, 1), (5000, 300), (5000, 700), (5000, 5000)])
def test_fifo_that_fills_for_long_then_drains_agrees(slow: int, late: int) -> None:
    # The join begins late, reads what has piled up as fast as it can, then at the pace of the slow side: only then the
    # late side gets ahead of it.
    dag = stream_graph(
        [
            ("in", "slow", 8000),
            ("slow", "join", 4000),
            ("in", "before", 2000),
            ("before", "late", 2000),
            ("late", "join", 4000),
            ("join", "out", 4000),
        ]
    )
    replay = all_streamed(dag, 1)
    streamed = replay.streamed.copy()
    streamed[3] = False
    capacity = np.array([1, slow, 1, 1, late, 1], dtype=np.int64)

    _agrees((dag, replace(replay, streamed=streamed, fifo_capacity=capacity)))


@pytest.mark.parametrize("capacity", [1, 100, 1000])
def test_fifo_that_fills_for_long_then_holds_up_its_writer_agrees(capacity: int) -> None:
    dag = stream_graph([("in", "fast", 3000), ("fast", "slow", 3000), ("slow", "out", 9000)])

    _agrees((dag, all_streamed(dag, capacity)))


def test_tasks_that_stream_and_wait_for_the_end_of_each_other_agree() -> None:
    dag = stream_graph([("in", "a", 500), ("a", "b", 500), ("b", "c", 500), ("a", "c", 500), ("c", "out", 500)])
    replay = all_streamed(dag, 500)
    streamed = replay.streamed.copy()
    streamed[3] = False

    found = simulate(dag, replace(replay, streamed=streamed))

    assert found.end.tolist() == [0, 500, 501, 1000, 1000]
    assert found.peak.tolist() == [0, 1, 499, 0, 0]
    _agrees((dag, replace(replay, streamed=streamed)))
    _agrees((dag, replace(replay, streamed=streamed, fifo_capacity=np.full(5, 498))))


def test_cost_does_not_grow_with_volume(monkeypatch: pytest.MonkeyPatch) -> None:
    stretches: list[int] = []

    def counted(stretch: Stretch) -> bool:
        stretches.append(len(stretch.puts(1)))
        assert len(stretches) < 30
        return relax(stretch)

    monkeypatch.setattr(unit_replay, "relax", counted)
    makespans = []
    for volume in (11 * 10**3, 11 * 10**6):
        dag = bypass(volume, [volume] * 29)
        makespans.append(simulate(dag, all_streamed(dag, 10)).makespan_cycles)

    # Ten elements fit beside a path of 31 cycles: eleven elements in 31 cycles.
    assert makespans[1] - makespans[0] == 31 * (10**6 - 10**3)
    assert sum(stretches) < 6000


def test_peak_of_a_long_lag_is_found_in_repeated_traffic() -> None:
    dag = stream_graph(
        [
            ("in", "early", 10**5),
            ("early", "join", 10**5),
            ("in", "before", 5000),
            ("before", "late", 5000),
            ("late", "join", 10**5),
            ("join", "out", 10**5),
        ]
    )
    replay = all_streamed(dag, 10**5)
    streamed = replay.streamed.copy()
    streamed[3] = False

    found = simulate(dag, replace(replay, streamed=streamed))

    assert found.makespan_cycles == 5000 + 1 + 10**5
    assert found.peak.tolist() == [0, 5000, 0, 0, 1, 0]


@examples(60)
@given(replays(max_volume=12, most_hop=3, most_pipeline=4), st.data())
def test_larger_fifos_delay_nothing_and_peaks_suffice(case: Case, data: st.DataObject) -> None:
    dag, replay = case
    found = simulate(dag, replay)
    larger = replay.fifo_capacity + data.draw(
        st.lists(st.integers(0, 3), min_size=dag.edges_count, max_size=dag.edges_count)
    )
    roomy = simulate(dag, replace(replay, fifo_capacity=larger))

    if not found.deadlock:
        assert not roomy.deadlock
        assert (roomy.end <= found.end).all()
        assert (found.peak <= np.where(replay.streamed, replay.fifo_capacity, 0)).all()
        peaks = replace(replay, fifo_capacity=np.maximum(found.peak, 1))
        assert simulate(dag, peaks).end.tolist() == found.end.tolist()


def test_replays_that_do_not_fit_are_rejected() -> None:
    dag = chain(2, 4)
    replay = all_streamed(dag, 1)
    own = np.array([-1, 0, 0, -1], dtype=np.int32)

    with pytest.raises(VerificationError, match=r"^edge 'x0' -> 'x1': a fifo of 0 elements against 1 or more$"):
        simulate(dag, replace(replay, fifo_capacity=np.zeros(3, dtype=np.int64)))
    with pytest.raises(VerificationError, match=r"^edge 'in' -> 'x0': streamed, but not between two tasks$"):
        simulate(dag, replace(replay, streamed=np.ones(3, dtype=np.bool_)))
    with pytest.raises(VerificationError, match=r"^replay of 'stream': 2 values in pe against 4$"):
        simulate(dag, replace(replay, pe=own[:2]))
    with pytest.raises(VerificationError, match=r"^node 'x0': on no processing element$"):
        simulate(dag, replace(replay, pe=own - 1))
    with pytest.raises(VerificationError, match=r"^nodes 'x0' and 'x1': on one processing element without an order$"):
        simulate(dag, replace(replay, pe=own, order=np.zeros(4, dtype=np.int64)))


def test_traffic_too_large_to_look_at_is_an_error_not_a_crash() -> None:
    dag = stream_graph([("in", "a", 2**40), ("a", "b", 2**40 - 1), ("b", "out", 2**40 - 1)])

    with pytest.raises(UserError, match=r"around node 'a' can repeat, expected at most \d+ \(.* only 1 as common"):
        simulate(dag, all_streamed(dag, 1))


def test_fifos_too_large_to_be_remembered_are_an_error_not_a_crash() -> None:
    dag = chain(2, 10**12)

    with pytest.raises(
        UserError, match=r"^simulation of 'stream': 1000000000 places in the fifos around node 'x0', expec"
    ):
        simulate(dag, all_streamed(dag, 10**9))


def test_memory_does_not_grow_with_volumes_that_pass_no_fifo() -> None:
    dag = stream_graph([("in", "a", 7), ("a", "b", 5), ("b", "out", 2**45)])

    assert simulate(dag, all_streamed(dag, 1)).makespan_cycles == 2 + 2**45


def test_stalls_of_many_late_accesses_are_summed_exactly() -> None:
    late, elements = 2**45, 2**20 + 1
    dag = stream_graph(
        [("in", "a", elements), ("in", "b", late), ("b", "c", elements), ("a", "c", elements), ("c", "out", elements)]
    )

    found = simulate(dag, all_streamed(dag, 1))

    # The task that reads both is as slow as the slower one, of which alone it waits for elements.
    assert found.makespan_cycles == late + 1
    assert found.read_stall.tolist() == [0, 0, late + 1 - int(found.start[3]) - elements, 0, 0]
    assert found.write_stall.tolist()[2] == 0
    assert found.write_stall[3] == found.end[1] - elements
