"""Mapped dataflow graphs, such as the layers of a language model, side by side in one picture."""

from collections.abc import Sequence

from msgspec import Struct

from dfcompile.dfmodel_backend import DataflowGraph, Mapping
from dfcompile.visualization.dataflow import Dataflow, DataflowEdge, DataflowNode


class MappedGraph(Struct, frozen=True):
    """A dataflow graph and its mapping.

    Attributes:
        name: what tells it from others.
        graph: whole.
        mapping: of it; ``None``: there is none.
    """

    name: str
    graph: DataflowGraph
    mapping: Mapping | None


def dataflow_of_graphs(mapped: Sequence[MappedGraph], name: str) -> Dataflow:
    """Return kernels in their configurations, with what they read from memory and leave there.

    An array belongs to the kernel that writes it; one that none writes, to the first that reads it.

    Args:
        mapped: graphs, each with configurations of its own.
        name: of the picture.
    """
    nodes: list[DataflowNode] = []
    edges: list[DataflowEdge] = []
    configurations: list[str] = []
    for one in mapped:
        sets = () if one.mapping is None else one.mapping.figures.configs
        first = len(configurations)
        configurations += [f"{number} · {one.name}" for number in range(1, len(sets) + 1)]
        number_of = {kernel: first + at for at, each in enumerate(sets) for kernel in each.kernels}
        if not sets:
            configurations.append(f"not mapped · {one.name}")
        _add(one.graph, {kernel.name: number_of.get(kernel.name, first) for kernel in one.graph.kernels}, nodes, edges)
    return Dataflow(name, "bytes", tuple(nodes), tuple(edges), tuple(configurations))


def _add(graph: DataflowGraph, number_of: dict[str, int], nodes: list[DataflowNode], edges: list[DataflowEdge]) -> None:
    place: dict[str, int] = {}
    for kernel in graph.kernels:
        place[kernel.name] = len(nodes)
        nodes.append(DataflowNode(kernel.name, kernel.origin, kernel.op, 1, number_of[kernel.name]))
    amounts: dict[tuple[int, int], tuple[int, int, bool]] = {}

    def carry(source: int, target: int, size: int) -> None:
        count, amount, in_memory = amounts.get((source, target), (0, 0, False))
        through = nodes[source].configuration != nodes[target].configuration
        through |= "buffer" in (nodes[source].kind, nodes[target].kind)
        amounts[source, target] = count + 1, amount + size, in_memory or through

    for tensor in graph.tensors:
        readers = list(dict.fromkeys(place[use.kernel] for use in tensor.uses))
        if tensor.source and readers:
            for reader in readers:
                carry(place[tensor.source], reader, tensor.size_bytes)
            continue
        owners = [place[tensor.source]] if tensor.source else readers
        if not owners:
            continue
        owner, array = nodes[owners[0]], len(nodes)
        nodes.append(DataflowNode(tensor.name, owner.operator, "buffer", 1, owner.configuration))
        for reader in readers:
            carry(array, reader, tensor.size_bytes)
        if tensor.source:
            carry(owners[0], array, tensor.size_bytes)
    edges += [
        DataflowEdge(source, target, count, amount, in_memory)
        for (source, target), (count, amount, in_memory) in amounts.items()
    ]
