"""Energy, power and how busy everything is: figures of the user's device, none of our own."""

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.steps.kernel import Kernel
from dfcompile.language_models.times.step_time import KernelTime, StepTime, TimedKernel
from dfcompile.records import replace


class Activity(Struct, frozen=True):
    """Shares of a time for which something is busy: work over rate times time; None where no rate is known.

    Attributes:
        macs: multiply-adders.
        memory: of the chip.
        levels: memories on the chip by name, as far as bytes leave them inwards.
        vector: unit.
        offload: link to the memory beside the chip's own.
        links: of a chip to others, all together.
    """

    macs: float
    memory: float
    levels: Mapping[str, float | None]
    vector: float | None
    offload: float | None
    links: float | None = None


class Energy(Struct, frozen=True):
    """Energy of a step on all chips.

    Attributes:
        dynamic_j: of multiply-accumulates, memories and links.
        static_j: of chips without work for as long as the step takes.
        power_w: of one chip in the mean.
        exec_s: of the step; longer than counted if the power is limited.
        is_throttled: whether it is.
    """

    dynamic_j: float
    static_j: float
    power_w: float
    exec_s: float
    is_throttled: bool

    @property
    def total_j(self) -> float:
        """Of both."""
        return self.dynamic_j + self.static_j


def activity(kernel: Kernel, time: KernelTime, device: Device) -> Activity:
    """Return how busy a chip's parts are while a kernel runs."""
    return _activity([TimedKernel(replace(kernel, count=1), time, time)], device, time.exec_s)


def step_activity(step: StepTime, device: Device, exec_s: float, runs: int = 1) -> Activity:
    """Return how busy a chip's parts are during a step whose kernels run ``runs`` times."""
    return _activity(step.kernels, device, exec_s / runs)


def link_activity(link_bytes: float, bytes_per_s: float, exec_s: float) -> float | None:
    """Return how busy the links of a chip are; None of one that has none."""
    return link_bytes / bytes_per_s / exec_s if bytes_per_s and exec_s else None


def _activity(kernels: Sequence[TimedKernel], device: Device, exec_s: float) -> Activity:
    def busy(seconds: Iterable[float]) -> float:
        return math.fsum(seconds) / exec_s if exec_s else 0.0

    counted = [(one.kernel.count, one.kernel, one.time) for one in kernels]
    levels = {
        level.name: None
        if math.isinf(level.bytes_per_s)
        else busy(count * _leaving(kernel, time, at) / level.bytes_per_s for count, kernel, time in counted)
        for at, level in enumerate(device.levels)
    }
    return Activity(
        busy(count * kernel.macs / device.rate(kernel.rate) for count, kernel, _ in counted if kernel.macs),
        busy(count * _moved(kernel, time) / device.bytes_per_s for count, kernel, time in counted),
        levels,
        busy(count * time.vector_s for count, _, time in counted) if device.vector_per_s else None,
        busy(count * time.offload_s for count, _, time in counted) if device.offload is not None else None,
    )


def _moved(kernel: Kernel, time: KernelTime) -> int:
    """Bytes that reach the chip's memory."""
    return kernel.bytes if time.traffic_bytes is None else time.traffic_bytes


def _leaving(kernel: Kernel, time: KernelTime, level: int) -> int:
    """Bytes between a memory on the chip and what is inside it: those of the tiling, else operands once."""
    return time.inner_bytes[level] if time.inner_bytes else kernel.bytes


def is_known(device: Device) -> bool:
    """Whether a device says what anything costs in energy."""
    memories = (*device.levels, *filter(None, (device.offload,)))
    costs = device.pj_per_mac, device.pj_per_byte, device.idle_w, device.link_pj_per_byte, device.vector_pj
    return any(costs) or any(memory.pj_per_byte for memory in memories)


def energy_of(
    step: StepTime, device: Device, exec_s: float, chips: int, runs: int = 1, link_bytes: float = 0.0
) -> Energy:
    """Return the energy of a step whose kernels run on each of some chips, ``runs`` times.

    ``E = MACs e_mac + elements e_vector + sum over memories of bytes e + link bytes e_link``, and idle power for as
    long as it takes. Where the mean power exceeds what the chip may take, clocks are lowered until it does not:
    ``t = E / (TDP - idle)``.
    """
    picojoules = math.fsum(one.kernel.count * _picojoules(one.kernel, one.time, device) for one in step.kernels)
    per_chip = (picojoules * runs + link_bytes * device.link_pj_per_byte) * 1e-12
    room = device.tdp_w - device.idle_w
    least_s = per_chip / room if device.tdp_w and room > 0 else 0.0
    taken = max(exec_s, least_s)
    power = device.idle_w + per_chip / taken if taken else 0.0
    return Energy(per_chip * chips, device.idle_w * taken * chips, power, taken, least_s > exec_s)


def _picojoules(kernel: Kernel, time: KernelTime, device: Device) -> float:
    beside = device.offload.pj_per_byte if device.offload is not None else 0.0
    costs = (
        kernel.macs * device.mac_pj(kernel.rate),
        kernel.vector_elements * device.vector_pj,
        _moved(kernel, time) * device.pj_per_byte,
        *(_leaving(kernel, time, at) * level.pj_per_byte for at, level in enumerate(device.levels)),
        kernel.offload_bytes * beside,
    )
    return math.fsum(costs)
