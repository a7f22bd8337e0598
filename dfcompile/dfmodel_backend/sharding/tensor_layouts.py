"""How the chips of a sharding hold what each kernel reads and writes, axis by axis."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.dfmodel_backend.inter_chip.conversions import share_elements
from dfcompile.dfmodel_backend.sharding.graphs import Choice, layout_in_words, layout_of
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
