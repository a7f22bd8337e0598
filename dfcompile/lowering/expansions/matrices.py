"""Linear algebra on batches of matrices: systems and factorisations as map scopes, a task per matrix, or by LAPACK."""

from collections.abc import Mapping
from typing import TypeAlias

from dfcompile.lowering import CanonicalNode, MapFragment, Reduction, Tensor, expansion
from dfcompile.lowering.expressions import conjugate, is_complex, real_type
from dfcompile.lowering.map_fragment import Access, Loops
from dfcompile.lowering.node import Node
from dfcompile.lowering.operators import Eliminate, Factor, Lapack, TriangularSolve

Element: TypeAlias = tuple[Tensor, *tuple[str, ...]]  # array, indices behind those of the batch


class MatrixBatch:
    """Adds map scopes to a fragment, each over all matrices of a batch.

    Attributes:
        spatial: loops over the matrices, with their extents.
    """

    def __init__(self, build: MapFragment, matrices: Tensor) -> None:
        self._build = build
        self.spatial = {f"n{axis}": extent for axis, extent in enumerate(matrices.shape[:-2])}

    def array(self, name: str, *extents: int, dtype: str | None = None) -> Tensor:
        """Add an array with these extents per matrix."""
        return self._build.array(name, (*self.spatial.values(), *extents) or (1,), dtype)

    def at(self, tensor: Tensor, *indices: str) -> Access:
        """Return the access of an element of each matrix; all share an array without dimensions of the batch."""
        lead = list(self.spatial) if tensor.rank > len(indices) else []
        return tensor, [*lead, *indices] or ["0"]

    def map(
        self,
        step: str,
        loops: Loops,
        reads: Mapping[str, Element],
        write: Element,
        code: str,
        accumulate: Reduction | None = None,
        tables: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Add a scope; see `MapFragment.map`."""
        accesses, result = {name: self.at(*element) for name, element in reads.items()}, self.at(*write)
        self._build.map(
            step, spatial=self.spatial, loops=loops, reads=accesses, write=result, code=code,
            accumulate=accumulate, tables=tables,
        )  # fmt: skip


@expansion(Eliminate, "gauss-jordan", source="higham02", default=True)
def gauss_jordan(op: CanonicalNode[Eliminate], build: MapFragment) -> None:
    """Per column k: find the pivot, swap its row with row k, and subtract multiples of it from all other rows.

    Only columns that are not eliminated are kept, beside the right-hand sides. Four scopes per column, one task per
    matrix and scope. A matrix without a pivot gives NaN.
    """
    a, b, x = op.input(0), op.input(1), op.output()
    rows, columns = b.shape[-2:]
    batch = MatrixBatch(build, a)
    state = batch.array("joined", rows, rows + columns)
    batch.map("matrix", {"i": rows, "j": rows}, {"a": (a, "i", "j")}, (state, "i", "j"), "a")
    batch.map("sides", {"i": rows, "j": columns}, {"b": (b, "i", "j")}, (state, "i", f"j + {rows}"), "b")
    for k in range(rows):
        place, row = _pivot(batch, state, k)
        target = x if k == rows - 1 else batch.array(f"left{k + 1}", rows, rows + columns - k - 1)
        # Without the first column: row k is the pivot's row r / p, whose old place has the old row k, t; others are s.
        # f, g and p are the first elements of s, t and r.
        reads: dict[str, Element] = {
            "s": (state, "i", "j + 1"),
            "t": (state, str(k), "j + 1"),
            "f": (state, "i", "0"),
            "g": (state, str(k), "0"),
            "r": (row, "j + 1"),
            "p": (row, "0"),
            "place": (place,),
        }
        source = f"r / p if i == {k} else (t if i == place else s) - (g if i == place else f) / p * r"
        batch.map(f"left{k}", {"i": rows, "j": target.shape[-1]}, reads, (target, "i", "j"), source)
        state = target


def _pivot(batch: MatrixBatch, state: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the number of the pivot's row, the first with the largest first element from row k on, and that row.

    The row is read from memory, as its number depends on data.
    """
    largest = batch.array(f"largest{k}", dtype=real_type(state.dtype))
    place = batch.array(f"place{k}", dtype="int64")
    (rows, width), candidate = state.shape[-2:], (state, f"i + {k}", "0")
    batch.map(f"largest{k}", {"i": rows - k}, {"a": candidate}, (largest,), "abs(a)", Reduction.MAX)
    source = f"i + {k} if abs(a) == m else {rows - 1}"
    batch.map(f"place{k}", {"i": rows - k}, {"a": candidate, "m": (largest,)}, (place,), source, Reduction.MIN)
    row = batch.array(f"row{k}", width)
    source = f"table[{', '.join([*batch.spatial, 'place', 'j'])}]"
    batch.map(f"row{k}", {"j": width}, {"place": (place,)}, (row, "j"), source, tables={"table": state})
    return place, row


@expansion(Factor, "schur", source="higham02", default=True)
def schur(op: CanonicalNode[Factor], build: MapFragment) -> None:
    """Per row k: write row and column k of the factors; the rest is ``S[i, j] -= S[i, 0] * S[0, j] / S[0, 0]``.

    One task per matrix and scope.
    """
    a, packed, is_lu = op.input(0), op.output(), op.operator.kind == "lu"
    rows, batch = a.shape[-1], MatrixBatch(build, a)
    defect = _defect(batch, a) if op.operator.checks else None
    matrix = a
    for k in range(rows):
        left = rows - k
        _write_factors(batch, packed, matrix, k, is_lu=is_lu, defect=defect if k == 0 else None)
        if left == 1:
            break
        rest = batch.array(f"left{k + 1}", left - 1, left - 1)
        reads = {
            "s": (matrix, "i + 1", "j + 1"),
            "c": (matrix, "i + 1", "0"),
            "r": (matrix, "0", "j + 1") if is_lu else (matrix, "j + 1", "0"),
            "p": (matrix, "0", "0"),
        }
        source = f"s - c * {'r' if is_lu else conjugate('r', a.dtype)} / p"
        batch.map(f"complement{k}", {"i": left - 1, "j": left - 1}, reads, (rest, "i", "j"), source)
        matrix = rest


def _write_factors(
    batch: MatrixBatch, packed: Tensor, matrix: Tensor, k: int, *, is_lu: bool, defect: tuple[Tensor, Tensor] | None
) -> None:
    """Write column k of L from the first column of what is left, and row k: of U from the first row, else zeros."""
    left, begin = matrix.shape[-1], int(is_lu)  # the diagonal of LU is that of U
    if is_lu:
        code = "c / p"
        batch.map(f"row{k}", {"j": left}, {"r": (matrix, "0", "j")}, (packed, str(k), f"j + {k}"), "r")
    else:
        # The pivot is real; if it is negative, its root is NaN.
        is_real = not is_complex(packed.dtype)
        code = "c / sqrt(p)" if is_real else f"c / dace.{real_type(packed.dtype)}(sqrt(real(p)))"
        if left > 1:
            zeros = {"r": (matrix, "0", "j + 1")}
            batch.map(f"zeros{k}", {"j": left - 1}, zeros, (packed, str(k), f"j + {k + 1}"), "r * 0")
    if left == begin:
        return
    reads: dict[str, Element] = {"c": (matrix, f"i + {begin}" if begin else "i", "0"), "p": (matrix, "0", "0")}
    if defect is not None:
        reads |= {"d": (defect[0],), "m": (defect[1],)}
        code = f"{code} if d <= {Factor.allowed_defect(packed.dtype)} * m else dace.{packed.dtype}(nan)"
    batch.map(f"column{k}", {"i": left - begin}, reads, (packed, f"i + {k + begin}", str(k)), code)


def _defect(batch: MatrixBatch, a: Tensor) -> tuple[Tensor, Tensor]:
    """Return, of each matrix, the largest difference to its conjugate transpose, and the largest absolute value."""
    loops, element, mirrored = {"i": a.shape[-1], "j": a.shape[-1]}, (a, "i", "j"), (a, "j", "i")
    defect, largest = (batch.array(name, dtype=real_type(a.dtype)) for name in ("defect", "largest"))
    difference = f"abs(a - {conjugate('b', a.dtype)})"
    batch.map("defect", loops, {"a": element, "b": mirrored}, (defect,), difference, Reduction.MAX)
    batch.map("largest", loops, {"a": element}, (largest,), "abs(a)", Reduction.MAX)
    return defect, largest


@expansion(TriangularSolve, "substitution", source="higham02", default=True)
def substitution(op: CanonicalNode[TriangularSolve], build: MapFragment) -> None:
    """Per row: ``x = b[k] / t[k, k]``, then ``b[i] -= t[i, k] * x`` in the rows that are left; one task per matrix."""
    a, b, x, operator = op.input(0), op.input(1), op.output(), op.operator
    rows, columns = b.shape[-2:]
    batch, order = MatrixBatch(build, a), range(rows - 1, -1, -1) if operator.upper else range(rows)
    pivot, factor = (conjugate(name, a.dtype) if operator.adjoint else name for name in "tf")
    sides = b
    for number, k in enumerate(order):
        left = rows - number
        # An upper triangle is solved from its last row upwards.
        reads: dict[str, Element] = {"b": (sides, str(left - 1 if operator.upper else 0), "j")}
        if not operator.unit:
            reads["t"] = (a, str(k), str(k))
        solution = "b" if operator.unit else f"b / {pivot}"
        batch.map(f"row{number}", {"j": columns}, reads, (x, str(k), "j"), solution)
        if left == 1:
            return
        rest = batch.array(f"left{number + 1}", left - 1, columns)
        row = "i" if operator.upper else f"i + {k + 1}"
        factors = (a, str(k), row) if operator.adjoint else (a, row, str(k))
        reads = {"s": (sides, "i" if operator.upper else "i + 1", "j"), "f": factors, **reads}
        source = f"s - {factor} * b" if operator.unit else f"s - {factor} * ({solution})"
        batch.map(f"left{number}", {"i": left - 1, "j": columns}, reads, (rest, "i", "j"), source)
        sides = rest


LIBRARY = "LAPACK"
_TYPES = ("float32", "float64", "complex64", "complex128")


@expansion(Lapack, "lapack", source="anderson99", default=True, runs_only=True)
def routine(op: CanonicalNode[Lapack], build: MapFragment) -> None:
    """One LAPACK call per matrix; the result is NaN if the matrix is singular, or not positive definite."""
    rows, columns = op.output().shape[-2:]
    routines = {
        "inverse": f"inverse(a, result, {rows})",
        "solution": f"solution(a, b, result, {rows}, {columns})",
        "cholesky": f"cholesky(a, result, {rows}, 0)",
    }
    _call(op, build, routines[op.operator.routine])


@expansion(Eliminate, "lapack", source="anderson99", runs_only=True)
def system(op: CanonicalNode[Eliminate], build: MapFragment) -> None:
    """One call of gesv per matrix, for running; the result of a singular one is NaN."""
    rows, columns = op.output().shape[-2:]
    _call(op, build, f"solution(a, b, result, {rows}, {columns})")


@expansion(TriangularSolve, "lapack", source="anderson99", runs_only=True)
def triangular_system(op: CanonicalNode[TriangularSolve], build: MapFragment) -> None:
    """One call of trtrs per matrix, for running; the result of a singular one is NaN."""
    rows, columns = op.output().shape[-2:]
    operator = op.operator
    # LAPACK asks which triangle is stored: that of an adjoint is the other one.
    triangle = "U" if operator.upper is not operator.adjoint else "L"
    flags = f"'{triangle}', '{'C' if operator.adjoint else 'N'}', '{'U' if operator.unit else 'N'}'"
    _call(op, build, f"triangular(a, b, result, {rows}, {columns}, {flags})")


@expansion(Factor, "lapack", source="anderson99", runs_only=True)
def factor(op: CanonicalNode[Factor], build: MapFragment) -> None:
    """One call of potrf per matrix, for running; LAPACK has no LU without exchange of rows."""
    if op.operator.kind == "lu":
        raise op.unsupported("LAPACK exchanges rows (getrf) against factors without exchange (Factor=schur has them)")
    limit = op.operator.allowed_defect(op.output().dtype) if op.operator.checks else 0
    _call(op, build, f"cholesky(a, result, {op.output().shape[-1]}, {limit})")


def _call(op: Node, build: MapFragment, code: str) -> None:
    result = op.output()
    op.refuse_if(result.dtype not in _TYPES, f"LAPACK has {', '.join(_TYPES)}")
    batch = MatrixBatch(build, result)
    named = zip("ab", op.operands(), strict=False)
    reads = {name: (tensor, list(batch.spatial) if tensor.rank > 2 else []) for name, tensor in named}
    write, source = (result, list(batch.spatial)), f"dfcompile_lapack::{code};"
    build.call("", library=LIBRARY, spatial=batch.spatial, reads=reads, write=write, code=source)
