"""What a caller chooses about a schedule."""

from msgspec import Struct

from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.errors import UserError
from dfcompile.options import Effort, Fifos, Timing

QUICK_PARTITION = "sb-rlx"  # for schedules that are compared by the hundred


class ScheduleOptions(Struct, frozen=True):
    """Options of `schedule`.

    Attributes:
        pes: number of processing elements P.
        partition: name of the partitioner that fills spatial blocks.
        demote: whether an edge whose FIFO would have to hold all of it (but one element) goes through memory
            instead; the published figures are without.
        barrier: whether a block waits for the end of the one before. ``None`` leaves it to the partitioner: ``best``
            goes without, the published ones with barriers.
        timing: how times are found.
        fifos: what FIFOs hold: ``in-flight``, the elements in flight, which throttles nothing; ``rule``, the published
            sizes; ``minimal``, the smallest that keep the makespan; a number, all of that size, whatever it costs.
            ``None`` leaves it to the timing: steady times go with ``rule``, exact ones with ``in-flight``.
        simulated: whether a checked schedule is replayed with stalls.
        effort: how much a partitioner tries that searches.
        max_fifo: elements that a FIFO holds at most; an edge that needs more goes through memory, or its FIFO is made
            smaller where that takes less time. ``None`` is without limit.
        hardware: what the machine's FIFOs and tasks take.
        what_if: machines on which a checked schedule is replayed as well.
    """

    pes: int
    partition: str = QUICK_PARTITION
    demote: bool = False
    barrier: bool | None = None
    timing: Timing = Timing.EXACT
    fifos: Fifos | None = None
    simulated: bool = False
    effort: Effort = Effort.DEFAULT
    max_fifo: int | None = None
    hardware: Hardware = LITERATURE
    what_if: tuple[tuple[str, Hardware], ...] = ()

    def __post_init__(self) -> None:
        """Reject a machine without processing elements, and FIFOs without room or above their own limit.

        Raises:
            UserError: ``pes`` or ``max_fifo`` is below 1, or ``fifos`` above ``max_fifo``.
        """
        check_pes(self.pes)
        if self.max_fifo is None:
            return
        if self.max_fifo < 1:
            raise UserError(f"max-fifo: found {self.max_fifo}, expected at least 1")
        if isinstance(self.fifos, int) and self.fifos > self.max_fifo:
            raise UserError(f"fifo: found {self.fifos} elements against at most {self.max_fifo} (max-fifo)")


def check_pes(pes: int) -> None:
    """Check that a number of processing elements makes sense.

    Raises:
        UserError: ``pes`` is below 1.
    """
    if pes < 1:
        raise UserError(f"pes: found {pes}, expected at least 1")
