"""The audit of what each of several chips has of a graph, and of what they exchange, from layouts alone [ko24]."""

import math
from collections.abc import Iterator, Mapping, Sequence

from dfcompile.canonical_dag import Kernel, LoopPart
from dfcompile.dfmodel_backend.check import array_shares
from dfcompile.dfmodel_backend.check.machines import ChipNetwork
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.workload.graph import (
    DataflowGraph,
    DimensionLayout,
    Exchange,
    ExchangeKind,
    Layout,
    Partial,
    Split,
    Tensor,
    TensorKind,
)
from dfcompile.errors import VerificationError
from dfcompile.records import replace

Sharding = Mapping[str, Sequence[int]]  # by name of the kernel, per dimension of the network


class ShardedGraph:
    """A dataflow graph on several chips: how each tensor is made and needed, and what each exchange of it takes."""

    def __init__(self, graph: DataflowGraph, system: System, sharding: Sharding) -> None:
        self._graph, self.sharding, self.network = graph, sharding, ChipNetwork(system.network)
        self.chips = self.network.chips
        self.tensors = {tensor.name: tensor for tensor in graph.tensors}
        self.kernels = {kernel.name: kernel for kernel in graph.kernels}
        self._whole: Layout = (None,) * len(self.chips)

    def made(self, tensor: Tensor) -> Layout:
        """Return the layout in which the source of a tensor leaves it."""
        kernel = self.kernels[tensor.source]
        if tensor.name not in kernel.outputs:
            return self._whole
        return self._layout(kernel, kernel.outputs.index(tensor.name), is_result=True)

    def needed(self, tensor: Tensor, reader: str) -> Iterator[Layout]:
        """Yield the layouts in which a kernel needs a tensor, one per operand that it is."""
        kernel = self.kernels[reader]
        if tensor.name not in kernel.inputs:
            yield self._whole
        for place, name in enumerate(kernel.inputs):
            if name == tensor.name:
                yield self._layout(kernel, place, is_result=False)

    def _layout(self, kernel: Kernel, place: int, *, is_result: bool) -> Layout:
        return array_shares.layout_of(kernel, place, self.sharding[kernel.name], self.chips, is_result=is_result)

    def recounted(self, where: str, exchanges: Sequence[Exchange]) -> list[Exchange]:
        """Return some exchanges with the bytes and times that are found anew.

        Each must start from what the source of its tensor makes, or from what an exchange before it leads to; and
        every kernel must have what it needs of every tensor then.

        Raises:
            VerificationError: naming the exchange or the tensor.
        """
        found = []
        there = {name: [self.made(tensor)] for name, tensor in self.tensors.items() if tensor.source}
        for number, exchange in enumerate(exchanges):
            before, after = exchange.layouts
            elements = self.tensors[exchange.tensor].elements
            at = f"{where}[{number}]"
            if not any(_can_keep(layout, before, elements) for layout in there[exchange.tensor]):
                raise VerificationError(f"{at}: starts from a layout of {exchange.tensor!r} that nobody has")
            there[exchange.tensor].append(after)
            found.append(self._recounted(at, exchange))
        self._require_needs(where, there)
        return found

    def _require_needs(self, where: str, there: Mapping[str, Sequence[Layout]]) -> None:
        for name, layouts in there.items():
            tensor = self.tensors[name]
            partial = [any(isinstance(held, Partial) for held in layout) for layout in layouts]
            if tensor.kind is TensorKind.OUTPUT and all(partial):
                raise VerificationError(f"{where}: nobody completes {name!r}, an output of the model")
            for use in tensor.uses:
                for needed in self.needed(tensor, use.kernel):
                    if not any(_can_keep(layout, needed, tensor.elements) for layout in layouts):
                        raise VerificationError(f"{where}: nobody has {name!r} as kernel {use.kernel!r} needs it")

    def _recounted(self, where: str, exchange: Exchange) -> Exchange:
        before, after = exchange.layouts
        tensor, places = self.tensors[exchange.tensor], exchange.dimensions
        _require_change(where, exchange)
        size, elements = tensor.element_bytes, tensor.elements
        group = math.prod(self.chips[place] for place in places)
        others = [place for place in range(len(self.chips)) if place not in places]
        copies = math.prod(self.chips[place] for place in others if not isinstance(before[place], Split))
        rounds = 2 if exchange.kind is ExchangeKind.ALL_REDUCE else 1
        received = rounds * (group - 1) * elements
        if exchange.kind is ExchangeKind.ALL_TO_ALL:
            ends = (tuple(layout[place] for place in places) for layout in (before, after))
            received = array_shares.elements_missing(*ends, elements, tuple(self.chips[place] for place in places))
        message = array_shares.most_elements(tuple(before[place] for place in others), elements) * size
        if len(places) > 1:
            time_ns = self.network.together_ns(exchange.kind, message)
        else:
            passing = self._passing(places[0], before, elements) * size
            time_ns = self.network.step_ns(exchange.kind, places[0], passing)
        moved = received * copies * size
        return replace(exchange, message_bytes=message, moved_bytes=moved, time_ns=time_ns)

    def _passing(self, place: int, before: Layout, elements: int) -> int:
        """Return the elements of all chips that share the links along a dimension.

        On a grid those of a group; in a hierarchy those of all inner groups behind a gateway, with all their partial
        results.
        """
        others = before[place + 1 :]
        partial = 1
        if self.network.is_grid:
            others = (*before[:place], *others)
        else:
            inner = zip(self.chips, before[:place], strict=False)
            partial = math.prod(count for count, held in inner if isinstance(held, Partial))
        return partial * array_shares.most_elements(others, elements)

    def share(self, exchanges: Sequence[Exchange]) -> DataflowGraph:
        """Return what the chip with most of it has of the graph."""
        return replace(
            self._graph,
            kernels=tuple(map(self._kernel_share, self._graph.kernels)),
            tensors=tuple(self._tensor_share(tensor, exchanges) for tensor in self._graph.tensors),
            exchanges=tuple(exchanges),
        )

    def _kernel_share(self, kernel: Kernel) -> Kernel:
        """Return a kernel of the iterations of one chip; elements of one that contracts nothing in any order."""
        sizes = {LoopPart.OUTER: kernel.outer, LoopPart.M: kernel.m, LoopPart.K: kernel.k, LoopPart.N: kernel.n}
        part, whole = self._iterations(kernel)
        if kernel.variant.is_gemm:
            for number, left in array_shares.iterations_left(kernel, self.sharding[kernel.name], self.chips):
                loop = kernel.loops[number]
                sizes[loop.part] = sizes[loop.part] * left // loop.extent
        elif part < whole:
            elements = -(-kernel.outer * kernel.m * kernel.n * part // whole)
            sizes = {LoopPart.OUTER: 1, LoopPart.M: elements, LoopPart.K: 1, LoopPart.N: 1}
        outer, m, k, n = (sizes[part] for part in (LoopPart.OUTER, LoopPart.M, LoopPart.K, LoopPart.N))
        return replace(kernel, outer=outer, m=m, k=k, n=n)

    def _iterations(self, kernel: Kernel) -> tuple[int, int]:
        """Return how many iterations of loops that are split one chip has, and how many there are."""
        left = list(array_shares.iterations_left(kernel, self.sharding[kernel.name], self.chips))
        return math.prod(part for _, part in left), math.prod(kernel.loops[number].extent for number, _ in left)

    def _tensor_share(self, tensor: Tensor, exchanges: Sequence[Exchange]) -> Tensor:
        """Return a tensor as the chip with most of it holds it; of the world's, in each layout that kernels need."""
        if tensor.is_looked_up:
            part, whole = self._iterations(self.kernels[tensor.uses[0].kernel])
            return replace(tensor, size_bytes=-(-tensor.size_bytes * part // whole))
        layouts = [layout for use in tensor.uses for layout in self.needed(tensor, use.kernel)]
        elements = tensor.elements
        if tensor.source:
            layouts.append(self.made(tensor))
            made = [one.layouts[1] for one in exchanges if one.tensor == tensor.name]
            layouts += made[-1:] if not tensor.uses else []  # an output that is completed
            held = max(array_shares.most_elements(layout, elements) for layout in layouts)
        else:
            held = sum(array_shares.most_elements(layout, elements) for layout in _different(layouts, elements))
            held = held if layouts else elements
        return replace(tensor, size_bytes=min(tensor.size_bytes, held * tensor.element_bytes))


def _different(layouts: Sequence[Layout], elements: int) -> Sequence[Layout]:
    found: list[Layout] = []
    for layout in layouts:
        if not any(all(map(array_shares.are_alike, layout, other, [elements] * len(layout))) for other in found):
            found.append(layout)
    return found


def _can_keep(layout: Layout, needed: Layout, elements: int) -> bool:
    """Return whether chips have what they need, or more of it: nothing moves."""
    return all(
        array_shares.are_alike(held, need, elements) or (held is None and isinstance(need, Split))
        for held, need in zip(layout, needed, strict=True)
    )


def _require_change(where: str, exchange: Exchange) -> None:
    """Require that an exchange changes the layout as its collective does, and along its dimensions alone."""
    for place, (before, after) in enumerate(zip(*exchange.layouts, strict=True)):
        is_along = place in exchange.dimensions
        if not (_collective(before, after) is exchange.kind if is_along else before == after):
            raise VerificationError(
                f"{where}: changes dimension {place} of {exchange.tensor!r} against {exchange.kind}"
            )


def _collective(before: DimensionLayout, after: DimensionLayout) -> ExchangeKind | None:
    if isinstance(after, Partial) or before is None:
        return None
    if isinstance(before, Partial):
        return ExchangeKind.ALL_REDUCE if after is None else ExchangeKind.REDUCE_SCATTER
    return ExchangeKind.ALL_GATHER if after is None else ExchangeKind.ALL_TO_ALL
