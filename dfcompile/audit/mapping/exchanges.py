"""The audit of what chips exchange: bytes and time of each step, from the layouts that it is between [ko24]."""

import math
from collections.abc import Iterator, Mapping, Sequence

from dfcompile.canonical_dag import Kernel
from dfcompile.dfmodel_backend.check.array_shares import are_alike, elements_missing, layout_of, most_elements
from dfcompile.dfmodel_backend.check.machines import ChipNetwork
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.workload.array_layout import Held, Layout, Partial, Split
from dfcompile.dfmodel_backend.workload.exchange import Exchange, ExchangeKind
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, Tensor, TensorKind
from dfcompile.errors import VerificationError
from dfcompile.records import replace

Sharding = Mapping[str, Sequence[int]]  # by name of the kernel, per dimension of the network


class ShardedGraph:
    """A dataflow graph on several chips: how each tensor is made and needed, and what each exchange of it takes."""

    def __init__(self, graph: DataflowGraph, system: System, sharding: Sharding) -> None:
        self.network = ChipNetwork(system.network)
        self.chips = self.network.chips
        self.sharding = sharding
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
        return layout_of(kernel, place, self.sharding[kernel.name], self.chips, is_result=is_result)

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
            if tensor.kind is TensorKind.OUTPUT and not any(_is_complete(layout) for layout in layouts):
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
            received = elements_missing(*ends, elements, tuple(self.chips[place] for place in places))
        message = most_elements(tuple(before[place] for place in others), elements) * size
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
        return partial * most_elements(others, elements)


def _can_keep(layout: Layout, needed: Layout, elements: int) -> bool:
    """Return whether chips have what they need, or more of it: nothing moves."""
    return all(
        are_alike(held, need, elements) or (held is None and isinstance(need, Split))
        for held, need in zip(layout, needed, strict=True)
    )


def _is_complete(layout: Layout) -> bool:
    return not any(isinstance(held, Partial) for held in layout)


def _require_change(where: str, exchange: Exchange) -> None:
    """Require that an exchange changes the layout as its collective does, and along its dimensions alone."""
    for place, (before, after) in enumerate(zip(*exchange.layouts, strict=True)):
        is_along = place in exchange.dimensions
        if not (_collective(before, after) is exchange.kind if is_along else before == after):
            raise VerificationError(
                f"{where}: changes dimension {place} of {exchange.tensor!r} against {exchange.kind}"
            )


def _collective(before: Held, after: Held) -> ExchangeKind | None:
    if isinstance(after, Partial) or before is None:
        return None
    if isinstance(before, Partial):
        return ExchangeKind.ALL_REDUCE if after is None else ExchangeKind.REDUCE_SCATTER
    return ExchangeKind.ALL_GATHER if after is None else ExchangeKind.ALL_TO_ALL
