"""Dataflow graphs for a picture in which configurations and operators can be opened and closed.

Several mapped graphs, such as the layers of a language model, can stand side by side. A canonical DAG is shown by its
families, the nodes of a scope each, also as text for Graphviz.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag.dag import NO_KERNEL, CanonicalDag, NodeKind
from dfcompile.dfmodel_backend import DataflowGraph
from dfcompile.dfmodel_backend import Mapping as BackEndMapping
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution
from dfcompile.dfmodel_backend.workload.design import DesignKernel, Dim
from dfcompile.host.printable import json_text
from dfcompile.records import replace

NO_CONFIGURATION = -1
_Carried = tuple[int, int, int, int]  # source, target, number of edges, what they carry together


@dataclass(frozen=True, slots=True)
class DataflowNode:
    """A family of tasks, an array in memory, or a kernel.

    Attributes:
        name: shown in the picture.
        operator: the user's operator that it belongs to.
        kind: shown in the picture, such as "buffer" or "kernel".
        members: number of tasks or arrays.
        configuration: number of its configuration, or ``NO_CONFIGURATION``.
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
        edges: number of edges.
        amount: what they carry together, in the unit of the graph.
        in_memory: whether the data goes through memory.
    """

    source: int
    target: int
    edges: int
    amount: int
    in_memory: bool


class Dataflow(Struct, frozen=True):
    """A dataflow graph.

    Attributes:
        name: of the picture.
        unit: of the amounts on edges.
        nodes: producers before consumers.
        edges: at most one from a node to another.
        configurations: names, by number; empty: the numbers are shown.
    """

    name: str
    unit: str
    nodes: tuple[DataflowNode, ...]
    edges: tuple[DataflowEdge, ...]
    configurations: tuple[str, ...] = ()


def dataflow_of(dag: CanonicalDag, configurations: Mapping[str, int]) -> Dataflow:
    """Return a DAG as a graph of its families.

    An array belongs to the operator that writes it; one that none writes, to the first that reads it.

    Args:
        dag: the DAG.
        configurations: number of the configuration of each kernel, by the kernel's name; empty without a mapping.
    """
    families = families_of(dag)
    index = {family.scope: number for number, family in enumerate(families)}
    rows = distinct_rows(dag.node_scope[dag.edge_source], dag.node_scope[dag.edge_target], dag.edge_volume)
    carried = [(index[source], index[target], count, count * volume) for (source, target, volume), count in rows]
    owner = list(range(len(families)))  # number of the family whose operator and configuration each has
    for source, target, *_ in reversed(carried):  # so that the first reader overwrites later ones
        if families[source].in_memory and not families[target].in_memory:
            owner[source] = target
    for source, target, *_ in reversed(carried):
        if families[target].in_memory and not families[source].in_memory:
            owner[target] = source
    nodes = []
    for family, owning in zip(families, owner, strict=True):
        kind = family.kind.name.lower().replace("_", " ")
        configuration = configurations.get(families[owning].kernel, NO_CONFIGURATION)
        nodes.append(DataflowNode(family.name, families[owning].origin, kind, family.members, configuration))
    return Dataflow(dag.name, "elements", tuple(nodes), _edges(carried, nodes))


def dataflow_of_design(solution: DesignSolution, name: str) -> Dataflow:
    """Return the kernels of a solved design in their configurations.

    Args:
        solution: of the design.
        name: of the graph.
    """
    kernels, configs = solution.design.kernels, solution.decision.configs
    index = {kernel.id: number for number, kernel in enumerate(kernels)}
    nodes = tuple(DataflowNode(one.name, one.name, _kind(solution, one), 1, configs[one.id]) for one in kernels)
    pairs = dict.fromkeys((index[edge.source], index[edge.target]) for edge in solution.design.edges)
    carried = ((*ends, 1, round(kernels[ends[0]].output_bytes)) for ends in pairs)
    return Dataflow(name, "bytes", nodes, _edges(carried, nodes))


def _kind(solution: DesignSolution, kernel: DesignKernel) -> str:
    split = solution.decision.sharding.get(kernel.id, Dim.NONE)
    return "kernel" if split is Dim.NONE else f"kernel split over chips by {split.value}"


def _edges(carried: Iterable[_Carried], nodes: Sequence[DataflowNode]) -> tuple[DataflowEdge, ...]:
    """Merge the edges of each pair of nodes; through memory if one is an array, or their configurations differ."""
    merged: dict[tuple[int, int], DataflowEdge] = {}
    for source, target, count, amount in carried:
        ends = nodes[source], nodes[target]
        in_memory = ends[0].configuration != ends[1].configuration or "buffer" in {node.kind for node in ends}
        edge = merged.get((source, target), DataflowEdge(source, target, 0, 0, in_memory))
        merged[source, target] = replace(edge, edges=edge.edges + count, amount=edge.amount + amount)
    return tuple(merged.values())


class MappedGraph(Struct, frozen=True):
    """A dataflow graph and its mapping.

    Attributes:
        name: different for each graph of a picture.
        graph: the whole graph.
        mapping: ``None`` if it is not mapped.
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
    carried: list[_Carried] = []
    configurations: list[str] = []
    for part in mapped:
        sets = () if part.mapping is None else part.mapping.figures.configs
        first = len(configurations)
        configurations += [f"{number} · {part.name}" for number in range(1, len(sets) + 1)]
        number_of = {kernel: number for number, config in enumerate(sets, first) for kernel in config.kernels}
        if not sets:
            configurations.append(f"not mapped · {part.name}")
        numbers = {kernel.name: number_of.get(kernel.name, first) for kernel in part.graph.kernels}
        carried += _add_graph(part.graph, numbers, nodes)
    return Dataflow(name, "bytes", tuple(nodes), _edges(carried, nodes), tuple(configurations))


