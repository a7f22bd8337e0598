"""Which dimension of a kernel moves along which axis of its operands, and what a split of it needs of them.

A tensor is the matrix that its kernel makes, ``outer·m`` rows of ``n``. A reader takes it as one of its operands, as it
is or transposed, by the extents: of ``outer`` products ``A[m, k] B[k, n]`` the dimension m moves along the rows of A,
k along the columns of A and the rows of B, n along the columns of B. An operand that all products share has no
axis for ``outer``: where products are split it is needed whole, and so is a weight update's other operand.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from types import MappingProxyType

from msgspec import Struct

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.inter_chip.layouts import Layout, Needs
from dfcompile.dfmodel_backend.workload.design import DesignEdge, DesignKernel, Dim

STATISTICS = 2  # per vector: mean and variance of a normalization, maximum and sum of a softmax
REDUCING = ("norm", "softmax")  # in the name of a kernel: nothing else in a file tells that it reduces


class Operand(Struct, frozen=True):
    """How an operand lies: which dimensions make its rows and its columns, outer ones first.

    Attributes:
        name: of the operand; what lies in another way is the same one.
        rows: their extents multiplied are the rows.
        columns: the same.
    """

    name: str
    rows: tuple[Dim, ...]
    columns: tuple[Dim, ...]


_O, _M, _K, _N = Dim.OUTER, Dim.M, Dim.K, Dim.N
_ELEMENTWISE = (
    Operand("", (_O, _M), (_N,)),
    Operand("", (_N,), (_O, _M)),
    Operand("", (_M,), (_N,)),  # the same for all outer
    Operand("", (_O, _M), ()),  # the same for all columns
    Operand("", (), (_N,)),  # the same for all rows
)
_FIRST = (
    Operand("A", (_O, _M), (_K,)),
    Operand("A", (_O, _K), (_M,)),
    Operand("A", (_M,), (_K,)),
    Operand("A", (_K,), (_M,)),
)
_SECOND = (
    Operand("B", (_O, _K), (_N,)),
    Operand("B", (_O, _N), (_K,)),
    Operand("B", (_K,), (_N,)),
    Operand("B", (_N,), (_K,)),
)
_OPERANDS: Mapping[KernelVariant, tuple[Operand, ...]] = MappingProxyType(
    {
        KernelVariant.GEMM_INPUT1_WEIGHT: _SECOND,  # the weight is A
        KernelVariant.GEMM_INPUT1_INPUT2: (*_FIRST, *_SECOND),
        KernelVariant.ELEMENTWISE_INPUT1: _ELEMENTWISE,
        KernelVariant.ELEMENTWISE_INPUT1_INPUT2: _ELEMENTWISE,
    }
)


def needs_by_axes(kernels: Sequence[DesignKernel], edges: Sequence[DesignEdge]) -> tuple[Needs, ...]:
    """Return, per edge, in which layout its reader takes the tensor for each split of the reader."""
    return _known_needs(tuple(kernels), tuple(edges))


@lru_cache(maxsize=8)  # thousands of choices of one design have the same kernels
def _known_needs(kernels: tuple[DesignKernel, ...], edges: tuple[DesignEdge, ...]) -> tuple[Needs, ...]:
    by_id = {kernel.id: kernel for kernel in kernels}
    read: dict[int, list[tuple[int, DesignKernel]]] = {}
    for at, edge in enumerate(edges):
        read.setdefault(edge.target, []).append((at, by_id[edge.source]))
    read_as: dict[int, Operand | None] = {}
    for taker, tensors in read.items():
        read_as |= _operands(by_id[taker], tensors)
    return tuple(_needs(by_id[edge.source], by_id[edge.target], read_as[at]) for at, edge in enumerate(edges))


def _operands(taker: DesignKernel, read: Sequence[tuple[int, DesignKernel]]) -> dict[int, Operand | None]:
    """Return as which operand each tensor is read, by the number of its edge: each is one of its own, if possible.

    What may be one operand alone comes first; of others the first edge is the first operand.
    """
    fitting = {at: [one for one in _OPERANDS[taker.variant] if _fits(one, giver, taker)] for at, giver in read}
    found: dict[int, Operand | None] = {}
    taken: set[str] = set()
    for at in sorted(fitting, key=lambda one: (len({operand.name for operand in fitting[one]}), one)):
        free = [operand for operand in fitting[at] if not operand.name or operand.name not in taken]
        found[at] = next(iter([*free, *fitting[at]]), None)
        taken |= {operand.name for operand in (found[at],) if operand is not None}
    return found


def _fits(operand: Operand, giver: DesignKernel, taker: DesignKernel) -> bool:
    extents = _extents(taker)
    sides = (operand.rows, operand.columns)
    return tuple(prod(extents[dim] for dim in side) for side in sides) == (giver.outer * giver.m, giver.n)


def _needs(giver: DesignKernel, taker: DesignKernel, operand: Operand | None) -> Needs:
    if operand is not None:
        return {dim: _layout(operand, dim, taker) for dim in Dim}
    # A reshape keeps the order of elements: what is split along the outermost axis stays so.
    is_reshape = not taker.variant.is_gemm and giver.outer * giver.m * giver.n == taker.outer * taker.m * taker.n
    return {dim: Layout.ROWS if is_reshape and dim.shard is Dim.M else Layout.REPLICATED for dim in Dim}


def _layout(operand: Operand, dim: Dim, taker: DesignKernel) -> Layout:
    extents = _extents(taker)
    for side, layout in ((operand.rows, Layout.ROWS), (operand.columns, Layout.COLUMNS)):
        outermost = next((one for one in side if extents[one] > 1), None)
        if dim in side:
            return layout if dim is outermost else Layout.REPLICATED
    return Layout.REPLICATED


def _extents(kernel: DesignKernel) -> dict[Dim, int]:
    return {Dim.OUTER: kernel.outer, Dim.M: kernel.m, Dim.K: kernel.k, Dim.N: kernel.n}


def reduced_dim(kernel: DesignKernel) -> Dim | None:
    """Return along which dimension a normalization or a softmax reduces: rows, unless these come in tiles.

    A tile holds all that its results depend on.
    """
    if kernel.variant.is_gemm or not any(word in kernel.name.lower() for word in REDUCING):
        return None
    return Dim.N if kernel.tiling.shard is Dim.M else Dim.M


def exchanged_statistics(kernel: DesignKernel, sharding: Dim, rows: int, columns: int) -> int:
    """Return how many statistics chips all-reduce that share a kernel of ``rows`` by ``columns``; 0 if none."""
    if sharding is Dim.NONE or sharding is not reduced_dim(kernel):
        return 0
    return STATISTICS * (columns if sharding is Dim.M else rows)
