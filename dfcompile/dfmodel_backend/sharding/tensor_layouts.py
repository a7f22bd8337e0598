"""How the chips of a sharding hold what each kernel reads and writes, axis by axis."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag, Kernel
from dfcompile.dfmodel_backend.inter_chip.conversions import share_elements
from dfcompile.dfmodel_backend.sharding.graphs import Choice, held_in_words, operand_layout, result_layout
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph


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
    return tuple(
        layout
        for kernel in dag.kernels
        if kernel.name in sharding
        for layout in _layouts(kernel, sharding[kernel.name], elements, chips)
    )


def _layouts(
    kernel: Kernel, choice: Choice, elements: Mapping[str, int], chips: Sequence[int]
) -> Iterator[TensorLayout]:
    for is_written, names in ((False, kernel.inputs), (True, kernel.outputs)):
        layout_of = result_layout if is_written else operand_layout
        for place, name in enumerate(names):
            size = elements[name]
            digits = [(loop.outputs if is_written else loop.inputs)[place] for loop in kernel.loops]
            held = tuple(held_in_words(kernel, digits, number, is_result=is_written) for number in choice)
            layout = layout_of(kernel, place, choice, size, chips)
            yield TensorLayout(kernel.name, name, is_written, held, size, share_elements(layout, size))
