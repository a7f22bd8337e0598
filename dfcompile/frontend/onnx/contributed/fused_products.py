"""Contributed products that are fused with what comes before them."""

from collections.abc import Mapping

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.contributed_operator import Call, ContributedOperator, Shape

_REALS = ("float32", "float64", "float16")


def _matmul(call: Call) -> Mapping[str, Shape]:
    """``A[…, m, k] @ B[…, k, n]``; each may be transposed, its batch dimensions may stand between its matrix's."""
    a, b = (_matrix(call, name) for name in ("A", "B"))
    if a is None or b is None:
        return {}
    if a[-1] != b[-2]:
        raise UserError(f"'A' has an inner dimension of {a[-1]} against {b[-2]} of 'B'")
    if a[:-2] and b[:-2] and a[:-2] != b[:-2]:
        raise UserError(f"'A' has batches of {list(a[:-2])} against {list(b[:-2])} of 'B'")
    return {"Y": (*(a[:-2] or b[:-2]), a[-2], b[-1])}


def _matrix(call: Call, name: str) -> Shape | None:
    """Return the shape of an operand after it was transposed."""
    shape = call.shape(name)
    if shape is None:
        return None
    if len(shape) < 2:
        raise UserError(f"{name!r} has {len(shape)} dimensions against at least 2")
    if call.integer(f"transBatch{name}"):
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if call.integer(f"trans{name}") else shape


FUSED_PRODUCTS = (
    ContributedOperator(
        "FusedMatMul",
        "A:T B:T",
        "Y:T",
        _matmul,
        {"T": _REALS},
        {"alpha": 1.0, "transA": 0, "transB": 0, "transBatchA": 0, "transBatchB": 0},
    ),
)
