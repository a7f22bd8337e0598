"""What the audit finds of a canonical DAG itself: work, depths and I/O, each from its edges."""

from functools import cached_property

import numpy as np

from dfcompile.audit.paths import components_of, longest_to, reached_from_sources
from dfcompile.canonical_dag import CanonicalDag, NodeKind
from dfcompile.canonical_dag.dag import Bool, Int64

_TASK, _BUFFER, _PSEUDO = 0, 1, 2
_ROLES = dict.fromkeys(NodeKind, _TASK) | {
    NodeKind.BUFFER: _BUFFER,
    NodeKind.PSEUDO_SOURCE: _PSEUDO,
    NodeKind.PSEUDO_SINK: _PSEUDO,
}


class GraphFigures:
    """Figures of a graph; each is computed when it is first asked for."""

    def __init__(self, dag: CanonicalDag) -> None:
        self.dag = dag
        role = np.array([_ROLES[kind] for kind in NodeKind], dtype=np.int8)[dag.kind]
        self.is_task: Bool = role == _TASK
        ends = role[np.stack([dag.edge_source, dag.edge_target])]
        self.is_stream: Bool = (ends == _TASK).all(axis=0)
        self._is_stored: Bool = (ends == _BUFFER).any(axis=0) & (ends != _PSEUDO).all(axis=0)
        self._is_buffer: Bool = role == _BUFFER

    @cached_property
    def tasks(self) -> int:
        """Number of computational nodes."""
        return sum(self.is_task.tolist())

    @cached_property
    def taken(self) -> Int64:
        """Elements on every input edge of each node; of several edges the largest, shape [nodes]."""
        return self._largest(self.dag.edge_target)

    @cached_property
    def given(self) -> Int64:
        """Elements on every output edge of each node; of several edges the largest, shape [nodes]."""
        return self._largest(self.dag.edge_source)

    @cached_property
    def work(self) -> Int64:
        """Cycles of each task: the elements on its longest edge, shape [nodes]."""
        return np.where(self.is_task, np.maximum(self.taken, self.given), 0)

    @cached_property
    def total_work_cycles(self) -> int:
        """All tasks one after another."""
        return sum(self.work.tolist())

    @cached_property
    def critical_path_cycles(self) -> int:
        """The largest work along a path."""
        dag = self.dag
        return max(longest_to(dag.nodes_count, dag.edge_source, dag.edge_target, self.work.tolist()), default=0)

    @cached_property
    def io_elements(self) -> int:
        """Elements on edges that touch a buffer, but not the marks of start and end."""
        return sum(self.dag.edge_volume[self._is_stored].tolist())

    @cached_property
    def io_bytes(self) -> int:
        """The same in bytes."""
        volumes = self.dag.edge_volume[self._is_stored].tolist()
        sizes = self.dag.edge_element_bytes[self._is_stored].tolist()
        return sum(volume * size for volume, size in zip(volumes, sizes, strict=True))

    @cached_property
    def streaming_depth_cycles(self) -> int:
        """The longest path of streaming components, each of ``L - 1 + max W`` cycles [dematteis23, section 4]."""
        dag, nodes = self.dag, self.dag.nodes_count
        streamed = self._uncut
        component = components_of(nodes, dag.edge_source[streamed], dag.edge_target[streamed])
        level = longest_to(nodes, dag.edge_source[streamed], dag.edge_target[streamed], self._level_steps)
        deepest, largest = [0] * nodes, [0] * nodes
        for node in np.flatnonzero(self.is_task).tolist():
            first = component[node]
            deepest[first] = max(deepest[first], level[node])
            largest[first] = max(largest[first], int(self.work[node]))
        length = [
            deep - 1 + work if deep and is_task else 0
            for deep, work, is_task in zip(deepest, largest, self.is_task.tolist(), strict=True)
        ]
        along = np.array(component, dtype=np.int64)
        kept = ~streamed
        return max(longest_to(nodes, along[dag.edge_source[kept]], along[dag.edge_target[kept]], length), default=0)

    @property
    def _uncut(self) -> Bool:
        """Streams, but those cut in components that would wait for a buffer which they fill themselves."""
        dag, nodes, streamed = self.dag, self.dag.nodes_count, self.is_stream
        component = np.array(components_of(nodes, dag.edge_source[streamed], dag.edge_target[streamed]), dtype=np.int64)
        waits = self._between_cycles(component)[component]
        before = np.array(longest_to(nodes, dag.edge_source, dag.edge_target, self._is_buffer.astype(int).tolist()))
        apart = before[dag.edge_source] != before[dag.edge_target]
        uncut: Bool = streamed & ~(waits[dag.edge_source] & apart)
        return uncut

    def _between_cycles(self, component: Int64) -> Bool:
        """Return which components no order reaches, neither along the edges between them nor against them."""
        stored = ~self.is_stream
        source, target = component[self.dag.edge_source[stored]], component[self.dag.edge_target[stored]]
        unreached = np.ones(self.dag.nodes_count, dtype=np.bool_)
        unreached[reached_from_sources(self.dag.nodes_count, source, target)] = False
        # What is before all cycles was reached; what is behind all of them is reached from the other end.
        inner = unreached[source] & unreached[target]
        unreached[reached_from_sources(self.dag.nodes_count, target[inner], source[inner])] = False
        return unreached

    @property
    def _level_steps(self) -> list[int]:
        """What each task adds to the level of its producers: the cycles that it needs per element it takes."""
        per_element = -(-self.given // np.maximum(self.taken, 1))
        steps = np.where(self.taken > 0, np.maximum(per_element, 1), 1)
        return [int(step) for step in np.where(self.is_task, steps, 0).tolist()]

    def _largest(self, ends: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Int64:
        largest = np.zeros(self.dag.nodes_count, dtype=np.int64)
        np.maximum.at(largest, ends, self.dag.edge_volume)
        return largest
