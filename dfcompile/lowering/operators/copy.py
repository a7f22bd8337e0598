"""The canonical copy."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from dfcompile.canonical_dag import Digit, KernelLoop
from dfcompile.lowering.operators.base import CanonicalOperator
from dfcompile.lowering.operators.field_kinds import Extents
from dfcompile.lowering.operators.loop_nest import Index, Loop, LoopNest, affine, kernel_loops, moved_up
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace


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

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self | None:
        """Return the copy of the first iterations; places behind what is left out move up."""
        nest = self.loop_nest(operands, result)
        known = kernel_loops(nest, [operands[0].shape], result.shape)
        read = _moved_up(nest.reads[0], [(loop, loop.inputs[0]) for loop in known], extents)
        write = _moved_up(nest.write, [(loop, loop.outputs[0]) for loop in known], extents)
        if read is None or write is None:
            return None
        return replace(
            self,
            loops=None if self.loops is None else tuple(extents[f"i{axis}"] for axis in range(len(self.loops))),
            read=None if read == nest.reads[0] and self.read is None else read,
            write=None if write == nest.write and self.write is None else write,
        )

    def extents(self, result: Tensor) -> dict[str, int]:
        """Return the loops with their extents, outer to inner."""
        return {f"i{axis}": extent for axis, extent in enumerate(result.shape if self.loops is None else self.loops)}


@lru_cache(maxsize=4096)
def _names(index: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", index))


def _moved_up(
    indices: Sequence[Index], digits: Sequence[tuple[KernelLoop, Digit | None]], extents: Mapping[str, int]
) -> tuple[str, ...] | None:
    """Return indices in what is left of an array; None if one of them is not affine."""
    found = []
    for axis, index in enumerate(indices):
        terms = None if index is None else affine(index)
        if index is None or terms is None:
            return None
        moved = moved_up(terms, axis, digits, extents)
        found.append(index if moved == terms else _text(moved))
    return tuple(found)


def _text(terms: Mapping[str, int]) -> str:
    return " + ".join(f"{value}*{name}" if name else f"{value}" for name, value in terms.items())
