"""Operands: tensors as an operator reads or writes them."""

from msgspec import Struct


class Operand(Struct, frozen=True):
    """A tensor as an operator reads or writes it.

    Attributes:
        tensor: name.
        words: different ones that are read or written.
        units: that a word takes, of `BoundedOperator.element_bytes`.
    """

    tensor: str
    words: int
    units: int = 1

    @property
    def size(self) -> int:
        """Units of all words."""
        return self.words * self.units
