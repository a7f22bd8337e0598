"""Triangular systems, row by row."""

from dfcompile.lowering import CanonicalNode, MapFragment, expansion
from dfcompile.lowering.expressions import conjugate
from dfcompile.lowering.operators import TriangularSolve


@expansion(TriangularSolve, "substitution", source="higham02", default=True)
def substitution(op: CanonicalNode[TriangularSolve], build: MapFragment) -> None:
    """Per row: ``x = b[k] / t[k, k]``, then ``b[i] -= t[i, k] * x`` of the rows that are left; one task per matrix."""
    a, b, x, operator = op.input(0), op.input(1), op.output(), op.operator
    rows, columns = b.shape[-2:]
    spatial = {f"n{axis}": extent for axis, extent in enumerate(a.shape[:-2])}
    lead, order = list(spatial), range(rows - 1, -1, -1) if operator.upper else range(rows)
    sides, of_sides = b, lead if b.rank > 2 else []
    for number, k in enumerate(order):
        left = rows - number
        # Of an upper triangle the last row is first; what is left are the rows above it.
        first = left - 1 if operator.upper else 0
        own = {"b": (sides, [*of_sides, str(first), "j"])}
        diagonal = {} if operator.unit else {"t": (a, [*lead, str(k), str(k)])}
        pivot = conjugate("t", a.dtype) if operator.adjoint else "t"
        build.map(
            f"row{number}",
            spatial=spatial,
            loops={"j": columns},
            reads={**own, **diagonal},
            write=(x, [*lead, str(k), "j"]),
            code="b" if operator.unit else f"b / {pivot}",
        )
        if left == 1:
            return
        rest = build.array(f"left{number + 1}", (*a.shape[:-2], left - 1, columns))
        row = "i" if operator.upper else f"i + {k + 1}"
        place = [*lead, str(k), row] if operator.adjoint else [*lead, row, str(k)]
        factor = conjugate("f", a.dtype) if operator.adjoint else "f"
        build.map(
            f"left{number}",
            spatial=spatial,
            loops={"i": left - 1, "j": columns},
            reads={
                "s": (sides, [*of_sides, "i" if operator.upper else "i + 1", "j"]),
                "f": (a, place),
                **own,
                **diagonal,
            },
            write=(rest, [*lead, "i", "j"]),
            code=f"s - {factor} * b" if operator.unit else f"s - {factor} * (b / {pivot})",
        )
        sides, of_sides = rest, lead
