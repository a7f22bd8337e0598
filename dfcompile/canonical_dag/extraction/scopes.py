"""Map scopes and arrays: what extraction needs of a lowered program."""

from collections.abc import Mapping
from functools import cached_property
from math import prod

from msgspec import Struct

from dfcompile.canonical_dag.extraction.traversal import Loop, Traversal
from dfcompile.canonical_dag.kernel import Kernel


class Array(Struct, frozen=True, dict=True):
    """An array that is not a view."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element_bytes: int
    is_transient: bool
    is_materialised: bool  # lives in memory whoever reads it

    @cached_property
    def elements(self) -> int:
        """Number of elements of the whole array."""
        return prod(self.shape)


class Access(Struct, frozen=True):
    """What an iteration touches: offset ``base + sum(strides[p] * parameter p)`` of an array, in elements.

    Of an indirect access only the array is known: one element of it per iteration, which one depends on data.
    """

    array: str
    base: int
    strides: tuple[int, ...]  # per map parameter
    is_indirect: bool = False

    def over(self, extents: tuple[int, ...]) -> Traversal:
        """Return the traversal if every parameter is a loop."""
        return Traversal(self.base, tuple(map(Loop, extents, self.strides)))


class MapScope(Struct, frozen=True):
    """A map scope, with one computation; parameters in temporal order, outer to inner."""

    name: str
    origin: str
    kernel: Kernel | None
    extents: tuple[int, ...]
    is_spatial: tuple[bool, ...]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]


class LoweredGraph(Struct, frozen=True):
    """The task scopes of a program in their order, and its arrays; initialisations are left out."""

    name: str
    scopes: tuple[MapScope, ...]
    arrays: Mapping[str, Array]
