"""The recorded schedules of the public scheduler as canonical DAGs with blocks and streaming flags."""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, NodeKind
from dfcompile.scheduler import Schedule, Timing
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.fifo import fifo_capacities
from dfcompile.scheduler.timing import steady_times
from tests.locations import SCHEDULES


@dataclass(frozen=True, slots=True)
class ReferenceSchedule:
    """One recorded schedule; nodes and edges are numbered as in ``dag``."""

    name: str
    dag: CanonicalDag
    pes: int
    partition: str
    block: list[int]
    blocks_count: int
    streamed: npt.NDArray[np.bool_]  # as recorded, without the edges into buffers
    makespan: int
    start: list[int]
    end: list[int]
    fifo: dict[int, int] | None  # capacity by edge; None where none were recorded
    simulated_makespan: float | None
    pe: list[int]  # each node of a block on its own, in the order of the recorded times; -1 for no task


@cache
def reference_schedules() -> tuple[ReferenceSchedule, ...]:
    """Read all records."""
    return tuple(_read(record) for record in json.loads(SCHEDULES.read_text()))


def _read(record: dict[str, object]) -> ReferenceSchedule:
    nodes = sorted(_integers(record["nodes"]))
    buffers = set(_integers(record["buffers"]))
    builder = DagBuilder(str(record["generator"]))
    assert nodes == list(range(len(nodes)))
    for node in nodes:
        scope = builder.add_scope(f"n{node}")
        if node in buffers:
            builder.add_memory(scope)
        elif node == record["source"]:
            builder.add_memory(scope, NodeKind.PSEUDO_SOURCE)
        elif node == record["pseudo_sink"]:
            builder.add_memory(scope, NodeKind.PSEUDO_SINK)
        else:
            builder.add_task(scope)
    edges = record["edges"]
    assert isinstance(edges, list)
    number = {}
    for source, target, volume, _ in edges:
        number[source, target] = builder.add_edge(source, target, volume)
    dag = builder.finish()
    blocks = record["blocks"]
    assert isinstance(blocks, list)
    block = {node: position for position, members in enumerate(blocks) for node in members}
    times = record["times"]
    assert isinstance(times, dict)
    fifo = record.get("fifo")
    assert fifo is None or isinstance(fifo, list)
    simulated = record.get("simulated_makespan")
    assert simulated is None or isinstance(simulated, float)
    return ReferenceSchedule(
        name=f"{record['generator']}-{record['seed']}-P{record['pes']}-{record['partition']}",
        dag=dag,
        pes=int(str(record["pes"])),
        partition=str(record["partition"]).lower(),
        block=[block[node] for node in nodes],
        blocks_count=len([members for members in blocks if members]),
        streamed=np.array([flag and target not in buffers for _, target, _, flag in edges], dtype=np.bool_),
        makespan=int(str(record["makespan"])),
        start=[int(times[str(node)][0]) for node in nodes],
        end=[int(times[str(node)][1]) for node in nodes],
        fifo=None if fifo is None else {number[source, target]: size for source, target, size in fifo},
        simulated_makespan=simulated,
        pe=_own_elements(dag, [block[node] for node in nodes], [int(node) for node in times]),
    )


def schedule_of(record: ReferenceSchedule) -> Schedule:
    """Return the recorded blocks and streams as a schedule, with times and capacities of our own."""
    blocks = Blocks.of(record.dag, record.block)
    times = steady_times(record.dag, blocks, record.streamed)
    return Schedule(
        pes=record.pes,
        partition=record.partition,
        barrier=True,
        timing=Timing.STEADY,
        block=blocks.block,
        pe=np.array(record.pe, dtype=np.int32),
        start=times.start,
        first_out=times.first_out,
        last_out=times.last_out,
        streamed=record.streamed,
        fifo_capacity=fifo_capacities(record.dag, blocks.block, record.streamed, times),
        makespan_cycles=times.makespan_cycles,
    )


def _own_elements(dag: CanonicalDag, block: list[int], order: list[int]) -> list[int]:
    taken: dict[int, int] = {}
    element = [-1] * dag.nodes_count
    for node in order:
        if dag.is_computational[node]:
            element[node] = taken.get(block[node], 0)
            taken[block[node]] = element[node] + 1
    return element


def _integers(values: object) -> list[int]:
    assert isinstance(values, list)
    return [int(value) for value in values]
