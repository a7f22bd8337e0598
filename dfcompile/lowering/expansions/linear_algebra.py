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
        step = _Step(build, matrix, number, dtype)
        total = step.factor(total)
        matrix = step.eliminated()
    last = build.view(matrix, "last", (batch,))
    result = build.array("product", (batch,), y.dtype)
    if total is None:
        build.add(Copy(), [last], result)
    else:
        build.elementwise("a * b", [total, last], result, step="product")
    build.view_as(result, y)


class _Step:
    """The elimination of the first column of matrices ``A[n, i, j]``."""

    def __init__(self, build: CanonicalFragment, matrix: Tensor, number: int, dtype: str) -> None:
        self._build, self._matrix, self._number, self._dtype = build, matrix, number, dtype
        batch, rows, _ = matrix.shape
        numbers = build.parameter(self._named("rows"), np.arange(rows))
        column = self._copied("column", (batch, rows), ("i0", "i1", "0"))
        largest = build.reduced(self._named("largest"), Reduction.MAX, [column], [1], "abs(a)", dtype=dtype)
        operands, source = [column, largest, numbers], f"c if abs(a) == b else {rows - 1}"
        self._place = build.reduced(self._named("place"), Reduction.MIN, operands, [1], source, dtype="int64")
        # The row of the pivot: all others count as 0.
        at = build.view(self._place, self._named("places"), (batch, 1, 1))
        by_row = build.view(numbers, self._named("row_numbers"), (rows, 1))
        operands, source = [matrix, at, by_row], "a if b == c else 0"
        self._row = build.reduced(self._named("row"), Reduction.SUM, operands, [1], source, dtype=dtype)
        self._pivot = self._copied("pivot", (batch,), ("i0", "0", "0"), self._row)

    def factor(self, total: Tensor | None) -> Tensor:
        """Return what the determinant is a multiple of so far: exchanging two rows changes its sign."""
        place = self._build.view(self._place, self._named("exchange"), self._pivot.shape)
        operands = [self._pivot, place] if total is None else [self._pivot, place, total]
        source = "(a if b == 0 else -a)" if total is None else "(a if b == 0 else -a) * c"
        return self._build.computed(self._named("factor"), source, operands, self._pivot.shape, self._dtype)

    def eliminated(self) -> Tensor:
        """Return the matrices without the row and the column of the pivot; the first row takes the pivot's place."""
        build, (batch, rows, _) = self._build, self._matrix.shape
        rest = (batch, rows - 1, rows - 1)
        others = self._copied("others", rest, ("i0", "i1 + 1", "i2 + 1"))
        first = self._copied("first", (batch, rows - 1), ("i0", "0", "i1 + 1"))
        heads = self._copied("heads", (batch, rows - 1), ("i0", "i1 + 1", "0"))
        head = self._copied("head", (batch,), ("i0", "0", "0"))
        tail = self._copied("tail", (batch, rows - 1), ("i0", "0", "i1 + 1"), self._row)
        numbers = build.parameter(self._named("numbers"), np.arange(1, rows))
        place = build.view(self._place, self._named("taken"), (batch,))
        operands = [others, first, heads, head, tail, numbers, place, self._pivot]
        axes = [(0, 1, 2), (0, 2), (0, 1), (0,), (0, 2), (1,), (0,), (0,)]
        # Without a pivot the column is 0, and so is the determinant.
        source = "(b if f == g else a) - ((d if f == g else c) / h * e if h != 0 else 0)"
        return build.computed(self._named("rest"), source, operands, rest, self._dtype, axes=axes)

    def _copied(
        self, name: str, shape: tuple[int, ...], read: tuple[str, ...], source: Tensor | None = None
    ) -> Tensor:  # fmt: skip
        return self._build.made(self._named(name), Copy(read=read), [source or self._matrix], shape, self._dtype)

    def _named(self, name: str) -> str:
        return f"{name}{self._number}"
