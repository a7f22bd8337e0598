"""Hypothesis strategies for small canonical DAGs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag, DagBuilder, NodeKind, topological_order
from dfcompile.canonical_dag.dag import NO_KERNEL, frozen
from dfcompile.canonical_dag.kernel import Kernel, KernelVariant
from dfcompile.records import replace

ORDERS = ("any", "[0,1]", "[1,0]")


@dataclass(frozen=True, slots=True)
class DagShape:
    """Bounds of a random DAG."""

    max_scopes: int = 7
    max_members: int = 3  # tasks of one family
    max_volume: int = 24
    buffers: bool = True
    fractional: bool = True  # rates that are neither whole nor one over a whole number
    pseudo: bool = True  # perhaps a pseudo source and a pseudo sink
    phases: bool = False  # one to three that hand on through buffers, see `in_phases`


DEFAULT_SHAPE = DagShape()


def task_dags(max_scopes: int = 7, max_volume: int = 24, *, fractional: bool = True) -> st.SearchStrategy[CanonicalDag]:
    """Random canonical DAGs of computational nodes alone: no buffers, no pseudo nodes."""
    return canonical_dags(
        DagShape(max_scopes, max_volume=max_volume, buffers=False, fractional=fractional, pseudo=False)
    )


@st.composite
def canonical_dags(draw: st.DrawFn, shape: DagShape = DEFAULT_SHAPE) -> CanonicalDag:
    """Random canonical DAGs: chains, forks, joins, reconvergence, families, parallel edges, buffers, pseudo nodes."""
    growing = _Growing(draw, shape)
    scopes = draw(st.integers(1, shape.max_scopes))
    for number in range(scopes):
        if shape.buffers and draw(st.integers(0, 3)) == 0:
            growing.add_buffer(number)
        else:
            growing.add_family(number)
    growing.close_loose_tasks()
    if shape.pseudo and draw(st.booleans()):
        growing.add_pseudo_nodes()
    dag = growing.builder.finish()
    if not shape.phases:
        return dag
    cuts = draw(st.lists(st.integers(1, max(dag.nodes_count - 1, 1)), max_size=2, unique=True))
    return in_phases(dag, cuts, [draw(st.integers(0, 3)) > 0 for _ in range(dag.edges_count)])


def in_phases(dag: CanonicalDag, cuts: Sequence[int], stored: Sequence[bool]) -> CanonicalDag:
    """The same tasks in phases: what tasks behind a cut of the graph read of those before it goes through a buffer.

    Args:
        dag: the graph.
        cuts: so many nodes come before each, in topological order.
        stored: whether an edge over a cut goes through its buffer at all, shape [edges].
    """
    place = np.argsort(topological_order(dag))
    source, target = place[dag.edge_source], place[dag.edge_target]
    builder, left = DagBuilder.of(dag), dag.between_tasks & np.array(stored, dtype=np.bool_)
    for cut in sorted(cuts):
        edges = np.flatnonzero(left & (source < cut) & (target >= cut)).tolist()
        left[edges] = False
        buffer = builder.add_memory(builder.add_scope(f"before{cut}"))
        for edge in edges:
            builder.split_edge(edge, buffer)
    whole = builder.finish()
    order = topological_order(whole)
    place = np.argsort(order).astype(np.int32)
    ends = {name: frozen(place[getattr(whole, name)]) for name in ("edge_source", "edge_target")}
    of_nodes = ("kind", "volume_in", "volume_out", "node_scope", "node_member")
    return replace(whole, **ends, **{name: frozen(getattr(whole, name)[order]) for name in of_nodes})


def with_operators(dag: CanonicalDag) -> CanonicalDag:
    """The same graph, two in three of its families those of a kernel, of two types of operators."""
    kernels = [
        Kernel(f"kernel{number}", op, "", "", KernelVariant.ELEMENTWISE_INPUT1, 1, 1, 1, 1, (), ())
        for number, op in enumerate(("Add", "Exp"))
    ]
    of_scope = (number % 3 if number % 3 < len(kernels) else NO_KERNEL for number in range(len(dag.scopes)))
    scopes = (replace(scope, kernel=kernel) for scope, kernel in zip(dag.scopes, of_scope, strict=True))
    return replace(dag, kernels=tuple(kernels), scopes=tuple(scopes))


class _Growing:
    """A DAG that grows one family or buffer at a time, canonical at every step."""

    def __init__(self, draw: st.DrawFn, shape: DagShape) -> None:
        self.builder = DagBuilder("random")
        self._draw = draw
        self._shape = shape
        self._emits: dict[int, int] = {}  # task -> elements it emits on every output edge
        self._reads: dict[int, int] = {}  # task -> elements it reads on every input edge
        self._buffers: list[int] = []
        self._consumed: dict[int, bool] = {}
        self._produced: dict[int, bool] = {}

    def add_buffer(self, number: int) -> None:
        buffer = self.builder.add_memory(self.builder.add_scope(f"array{number}"))
        for producer in self._some([*self._emits], 2):
            self._edge(producer, buffer, self._emits[producer])
        self._buffers.append(buffer)

    def add_family(self, number: int) -> None:
        scope = self.builder.add_scope(f"op{number}.step", origin=f"op{number}")
        count = self._draw(st.integers(1, self._shape.max_members))
        if count == 1 and self._draw(st.booleans()):
            members = [self.builder.add_task(scope)]
        else:
            members = list(self.builder.add_tasks(scope, count))
        producers = self._some([*self._emits, *self._buffers], 3)
        # The first task among the producers fixes I; a task that emits another volume cannot join.
        streamed = [self._emits[producer] for producer in producers if producer in self._emits]
        volume = streamed[0] if streamed else self._draw(st.integers(1, self._shape.max_volume))
        emitted = self._emitted(volume)
        for member in members:
            for producer in producers:
                if self._emits.get(producer, volume) == volume:
                    self._edge(producer, member, volume)
        self._reads.update(dict.fromkeys(members, volume))
        self._emits.update(dict.fromkeys(members, emitted))

    def close_loose_tasks(self) -> None:
        """Give every task that has no edge yet a task that reads from it."""
        for task in [task for task in self._emits if task not in self._consumed and task not in self._produced]:
            closing = self.builder.add_task(self.builder.add_scope(f"closing{task}"))
            self._edge(task, closing, self._emits[task])

    def add_pseudo_nodes(self) -> None:
        start = self.builder.add_memory(self.builder.add_scope("start"), NodeKind.PSEUDO_SOURCE)
        end = self.builder.add_memory(self.builder.add_scope("end"), NodeKind.PSEUDO_SINK)
        for node, volume in [*self._reads.items(), *dict.fromkeys(self._buffers, 1).items()]:
            if node not in self._produced:
                self._edge(start, node, volume)
        for node, volume in [*self._emits.items(), *dict.fromkeys(self._buffers, 1).items()]:
            if node not in self._consumed:
                self._edge(node, end, volume)

    def _some(self, nodes: list[int], most: int) -> list[int]:
        if not nodes:
            return []
        return self._draw(st.lists(st.sampled_from(nodes), max_size=most))

    def _emitted(self, volume: int) -> int:
        most = self._shape.max_volume
        if self._shape.fractional and self._draw(st.booleans()):
            return self._draw(st.integers(1, most))
        whole = [other for other in range(1, most + 1) if other % volume == 0 or volume % other == 0]
        return self._draw(st.sampled_from(whole))

    def _edge(self, source: int, target: int, volume: int) -> None:
        self.builder.add_edge(source, target, volume, order=self._draw(st.sampled_from(ORDERS)))
        self._consumed[source] = True
        self._produced[target] = True
