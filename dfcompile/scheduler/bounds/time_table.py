"""The time-table bound: no schedule takes T cycles if more tasks must then run at once than there are elements.

Given a makespan T, a task has an earliest start and an earliest end, and a latest start. From its latest start to its
earliest end it is on its processing element in any such schedule: its *core*. Where cores of P tasks overlap, no other
task can run: one that would have to begin there begins later, and cores grow. Where more than P overlap, no schedule
takes T cycles. The length of a task varies: one that streams stays until its producers have ended, however early
it began.

Source: time-tabling of a resource that several tasks share [baptiste01, 3.3.1], here only to refute makespans, not to
find schedules. `lower_bound_cycles` says how streams constrain starts and ends.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int32, Int64
from dfcompile.scheduler.bounds.precedence import Direction, directions, released, stream_delays

_VISITS = 300_000  # of nodes, for one bound: about a second
_PASSES = 20  # over the graph, for one makespan: more refute little
_FEWEST_PASSES = 8  # if visits do not last for these, cores do not grow: they would hardly refute anything
_FIRST_STEP = 256  # makespans are tried in steps of this part of the known bound, then of twice as much, …
_NO_CORE = 2**62  # beginning of the core of a task without one
_MOST_ROUNDS = 12  # of splitting kinds of nodes: if more are needed, hardly any nodes are alike


class _Stretches(Struct, frozen=True):
    """Stretches of time that do not touch: their beginnings and their ends, in ascending order."""

    begin: list[int]
    end: list[int]

    def reversed_in_time(self, makespan: int) -> _Stretches:
        """Return the stretches as counted back from the end of the schedule."""
        return _Stretches(
            [makespan - time for time in reversed(self.end)], [makespan - time for time in reversed(self.begin)]
        )

    def earliest_start(self, begin: int, work: int, least_end: int, core: int) -> int:
        """Return the first time from ``begin`` on at which a task can start and overlap no stretch before its core.

        Args:
            begin: earliest start without the stretches.
            work: cycles that the task takes at least.
            least_end: earliest end of the task.
            core: when its core begins, from where on it may be one of the tasks that fill a stretch.
        """
        number = bisect_right(self.end, begin)
        while number < len(self.begin) and self.begin[number] < min(core, max(begin + work, least_end)):
            begin = max(begin, min(self.end[number], core))
            number += 1
        return begin


class Windows(Struct, frozen=True):
    """Bounds of starts and ends that hold in every schedule, shape [nodes] each.

    Attributes:
        start: earliest start.
        end: earliest end.
        after_end: cycles from the end of the node to that of the schedule, at least.
        after_start: cycles from the start of the node to the end of the schedule, at least.
    """

    start: list[int]
    end: list[int]
    after_end: list[int]
    after_start: list[int]

    def rows(self) -> Iterator[tuple[int, ...]]:
        """Return the four bounds of each node."""
        return zip(self.start, self.end, self.after_end, self.after_start, strict=True)


def time_table_bound(dag: CanonicalDag, pes: int, windows: tuple[Int64, Int64, Int64, Int64], least: int) -> int:
    """Return the smallest makespan, ``least`` or more, that time-tabling does not refute.

    The first search takes cores as they are, in O(n log n) for each makespan. The second one lets cores grow, with a
    limited number of visits to nodes: on large graphs it refutes less.

    Args:
        dag: the graph.
        pes: number of processing elements P.
        windows: the columns of `Windows`.
        least: a known lower bound of the makespan.
    """
    tasks = np.flatnonzero(dag.is_computational)
    if len(tasks) <= pes:
        return least  # all of them fit on the machine at once
    _, end, _, after_start = (column[tasks] for column in windows)
    least = _least_not_refuted(least, lambda cycles: _is_overfull(end, cycles - after_start, pes))
    if dag.nodes_count * _FEWEST_PASSES > _VISITS:
        return least
    return _least_not_refuted(least, _GrowingCores(dag, pes, Windows(*(column.tolist() for column in windows))).refutes)


def _least_not_refuted(least: int, refutes: Callable[[int], bool]) -> int:
    """Return the smallest makespan from ``least`` on that is not refuted, by steps that double, then bisection."""
    low, high, step = least - 1, least, max(least // _FIRST_STEP, 1)
    while refutes(high):
        low, high, step = high, high + step, step * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if refutes(middle) else (low, middle)
    return high


def _is_overfull(end: Int64, latest: Int64, pes: int) -> bool:
    """Return whether more than P cores, from the latest start to the earliest end, overlap somewhere."""
    core = latest < end
    times = np.concatenate([end[core], latest[core]])
    change = np.repeat(np.array([-1, 1]), int(core.sum()))
    running = np.cumsum(change[np.argsort(times, kind="stable")])  # ends come before starts
    return bool(running.max(initial=0) > pes)


class _GrowingCores:
    """Cores that grow until nothing changes, of one node for each kind; see `merged`."""

    def __init__(self, dag: CanonicalDag, pes: int, windows: Windows) -> None:
        columns = windows.start, windows.end, windows.after_end, windows.after_start
        nodes, count, (self._forward, self._backward) = merged(dag, *columns)
        self._pes = pes
        self._task = dag.is_computational[nodes].tolist()
        self._tasks = np.flatnonzero(self._task).tolist()
        self._work = dag.work[nodes].tolist()
        self._count = np.array(count)
        self._windows = Windows(*([column[node] for node in nodes] for column in columns))
        self._visits = _VISITS

    def refutes(self, makespan: int) -> bool:
        """Return whether it is proved that no schedule takes so few cycles; false if the visits are used up."""
        windows = self._windows
        earlier: tuple[Windows, _Stretches] | None = None
        for _ in range(_PASSES):
            full = self._full_stretches(windows, makespan)
            if full is None or self._is_empty(windows, makespan):
                return True
            if self._visits <= 0:
                return False
            self._visits -= 2 * len(self._task)
            stale = [True] * len(self._task)  # all; if no full stretch is new, nodes with new windows
            if earlier is not None and earlier[1] == full:
                stale = [before != after for before, after in zip(earlier[0].rows(), windows.rows(), strict=True)]
            latest = [makespan - cycles for cycles in windows.after_start]
            ahead, back = (self._forward, self._backward), (self._backward, self._forward)
            start, end = self._tighten(ahead, (windows.start, windows.end), latest, full, stale[:])
            latest = [makespan - cycles for cycles in windows.end]
            turned, known = full.reversed_in_time(makespan), (windows.after_end, windows.after_start)
            tightened = Windows(start, end, *self._tighten(back, known, latest, turned, stale))
            if tightened == windows:
                return False
            earlier, windows = (windows, full), tightened
        return False

    def _is_empty(self, known: Windows, makespan: int) -> bool:
        """Return whether a task's earliest start or end is after its latest."""
        return any(
            known.end[task] + known.after_end[task] > makespan or known.start[task] + known.after_start[task] > makespan
            for task in self._tasks
        )

    def _full_stretches(self, windows: Windows, makespan: int) -> _Stretches | None:
        """Return the stretches of time in which cores of P tasks overlap; ``None`` if more of them do."""
        latest, end = makespan - np.array(windows.after_start)[self._tasks], np.array(windows.end)[self._tasks]
        is_core = latest < end
        count = self._count[self._tasks][is_core]
        times, change = np.concatenate([latest[is_core], end[is_core]]), np.concatenate([count, -count])
        order = np.lexsort((change, times))  # ends come before starts
        times, running = times[order], np.cumsum(change[order])
        if running.max(initial=0) > self._pes:
            return None
        is_last = np.ones(len(times), dtype=np.bool_)
        is_last[:-1] = times[1:] != times[:-1]
        times, full = times[is_last], (running[is_last] == self._pes).astype(np.int8)
        step = np.diff(full, prepend=0)
        return _Stretches(times[step > 0].tolist(), times[step < 0].tolist())

    def _tighten(
        self,
        directions: tuple[Direction, Direction],
        known: tuple[list[int], list[int]],
        latest: list[int],
        full: _Stretches,
        stale: list[bool],
    ) -> tuple[list[int], list[int]]:
        """Return earliest starts and ends of all nodes, later than known where full stretches demand it.

        Args:
            directions: this direction of time, and the opposite one.
            known: earliest starts and ends.
            latest: latest start of each node, where its core begins if its earliest end is later.
            full: stretches in which the cores of P tasks overlap.
            stale: nodes to compute anew; where one changes, the nodes that wait for it become stale.
        """
        direction, opposite = directions
        start, end = known[0][:], known[1][:]
        for node in direction.order:
            if not stale[node]:
                continue
            begin, least = released(direction.awaited[node], start, end, (start[node], end[node]))
            if self._task[node]:
                work = self._work[node]
                core = latest[node] if latest[node] < known[1][node] else _NO_CORE
                begin = full.earliest_start(begin, work, least, core)
                least = max(begin + work, least)
            else:
                least = begin
            if begin != start[node] or least != end[node]:
                start[node], end[node] = begin, least
                for follower, _, _ in opposite.awaited[node]:
                    stale[follower] = True
        return start, end


