"""FusedMatMul of onnxruntime: a scaled product of matrices that may be transposed."""

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expressions import literal, sum_dtype
from dfcompile.lowering.operators import MatMul


@onnx_expansion("com.microsoft.FusedMatMul", "matmul", source="onnxruntime", default=True)
def fused_matmul(op: Operator, build: CanonicalFragment) -> None:
    """``Y = alpha * A' @ B'``: a MatMul of transposed operands, then one element-wise task for a factor, if any."""
    alpha, y = op.real("alpha", 1.0), op.output()
    a, b = (_batched(op, build, position, name) for position, name in enumerate("AB"))
    product = y if alpha == 1.0 else build.array("product", y.shape, sum_dtype(y.dtype))
    transposed = MatMul(op.integer("transA", 0) != 0, op.integer("transB", 0) != 0)
    build.add(transposed, [a, b], product, step="matmul")
    if product is not y:
        build.elementwise(f"a * {literal(alpha, 'float32')}", [product], y, step="scale")


def _batched(op: Operator, build: CanonicalFragment, position: int, name: str) -> Tensor:
    """Return ``X[m, b…, k]`` as ``X[b…, m, k]`` if the operator says so."""
    x = op.input(position)
    if not op.integer(f"transBatch{name}", 0) or x.rank == 2:
        return x
    shape = (*x.shape[1:-1], x.shape[0], x.shape[-1])
    read = (f"i{x.rank - 2}", *(f"i{axis}" for axis in range(x.rank - 2)), f"i{x.rank - 1}")
    return build.copied(f"arranged_{name.lower()}", x, read, shape, step=f"arrange_{name.lower()}")
