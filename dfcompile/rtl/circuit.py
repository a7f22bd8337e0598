"""What of a schedule becomes hardware: families of equal tasks, FIFOs, memory ports, and who waits for whose end."""

from itertools import groupby, pairwise

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.errors import UserError
from dfcompile.scheduler.simulation.replay import NO_NODE, Replay, check_replay, previous_on_element

_LARGEST_FAMILY = 64  # so that simulators have a word for each signal
MOST_ACCESSES = 2**30 - 1  # of a task: twice as many fit in a parameter of Verilog


class Family(Struct, frozen=True):
    """Tasks of one scope with the same numbers of accesses and edges, and pipeline; ports of a circuit count from 0.

    Attributes:
        scope: that they come from.
        reads: accesses of every input; of a source as many as it writes.
        writes: accesses of every output; of a sink as many as it reads.
        inputs: input edges of each task.
        outputs: output edges of each task.
        pipeline: cycles through the pipeline of each.
        first: number of the first task in the circuit.
        count: of tasks.
        first_pull: reading port of the first input of the first task; those of the other tasks follow, then the second
            inputs, and so on.
        first_push: writing port of its first output, likewise.
    """

    scope: str
    reads: int
    writes: int
    inputs: int
    outputs: int
    pipeline: int
    first: int
    count: int
    first_pull: int
    first_push: int


class Fifo(Struct, frozen=True):
    """A streamed edge: the ports that it joins, and how many elements it holds."""

    push: int
    pull: int
    capacity: int


class Waits(Struct, frozen=True):
    """What has to have ended before a node may run.

    Attributes:
        nodes: numbers in the circuit, ascending.
        block: spatial block that waits for those before it; 0: for none.
    """

    nodes: tuple[int, ...]
    block: int


class Circuit(Struct, frozen=True):
    """A schedule as hardware. Nodes are numbered family by family; buffers and pseudo nodes come last.

    Attributes:
        families: of tasks.
        fifos: the streamed edges.
        loads: reading ports that are the memory's.
        stores: writing ports that are the memory's.
        waits: of each node, shape [nodes].
        blocks: nodes of each spatial block, if there are barriers between them; else none.
        hardware: what FIFOs and tasks take.
        nodes: of the graph, each task's.
        pull_edges: of the graph, each reading port's.
        push_edges: of the graph, each writing port's.
    """

    families: tuple[Family, ...]
    fifos: tuple[Fifo, ...]
    loads: tuple[int, ...]
    stores: tuple[int, ...]
    waits: tuple[Waits, ...]
    blocks: tuple[tuple[int, ...], ...]
    hardware: Hardware = LITERATURE
    nodes: tuple[int, ...] = ()
    pull_edges: tuple[int, ...] = ()
    push_edges: tuple[int, ...] = ()

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return sum(family.count for family in self.families)

    @property
    def most_cycles(self) -> int:
        """More than it can take, with registered FIFOs as well, until it ends or nothing moves.

        In each cycle there is an access, or an element or a place is on its way after one.
        """
        accesses = sum(
            family.count * (family.reads * max(family.inputs, 1) + family.writes * max(family.outputs, 1))
            for family in self.families
        )
        longest = max((family.pipeline for family in self.families), default=0)
        return (accesses + 1) * (2 + longest + 2 * (self.hardware.hop_cycles + 1))


def circuit_of(dag: CanonicalDag, replay: Replay) -> Circuit:
    """Return the hardware of a schedule: the same tasks, FIFOs and waits as a replay has.

    Raises:
        UserError: a task has too many accesses.
        VerificationError: the replay does not fit the graph.
    """
    check_replay(dag, replay)
    layout = _Layout(dag, replay)
    return Circuit(
        families=tuple(layout.families),
        fifos=tuple(layout.fifos()),
        loads=tuple(layout.memory_ports(layout.pull_of)),
        stores=tuple(layout.memory_ports(layout.push_of)),
        waits=layout.waits(),
        blocks=layout.blocks(),
        hardware=replay.hardware,
        nodes=tuple(layout.number)[: sum(family.count for family in layout.families)],
        pull_edges=tuple(layout.pull_of),
        push_edges=tuple(layout.push_of),
    )


