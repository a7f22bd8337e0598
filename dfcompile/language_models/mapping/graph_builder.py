"""Kernels and tensors of a dataflow graph, written as products over named loops."""

import math
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.canonical_dag import Digit, Kernel, KernelLoop, KernelVariant, LoopKind, LoopPart
from dfcompile.dfmodel_backend import Assumption, DataflowGraph, Tensor, TensorKind, Use
from dfcompile.language_models.formats import NumberFormat, Precision

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

    def __init__(self, extents: Mapping[str, int], precision: Precision) -> None:
        self._extents = dict(extents)
        self.precision = precision
        self._arrays: dict[str, Array] = {}
        self._makers: dict[str, str] = {}
        self._kernels: list[Kernel] = []

    def array(
        self, name: str, axes: str, kind: TensorKind = TensorKind.INTERMEDIATE, form: NumberFormat | None = None
    ) -> Array:
        """Return a new tensor, of activations unless its format is given."""
        form = form or self.precision.activations
        return self._array(name, axes, kind, form, form.bytes_of(self.extent(axes)))

    def cache(self, name: str, axes: str, elements: int) -> Array:
        """Return the part of a cache that is read, which may be less than its axes have."""
        form = self.precision.kv
        return self._array(name, axes, TensorKind.INPUT, form, form.bytes_of(elements))

    def weights(self, name: str, axes: str, which: str = "attention", mean: float | None = None) -> Array:
        """Return a new matrix of some class, or along the first axis ``mean`` ones, of experts.

        Weights of less than a byte per element, or of a mean number of experts, have as many bytes in each row of
        their last axis, rounded up.
        """
        form: NumberFormat = getattr(self.precision, which)
        one, count = (axes, 1) if mean is None else (axes[1:], mean)
        size = round(count * form.bytes_of(self.extent(one)))
        row = _width(form) * self.extent(axes[:-1])
        return self._array(name, axes, TensorKind.WEIGHT, form, -(-size // row) * row)

    def _array(self, name: str, axes: str, kind: TensorKind, form: NumberFormat, size_bytes: int) -> Array:
        made = self._arrays[name] = Array(name, axes, size_bytes, _width(form), kind)
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
        self._add(name, variant, {"outer": outer, "m": m, "k": k, "n": n}, reads, writes, "")
        return writes

    def elementwise(self, name: str, reads: Sequence[Array], writes: Array, over: str, *, whole: str = "") -> Array:
        """Add a kernel over the elements of some loops, of which ``whole`` ones are not to be split."""
        variant = KernelVariant.ELEMENTWISE_INPUT1_INPUT2 if len(reads) > 1 else KernelVariant.ELEMENTWISE_INPUT1
        self._add(name, variant, {"m": over}, reads, writes, whole)
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
        variant: KernelVariant,
        parts: Mapping[str, str],
        reads: Sequence[Array],
        writes: Array,
        whole: str,
    ) -> None:
        outer, m, k, n = (self.extent(parts.get(word, "")) for word in PARTS)
        loops = [
            found
            for word, letters in parts.items()
            for letter in letters
            if letter not in whole
            for found in self._loop(letter, PARTS[word], reads, writes)
        ]
        self._makers[writes.name] = name
        op, read = "MatMul" if variant.is_gemm else "Elementwise", tuple(one.name for one in reads)
        made = Kernel(name, op, name, "", variant, outer, m, k, n, read, (writes.name,), loops=tuple(loops))
        self._kernels.append(made)

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


def _width(form: NumberFormat) -> int:
    """Whole bytes of an element, at least one."""
    return max(1, form.bits // 8)