def merged(dag: CanonicalDag, *columns: Sequence[int]) -> tuple[list[int], list[int], tuple[Direction, Direction]]:
    """Group nodes into kinds: of equal figures, reading from and read by equally many nodes of each kind.

    A bound of one node holds for all of its kind. The coarsest kinds are found by splitting nodes of equal figures
    until those of a kind have the same numbers of neighbours of each kind.

    Args:
        dag: the graph.
        columns: figures of the nodes, shape [nodes] each.

    Returns:
        The first node and the number of nodes of each kind, shape [kinds] each, and which kinds each waits for,
        forwards and backwards in time.

    Source: partition refinement [paige87], here in rounds over the whole graph.
    """
    kind = _kinds(dag, columns)
    nodes, first = np.arange(dag.nodes_count), np.full(kind.max(initial=-1) + 1, dag.nodes_count)
    np.minimum.at(first, kind, nodes)
    kind_of, examples = kind.tolist(), first.tolist()

    def quotient(direction: Direction) -> Direction:
        # If kind B waits for kind A, a node of B comes after each node of A: the last nodes of all kinds are in order.
        last = {kind_of[node]: None for node in reversed(direction.order)}
        awaited = [list({(kind_of[other], a, b): None for other, a, b in direction.awaited[node]}) for node in examples]
        return Direction(list(last)[::-1], awaited)

    ahead, back = directions(dag)
    return examples, np.bincount(kind).tolist(), (quotient(ahead), quotient(back))


