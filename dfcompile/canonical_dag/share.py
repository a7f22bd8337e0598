"""What one of several chips runs of a model: iterations of each kernel, and arrays that exchanges make."""

from msgspec import Struct

OWN = 0  # copy of an array that is the array itself


class KernelShare(Struct, frozen=True):
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


class ProgramShare(Struct, frozen=True):
    """What the chip with most of it runs of a model; it has the first iterations of each loop that is split.

    Attributes:
        kernels: all of them.
    """

    kernels: tuple[KernelShare, ...]
