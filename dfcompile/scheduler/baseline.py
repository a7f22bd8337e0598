"""The baseline: earliest finish time with insertion, every edge through memory.

Tasks are put into idle gaps of processing elements. What depends on no input of the model can be done late, so that
what it makes waits for less time in memory.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, TensorRole, topological_order
from dfcompile.canonical_dag.analysis import apart, longest_paths
from dfcompile.canonical_dag.dag import Bool, Int32, Int64, frozen
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.records import replace
from dfcompile.scheduler.gaps import GapIndex
from dfcompile.scheduler.options import check_pes
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule
from dfcompile.scheduler.timing import fitting

_FEW = 16  # nodes at once: of these it is quicker to look at one after another


def schedule_non_streaming(dag: CanonicalDag, pes: int, hardware: Hardware = LITERATURE) -> NonStreamingSchedule:
    """List scheduling by upward rank: each task where it finishes first, in idle gaps too [dematteis23, section 7].

    The upward rank of a node is its work plus the largest rank of its successors: the longest path to the end.
    Nodes are taken by decreasing rank, among equals in topological order. Between equally early places the order
    is: a gap (the one that opened first), then the end of the processing element that was busy longest.

    Tasks that follow one another, are ready at once and take as long are placed together: the tasks of a large scope.

    Args:
        dag: the graph.
        pes: number of processing elements P.
        hardware: what tasks take.

    Raises:
        UserError: ``pes`` is below 1, or a time does not fit in 64 bits.
    """
    check_pes(pes)
    cycles = hardware.cycles(dag)
    order, begins = _by_rank(dag, cycles)
    count = len(order)
    place = np.empty_like(order)
    place[order] = np.arange(count)
    work, computational = cycles[order].data, dag.is_computational[order].tolist()
    parents, first, last = place[dag.edge_source[dag.in_edges]], dag.in_start[order], dag.in_start[order + 1]
    parent, begins_at, ends_at = parents.data, first.data, last.data
    machine = _Machine(min(pes, max(dag.tasks_count, 1)))  # no more can be used
    # In that order: as columns where many tasks are placed together, and number by number.
    columns, element = np.zeros((2, count), dtype=np.int64), np.full(count, NO_PE, dtype=np.int32)
    start, end = (column.data for column in columns)
    for begin, stop in pairwise(begins):
        if stop - begin > _FEW:
            runs = _runs(_latest(columns[1], parents, first[begin:stop], last[begin:stop]))
        else:
            ready = [
                max([end[other] for other in parent[begins_at[at] : ends_at[at]]], default=0)
                for at in range(begin, stop)
            ]
            if not computational[begin]:
                start[begin] = end[begin] = ready[0]
                continue
            if stop - begin == 1:
                booked, element[begin] = machine.place_one(ready[0], work[begin])
                start[begin], end[begin] = booked, fitting(booked + work[begin])
                continue
            runs = ((time, sum(1 for _ in alike)) for time, alike in groupby(ready))
        at = begin
        for time, count_alike in runs:
            for booked, elements in machine.place(time, work[begin], count_alike):
                own = slice(at, at + len(elements))
                element[own], columns[0, own], columns[1, own] = elements, booked, fitting(booked + work[begin])
                at = own.stop
    begun, ended = columns[:, place]
    makespan = int(ended.max(initial=0))
    return NonStreamingSchedule(pes, frozen(element[place]), frozen(begun), frozen(ended), makespan)


def _latest(end: Int64, parents: Int32, first: Int64, last: Int64) -> Int64:
    """Return the largest end of the parents of some nodes, 0 of one without any; parents of each are in a row."""
    found = np.zeros(len(first), dtype=np.int64)
    counts = last - first
    has_any = np.flatnonzero(counts)
    if len(has_any):
        first, counts = first[has_any], counts[has_any]
        begins = np.cumsum(counts) - counts
        rows = np.repeat(first - begins, counts) + np.arange(int(counts.sum()))
        found[has_any] = np.maximum.reduceat(end[parents[rows]], begins)
    return found


def _runs(values: Int64) -> Iterator[tuple[int, int]]:
    """Yield values, and how often each stands in a row."""
    borders = np.flatnonzero(values[1:] != values[:-1]) + 1
    borders = np.concatenate([[0], borders, [len(values)]])
    return zip(values[borders[:-1]].tolist(), np.diff(borders).tolist(), strict=True)


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
            end, is_unused = self._end_before(ready)
            begin = max(end, ready)
            booked = self._gaps.book(ready, duration, begin, count)
            yield from ((cycle, [pe]) for cycle, pe in booked)
            count -= len(booked)
            if not count:
                break
            used = len(self._ends)
            elements = range(used, min(used + count, self._pes)) if is_unused else self._taken(end, count)
            self._book(elements, begin + duration)
            for pe in elements if end < begin else ():
                self._gaps.add(end, begin, pe)
            yield begin, elements
            count -= len(elements)

    def place_one(self, ready: int, duration: int) -> tuple[int, int]:
        """Book the earliest ``duration`` cycles from ``ready`` on once; return the start, and the element."""
        end, is_unused = self._end_before(ready)
        begin = max(end, ready)
        booked = self._gaps.book(ready, duration, begin, 1)
        if booked:
            return booked[0]
        # The lowest of those that end then stands last.
        pe = len(self._ends) if is_unused else -self._ends.pop(bisect_left(self._ends, (end + 1,)) - 1)[1]
        insort(self._ends, (begin + duration, -pe))
        if end < begin:
            self._gaps.add(end, begin, pe)
        return begin, pe

    def _end_before(self, ready: int) -> tuple[int, bool]:
        """Return the end of the element that ends latest up to a cycle, else 0 of an unused one, else the first end.

        Returns:
            Also whether it is an unused one.
        """
        before = bisect_left(self._ends, (ready + 1,))
        is_unused = not before and len(self._ends) < self._pes
        return 0 if is_unused else self._ends[before - 1 if before else 0][0], is_unused

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


def _by_rank(dag: CanonicalDag, cycles: Int64) -> tuple[Int32, list[int]]:
    """Return the nodes by rank, and where those begin that are placed apart, and the end.

    Together are tasks of one rank that take as long: with a work, none of them reads from another.
    """
    rank = longest_paths(dag.edge_target, dag.edge_source, cycles)
    order = topological_order(dag)
    order = order[np.argsort(-rank[order], kind="stable")]  # equal ranks stay in topological order
    rank, work = rank[order], cycles[order]
    is_first = np.ones(len(order) + 1, dtype=np.bool_)
    is_first[1:-1] = (rank[1:] != rank[:-1]) | (work[1:] != work[:-1]) | (work[1:] == 0)
    return order, np.flatnonzero(is_first).tolist()


def postponed(dag: CanonicalDag, found: NonStreamingSchedule, hardware: Hardware = LITERATURE) -> NonStreamingSchedule:
    """Return a schedule in which tasks that depend on no input run late, and all others stay where they are.

    Such tasks write the border of a padded array, or transform filters. Each is put into the latest idle gap before
    the tasks that read from it, the last one first. If one of them fits nowhere, or where they were others could begin
    so much earlier that the makespan is another, the schedule stays as it is.

    Args:
        dag: the graph.
        found: a schedule of it.
        hardware: what tasks take.
    """
    cycles = hardware.cycles(dag)
    is_moved = depends_on_no_input(dag)
    tasks = is_moved & dag.is_computational & (dag.work > 0)
    if not tasks.any():
        return found
    makespan, begun, element = found.makespan_cycles, found.start.copy(), found.pe.copy()
    gaps = _gaps(found, dag.is_computational & (dag.work > 0) & ~tasks)
    needed = np.where(dag.is_computational, found.start, makespan)  # a task when it starts
    read = dag.is_buffer[dag.edge_source] & dag.is_computational[dag.edge_target]
    np.minimum.at(needed, dag.edge_source[read], found.start[dag.edge_target[read]])  # a buffer by its first reader
    order = topological_order(dag)[::-1]
    order = order[is_moved[order]]
    place = np.full(dag.nodes_count, -1, dtype=np.int64)
    place[order] = np.arange(len(order))
    edges = np.flatnonzero(is_moved[dag.edge_source])
    edges = edges[np.argsort(place[dag.edge_source[edges]], kind="stable")]
    reader, writer = dag.edge_target[edges], place[dag.edge_source[edges]]
    rows = np.searchsorted(writer, np.arange(len(order) + 1))
    both = is_moved[reader]
    for first, end in pairwise(apart(len(order), writer[both], place[reader[both]])):
        nodes, own = order[first:end], slice(rows[first], rows[end])
        latest = np.full(len(nodes), makespan)
        np.minimum.at(latest, writer[own] - first, needed[reader[own]])
        needed[nodes] = begun[nodes] = latest - cycles[nodes]
        placed, latest = nodes[tasks[nodes]], latest[tasks[nodes]]
        for like in _alike(latest, cycles[placed]):
            work, ready = int(cycles[placed[like.start]]), makespan - int(latest[like.start])
            # All cycles are counted from the end: what is latest there comes first.
            booked = gaps.book(ready, work, makespan - work, like.stop - like.start)
            if len(booked) < like.stop - like.start:
                return found
            begins, pes = np.array(booked, dtype=np.int64).T
            element[placed[like]] = pes
            needed[placed[like]] = begun[placed[like]] = makespan - begins - work
    ended = np.where(is_moved, begun + cycles, found.end)
    into = dag.is_buffer[dag.edge_target] & is_moved[dag.edge_source]
    np.maximum.at(ended, dag.edge_target[into], ended[dag.edge_source[into]])
    begun = np.where(dag.is_buffer, ended, begun)
    after = replace(found, pe=element, start=begun, end=ended)
    return after if _earliest_end(dag, after, cycles) == makespan else found


def _alike(*columns: Int64) -> Iterator[slice]:
    """Yield the rows that are equal and follow one another."""
    count = len(columns[0])
    differs = np.ones(count + 1, dtype=np.bool_)
    differs[1:-1] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return (slice(*ends) for ends in pairwise(np.flatnonzero(differs).tolist() if count else ()))


def _earliest_end(dag: CanonicalDag, found: NonStreamingSchedule, cycles: Int64) -> int:
    """Return when all have ended if each task begins once what it reads is there and its element is free."""
    work, source, target = ordered(dag, found, cycles)
    return int(longest_paths(source, target, work).max())


def ordered(dag: CanonicalDag, found: NonStreamingSchedule, cycles: Int64) -> tuple[Int64, Int32, Int32]:
    """Return the cycles of each node, and who comes after whom: as the graph says, or on an element."""
    work = np.where(dag.is_computational, cycles, 0)
    tasks = np.flatnonzero(work)
    tasks = tasks[np.lexsort((found.start[tasks], found.pe[tasks]))]
    follows = found.pe[tasks[1:]] == found.pe[tasks[:-1]]
    source = np.concatenate([dag.edge_source, tasks[:-1][follows]])
    return work, source, np.concatenate([dag.edge_target, tasks[1:][follows]])


def depends_on_no_input(dag: CanonicalDag) -> Bool:
    """Return of which nodes all that leads to them is made from constants alone, shape [nodes]."""
    constants = {tensor.name for tensor in dag.tensors if tensor.role is TensorRole.PARAMETER}
    of_constant = np.array([scope.origin in constants for scope in dag.scopes], dtype=np.bool_)
    is_first = np.diff(dag.in_start) == 0
    is_given = is_first & ~dag.is_computational & ~of_constant[dag.node_scope]
    made = ~is_first | dag.is_computational
    by_others = np.bincount(dag.edge_target, ~is_first[dag.edge_source] | is_given[dag.edge_source], dag.nodes_count)
    if not (made & (by_others == 0)).any():  # what is made from constants begins with what nothing else leads to
        return np.zeros(dag.nodes_count, dtype=np.bool_)
    reached = longest_paths(dag.edge_source, dag.edge_target, is_given.astype(np.int64))
    return np.asarray((reached == 0) & made)


def _gaps(found: NonStreamingSchedule, stays: Bool) -> GapIndex:
    """Return the idle cycles of all elements but for some tasks, counted from the end."""
    tasks = np.flatnonzero(stays)
    tasks = tasks[np.lexsort((found.start[tasks], found.pe[tasks]))]
    pe = np.arange(int(found.pe.max()) + 1)
    borders = np.searchsorted(found.pe[tasks], np.arange(len(pe) + 1))
    # Before each task, and behind the last one of each element.
    opens = np.insert(found.end[tasks], borders[:-1], 0)
    closes = np.insert(found.start[tasks], borders[1:], found.makespan_cycles)
    element = np.repeat(pe, np.diff(borders) + 1)
    columns = found.makespan_cycles - closes, found.makespan_cycles - opens, element
    return GapIndex.of(zip(*(column.tolist() for column in columns), strict=True))
