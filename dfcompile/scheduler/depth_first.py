"""Depth first: as soon as an element is free it takes, of the tasks that can begin, what one element alone would first.

One element that finishes one result after the other needs little memory. Where P take the tasks in the same order,
little more is in memory at a time: what tasks hold that come too early, of which there are at most P for each step of
the longest chain; and no element idles while a task can begin, so the schedule takes at most the cycles of that chain
more than work / P [blelloch99].
"""

from heapq import heapify, heappop, heappush

import numpy as np

from dfcompile.canonical_dag.dag import CanonicalDag, Int32, frozen
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.scheduler.options import check_pes
from dfcompile.scheduler.schedules import NO_PE, NonStreamingSchedule
from dfcompile.scheduler.timing import int64_column


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
    start, pe = [0] * len(order), [NO_PE] * len(order)
    free = list(range(min(pes, max(dag.tasks_count, 1))))  # no more can be used
    running: dict[int, list[int]] = {}  # by when they end
    ends_at: list[int] = []
    now, ended = 0, [node for node, count in enumerate(missing) if not count and not is_task[node]]
    ready = [node for node, count in enumerate(missing) if not count and is_task[node]]
    heapify(ready)
    while True:
        while ended:
            node = ended.pop()
            for target in targets[first[node] : last[node]]:
                missing[target] -= 1
                if missing[target]:
                    continue
                if is_task[target]:
                    heappush(ready, target)
                else:
                    start[target] = now
                    ended.append(target)
        while ready and free:
            node = heappop(ready)
            start[node], pe[node] = now, heappop(free)
            end = now + work[node]
            if end in running:
                running[end].append(node)
            else:
                running[end] = [node]
                heappush(ends_at, end)
        if not running:
            break
        now = heappop(ends_at)
        ended = running.pop(now)
        for node in ended:
            heappush(free, pe[node])
    ends = int64_column([begin + cycles for begin, cycles in zip(start, work, strict=True)])[place]
    element = np.array(pe, dtype=np.int32)[place]
    return NonStreamingSchedule(pes, frozen(element), frozen(ends - taken), frozen(ends), now)


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
