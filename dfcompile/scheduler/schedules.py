"""What the scheduler hands over: schedules as read-only array columns."""

from fractions import Fraction

from msgspec import Struct

from dfcompile.canonical_dag.dag import Bool, Int32, Int64
from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.distinct import distinct
from dfcompile.options import Timing

NO_PE = -1


class Sample(Struct, frozen=True):
    """What a part of a schedule takes that is too large for a replay of all.

    Attributes:
        planned_cycles: by the schedule's times, more than 0.
        taken_cycles: in a replay.
    """

    planned_cycles: int
    taken_cycles: int

    @property
    def error(self) -> Fraction:
        """By how much it takes longer than planned, as a part of the plan."""
        return Fraction(self.taken_cycles - self.planned_cycles, self.planned_cycles)


class Schedule(Struct, frozen=True, eq=False):
    """A streaming schedule: gangs of co-resident nodes.

    With barriers, spatial blocks follow one another and each task of a block has an element of its own. Without, a
    block is one gang; blocks overlap in time, but on every processing element, and along every edge, they come in the
    order of their numbers; a stream from one block to another has a FIFO that holds all of it. All times are in cycles
    from 0.

    Attributes:
        pes: number of processing elements P.
        partition: name of the partitioner.
        barrier: whether no task starts before all blocks before its own have ended.
        timing: how the times were found.
        block: spatial block of each node, shape [nodes].
        pe: processing element of each computational node, ``NO_PE`` for the others, shape [nodes].
        start: ST, when the node may read its first element, shape [nodes].
        first_out: FO, when its first output is there, shape [nodes].
        last_out: LO, when its last output is there, shape [nodes].
        streamed: whether the edge is an on-chip FIFO, shape [edges].
        fifo_capacity: elements that the FIFO of a streamed edge holds, 0 for the others, shape [edges].
        makespan_cycles: when the last node ends.
        hardware: what the machine's FIFOs and tasks take.
    """

    pes: int
    partition: str
    barrier: bool
    timing: Timing
    block: Int32
    pe: Int32
    start: Int64
    first_out: Int64
    last_out: Int64
    streamed: Bool
    fifo_capacity: Int64
    makespan_cycles: int
    hardware: Hardware = LITERATURE

    @property
    def blocks_count(self) -> int:
        """Number of spatial blocks that hold a computational node."""
        return len(distinct(self.block[self.pe != NO_PE]))


class NonStreamingSchedule(Struct, frozen=True, eq=False):
    """A schedule in which every edge goes through memory.

    Attributes:
        pes: number of processing elements P.
        pe: processing element of each computational node, ``NO_PE`` for the others, shape [nodes].
        start: first cycle of each node, shape [nodes].
        end: cycle after its last one, shape [nodes].
        makespan_cycles: when the last node ends.
    """

    pes: int
    pe: Int32
    start: Int64
    end: Int64
    makespan_cycles: int
