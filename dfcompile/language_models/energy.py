"""Energy, power and how busy everything is: figures of the user's device, none of our own."""

import math
from dataclasses import dataclass

from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.steps.kernel import Kernel
from dfcompile.language_models.times.kernel_time import KernelTime
from dfcompile.language_models.times.step_time import StepTime


@dataclass(frozen=True, slots=True)
class Activity:
    """Shares of a kernel's time for which something is busy."""

    macs: float
    memory: float


@dataclass(frozen=True, slots=True)
class Energy:
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
    """Return how busy multiply-adders and memory are while a kernel runs."""
    if not time.exec_s:
        return Activity(0.0, 0.0)
    moved = kernel.bytes if time.traffic_bytes is None else time.traffic_bytes
    peak = device.rate(kernel.rate) if kernel.macs else math.inf
    return Activity(kernel.macs / peak / time.exec_s, moved / device.bytes_per_s / time.exec_s)


def is_known(device: Device) -> bool:
    """Whether a device says what anything costs in energy."""
    return bool(device.pj_per_mac or device.pj_per_byte or device.idle_w)


def energy_of(
    step: StepTime, device: Device, exec_s: float, chips: int, runs: int = 1, link_bytes: float = 0.0
) -> Energy:
    """Return the energy of a step whose kernels run on each of some chips, ``runs`` times.

    ``E = MACs e_mac + bytes e_mem + link bytes e_link``, and idle power for as long as it takes. Where the mean power
    exceeds what the chip may take, clocks are lowered until it does not: ``t = E / (TDP - idle)``.
    """
    picojoules = math.fsum(
        one.kernel.count
        * (
            one.kernel.macs * device.pj_per_mac.get(one.kernel.rate, 0.0)
            + (one.kernel.bytes if one.time.traffic_bytes is None else one.time.traffic_bytes) * device.pj_per_byte
        )
        for one in step.kernels
    )
    per_chip = (picojoules * runs + link_bytes * device.link_pj_per_byte) * 1e-12
    room = device.tdp_w - device.idle_w
    least_s = per_chip / room if device.tdp_w and room > 0 else 0.0
    taken = max(exec_s, least_s)
    power = device.idle_w + per_chip / taken if taken else 0.0
    return Energy(per_chip * chips, device.idle_w * taken * chips, power, taken, least_s > exec_s)
