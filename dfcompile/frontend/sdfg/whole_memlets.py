"""Memlets of whole arrays, made quickly: those of arrays of one shape are copies of one."""

from functools import lru_cache

import dace
from dace.data import Array, Data
from dace.memlet import Memlet

from dfcompile.frontend.sdfg.element_copies import Prototype

_KEPT = 4096  # prototypes: some MB


class WholeMemlets:
    """Makes memlets of whole arrays of one SDFG, and of single elements of them."""

    def __init__(self, sdfg: dace.SDFG) -> None:
        self._sdfg = sdfg

    def of(self, name: str) -> Memlet:
        """Return a new memlet of all of an array."""
        array: Data = self._sdfg.arrays[name]
        return _whole(tuple(array.shape), tuple(getattr(array, "offset", ()))).copy(data=name)

    def element(self, name: str, indices: str) -> Memlet:
        """Return a new memlet of one element of an array, such as ``i, 2*j``."""
        return _element(indices).copy(data=name)


@lru_cache(_KEPT)
def _whole(shape: tuple[object, ...], offset: tuple[object, ...]) -> Prototype[Memlet]:
    return Prototype(Memlet.from_array("array", Array(dace.float32, shape, offset=offset or None)))


@lru_cache(_KEPT)
def _element(indices: str) -> Prototype[Memlet]:
    return Prototype(Memlet(data="array", subset=indices, volume=1))
