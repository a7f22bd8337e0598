"""The dataflow graph: kernels and the tensors that they exchange [ko24, section 3].

Also layouts (how an array lies on the chips of a network), the exchanges that change them, and topological orders.
"""

import math
from collections.abc import Sequence
from enum import StrEnum, unique
from functools import cached_property
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag import Kernel, LoopKind
from dfcompile.dfmodel_backend.options import Assumption
from dfcompile.errors import UserError, nearest

Offsets = npt.NDArray[np.int64]


class Split(Struct, frozen=True):
    """Coordinate of the chip that has the element at an offset: ``offset % m_0 % m_1 … // block``.

    Attributes:
        moduli: descending; several where a loop is split over several dimensions of the network.
        block: elements that lie together on one chip.
    """

    moduli: tuple[int, ...]
    block: int

    def coordinates(self, offsets: Offsets) -> Offsets:
        """Return the coordinate of each offset."""
        for modulus in self.moduli:
            offsets = offsets % modulus
        return offsets // self.block

    def starts(self, end: int) -> Offsets:
        """Return the offsets below ``end`` where the coordinate changes, and possibly others."""
        starts = np.zeros(1, np.int64)
        for length, step in zip((end, *self.moduli), (*self.moduli, self.block), strict=True):
            within = np.arange(0, length, step, dtype=np.int64)
            starts = (starts[:, None] + within[None, :]).ravel()
        return starts[starts < end]

    @property
    def granule(self) -> int:
        """A length g: elements at offsets ``i * g`` to ``(i + 1) * g - 1`` have the same coordinate, for every i."""
        return math.gcd(self.block, *self.moduli)


class Partial(Struct, frozen=True):
    """Every chip along the dimension has its own value of each element; the results are these values combined."""

    kind: LoopKind


DimensionLayout = Split | Partial | None  # along one dimension of the network; None: every chip has all
Layout = tuple[DimensionLayout, ...]  # one entry per dimension, innermost first


@unique
class ExchangeKind(StrEnum):
    """What chips do to change a layout."""

    SLICE = "slice"  # each keeps its part of what it has: free
    ALL_GATHER = "all-gather"
    REDUCE_SCATTER = "reduce-scatter"
    ALL_REDUCE = "all-reduce"
    ALL_TO_ALL = "all-to-all"


class Exchange(Struct, frozen=True):
    """A collective on a tensor.

    Attributes:
        tensor: name.
        source: the kernel that makes it, in whose configuration it is exchanged.
        readers: kernels that need the new layout; none if the results of an output of the model are combined.
        kind: the collective.
        dimensions: of the network along which chips take part, counted from the innermost.
        before: layout along these dimensions, in words.
        after: layout along these dimensions, in words.
        message_bytes: that the chips of one group together have of the tensor; of the group with most of it [ko24].
        moved_bytes: that all chips together receive.
        time_ns: that the collective takes.
        layouts: before and after, along all dimensions of the network.
    """

    tensor: str
    source: str
    readers: tuple[str, ...]
    kind: ExchangeKind
    dimensions: tuple[int, ...]
    before: str
    after: str
    message_bytes: int
    moved_bytes: int
    time_ns: float
    layouts: tuple[Layout, Layout]


@unique
class TensorKind(StrEnum):
    """How a tensor of the graph is used."""

    INTERMEDIATE = "intermediate"  # made by a kernel, read by kernels
    INPUT = "input"  # of the model: read from DRAM by each configuration that uses it
    OUTPUT = "output"  # of the model: written to DRAM, whoever else reads it
    WEIGHT = "weight"  # of the model: loaded from DRAM and held in SRAM while a configuration runs


class Use(Struct, frozen=True):
    """A kernel that reads a tensor."""

    kernel: str
    operand: int  # position among the operands that are no weights: 0 is the first


