"""Arrays as an SDFG declares them."""

from typing import TYPE_CHECKING

import numpy as np

from dfcompile.canonical_dag.extraction.scopes import Array
from dfcompile.lowering.tensor import Tensor

if TYPE_CHECKING:
    import dace


def is_materialised(declared: "dace.data.Data") -> bool:
    """Return whether an array lives in memory, so that it is never streamed."""
    return bool(declared.storage.name == "CPU_Heap")


def declared_tensor(sdfg: "dace.SDFG", name: str) -> Tensor:
    """Return an array or a view as a tensor whose value nobody knows."""
    declared = sdfg.arrays[name]
    return Tensor(name, tuple(int(size) for size in declared.shape), np.dtype(declared.dtype.type).name)


def declared_array(sdfg: "dace.SDFG", name: str) -> Array:
    """Return an array."""
    declared = sdfg.arrays[name]
    shape, strides = (tuple(map(int, numbers)) for numbers in (declared.shape, declared.strides))
    is_transient = bool(declared.transient)
    in_memory = not is_transient or is_materialised(declared)
    return Array(name, shape, strides, int(declared.dtype.bytes), is_transient, in_memory)
