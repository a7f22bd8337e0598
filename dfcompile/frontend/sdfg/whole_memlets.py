"""Memlets of whole arrays, made quickly: those of arrays of one shape are copies of one."""

import dace
from dace.data import Data
from dace.memlet import Memlet

from dfcompile.frontend.sdfg.element_copies import Prototype


class WholeMemlets:
    """Makes memlets of whole arrays of one SDFG, and of single elements of them."""

    def __init__(self, sdfg: dace.SDFG) -> None:
        self._sdfg = sdfg
        self._known: dict[tuple[object, ...], Prototype[Memlet]] = {}
        self._elements: dict[str, Prototype[Memlet]] = {}

    def of(self, name: str) -> Memlet:
        """Return a new memlet of all of an array."""
        array: Data = self._sdfg.arrays[name]
        key = (tuple(array.shape), tuple(getattr(array, "offset", ())))
        if key not in self._known:
            self._known[key] = Prototype(Memlet.from_array(name, array))
        return self._known[key].copy(data=name)

    def element(self, name: str, indices: str) -> Memlet:
        """Return a new memlet of one element of an array, such as ``i, 2*j``."""
        if indices not in self._elements:
            self._elements[indices] = Prototype(Memlet(data=name, subset=indices, volume=1))
        return self._elements[indices].copy(data=name)
