"""Chains: tasks in a row that take the processing elements in turn, which no schedule beats.

When a task starts, all tasks before it have started, and at most P - 1 of them are still on the machine. They end in
the order of the chain, so the one P places before it has ended. In turn each task starts as soon as that and its first
element allow; and nobody gains by a later end of another.
"""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.canonical_dag.dag import Bool
from dfcompile.scheduler.listing.list_schedule import FREE, ListSchedule


def is_chain(dag: CanonicalDag) -> bool:
    """Return whether the tasks of a graph are one after another, streaming or through memory between them.

    What is in memory from the beginning or to the end plays no part: nobody waits for it, or it waits for nobody.
    """
    inner = _inner_edges(dag)
    ends = dag.edge_source[inner], dag.edge_target[inner]
    degrees = [np.bincount(end, minlength=dag.nodes_count) for end in ends]
    is_inner = dag.is_computational | (degrees[0] + degrees[1] > 0)
    return (
        dag.tasks_count > 0
        and int(inner.sum()) == int(is_inner.sum()) - 1
        and all(int(degree.max(initial=0)) <= 1 for degree in degrees)
    )


def in_turn(dag: CanonicalDag, pes: int, streamed: Bool) -> ListSchedule:
    """Return the schedule of a chain whose tasks take the elements in turn.

    Its times are the earliest, as far as they are known without looking at single elements.

    Args:
        dag: a chain.
        pes: number of processing elements P.
        streamed: which edges stream, shape [edges].
    """
    sequence, task, work = topological_order(dag).tolist(), dag.is_computational.tolist(), dag.work.tolist()
    producer, to_start, to_end = _producers(dag)
    streams = np.zeros(dag.nodes_count, dtype=np.bool_)
    streams[dag.edge_target[_inner_edges(dag) & streamed]] = True
    is_stream = streams.tolist()
    before = [FREE] * dag.nodes_count
    start, end = [0] * dag.nodes_count, [0] * dag.nodes_count
    row: list[int] = []
    for node in sequence:
        other = producer[node]
        begin = least = 0
        if other != FREE:
            begin = start[other] + to_start[other] if is_stream[node] else end[other]
            least = end[other] + to_end[node] if is_stream[node] else 0
        if task[node]:
            if len(row) >= pes:
                before[node] = row[-pes]
                begin = max(begin, end[row[-pes]])
            row.append(node)
            start[node], end[node] = begin, max(begin + work[node], least)
        else:
            start[node] = end[node] = begin
    return ListSchedule(sequence, before, *_with_results(dag, start, end), max(end, default=0))


def _inner_edges(dag: CanonicalDag) -> Bool:
    """Return the edges that neither leave what is there from the beginning nor enter what nobody reads."""
    task = dag.is_computational
    written, read = np.zeros(dag.nodes_count, dtype=np.bool_), np.zeros(dag.nodes_count, dtype=np.bool_)
    written[dag.edge_target], read[dag.edge_source] = True, True
    inner: Bool = (task | written)[dag.edge_source] & (task | read)[dag.edge_target]
    return inner


def _producers(dag: CanonicalDag) -> tuple[list[int], list[int], list[int]]:
    """Return whom each node of a chain waits for, and of each node when its first element is there and its last."""
    producer = np.full(dag.nodes_count, FREE, dtype=np.int64)
    inner = _inner_edges(dag)
    producer[dag.edge_target[inner]] = dag.edge_source[inner]
    to_start = np.maximum(-(-dag.volume_in // np.maximum(dag.volume_out, 1)), 1)
    to_end = np.maximum(-(-dag.volume_out // np.maximum(dag.volume_in, 1)), 1)
    return producer.tolist(), to_start.tolist(), to_end.tolist()


def _with_results(dag: CanonicalDag, start: list[int], end: list[int]) -> tuple[list[int], list[int]]:
    """Return starts and ends in which what nobody reads is complete when its last writer has ended."""
    times = np.array(end, dtype=np.int64)
    outer = np.flatnonzero(~_inner_edges(dag) & dag.is_computational[dag.edge_source])
    for edge in outer.tolist():
        target = int(dag.edge_target[edge])
        start[target] = end[target] = max(end[target], int(times[dag.edge_source[edge]]))
    return start, end
