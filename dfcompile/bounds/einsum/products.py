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


def crossed_product(heads: int, groups: int, m: int, k: int, n: int) -> PlainEinsum:
    """Return ``A[h, m, k] B[g, k, n] -> C[h, m, n]`` with heads and groups as loops of their own.

    This is what the tool of [huang24] computes for grouped products: each head with each group, hence ``groups`` times
    the work. It is here so that its figures can be had; `docs/bounds.md` says what is wrong with them.
    """
    return PlainEinsum(
        name=f"crossed {heads},{groups},{m},{k},{n}",
        ranks=("H", "M", "K", "N", "G"),
        extents=(heads, m, k, n, groups),
        tensors=(PlainTensor("A", (0, 1, 2)), PlainTensor("B", (4, 2, 3)), PlainTensor("C", (0, 1, 3), is_result=True)),
    )
