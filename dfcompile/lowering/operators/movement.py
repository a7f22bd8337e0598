"""The canonical operators that move elements and compute nothing: concatenation, copy, padding."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Self, TypeAlias

from dfcompile.lowering.operators.base import AnyExtents, CanonicalOperator
from dfcompile.lowering.operators.field_kinds import Axis, Extents
from dfcompile.lowering.operators.loop_nest import Loop, LoopNest, axes_but, kernel_loops, loops_over, moved_indices
from dfcompile.lowering.tensor import Tensor

PadMode: TypeAlias = Literal["constant", "edge", "reflect", "wrap"]


@dataclass(frozen=True, slots=True)
class Concat(AnyExtents):
    """``Y[…, offset_n + i, …] = X_n[…, i, …]``: the operands one behind the other along an axis.

    Attributes:
        axis: counted from the front.
    """

    axis: Axis

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the operands fill the result and differ along the axis alone."""
        y = results[0]
        self.check_axis("axis", self.axis, y)
        others = {(*tensor.shape[: self.axis], *tensor.shape[self.axis + 1 :]) for tensor in (*operands, y)}
        if len(others) > 1 or sum(tensor.shape[self.axis] for tensor in operands) != y.shape[self.axis]:
            raise self.fault(f"operands {', '.join(map(str, operands))} along axis {self.axis} against {y}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the axes but the one along which the operands lie one behind the other."""
        return axes_but(self.axis, operands, result)


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
                    wanted = f"{len(loops)} loops i0 …"
                    raise self.fault(f"field {name!r} has index {index!r} with {found!r} against {wanted}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the loops that read and write are indexed by."""
        extents = self.extents(result)
        given = ((self.read, operands[0]), (self.write, result))
        read, write = (tuple(loops_over(one.shape)) if indices is None else indices for indices, one in given)
        return LoopNest({name: Loop(extent) for name, extent in extents.items()}, (read,), write)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self | None:
        """Return the copy of the first iterations; places behind what is left out move up."""
        nest = self.loop_nest(operands, result)
        known = kernel_loops(nest, [operands[0].shape], result.shape)
        read = moved_indices(nest.reads[0], [(loop, loop.inputs[0]) for loop in known], extents)
        write = moved_indices(nest.write, [(loop, loop.outputs[0]) for loop in known], extents)
        if read is None or write is None:
            return None
        loops = None if self.loops is None else tuple(extents[f"i{axis}"] for axis in range(len(self.loops)))
        is_plain = self.read is None and read == nest.reads[0], self.write is None and write == nest.write
        return type(self)(loops, None if is_plain[0] else read, None if is_plain[1] else write)

    def extents(self, result: Tensor) -> dict[str, int]:
        """Return the loops with their extents, outer to inner."""
        return {f"i{axis}": extent for axis, extent in enumerate(result.shape if self.loops is None else self.loops)}


@lru_cache(maxsize=4096)
def _names(index: str) -> frozenset[str]:
    return frozenset(re.findall(r"[A-Za-z_]\w*", index))


@dataclass(frozen=True, slots=True)
class Pad(AnyExtents):
    """``Y[begin + i, …] = X[i, …]``, and around it a constant, the edge, a reflection or the other side; or cropped.

    Attributes:
        pads: elements to put before the data in every dimension, then behind it in every dimension; negative ones crop.
        mode: what is put there.
        value: the constant.
    """

    pads: tuple[int, ...]
    mode: PadMode = "constant"
    value: float = 0

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the pads make the result's shape."""
        x, y = *self.check_operands(operands, 1), results[0]
        self.check_length("pads", 2 * x.rank)
        pads = zip(self.pads[: x.rank], self.pads[x.rank :], strict=True)
        shape = tuple(extent + begin + end for extent, (begin, end) in zip(x.shape, pads, strict=True))
        if y.shape != shape:
            raise self.fault(f"field 'pads' is {self.pads} for {x} against the result {y}")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return the axes that are not padded."""
        rank = operands[0].rank
        kept = [axis for axis in range(rank) if not self.pads[axis] and not self.pads[rank + axis]]
        index = tuple(f"i{axis}" if axis in kept else None for axis in range(rank))
        return LoopNest({f"i{axis}": Loop(result.shape[axis]) for axis in kept}, (index,), index)
