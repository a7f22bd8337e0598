"""The baseline: earliest finish time with insertion, every edge through memory."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.canonical_dag.analysis.longest_path import longest_paths
from dfcompile.canonical_dag.dag import Int32
from dfcompile.scheduler.baseline.gaps import GapIndex
from dfcompile.scheduler.options import check_pes
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule
from dfcompile.scheduler.timing.exact_integers import int64_column


def schedule_non_streaming(dag: CanonicalDag, pes: int) -> NonStreamingSchedule:
    """List scheduling by upward rank: each task where it finishes first, in idle gaps too [dematteis23, section 7].

    The upward rank of a node is its work plus the largest rank of its successors: the longest path to the end.
    Nodes are taken by decreasing rank, among equals in topological order. Between equally early places the order
    is: a gap (the one that opened first), then the end of the processing element that was busy longest.

    Tasks that follow one another, are ready at once and take as long are placed together: the tasks of a large scope.

    Raises:
        UserError: ``pes`` is below 1, or a time does not fit in 64 bits.
    """
    check_pes(pes)
    order, begins = _by_rank(dag)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    work, computational = dag.work[order].tolist(), dag.is_computational[order].tolist()
    parents, first = place[dag.edge_source[dag.in_edges]].tolist(), dag.in_start[order].tolist()
    last = dag.in_start[order + 1].tolist()
    machine = _Machine(min(pes, max(dag.tasks_count, 1)))  # no more can be used
    start, end, element = list[int](), list[int](), list[int]()  # in that order
    for begin, stop in pairwise(begins):
        ready = [max([end[parent] for parent in parents[first[at] : last[at]]], default=0) for at in range(begin, stop)]
        if not computational[begin]:
            start += ready
            end += ready
            element.append(NO_PE)
            continue
        for time, alike in groupby(ready):
            for booked, elements in machine.place(time, work[begin], sum(1 for _ in alike)):
                element += elements
                start += [booked] * len(elements)
                end += [booked + work[begin]] * len(elements)
    makespan = max(end, default=0)
    begun, ended = (int64_column(column)[place] for column in (start, end))
    pe = np.array(element, dtype=np.int32)[place]
    for column in (pe, begun, ended):
        column.setflags(write=False)
    return NonStreamingSchedule(pes, pe, begun, ended, makespan)


class _Machine:
    """P identical processing elements: their idle gaps, and the ends of what they run."""

    def __init__(self, pes: int) -> None:
        self._gaps = GapIndex()
        self._pes = pes
        self._ends: list[tuple[int, int]] = []  # (end, -pe) of the elements that were used, in order

    def place(self, ready: int, duration: int, count: int) -> Iterator[tuple[int, Sequence[int]]]:
        """Book the earliest ``duration`` cycles from ``ready`` on, so often; yield starts, and the elements of each.

        Elements that have been idle since the same cycle are booked at once: none of the gaps before ``ready`` that
        this leaves is for the others.
        """
        while count:
            before = bisect_left(self._ends, (ready + 1,))
            is_unused = not before and len(self._ends) < self._pes
            # The element that ends latest up to then, else one unused, else the one that ends first.
            end = 0 if is_unused else self._ends[before - 1 if before else 0][0]
            begin = max(end, ready)
            gap = self._gaps.take(ready, duration, begin)
            elements: Sequence[int]
            if gap is not None:
                first, last, pe = gap
                begin, elements = max(first, ready), [pe]
                self._gaps.add(first, begin, pe)
                self._gaps.add(begin + duration, last, pe)
            else:
                elements = self._unused(count) if is_unused else self._taken(end, count)
                self._book(elements, begin + duration)
                for pe in elements if end < begin else ():
                    self._gaps.add(end, begin, pe)
            yield begin, elements
            count -= len(elements)

    def _unused(self, most: int) -> Sequence[int]:
        """Return elements that were not used, in order."""
        used = len(self._ends)
        return range(used, min(used + most, self._pes))

    def _taken(self, end: int, most: int) -> Sequence[int]:
        """Take out elements that end in a cycle, in order."""
        last = bisect_left(self._ends, (end + 1,))
        first = max(bisect_left(self._ends, (end,)), last - most)  # the lowest stands last
        taken = [-element for _, element in reversed(self._ends[first:last])]
        del self._ends[first:last]
        return taken

    def _book(self, elements: Sequence[int], end: int) -> None:
        """Put in elements with what is then their end."""
        first, last = bisect_left(self._ends, (end,)), bisect_left(self._ends, (end + 1,))
        self._ends[first:last] = sorted([*self._ends[first:last], *((end, -element) for element in elements)])


def _by_rank(dag: CanonicalDag) -> tuple[Int32, list[int]]:
    """Return the nodes by rank, and where those begin that are placed apart, and the end.

    Together are tasks of one rank that take as long: with a work, none of them reads from another.
    """
    rank = longest_paths(dag.edge_target, dag.edge_source, dag.work)
    order = topological_order(dag)
    order = order[np.argsort(-rank[order], kind="stable")]  # equal ranks stay in topological order
    rank, work = rank[order], dag.work[order]
    is_first = np.ones(len(order) + 1, dtype=np.bool_)
    is_first[1:-1] = (rank[1:] != rank[:-1]) | (work[1:] != work[:-1]) | (work[1:] == 0)
    return order, np.flatnonzero(is_first).tolist()
