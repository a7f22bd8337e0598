"""The notebook's theoretical tiling: real extents, the whole cache, and bytes of the operands but not of the result.

The order of multiplications and divisions is the notebook's, so that the same roundings come out.
"""

import math
from collections.abc import Sequence

from msgspec import Struct

from dfcompile.language_models.notebook.kernels import NotebookKernel

BYTES_PER_VALUE = 2


class NotebookMachine(Struct, frozen=True):
    """The notebook's five figures of a machine, in cores, Hz, MACs per cycle and core, bytes per s, bytes."""

    name: str
    cores: int
    frequency: float
    macs_per_cycle: int
    bandwidth: float
    cache: int

    @property
    def macs_per_second(self) -> float:
        """Of all cores."""
        return self.cores * self.frequency * self.macs_per_cycle


class Estimate(Struct, frozen=True):
    """What the notebook says of a kernel; what does not apply is none.

    Attributes:
        tile: extents as text.
        compute_cycles: of the multiply-adders.
        memory_cycles: of the operands' bytes.
        ratio: of the two.
        cycles: that it takes; none for transfers that it takes as free.
        bound: Compute or Memory.
    """

    tile: str | None = None
    compute_cycles: float | None = None
    memory_cycles: float | None = None
    ratio: float | None = None
    cycles: float | None = None
    bound: str | None = None


def estimate(kernel: NotebookKernel, machine: NotebookMachine) -> Estimate:
    """Return the notebook's cycles of a kernel."""
    if "M" in kernel.kind or "w" in kernel.kind:
        return Estimate() if kernel.compute is None else _tiled(kernel, kernel.compute, machine)
    if kernel.kind == "KVCache":
        moved = (kernel.kv_cache or 0) * BYTES_PER_VALUE
        return Estimate(cycles=moved / machine.bandwidth * machine.frequency, bound="Memory")
    return Estimate()


def _tiled(kernel: NotebookKernel, compute: float, machine: NotebookMachine) -> Estimate:
    m, k, n = tile_of(folded((kernel.m, kernel.k, kernel.n), kernel.batch), machine.cache)
    block = m * k * n
    compute_cycles = block / machine.macs_per_second * machine.frequency * compute / block
    moved = (m * k + n * k) * BYTES_PER_VALUE
    memory_cycles = moved / machine.bandwidth * machine.frequency * compute / block
    is_compute = compute_cycles > memory_cycles
    return Estimate(
        tile=f"{m:.1f}x{k:.1f}x{n:.1f}",
        compute_cycles=compute_cycles,
        memory_cycles=memory_cycles,
        ratio=memory_cycles / compute_cycles if compute_cycles else math.nan,
        cycles=compute_cycles if is_compute else memory_cycles,
        bound="Compute" if is_compute else "Memory",
    )


def folded(extents: tuple[int, int, int], batch: int) -> tuple[float, float, float]:
    """Fold a batch into rows or columns, so that the result is as square as possible; weights may grow by it."""
    m, k, n = extents
    if batch <= 1:
        return extents
    if m > n and m / n > batch:
        return m, k, n * batch
    if n > m and n / m > batch:
        return m * batch, k, n
    side = m * ((batch / (m / n)) ** (1 / 2))
    return side, k, side


def tile_of(extents: Sequence[float], cache: float) -> tuple[float, float, float]:
    """Return the tile that the notebook takes for the best one of a product."""
    small, middle, large = sorted(range(3), key=lambda at: extents[at])
    tile = list(extents)
    side = (cache / 3 / BYTES_PER_VALUE) ** (1 / 2)
    if extents[small] >= side:
        return side, side, side
    twice = extents[small] * 2
    side = (-twice + math.sqrt(twice**2 + 4 * (cache / BYTES_PER_VALUE))) / 2
    if extents[middle] >= side:
        tile[middle] = tile[large] = side
        return tile[0], tile[1], tile[2]
    room = cache - (extents[small] * extents[middle] * BYTES_PER_VALUE)
    side = room / (BYTES_PER_VALUE * (extents[small] + extents[middle]))
    if extents[large] >= side:
        tile[large] = side
    return tile[0], tile[1], tile[2]
