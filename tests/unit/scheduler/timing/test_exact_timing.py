"""Exact times against the simulator, which shares no code with them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.errors import UserError
from dfcompile.scheduler import Schedule, ScheduleOptions, Timing, check, schedule
from dfcompile.scheduler.simulation import Replay, simulate
from dfcompile.scheduler.timing import exact_times
from dfcompile.scheduler.timing.element_times import GangTask, gang_times
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.streams import stream_graph

PARTITIONS = st.sampled_from(["sb-lts", "sb-rlx", "work-ordered"])


def _replayed(dag: CanonicalDag, result: Schedule) -> None:
    check(dag, result)
    order = result.start if result.barrier else result.block.astype("int64")
    replay = Replay(result.pe, order, result.streamed, result.fifo_capacity, result.block, result.barrier)
    simulation = simulate(dag, replay)
    assert not simulation.deadlock
    assert simulation.start.tolist() == result.start.tolist()
    assert simulation.end.tolist() == result.last_out.tolist()
    assert simulation.makespan_cycles == result.makespan_cycles


@examples(100)
@given(canonical_dags(DagShape(max_volume=64, fractional=False)), st.integers(1, 8), PARTITIONS, st.booleans())
def test_exact_times_are_the_simulated_ones(dag: CanonicalDag, pes: int, partition: str, barrier: bool) -> None:
    _replayed(dag, schedule(dag, ScheduleOptions(pes, partition, barrier=barrier, timing=Timing.EXACT)))


@examples(60)
@given(canonical_dags(DagShape(max_volume=64)), st.integers(1, 8), PARTITIONS, st.booleans(), st.booleans())
def test_fractional_rates_are_exact_too(
    dag: CanonicalDag, pes: int, partition: str, barrier: bool, demote: bool
) -> None:
    _replayed(dag, schedule(dag, ScheduleOptions(pes, partition, demote, barrier, Timing.EXACT)))


def _diamond(skew: int, capacity: int) -> tuple[list[GangTask], dict[int, int]]:
    """Return fork (a), a full delay of ``skew`` elements on one path (b, c), nothing on the other, join (d)."""
    tasks = [
        GangTask(skew, skew, (), (0, 1), (), 0),
        GangTask(skew, 1, (0,), (2,), (), 0),
        GangTask(1, skew, (2,), (3,), (), 0),
        GangTask(skew, skew, (1, 3), (), (), 0),
    ]
    return tasks, {0: 1, 1: capacity, 2: 1, 3: 1}


def test_deadlock_names_the_full_fifo() -> None:
    # seven wait on the short path, one in the join: the ninth has no room, so the tenth never reaches the reduction
    stuck, runs = gang_times(*_diamond(10, 7)), gang_times(*_diamond(10, 8))

    assert (stuck.full, runs.full) == ([1], [])
    assert runs.start == [0, 1, 11, 12]
    assert runs.first_out == [1, 11, 12, 13]
    assert runs.last_out == [13, 11, 21, 22]


@examples(40)
@given(canonical_dags(DagShape(max_volume=24)), st.integers(2, 8))
def test_single_steps_and_whole_sequences_agree(dag: CanonicalDag, pes: int) -> None:
    options = ScheduleOptions(pes, barrier=False, timing=Timing.EXACT)
    by_sweeps = schedule(dag, options)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dfcompile.scheduler.timing.element_times._SWEEPS", 0)
        by_steps = schedule(dag, options)

    for column in ("start", "first_out", "last_out", "fifo_capacity"):
        assert getattr(by_steps, column).tolist() == getattr(by_sweeps, column).tolist()


def test_task_of_a_gang_that_only_memory_feeds_and_takes_runs_for_its_work() -> None:
    dag = stream_graph([("in", "a", 9), ("a", "B", 9), ("B", "x", 6), ("x", "C", 3), ("C", "b", 9), ("a", "b", 9)])
    found = schedule(dag, ScheduleOptions(3, barrier=False, timing=Timing.EXACT))

    _replayed(dag, found)
    times = {
        dag.node_name(node): (int(found.start[node]), int(found.last_out[node])) for node in range(dag.nodes_count)
    }
    assert found.streamed.tolist() == [False] * 5 + [True]
    assert (times["a"], times["x"], times["b"]) == ((0, 9), (9, 15), (15, 24))


def test_volumes_that_pass_no_fifo_cost_nothing_and_do_not_overflow() -> None:
    memory, stream = 2**45, 2**20 + 1
    dag = stream_graph([("in", "a", memory), ("a", "b", stream), ("b", "out", memory)])

    found = schedule(dag, ScheduleOptions(2, timing=Timing.EXACT))

    # The reader keeps pace with the writer: its latest read of all against its own sequence delays it.
    delay = max(-(-(number + 1) * memory // stream) - number * memory // stream for number in range(stream))
    assert found.makespan_cycles == memory + delay
    _replayed(dag, found)


def test_gangs_too_large_to_be_timed_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = DagBuilder("chain")
    first, second = (builder.add_task(builder.add_scope(name)) for name in ("first", "second"))
    builder.add_edge(first, second, 1000)
    dag = builder.finish()
    monkeypatch.setattr(exact_times, "_MOST_ACCESSES", 1999)

    with pytest.raises(UserError, match="gang of 'first': 2000 accesses to fifos against at most 1999"):
        schedule(dag, ScheduleOptions(2, timing=Timing.EXACT))
