"""The canonical matrix product."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import prod

from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.contraction import Contraction
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class MatMul(CanonicalOperator):
    """``C[…, i, j] = sum_k A[…, i, k] * B[…, k, j]``.

    Dimensions before the last two are broadcast as in numpy: one that both operands have is batch, one that only A has
    is more rows, one that only B has is more columns. So the product of ``A[s, b, k]`` and ``B[k, m]`` is one of
    ``s * b`` rows, not a batch of s.

    Attributes:
        transpose_a: the last two dimensions of A are stored the other way round.
        transpose_b: the last two dimensions of B are stored the other way round.
    """

    transpose_a: bool = False
    transpose_b: bool = False

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that rows, columns and the dimension that is summed over are the same wherever they stand."""
        self.check_operands(operands, 2)
        a, b, c = *operands, results[0]
        if min(a.rank, b.rank, c.rank) < 2:  # a matrix
            raise self.fault(f"{a} @ {b} -> {c} against matrices")
        n, k, m = self._extents(a, b)
        inner = b.shape[-1] if self.transpose_b else b.shape[-2]
        if k != inner or c.shape[-2:] != (n, m):
            raise self.fault(
                f"[{n},{k}] @ [{inner},{m}] -> [{c.shape[-2]},{c.shape[-1]}] against [n,k] @ [k,m] -> [n,m]"
            )

    def contraction(self, operands: Sequence[Tensor], result: Tensor) -> Contraction:  # noqa: ARG002
        """Return batch, rows, the dimension that is summed over, and columns."""
        a, b = operands
        n, k, m = self._extents(a, b)
        pairs = list(zip_longest(reversed(a.shape[:-2]), reversed(b.shape[:-2]), fillvalue=1))
        more_rows = prod(left for left, right in pairs if right == 1)
        more_columns = prod(right for left, right in pairs if left == 1)
        outer = prod(left for left, right in pairs if left != 1 and right != 1)
        return Contraction(outer, more_rows * n, k, more_columns * m)

    def _extents(self, a: Tensor, b: Tensor) -> tuple[int, int, int]:
        n, k = reversed(a.shape[-2:]) if self.transpose_a else a.shape[-2:]
        m = b.shape[-2] if self.transpose_b else b.shape[-1]
        return n, k, m
