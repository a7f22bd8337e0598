"""MatMul without a broadcast: every task fetches B from memory."""

from dfcompile.lowering import CanonicalNode, MapFragment, Reduction, expansion
from dfcompile.lowering.operators import MatMul


@expansion(MatMul, "lab-rows", source="mylab24")
def rows(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """``A[n, k] @ B[k, m] -> C[n, m]``: n tasks, each reads its row of A and all of B from memory."""
    a, b, c = op.input(0), op.input(1), op.output()
    if (a.rank, b.rank) != (2, 2) or op.operator.transpose_a or op.operator.transpose_b:
        raise op.unsupported("'lab-rows' multiplies plain matrices")
    (n, m), k = c.shape, a.shape[1]
    build.map(
        "row",
        spatial={"i": n},
        loops={"j": m, "k": k},
        reads={"x": (a, ["i", "k"]), "y": (b, ["k", "j"])},
        write=(c, ["i", "j"]),
        code="x * y",
        accumulate=Reduction.SUM,
    )
