"""Outlines: the map scopes that an expansion would build, as loops and accesses alone, without an SDFG."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod

from dfcompile.canonical_dag.extraction.scopes import Access, Array, MapScope
from dfcompile.errors import UserError
from dfcompile.lowering.expression_tree import expression_tree
from dfcompile.lowering.map_fragment import Access as IndexedTensor
from dfcompile.lowering.map_fragment import MapFragment
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.reduction import Reduction
from dfcompile.lowering.tensor import Tensor


class OutlineFragment(MapFragment):
    """Takes the place of a `MapFragment`: remembers what is built instead of building it.

    Making the SDFG of an expansion takes a hundred times as long; to compare expansions, its loops are enough.
    """

    def __init__(self, op: CanonicalNode[CanonicalOperator]) -> None:
        self._op = op
        self._arrays = {
            tensor.name: array_of(tensor, is_transient=False, is_materialised=True)
            for tensor in (*op.inputs, *op.outputs)
            if tensor is not None
        }
        self._scopes: list[MapScope] = []

    @property
    def scopes(self) -> tuple[MapScope, ...]:
        """The map scopes in the order in which they were built; initialisations are left out."""
        return tuple(self._scopes)

    @property
    def arrays(self) -> Mapping[str, Array]:
        """The arrays that they access; operands and results count as materialised."""
        return self._arrays

    def array(self, name: str, shape: Iterable[int], dtype: str | None = None, *, materialised: bool = False) -> Tensor:
        """Add an intermediate array and return it."""
        full = f"{self._op.name}_{name}"
        while full in self._arrays:
            full += "_"
        tensor = Tensor(full, tuple(shape), dtype or self._op.output().dtype)
        self._arrays[full] = array_of(tensor, is_transient=True, is_materialised=materialised)
        return tensor

    def map(
        self,
        step: str,
        *,
        loops: Mapping[str, int],
        reads: Mapping[str, IndexedTensor],
        write: IndexedTensor,
        code: str,  # noqa: ARG002  # numbers are not computed
        spatial: Mapping[str, int] | None = None,
        tables: Mapping[str, Tensor] | None = None,
        accumulate: Reduction | None = None,  # noqa: ARG002  # the accesses say it
        after_write: bool = False,  # noqa: ARG002
        scattered: bool = False,
    ) -> None:
        """Remember a map scope; see `MapFragment.map`."""
        spatial = spatial or {}
        extents = {**spatial, **loops} or {"once": 1}
        names = tuple(extents)
        accesses = {name: self._access(read, names) for name, read in reads.items()}
        for name, tensor in (tables or {}).items():
            accesses[name] = _somewhere(tensor, names)
        self._scopes.append(
            MapScope(
                name=f"{self._op.name}.{step}" if step else self._op.name,
                origin=self._op.origin,
                kernel=None,
                extents=tuple(extents.values()),
                is_spatial=tuple(name in spatial for name in names),
                reads=tuple(
                    access for _, access in sorted(accesses.items(), key=lambda item: item[0])
                ),  # as in an SDFG
                writes=(_somewhere(write[0], names) if scattered else self._access(write, names),),
            )
        )

    def call(
        self,
        step: str,  # noqa: ARG002  # it is refused, whatever it is
        *,
        library: str,
        spatial: Mapping[str, int],  # noqa: ARG002
        reads: Mapping[str, IndexedTensor],  # noqa: ARG002
        write: IndexedTensor,  # noqa: ARG002
        code: str,  # noqa: ARG002
    ) -> None:
        """Refuse a call of a library: it is no alternative to what can be scheduled.

        Raises:
            UnsupportedOpError: always.
        """
        raise self._op.unsupported(f"a call of {library} against canonical tasks")

    def _access(self, indexed: IndexedTensor, parameters: Sequence[str]) -> Access:
        tensor, indices = indexed
        base, strides = 0, dict.fromkeys(parameters, 0)
        for index, stride in zip(indices, self._arrays[tensor.name].strides, strict=False):
            for name, factor in affine(index).items():
                if name and name not in strides:
                    raise UserError(f"index {index!r}: no loop {name!r} against {', '.join(parameters)}")
                if name:
                    strides[name] += factor * stride
                else:
                    base += factor * stride
        return Access(tensor.name, base, tuple(strides.values()))


def _somewhere(tensor: Tensor, parameters: Sequence[str]) -> Access:
    return Access(tensor.name, 0, (0,) * len(parameters), is_indirect=True)


def array_of(tensor: Tensor, *, is_transient: bool, is_materialised: bool) -> Array:
    """Return the array that a tensor is, with rows one after another."""
    strides = tuple(prod(tensor.shape[axis + 1 :]) for axis in range(tensor.rank))
    return Array(tensor.name, tensor.shape, strides, tensor.element_bytes, is_transient, is_materialised)


@lru_cache(maxsize=4096)
def affine(index: str) -> Mapping[str, int]:
    """Return the factor of each loop in an index expression and, under the empty name, its constant.

    Raises:
        UserError: it is not affine, so that no canonical DAG could be extracted either.

    >>> dict(affine("35*c + 7*(y - 1) + x"))
    {'c': 35, 'y': 7, '': -7, 'x': 1}
    """
    return _affine(expression_tree(index), index)


def _affine(node: ast.expr, index: str) -> dict[str, int]:
    match node:
        case ast.Constant(value=int(value)):
            return {"": value}
        case ast.Name(id=name):
            return {name: 1}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {name: -factor for name, factor in _affine(operand, index).items()}
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operation, right=right):
            sign = 1 if isinstance(operation, ast.Add) else -1
            total = _affine(left, index)
            for name, factor in _affine(right, index).items():
                total[name] = total.get(name, 0) + sign * factor
            return total
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = sorted((_affine(left, index), _affine(right, index)), key=lambda terms: set(terms) != {""})
            if set(one) == {""}:
                return {name: one[""] * factor for name, factor in other.items()}
    raise UserError(f"index {index!r}: found against an affine function of the loops")
