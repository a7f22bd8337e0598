"""Scalar types: DaCe's type of the elements of an array, by its numpy name."""

from copy import copy
from functools import cache

import dace
import numpy as np

from dfcompile.frontend.element_kind import CODED_REALS, PACKED_BITS, element_kind


@cache
def scalar_type(dtype: str) -> dace.typeclass:
    """Return DaCe's element type of a numpy name.

    DaCe knows no integers of less than a byte, and few real numbers of a byte: to it such an array is one of bytes,
    and only the type that it stands for says what they are.
    """
    if dtype not in PACKED_BITS and dtype not in CODED_REALS:
        return dace.dtypes.dtype_to_typeclass(np.dtype(dtype).type)
    held = copy(dace.int8 if element_kind(dtype) == "i" else dace.uint8)
    held.typename = held.to_string()
    held.type, held.dtype = np.dtype(dtype).type, held  # not of what it is a copy of
    if dtype in CODED_REALS:
        held.ctype = held.ctype_unaligned = f"dace::{dtype}"  # which the code that is run defines
    return held
