"""NumPy's linear algebra: products, inverses, solutions, factors of batches of matrices; real and complex; ONNX Det."""

from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expressions import is_complex, sum_dtype
from dfcompile.lowering.operators import Copy, Eliminate, Factor, Lapack, MatMul, TriangularSolve


@onnx_expansion("linalg.matmul", "matmul", source="ben-nun19", default=True)
def matmul(op: Operator, build: CanonicalFragment) -> None:
    """``C = A @ B`` of matrices or vectors: a MatMul, a vector being a matrix of one row or column."""
    a, b, c = op.input(0), op.input(1), op.output()
    of_a, of_b = op.integers("ranks")
    batch = (a if a.rank - of_a >= b.rank - of_b else b).shape
    batch = batch[: len(batch) - (of_a if a.rank - of_a >= b.rank - of_b else of_b)]
    left = a if of_a == 2 else build.view(a, "row", (*a.shape[:-1], 1, a.shape[-1]))
    right = b if of_b == 2 else build.view(b, "column", (*b.shape, 1))
    build.add_reshaped(MatMul(), [left, right], c, "product", (*batch, left.shape[-2], right.shape[-1]))


@onnx_expansion("linalg.inv", "gauss-jordan", source="higham02", default=True)
def inverse_by_elimination(op: Operator, build: CanonicalFragment) -> None:
    """``X = inverse(A)``: elimination of ``[A | I]`` with exchange of rows; of any regular matrix."""
    build.add(Eliminate(), [op.input(0), _identity(op, build)], op.output(), step="eliminate")


@onnx_expansion("linalg.inv", "lu", source="higham02")
def inverse_by_factors(op: Operator, build: CanonicalFragment) -> None:
    """``X = inverse(U) @ inverse(L)``: factors, two triangular systems; no exchange of rows."""
    _solved_by_factors(op, build, _identity(op, build), op.output())


@onnx_expansion("linalg.inv", "cholesky", source="higham02")
def inverse_by_cholesky(op: Operator, build: CanonicalFragment) -> None:
    """``X = conj(Y') @ Y`` with ``L @ Y = I``: factor, forward substitution, product; if Hermitian."""
    a, x = op.input(0), op.output()
    factor = build.made("factor", Factor("cholesky", checks=True), [a], a.shape)
    half = build.made("half", TriangularSolve(), [factor, _identity(op, build)], a.shape, step="substitute")
    left = build.computed("conjugate", "conj(a)", [half], a.shape) if is_complex(a.dtype) else half
    build.add(MatMul(transpose_a=True), [left, half], x, step="product")


@onnx_expansion("linalg.inv", "lapack", source="anderson99", runs_only=True)
def inverse_by_lapack(op: Operator, build: CanonicalFragment) -> None:
    """``X = inverse(A)`` by getrf and getri of an installed LAPACK: for running, it cannot be scheduled."""
    build.add(Lapack("inverse"), [op.input(0)], op.output())


@onnx_expansion("linalg.solve", "gauss-jordan", source="higham02", default=True)
def solution_by_elimination(op: Operator, build: CanonicalFragment) -> None:
    """``A @ X = B``: elimination of ``[A | B]`` with exchange of rows; of any regular matrix."""
    sides, x = _sides(op, build)
    build.add(Eliminate(), [op.input(0), sides], x, step="eliminate")
    build.view_as(x, op.output())


@onnx_expansion("linalg.solve", "lu", source="higham02")
def solution_by_factors(op: Operator, build: CanonicalFragment) -> None:
    """``A @ X = B``: factors, two triangular systems; no exchange of rows."""
    sides, x = _sides(op, build)
    _solved_by_factors(op, build, sides, x)
    build.view_as(x, op.output())


@onnx_expansion("linalg.solve", "cholesky", source="higham02")
def solution_by_cholesky(op: Operator, build: CanonicalFragment) -> None:
    """``A @ X = B``: factor, forward and backward substitution; of Hermitian positive matrices."""
    a = op.input(0)
    sides, x = _sides(op, build)
    factor = build.made("factor", Factor("cholesky", checks=True), [a], a.shape)
    half = build.made("half", TriangularSolve(), [factor, sides], x.shape, step="forward")
    build.add(TriangularSolve(upper=True, adjoint=True), [factor, half], x, step="backward")
    build.view_as(x, op.output())


@onnx_expansion("linalg.solve", "lapack", source="anderson99", runs_only=True)
def solution_by_lapack(op: Operator, build: CanonicalFragment) -> None:
    """``A @ X = B`` by gesv of an installed LAPACK: for running, it cannot be scheduled."""
    sides, x = _sides(op, build)
    build.add(Lapack("solution"), [op.input(0), sides], x)
    build.view_as(x, op.output())


@onnx_expansion("linalg.cholesky", "lapack", source="anderson99", runs_only=True)
def cholesky_by_lapack(op: Operator, build: CanonicalFragment) -> None:
    """``A = L @ conj(L')`` by potrf of an installed LAPACK: for running, it cannot be scheduled."""
    build.add(Lapack("cholesky"), [op.input(0)], op.output())


