"""What the cores of a chip see of a kernel: all that a time is computed from, of a graph's kernels and of a file's."""

from msgspec import Struct

from dfcompile.canonical_dag import Kernel


class KernelWork(Struct, frozen=True):
    """The share of one kernel on one chip, or a tile of it."""

    name: str
    systolic: bool
    rows: int  # outer * m
    k: int
    n: int
    network_ns: float = 0.0  # exchange with other chips
    stages_per_core: int = 0  # of this kernel, which are k's then; 0: those of the chip, which are n's

    @staticmethod
    def of(kernel: Kernel, network_ns: float) -> "KernelWork":
        """Return what cores see of a kernel: all elements of an elementwise one are rows, whatever its axes are.

        Args:
            kernel: or a chip's share of it.
            network_ns: of what it, and what it hands on, exchanges with other chips.
        """
        rows = kernel.outer * kernel.m
        if kernel.variant.is_gemm:
            return KernelWork(kernel.name, systolic=True, rows=rows, k=kernel.k, n=kernel.n, network_ns=network_ns)
        return KernelWork(kernel.name, systolic=False, rows=rows * kernel.n, k=1, n=1, network_ns=network_ns)

    @property
    def columns(self) -> int:
        """What is spread over stages: nothing of an elementwise kernel."""
        if not self.systolic:
            return 1
        return self.k if self.stages_per_core else self.n

    @property
    def steps(self) -> int:
        """Cycles of a row on lanes and a column on stages of its own."""
        return self.k if self.systolic and not self.stages_per_core else self.n

    @property
    def shape(self) -> tuple[bool, int, int, int, int]:
        """What cores see of it: kernels of one shape are the same, whatever they are called."""
        return self.systolic, self.rows, self.k, self.n, self.stages_per_core

    @property
    def flop(self) -> int:
        """FLOP of one execution."""
        return (2 * self.k if self.systolic else 1) * self.rows * self.n
