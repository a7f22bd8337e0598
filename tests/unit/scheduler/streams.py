"""Small graphs whose tasks stream, and replays of them."""

from itertools import pairwise

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, DagBuilder
from dfcompile.records import replace
from dfcompile.scheduler.simulation import Replay


def stream_graph(edges: list[tuple[str, str, int]]) -> CanonicalDag:
    """A graph of computational nodes, named by first appearance; ``in``, ``out`` and capital names are buffers."""
    builder = DagBuilder("stream")
    number: dict[str, int] = {}
    for source, target, volume in edges:
        for name in (source, target):
            if name not in number:
                scope = builder.add_scope(name)
                number[name] = (
                    builder.add_memory(scope) if name in ("in", "out") or name.isupper() else builder.add_task(scope)
                )
        builder.add_edge(number[source], number[target], volume)
    return builder.finish()


def all_streamed(dag: CanonicalDag, capacity: int) -> Replay:
    """Each task on a processing element of its own, every edge between tasks a FIFO."""
    task = dag.is_computational
    return Replay(
        pe=np.where(task, np.arange(dag.nodes_count), -1).astype(np.int32),
        order=np.arange(dag.nodes_count, dtype=np.int64),
        streamed=task[dag.edge_source] & task[dag.edge_target],
        fifo_capacity=np.full(dag.edges_count, capacity, dtype=np.int64),
        block=np.zeros(dag.nodes_count, dtype=np.int32),
    )


def chain(tasks: int, volume: int) -> CanonicalDag:
    """``in -> x0 -> x1 … -> out``, all element-wise."""
    names = ["in", *(f"x{number}" for number in range(tasks)), "out"]
    return stream_graph([(source, target, volume) for source, target in pairwise(names)])


def bypass(volume: int, long_path: list[int]) -> CanonicalDag:
    """A fork and a join of one volume, joined by one edge and by tasks that emit the volumes given, then the first."""
    path = [("fork", "x0", volume)]
    for number, emitted in enumerate([*long_path, volume]):
        target = f"x{number + 1}" if number < len(long_path) else "join"
        path.append((f"x{number}", target, emitted))
    return stream_graph([("in", "fork", volume), *path, ("fork", "join", volume), ("join", "out", volume)])


def scaled(dag: CanonicalDag, factor: int) -> CanonicalDag:
    """The same graph with ``factor`` times the volumes."""
    columns = [column * factor for column in (dag.volume_in, dag.volume_out, dag.edge_volume)]
    for column in columns:
        column.setflags(write=False)
    return replace(dag, volume_in=columns[0], volume_out=columns[1], edge_volume=columns[2])
