"""ONNX Gemm and MatMul, and onnxruntime's FusedMatMul: products of matrices, which may be scaled."""

from itertools import zip_longest

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expressions import literal, sum_dtype
from dfcompile.lowering.operators import Elementwise, MatMul


@onnx_expansion("Gemm", "matmul", default=True)
def gemm(op: Operator, build: CanonicalFragment) -> None:
    """``Y = alpha * A' @ B' + beta * C``: a MatMul, then one element-wise operator for the rest.

    With ``beta = 0``, C does not count, whatever it holds.
    """
    alpha, beta = op.real("alpha", 1.0), op.real("beta", 1.0)
    a, b, c, y = op.input(0), op.input(1), op.optional_input(2) if beta else None, op.output()
    scaled = "a" if alpha == 1.0 else f"{alpha!r} * a"
    has_rest = c is not None or alpha != 1.0
    product = build.array("product", y.shape, sum_dtype(y.dtype)) if has_rest else y
    build.add(transposed_product(op), [a, b], product, step="matmul")
    if c is not None:
        added = "b" if beta == 1.0 else f"{beta!r} * b"
        build.add(Elementwise(f"{scaled} + {added}"), [product, c], y, step="bias")
    elif has_rest:
        build.add(Elementwise(scaled), [product], y, step="scale")


def transposed_product(op: Operator) -> MatMul:
    """Return the product of operands of which attributes say how they are stored."""
    return MatMul(op.integer("transA", 0) != 0, op.integer("transB", 0) != 0)


@onnx_expansion("MatMul", "matmul", default=True)
def matmul(op: Operator, build: CanonicalFragment) -> None:
    """``Y = A @ B`` with numpy's rules: batch dimensions are broadcast, vectors are rows or columns.

    Dimensions of A next to its rows that B has not are rows: ``A[s, b, k] @ B[k, m]`` is one product of ``s * b`` rows.
    """
    add_product(build, op.input(0), op.input(1), op.output())


def add_product(build: CanonicalFragment, a: Tensor, b: Tensor, y: Tensor) -> None:
    """Add ``Y = A @ B`` as `matmul` has it, of an operator's result; Y may be of a wider type than A and B."""
    rows, columns, shape = _matrices(build, a, b)
    build.add_reshaped(MatMul(), [rows, columns], y, "product", shape, step="matmul")


def inner_product(build: CanonicalFragment, a: Tensor, b: Tensor, shape: tuple[int, ...], dtype: str) -> Tensor:
    """Add ``A @ B`` as `matmul` has it and return it, an array of a shape and a perhaps wider type."""
    rows, columns, full = _matrices(build, a, b)
    return build.shaped(build.made("product", MatMul(), [rows, columns], full, dtype, step="matmul"), "sums", shape)


def _matrices(build: CanonicalFragment, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """Return operands as matrices, perhaps many of them, and the shape of their product."""
    n = a.shape[-2] if a.rank > 1 else 1
    k, m = a.shape[-1], b.shape[-1] if b.rank > 1 else 1
    # Batch extents of both, from the last on side by side, without those that are 1 in both.
    aligned = zip_longest(reversed(a.shape[:-2]), reversed(b.shape[:-2]), fillvalue=1)
    pairs = [pair for pair in aligned if pair != (1, 1)]
    a_batch, b_batch = ([pair[side] for pair in reversed(pairs)] for side in (0, 1))
    while b_batch and b_batch[-1] == 1:
        n *= a_batch.pop()
        b_batch.pop()
    batch = [max(pair) for pair in zip(a_batch, b_batch, strict=True)]
    rows, columns = build.shaped(a, "rows", (*a_batch, n, k)), build.shaped(b, "columns", (*b_batch, k, m))
    return rows, columns, (*batch, n, m)


@onnx_expansion("com.microsoft.FusedMatMul", "matmul", source="onnxruntime", default=True)
def fused_matmul(op: Operator, build: CanonicalFragment) -> None:
    """``Y = alpha * A' @ B'``: a MatMul of transposed operands, then one element-wise task for a factor, if any."""
    alpha, y = op.real("alpha", 1.0), op.output()
    a, b = (_batched(op, build, position, name) for position, name in enumerate("AB"))
    product = y if alpha == 1.0 else build.array("product", y.shape, sum_dtype(y.dtype))
    build.add(transposed_product(op), [a, b], product, step="matmul")
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
