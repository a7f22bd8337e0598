"""The canonical operators of linear algebra: factors, triangular systems, elimination; batched over leading dimensions.

Each is a recurrence over the rows of a matrix: a chain of map scopes, of which every one needs the one before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Factor(CanonicalOperator):
    """``A[…, n, n] = L @ U`` without exchange of rows, or ``A = L @ conj(L')``; L and U are packed in one matrix.

    Attributes:
        kind: ``lu`` (L has ones on its diagonal, which are not stored) or ``cholesky`` (above the diagonal are zeros).
        checks: a matrix that is not Hermitian has NaN as its first pivot: only half of it is used.
    """

    kind: Literal["lu", "cholesky"]
    checks: bool = False

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the matrices are square."""
        self.check_operands(operands, 1)
        check_square(self, operands[0])
        if results[0].shape != operands[0].shape:
            raise self.fault(f"{operands[0]} -> {results[0]} against one shape")


@dataclass(frozen=True, slots=True)
class TriangularSolve(CanonicalOperator):
    """``T @ X = B`` with one triangle T of ``A[…, n, n]``, ``B[…, n, m]``.

    Attributes:
        upper: T is the upper triangle, else the lower one.
        unit: the diagonal is ones, whatever is stored there.
        adjoint: the triangle is that of ``conj(A')``.
    """

    upper: bool = False
    unit: bool = False
    adjoint: bool = False

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that matrices are square and right-hand sides as many rows."""
        self.check_operands(operands, 2)
        check_system(self, operands[0], operands[1], results[0])


@dataclass(frozen=True, slots=True)
class Eliminate(CanonicalOperator):
    """``A @ X = B`` by Gauss-Jordan elimination with exchange of rows: the largest element of a column is its pivot."""

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that matrices are square and right-hand sides as many rows."""
        self.check_operands(operands, 2)
        check_system(self, operands[0], operands[1], results[0])


def check_square(operator: CanonicalOperator, matrix: Tensor) -> None:
    """Check that an operand is square matrices.

    Raises:
        OperatorFieldError: it is not.
    """
    if matrix.rank < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise operator.fault(f"{matrix} against square matrices")


def check_system(operator: CanonicalOperator, matrix: Tensor, sides: Tensor, result: Tensor) -> None:
    """Check that operands and result are a system of equations; right-hand sides may be the same for all matrices.

    Raises:
        OperatorFieldError: they are not.
    """
    check_square(operator, matrix)
    batch = matrix.shape[:-2]
    is_system = sides.rank >= 2 and sides.shape[-2] == matrix.shape[-1] and sides.shape[:-2] in ((), batch)
    if not is_system or result.shape != (*batch, *sides.shape[-2:]):
        raise operator.fault(f"{matrix} @ {result} = {sides} against [n,n] @ [n,m] = [n,m]")
