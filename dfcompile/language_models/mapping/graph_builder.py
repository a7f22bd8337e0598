"""Kernels and tensors of a dataflow graph, written as products over named loops."""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.canonical_dag import Digit, Kernel, KernelLoop, KernelVariant, LoopKind, LoopPart
from dfcompile.dfmodel_backend import Assumption, DataflowGraph, Tensor, TensorKind, Use
from dfcompile.language_models.formats import NumberFormat

PARTS = {"outer": LoopPart.OUTER, "m": LoopPart.M, "k": LoopPart.K, "n": LoopPart.N}


class Array(Struct, frozen=True):
    """A tensor and its axes, outer ones first: letters whose extents the builder knows."""

    name: str
    axes: str
    size_bytes: int
    element_bytes: int
    kind: TensorKind

    @property
    def elements(self) -> int:
        """As the back end counts them: bytes, where a number format takes less."""
        return -(-self.size_bytes // self.element_bytes)


class GraphBuilder:
    """Collects kernels; `finish` checks and freezes them.

    A letter is a loop, or an axis that a kernel reads whole; its extent is the same in all of the graph. Each array
    has the digits of its letters, so that the back end may split any loop of which every result has a part.
    """

    def __init__(self, extents: Mapping[str, int]) -> None:
        self._extents = dict(extents)
        self._arrays: dict[str, Array] = {}
        self._makers: dict[str, str] = {}
        self._kernels: list[Kernel] = []

    def array(
        self,
        name: str,
        axes: str,
        form: NumberFormat,
        kind: TensorKind = TensorKind.INTERMEDIATE,
        size_bytes: int | None = None,
    ) -> Array:
        """Return a new tensor; its bytes follow from its axes and its format, unless they are said.

        Weights of less than a byte per element, or of a mean number of experts, have as many bytes in each row of
        their last axis, rounded up.
        """
        size, width = form.bytes_of(self.extent(axes)) if size_bytes is None else size_bytes, max(1, form.bits // 8)
        if kind is TensorKind.WEIGHT:
            row = width * self.extent(axes[:-1])
            size = -(-size // row) * row
        made = Array(name, axes, size, width, kind)
        self._arrays[name] = made
        return made

    def extent(self, axes: str) -> int:
        """Return the product of the extents of some letters."""
        return math.prod(self._extents[letter] for letter in axes)

    def product(
        self, name: str, reads: Sequence[Array], writes: Array, *, outer: str = "", m: str, k: str, n: str
    ) -> Array:
        """Add ``outer`` products ``[m, k] x [k, n]``; the first operand is held where neither is a weight."""
        streamed = sum(one.kind is not TensorKind.WEIGHT for one in reads)
        variant = KernelVariant.GEMM_INPUT1_INPUT2 if streamed > 1 else KernelVariant.GEMM_INPUT1_WEIGHT
        self._add(name, "MatMul", variant, {"outer": outer, "m": m, "k": k, "n": n}, reads, writes, "")
        return writes

    def elementwise(self, name: str, reads: Sequence[Array], writes: Array, over: str, *, whole: str = "") -> Array:
        """Add a kernel over the elements of some loops, of which ``whole`` ones are not to be split."""
        variant = KernelVariant.ELEMENTWISE_INPUT1_INPUT2 if len(reads) > 1 else KernelVariant.ELEMENTWISE_INPUT1
        self._add(name, "Elementwise", variant, {"m": over}, reads, writes, whole)
        return writes

    def finish(self, name: str, assumptions: Sequence[Assumption]) -> DataflowGraph:
        """Return the graph.

        Raises:
            UserError: as `DataflowGraph.of`.
        """
        return DataflowGraph.of(
            name, tuple(self._kernels), tuple(map(self._tensor, self._arrays.values())), tuple(assumptions)
        )

    def _add(
        self,
        name: str,
        op: str,
        variant: KernelVariant,
        parts: Mapping[str, str],
        reads: Sequence[Array],
        writes: Array,
        whole: str,
    ) -> None:
        sizes = {word: self.extent(parts.get(word, "")) for word in PARTS}
        loops = [
            found
            for word, letters in parts.items()
            for letter in letters
            if letter not in whole
            for found in self._loop(letter, PARTS[word], reads, writes)
        ]
        self._makers[writes.name] = name
        self._kernels.append(
            Kernel(
                name,
                op,
                name,
                "",
                variant,
                sizes["outer"],
                sizes["m"],
                sizes["k"],
                sizes["n"],
                tuple(one.name for one in reads),
                (writes.name,),
                loops=tuple(loops),
            )
        )

    def _loop(self, letter: str, part: LoopPart, reads: Sequence[Array], writes: Array) -> Sequence[KernelLoop]:
        """Return the loop of a letter, if there is something to split and its result, if it is parallel, has it."""
        extent, made = self._extents[letter], self._digit(writes, letter)
        is_sum = part is LoopPart.K
        if extent == 1 or (made is None and not is_sum):
            return ()
        kind = LoopKind.SUM if is_sum else LoopKind.PARALLEL
        inputs = tuple(self._digit(one, letter) for one in reads)
        return (KernelLoop(letter, part, extent, kind, inputs, (None if is_sum else made,)),)

    def _digit(self, array: Array, letter: str) -> Digit | None:
        """Return where a letter moves in an array; by rows alone where elements are none of its axes'."""
        if letter not in array.axes:
            return None
        axis, last = array.axes.index(letter), len(array.axes) - 1
        inner = self.extent(array.axes[axis + 1 :])
        if self.extent(array.axes) == array.elements:
            return Digit(inner, axis)
        if array.kind is not TensorKind.WEIGHT or axis == last:
            return None
        row = array.elements // self.extent(array.axes[:-1])
        return Digit(inner // self.extent(array.axes[-1]) * row, axis)

    def _tensor(self, array: Array) -> Tensor:
        uses = []
        for kernel in self._kernels:
            streamed = [name for name in kernel.inputs if self._arrays[name].kind is not TensorKind.WEIGHT]
            if array.name in kernel.inputs:
                place = 0 if array.kind is TensorKind.WEIGHT else streamed.index(array.name)
                uses.append(Use(kernel.name, place))
        return Tensor(
            array.name, array.kind, array.size_bytes, self._makers.get(array.name, ""), tuple(uses), array.element_bytes
        )
