"""What the audit finds that a streaming schedule takes at least: paths, and work shared by the processing elements."""

import numpy as np

from dfcompile.audit.paths import Graph, Level
from dfcompile.canonical_dag.dag import Bool, Int64

_NO_STREAM = -1


class LeastMakespan:
    """Bounds on the schedules of one graph; paths are found once."""

    def __init__(self, paths: Graph, tasks: Bool, taken: Int64, given: Int64) -> None:
        """Find when each task can start and end at the earliest, and what has to follow it.

        A task starts when each producer has sent an element, after ``ceil(I / O)`` of its own inputs, or has ended if
        memory is between them; after the last element of a producer it has to send ``ceil(O / I)``, one at least.

        Args:
            paths: the nodes and edges.
            tasks: which nodes are tasks, shape [nodes].
            taken: I, elements on every input edge, shape [nodes].
            given: O, elements on every output edge, shape [nodes].
        """
        work = np.where(tasks, np.maximum(taken, given), 0)
        awaited = np.maximum(-(-taken // np.maximum(given, 1)), 1)
        written = np.maximum(-(-given // np.maximum(taken, 1)), 1)
        start, end = _earliest(paths, tasks, (work, awaited, written))
        tail, _ = _earliest(paths.reversed, tasks, (work, written, awaited))
        self._start, self._tail, self._work = start[tasks], tail[tasks], work[tasks]
        # From behind, too, a task has ended before what it streams to has.
        self._longest = int((end + np.where(tasks, tail, 0)).max(initial=0))

    def on(self, pes: int) -> int:
        """Return cycles that every schedule on so many processing elements takes at least.

        The longest path; or what starts late, or is followed by much, and its work shared by all elements.
        """
        return max(self._longest, _shared(self._start, self._work, pes), _shared(self._tail, self._work, pes))


def _shared(beside: Int64, work: Int64, pes: int) -> int:
    """Return the most cycles that some tasks are away from one end of the schedule, and share all elements besides."""
    last = np.argsort(-beside, kind="stable")
    together = np.cumsum(work[last])
    return int((beside[last] - (-together // pes)).max(initial=0))


Cycles = tuple[Int64, Int64, Int64]  # work; from start to first element; after the last element that is taken


def _earliest(graph: Graph, tasks: Bool, cycles: Cycles) -> tuple[Int64, Int64]:
    """Return the earliest start and end of each node, in either direction of time.

    Args:
        graph: what each node waits for.
        tasks: which nodes are tasks, shape [nodes].
        cycles: of each node, shape [nodes].
    """
    return _by_nodes(graph, tasks, cycles) if graph.levels is None else _by_levels(graph.levels, tasks, cycles)


def _by_levels(levels: tuple[Level, ...], tasks: Bool, cycles: Cycles) -> tuple[Int64, Int64]:
    work, to_first, from_last = cycles
    start, end = np.zeros(len(work), dtype=np.int64), work.copy()
    for vertices, producers, begins in levels:
        is_task = np.repeat(tasks[vertices], np.diff(begins, append=len(producers)))
        streams = is_task & tasks[producers]
        ready = np.where(streams, start[producers] + to_first[producers], end[producers])
        begin = np.maximum.reduceat(ready, begins)
        streamed = np.maximum.reduceat(np.where(streams, end[producers], _NO_STREAM), begins)
        last = np.where(streamed == _NO_STREAM, 0, streamed + from_last[vertices])
        start[vertices], end[vertices] = begin, np.maximum(begin + work[vertices], last)
    return start, end


def _by_nodes(graph: Graph, tasks: Bool, cycles: Cycles) -> tuple[Int64, Int64]:
    others, begins = graph.producers
    is_task = tasks.tolist()
    work, to_first, from_last = (column.tolist() for column in cycles)
    start, end = [0] * len(work), [0] * len(work)
    for node in graph.order:
        begin, streamed = 0, _NO_STREAM
        for other in others[begins[node] : begins[node + 1]]:
            if is_task[node] and is_task[other]:
                ready = start[other] + to_first[other]
                if end[other] > streamed:
                    streamed = end[other]
            else:
                ready = end[other]
            if ready > begin:
                begin = ready
        start[node] = begin
        end[node] = begin + work[node]
        if streamed != _NO_STREAM and streamed + from_last[node] > end[node]:
            end[node] = streamed + from_last[node]
    return np.array(start, dtype=np.int64), np.array(end, dtype=np.int64)
