"""What an expansion of a canonical operator builds with: loop nests and arrays."""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeAlias

from dfcompile.canonical_dag.extraction.scopes import Array
from dfcompile.errors import UserError, VerificationError
from dfcompile.frontend.affine import Affine
from dfcompile.frontend.sdfg.identifiers import underscored
from dfcompile.lowering.expressions import Reduction, affine
from dfcompile.lowering.nests.program import Nest, NestAccess, array_of
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.tensor import Tensor, free_name
from dfcompile.records import replace

Access: TypeAlias = tuple[Tensor, Sequence[str]]  # an array, one affine index of the loops per dimension
Loops: TypeAlias = Mapping[str, int]  # with their extents, outer to inner
Reads: TypeAlias = Mapping[str, Access]  # by variable of the code


def loops_over(shape: Iterable[int]) -> dict[str, int]:
    """Return the loops ``i0``, ``i1`` … over an array in row order, with their extents."""
    return {f"i{axis}": extent for axis, extent in enumerate(shape)}


def along(tensor: Tensor, axis: int, first: int, step: int = 1) -> Access:
    """Return the element at the loops `loops_over` an array, an axis of which is gone through in steps from a place."""
    return tensor, [f"{first} + {step}*i{at}" if at == axis else f"i{at}" for at in range(tensor.rank)]


class MapFragment:
    """The loop nests that replace one canonical operator.

    One scope is one task, or one task per iteration of its *spatial* loops; its other loops run one after another in
    the order given, outer to inner: that order is the order in which the task reads and writes.

    Attributes:
        nests: what was built, in order.
        added: arrays between them.
        arrays: the same as extraction sees them, by name.
    """

    def __init__(self, op: CanonicalNode[CanonicalOperator], taken: Container[str]) -> None:
        self._op, self._taken = op, taken
        self.nests: list[Nest] = []
        self.added: list[Tensor] = []
        self.arrays: dict[str, Array] = {}

    def array(self, name: str, shape: Iterable[int], dtype: str | None = None, *, materialised: bool = False) -> Tensor:
        """Add an intermediate array and return it; see `CanonicalFragment.array`."""
        full = free_name(f"{underscored(self._op.name)}_{name}", self._taken, self.arrays)
        tensor = Tensor(full, tuple(shape), dtype or self._op.output().dtype)
        self.added.append(tensor)
        self.arrays[full] = array_of(tensor, is_transient=True, is_materialised=materialised)
        return tensor

    def map(
        self,
        step: str,
        *,
        loops: Loops,
        reads: Reads,
        write: Access,
        code: str,
        spatial: Loops | None = None,
        tables: Mapping[str, Tensor] | None = None,
        accumulate: Reduction | None = None,
        after_write: bool = False,
        scattered: bool = False,
    ) -> None:
        """Add a map scope: ``write = code(reads)`` in every iteration.

        Args:
            step: what the scope does within the operator, such as ``gather``; empty if the operator is this one scope.
            loops: temporal loops and their extents, outer to inner.
            reads: variable of the code -> (array, one affine index expression of the loops per dimension).
            write: (array, one affine index expression per dimension).
            code: Python expression of the variables; what is stored in half precision is computed in single.
            spatial: loops of which every iteration is a task of its own.
            tables: variable of the code -> array of which the code reads one element per iteration, at an index that it
                computes itself, such as ``table[row, j]``.
            accumulate: combine the values written to one element; the result is set to the neutral element first.
            after_write: the scope overwrites parts of an array that an earlier scope has written, or accumulates into
                what is there.
            scattered: the indices of the write are expressions of the variables as well: where an iteration writes its
                one element depends on data.

        Raises:
            VerificationError: a loop is empty, or an index is no affine function of the loops.
        """
        extents, (target, indices) = {**(spatial or {}), **loops}, write
        nest = Nest(
            self._scope(step),
            self._op.origin,
            extents,
            tuple(spatial or ()),
            {name: self._access(step, read, extents) for name, read in reads.items()},
            NestAccess(target, ()) if scattered else self._access(step, write, extents),
            code,
            tables or {},
            accumulate,
            after_write,
            tuple(indices) if scattered else None,
        )
        if any(extent < 1 for extent in extents.values()):
            raise VerificationError(f"scope {nest.name}: empty loop in {extents}")
        self.nests.append(nest)

    def call(self, step: str, *, library: str, spatial: Loops, reads: Reads, write: Access, code: str) -> None:
        """Add a map scope that calls a library once per iteration: it can be run, but not scheduled.

        Args:
            step: what the scope does within the operator; empty if the operator is this one scope.
            library: its name, for people.
            spatial: loops of the scope, of which every iteration is a call.
            reads: variable of the code -> (array, one index of the loops per leading dimension); a pointer to the
                elements of the dimensions that are left.
            write: of ``result``, likewise.
            code: in C++.
        """
        self.map(step, spatial=spatial, loops={}, reads=reads, write=write, code=code)
        self.nests[-1] = replace(self.nests[-1], library=library)

    def _scope(self, step: str) -> str:
        return f"{self._op.name}.{step}" if step else self._op.name

    def _access(self, step: str, access: Access, extents: Loops) -> NestAccess:
        tensor, indices = access
        return NestAccess(tensor, tuple([self._index(step, index, extents) for index in indices]))

    def _index(self, step: str, index: str, extents: Loops) -> Affine:
        where = f"scope {self._scope(step)}: index {index!r}"
        try:
            found = affine(index)
        except UserError as error:
            raise VerificationError(f"{where} against an affine function of the loops") from error
        for name in found:
            if name and name not in extents:
                raise VerificationError(f"{where}: no loop {name!r} among {list(extents)}")
        return found
