"""Products of matrices as einsums. Heads that share an operand are rows of one product: see `docs/bounds.md`."""

from dfcompile.bounds.einsum.plain import PlainEinsum, PlainTensor


def gemm(m: int, k: int, n: int) -> PlainEinsum:
    """Return ``A[m, k] B[k, n] -> C[m, n]``."""
    return PlainEinsum(
        name=f"gemm {m},{k},{n}",
        ranks=("M", "K", "N"),
        extents=(m, k, n),
        tensors=(PlainTensor("A", (0, 1)), PlainTensor("B", (1, 2)), PlainTensor("C", (0, 2), is_result=True)),
    )
