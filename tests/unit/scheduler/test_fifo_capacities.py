"""FIFO capacities by simulation: with them nothing stalls, with less it does."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, Timing, schedule
from tests.examples import examples
from tests.strategies import canonical_dags
from tests.unit.scheduler.element_simulator import WaitReason, simulate


def _chain(tasks: int, volume: int) -> CanonicalDag:
    builder = DagBuilder("chain")
    members = builder.add_tasks(builder.add_scope("step"), tasks)
    builder.add_edge(builder.add_memory(builder.add_scope("in")), members[0], volume)
    for left, right in pairwise(members):
        builder.add_edge(left, right, volume)
    builder.add_edge(members[-1], builder.add_memory(builder.add_scope("out")), volume)
    return builder.finish()


def test_chain_takes_its_volume_plus_its_length() -> None:
    dag = _chain(8, 2048)
    replay = simulate(dag, schedule(dag, ScheduleOptions(8)))

    assert replay.makespan_cycles == 2048 + 8 - 1
    assert replay.events == 2 * 8 * 2048


def _short_and_long_path(*, through_memory: bool = False) -> CanonicalDag:
    """Fork -> join directly, and fork -> sum of 4 -> spread by 4 -> join."""
    builder = DagBuilder("reconvergent")
    start, fork, total, spread, join, end = (
        builder.add_memory(builder.add_scope("start")),
        builder.add_task(builder.add_scope("fork")),
        builder.add_task(builder.add_scope("sum")),
        builder.add_task(builder.add_scope("spread")),
        builder.add_task(builder.add_scope("join")),
        builder.add_memory(builder.add_scope("end")),
    )
    edges = [(start, fork, 16), (fork, join, 16), (fork, total, 16), (spread, join, 16), (join, end, 16)]
    if through_memory:
        memory = builder.add_memory(builder.add_scope("memory"))
        edges += [(total, memory, 4), (memory, spread, 4)]
    else:
        edges.append((total, spread, 4))
    for source, target, volume in edges:
        builder.add_edge(source, target, volume)
    return builder.finish()


def test_full_fifo_and_empty_fifo_make_a_wait_cycle() -> None:
    dag = _short_and_long_path()
    replay = simulate(dag, schedule(dag, ScheduleOptions(4)), fifo_capacity=np.ones(dag.edges_count, dtype=np.int64))

    assert replay.stalled
    waits = [(dag.node_name(w.node), dag.node_name(w.waits_for), w.reason) for w in replay.wait_cycle]
    assert waits == [
        ("fork", "join", WaitReason.FULL),
        ("join", "spread", WaitReason.EMPTY),
        ("spread", "sum", WaitReason.EMPTY),
        ("sum", "fork", WaitReason.EMPTY),
    ]


@pytest.mark.parametrize("timing", list(Timing))
def test_computed_capacity_lets_it_run(timing: Timing) -> None:
    dag = _short_and_long_path()
    result = schedule(dag, ScheduleOptions(4, timing=timing))
    replay = simulate(dag, result)

    assert result.fifo_capacity.tolist() == [0, 5, 1, 1, 0, 1]
    assert not replay.stalled
    assert replay.makespan_cycles <= result.makespan_cycles


def test_stream_past_a_memory_holds_its_whole_volume() -> None:
    dag = _short_and_long_path(through_memory=True)
    result = schedule(dag, ScheduleOptions(4, timing=Timing.STEADY))
    tight = np.minimum(result.fifo_capacity, 15)

    assert result.fifo_capacity[1] == 16
    assert not simulate(dag, result).stalled
    assert WaitReason.MEMORY in {wait.reason for wait in simulate(dag, result, fifo_capacity=tight).wait_cycle}


def test_tasks_of_one_element_take_turns_without_a_barrier() -> None:
    dag = _chain(2, 10)
    one = schedule(dag, ScheduleOptions(1))
    swapped = replace(one, start=one.start[::-1].copy(), block=np.zeros_like(one.block))

    assert simulate(dag, one, barrier=False).makespan_cycles == 20
    assert simulate(dag, one, barrier=True).makespan_cycles == 20
    assert WaitReason.ELEMENT in {wait.reason for wait in simulate(dag, swapped, barrier=False).wait_cycle}


@examples(80)
@given(canonical_dags(), st.integers(1, 8), st.booleans())
def test_computed_capacities_never_stall(dag: CanonicalDag, pes: int, demote: bool) -> None:
    result = schedule(dag, ScheduleOptions(pes, demote=demote, timing=Timing.STEADY))
    replay = simulate(dag, result)

    assert not replay.stalled
    assert (replay.last_out - replay.start >= dag.work).all()
