"""What a replay finds: times, stalls, occupancies, or who waits for whom for ever."""

from enum import Enum, unique

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.dag import Int64

NEVER = -1
NO_EDGE = -1


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
