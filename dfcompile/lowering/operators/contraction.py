"""The contraction of a canonical operator: what makes it a matrix product to the DFModel back end."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Contraction:
    """Products of matrices ``[m, k] x [k, n] -> [m, n]``; extents in elements.

    Attributes:
        outer: number of products.
        m: rows of each.
        k: the dimension that is summed over.
        n: columns of each.
    """

    outer: int
    m: int
    k: int
    n: int
