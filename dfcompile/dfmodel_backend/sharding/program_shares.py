"""What one chip runs of a lowering under a sharding, and how the chips hold what each kernel reads and writes."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, Kernel
from dfcompile.canonical_dag.kernel import OWN, KernelShare, ProgramShare
from dfcompile.dfmodel_backend.inter_chip.conversions import share_elements
from dfcompile.dfmodel_backend.sharding.graphs import WHOLE, Choice, choices_of, layout_in_words, layout_of, loops_left
from dfcompile.dfmodel_backend.workload.from_canonical import makers_of
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, Layout


class ChipShare(Struct, frozen=True):
    """What the chip with most of it runs.

    Attributes:
        program: the share of every kernel.
        apart: pairs of kernels of which the second reads what chips make of the result of the first: in a layout of its
            own, so that nothing streams between them.
        choices: how each kernel is split, those that prepare weights included.
    """

    program: ProgramShare
    apart: tuple[tuple[str, str], ...]
    choices: Mapping[str, Choice]


def chip_share(dag: CanonicalDag, chips: Sequence[int], sharding: Mapping[str, Choice]) -> ChipShare:
    """Return what one chip runs under a sharding.

    Args:
        dag: the lowering, whole.
        chips: along each dimension of the network.
        sharding: of kernels by name. One that is not in it, as it prepares weights, is split as its readers need it if
            it can be, and else whole.
    """
    return _Shares(dag, chips, sharding).find()


class _Shares:
    def __init__(self, dag: CanonicalDag, chips: Sequence[int], sharding: Mapping[str, Choice]) -> None:
        self._dag = dag
        self._chips = chips
        self._choices = dict(sharding)
        self._elements = {tensor.name: tensor.elements for tensor in dag.tensors}
        self._makers = makers_of(dag.kernels)

    def find(self) -> ChipShare:
        for kernel in reversed(self._dag.kernels):
            self._choices.setdefault(kernel.name, self._as_needed(kernel))
        numbers: dict[str, dict[Layout, int]] = {array: {self._given(array): OWN} for array in self._makers}
        shares = []
        apart: dict[tuple[str, str], None] = {}
        for kernel in self._dag.kernels:
            reads = []
            for place, array in enumerate(kernel.inputs):
                copies = numbers.setdefault(array, {})
                reads.append(copies.setdefault(self._needed(kernel, place), len(copies)))
                if reads[-1] != OWN:
                    apart.update(((maker.name, kernel.name), None) for maker in self._makers.get(array, ()))
            left = loops_left(kernel, self._choices[kernel.name], self._chips)
            shares.append(KernelShare(kernel.name, tuple((loop.name, many) for loop, many in left), tuple(reads)))
        return ChipShare(ProgramShare(tuple(shares)), tuple(apart), self._choices)

    def _given(self, array: str) -> Layout:
        """Return the layout in which an array is made; one that several kernels make is whole."""
        if len(self._makers[array]) > 1:
            return (None,) * len(self._chips)
        (maker,) = self._makers[array]
        return self._layout(maker, maker.outputs.index(array), self._choices[maker.name], is_result=True)

    def _needed(self, kernel: Kernel, place: int) -> Layout:
        return self._layout(kernel, place, self._choices[kernel.name], is_result=False)

    def _layout(self, kernel: Kernel, place: int, choice: Choice, *, is_result: bool) -> Layout:
        elements = self._elements[(kernel.outputs if is_result else kernel.inputs)[place]]
        return layout_of(kernel, place, choice, elements, self._chips, is_result=is_result)

    def _as_needed(self, kernel: Kernel) -> Choice:
        """Return a choice by which a kernel that prepares weights makes them as all readers need them."""
        needed = {
            (array, self._needed(reader, place))
            for reader in self._dag.kernels
            if reader.name in self._choices
            for place, array in enumerate(reader.inputs)
            if array in kernel.outputs
        }
        for choice in choices_of(kernel, len(self._chips)):
            made = (self._layout(kernel, place, choice, is_result=True) for place in range(len(kernel.outputs)))
            if needed <= set(zip(kernel.outputs, made, strict=True)):
                return choice
        return (WHOLE,) * len(self._chips)


class TensorLayout(Struct, frozen=True):
    """An array as a kernel reads or writes it on several chips.

    Attributes:
        kernel: its name.
        tensor: its name.
        is_written: by the kernel; else it reads it.
        held: per dimension of the network, the innermost first, in words.
        elements: of the array.
        chip_elements: of them on the chip with most.
    """

    kernel: str
    tensor: str
    is_written: bool
    held: tuple[str, ...]
    elements: int
    chip_elements: int


def tensor_layouts(
    dag: CanonicalDag | DataflowGraph, sharding: Mapping[str, Choice], chips: Sequence[int]
) -> tuple[TensorLayout, ...]:
    """Return the layout of every operand and result of the kernels that a sharding splits, in the order of the graph.

    Args:
        dag: the lowering, or the dataflow graph, whole.
        sharding: how each kernel is split.
        chips: along each dimension of the network.
    """
    elements = {tensor.name: tensor.elements for tensor in dag.tensors}
    found = []
    for kernel in (kernel for kernel in dag.kernels if kernel.name in sharding):
        choice = sharding[kernel.name]
        for is_result, names in ((False, kernel.inputs), (True, kernel.outputs)):
            for place, name in enumerate(names):
                held = tuple(layout_in_words(kernel, place, choice, is_result=is_result))
                layout = layout_of(kernel, place, choice, elements[name], chips, is_result=is_result)
                most = share_elements(layout, elements[name])
                found.append(TensorLayout(kernel.name, name, is_result, held, elements[name], most))
    return tuple(found)
