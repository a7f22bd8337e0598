"""The canonical matrix product."""

from collections.abc import Sequence
from dataclasses import dataclass

from dfcompile.canonical_dag import LoopKind, LoopPart
from dfcompile.lowering.operators.base import AnyExtents
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class MatMul(AnyExtents):
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
        a, b, c = *self.check_operands(operands, 2), results[0]
        if min(a.rank, b.rank, c.rank) < 2:  # a matrix
            raise self.fault(f"{a} @ {b} -> {c} against matrices")
        n, k, m = self._extents(a, b)
        inner = b.shape[-1] if self.transpose_b else b.shape[-2]
        if k != inner or c.shape[-2:] != (n, m):
            found = f"[{n},{k}] @ [{inner},{m}] -> [{c.shape[-2]},{c.shape[-1]}]"
            raise self.fault(f"{found} against [n,k] @ [k,m] -> [n,m]")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return batch dimensions, rows, columns and the dimension that is summed over."""
        a, b = operands
        n, k, m = self._extents(a, b)
        lead = result.rank - 2
        # Aligned at the right, as in numpy: dimensions of A and of B that stand for each one of the result.
        of_a, of_b = ((1,) * (lead - tensor.rank + 2) + tensor.shape[:-2] for tensor in (a, b))
        loops = {}
        for axis, (left, right) in enumerate(zip(of_a, of_b, strict=True)):
            part = LoopPart.M if right == 1 else LoopPart.N if left == 1 else LoopPart.OUTER
            loops[f"b{axis}"] = Loop(result.shape[axis], part)
        loops |= {"row": Loop(n), "column": Loop(m, LoopPart.N), "k": Loop(k, LoopPart.K, LoopKind.SUM)}
        rows = ("k", "row") if self.transpose_a else ("row", "k")
        columns = ("column", "k") if self.transpose_b else ("k", "column")
        reads = (*_batch(of_a, a.rank - 2), *rows), (*_batch(of_b, b.rank - 2), *columns)
        return LoopNest(loops, reads, (*_batch(result.shape[:-2], lead), "row", "column"))

    def _extents(self, a: Tensor, b: Tensor) -> tuple[int, int, int]:
        n, k = reversed(a.shape[-2:]) if self.transpose_a else a.shape[-2:]
        return n, k, b.shape[-2] if self.transpose_b else b.shape[-1]


def _batch(shape: Sequence[int], rank: int) -> tuple[str, ...]:
    """Return the index of each of the last dimensions before rows and columns; one of extent 1 is broadcast."""
    return tuple(f"b{axis}" if extent > 1 else "0" for axis, extent in enumerate(shape))[len(shape) - rank :]
