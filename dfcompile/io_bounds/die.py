"""The share of a die that memory should have: more of it saves traffic, and takes the place of compute."""

from fractions import Fraction

from msgspec import Struct

from dfcompile.io_bounds.curve import Curve

_KB_AREAS = Fraction(1, 2)  # of a kB, in processing elements [asa23]


class Die(Struct, frozen=True):
    """A die that is divided between buffer and processing elements.

    Attributes:
        area_pes: of all of it, in areas of a processing element: one multiply-adder.
        operations_per_ns_per_pe: of a processing element at its peak.
        bytes_per_ns: of the memory behind.
    """

    area_pes: Fraction
    operations_per_ns_per_pe: Fraction
    bytes_per_ns: Fraction


class DieShare(Struct, frozen=True):
    """A division of a die.

    Attributes:
        buffer_bytes: of the memory.
        pes: processing elements in what is left.
        time_ns: of the operations: of compute or of traffic, whichever is longer.
    """

    buffer_bytes: int
    pes: Fraction
    time_ns: Fraction

    @property
    def memory_share(self) -> Fraction:
        """Part of the die that is memory."""
        memory = _KB_AREAS * Fraction(self.buffer_bytes, 1024)
        return memory / (memory + self.pes)


def die_of(sram_bytes: int, pes: int, operations_per_ns: Fraction, bytes_per_ns: Fraction) -> Die:
    """Return the die of a chip: what its memory and its processing elements take may be divided anew."""
    return Die(_KB_AREAS * Fraction(sram_bytes, 1024) + pes, operations_per_ns / pes, bytes_per_ns)


def best_share(curve: Curve, operations: int, die: Die) -> DieShare | None:
    """Return the division of a die with which operations take least time [huang24 Fig. 23].

    Traffic and compute go side by side. Between two points of the curve more memory is of no use, so that only they
    are tried; what is left is compute. ``None``: the smallest buffer leaves no room for it.

    Args:
        curve: traffic by buffer, in bytes.
        operations: in all.
        die: that is divided.
    """
    found: list[DieShare] = []
    for size, traffic in zip(curve.sizes.tolist(), curve.traffic.tolist(), strict=True):
        pes = die.area_pes - _KB_AREAS * Fraction(size, 1024)
        if pes > 0:
            compute = operations / (pes * die.operations_per_ns_per_pe)
            found.append(DieShare(size, pes, max(compute, traffic / die.bytes_per_ns)))
    return min(found, key=lambda share: (share.time_ns, share.buffer_bytes), default=None)
