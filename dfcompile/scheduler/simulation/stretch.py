"""A streaming unit and the stretch of its accesses that is being simulated."""

from dataclasses import dataclass

import numpy as np

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.program import Program

LONG_AGO = -(2**62)  # before any time; far enough from the limit that waits can be subtracted


@dataclass(frozen=True, slots=True, eq=False)
class StreamingUnit:
    """Tasks that exchange elements through FIFOs, directly or by way of each other.

    Nodes and edges are numbered within the unit, nodes in topological order.

    Attributes:
        nodes: the tasks, as numbered in the graph.
        edges: the streamed edges, as numbered in the graph.
        reads: elements that each node reads from every input; of a source those it writes.
        writes: elements that each node writes to every output; of a sink those it reads.
        inputs: streamed input edges of each node, in the order in which it reads them.
        outputs: streamed output edges of each node, in the order in which it writes them.
        source: writing node of each edge.
        target: reading node of each edge.
        capacity: elements that the FIFO of each edge holds.
        waits: nodes of the unit that must have ended before each node starts.
        rounds: the largest number of equal parts into which every volume of the unit can be cut.
    """

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    source: tuple[int, ...]
    target: tuple[int, ...]
    capacity: tuple[int, ...]
    waits: tuple[tuple[int, ...], ...]
    rounds: int

    def volume(self, edge: int) -> int:
        """Elements that travel on an edge."""
        return self.writes[self.source[edge]]

    def is_bounded(self, edge: int) -> bool:
        """Whether the FIFO of an edge can ever be full for its writer."""
        return self.capacity[edge] < self.volume(edge)


@dataclass(slots=True, eq=False)
class Stretch:
    """The accesses of all tasks of a unit over a number of rounds, and when each takes place.

    Attributes:
        rounds: how many rounds of the unit.
        programs: of each node.
        clock: time at which each node begins the stretch, or ``NEVER``.
        puts: times of the writes on each edge, shape [edges][elements].
        gets: of a bounded FIFO the times of the last ``capacity`` reads before the stretch, then of all edges those
            in the stretch: write j waits for entry j of a bounded one, shape [edges][capacity + elements].
        past: number of entries of ``gets`` that lie before the stretch.
    """

    rounds: int
    programs: list[Program]
    clock: list[int]
    puts: list[Int64]
    gets: list[Int64]
    past: list[int]

    def reads(self, edge: int) -> Int64:
        """Times of the reads of an edge in the stretch (a view), shape [elements]."""
        return self.gets[edge][self.past[edge] :]

    def frees(self, edge: int) -> Int64:
        """Times at which a bounded FIFO frees the place for each write (a view), shape [elements]."""
        return self.gets[edge][: len(self.puts[edge])]

    def delays(self, node: int, unit: StreamingUnit) -> Int64:
        """Return by how much each access of a node is later than its waits alone, shape [accesses]."""
        program = self.programs[node]
        delay = np.empty(program.length, dtype=np.int64)
        for edge, position in zip(unit.inputs[node], program.gets, strict=True):
            delay[position] = self.reads(edge) - program.get_waits
        for edge, position in zip(unit.outputs[node], program.puts, strict=True):
            delay[position] = self.puts[edge] - program.put_waits
        return delay
