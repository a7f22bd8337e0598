"""Deadlocks: when they happen, and which waits form the cycle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.records import replace
from dfcompile.scheduler import ScheduleOptions, Timing, schedule
from dfcompile.scheduler.simulation import NEVER, NO_EDGE, Replay, Wait, WaitReason, simulate
from dfcompile.scheduler.simulation.simulator import replay_of
from tests.examples import examples
from tests.strategies import DagShape, canonical_dags
from tests.unit.scheduler.plain_replay import plain_replay, replays
from tests.unit.scheduler.streams import all_streamed, bypass, chain, stream_graph


def assert_wait_cycle(dag: CanonicalDag, replay: Replay, cycle: tuple[Wait, ...]) -> None:
    """Check that each link waits for the next, over an edge that can make it wait."""
    assert len({wait.node for wait in cycle}) == len(cycle)
    for wait, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        assert wait.on == after.node
        if wait.reason is WaitReason.END:
            assert wait.edge == NO_EDGE
            continue
        assert replay.streamed[wait.edge]
        ends = (int(dag.edge_source[wait.edge]), int(dag.edge_target[wait.edge]))
        assert ends == ((wait.on, wait.node) if wait.reason is WaitReason.ELEMENT else (wait.node, wait.on))


def test_short_fifo_beside_a_reduction_stalls_and_the_cycle_is_named() -> None:
    dag = bypass(64, [64, 8])
    replay = all_streamed(dag, 1)

    found = simulate(dag, replay)

    assert found.makespan_cycles == NEVER
    assert [wait.text(dag) for wait in found.deadlock] == [
        "'fork' waits for a place for an element to 'join'",
        "'join' waits for an element from 'x2'",
        "'x2' waits for an element from 'x1'",
        "'x1' waits for an element from 'x0'",
        "'x0' waits for an element from 'fork'",
    ]
    assert_wait_cycle(dag, replay, found.deadlock)


def test_the_same_graph_runs_with_the_fifos_of_its_schedule() -> None:
    dag = bypass(64, [64, 8])
    sized = schedule(dag, ScheduleOptions(pes=8, partition="sb-rlx"))
    replay = Replay(sized.pe, sized.start, sized.streamed, sized.fifo_capacity, sized.block)

    assert sized.streamed.sum() == 5
    assert simulate(dag, replay).deadlock == ()


volumes = st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128])


@given(st.lists(volumes, min_size=1, max_size=5))
def test_reconvergent_paths_stall_if_a_task_needs_more_elements_than_the_short_path_holds(path: list[int]) -> None:
    dag = bypass(64, path)
    replay = all_streamed(dag, 1)

    found = simulate(dag, replay)
    reduced = (
        min(path) <= 16
    )  # a join that needs four elements of the fork for its first finds at most three on the way

    if reduced:
        assert_wait_cycle(dag, replay, found.deadlock)
    if found.deadlock:
        assert min(path) < 64
        assert simulate(dag, all_streamed(dag, 64)).deadlock == ()


@examples(100)
@given(replays(most_capacity=2, most_hop=3, most_pipeline=4))
def test_every_reported_cycle_is_one(case: tuple[CanonicalDag, Replay]) -> None:
    dag, replay = case
    found = simulate(dag, replay)

    assert bool(found.deadlock) == (found.makespan_cycles == NEVER) == (NEVER in found.end)
    if found.deadlock:
        assert_wait_cycle(dag, replay, found.deadlock)
        assert all(found.end[wait.node] == NEVER for wait in found.deadlock)


def test_a_task_before_its_producer_on_one_element_waits_for_ever() -> None:
    dag = chain(2, 4)
    replay = replace(
        all_streamed(dag, 1),
        pe=np.array([-1, 0, 0, -1], dtype=np.int32),
        order=np.array([0, 2, 1, 0], dtype=np.int64),
    )

    found = simulate(dag, replay)

    assert [wait.text(dag) for wait in found.deadlock] == [
        "'x0' waits for the end of 'x1'",
        "'x1' waits for an element from 'x0'",
    ]


def test_what_does_not_depend_on_a_deadlock_still_runs() -> None:
    stuck = bypass(10**6, [10**6, 10**5])
    names = [stuck.node_name(node) for node in range(stuck.nodes_count)]
    edges = [
        (names[source], names[target], volume)
        for source, target, volume in zip(
            stuck.edge_source.tolist(), stuck.edge_target.tolist(), stuck.edge_volume.tolist(), strict=True
        )
    ]
    dag = stream_graph([*edges, ("in", "apart", 30), ("apart", "out", 30)])

    found = simulate(dag, all_streamed(dag, 1))

    names = [dag.node_name(node) for node in range(dag.nodes_count)]
    assert dict(zip(names, found.end.tolist(), strict=True)) == {
        "in": 0,
        "fork": NEVER,
        "x0": NEVER,
        "x1": NEVER,
        "x2": NEVER,
        "join": NEVER,
        "out": NEVER,
        "apart": 30,
    }
    assert dict(zip(names, found.start.tolist(), strict=True)) == {
        "in": 0,
        "fork": 0,
        "x0": 1,
        "x1": 2,
        "x2": NEVER,
        "join": NEVER,
        "out": NEVER,
        "apart": 0,
    }


@pytest.mark.parametrize("volume", [64, 10**6])
def test_deadlock_is_found_at_once_whatever_the_volume(volume: int) -> None:
    dag = bypass(volume, [volume] * 20 + [volume // 16])

    assert len(simulate(dag, all_streamed(dag, 1)).deadlock) == 24  # fork, x0 to x21, join


def _relayed_chain() -> tuple[CanonicalDag, Replay]:
    """Three tasks on two elements: the last runs after the first, fed by a relay that holds all of its stream."""
    dag = stream_graph([("in", "x0", 40), ("x0", "x1", 40), ("x1", "x2", 40), ("x2", "out", 90)])
    replay = replay_of(schedule(dag, ScheduleOptions(2, "best", timing=Timing.STEADY)))
    assert replay.streamed.tolist() == [False, True, True, False]
    assert replay.fifo_capacity[2] == 40
    assert replay.pe[1] == replay.pe[3]
    return dag, replay


def test_relay_smaller_than_its_stream_stalls_and_the_cycle_is_named() -> None:
    dag, replay = _relayed_chain()
    short = replace(replay, fifo_capacity=np.where(replay.streamed, 8, 0))

    found = simulate(dag, short)

    assert found.makespan_cycles == NEVER
    assert [wait.text(dag) for wait in found.deadlock] == [
        "'x0' waits for a place for an element to 'x1'",
        "'x1' waits for a place for an element to 'x2'",
        "'x2' waits for the end of 'x0'",
    ]
    assert_wait_cycle(dag, short, found.deadlock)


def test_relay_that_holds_what_is_there_before_its_reader_runs() -> None:
    dag, replay = _relayed_chain()
    whole = simulate(dag, replay)
    peak = int(whole.peak[2])

    assert 1 < peak < 40
    for capacity in (peak, peak - 1):
        sizes = np.array([0, int(replay.fifo_capacity[1]), capacity, 0], dtype=np.int64)
        found = simulate(dag, replace(replay, fifo_capacity=sizes))
        assert found.deadlock == ()
        assert (found.end.tolist() == whole.end.tolist()) == (capacity == peak)


relaying = DagShape(max_scopes=9, max_volume=16)


@examples(100)
@given(canonical_dags(relaying), st.integers(2, 4), st.sampled_from(["sb-lts", "sb-rlx"]), st.integers(1, 12))
def test_relays_of_any_size_end_or_stall_as_in_the_plain_replay(
    dag: CanonicalDag, pes: int, partition: str, capacity: int
) -> None:
    planned = replay_of(schedule(dag, ScheduleOptions(pes, partition, barrier=False)))
    replay = replace(planned, fifo_capacity=np.where(planned.streamed, capacity, 0))

    found = simulate(dag, replay)
    plain = plain_replay(dag, replay)

    assert found.start.tolist() == plain.start
    assert found.end.tolist() == plain.end
    assert bool(found.deadlock) == (NEVER in plain.end)
    if found.deadlock:
        assert_wait_cycle(dag, replay, found.deadlock)
