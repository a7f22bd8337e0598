"""The baseline: earliest finish time with insertion, every edge through memory."""

from bisect import bisect_left, insort

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.canonical_dag.analysis.longest_path import longest_paths
from dfcompile.scheduler.baseline.gaps import GapIndex
from dfcompile.scheduler.options import check_pes
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule
from dfcompile.scheduler.timing.exact_integers import int64_column

_UNUSED = -1


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
        self._pes = pes
        self._ends: list[tuple[int, int]] = []  # (end, -pe) of the elements that were used, in order

    def place(self, ready: int, duration: int) -> tuple[int, int]:
        """Book the earliest ``duration`` cycles from ``ready`` on; return their start and the element."""
        slot = self._slot(ready)
        end, pe = (0, len(self._ends)) if slot == _UNUSED else (self._ends[slot][0], -self._ends[slot][1])
        begin = max(end, ready)
        gap = self._gaps.take(ready, duration, begin)
        if gap is not None:
            first, last, pe = gap
            begin = max(first, ready)
            self._gaps.add(first, begin, pe)
            self._gaps.add(begin + duration, last, pe)
            return begin, pe
        if slot != _UNUSED:
            del self._ends[slot]
        insort(self._ends, (begin + duration, -pe))
        self._gaps.add(end, begin, pe)
        return begin, pe

    def _slot(self, ready: int) -> int:
        """Return the place of the element that ends latest up to ``ready``, else of one unused, else that ends first.

        Of those that end in one cycle it is the lowest, which stands last.
        """
        before = bisect_left(self._ends, (ready + 1,))
        if before:
            return before - 1
        if len(self._ends) < self._pes:
            return _UNUSED
        return bisect_left(self._ends, (self._ends[0][0] + 1,)) - 1


def _by_rank(dag: CanonicalDag) -> list[int]:
    rank = longest_paths(dag.edge_target, dag.edge_source, dag.work)
    order = topological_order(dag)
    by_rank: list[int] = order[np.argsort(-rank[order], kind="stable")].tolist()
    return by_rank  # equal ranks stay in topological order
