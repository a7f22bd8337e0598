"""How long one spatial block takes, for searches that ask it of many."""

import numpy as np

from dfcompile.canonical_dag import CanonicalDag

_ABSENT = -1


class BlockClock:
    """Times single blocks in O(nodes and edges of the block), by the formulas of `steady_times`.

    Blocks run one after another, so the makespan of a partition is the sum over its blocks.
    """

    def __init__(self, dag: CanonicalDag) -> None:
        self._reads, self._writes = (np.maximum(each, 1).tolist() for each in (dag.volume_in, dag.volume_out))
        self._peak_in, self._peak_out = dag.volume_in.tolist(), dag.volume_out.tolist()
        self._task = dag.is_computational.tolist()
        self._parents = dag.producers()
        self._buffer = dag.is_buffer.tolist()
        self._root = [_ABSENT] * dag.nodes_count
        self._peak = [0] * dag.nodes_count
        self._streams_in, self._streams_out = ([False] * dag.nodes_count for _ in range(2))
        self._stores = [False] * dag.nodes_count  # whether a buffer of the block takes what the node writes
        self._first_out, self._last_out = ([0] * dag.nodes_count for _ in range(2))

    def cycles(self, nodes: list[int]) -> int:
        """Return the time from the start of a block to its end.

        Args:
            nodes: the nodes of the block in topological order.
        """
        self._join_components(nodes)
        latest = max((self._end(node) for node in nodes), default=0)
        for node in nodes:
            self._root[node] = _ABSENT
        return latest

    def _join_components(self, nodes: list[int]) -> None:
        root, task = self._root, self._task
        for node in nodes:
            root[node] = node
            self._streams_in[node] = self._streams_out[node] = self._stores[node] = False
            if self._buffer[node]:
                for parent in self._parents[node]:
                    self._stores[parent] = True
            if task[node]:
                for parent in self._parents[node]:
                    if root[parent] != _ABSENT and task[parent]:
                        root[root_of(root, parent)] = root_of(root, node)
                        self._streams_in[node] = self._streams_out[parent] = True
        for node in nodes:
            self._peak[node] = 0
        for node in nodes:
            top = root_of(root, node)
            written = 0 if self._streams_out[node] else self._peak_out[node]
            self._peak[top] = max(self._peak[top], self._peak_in[node], written)

    def _end(self, node: int) -> int:
        start = 0
        streams = self._task[node]
        for parent in self._parents[node]:
            if self._root[parent] != _ABSENT:
                ready = (self._first_out if streams and self._task[parent] else self._last_out)[parent]
                start = max(start, ready)
        if not streams:
            self._first_out[node] = self._last_out[node] = start
            return start
        self._first_out[node], self._last_out[node] = self._offsets(node)
        self._first_out[node] += start
        self._last_out[node] += start
        return self._last_out[node]

    def _offsets(self, node: int) -> tuple[int, int]:
        """Return FO - ST and LO - ST of a task."""
        peak, reads, writes = self._peak[root_of(self._root, node)], self._reads[node], self._writes[node]
        pace = peak if self._streams_in[node] else reads
        reading = pace - pace // reads
        paced_out = self._streams_out[node] or self._stores[node]
        writing = peak - peak // writes if paced_out else writes - 1
        last = 1 + max(reading, writing)
        if not self._peak_out[node]:
            return last, last
        if self._peak_out[node] > self._peak_in[node] > 0 and writing < reading:
            last += (writes - 1) // reads
        if self._peak_in[node] <= self._peak_out[node]:
            return 1, last
        return 1 - (-pace * ((reads - 1) // writes) // reads), last


def root_of(root: list[int], node: int) -> int:
    """Return the root of a node in a forest, and halve the way to it.

    Args:
        root: of each node one that is nearer to the root; roots lead to themselves.
        node: in the forest.
    """
    while root[node] != node:
        root[node] = root[root[node]]
        node = root[node]
    return node
