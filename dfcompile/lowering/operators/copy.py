"""The canonical copy."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.field_kinds import Extents
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest
from dfcompile.lowering.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Copy(CanonicalOperator):
    """``Y[write(i)] = X[read(i)]`` in the order of the loops; element by element in row order if none are given.

    Attributes:
        loops: extents of the loops ``i0``, ``i1`` …, outer to inner; the result's shape if none are given.
        read: where to read, one affine expression of the loops per dimension of X; ``i0``, ``i1`` … if none are given.
        write: where to write, one affine expression of the loops per dimension of Y; as for ``read``.
    """

    loops: Extents | None = None
    read: tuple[str, ...] | None = None
    write: tuple[str, ...] | None = None

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that there is an index per dimension, and that it names no loop that is not there."""
        self.check_operands(operands, 1)
        loops = set(self.extents(results[0]))
        for name, indices, tensor in (("read", self.read, operands[0]), ("write", self.write, results[0])):
            if len(loops if indices is None else indices) != tensor.rank:
                raise self.fault(f"field {name!r} is {indices!r} against one index per dimension of {tensor}")
            for index in indices or ():
                if not _names(index) <= loops:
                    found = min(_names(index) - loops)
                    raise self.fault(
                        f"field {name!r} has index {index!r} with {found!r} against {len(loops)} loops i0 …"
                    )

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the loops that read and write are indexed by."""
        extents = self.extents(result)
        read, write = (
            tuple(f"i{axis}" for axis in range(tensor.rank)) if indices is None else indices
            for indices, tensor in ((self.read, operands[0]), (self.write, result))
        )
        return LoopNest({name: Loop(extent) for name, extent in extents.items()}, (read,), write)

    def extents(self, result: Tensor) -> dict[str, int]:
        """Return the loops with their extents, outer to inner."""
        return {f"i{axis}": extent for axis, extent in enumerate(result.shape if self.loops is None else self.loops)}


@lru_cache(maxsize=4096)
def _names(index: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", index))
