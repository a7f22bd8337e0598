"""The baseline: earliest finish time with insertion, every edge through memory.

Tasks are put into idle gaps of processing elements. What depends on no input of the model can be done late, so that
what it makes waits for less time in memory.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import TypeAlias

import numpy as np

from dfcompile.canonical_dag import CanonicalDag, TensorRole, topological_order
from dfcompile.canonical_dag.analysis import longest_paths
from dfcompile.canonical_dag.dag import Bool, Int32, Int64, frozen
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.records import replace
from dfcompile.scheduler.options import check_pes
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule
from dfcompile.scheduler.timing import int64_column

_CHUNK = 64
_FIRST_CAPACITY = 64  # chunks


Gap: TypeAlias = tuple[int, int, int]  # start, end and element of an idle interval ``[start, end)``, in cycles


class GapIndex:
    """Gaps in order of their start, in chunks with a limit to their latest end and one to their longest gap.

    In a chunk whose gaps all start in time, one that ends late enough fits; in a chunk whose gaps all start later, one
    that is long enough. So a search compares two columns with a number each, and besides the chunk that it finds looks
    into the one in between. With G gaps that is O(G / chunk) comparisons by NumPy, some microseconds for a million
    gaps. A limit that is too high since a gap was taken is lowered where it misleads a search.
    """

    def __init__(self) -> None:
        self._chunks: list[list[Gap]] = []
        self._first: list[tuple[int, ...]] = []  # each chunk's first gap, or one that was it
        self._limits: Int64 = np.zeros((2, _FIRST_CAPACITY), dtype=np.int64)  # latest end, longest gap of each chunk
        self._end_of_all = 0  # no gap ends later

    @classmethod
    def of(cls, gaps: Iterable[Gap]) -> "GapIndex":
        """Return an index of many gaps; empty ones are ignored."""
        found, ordered = cls(), sorted(gap for gap in gaps if gap[0] < gap[1])
        size = _CHUNK // 2  # half full, as chunks are that were split
        found._chunks = [ordered[at : at + size] for at in range(0, len(ordered), size)]
        found._first = [chunk[0] for chunk in found._chunks]
        found._limits = np.zeros((2, max(len(found._chunks), _FIRST_CAPACITY)), dtype=np.int64)
        for position in range(len(found._chunks)):
            found._summarise(position)
        found._end_of_all = max((end for _, end, _ in ordered), default=0)
        return found

    def add(self, start: int, end: int, pe: int) -> None:
        """Add an idle interval of a processing element; an empty one is ignored."""
        if start >= end:
            return
        gap = (start, end, pe)
        if end > self._end_of_all:
            self._end_of_all = end
        if not self._chunks:
            self._open_chunk(0, [gap])
            return
        position = max(bisect_right(self._first, gap) - 1, 0)
        chunk = self._chunks[position]
        insort(chunk, gap)
        if gap < self._first[position]:
            self._first[position] = gap
        if end > self._limits[0, position]:
            self._limits[0, position] = end
        if end - start > self._limits[1, position]:
            self._limits[1, position] = end - start
        if len(chunk) > _CHUNK:
            self._open_chunk(position + 1, chunk[_CHUNK // 2 :])
            del chunk[_CHUNK // 2 :]
            self._summarise(position)

    def take(self, ready: int, duration: int, latest: int) -> Gap | None:
        """Take out the gap in which ``duration`` cycles can begin earliest, from ``ready`` to ``latest``.

        Among the gaps that allow a begin at ``ready`` the one with the earliest start is taken; among these the one
        that ends first, then that of the lowest processing element.
        """
        if ready + duration > self._end_of_all:
            return None
        begun = bisect_left(self._first, (ready + 1,))  # chunks whose first gap is open at ``ready``
        found = self._search(0, (0, begun), ready, duration)
        if found is None and latest > ready:
            found = self._search(1, (begun, bisect_left(self._first, (latest + 1,))), ready, duration)
        if found is None:
            return None
        position, place = found
        chunk = self._chunks[position]
        if chunk[place][0] > latest:
            return None
        gap, count = chunk.pop(place), len(self._chunks)
        if not chunk:
            self._limits[:, position : count - 1] = self._limits[:, position + 1 : count]
            del self._chunks[position], self._first[position]
        return gap

    def _search(self, limit: int, chunks: tuple[int, int], ready: int, duration: int) -> tuple[int, int] | None:
        """Return the chunk of the first gap that fits, and its place there.

        Args:
            limit: of chunks that decides: 0 the latest end, 1 the longest gap.
            chunks: the range that is searched.
            ready: as `take` has it.
            duration: as `take` has it.
        """
        wanted = ready + duration
        limits, least = self._limits[limit], duration if limit else wanted
        position, end = chunks
        while position < end:
            enough = limits[position:end] >= least
            step = int(enough.argmax())
            if not enough[step]:
                return None
            position += step
            if self._limits[1, position] >= duration:
                for place, (start, stop, _) in enumerate(self._chunks[position]):
                    if stop >= wanted and stop - start >= duration:
                        return position, place
                self._summarise(position)
            position += 1
        return None

    def _summarise(self, position: int) -> None:
        chunk = self._chunks[position]
        ends, lengths = [end for _, end, _ in chunk], [end - start for start, end, _ in chunk]
        self._limits[:, position] = max(ends), max(lengths)

    def _open_chunk(self, position: int, chunk: list[Gap]) -> None:
        count = len(self._chunks)
        if count == self._limits.shape[1]:
            self._limits = np.concatenate([self._limits, self._limits], axis=1)
        self._limits[:, position + 1 : count + 1] = self._limits[:, position:count]
        self._chunks.insert(position, chunk)
        self._first.insert(position, chunk[0])
        self._summarise(position)


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
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    work, computational = cycles[order].tolist(), dag.is_computational[order].tolist()
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
    return NonStreamingSchedule(pes, frozen(pe), frozen(begun), frozen(ended), makespan)


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
                used = len(self._ends)
                elements = range(used, min(used + count, self._pes)) if is_unused else self._taken(end, count)
                self._book(elements, begin + duration)
                for pe in elements if end < begin else ():
                    self._gaps.add(end, begin, pe)
            yield begin, elements
            count -= len(elements)

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
    is_moved = _depends_on_no_input(dag)
    tasks = is_moved & dag.is_computational & (dag.work > 0)
    if not tasks.any():
        return found
    makespan, start, pe = found.makespan_cycles, found.start.tolist(), found.pe.tolist()
    gaps = _gaps(found, dag.is_computational & (dag.work > 0) & ~tasks)
    work, targets, first = cycles.tolist(), dag.edge_target[dag.out_edges].tolist(), dag.out_start.tolist()
    needed = np.where(dag.is_computational, found.start, makespan)  # a task when it starts
    read = dag.is_buffer[dag.edge_source] & dag.is_computational[dag.edge_target]
    np.minimum.at(needed, dag.edge_source[read], found.start[dag.edge_target[read]])  # a buffer by its first reader
    waits, placed = needed.tolist(), is_moved.tolist()
    for node in topological_order(dag)[::-1].tolist():
        if not placed[node]:
            continue
        readers = targets[first[node] : first[node + 1]]
        latest = min([start[each] if placed[each] else waits[each] for each in readers], default=makespan)
        start[node] = latest - work[node]
        if not tasks[node]:
            continue
        ready = makespan - latest  # all cycles are counted from the end: what is latest there comes first
        gap = gaps.take(ready, work[node], makespan - work[node])
        if gap is None:
            return found
        begin, end, pe[node] = gap
        ready = max(begin, ready)
        gaps.add(begin, ready, pe[node])
        gaps.add(ready + work[node], end, pe[node])
        start[node] = makespan - ready - work[node]
    begun, element = np.array(start, dtype=np.int64), np.array(pe, dtype=np.int32)
    ended = np.where(is_moved, begun + cycles, found.end)
    into = dag.is_buffer[dag.edge_target] & is_moved[dag.edge_source]
    np.maximum.at(ended, dag.edge_target[into], ended[dag.edge_source[into]])
    begun = np.where(dag.is_buffer, ended, begun)
    after = replace(found, pe=element, start=begun, end=ended)
    return after if _earliest_end(dag, after, cycles) == makespan else found


def _earliest_end(dag: CanonicalDag, found: NonStreamingSchedule, cycles: Int64) -> int:
    """Return when all have ended if each task begins once what it reads is there and its element is free."""
    work = np.where(dag.is_computational, cycles, 0)
    tasks = np.flatnonzero(work)
    tasks = tasks[np.lexsort((found.start[tasks], found.pe[tasks]))]
    follows = found.pe[tasks[1:]] == found.pe[tasks[:-1]]
    source = np.concatenate([dag.edge_source, tasks[:-1][follows]])
    return int(longest_paths(source, np.concatenate([dag.edge_target, tasks[1:][follows]]), work).max())


def _depends_on_no_input(dag: CanonicalDag) -> Bool:
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
