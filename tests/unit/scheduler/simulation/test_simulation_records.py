"""The simulator against the recorded runs of the public one."""

import json
from functools import cache

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.scheduler.simulation import NEVER, Replay, simulate
from tests.locations import SCHEDULES
from tests.unit.scheduler.reference_schedules import ReferenceSchedule, reference_schedules


def recorded_replay(record: ReferenceSchedule, scheduled: list[int]) -> Replay:
    """The replay of a record: the n-th task of a block, in the order of scheduling, runs on processing element n."""
    pe = np.full(record.dag.nodes_count, -1, dtype=np.int32)
    used: dict[int, int] = {}
    for node in scheduled:
        if record.dag.is_computational[node]:
            block = record.block[node]
            pe[node] = used.get(block, 0)
            used[block] = int(pe[node]) + 1
    capacity = np.ones(record.dag.edges_count, dtype=np.int64)
    for edge, size in (record.fifo or {}).items():
        capacity[edge] = size
    block_of = np.array(record.block, dtype=np.int32)
    return Replay(pe, block_of.astype(np.int64), record.streamed, capacity, block_of)


@cache
def recorded_replays() -> list[tuple[ReferenceSchedule, Replay]]:
    """All records with their replays."""
    scheduled = [[int(node) for node in record["times"]] for record in json.loads(SCHEDULES.read_text())]
    return [
        (record, recorded_replay(record, order)) for record, order in zip(reference_schedules(), scheduled, strict=True)
    ]


def has_whole_rates(dag: CanonicalDag) -> bool:
    """Whether each task reads a whole number of elements per element written, or writes a whole number per read."""
    task = dag.is_computational & (dag.volume_in > 0) & (dag.volume_out > 0)
    large = np.maximum(dag.volume_in, dag.volume_out)[task]
    small = np.minimum(dag.volume_in, dag.volume_out)[task]
    return bool((large % small == 0).all())


def test_simulated_makespans_are_the_recorded_ones() -> None:
    exact = {True: 0, False: 0}
    recorded = {True: 0, False: 0}
    for record, replay in recorded_replays():
        found = simulate(record.dag, replay, details=False).makespan_cycles
        if record.simulated_makespan is None:
            continue
        whole = has_whole_rates(record.dag)
        recorded[whole] += 1
        exact[whole] += found == record.simulated_makespan
        # The public simulator carries a rounded remainder where a rate is fractional.
        tolerance = 0 if whole else 0.01
        assert abs(found - record.simulated_makespan) <= tolerance * record.simulated_makespan, record.name

    assert recorded == {True: 68, False: 40}
    assert exact == {True: 68, False: 36}


def test_no_recorded_schedule_stalls_for_ever_and_stalls_explain_durations() -> None:
    for record, replay in recorded_replays():
        found = simulate(record.dag, replay)
        stalled = np.zeros(record.dag.nodes_count, dtype=np.int64)
        np.add.at(stalled, record.dag.edge_target, found.read_stall)
        np.add.at(stalled, record.dag.edge_source, found.write_stall)

        assert found.deadlock == (), record.name
        assert NEVER not in found.end
        assert (found.end - found.start).tolist() == (record.dag.work + stalled).tolist(), record.name


def test_a_barrier_between_blocks_makes_no_recorded_schedule_faster() -> None:
    slower = 0
    for record, replay in recorded_replays():
        free = simulate(record.dag, replay, details=False)
        held = simulate(record.dag, Replay(**{**_fields(replay), "barrier": True}), details=False)  # type: ignore[arg-type]
        assert (held.end >= free.end).all(), record.name
        slower += held.makespan_cycles > free.makespan_cycles
        for block in range(1, max(record.block) + 1):
            before = [node for node, other in enumerate(record.block) if other < block]
            inside = [node for node, other in enumerate(record.block) if other == block]
            if before and inside:
                assert held.start[inside].min() >= held.end[before].max(), record.name

    assert slower > 0


def _fields(replay: Replay) -> dict[str, object]:
    return {name: getattr(replay, name) for name in ("pe", "order", "streamed", "fifo_capacity", "block")}
