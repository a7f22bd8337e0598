"""What the parts of a machine take, in cycles, beyond those of the literature."""

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag, Int64


class Hardware(Struct, frozen=True):
    """What FIFOs and tasks of a machine take; by default as little as in the literature.

    Attributes:
        hop_cycles: from the time at which an element enters a FIFO until it can be read, and from its read until its
            place can be taken.
        pipeline_cycles: from the time at which a task has computed an element, a cycle after the last read that it
            needs, until the element leaves the task. Its place in the FIFO is taken when it enters the pipeline, so
            that no pipeline ever stops.
    """

    hop_cycles: int = 0
    pipeline_cycles: int = 0

    @property
    def is_literature(self) -> bool:
        """Whether nothing takes more than in the literature."""
        return self == LITERATURE

    @property
    def forward_cycles(self) -> int:
        """From the time at which an element's place is taken until it can be read."""
        return self.pipeline_cycles + self.hop_cycles

    def cycles(self, dag: CanonicalDag) -> Int64:
        """Return what each node takes if it never waits, shape [nodes]."""
        return (
            np.asarray(np.where(dag.work > 0, dag.work + self.pipeline_cycles, 0)) if self.pipeline_cycles else dag.work
        )


LITERATURE = Hardware()
