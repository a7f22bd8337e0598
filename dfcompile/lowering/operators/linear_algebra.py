"""The canonical operators of linear algebra: factors, triangular systems, elimination; batched over leading dimensions.

Each is a recurrence over the rows of a matrix: a chain of map scopes, of which every one needs the one before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dfcompile.lowering.operators.base import AnyExtents, CanonicalOperator
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Factor(AnyExtents):
    """``A[…, n, n] = L @ U`` without exchange of rows, or ``A = L @ conj(L')``; L and U are packed in one matrix.

    Attributes:
        kind: ``lu`` (L has ones on its diagonal, which are not stored) or ``cholesky`` (above the diagonal are zeros).
        checks: a matrix that is not Hermitian has NaN as its first pivot: only half of it is used.
    """

    kind: Literal["lu", "cholesky"]
    checks: bool = False

    @staticmethod
    def allowed_defect(dtype: str) -> float:
        """Return by how much a Hermitian matrix may differ from its adjoint, as a part of its largest element."""
        return 1e-4 if dtype in ("float32", "complex64") else 1e-10

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the matrices are square."""
        _check_one_shape(self, operands, results[0])

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:  # noqa: ARG002
        """Return the dimensions of the batch: a matrix is factored as a whole."""
        loops = _batch_loops(result)
        matrix = (*loops, None, None)
        return LoopNest(loops, (matrix,), matrix)


@dataclass(frozen=True, slots=True)
class _System(AnyExtents):
    """``A @ X = B`` for the matrices of a batch and any number of right-hand sides."""

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that matrices are square and right-hand sides as many rows."""
        _check_system(self, operands, results[0])

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the dimensions of the batch and the right-hand sides, which need nothing of each other."""
        batch, sides = _batch_loops(result), operands[1]
        of_sides = tuple(batch) if sides.rank == result.rank else ()
        reads = ((*batch, None, None), (*of_sides, None, "column"))
        return LoopNest({**batch, "column": Loop(result.shape[-1])}, reads, (*batch, None, "column"))


@dataclass(frozen=True, slots=True)
class TriangularSolve(_System):
    """``T @ X = B`` with one triangle T of ``A[…, n, n]``, ``B[…, n, m]``.

    Attributes:
        upper: T is the upper triangle, else the lower one.
        unit: the diagonal is ones, whatever is stored there.
        adjoint: the triangle is that of ``conj(A')``.
    """

    upper: bool = False
    unit: bool = False
    adjoint: bool = False


@dataclass(frozen=True, slots=True)
class Eliminate(_System):
    """``A @ X = B`` by Gauss-Jordan elimination with exchange of rows: the largest element of a column is its pivot."""


@dataclass(frozen=True, slots=True)
class Lapack(CanonicalOperator):
    """A routine of LAPACK, called per matrix of a batch: it can be run, and has no tasks that could be scheduled.

    Attributes:
        routine: ``inverse`` of ``A[…, n, n]``; ``solution`` of ``A @ X = B``, ``B[…, n, m]``; ``cholesky``, the factor
            L of ``A = L @ conj(L')``.
    """

    routine: Literal["inverse", "solution", "cholesky"]

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that matrices are square and right-hand sides as many rows."""
        if self.routine == "solution":
            _check_system(self, operands, results[0])
        else:
            _check_one_shape(self, operands, results[0])


def _batch_loops(result: Tensor) -> dict[str, Loop]:
    return {f"b{axis}": Loop(extent) for axis, extent in enumerate(result.shape[:-2])}


def _check_square(operator: CanonicalOperator, matrix: Tensor) -> None:
    if matrix.rank < 2 or matrix.shape[-1] != matrix.shape[-2]:
        raise operator.fault(f"{matrix} against square matrices")


def _check_one_shape(operator: CanonicalOperator, operands: Sequence[Tensor], result: Tensor) -> None:
    """Check that the operand is square matrices, and the result as large."""
    (matrix,) = operator.check_operands(operands, 1)
    _check_square(operator, matrix)
    if result.shape != matrix.shape:
        raise operator.fault(f"{matrix} -> {result} against one shape")


def _check_system(operator: CanonicalOperator, operands: Sequence[Tensor], result: Tensor) -> None:
    """Check that operands and result are a system of equations; right-hand sides may be the same for all matrices."""
    matrix, sides = operator.check_operands(operands, 2)
    _check_square(operator, matrix)
    batch = matrix.shape[:-2]
    is_system = sides.rank >= 2 and sides.shape[-2] == matrix.shape[-1] and sides.shape[:-2] in ((), batch)
    if not is_system or result.shape != (*batch, *sides.shape[-2:]):
        raise operator.fault(f"{matrix} @ {result} = {sides} against [n,n] @ [n,m] = [n,m]")
