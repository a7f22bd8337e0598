"""A streaming unit and the stretch of its accesses that is being simulated."""

from collections.abc import Hashable

from msgspec import Struct

from dfcompile.canonical_dag.dag import Int64
from dfcompile.scheduler.simulation.access_sequence import AccessSequence

LONG_AGO = -(2**62)  # before any time; far enough from the limit that waits can be subtracted


class StreamingUnit(Struct, frozen=True, eq=False):
    """Tasks that exchange elements through FIFOs, directly or by way of each other.

    Nodes and edges are numbered within the unit; a node comes after those that it reads from or waits for.

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

    @property
    def shape(self) -> Hashable:
        """What its times depend on, whichever nodes and edges of the graph it has."""
        return self.reads, self.writes, self.source, self.target, self.capacity, self.waits

    def volume(self, edge: int) -> int:
        """Elements that travel on an edge."""
        return self.writes[self.source[edge]]

    def is_bounded(self, edge: int) -> bool:
        """Whether the FIFO of an edge can ever be full for its writer."""
        return self.capacity[edge] < self.volume(edge)


class Stretch(Struct, eq=False):
    """The accesses of all tasks of a unit between two places of each, and when each takes place.

    No access of a stretch awaits one after it. Elements written before it may be read in it.

    Attributes:
        sequences: of each node.
        clock: time at which each node begins the stretch, or ``NEVER``.
        sent: times of the writes on each edge: of those that are not read before the stretch, then of those in it.
        pending: number of the former.
        gets: of a bounded FIFO the times of the last ``capacity`` reads before the stretch, then of all edges those
            in the stretch, shape [edges][past + elements].
        past: number of the former.
    """

    sequences: list[AccessSequence]
    clock: list[int]
    sent: list[Int64]
    pending: list[int]
    gets: list[Int64]
    past: list[int]

    def puts(self, edge: int) -> Int64:
        """Times of the writes on an edge in the stretch (a view), shape [elements]."""
        return self.sent[edge][self.pending[edge] :]

    def reads(self, edge: int) -> Int64:
        """Times of the reads of an edge in the stretch (a view), shape [elements]."""
        return self.gets[edge][self.past[edge] :]

    def arrivals(self, edge: int) -> Int64:
        """Times at which the elements read in the stretch were written (a view), shape [elements]."""
        return self.sent[edge][: len(self.gets[edge]) - self.past[edge]]

    def frees(self, edge: int) -> Int64:
        """Times at which a bounded FIFO frees the place for each write (a view), shape [elements]."""
        return self.gets[edge][self.pending[edge] : len(self.sent[edge])]

    def end(self, unit: StreamingUnit, node: int) -> int:
        """Return when a node ends the stretch."""
        sequence, delay = self.sequences[node], self.clock[node]
        if sequence.reads:
            last = int(sequence.get_waits[-1])
            delay = max(delay, *(int(self.reads(edge)[-1]) - last for edge in unit.inputs[node]))
        if sequence.writes:
            last = int(sequence.put_waits[-1])
            delay = max(delay, *(int(self.puts(edge)[-1]) - last for edge in unit.outputs[node]))
        return delay + sequence.cycles
