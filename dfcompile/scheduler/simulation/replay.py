"""What is replayed, forwards or backwards, and what a replay finds: of a unit or of a whole schedule."""

from enum import Enum, unique

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import EDGE_COLUMNS, Bool, CanonicalDag, Column, Int32, Int64, NodeKind, frozen
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.canonical_dag.verifier import reject_edge, reject_node
from dfcompile.errors import VerificationError
from dfcompile.records import replace

NO_NODE = -1


class Replay(Struct, frozen=True, eq=False):
    """A schedule without its times: the simulator finds those.

    Attributes:
        pe: processing element of each computational node, negative for the others, shape [nodes].
        order: tasks of one processing element run one after another by increasing order; a start time or the number
            of the spatial block will do, shape [nodes].
        streamed: whether the edge is an on-chip FIFO, shape [edges].
        fifo_capacity: elements that the FIFO of a streamed edge holds; one as large as the volume never blocks.
            Not read for other edges, shape [edges].
        block: spatial block of each node; without ``barrier`` no time depends on it, shape [nodes].
        barrier: whether no node of a block starts before all nodes of the blocks before it have ended.
        hardware: what the machine's FIFOs and tasks take.
        is_reversed: whether the graph is one that is read backwards in time.
    """

    pe: Int32
    order: Int64
    streamed: Bool
    fifo_capacity: Int64
    block: Int32
    barrier: bool = False
    hardware: Hardware = LITERATURE
    is_reversed: bool = False

    def unlimited(self, dag: CanonicalDag) -> "Replay":
        """Return the same with FIFOs that are never full."""
        return replace(self, fifo_capacity=np.maximum(dag.edge_volume, 1))


def check_replay(dag: CanonicalDag, replay: Replay) -> None:
    """Check that a replay fits the graph.

    Raises:
        VerificationError: a column of the wrong length, a FIFO that is not between two tasks or holds nothing, a task
            without a processing element, or two tasks of one processing element without an order.
    """
    for name, column, count in (
        ("pe", replay.pe, dag.nodes_count),
        ("order", replay.order, dag.nodes_count),
        ("block", replay.block, dag.nodes_count),
        ("streamed", replay.streamed, dag.edges_count),
        ("fifo_capacity", replay.fifo_capacity, dag.edges_count),
    ):
        if column.shape != (count,):
            raise VerificationError(f"replay of {dag.name!r}: {len(column)} values in {name} against {count}")
    reject_edge(dag, replay.streamed & ~dag.between_tasks, "streamed, but not between two tasks")
    flat = replay.streamed & (replay.fifo_capacity < 1)
    least = replay.fifo_capacity[np.argmax(flat)] if flat.any() else 1
    reject_edge(dag, flat, f"a fifo of {least} elements against 1 or more")
    reject_node(dag, dag.is_computational & (replay.pe < 0), "on no processing element")
    tasks = _by_element(dag, replay)
    before, after = tasks[:-1], tasks[1:]
    tied = (replay.pe[before] == replay.pe[after]) & (replay.order[before] == replay.order[after])
    if tied.any():
        names = [dag.node_name(int(end[np.argmax(tied)])) for end in (before, after)]
        raise VerificationError(f"nodes {names[0]!r} and {names[1]!r}: on one processing element without an order")


def previous_on_element(dag: CanonicalDag, replay: Replay) -> Int32:
    """Return the task that runs before each node on its processing element, or ``NO_NODE``, shape [nodes]."""
    previous = np.full(dag.nodes_count, NO_NODE, dtype=np.int32)
    tasks = _by_element(dag, replay)
    before, after = tasks[:-1], tasks[1:]
    same = replay.pe[before] == replay.pe[after]
    previous[after[same]] = before[same]
    return previous


def _by_element(dag: CanonicalDag, replay: Replay) -> Int64:
    tasks = np.flatnonzero(dag.is_computational)
    return tasks[np.lexsort((replay.order[tasks], replay.pe[tasks]))]


