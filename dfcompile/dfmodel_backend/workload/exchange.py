"""How an array lies on the chips of a network, and one exchange between them: a step of what changes that."""

import math
from enum import StrEnum, unique

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag import LoopKind

Offsets = npt.NDArray[np.int64]


class Split(Struct, frozen=True):
    """Coordinate of the chip that has the element at an offset: ``offset % m_0 % m_1 … // block``.

    Attributes:
        moduli: descending; several where a loop is split over several dimensions of the network.
        block: elements that lie together on one chip.
    """

    moduli: tuple[int, ...]
    block: int

    def coordinates(self, offsets: Offsets) -> Offsets:
        """Return the coordinate of each offset."""
        for modulus in self.moduli:
            offsets = offsets % modulus
        return offsets // self.block

    def starts(self, end: int) -> Offsets:
        """Return offsets up to an end among which are all where the coordinate changes."""
        found = np.zeros(1, np.int64)
        for length, step in zip((end, *self.moduli), (*self.moduli, self.block), strict=True):
            places = np.arange(0, length, step, dtype=np.int64)
            found = (found[:, None] + places[None, :]).ravel()
        return found[found < end]

    @property
    def granule(self) -> int:
        """Elements in a row that have the same coordinate wherever they lie."""
        return math.gcd(self.block, *self.moduli)


class Partial(Struct, frozen=True):
    """Every chip along the dimension has a value of each element; they are to be combined."""

    kind: LoopKind


Held = Split | Partial | None  # along one dimension of the network; None: every chip has all
Layout = tuple[Held, ...]  # one entry per dimension, innermost first


@unique
class ExchangeKind(StrEnum):
    """What chips do to change a layout."""

    SLICE = "slice"  # each keeps its part of what it has: free
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_REDUCE = "all-reduce"
    ALL_TO_ALL = "all-to-all"


class Exchange(Struct, frozen=True):
    """A collective on a tensor.

    Attributes:
        tensor: name.
        source: the kernel that makes it, in whose configuration it is exchanged.
        readers: kernels that need the layout that this leads to; none of an output of the model that is completed.
        kind: the collective.
        dimensions: of the network along which chips take part, counted from the innermost.
        before: layout along these dimensions, in words.
        after: layout along these dimensions, in words.
        message_bytes: of the tensor that the chips of one group have together at that step, at most [ko24].
        moved_bytes: that all chips together receive.
        time_ns: of it.
        layouts: before and after, along all dimensions.
    """

    tensor: str
    source: str
    readers: tuple[str, ...]
    kind: ExchangeKind
    dimensions: tuple[int, ...]
    before: str
    after: str
    message_bytes: int
    moved_bytes: int
    time_ns: float
    layouts: tuple[Layout, Layout]