def _kinds(dag: CanonicalDag, columns: Sequence[Sequence[int]]) -> Int64:
    """Return the kind of each node, shape [nodes]; after too many rounds each node is a kind of its own."""
    figures = np.array([dag.is_computational, dag.work, *stream_delays(dag), *columns], dtype=np.int64)
    kind = np.unique(figures, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    kinds = kind.max(initial=-1) + 1
    for _ in range(_MOST_ROUNDS):
        read = _neighbours(dag.in_start, dag.in_edges, dag.edge_source, kind)
        written = _neighbours(dag.out_start, dag.out_edges, dag.edge_target, kind)
        numbers: dict[tuple[int, bytes, bytes], int] = {}
        of_node = (numbers.setdefault(alike, len(numbers)) for alike in zip(kind.tolist(), read, written, strict=True))
        kind = np.fromiter(of_node, dtype=np.int64, count=dag.nodes_count)
        if len(numbers) == kinds:
            return kind
        kinds = len(numbers)
    return np.arange(dag.nodes_count)


def _neighbours(start: Int64, edges: Int32, other: Int32, kind: Int64) -> list[bytes]:
    """Return the kinds of the nodes at the other ends of each node's edges, in ascending order."""
    kinds = kind[other[edges]]
    of_node = np.repeat(np.arange(len(start) - 1), np.diff(start))
    ordered = kinds[np.lexsort((kinds, of_node))]
    return [ordered[begin:end].tobytes() for begin, end in pairwise(start.tolist())]
