"""The recorded schedules of the public scheduler as canonical DAGs with blocks and streaming flags."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, NodeKind

_FILE = Path(__file__).parents[2] / "data" / "canonical" / "schedules.json"


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
    has_buffers: bool


@cache
def reference_schedules() -> tuple[ReferenceSchedule, ...]:
    """Read all records."""
    return tuple(_read(record) for record in json.loads(_FILE.read_text()))


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
        has_buffers=bool(buffers),
    )


def _integers(values: object) -> list[int]:
    assert isinstance(values, list)
    return [int(value) for value in values]
