"""Scalar types: DaCe's type of the elements of an array, by its numpy name."""

from copy import copy
from functools import cache

import dace
import numpy as np

from dfcompile.frontend.element_kind import PACKED_BITS, element_kind


@cache
def scalar_type(dtype: str) -> dace.typeclass:
    """Return DaCe's element type of a numpy name.

    DaCe knows no integers of less than a byte: to it such an array is one of bytes, and only the type that it stands
    for says what they are.
    """
    if dtype not in PACKED_BITS:
        return dace.dtypes.dtype_to_typeclass(np.dtype(dtype).type)
    held = copy(dace.uint8 if element_kind(dtype) == "u" else dace.int8)
    held.typename = held.to_string()
    held.type = np.dtype(dtype).type
    return held