def reversed_dag(dag: CanonicalDag) -> CanonicalDag:
    """Return a graph with all edges turned round, the last one first; nodes keep their numbers.

    The rules of a replay are the same in both directions of time. Read backwards, an element is read where it was
    written and written where it was read: a task with I reads and O writes has O reads and I writes, in the same cycles
    counted from its end; of accesses in one cycle the order is reversed; a place in a FIFO is awaited as an element is.
    So the earliest times of the reversed graph, counted from the end of the schedule, are the latest ones that do not
    delay it.
    """
    kind = dag.kind.copy()
    kind[dag.kind == NodeKind.PSEUDO_SOURCE] = NodeKind.PSEUDO_SINK
    kind[dag.kind == NodeKind.PSEUDO_SINK] = NodeKind.PSEUDO_SOURCE
    edges = {name: _last_first(getattr(dag, name)) for name in EDGE_COLUMNS}
    edges["edge_source"], edges["edge_target"] = edges["edge_target"], edges["edge_source"]
    return replace(dag, kind=frozen(kind), volume_in=dag.volume_out, volume_out=dag.volume_in, **edges)


def reversed_replay(replay: Replay) -> Replay:
    """Return what is replayed in the reversed graph: edge k of the one is edge ``edges - 1 - k`` of the other."""
    streamed, capacity = _last_first(replay.streamed), _last_first(replay.fifo_capacity)
    block = (replay.block.max(initial=0) - replay.block).astype(np.int32)
    columns = {"order": -replay.order, "streamed": streamed, "fifo_capacity": capacity, "block": block}
    return replace(replay, is_reversed=not replay.is_reversed, **columns)


def _last_first(column: Column) -> Column:
    turned = column.copy()
    turned[:] = column[::-1]
    return frozen(turned)


NEVER = -1
NO_EDGE = -1
FINISHED = -1  # where no node is stuck
NOT_STARTED = -2


@unique
class WaitReason(Enum):
    """What a task waits for."""

    ELEMENT = "an element from"  # its FIFO is empty
    PLACE = "a place for an element to"  # its FIFO is full
    END = "the end of"  # of a producer in memory, or of the task before on its processing element or in time


class Wait(Struct, frozen=True):
    """One link of a wait cycle.

    Attributes:
        node: who waits.
        reason: what for.
        on: the node that would have to go on.
        edge: the streamed edge between the two, ``NO_EDGE`` where the reason is ``END``.
    """

    node: int
    reason: WaitReason
    on: int
    edge: int

    def text(self, dag: CanonicalDag) -> str:
        """Return the link as a phrase that names the nodes."""
        return f"{dag.node_name(self.node)!r} waits for {self.reason.value} {dag.node_name(self.on)!r}"


class UnitTimes(Struct, frozen=True):
    """When the tasks of a unit run, and where they wait.

    Attributes:
        start: cycle in which each node has its first element of every streamed input, but for the cycles of its first
            row before the read of the last; of a node without streamed inputs: from which on it may run.
        end: cycle in which each node has ended.
        read_stall: cycles after its start that the reader of each edge waited for elements.
        write_stall: cycles that the writer of each edge waited for a place.
        peak: most elements in the FIFO of each edge.
        stuck: of a deadlock, where each node is stuck: an edge, ``FINISHED`` or ``NOT_STARTED``; else empty. Starts and
            ends that do not happen are ``NEVER`` then, stalls and peaks 0.
    """

    start: tuple[int, ...]
    end: tuple[int, ...]
    read_stall: tuple[int, ...]
    write_stall: tuple[int, ...]
    peak: tuple[int, ...]
    stuck: tuple[int, ...]

    def later(self, cycles: int) -> "UnitTimes":
        """Return the times of a unit of which every node may run so many cycles later."""
        start, end = (
            tuple(NEVER if time == NEVER else time + cycles for time in times) for times in (self.start, self.end)
        )
        return replace(self, start=start, end=end)


class Simulation(Struct, frozen=True, eq=False):
    """A replayed schedule; all times are in cycles from 0.

    Attributes:
        makespan_cycles: when the last node ends; ``NEVER`` in a deadlock.
        start: cycle in which each task holds its first element of every streamed input, but for the cycles of its
            first row before the read of the last, or may run if it has none; ``NEVER`` if it does not, [nodes].
        end: cycle in which each node has ended, or ``NEVER``, shape [nodes].
        read_stall: cycles after its start that the reader of each edge waited for elements, shape [edges].
        write_stall: cycles that the writer of each edge waited for places, shape [edges].
        peak: most elements in the FIFO of each edge: a capacity that changes no time, shape [edges].
        deadlock: the links of one wait cycle, each waiting for the next and the last for the first; else empty.

    Of tasks in a deadlock no stalls and peaks are known. Else ``end - start`` is the work of a task plus its stalls.
    """

    makespan_cycles: int
    start: Int64
    end: Int64
    read_stall: Int64
    write_stall: Int64
    peak: Int64
    deadlock: tuple[Wait, ...]
