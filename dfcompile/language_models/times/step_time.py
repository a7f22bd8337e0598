"""What kernels take on a device under a named way of counting, and what a step of them does."""

import math
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import groupby

from msgspec import Struct

from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.steps.kernel import Kernel
from dfcompile.records import replace


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


class Transfers(StrEnum):
    """When new keys and values reach the cache, and when old ones are read."""

    SYNC = "sync"  # after the kernels of the layer
    ASYNC = "async"  # beside them, as far as the memory has time
    PREFETCH = "prefetch"  # reads of the next layer's cache as well


class TimedKernel(Struct, frozen=True):
    """A kernel with its time, and the time without what the vector unit and offloaded bytes may add."""

    kernel: Kernel
    time: KernelTime
    alone: KernelTime


class PartTime(Struct, frozen=True):
    """Seconds of one layer of a kind, or of embedding or head.

    Attributes:
        part: which.
        count: layers of the kind.
        serial_s: kernels one after the other, without those beside.
        memory_s: all bytes, those of transfers beside as well.
        offload_s: all bytes of the link to the memory beside the chip's own.
        hidden_s: of transfers that find room.
        exposed_s: of transfers that do not.
        exec_s: of one layer.
    """

    part: str
    count: int
    serial_s: float
    memory_s: float
    offload_s: float
    hidden_s: float
    exposed_s: float
    exec_s: float


class StepTime(Struct, frozen=True):
    """Seconds of a step.

    Attributes:
        kernels: with their times.
        parts: what the layers of each kind take.
        exec_s: of the step.
        compute_s: of all multiply-adders.
        memory_s: of all bytes.
        vector_s: of all elements in the vector unit; 0 where its rate is not known.
        offload_s: of all bytes of the link to the memory beside the chip's own.
    """

    kernels: tuple[TimedKernel, ...]
    parts: tuple[PartTime, ...]
    exec_s: float
    compute_s: float
    memory_s: float
    vector_s: float
    offload_s: float

    @property
    def overlap_s(self) -> float:
        """If all kernels of a step overlapped: no schedule is faster under these rates."""
        return max(self.compute_s, self.memory_s, self.vector_s, self.offload_s)


def timed_step(
    kernels: Sequence[Kernel], device: Device, timer: Timer, transfers: Transfers = Transfers.ASYNC
) -> StepTime:
    """Return the time of the kernels of a step, those of a part following each other.

    Raises:
        UserError: the device has no rate for a number format.
    """
    alone = ((kernel, timer(kernel, device)) for kernel in kernels)
    timed = tuple(TimedKernel(kernel, within_limits(kernel, device, time), time) for kernel, time in alone)
    alike = groupby(timed, lambda one: (one.kernel.part, one.kernel.count))
    parts = tuple(_part_time(part, count, list(members), transfers) for (part, count), members in alike)
    exec_s = math.fsum(part.count * part.exec_s for part in parts)

    def whole(name: str) -> float:
        return math.fsum(one.kernel.count * getattr(one.time, name) for one in timed)

    return StepTime(timed, parts, exec_s, *map(whole, ("compute_s", "memory_s", "vector_s", "offload_s")))


def _part_time(part: str, count: int, members: list[TimedKernel], transfers: Transfers) -> PartTime:
    """Return what one layer takes: ``max(kernels, all bytes)`` of each memory, never the first term alone.

    A read of the cache that is prefetched is taken off its kernel and put among the transfers; the first layer has
    nothing before it to hide it behind, so that its time counts in full once.
    """
    stores = [one.time for one in members if one.kernel.is_async]
    others = [one for one in members if not one.kernel.is_async]
    serial = math.fsum(one.time.exec_s for one in others)
    beside = math.fsum(time.memory_s for time in stores)
    memory = math.fsum(one.time.memory_s for one in members)
    offload = math.fsum(one.time.offload_s for one in members)
    longest = max(serial, memory, offload)
    match transfers:
        case Transfers.SYNC:
            stored = math.fsum(time.exec_s for time in stores)
            return PartTime(part, count, serial, memory, offload, 0.0, stored, serial + stored)
        case Transfers.ASYNC:
            # Room is where kernels compute longer than their own bytes take: exactly none if none of them does.
            hidden = min(beside, max(0.0, serial - math.fsum(one.time.memory_s for one in others)))
            late = max(0.0, offload - max(serial, memory))
            return PartTime(part, count, serial, memory, offload, hidden, beside - hidden + late, longest)
        case Transfers.PREFETCH:
            moved = beside + math.fsum(max(_read_s(one), one.time.offload_s) for one in members)
            lighter = math.fsum(_without_read(one) for one in others)
            later = min(longest, max(lighter, memory, offload))
            taken = (longest + (count - 1) * later) / count
            exposed = max(0.0, taken - lighter)
            return PartTime(part, count, lighter, memory, offload, max(0.0, moved - exposed), exposed, taken)


def _read_s(one: TimedKernel) -> float:
    """Seconds of the memory for the cache that a kernel reads, at the pace of its other bytes."""
    return one.time.memory_s * one.kernel.kv_read_bytes / one.kernel.bytes if one.kernel.bytes else 0.0


def _without_read(one: TimedKernel) -> float:
    read = _read_s(one)
    return max(one.time.compute_s, one.time.vector_s, one.time.memory_s - read, one.alone.exec_s - read)
