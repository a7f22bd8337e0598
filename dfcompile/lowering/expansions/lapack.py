"""Linear algebra by an installed LAPACK: a call per matrix, for running; calls cannot be scheduled."""

from dfcompile.lowering import CanonicalNode, MapFragment, expansion
from dfcompile.lowering.matrix_batch import MatrixBatch
from dfcompile.lowering.node import Node
from dfcompile.lowering.operators import Eliminate, Factor, Lapack, TriangularSolve

LIBRARY = "LAPACK"
_TYPES = ("float32", "float64", "complex64", "complex128")


@expansion(Lapack, "lapack", source="anderson99", default=True, runs_only=True)
def routine(op: CanonicalNode[Lapack], build: MapFragment) -> None:
    """One call per matrix; of a singular matrix, or one that is not positive definite, the result is NaN."""
    rows = op.input(0).shape[-1]
    match op.operator.routine:
        case "inverse":
            _call(op, build, f"inverse(a, result, {rows})")
        case "solution":
            _call(op, build, f"solution(a, b, result, {rows}, {op.output().shape[-1]})")
        case "cholesky":
            _call(op, build, f"cholesky(a, result, {rows}, 0)")


@expansion(Eliminate, "lapack", source="anderson99", runs_only=True)
def system(op: CanonicalNode[Eliminate], build: MapFragment) -> None:
    """One call of gesv per matrix, for running; of a singular one the result is NaN."""
    rows, columns = op.output().shape[-2:]
    _call(op, build, f"solution(a, b, result, {rows}, {columns})")


@expansion(TriangularSolve, "lapack", source="anderson99", runs_only=True)
def triangular_system(op: CanonicalNode[TriangularSolve], build: MapFragment) -> None:
    """One call of trtrs per matrix, for running; of a singular one the result is NaN."""
    rows, columns = op.output().shape[-2:]
    operator = op.operator
    # The triangle of the adjoint matrix is the other one of what is stored.
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
    if result.dtype not in _TYPES:
        raise op.unsupported(f"LAPACK has {', '.join(_TYPES)}")
    batch = MatrixBatch(build, result)
    every = {
        name: (tensor, list(batch.spatial) if tensor.rank > 2 else [])
        for name, tensor in zip("ab", op.operands(), strict=False)
    }
    write, source = (result, list(batch.spatial)), f"dfcompile_lapack::{code};"
    build.call("", library=LIBRARY, spatial=batch.spatial, reads=every, write=write, code=source)
