"""A dataflow graph whose kernels are split over chips: what one chip has, and what chips exchange.

A kernel is split along one of its loops or none on each dimension of the network.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import product

from msgspec import Struct

from dfcompile.canonical_dag import Digit, Kernel, KernelLoop, LoopKind, LoopPart
from dfcompile.dfmodel_backend.inter_chip.conversions import Conversions, Step, TensorGroup, Way, share_elements
from dfcompile.dfmodel_backend.inter_chip.splits import split_of
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.workload.graph import (
    DataflowGraph,
    DimensionLayout,
    Exchange,
    Layout,
    Partial,
    Split,
    Tensor,
    TensorKind,
)
from dfcompile.records import replace

Choice = tuple[int, ...]  # per dimension of the network the number of the loop that is split along it, or WHOLE
WHOLE = -1


def choices_of(kernel: Kernel, dimensions: int) -> tuple[Choice, ...]:
    """Return every way to split a kernel: one loop or none along each dimension; the first is none at all.

    Reductions of one kernel are combined in one way, so that any of them may be split along any dimension.
    """
    return tuple(product((WHOLE, *range(len(kernel.loops))), repeat=dimensions))


def layout_of(
    kernel: Kernel, array: int, choice: Choice, elements: int, chips: Sequence[int], *, is_result: bool
) -> Layout:
    """Return the layout in which a kernel needs an operand, or leaves a result, given its number."""
    held: list[DimensionLayout] = []
    for place, (loop, digit) in enumerate(_split_loops(kernel, array, choice, is_result=is_result)):
        if loop is not None and digit is not None:
            shared = _dimensions_of(choice[place], choice)
            counts = [chips[dimension] for dimension in shared]
            held.append(split_of(elements, digit.stride, loop.extent, counts, shared.index(place)))
        else:
            held.append(None if loop is None else Partial(loop.kind))
    return tuple(held)


def layout_in_words(kernel: Kernel, array: int, choice: Choice, *, is_result: bool) -> Iterator[str]:
    """Yield how an operand or a result lies along each dimension of the network."""
    for loop, digit in _split_loops(kernel, array, choice, is_result=is_result):
        if digit is not None:
            yield f"split by axis {digit.axis}"
        else:
            yield "whole" if loop is None else f"partial over {loop.name}, to be combined by {loop.kind}"


def _split_loops(
    kernel: Kernel, array: int, choice: Choice, *, is_result: bool
) -> Iterator[tuple[KernelLoop | None, Digit | None]]:
    """Yield, per dimension, the loop that splits an array, or leaves it partial, and where that moves in it if it does.

    Neither where the array is whole.
    """
    for number in choice:
        loop = None if number == WHOLE else kernel.loops[number]
        digit: Digit | None = None if loop is None else (loop.outputs if is_result else loop.inputs)[array]
        is_whole = digit is None and (loop is None or not is_result or loop.kind is LoopKind.PARALLEL)
        yield (None, None) if is_whole else (loop, digit)


def _dimensions_of(number: int, choice: Choice) -> list[int]:
    """Return the dimensions along which a loop is split: outer ones part it first."""
    return [dimension for dimension in range(len(choice) - 1, -1, -1) if choice[dimension] == number]


def loops_left(kernel: Kernel, choice: Choice, chips: Sequence[int]) -> tuple[tuple[KernelLoop, int], ...]:
    """Return the loops that are split, with the iterations that the chip with most of them has."""
    found = []
    for number in sorted(set(choice) - {WHOLE}):
        left = kernel.loops[number].extent
        for dimension in _dimensions_of(number, choice):
            left = -(-left // chips[dimension])
        found.append((kernel.loops[number], left))
    return tuple(found)


Words = Mapping[tuple[int, DimensionLayout], str]  # by dimension of the network
Sharding = Mapping[str, Choice]  # by name of the kernel; one that is missing is whole


class SharedGraph(Struct, frozen=True):
    """What one chip has of a graph: the chip with most of each part.

    Attributes:
        graph: kernels and tensors of the chip, and the exchanges of all chips.
        sharding: that makes it, of every kernel.
    """

    graph: DataflowGraph
    sharding: tuple[tuple[str, Choice], ...]

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Of all chips, in the order of the tensors."""
        return self.graph.exchanges

    @property
    def network_bytes(self) -> int:
        """Bytes of messages."""
        return sum(exchange.message_bytes for exchange in self.exchanges)

    @property
    def moved_bytes(self) -> int:
        """Bytes that all chips together receive."""
        return sum(exchange.moved_bytes for exchange in self.exchanges)