class _Layout:
    """The numbers of nodes and ports.

    Attributes:
        families: of tasks.
        number: of each node in the circuit.
        pull_of: reading port of each edge that a task reads, in the order of `Circuit.fifos`.
        push_of: writing port of each edge that a task writes, likewise.
    """

    def __init__(self, dag: CanonicalDag, replay: Replay) -> None:
        self._dag, self._replay = dag, replay
        self._inputs = _rows(dag.in_edges.tolist(), dag.in_start.tolist())
        self._outputs = _rows(dag.out_edges.tolist(), dag.out_start.tolist())
        self._pipeline: list[int] = replay.hardware.pipeline(dag).tolist()
        self.families: list[Family] = []
        self.number: dict[int, int] = {}
        self.pull_of: dict[int, int] = {}
        self.push_of: dict[int, int] = {}
        # What has no work accesses nothing, and ends when it may run, as buffers do.
        tasks = np.flatnonzero(dag.work > 0).tolist()
        pulls = pushes = 0
        equal = [list(members) for _, members in groupby(sorted(tasks, key=self._key), self._key)]
        parts = (nodes[at : at + _LARGEST_FAMILY] for nodes in equal for at in range(0, len(nodes), _LARGEST_FAMILY))
        for nodes in parts:
            scope, reads, writes, inputs, outputs, pipeline = self._key(nodes[0])
            first = len(self.number)
            if max(reads, writes) > MOST_ACCESSES:
                found = f"found {max(reads, writes)} accesses against at most {MOST_ACCESSES}"
                raise UserError(f"rtl: task {dag.node_name(nodes[0])!r}: {found} (smaller volumes)")
            name = dag.scopes[scope].name
            ports = inputs, outputs, pipeline, first, len(nodes), pulls, pushes
            self.families.append(Family(name, reads, writes, *ports))
            self.number.update(zip(nodes, range(first, first + len(nodes)), strict=True))
            read = [self._inputs[node][place] for place in range(inputs) for node in nodes]
            written = [self._outputs[node][place] for place in range(outputs) for node in nodes]
            self.pull_of.update(zip(read, range(pulls, pulls + len(read)), strict=True))
            self.push_of.update(zip(written, range(pushes, pushes + len(written)), strict=True))
            pulls, pushes = pulls + len(read), pushes + len(written)
        for node in np.flatnonzero(dag.work == 0).tolist():
            self.number[node] = len(self.number)

    def _key(self, node: int) -> tuple[int, int, int, int, int, int]:
        dag = self._dag
        reads, writes = int(dag.volume_in[node]), int(dag.volume_out[node])
        ports = len(self._inputs[node]), len(self._outputs[node])
        return int(dag.node_scope[node]), reads or writes, writes or reads, *ports, self._pipeline[node]

    def fifos(self) -> list[Fifo]:
        """Return the FIFOs, of equal inputs of a family one after another."""
        streamed, capacity = self._replay.streamed.tolist(), self._replay.fifo_capacity.tolist()
        return [Fifo(self.push_of[edge], pull, capacity[edge]) for edge, pull in self.pull_of.items() if streamed[edge]]

    def memory_ports(self, ports: dict[int, int]) -> list[int]:
        """Return those of some ports whose edges go through memory."""
        streamed = self._replay.streamed.tolist()
        return [port for edge, port in ports.items() if not streamed[edge]]

    def waits(self) -> tuple[Waits, ...]:
        """Return what each node of the circuit waits for."""
        dag, replay = self._dag, self._replay
        block, streamed, source = replay.block.tolist(), replay.streamed.tolist(), dag.edge_source.tolist()
        previous = previous_on_element(dag, replay).tolist()
        found = []
        for node in self.number:
            awaited = {source[edge] for edge in self._inputs[node] if not streamed[edge]}
            awaited |= {previous[node]} - {NO_NODE}
            if replay.barrier:  # which the blocks before its own are awaited by
                awaited = {other for other in awaited if block[other] >= block[node]}
            nodes = tuple(sorted(self.number[other] for other in awaited))
            found.append(Waits(nodes, block[node] if replay.barrier else 0))
        return tuple(found)

    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """Return the nodes of each block, if there are barriers."""
        if not self._replay.barrier:
            return ()
        block = self._replay.block.tolist()
        found: list[list[int]] = [[] for _ in range(max(block, default=-1) + 1)]
        for node, number in self.number.items():
            found[block[node]].append(number)
        return tuple(map(tuple, found))


def _rows(values: list[int], start: list[int]) -> list[list[int]]:
    return [values[begin:end] for begin, end in pairwise(start)]
