"""Triangular systems, row by row."""

from dfcompile.lowering import CanonicalNode, MapFragment, expansion
from dfcompile.lowering.expressions import conjugate
from dfcompile.lowering.matrix_batch import Element, MatrixBatch
from dfcompile.lowering.operators import TriangularSolve


@expansion(TriangularSolve, "substitution", source="higham02", default=True)
def substitution(op: CanonicalNode[TriangularSolve], build: MapFragment) -> None:
    """Per row: ``x = b[k] / t[k, k]``, then ``b[i] -= t[i, k] * x`` of the rows that are left; one task per matrix."""
    a, b, x, operator = op.input(0), op.input(1), op.output(), op.operator
    rows, columns = b.shape[-2:]
    batch, order = MatrixBatch(build, a), range(rows - 1, -1, -1) if operator.upper else range(rows)
    pivot, factor = (conjugate(name, a.dtype) if operator.adjoint else name for name in "tf")
    sides = b
    for number, k in enumerate(order):
        left = rows - number
        # Of an upper triangle the last row is first; what is left are the rows above it.
        reads: dict[str, Element] = {"b": (sides, str(left - 1 if operator.upper else 0), "j")}
        if not operator.unit:
            reads["t"] = (a, str(k), str(k))
        found = "b" if operator.unit else f"b / {pivot}"
        batch.map(f"row{number}", {"j": columns}, reads, (x, str(k), "j"), found)
        if left == 1:
            return
        rest = batch.array(f"left{number + 1}", left - 1, columns)
        row = "i" if operator.upper else f"i + {k + 1}"
        reads = {
            "s": (sides, "i" if operator.upper else "i + 1", "j"),
            "f": (a, str(k), row) if operator.adjoint else (a, row, str(k)),
            **reads,
        }
        source = f"s - {factor} * b" if operator.unit else f"s - {factor} * ({found})"
        batch.map(f"left{number}", {"i": left - 1, "j": columns}, reads, (rest, "i", "j"), source)
        sides = rest
