"""What a kernel takes on a device, under one named way of counting."""

from collections.abc import Callable
from enum import StrEnum, unique

from msgspec import Struct

from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.steps.kernel import Kernel
from dfcompile.records import replace


@unique
class TimeModel(StrEnum):
    """How time is counted; every figure says by which."""

    BOUND = "bound"  # the least traffic that any tiling has, at peak rates
    ROOFLINE = "roofline"  # every operand once, at peak rates
    TILING = "tiling"  # the best tiling with whole granules, double buffers and accumulators
    CALIBRATED = "calibrated"  # fitted on public measurements


class KernelTime(Struct, frozen=True):
    """Seconds of one run of a kernel.

    Attributes:
        compute_s: of the multiply-adders.
        memory_s: of the memory that limits it.
        exec_s: of both together.
        bound: Compute, Memory, Vector, Offload or Async.
        traffic_bytes: that reach the memory; none where every operand moves once.
        tile: extents, where there is a tiling.
        inner_bytes: that leave each memory on the chip, the outermost first; empty: operands once each.
        vector_s: of the vector unit; 0 where its rate is not known.
        offload_s: of the link to the memory beside the chip's own.
    """

    compute_s: float
    memory_s: float
    exec_s: float
    bound: str
    traffic_bytes: int | None = None
    tile: str = ""
    inner_bytes: tuple[int, ...] = ()
    vector_s: float = 0.0
    offload_s: float = 0.0


Timer = Callable[[Kernel, Device], KernelTime]


def slower_of(compute_s: float, memory_s: float, *, is_async: bool = False) -> KernelTime:
    """Return the time of a kernel whose computing and traffic overlap perfectly; a tie is of the memory."""
    bound = "Async" if is_async else "Compute" if compute_s > memory_s else "Memory"
    return KernelTime(compute_s, memory_s, max(compute_s, memory_s), bound)


def within_limits(kernel: Kernel, device: Device, time: KernelTime) -> KernelTime:
    """Return a kernel's time with what its vector elements and its offloaded bytes take, all at once with the rest."""
    vector = kernel.vector_elements / device.vector_per_s if device.vector_per_s else 0.0
    offload = kernel.offload_bytes / device.offload.bytes_per_s if device.offload is not None else 0.0
    slowest = max(vector, offload)
    if not slowest:
        return time
    bound = time.bound
    if slowest > time.exec_s and not kernel.is_async:
        bound = "Vector" if vector >= offload else "Offload"
    return replace(time, exec_s=max(time.exec_s, slowest), bound=bound, vector_s=vector, offload_s=offload)


def roofline(kernel: Kernel, device: Device) -> KernelTime:
    """Return the time of every operand moving once, at the device's peak rates.

    Raises:
        UserError: the device has no rate for the kernel's number format.
    """
    compute = kernel.macs / device.rate(kernel.rate) if kernel.macs else 0.0
    return slower_of(compute, kernel.bytes / device.bytes_per_s, is_async=kernel.is_async)