@onnx_expansion("linalg.cholesky", "schur", source="higham02", default=True)
def cholesky(op: Operator, build: CanonicalFragment) -> None:
    """``A = L @ conj(L')`` by Schur complements; as in NumPy the part of A above its diagonal is not looked at."""
    build.add(Factor("cholesky"), [op.input(0)], op.output())


def _solved_by_factors(op: Operator, build: CanonicalFragment, sides: Tensor, x: Tensor) -> None:
    a = op.input(0)
    factors = build.made("factors", Factor("lu"), [a], a.shape, step="factor")
    half = build.made("half", TriangularSolve(unit=True), [factors, sides], x.shape, step="forward")
    build.add(TriangularSolve(upper=True), [factors, half], x, step="backward")


def _identity(op: Operator, build: CanonicalFragment) -> Tensor:
    a = op.input(0)
    build.check_parameter(a.shape[-2:])
    return build.parameter("identity", np.eye(a.shape[-1], dtype=a.dtype))


def _sides(op: Operator, build: CanonicalFragment) -> tuple[Tensor, Tensor]:
    """Return the right-hand sides as matrices, and where the solution goes."""
    b, x = op.input(1), op.output()
    if not op.integer("vector", 0):
        return b, x
    return build.view(b, "sides", (*b.shape, 1)), build.array("solution", (*x.shape, 1), x.dtype)


_MOST_ROWS = 64  # ten tasks each


@onnx_expansion("Det", "elimination", source="higham02", default=True)
def det(op: Operator, build: CanonicalFragment) -> None:
    """``Y = product of the pivots``: per column the largest element is sought, and its row taken off the others."""
    x, y = op.input(0), op.output()
    rows = x.shape[-1]
    if x.rank < 2 or x.shape[-2] != rows or rows > _MOST_ROWS:
        raise op.unsupported(f"matrices {x} against square ones of at most {_MOST_ROWS} rows")
    batch, dtype = prod(x.shape[:-2]), sum_dtype(x.dtype)
    matrix, total = build.view(x, "matrices", (batch, rows, rows)), None
    for number in range(rows - 1):
        matrix, total = _eliminated(build, matrix, total, number, dtype)
    last = build.view(matrix, "last", (batch,))
    result = build.array("product", (batch,), y.dtype)
    if total is None:
        build.add(Copy(), [last], result)
    else:
        build.elementwise("a * b", [total, last], result, step="product")
    build.view_as(result, y)


def _eliminated(
    build: CanonicalFragment, matrix: Tensor, total: Tensor | None, number: int, dtype: str
) -> tuple[Tensor, Tensor]:
    """Take the pivot's row off the others of matrices ``A[n, i, j]``, whose first row takes its place.

    Returns:
        The matrices without the row and the column of the pivot, and what the determinant is a multiple of so far.
    """

    def copied(name: str, shape: tuple[int, ...], read: tuple[str, ...], source: Tensor = matrix) -> Tensor:
        return build.made(f"{name}{number}", Copy(read=read), [source], shape, dtype)

    batch, rows, _ = matrix.shape
    numbers = build.parameter(f"rows{number}", np.arange(rows))
    column = copied("column", (batch, rows), ("i0", "i1", "0"))
    largest = build.reduced(f"largest{number}", Reduction.MAX, [column], [1], "abs(a)", dtype=dtype)
    operands, source = [column, largest, numbers], f"c if abs(a) == b else {rows - 1}"
    place = build.reduced(f"place{number}", Reduction.MIN, operands, [1], source, dtype="int64")
    # The row of the pivot: all others count as 0.
    at = build.view(place, f"places{number}", (batch, 1, 1))
    by_row = build.view(numbers, f"row_numbers{number}", (rows, 1))
    operands, source = [matrix, at, by_row], "a if b == c else 0"
    row = build.reduced(f"row{number}", Reduction.SUM, operands, [1], source, dtype=dtype)
    pivot = copied("pivot", (batch,), ("i0", "0", "0"), row)
    # Exchanging two rows changes the sign.
    operands, source = [pivot, build.view(place, f"exchange{number}", pivot.shape)], "(a if b == 0 else -a)"
    if total is not None:
        operands, source = [*operands, total], f"{source} * c"
    factor = build.computed(f"factor{number}", source, operands, pivot.shape, dtype)
    rest = (batch, rows - 1, rows - 1)
    others = copied("others", rest, ("i0", "i1 + 1", "i2 + 1"))
    first = copied("first", (batch, rows - 1), ("i0", "0", "i1 + 1"))
    heads = copied("heads", (batch, rows - 1), ("i0", "i1 + 1", "0"))
    head = copied("head", (batch,), ("i0", "0", "0"))
    tail = copied("tail", (batch, rows - 1), ("i0", "0", "i1 + 1"), row)
    left = build.parameter(f"numbers{number}", np.arange(1, rows))
    operands = [others, first, heads, head, tail, left, build.view(place, f"taken{number}", (batch,)), pivot]
    axes = [(0, 1, 2), (0, 2), (0, 1), (0,), (0, 2), (1,), (0,), (0,)]
    # Without a pivot the column is 0, and so is the determinant.
    source = "(b if f == g else a) - ((d if f == g else c) / h * e if h != 0 else 0)"
    return build.computed(f"rest{number}", source, operands, rest, dtype, axes=axes), factor
