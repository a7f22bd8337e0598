"""What the parts of a machine take, in cycles, beyond those of the literature."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import NO_KERNEL, CanonicalDag, Int32, Int64


class Hardware(Struct, frozen=True):
    """What FIFOs and tasks of a machine take; by default as little as in the literature.

    Attributes:
        hop_cycles: from the time at which an element enters a FIFO until it can be read, and from its read until its
            place can be taken.
        pipeline_cycles: from the time at which a task has computed an element, a cycle after the last read that it
            needs, until the element leaves the task. Its place in the FIFO is taken when it enters the pipeline, so
            that no pipeline ever stops.
        pipelines: the same of tasks whose kernels are of some types of operators, by type.
        ports: edges that a task reads in a cycle at most, and edges that it writes; ``None`` is without limit. A task
            accesses its edges in their order, so many in each cycle, and memory as it does FIFOs.
    """

    hop_cycles: int = 0
    pipeline_cycles: int = 0
    ports: int | None = None
    pipelines: tuple[tuple[str, int], ...] = ()

    @property
    def is_literature(self) -> bool:
        """Whether nothing takes more than in the literature."""
        return self == LITERATURE

    def pipeline(self, dag: CanonicalDag) -> Int64:
        """Return the cycles through the pipeline of each node; none of what is no task, shape [nodes]."""
        if not self.pipelines:
            return np.where(dag.work > 0, self.pipeline_cycles, 0)
        of_type = dict(self.pipelines)
        of_kernel = [of_type.get(kernel.op, self.pipeline_cycles) for kernel in dag.kernels]
        of_scope = [
            self.pipeline_cycles if scope.kernel == NO_KERNEL else of_kernel[scope.kernel] for scope in dag.scopes
        ]
        return np.where(dag.work > 0, np.array(of_scope, dtype=np.int64)[dag.node_scope], 0)

    def forward(self, dag: CanonicalDag, *, backwards: bool = False) -> Int64:
        """Return the cycles from the time at which an element's place is taken until it can be read, shape [edges].

        Args:
            dag: the graph.
            backwards: whether it is read backwards in time: an element is read where it enters a pipeline.
        """
        return self.pipeline(dag)[dag.edge_target if backwards else dag.edge_source] + self.hop_cycles

    def cycles(self, dag: CanonicalDag) -> Int64:
        """Return what each node takes if it never waits, shape [nodes]."""
        return np.where(dag.work > 0, dag.work + self.pipeline(dag) + self.row_cycles(dag), 0)

    def row_cycles(self, dag: CanonicalDag) -> Int64:
        """Return the cycles in which each node goes on with its row: accesses the rest of its edges, shape [nodes]."""
        reading, writing = self.rows(dag)
        return np.asarray(reading * dag.volume_in + writing * dag.volume_out)

    def rows(self, dag: CanonicalDag) -> tuple[Int64, Int64]:
        """Return the cycles after its first that a row of reads takes, one of each input edge, and a row of writes.

        Returns:
            Of each node, shape [nodes] each.
        """
        return self._cycles_before(np.diff(dag.in_start)), self._cycles_before(np.diff(dag.out_start))

    def turns(self, dag: CanonicalDag, *, backwards: bool = False) -> tuple[Int64, Int64]:
        """Return the cycles of a row before the one in which each edge is read, and in which it is written.

        Args:
            dag: the graph.
            backwards: whether it is read backwards in time: the last edges are the first to be accessed together.

        Returns:
            Of each edge, shape [edges] each.
        """
        if self.ports is None:
            nothing = np.zeros(dag.edges_count, dtype=np.int64)
            return nothing, nothing
        found = []
        for edges, start, end in (
            (dag.in_edges, dag.in_start, dag.edge_target),
            (dag.out_edges, dag.out_start, dag.edge_source),
        ):
            before = _places(edges, start, end)
            behind = np.diff(start)[end] - before
            found.append(
                self._cycles_before(behind + before) - self._cycles_before(behind)
                if backwards
                else self._cycles_before(before + 1)
            )
        return found[0], found[1]

    def _cycles_before(self, accesses: Int64) -> Int64:
        """Return the cycles before the last of so many accesses, one after another."""
        return np.maximum(accesses - 1, 0) // self.ports if self.ports else np.zeros_like(accesses)


def _places(edges: Int32, start: Int64, end: Int32) -> Int64:
    """Return the place of each edge among those of its end, shape [edges].

    Args:
        edges: by their ends.
        start: of those of each node, shape [nodes + 1].
        end: of each edge.
    """
    places = np.empty(len(edges), dtype=np.int64)
    places[edges] = np.arange(len(edges)) - start[end[edges]]
    return places


LITERATURE = Hardware()
