"""The optimal partition of a small graph, by dynamic programming over its down-sets."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.errors import UserError
from dfcompile.scheduler.blocks import Blocks
from dfcompile.scheduler.partitioner import partitioner
from dfcompile.scheduler.partitioners.block_clock import BlockClock

MOST_TASKS = 12


@partitioner("exact", source="dematteis23")
def exact(dag: CanonicalDag, pes: int) -> Blocks:
    """Return the blocks whose schedule with barriers is the shortest there is.

    After some blocks a down-set of the tasks has run: a set that holds all producers of its members. How long the next
    block takes depends on its tasks alone, so the optimum is a shortest path over down-sets; there are at most
    ``2^tasks`` of them, and at most ``3^tasks`` blocks. Among equals the first found is taken. Times are the steady
    ones of [dematteis23, section 5].

    Raises:
        UserError: the graph has more than `MOST_TASKS` tasks.
    """
    if dag.tasks_count > MOST_TASKS:
        raise UserError(f"partition 'exact': found {dag.tasks_count} tasks, expected at most {MOST_TASKS} (use 'best')")
    return _DownSets(dag, pes).shortest()


class _DownSets:
    """Down-sets as bit masks over the tasks, numbered in topological order."""

    def __init__(self, dag: CanonicalDag, pes: int) -> None:
        self._dag, self._pes = dag, pes
        self._order = Blocks.of(dag, [0] * dag.nodes_count).order.tolist()
        self._tasks = [node for node in self._order if dag.is_computational[node]]
        bit = {task: number for number, task in enumerate(self._tasks)}
        self._is_task = dag.is_computational.tolist()
        self._below = [0] * dag.nodes_count  # tasks among all that a node depends on, as a mask
        self._above = [0] * dag.nodes_count  # tasks among all that depend on a node
        self._parents = dag.producers()
        for node in self._order:
            for parent in self._parents[node]:
                self._below[node] |= self._below[parent] | (1 << bit[parent] if parent in bit else 0)
        for node in reversed(self._order):
            for parent in self._parents[node]:
                self._above[parent] |= self._above[node] | (1 << bit[node] if node in bit else 0)
        self._needs = [self._below[task] for task in self._tasks]
        self._clock = BlockClock(dag)
        self._cycles: dict[int, int] = {}

    def shortest(self) -> Blocks:
        """Return the blocks on a shortest path from no task to all."""
        whole = (1 << len(self._tasks)) - 1
        least, came_from = {0: 0}, dict[int, int]()
        # Masks grow along every block, so in ascending order each is final when its turn comes.
        for done in range(whole):
            if done not in least:
                continue
            for block in self._blocks_after(done):
                if block not in self._cycles:
                    self._cycles[block] = self._clock.cycles(self._nodes(block))
                cycles = least[done] + self._cycles[block]
                after = done | block
                if after not in least or cycles < least[after]:
                    least[after], came_from[after] = cycles, done
        return self._path(whole, came_from)

    def _blocks_after(self, done: int) -> list[int]:
        """Return all sets of at most P tasks that can run next, each once."""
        blocks = [0]
        for number, needs in enumerate(self._needs):
            bit = 1 << number
            if done & bit:
                continue
            blocks += [block | bit for block in blocks if not needs & ~(done | block) and block.bit_count() < self._pes]
        return blocks[1:]

    def _nodes(self, block: int) -> list[int]:
        """Return the tasks of a block and the memories between them, in topological order.

        A memory that none of them reads is of a later block: there its writers need not keep the pace of this one.
        """
        inside = {task for number, task in enumerate(self._tasks) if block >> number & 1}
        return [
            node
            for node in self._order
            if node in inside or (not self._is_task[node] and self._below[node] & block and self._above[node] & block)
        ]

    def _path(self, whole: int, came_from: dict[int, int]) -> Blocks:
        number = np.zeros(len(self._tasks), dtype=np.int64)
        done, back = whole, 0
        while done:
            block = done & ~came_from[done]
            number[[place for place in range(len(self._tasks)) if block >> place & 1]] = -back
            done, back = came_from[done], back + 1
        block_of = [0] * self._dag.nodes_count
        for task, found in zip(self._tasks, number.tolist(), strict=True):
            block_of[task] = found + back
        latest = [back + 1] * self._dag.nodes_count  # of memory: the first block that reads it, or one after all
        for node in reversed(self._order):
            for parent in self._parents[node]:
                latest[parent] = min(latest[parent], block_of[node] if self._is_task[node] else latest[node])
        is_buffer = self._dag.is_buffer.tolist()
        for node in self._order:
            if not self._is_task[node]:
                written = max((block_of[parent] for parent in self._parents[node]), default=0)
                block_of[node] = latest[node] if is_buffer[node] else written
        return Blocks.of(self._dag, block_of)
