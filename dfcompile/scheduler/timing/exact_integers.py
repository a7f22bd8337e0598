"""Exact integer arithmetic on int64 columns that cannot overflow silently."""

import numpy as np

from dfcompile.canonical_dag.dag import Int64, frozen
from dfcompile.errors import UserError

_INT64_MAX = 2**63 - 1


def ceil_ratio(left: Int64, right: Int64, divisor: Int64) -> Int64:
    """Return ``ceil(left * right / divisor)`` element by element; the three columns are not negative.

    The product is formed in int64 where it fits, else in Python integers.

    Raises:
        UserError: a result does not fit in 64 bits.
    """
    if not len(left) or int(left.max()) * int(right.max()) + int(divisor.max()) <= _INT64_MAX:
        rounded: Int64 = (left * right + divisor - 1) // divisor
        return rounded
    wide = [-(-a * b // c) for a, b, c in zip(left.tolist(), right.tolist(), divisor.tolist(), strict=True)]
    return int64_column(wide)


def int64_column(values: list[int]) -> Int64:
    """Return Python integers as a read-only column.

    Raises:
        UserError: a value does not fit in 64 bits.
    """
    if values and max(values) > _INT64_MAX:
        raise UserError(f"schedule: a time of {max(values)} cycles does not fit in 64 bits")
    return frozen(np.array(values, dtype=np.int64))
