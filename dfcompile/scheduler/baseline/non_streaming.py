"""The baseline: earliest finish time with insertion, every edge through memory."""

from heapq import heapify, heappop, heappush

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.scheduler.baseline.gaps import Gap, GapIndex
from dfcompile.scheduler.options import check_pes
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule
from dfcompile.scheduler.timing.exact_integers import int64_column


def schedule_non_streaming(dag: CanonicalDag, pes: int) -> NonStreamingSchedule:
    """List scheduling by upward rank: each task where it finishes first, in idle gaps too [dematteis23, section 7].

    The upward rank of a node is its work plus the largest rank of its successors: the longest path to the end.
    Nodes are taken by decreasing rank, among equals in topological order. Between equally early places the order
    is: a gap (the one that opened first), then the end of the processing element that was busy longest.

    Raises:
        UserError: ``pes`` is below 1, or a time does not fit in 64 bits.
    """
    check_pes(pes)
    work, computational = dag.work.tolist(), dag.is_computational.tolist()
    parents, in_start = dag.edge_source[dag.in_edges].tolist(), dag.in_start.tolist()
    machine = _Machine(min(pes, max(dag.tasks_count, 1)))  # no more can be used
    start, end, pe = [0] * dag.nodes_count, [0] * dag.nodes_count, [NO_PE] * dag.nodes_count
    for node in _by_rank(dag):
        ready = max([end[parent] for parent in parents[in_start[node] : in_start[node + 1]]], default=0)
        if computational[node]:
            start[node], pe[node] = machine.place(ready, work[node])
        else:
            start[node] = ready
        end[node] = start[node] + work[node]
    element = np.array(pe, dtype=np.int32)
    element.setflags(write=False)
    return NonStreamingSchedule(pes, element, int64_column(start), int64_column(end), max(end, default=0))


class _Machine:
    """P identical processing elements: their idle gaps, and the ends of what they run."""

    def __init__(self, pes: int) -> None:
        self._gaps = GapIndex()
        self._idle: list[tuple[int, int]] = []  # (-end, pe) of elements that end before the time last asked for
        self._busy = [(0, pe) for pe in range(pes)]
        heapify(self._busy)

    def place(self, ready: int, duration: int) -> tuple[int, int]:
        """Book the earliest ``duration`` cycles from ``ready`` on; return their start and the element."""
        gap = self._gaps.find(ready, duration)
        end, pe = self._earliest_free(ready)
        if gap is not None and max(gap.start, ready) <= max(end, ready):
            heappush(self._busy, (end, pe))
            begin = max(gap.start, ready)
            self._gaps.remove(gap)
            self._gaps.add(Gap(gap.start, begin, gap.pe))
            self._gaps.add(Gap(begin + duration, gap.end, gap.pe))
            return begin, gap.pe
        begin = max(end, ready)
        self._gaps.add(Gap(end, begin, pe))
        heappush(self._busy, (begin + duration, pe))
        return begin, pe

    def _earliest_free(self, ready: int) -> tuple[int, int]:
        """Take the element that ends latest up to ``ready``, else the one that ends first."""
        while self._busy and self._busy[0][0] <= ready:
            end, pe = heappop(self._busy)
            heappush(self._idle, (-end, pe))
        while self._idle and -self._idle[0][0] > ready:
            late, pe = heappop(self._idle)
            heappush(self._busy, (-late, pe))
        if self._idle:
            late, pe = heappop(self._idle)
            return -late, pe
        return heappop(self._busy)


def _by_rank(dag: CanonicalDag) -> list[int]:
    work = dag.work.tolist()
    targets, out_start = dag.edge_target[dag.out_edges].tolist(), dag.out_start.tolist()
    order = topological_order(dag)
    rank = [0] * dag.nodes_count
    for node in reversed(order.tolist()):
        after = [rank[target] for target in targets[out_start[node] : out_start[node + 1]]]
        rank[node] = work[node] + max(after, default=0)
    return sorted(order.tolist(), key=rank.__getitem__, reverse=True)  # equal ranks stay in topological order
