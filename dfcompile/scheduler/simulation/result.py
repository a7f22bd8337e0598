"""What a replay finds: times, stalls, occupancies, or who waits for whom for ever; of a unit or of a whole schedule."""

from enum import Enum, unique

from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int64
from dfcompile.records import replace

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
        start: cycle of each node's first read (of a node without streamed inputs: from which on it may run).
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
        start: cycle in which each task holds its first element of every streamed input, or may run if it has none;
            ``NEVER`` if that does not happen, shape [nodes].
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