def _add_graph(graph: DataflowGraph, configurations: dict[str, int], nodes: list[DataflowNode]) -> Iterator[_Carried]:
    """Append the nodes of a graph, given the configuration of each kernel; yield what its edges carry."""
    node_of: dict[str, int] = {}
    for kernel in graph.kernels:
        node_of[kernel.name] = len(nodes)
        nodes.append(DataflowNode(kernel.name, kernel.origin, kernel.op, 1, configurations[kernel.name]))
    for tensor in graph.tensors:
        readers = list(dict.fromkeys(node_of[use.kernel] for use in tensor.uses))
        if tensor.source and readers:
            yield from ((node_of[tensor.source], reader, 1, tensor.size_bytes) for reader in readers)
            continue
        owners = [node_of[tensor.source]] if tensor.source else readers
        if not owners:
            continue
        owner, array = nodes[owners[0]], len(nodes)
        nodes.append(DataflowNode(tensor.name, owner.operator, "buffer", 1, owner.configuration))
        yield from ((array, reader, 1, tensor.size_bytes) for reader in readers)
        if tensor.source:
            yield owners[0], array, 1, tensor.size_bytes


class Family(Struct, frozen=True):
    """The nodes of a scope.

    Attributes:
        scope: number of the scope.
        name: of the scope.
        origin: the user's operator that it belongs to.
        kernel: the kernel that it belongs to; empty for arrays in memory.
        kind: of its first node.
        members: number of its nodes.
    """

    scope: int
    name: str
    origin: str
    kernel: str
    kind: NodeKind
    members: int

    @property
    def label(self) -> str:
        """Name, and number of members if there are several."""
        return self.name if self.members == 1 else f"{self.name} ×{self.members}"

    @property
    def in_memory(self) -> bool:
        """Whether it is an array in memory."""
        return self.kind is NodeKind.BUFFER


def families_of(dag: CanonicalDag) -> list[Family]:
    """Return the families by the numbers of their scopes: of an extracted DAG, producers come before consumers."""
    numbers, first, counts = np.unique(dag.node_scope, return_index=True, return_counts=True)
    families = []
    for number, node, count in zip(numbers.tolist(), first.tolist(), counts.tolist(), strict=True):
        scope = dag.scopes[number]
        kernel = "" if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name
        families.append(Family(number, scope.name, scope.origin, kernel, NodeKind(dag.kind[node]), count))
    return families


def distinct_rows(*columns: npt.NDArray[np.integer]) -> Iterator[tuple[list[int], int]]:
    """Yield the distinct rows of a table of edges, given as columns, in ascending order, and how often each occurs."""
    rows = np.stack([column.astype(np.int64) for column in columns], axis=1)
    distinct, counts = np.unique(rows, axis=0, return_counts=True)
    yield from zip(distinct.tolist(), counts.tolist(), strict=True)


_SHAPES = dict.fromkeys(NodeKind, "box") | {
    NodeKind.BUFFER: "cylinder",
    NodeKind.PSEUDO_SOURCE: "point",
    NodeKind.PSEUDO_SINK: "point",
    NodeKind.DOWNSAMPLER: "invtrapezium",
    NodeKind.UPSAMPLER: "trapezium",
}


def to_dot(dag: CanonicalDag) -> str:
    """Return a Graphviz text: a node per scope, an edge per pair of scopes with its volume and its number of edges."""
    lines = [f"digraph {json_text(dag.name)} {{", '  node [shape=box, fontname="sans-serif"];']
    clusters: dict[str, list[str]] = {}
    for family in families_of(dag):
        node = f"    n{family.scope} [label={json_text(family.label)}, shape={_SHAPES[family.kind]}];"
        clusters.setdefault(family.kernel, []).append(node)
    for number, (kernel, nodes) in enumerate(clusters.items()):
        opening = [f"  subgraph cluster_{number} {{", f"    label={json_text(kernel)};"]
        lines += [*opening, *nodes, "  }"] if kernel else nodes
    ends = dag.node_scope[dag.edge_source], dag.node_scope[dag.edge_target]
    for (source, target, volume, order), count in distinct_rows(*ends, dag.edge_volume, dag.edge_order):
        label, tooltip = f"{volume}" if count == 1 else f"{volume} ×{count}", json_text(dag.orders[order])
        lines.append(f"  n{source} -> n{target} [label={json_text(label)}, tooltip={tooltip}];")
    return "\n".join([*lines, "}"]) + "\n"
