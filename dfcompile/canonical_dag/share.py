"""What one of several chips runs of a model: iterations of each kernel, and arrays that exchanges make."""

from dataclasses import dataclass

OWN = 0  # copy of an array that is the array itself


@dataclass(frozen=True, slots=True)
class KernelShare:
    """What a chip runs of a kernel.

    Attributes:
        kernel: name.
        loops: iterations of each loop that is split, by name; of other loops the chip runs all.
        reads: per operand of the kernel which copy of the array it reads: `OWN` as its maker leaves it, or the number
            of one that chips make by an exchange.
    """

    kernel: str
    loops: tuple[tuple[str, int], ...]
    reads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ProgramShare:
    """What the chip with most of it runs of a model; it has the first iterations of each loop that is split.

    Attributes:
        kernels: all of them.
    """

    kernels: tuple[KernelShare, ...]
