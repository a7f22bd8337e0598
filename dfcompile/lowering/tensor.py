"""A tensor: an array of the SDFG as expansions see it, with its shape and, of a parameter, its values."""

from collections.abc import Container
from functools import cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag.extraction.scopes import Array

if TYPE_CHECKING:
    import dace


class Tensor(Struct, frozen=True, eq=False):
    """An operand or result: an SDFG array.

    Attributes:
        name: of the SDFG array.
        shape: in elements, no symbols.
        dtype: numpy name.
        value: of a parameter; ``None`` for what is only known when the model runs.
        is_constant: depends on parameters alone.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    value: npt.NDArray[np.generic] | None = None
    is_constant: bool = False

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """From an element to the next one along each dimension, in elements: rows stand one after another."""
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(self.rank))

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def element_bytes(self) -> int:
        """That an element takes in memory: one of less than a byte takes a byte."""
        return int(np.dtype(self.dtype).itemsize)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def frozen(value: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return a constant's value so that it cannot be written: itself, such as a part of weights, or a copy."""
    if not value.flags.writeable:
        return value
    copied = value.copy()
    copied.setflags(write=False)
    return copied


def free_name(name: str, *taken: Container[str]) -> str:
    """Return a name for a tensor: with so many underscores behind it that nothing else has it."""
    while any(name in names for names in taken):
        name += "_"
    return name


def is_materialised(declared: "dace.data.Data") -> bool:
    """Return whether an array lives in memory, so that it is never streamed."""
    return bool(declared.storage.name == "CPU_Heap")


def declared_tensor(sdfg: "dace.SDFG", name: str) -> Tensor:
    """Return an array or a view as a tensor whose value nobody knows."""
    declared = sdfg.arrays[name]
    return Tensor(name, tuple(map(int, declared.shape)), _name_of(declared.dtype.type))


@cache
def _name_of(scalar: type) -> str:
    return np.dtype(scalar).name


def declared_array(sdfg: "dace.SDFG", name: str) -> Array:
    """Return an array."""
    declared = sdfg.arrays[name]
    shape, strides = (tuple(map(int, numbers)) for numbers in (declared.shape, declared.strides))
    is_transient = bool(declared.transient)
    in_memory = not is_transient or is_materialised(declared)
    return Array(name, shape, strides, int(declared.dtype.bytes), is_transient, in_memory)