class TensorShare(Struct, frozen=True):
    """A tensor under the splits of its source and of its readers.

    Attributes:
        size_bytes: on the chip with most of it: before and after all conversions, whatever is more.
        given: layout in which its source leaves it; whole on every chip if it has none.
        targets: layouts that it is converted to.
        ways: to each of them.
    """

    size_bytes: int
    given: Layout
    targets: tuple[Layout, ...]
    ways: tuple[Way, ...]

    @property
    def time_ns(self) -> float:
        """Of all conversions."""
        return sum(step.time_ns for way in self.ways for step in way)

    @property
    def message_bytes(self) -> int:
        """Of all conversions."""
        return sum(step.message_bytes for way in self.ways for step in way if step.moved_bytes)


class SplitGraph:
    """A graph on the chips of a system, split in any way; what is found for a split is kept."""

    def __init__(self, graph: DataflowGraph, system: System) -> None:
        self.graph = graph
        self.system = system
        group = TensorGroup.of(system)
        self.chips = group.chips
        self._conversions = cache(lambda elements, element_bytes: Conversions(group, elements, element_bytes))
        self.choices = {kernel.name: choices_of(kernel, len(self.chips)) for kernel in graph.kernels}
        self._kernels = {kernel.name: kernel for kernel in graph.kernels}
        self._shares: dict[tuple[str, Choice, tuple[Choice, ...]], TensorShare] = {}
        self._known: dict[tuple[str, str, Choice, bool], tuple[Layout, ...]] = {}

    def kernel_share(self, name: str, choice: Choice) -> Kernel:
        """Return the part of a kernel that the chip with most of it runs; of elements in any order a part of them."""
        kernel = self._kernels[name]
        sizes = {LoopPart.OUTER: kernel.outer, LoopPart.M: kernel.m, LoopPart.K: kernel.k, LoopPart.N: kernel.n}
        whole = part = 1
        for loop, left in loops_left(kernel, choice, self.chips):
            whole, part = whole * loop.extent, part * left
            if kernel.variant.is_gemm:
                sizes[loop.part] = sizes[loop.part] // loop.extent * left
        if part == whole:
            return kernel
        if not kernel.variant.is_gemm:
            elements = -(-math.prod(sizes.values()) * part // whole)
            sizes = {LoopPart.OUTER: 1, LoopPart.M: elements, LoopPart.K: 1, LoopPart.N: 1}
        return replace(
            kernel, outer=sizes[LoopPart.OUTER], m=sizes[LoopPart.M], k=sizes[LoopPart.K], n=sizes[LoopPart.N]
        )

    def tensor_share(self, tensor: Tensor, source: Choice, readers: tuple[Choice, ...]) -> TensorShare:
        """Return what a tensor is under the choices of its source and of its first readers, in their order."""
        key = (tensor.name, source, readers)
        if key not in self._shares:
            self._shares[key] = self._tensor_share(tensor, source, readers)
        return self._shares[key]

    def _tensor_share(self, tensor: Tensor, source: Choice, readers: tuple[Choice, ...]) -> TensorShare:
        elements, whole = tensor.elements, (None,) * len(self.chips)
        needed = [
            layout
            for use, choice in zip(tensor.uses, readers, strict=False)
            for layout in self._layouts(tensor, use.kernel, choice, is_result=False)
        ]
        if tensor.is_looked_up:
            split = loops_left(self._kernels[tensor.uses[0].kernel], readers[0], self.chips) if readers else ()
            part, of = math.prod(left for _, left in split), math.prod(loop.extent for loop, _ in split)
            return TensorShare(-(-tensor.size_bytes * part // of), whole, (), ())
        different = tuple(dict.fromkeys(needed))
        if not tensor.source:
            held = sum(share_elements(layout, elements) for layout in different) if different else elements
            return TensorShare(_bytes(tensor, held), whole, (), ())
        given = self._layouts(tensor, tensor.source, source, is_result=True)[0]
        conversions = self._conversions(elements, tensor.element_bytes)
        targets = tuple(layout for layout in different if layout != given)
        is_left_so = not targets and len(readers) == len(tensor.uses)
        if tensor.kind is TensorKind.OUTPUT and is_left_so and any(isinstance(held, Partial) for held in given):
            targets = (conversions.completed(given),)
        ways = conversions.plan(given, targets)
        held = max(share_elements(layout, elements) for layout in (given, *targets))
        return TensorShare(_bytes(tensor, held), given, targets, ways)

    def _layouts(self, tensor: Tensor, name: str, choice: Choice, *, is_result: bool) -> tuple[Layout, ...]:
        """Return the layouts in which a kernel leaves a tensor, or needs it: one per result, or operand, that it is."""
        key = (tensor.name, name, choice, is_result)
        if key not in self._known:
            kernel = self._kernels[name]
            layouts = tuple(
                layout_of(kernel, place, choice, tensor.elements, self.chips, is_result=is_result)
                for place in _places(kernel, tensor, is_result=is_result)
            )
            self._known[key] = layouts or ((None,) * len(self.chips),)
        return self._known[key]

    def shared(self, sharding: Sharding) -> SharedGraph:
        """Return what one chip has under a sharding."""
        whole = (WHOLE,) * len(self.chips)
        chosen = {kernel.name: sharding.get(kernel.name, whole) for kernel in self.graph.kernels}
        tensors: list[Tensor] = []
        exchanges: list[Exchange] = []
        for tensor in self.graph.tensors:
            readers = tuple(chosen[use.kernel] for use in tensor.uses)
            share = self.tensor_share(tensor, chosen.get(tensor.source, whole), readers)
            tensors.append(replace(tensor, size_bytes=share.size_bytes))
            exchanges += self._exchanges(tensor, share, chosen)
        kernels = tuple(self.kernel_share(name, choice) for name, choice in chosen.items())
        graph = replace(self.graph, kernels=kernels, tensors=tuple(tensors), exchanges=tuple(exchanges))
        return SharedGraph(graph, tuple(chosen.items()))

    def _exchanges(self, tensor: Tensor, share: TensorShare, chosen: Sharding) -> Iterator[Exchange]:
        words = self._words(tensor, chosen)
        readers = [use.kernel for use in tensor.uses]
        needed = {name: self._layouts(tensor, name, chosen[name], is_result=False) for name in readers}
        steps = [(way[-1].after, step) for way in share.ways for step in way if step.moved_bytes]
        for last, step in steps:
            made = {last, step.after}
            yield Exchange(
                tensor=tensor.name,
                source=tensor.source,
                readers=tuple(name for name in readers if not made.isdisjoint(needed[name])),
                kind=step.kind,
                dimensions=step.dimensions,
                before=_in_words(step, step.before, words),
                after=_in_words(step, step.after, words),
                message_bytes=step.message_bytes,
                moved_bytes=step.moved_bytes,
                time_ns=step.time_ns,
                layouts=(step.before, step.after),
            )

    def _words(self, tensor: Tensor, chosen: Sharding) -> Words:
        """Return what people call the parts of a tensor: an axis as its source, or as a reader, sees it."""
        words: dict[tuple[int, DimensionLayout], str] = {}
        ends = [(tensor.source, True)] if tensor.source else []
        for name, is_result in (*ends, *((use.kernel, False) for use in tensor.uses)):
            kernel, choice = self._kernels[name], chosen[name]
            places = _places(kernel, tensor, is_result=is_result)
            layouts = self._layouts(tensor, name, choice, is_result=is_result)
            for place, layout in zip(places, layouts, strict=False):
                said = layout_in_words(kernel, place, choice, is_result=is_result)
                for dimension, (held, word) in enumerate(zip(layout, said, strict=True)):
                    words.setdefault((dimension, held), word)
        return words


def _places(kernel: Kernel, tensor: Tensor, *, is_result: bool) -> list[int]:
    """Return which results of a kernel, or which of its operands, are a tensor."""
    names = kernel.outputs if is_result else kernel.inputs
    return [place for place, name in enumerate(names) if name == tensor.name]


def _in_words(step: Step, layout: Layout, words: Words) -> str:
    found = []
    for dimension in step.dimensions:
        held = layout[dimension]
        unknown = f"split in blocks of {held.block} elements" if isinstance(held, Split) else "whole"
        found.append(words.get((dimension, held), unknown))
    return ", ".join(dict.fromkeys(found))


def _bytes(tensor: Tensor, elements: int) -> int:
    return min(tensor.size_bytes, elements * tensor.element_bytes)


def share_graph(graph: DataflowGraph, system: System, sharding: Sharding) -> SharedGraph:
    """Return what one chip of a system has of a graph under a sharding, and what all chips exchange."""
    return SplitGraph(graph, system).shared(sharding)
