"""A dataflow graph as columns, for a picture whose configurations and operators open and close.

Several mapped graphs, such as the layers of a language model, stand side by side in one picture.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from dfcompile.canonical_dag.dag import CanonicalDag
from dfcompile.dfmodel_backend import DataflowGraph
from dfcompile.dfmodel_backend import Mapping as BackEndMapping
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution
from dfcompile.dfmodel_backend.workload.design import DesignKernel, Dim
from dfcompile.records import replace
from dfcompile.visualization.families import Family, equal_edges, families_of

NO_CONFIGURATION = -1


@dataclass(frozen=True, slots=True)
class DataflowNode:
    """A family of tasks, an array in memory, or a kernel.

    Attributes:
        name: of it.
        operator: of the user, which it belongs to.
        kind: what it is, in a word.
        members: how many tasks or arrays it has.
        configuration: number of the configuration that it is in, or ``NO_CONFIGURATION``.
    """

    name: str
    operator: str
    kind: str
    members: int
    configuration: int


@dataclass(frozen=True, slots=True)
class DataflowEdge:
    """All edges from one node to another.

    Attributes:
        source: number of a node.
        target: number of a node.
        edges: how many.
        amount: what they carry together, in the unit of the graph.
        in_memory: whether it goes through memory.
    """

    source: int
    target: int
    edges: int
    amount: int
    in_memory: bool


class Dataflow(Struct, frozen=True):
    """A dataflow graph.

    Attributes:
        name: of it.
        unit: of the amounts on edges.
        nodes: in an order of dependence.
        edges: at most one for a pair of nodes.
        configurations: what they are called, by their numbers; empty: by these.
    """

    name: str
    unit: str
    nodes: tuple[DataflowNode, ...]
    edges: tuple[DataflowEdge, ...]
    configurations: tuple[str, ...] = ()


def dataflow_of(dag: CanonicalDag, configurations: Mapping[str, int]) -> Dataflow:
    """Return the families of a DAG.

    An array belongs to the operator that writes it; one that none writes, to the first that reads it.

    Args:
        dag: to be shown.
        configurations: number of the configuration of each kernel, by name; empty: there are none.
    """
    families = families_of(dag)
    edges = _edges(dag, families)
    owner = list(range(len(families)))
    for edge in reversed(edges):  # the first reader is the last that is noted
        if families[edge.source].in_memory and not families[edge.target].in_memory:
            owner[edge.source] = edge.target
    for edge in reversed(edges):
        if families[edge.target].in_memory and not families[edge.source].in_memory:
            owner[edge.target] = edge.source
    nodes = []
    for family, of in zip(families, owner, strict=True):
        kind = family.kind.name.lower().replace("_", " ")
        configuration = configurations.get(families[of].kernel, NO_CONFIGURATION)
        nodes.append(DataflowNode(family.name, families[of].origin, kind, family.members, configuration))
    return Dataflow(dag.name, "elements", tuple(nodes), tuple(_leaving(edge, nodes) for edge in edges))


def dataflow_of_design(solution: DesignSolution, name: str) -> Dataflow:
    """Return the kernels of a solved design in their configurations.

    Args:
        solution: of the design.
        name: of the graph.
    """
    place = {kernel.id: at for at, kernel in enumerate(solution.design.kernels)}
    nodes = tuple(
        DataflowNode(kernel.name, kernel.name, _kind(solution, kernel), 1, solution.decision.configs[kernel.id])
        for kernel in solution.design.kernels
    )
    edges: dict[tuple[int, int], DataflowEdge] = {}
    for each in solution.design.edges:
        source, target = place[each.source], place[each.target]
        amount = round(solution.design.kernels[source].output_bytes)
        edges[source, target] = _leaving(DataflowEdge(source, target, 1, amount, in_memory=False), nodes)
    return Dataflow(name, "bytes", nodes, tuple(edges.values()))


def _kind(solution: DesignSolution, kernel: DesignKernel) -> str:
    split = solution.decision.sharding.get(kernel.id, Dim.NONE)
    return "kernel" if split is Dim.NONE else f"kernel split over chips by {split.value}"


def _leaving(edge: DataflowEdge, nodes: Sequence[DataflowNode]) -> DataflowEdge:
    """Return the edge, through memory if it leaves its configuration."""
    leaves = nodes[edge.source].configuration != nodes[edge.target].configuration
    return replace(edge, in_memory=edge.in_memory or leaves)


def _edges(dag: CanonicalDag, families: list[Family]) -> tuple[DataflowEdge, ...]:
    place = {family.scope: at for at, family in enumerate(families)}
    ends = dag.node_scope[dag.edge_source], dag.node_scope[dag.edge_target]
    carried: dict[tuple[int, int], tuple[int, int]] = {}
    for (source, target, volume), count in equal_edges(*ends, dag.edge_volume):
        edges, amount = carried.get((place[source], place[target]), (0, 0))
        carried[place[source], place[target]] = edges + count, amount + count * volume
    return tuple(
        DataflowEdge(source, target, *of_both, families[source].in_memory or families[target].in_memory)
        for (source, target), of_both in carried.items()
    )


class MappedGraph(Struct, frozen=True):
    """A dataflow graph and its mapping.

    Attributes:
        name: what tells it from others.
        graph: whole.
        mapping: of it; ``None``: there is none.
    """

    name: str
    graph: DataflowGraph
    mapping: BackEndMapping | None


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
