"""What all ancestors of a task take on P processing elements, before it can start and before it can end.

When a task starts, all its ancestors have started, and at most P - 1 of them are still on the machine: the others have
ended, and needed elements for their work since the earliest of them could begin. Who is still there streams to that
task through all that is between them, which ends after it and so is there as well: behind memory, or behind P - 1
tasks, nobody is. When the task ends, all ancestors have. So do its descendants, seen from the end. This is the energy
of a cumulative resource over the precedences around one task [baptiste01, 3.3], with ends in the order of streams.
"""

import numpy as np
import numpy.typing as npt

from dfcompile.canonical_dag.dag import Bool, Int64
from dfcompile.distinct import distinct
from dfcompile.scheduler.bounds.crossing import alike, first_sums, some_values
from dfcompile.scheduler.bounds.precedence import Direction, Times, earliest

_CELLS = 2**18  # tasks looked at times tasks: a tenth of a second
_LOOKS = 2**23  # at cells, over all times: some tenths of a second
_TIMES = 32
_FEWEST_TIMES = 4
_FEWEST_ROWS = 4  # tasks looked at: what fewer say of a large graph is what its total work says
_WORD_BITS = 8
_BETWEEN_NODES = 2048  # of which pairs are looked at: a twentieth of a second


def is_energy_known(tasks: int) -> bool:
    """Return whether of a graph of so many tasks enough are looked at to say more than its total work."""
    return _rows(tasks) >= min(_FEWEST_ROWS, tasks)


def with_energy(direction: Direction, task: Bool, work: Int64, pes: int, known: Times) -> Times:
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
    asked = tasks[distinct(np.linspace(0, len(tasks) - 1, _rows(len(tasks))).astype(np.int64))]
    ancestors = _ancestors(direction, asked)
    near = ancestors & _may_be_there(direction, ancestors, task, pes)
    # No end is earlier than a start and the work after it.
    ends = np.maximum(np.array(end, dtype=np.int64), np.array(start, dtype=np.int64) + work)
    begin, ended = _energies((ancestors, near), (ends, task, work), pes)
    for node, first, last in zip(asked.tolist(), begin.tolist(), ended.tolist(), strict=True):
        start[node], end[node] = max(start[node], first), max(end[node], last + 1 if last else 0)
    return earliest(direction, task.tolist(), work.tolist(), (start, end))


def _rows(tasks: int) -> int:
    """Return how many of so many tasks are looked at."""
    return max(min(tasks, _CELLS // max(tasks, 1)), 1)


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


def _may_be_there(direction: Direction, ancestors: Bool, task: Bool, pes: int) -> Bool:
    """Return which ancestors may be on the machine when a task starts: those with all that is between them.

    Of graphs that are too large for all pairs, every ancestor may.
    """
    nodes = len(direction.order)
    if nodes > _BETWEEN_NODES:
        return np.ones_like(ancestors)
    below = _words(_ancestors(direction, np.arange(nodes)).T)
    tasks, memory = _words(ancestors & task), _words(ancestors & ~task)
    between = np.zeros(ancestors.shape, dtype=np.int64)
    in_memory = np.zeros(ancestors.shape, dtype=np.bool_)
    for above, stored, mine in zip(tasks.T, memory.T, below.T, strict=True):
        between += np.bitwise_count(above[:, None] & mine)
        if stored.any():
            in_memory |= (stored[:, None] & mine) != 0
    there: Bool = (between <= pes - 2) & ~in_memory
    return there


def _words(rows: Bool) -> npt.NDArray[np.uint64]:
    """Return rows as bits of words, shape [rows, words]."""
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 64)))
    return np.ascontiguousarray(np.packbits(padded, axis=1)).view(np.uint64)


def _energies(ancestry: tuple[Bool, Bool], columns: tuple[Int64, Bool, Int64], pes: int) -> tuple[Int64, Int64]:
    """Return before when each of some tasks cannot start, and when its ancestors can have ended, shape [asked] each.

    For some times t the ancestors count that cannot end before t. Of these at most P have begun before: the others have
    all their work left, and those P what they could not do since the latest they may begin.

    Args:
        ancestry: of each of those tasks, the ancestors, and those of them that may be there when it starts.
        columns: earliest ends, which nodes are tasks, and works, shape [nodes] each.
        pes: number of processing elements P.
    """
    ancestors, _ = ancestry
    tasks = np.flatnonzero(columns[1])
    end, work = columns[0][tasks], columns[2][tasks]
    order, firsts = alike(work, -end)  # by descending end
    kinds = order[firsts]
    last, own, latest = end[kinds], work[kinds], (end - work)[kinds]
    counts, there = (np.add.reduceat(some[:, tasks[order]], firsts, axis=1, dtype=np.int64) for some in ancestry)
    by_latest, by_work = np.argsort(latest, kind="stable"), np.argsort(-own, kind="stable")
    loads = np.cumsum(counts * own, axis=1)
    begin, ended = (np.zeros(len(ancestors), dtype=np.int64) for _ in range(2))
    looks = ancestors.shape[0] * len(tasks)
    for time in some_values(np.append(last, latest), max(min(_TIMES, _LOOKS // max(looks, 1)), _FEWEST_TIMES)):
        later = int(np.searchsorted(-last, -time, side="right"))  # so many end at that time or after it
        begun = by_latest[(by_latest < later) & (latest[by_latest] < time)]
        load = loads[:, later - 1] - first_sums(time - latest[begun], counts[:, begun], pes)
        np.maximum(ended, np.where(load > 0, time - (-load // pes), 0), out=ended)
        largest = by_work[by_work < later]
        load -= first_sums(own[largest], there[:, largest], pes - 1)
        np.maximum(begin, np.where(load > 0, time - (-load // pes), 0), out=begin)
    return begin, ended
