"""Element kinds: what the element types are that arrays hold, numpy's own and those of ml_dtypes.

numpy calls most types of ml_dtypes, such as bfloat16 and int4, opaque; these functions know them by name.
"""

from collections.abc import Mapping
from types import MappingProxyType

import ml_dtypes
import numpy as np

# Bits of the types that ONNX stores several of in a byte. An array holds one of them per byte.
PACKED_BITS: Mapping[str, int] = MappingProxyType({"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4})
POWERS_OF_TWO = "float8_e8m0fnu"  # an exponent and nothing else: no sign, no zero
# Real numbers that DaCe has no type for: to it they are bytes.
CODED_REALS = frozenset(["float4_e2m1fn", "float8_e4m3fnuz", "float8_e5m2fnuz", POWERS_OF_TWO])
# Stored so, and computed in single precision.
NARROW_REALS = frozenset(["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"]) | CODED_REALS


def element_kind(dtype: str) -> str:
    """Return what numpy calls the kind of an element type: b, i, u, f or c; V of what is none of these.

    >>> [element_kind(dtype) for dtype in ("bool", "int4", "uint2", "bfloat16", "float4_e2m1fn", "complex64")]
    ['b', 'i', 'u', 'f', 'f', 'c']
    """
    if dtype in NARROW_REALS:
        return "f"
    if dtype in PACKED_BITS:
        return "u" if dtype.startswith("u") else "i"
    return np.dtype(dtype).kind


def is_number(dtype: str) -> bool:
    """Whether an element type is one of truth values, integers or real numbers."""
    return element_kind(dtype) in "biuf"


def integer_limits(dtype: str) -> tuple[int, int]:
    """Return the least and the largest number of a type of integers.

    >>> integer_limits("int4"), integer_limits("uint8")
    ((-8, 7), (0, 255))
    """
    bits = PACKED_BITS.get(dtype, 8 * np.dtype(dtype).itemsize)
    return (0, 2**bits - 1) if element_kind(dtype) == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def largest_real(dtype: str) -> float:
    """Return the largest finite number of a type of real numbers.

    >>> largest_real("float8_e4m3fn")
    448.0
    """
    return float(ml_dtypes.finfo(np.dtype(dtype)).max)  # type: ignore[no-untyped-call]


def real_epsilon(dtype: str) -> float:
    """Return the distance of 1 to the next larger number of a type of real numbers.

    >>> real_epsilon("bfloat16"), real_epsilon("float16")
    (0.0078125, 0.0009765625)
    """
    return float(ml_dtypes.finfo(np.dtype(dtype)).eps)  # type: ignore[no-untyped-call]
