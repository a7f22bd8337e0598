"""Reductions: how several values become one."""

from enum import Enum, unique

import numpy as np

from dfcompile.lowering.expressions import literal


@unique
class Reduction(Enum):
    """How a map scope accumulates into its result; the value is DaCe's conflict resolution."""

    SUM = "lambda a, b: a + b"
    PRODUCT = "lambda a, b: a * b"
    MAX = "lambda a, b: max(a, b)"
    MIN = "lambda a, b: min(a, b)"

    def initial(self, dtype: str) -> str:
        """Return the neutral element as Python source of a tasklet."""
        if self is Reduction.SUM:
            return "0"
        if self is Reduction.PRODUCT:
            return "1"
        kind = np.dtype(dtype)
        if kind.kind == "b":
            return "False" if self is Reduction.MAX else "True"
        if kind.kind not in "iu":
            return "-inf" if self is Reduction.MAX else "inf"
        limits = np.iinfo(kind)
        return literal(int(limits.min if self is Reduction.MAX else limits.max), dtype)
