"""What all ancestors of a task take on P processing elements, before it can start and before it can end.

When a task starts, all its ancestors have started, and at most P - 1 of them are still on the machine: the others have
ended, and needed elements for their work since the earliest of them could begin. When it ends, all of them have. So do
its descendants, seen from the end. This is the energy of a cumulative resource over the precedences around one task
[baptiste01, 3.3], with ends in the order of streams.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.scheduler.bounds.precedence import NO_STREAM, Direction

_CELLS = 2**18  # tasks looked at times tasks: a tenth of a second
_STRETCHES = 4  # of the ancestors by their starts, for which the largest works are left out exactly
_WORD_BITS = 8


def with_energy(
    direction: Direction, task: Bool, work: Int64, pes: int, known: tuple[list[int], list[int]]
) -> tuple[list[int], list[int]]:
    """Return earliest starts and ends of all nodes in one direction of time, raised by the energy of ancestors.

    Of large graphs only some tasks are looked at, evenly spread; the others follow from what they wait for.

    Args:
        direction: what nodes wait for.
        task: which nodes need an element, shape [nodes].
        work: of each node, shape [nodes].
        pes: number of processing elements P.
        known: earliest starts and ends.
    """
    start, end = known[0][:], known[1][:]
    tasks = np.array([node for node in direction.order if task[node]], dtype=np.int64)
    rows = max(min(len(tasks), _CELLS // max(len(tasks), 1)), 1)
    asked = tasks[np.unique(np.linspace(0, len(tasks) - 1, rows).astype(np.int64))]
    begin, least = _energies(_ancestors(direction, asked), (np.array(start, dtype=np.int64), task, work), pes)
    for node, first, last in zip(asked.tolist(), begin.tolist(), least.tolist(), strict=True):
        start[node], end[node] = max(start[node], first), max(end[node], last + 1 if last else 0)
    return _passed_on(direction, (task.tolist(), work.tolist()), start, end)


def _ancestors(direction: Direction, asked: Int64) -> Bool:
    """Return which nodes are ancestors of the nodes asked for, shape [asked, nodes]."""
    nodes = len(direction.order)
    of_which = [0] * nodes  # as bits, of which of the asked each node is an ancestor
    bit = [0] * nodes
    for number, node in enumerate(asked.tolist()):
        bit[node] = 1 << number
    for node in reversed(direction.order):
        mine = of_which[node] | bit[node]
        if mine:
            for other, _, _ in direction.awaited[node]:
                of_which[other] |= mine
    width = -(-len(asked) // _WORD_BITS)
    packed = np.frombuffer(b"".join(bits.to_bytes(width, "little") for bits in of_which), dtype=np.uint8)
    columns = np.unpackbits(packed.reshape(nodes, width), axis=1, bitorder="little", count=len(asked))
    return columns.T.astype(np.bool_)


def _energies(ancestors: Bool, columns: tuple[Int64, Bool, Int64], pes: int) -> tuple[Int64, Int64]:
    """Return before when each of some tasks cannot start, and when it ends at the earliest, shape [asked] each.

    For each time the ancestors count that cannot start before it. Without the P - 1 of most work the others have at
    least ``sum of min(work, limit) - (P - 1) limit``, whatever the limit; with the P-th largest work just so much.
    """
    start, task, work = columns
    by_start = np.flatnonzero(task)[np.argsort(-start[task], kind="stable")]
    counted, first = ancestors[:, by_start], start[by_start]
    begin = np.zeros(len(ancestors), dtype=np.int64)
    works = np.where(counted, work[by_start], 0)
    for stretch in range(1, _STRETCHES + 1):
        kept = works[:, : len(by_start) * stretch // _STRETCHES]
        if kept.shape[1] < pes:
            continue
        limit = np.partition(kept, -pes, axis=1)[:, [-pes]]
        load = np.cumsum(np.minimum(works, limit), axis=1) - (pes - 1) * limit
        np.maximum(begin, _latest(load, counted, first, pes), out=begin)
    return begin, _latest(np.cumsum(works, axis=1), counted, first, pes)


def _latest(load: npt.NDArray[np.int64], counted: Bool, first: Int64, pes: int) -> Int64:
    """Return the largest ``first + ceil(load / P)`` of each row, over columns that count and leave a load."""
    latest: Int64 = np.where(counted & (load > 0), first - (-load // pes), 0).max(axis=1, initial=0)
    return latest


def _passed_on(
    direction: Direction, nodes: tuple[list[bool], list[int]], start: list[int], end: list[int]
) -> tuple[list[int], list[int]]:
    task, work = nodes
    for node in direction.order:
        begin, least = start[node], end[node]
        for other, to_start, to_end in direction.awaited[node]:
            if to_start == NO_STREAM:
                begin = max(begin, end[other])
            else:
                begin, least = max(begin, start[other] + to_start), max(least, end[other] + to_end)
        start[node] = begin
        end[node] = max(begin + work[node], least) if task[node] else begin
    return start, end
