"""Caches that are larger than a chip's memory: a part of every layer's lies behind a link of its own."""

from collections.abc import Sequence
from fractions import Fraction

from dfcompile.errors import UserError
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.steps.kernel import Kernel
from dfcompile.records import replace

NOTHING = Fraction(0)
Held = tuple[int, int]  # bytes of weights and of caches


def check_offload(device: Device, share: Fraction | None) -> None:
    """Check that a device has where caches are to be put.

    Raises:
        UserError: it says no bandwidth of such a memory.
    """
    if share != NOTHING and device.offload is None:
        raise UserError(f"--offload: found no offload.bandwidth of system {device.name!r}")


def offloaded_kernels(kernels: Sequence[Kernel], share: Fraction) -> tuple[Kernel, ...]:
    """Return kernels of which a share of the bytes of the cache crosses the link: what is read of it, what is added."""
    if not share:
        return tuple(kernels)
    return tuple(
        replace(kernel, offload_bytes=part_of(kernel.kv_read_bytes + kernel.kv_write_bytes, share))
        for kernel in kernels
    )


def part_of(amount: int, share: Fraction) -> int:
    """Return a share of some bytes, rounded up."""
    return -(-amount * share.numerator // share.denominator)


def least_share(stages: Sequence[Held], capacity: int) -> Fraction:
    """Return the least share of caches that lets every stage fit, at most all; 0 where the capacity is not known."""
    if not capacity:
        return NOTHING
    needs = [Fraction(weights + caches - capacity, caches) for weights, caches in stages if caches]
    return min(Fraction(1), max([NOTHING, *needs]))
