"""Factors of matrices, by Schur complements."""

from dfcompile.lowering import CanonicalNode, MapFragment, Reduction, expansion
from dfcompile.lowering.expressions import conjugate, is_complex, real_type
from dfcompile.lowering.operators import Factor
from dfcompile.lowering.tensor import Tensor


@expansion(Factor, "schur", source="higham02", default=True)
def schur(op: CanonicalNode[Factor], build: MapFragment) -> None:
    """Per row: ``S[i, j] -= S[i, 0] * S[0, j] / S[0, 0]`` of what is left, and the row and column that it is done with.

    One task per matrix and scope.
    """
    a, packed, is_lu = op.input(0), op.output(), op.operator.kind == "lu"
    rows = a.shape[-1]
    spatial = {f"n{axis}": extent for axis, extent in enumerate(a.shape[:-2])}
    lead = list(spatial)
    defect = _defect(a, build, spatial) if op.operator.checks else None
    matrix = a
    for k in range(rows):
        left = rows - k
        _finished(packed, matrix, build, (spatial, k, left), (is_lu, defect if k == 0 else None))
        if left == 1:
            break
        rest = build.array(f"left{k + 1}", (*a.shape[:-2], left - 1, left - 1))
        row = [*lead, "0", "j + 1"] if is_lu else [*lead, "j + 1", "0"]
        build.map(
            f"complement{k}",
            spatial=spatial,
            loops={"i": left - 1, "j": left - 1},
            reads={
                "s": (matrix, [*lead, "i + 1", "j + 1"]),
                "c": (matrix, [*lead, "i + 1", "0"]),
                "r": (matrix, row),
                "p": (matrix, [*lead, "0", "0"]),
            },
            write=(rest, [*lead, "i", "j"]),
            code=f"s - c * {'r' if is_lu else conjugate('r', a.dtype)} / p",
        )
        matrix = rest


def _finished(
    packed: Tensor,
    matrix: Tensor,
    build: MapFragment,
    at: tuple[dict[str, int], int, int],
    how: tuple[bool, tuple[Tensor, Tensor] | None],
) -> None:
    """Write the first column of what is left, which is one of L, and the first row: one of U, or zeros."""
    (spatial, k, left), (is_lu, defect) = at, how
    lead = list(spatial)
    pivot = {"p": (matrix, [*lead, "0", "0"])}
    if is_lu:
        code = "r"
        build.map(
            f"row{k}",
            spatial=spatial,
            loops={"j": left},
            reads={"r": (matrix, [*lead, "0", "j"])},
            write=(packed, [*lead, str(k), f"j + {k}"]),
            code=code,
        )
        code, first = "c / p", 1
    else:
        if left > 1:
            build.map(
                f"zeros{k}",
                spatial=spatial,
                loops={"j": left - 1},
                reads={"r": (matrix, [*lead, "0", "j + 1"])},
                write=(packed, [*lead, str(k), f"j + {k + 1}"]),
                code="r * 0",
            )
        code, first = f"c / {_root(packed.dtype)}", 0
    if left == first:
        return
    reads = {"c": (matrix, [*lead, f"i + {first}" if first else "i", "0"]), **pivot}
    if defect is not None:
        reads |= {"d": (defect[0], lead or ["0"]), "m": (defect[1], lead or ["0"])}
        code = f"{code} if d <= {Factor.allowed_defect(packed.dtype)} * m else dace.{packed.dtype}(nan)"
    build.map(
        f"column{k}",
        spatial=spatial,
        loops={"i": left - first},
        reads=reads,
        write=(packed, [*lead, f"i + {k + first}", str(k)]),
        code=code,
    )


def _root(dtype: str) -> str:
    """Return the root of a pivot, which is real: of a negative one it is NaN."""
    return f"dace.{real_type(dtype)}(sqrt(real(p)))" if is_complex(dtype) else "sqrt(p)"


def _defect(a: Tensor, build: MapFragment, spatial: dict[str, int]) -> tuple[Tensor, Tensor]:
    """Return by how much each matrix is not Hermitian, and its largest element."""
    lead, loops = list(spatial), {"i": a.shape[-1], "j": a.shape[-1]}
    shape, at = a.shape[:-2] or (1,), lead or ["0"]
    defect = build.array("defect", shape, real_type(a.dtype))
    largest = build.array("largest", shape, real_type(a.dtype))
    mirrored = {"a": (a, [*lead, "i", "j"]), "b": (a, [*lead, "j", "i"])}
    for name, target, reads, code in (
        ("defect", defect, mirrored, f"abs(a - {conjugate('b', a.dtype)})"),
        ("largest", largest, {"a": mirrored["a"]}, "abs(a)"),
    ):
        build.map(
            name,
            spatial=spatial,
            loops=loops,
            reads=reads,
            write=(target, at),
            code=code,
            accumulate=Reduction.MAX,
        )
    return defect, largest
