"""The canonical operators of linear algebra: products, factors, triangular systems, elimination.

They are batched over leading dimensions. Each but the product is a recurrence over the rows of a matrix: a chain of map
scopes, of which every one needs the one before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dfcompile.canonical_dag import LoopKind, LoopPart
from dfcompile.lowering.operators.base import AnyExtents, CanonicalOperator
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class MatMul(AnyExtents):
    """``C[…, i, j] = sum_k A[…, i, k] * B[…, k, j]``.

    Dimensions before the last two are broadcast as in numpy: one that both operands have is batch, one that only A has
    is more rows, one that only B has is more columns. So the product of ``A[s, b, k]`` and ``B[k, m]`` is one of
    ``s * b`` rows, not a batch of s.

    Attributes:
        transpose_a: the last two dimensions of A are stored the other way round.
        transpose_b: the last two dimensions of B are stored the other way round.
    """

    transpose_a: bool = False
    transpose_b: bool = False

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that rows, columns and the dimension that is summed over are the same wherever they stand."""
        a, b, c = *self.check_operands(operands, 2), results[0]
        if min(a.rank, b.rank, c.rank) < 2:  # a matrix
            raise self.fault(f"{a} @ {b} -> {c} against matrices")
        n, k, m = self._extents(a, b)
        inner = b.shape[-1] if self.transpose_b else b.shape[-2]
        if k != inner or c.shape[-2:] != (n, m):
            found = f"[{n},{k}] @ [{inner},{m}] -> [{c.shape[-2]},{c.shape[-1]}]"
            raise self.fault(f"{found} against [n,k] @ [k,m] -> [n,m]")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return batch dimensions, rows, columns and the dimension that is summed over."""
        a, b = operands
        n, k, m = self._extents(a, b)
        lead = result.rank - 2
        # Aligned at the right, as in numpy: dimensions of A and of B that stand for each one of the result.
        of_a, of_b = ((1,) * (lead - tensor.rank + 2) + tensor.shape[:-2] for tensor in (a, b))
        loops = {}
        for axis, (left, right) in enumerate(zip(of_a, of_b, strict=True)):
            part = LoopPart.M if right == 1 else LoopPart.N if left == 1 else LoopPart.OUTER
            loops[f"b{axis}"] = Loop(result.shape[axis], part)
        loops |= {"row": Loop(n), "column": Loop(m, LoopPart.N), "k": Loop(k, LoopPart.K, LoopKind.SUM)}
        rows = ("k", "row") if self.transpose_a else ("row", "k")
        columns = ("column", "k") if self.transpose_b else ("k", "column")
        reads = (*_batch(of_a, a.rank - 2), *rows), (*_batch(of_b, b.rank - 2), *columns)
        return LoopNest(loops, reads, (*_batch(result.shape[:-2], lead), "row", "column"))

    def _extents(self, a: Tensor, b: Tensor) -> tuple[int, int, int]:
        n, k = reversed(a.shape[-2:]) if self.transpose_a else a.shape[-2:]
        return n, k, b.shape[-2] if self.transpose_b else b.shape[-1]


def _batch(shape: Sequence[int], rank: int) -> tuple[str, ...]:
    """Return the index of each of the last dimensions before rows and columns; one of extent 1 is broadcast."""
    return tuple(f"b{axis}" if extent > 1 else "0" for axis, extent in enumerate(shape))[len(shape) - rank :]


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
