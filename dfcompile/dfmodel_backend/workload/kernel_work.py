"""Work of a kernel on the cores of a chip: the sizes that its compute time depends on."""

from msgspec import Struct

from dfcompile.canonical_dag import Kernel


class KernelWork(Struct, frozen=True):
    """What one chip runs of a kernel, or of a tile of it."""

    name: str
    systolic: bool  # a contraction, which uses the stages of cores; an elementwise kernel uses lanes alone
    rows: int  # outer * m, spread over lanes
    k: int
    n: int
    network_ns: float = 0.0  # exchange with other chips
    stages_per_core: int = 0  # if set, k is spread over these stages; else n over those of the chip

    @staticmethod
    def of(kernel: Kernel, network_ns: float) -> "KernelWork":
        """Return the work of a kernel; all elements of an elementwise one are rows.

        Args:
            kernel: or a chip's share of it.
            network_ns: time of its exchange with other chips, and of the exchange of its output.
        """
        rows = kernel.outer * kernel.m
        if kernel.variant.is_gemm:
            return KernelWork(kernel.name, systolic=True, rows=rows, k=kernel.k, n=kernel.n, network_ns=network_ns)
        return KernelWork(kernel.name, systolic=False, rows=rows * kernel.n, k=1, n=1, network_ns=network_ns)

    @property
    def columns(self) -> int:
        """Extent that is spread over stages; 1 for an elementwise kernel, which is not spread."""
        if not self.systolic:
            return 1
        return self.k if self.stages_per_core else self.n

    @property
    def steps(self) -> int:
        """Cycles of a core for one row per lane and one column per stage."""
        return self.k if self.systolic and not self.stages_per_core else self.n

    @property
    def shape(self) -> tuple[bool, int, int, int, int]:
        """All that cycles depend on: kernels of equal shape take equally long."""
        return self.systolic, self.rows, self.k, self.n, self.stages_per_core

    @property
    def flop(self) -> int:
        """FLOP of one execution."""
        return (2 * self.k if self.systolic else 1) * self.rows * self.n
