"""What the cores of a chip see of a kernel: the end of the way of a graph's kernels and of a set-up file's."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KernelWork:
    """The share of one kernel on one chip, or a tile of it."""

    name: str
    systolic: bool
    rows: int  # outer * m
    k: int
    n: int
    network_ns: float = 0.0  # exchange with other chips
    stages_per_core: int = 0  # of this kernel; 0: those of the chip

    @property
    def shape(self) -> tuple[bool, int, int, int, int]:
        """What cores see of it: kernels of one shape are the same, whatever they are called."""
        return self.systolic, self.rows, self.k, self.n, self.stages_per_core

    @property
    def flop(self) -> int:
        """FLOP of one execution."""
        return (2 * self.k if self.systolic else 1) * self.rows * self.n