class Tensor(Struct, frozen=True):
    """What one kernel (or the outside world) gives to all kernels that read it."""

    name: str
    kind: TensorKind
    size_bytes: int
    source: str  # the kernel that makes it; empty for inputs and weights of the model
    uses: tuple[Use, ...]
    element_bytes: int = 1
    is_looked_up: bool = False  # at indices that depend on data; each iteration of its reader reads equally much

    @property
    def elements(self) -> int:
        """Number of elements, rounded up."""
        return -(-self.size_bytes // self.element_bytes)


class DataflowGraph(Struct, frozen=True, dict=True):
    """Kernels in topological order and tensors; see `DataflowGraph.of` for a checked one.

    Attributes:
        name: of the model.
        kernels: in topological order; a gemm is ``weight[m, k] x input[k, n]``, and operands and results are names of
            tensors.
        tensors: in a fixed order; every name is unique.
        assumptions: decisions made when the graph was built.
        exchanges: between chips, if the graph is the share of one of several; in the order of the tensors.
    """

    name: str
    kernels: tuple[Kernel, ...]
    tensors: tuple[Tensor, ...]
    assumptions: tuple[Assumption, ...] = ()
    exchanges: tuple[Exchange, ...] = ()

    @staticmethod
    def of(
        name: str, kernels: tuple[Kernel, ...], tensors: tuple[Tensor, ...], assumptions: tuple[Assumption, ...] = ()
    ) -> "DataflowGraph":
        """Check the parts, put the kernels into topological order (ties: as given) and freeze.

        Raises:
            UserError: an unknown kernel, a name used twice, a dimension or size below 1, or a cycle.
        """
        _check_parts(kernels, tensors)
        ordered = topological_order(len(kernels), _ends({kernel.name: n for n, kernel in enumerate(kernels)}, tensors))
        if len(ordered) < len(kernels):
            stuck = kernels[min(set(range(len(kernels))) - set(ordered))]
            raise UserError(f"kernel {stuck.name!r}: part of, or behind, a cycle of kernels (expected a DAG)")
        return DataflowGraph(name, tuple(kernels[number] for number in ordered), tensors, assumptions)

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each kernel."""
        return {kernel.name: position for position, kernel in enumerate(self.kernels)}

    @property
    def ends(self) -> list[tuple[int, int]]:
        """Numbers of the kernels that make and read each tensor between kernels."""
        return _ends(self.index, self.tensors)

    @cached_property
    def topological_numbers(self) -> tuple[int, ...]:
        """Length of the longest path from a source kernel, per kernel."""
        return tuple(topological_numbers(len(self.kernels), self.ends))

    @property
    def flop(self) -> int:
        """FLOP of all kernels."""
        return sum(kernel.flop for kernel in self.kernels)


def _check_parts(kernels: tuple[Kernel, ...], tensors: tuple[Tensor, ...]) -> None:
    known: set[str] = set()
    for kernel in kernels:
        if kernel.name in known:
            raise UserError(f"kernel {kernel.name!r}: found twice against one of each name")
        known.add(kernel.name)
        for field, extent in (("outer", kernel.outer), ("m", kernel.m), ("k", kernel.k), ("n", kernel.n)):
            if extent < 1:
                raise UserError(f"kernel {kernel.name!r}: found {field} {extent} against at least 1")
    names: set[str] = set()
    for tensor in tensors:
        if tensor.name in names:
            raise UserError(f"tensor {tensor.name!r}: found twice against one of each name")
        names.add(tensor.name)
        if tensor.size_bytes < 0:
            raise UserError(f"tensor {tensor.name!r}: found {tensor.size_bytes} bytes against at least 0")
        ends = (*([tensor.source] if tensor.source else []), *(use.kernel for use in tensor.uses))
        for end in ends:
            if end not in known:
                raise UserError(f"tensor {tensor.name!r}: no kernel {end!r}{nearest(end, sorted(known))}")


def _ends(index: dict[str, int], tensors: tuple[Tensor, ...]) -> list[tuple[int, int]]:
    return [(index[tensor.source], index[use.kernel]) for tensor in tensors if tensor.source for use in tensor.uses]


Ends = Sequence[tuple[int, int]]  # of each edge


def topological_order(count: int, ends: Ends) -> list[int]:
    """Return the nodes in topological order, of several the smallest first; nodes of or behind a cycle are left out."""
    waits = [0] * count
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in ends:
        targets[source].append(target)
        waits[target] += 1
    ready = [node for node in range(count) if not waits[node]]
    order = []
    while ready:
        # Taking the smallest ready node keeps an order that is topological already.
        order.append(heappop(ready))
        for target in targets[order[-1]]:
            waits[target] -= 1
            if not waits[target]:
                heappush(ready, target)
    return order


def topological_numbers(count: int, ends: Ends) -> list[int]:
    """Return the length of the longest path to each node; the edges must form a DAG."""
    place = {node: number for number, node in enumerate(topological_order(count, ends))}
    levels = [0] * count
    for source, target in sorted(ends, key=lambda end: place[end[0]]):
        levels[target] = max(levels[target], levels[source] + 1)
    return levels
