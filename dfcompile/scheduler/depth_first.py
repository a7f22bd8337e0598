"""Depth first: as soon as an element is free it takes, of the tasks that can begin, what one element alone would first.

One element that finishes one result after the other needs little memory. Where P take the tasks in the same order,
little more is in memory at a time: what tasks hold that come too early, of which there are at most P for each step of
the longest chain; and no element idles while a task can begin, so the schedule takes at most the cycles of that chain
more than work / P [blelloch99]. That holds for what depends on an input: what is made from constants alone could all be
made at first, and would fill the memory, so it waits until it is due.
"""

from heapq import heappop, heappush

import numpy as np

from dfcompile.canonical_dag.analysis import longest_paths
from dfcompile.canonical_dag.dag import Bool, CanonicalDag, Int32, Int64, frozen
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.records import replace
from dfcompile.scheduler.baseline import depends_on_no_input, ordered
from dfcompile.scheduler.options import check_pes
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule
from dfcompile.scheduler.timing import int64_column

_LEADS = 2  # times the cycles in which tasks are made that can wait


def schedule_depth_first(dag: CanonicalDag, pes: int, hardware: Hardware = LITERATURE) -> NonStreamingSchedule:
    """Return a schedule in which every edge goes through memory, of which little is needed at a time.

    Args:
        dag: the graph.
        pes: number of processing elements P.
        hardware: what tasks take.

    Raises:
        UserError: ``pes`` is below 1, or a time does not fit in 64 bits.
    """
    check_pes(pes)
    order = depth_first(dag)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    # All columns are in that order, so that of two nodes the lower number comes first.
    taken = hardware.cycles(dag)
    work, is_task = taken[order].tolist(), dag.is_computational[order].tolist()
    targets, first = place[dag.edge_target[dag.out_edges]].tolist(), dag.out_start[order].tolist()
    last = dag.out_start[order + 1].tolist()
    missing = np.diff(dag.in_start)[order].tolist()
    waits = _can_wait(dag)
    begin_with = [node for node, count in enumerate(missing) if not count and is_task[node]]
    ready = _Ready(begin_with, waits[order].tolist(), _due(dag, taken, waits, order, pes), work)
    start, pe = [0] * len(order), [NO_PE] * len(order)
    free = list(range(min(pes, max(dag.tasks_count, 1))))  # no more can be used
    running: dict[int, list[int]] = {}  # by when they end
    ends_at: list[int] = []
    now, ended = 0, [node for node, count in enumerate(missing) if not count and not is_task[node]]
    while True:
        while ended:
            node = ended.pop()
            for target in targets[first[node] : last[node]]:
                missing[target] -= 1
                if missing[target]:
                    continue
                if is_task[target]:
                    ready.put(target)
                else:
                    start[target] = now
                    ended.append(target)
        while free and (task := ready.take()) is not None:
            start[task], pe[task] = now, heappop(free)
            end = now + work[task]
            if end in running:
                running[end].append(task)
            else:
                running[end] = [task]
                heappush(ends_at, end)
        if not running:
            break
        now = heappop(ends_at)
        ended = running.pop(now)
        for node in ended:
            heappush(free, pe[node])
    ends = int64_column([begin + cycles for begin, cycles in zip(start, work, strict=True)])[place]
    element = np.array(pe, dtype=np.int32)[place]
    found = NonStreamingSchedule(pes, frozen(element), frozen(ends - taken), frozen(ends), now)
    return _not_too_late(dag, found, taken, waits) if waits.any() else found


class _Ready:
    """Tasks that can begin, by their place; those that can wait come only when they are due."""

    def __init__(self, tasks: list[int], waits: list[bool], due: list[int], work: list[int]) -> None:
        self._waits, self._due, self._work = waits, due, work
        self._tasks: list[int] = []
        self._early: list[int] = []  # in order: what takes long does not come before what is needed sooner
        self._begun = 0  # work of all that cannot wait
        for task in tasks:
            self.put(task)

    def put(self, task: int) -> None:
        """Take in a task."""
        heappush(self._early if self._waits[task] else self._tasks, task)

    def take(self) -> int | None:
        """Return the first one, which begins."""
        while self._early and self._due[self._early[0]] <= self._begun:
            heappush(self._tasks, heappop(self._early))
        if not self._tasks:
            return None
        task = heappop(self._tasks)
        if not self._waits[task]:
            self._begun += self._work[task]
        return task


def _can_wait(dag: CanonicalDag) -> Bool:
    """Return which tasks make something from constants alone, where others depend on an input, shape [nodes]."""
    found = depends_on_no_input(dag) & dag.is_computational
    return found if found.sum() < dag.tasks_count else np.zeros_like(found)


def _due(dag: CanonicalDag, cycles: Int64, waits: Bool, order: Int32, pes: int) -> list[int]:
    """Return the work of tasks that cannot wait after which each may begin, in a given order.

    It may begin twice as long before one element would need it as it takes, with all that leads from it to there. The
    first of all that have not begun is always due, so no element idles for ever.
    """
    if not waits.any():
        return []
    others = np.where(waits | ~dag.is_computational, 0, cycles)[order]
    lead = longest_paths(dag.edge_target, dag.edge_source, np.where(waits, cycles, 0))[order]
    due: list[int] = (np.cumsum(others) - others - _LEADS * pes * lead).tolist()
    return due


def _not_too_late(dag: CanonicalDag, found: NonStreamingSchedule, cycles: Int64, waits: Bool) -> NonStreamingSchedule:
    """Return a schedule of the same tasks on each element in which the end does not come later as some wait."""
    work, source, target = ordered(dag, found, cycles)
    end = longest_paths(source, target, work)
    makespan = int(end.max())
    if makespan == found.makespan_cycles:
        return found
    latest = makespan - longest_paths(target, source, work)
    held = np.flatnonzero(waits)
    first = len(work) + np.arange(len(held))  # a step in front of each, as long as it waits
    steps = np.concatenate([work, np.minimum(found.start, latest)[held]])
    ends = longest_paths(np.concatenate([source, first]), np.concatenate([target, held]), steps)[: len(work)]
    return replace(found, start=frozen(ends - cycles), end=frozen(ends), makespan_cycles=makespan)


def depth_first(dag: CanonicalDag) -> Int32:
    """Return the nodes depth first: each behind all that it needs, and these when it is looked at."""
    sources, first = dag.edge_source[dag.in_edges].tolist(), dag.in_start.tolist()
    left, is_found = first[:-1], [False] * dag.nodes_count  # the next input edge of each node to look at
    order: list[int] = []
    for sink in np.flatnonzero(np.diff(dag.out_start) == 0).tolist():
        stack = [sink]
        while stack:
            node = stack[-1]
            at, end = left[node], first[node + 1]
            while at < end and is_found[sources[at]]:
                at += 1
            left[node] = at
            if at < end:
                is_found[sources[at]] = True
                stack.append(sources[at])
            else:
                order.append(stack.pop())
    return np.array(order, dtype=np.int32)
