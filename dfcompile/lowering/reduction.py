"""Reductions: how several values become one."""

from collections.abc import Sequence
from enum import Enum, unique
from typing import assert_never

from dfcompile.frontend import element_kind, integer_limits
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
        match self:
            case Reduction.SUM:
                return "0"
            case Reduction.PRODUCT:
                return "1"
            case Reduction.MAX | Reduction.MIN:
                return _extreme(dtype, least=self is Reduction.MAX)
        assert_never(self)

    def combined(self, operands: Sequence[str]) -> str:
        """Return what several operands, one at least, become together, as Python source of a tasklet.

        >>> Reduction.SUM.combined("abc"), Reduction.MAX.combined("ab"), Reduction.MAX.combined("a")
        ('a + b + c', 'max(a, b)', 'a')
        """
        if len(operands) == 1:
            return operands[0]
        match self:
            case Reduction.SUM | Reduction.PRODUCT:
                return (" + " if self is Reduction.SUM else " * ").join(operands)
            case Reduction.MAX | Reduction.MIN:
                return f"{self.name.lower()}({', '.join(operands)})"
        assert_never(self)


def _extreme(dtype: str, *, least: bool) -> str:
    """Return the least or the largest value of a type as Python source of a tasklet."""
    kind = element_kind(dtype)
    if kind == "b":
        return "False" if least else "True"
    if kind not in "iu":
        return "-inf" if least else "inf"
    smallest, largest = integer_limits(dtype)
    return literal(smallest if least else largest, dtype)
