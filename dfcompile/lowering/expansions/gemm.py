"""ONNX Gemm and MatMul."""

from math import prod

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.expressions import sum_dtype


@onnx_expansion("Gemm", "matmul", default=True)
def gemm(op: Operator, build: CanonicalFragment) -> None:
    """``Y = alpha * A' @ B' + beta * C``: a MatMul, then one element-wise operator for the rest.

    With ``beta = 0``, C does not count, whatever it holds.
    """
    alpha, beta = op.real("alpha", 1.0), op.real("beta", 1.0)
    a, b, c, y = op.input(0), op.input(1), op.optional_input(2) if beta else None, op.output()
    n, m = y.shape
    k = a.shape[0] if op.integer("transA", 0) else a.shape[1]
    scaled = "a" if alpha == 1.0 else f"{alpha!r} * a"
    has_rest = c is not None or alpha != 1.0
    product = build.array("product", y.shape, sum_dtype(y.dtype)) if has_rest else y
    build.op(
        "MatMul",
        "matmul",
        [a, b],
        [product],
        transpose_a=op.integer("transA", 0),
        transpose_b=op.integer("transB", 0),
        gemm=(1, n, k, m),
    )
    if c is not None:
        added = "b" if beta == 1.0 else f"{beta!r} * b"
        build.op("Elementwise", "bias", [product, c], [y], expression=f"{scaled} + {added}")
    elif has_rest:
        build.op("Elementwise", "scale", [product], [y], expression=scaled)


@onnx_expansion("MatMul", "matmul", default=True)
def matmul(op: Operator, build: CanonicalFragment) -> None:
    """``Y = A @ B`` with numpy's rules: batch dimensions are broadcast, vectors are rows or columns."""
    a, b, y = op.input(0), op.input(1), op.output()
    if a.rank == 1:
        a = build.view(a, "row", (1, *a.shape))
    if b.rank == 1:
        b = build.view(b, "column", (*b.shape, 1))
    batch = y.shape[: max(a.rank, b.rank) - 2]
    n, k, m = a.shape[-2], a.shape[-1], b.shape[-1]
    is_matrix = y.shape == (*batch, n, m)
    product = y if is_matrix else build.array("product", (*batch, n, m))
    build.op("MatMul", "matmul", [a, b], [product], gemm=(prod(batch), n, k, m))
    if not is_matrix:
        build.view_as(product, y)
