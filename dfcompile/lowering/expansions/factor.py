"""Factors of matrices, by Schur complements."""

from dfcompile.lowering import CanonicalNode, MapFragment, Reduction, Tensor, expansion
from dfcompile.lowering.expressions import conjugate, is_complex, real_type
from dfcompile.lowering.matrix_batch import Element, MatrixBatch
from dfcompile.lowering.operators import Factor


@expansion(Factor, "schur", source="higham02", default=True)
def schur(op: CanonicalNode[Factor], build: MapFragment) -> None:
    """Per row: ``S[i, j] -= S[i, 0] * S[0, j] / S[0, 0]`` of what is left, and the row and column that it is done with.

    One task per matrix and scope.
    """
    a, packed, is_lu = op.input(0), op.output(), op.operator.kind == "lu"
    rows, batch = a.shape[-1], MatrixBatch(build, a)
    defect = _defect(batch, a) if op.operator.checks else None
    matrix = a
    for k in range(rows):
        left = rows - k
        _finish(batch, packed, matrix, k, is_lu=is_lu, defect=defect if k == 0 else None)
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


def _finish(
    batch: MatrixBatch, packed: Tensor, matrix: Tensor, k: int, *, is_lu: bool, defect: tuple[Tensor, Tensor] | None
) -> None:
    """Write the first column of what is left, which is one of L, and the first row: one of U, or zeros."""
    left, first = matrix.shape[-1], int(is_lu)
    if is_lu:
        code = "c / p"
        batch.map(f"row{k}", {"j": left}, {"r": (matrix, "0", "j")}, (packed, str(k), f"j + {k}"), "r")
    else:
        code = f"c / {_root(packed.dtype)}"
        if left > 1:
            zeros = {"r": (matrix, "0", "j + 1")}
            batch.map(f"zeros{k}", {"j": left - 1}, zeros, (packed, str(k), f"j + {k + 1}"), "r * 0")
    if left == first:
        return
    reads: dict[str, Element] = {"c": (matrix, f"i + {first}" if first else "i", "0"), "p": (matrix, "0", "0")}
    if defect is not None:
        reads |= {"d": (defect[0],), "m": (defect[1],)}
        code = f"{code} if d <= {Factor.allowed_defect(packed.dtype)} * m else dace.{packed.dtype}(nan)"
    batch.map(f"column{k}", {"i": left - first}, reads, (packed, f"i + {k + first}", str(k)), code)


def _root(dtype: str) -> str:
    """Return the root of a pivot, which is real: of a negative one it is NaN."""
    return f"dace.{real_type(dtype)}(sqrt(real(p)))" if is_complex(dtype) else "sqrt(p)"


def _defect(batch: MatrixBatch, a: Tensor) -> tuple[Tensor, Tensor]:
    """Return by how much each matrix is not Hermitian, and its largest element."""
    loops, one, mirrored = {"i": a.shape[-1], "j": a.shape[-1]}, (a, "i", "j"), (a, "j", "i")
    defect, largest = (batch.array(name, dtype=real_type(a.dtype)) for name in ("defect", "largest"))
    difference = f"abs(a - {conjugate('b', a.dtype)})"
    batch.map("defect", loops, {"a": one, "b": mirrored}, (defect,), difference, Reduction.MAX)
    batch.map("largest", loops, {"a": one}, (largest,), "abs(a)", Reduction.MAX)
    return defect, largest
