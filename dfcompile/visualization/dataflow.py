"""A dataflow graph as columns, for a picture whose configurations and operators open and close.

Several mapped graphs, such as the layers of a language model, stand side by side in one picture. The families of a
canonical DAG, the nodes of a scope each, are text for Graphviz as well.
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
_Carried = tuple[int, int, int, int]  # numbers of two nodes, how many edges, what they carry together


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
    place = {family.scope: at for at, family in enumerate(families)}
    rows = equal_edges(dag.node_scope[dag.edge_source], dag.node_scope[dag.edge_target], dag.edge_volume)
    carried = [(place[source], place[target], count, count * volume) for (source, target, volume), count in rows]
    owner = list(range(len(families)))
    for source, target, *_ in reversed(carried):  # the first reader is the last that is noted
        if families[source].in_memory and not families[target].in_memory:
            owner[source] = target
    for source, target, *_ in reversed(carried):
        if families[target].in_memory and not families[source].in_memory:
            owner[target] = source
    nodes = []
    for family, of in zip(families, owner, strict=True):
        kind = family.kind.name.lower().replace("_", " ")
        configuration = configurations.get(families[of].kernel, NO_CONFIGURATION)
        nodes.append(DataflowNode(family.name, families[of].origin, kind, family.members, configuration))
    return Dataflow(dag.name, "elements", tuple(nodes), _edges(carried, nodes))


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
    pairs = dict.fromkeys((place[each.source], place[each.target]) for each in solution.design.edges)
    carried = ((*ends, 1, round(solution.design.kernels[ends[0]].output_bytes)) for ends in pairs)
    return Dataflow(name, "bytes", nodes, _edges(carried, nodes))


def _kind(solution: DesignSolution, kernel: DesignKernel) -> str:
    split = solution.decision.sharding.get(kernel.id, Dim.NONE)
    return "kernel" if split is Dim.NONE else f"kernel split over chips by {split.value}"


def _edges(carried: Iterable[_Carried], nodes: Sequence[DataflowNode]) -> tuple[DataflowEdge, ...]:
    """Return one edge for each pair of nodes: through memory at an array, and where it leaves its configuration."""
    found: dict[tuple[int, int], DataflowEdge] = {}
    for source, target, count, amount in carried:
        ends = nodes[source], nodes[target]
        in_memory = ends[0].configuration != ends[1].configuration or "buffer" in {each.kind for each in ends}
        known = found.get((source, target), DataflowEdge(source, target, 0, 0, in_memory))
        found[source, target] = replace(known, edges=known.edges + count, amount=known.amount + amount)
    return tuple(found.values())


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
    carried: list[_Carried] = []
    configurations: list[str] = []
    for one in mapped:
        sets = () if one.mapping is None else one.mapping.figures.configs
        first = len(configurations)
        configurations += [f"{number} · {one.name}" for number in range(1, len(sets) + 1)]
        number_of = {kernel: first + at for at, each in enumerate(sets) for kernel in each.kernels}
        if not sets:
            configurations.append(f"not mapped · {one.name}")
        carried += _added(one.graph, {each.name: number_of.get(each.name, first) for each in one.graph.kernels}, nodes)
    return Dataflow(name, "bytes", tuple(nodes), _edges(carried, nodes), tuple(configurations))


def _added(graph: DataflowGraph, number_of: dict[str, int], nodes: list[DataflowNode]) -> Iterator[_Carried]:
    """Add the nodes of a graph; yield what they carry."""
    place: dict[str, int] = {}
    for kernel in graph.kernels:
        place[kernel.name] = len(nodes)
        nodes.append(DataflowNode(kernel.name, kernel.origin, kernel.op, 1, number_of[kernel.name]))
    for tensor in graph.tensors:
        readers = list(dict.fromkeys(place[use.kernel] for use in tensor.uses))
        if tensor.source and readers:
            yield from ((place[tensor.source], reader, 1, tensor.size_bytes) for reader in readers)
            continue
        owners = [place[tensor.source]] if tensor.source else readers
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
        scope: its number.
        name: of the scope.
        origin: the user's operator that it belongs to.
        kernel: that it belongs to; empty of arrays in memory.
        kind: of its nodes.
        members: how many there are.
    """

    scope: int
    name: str
    origin: str
    kernel: str
    kind: NodeKind
    members: int

    @property
    def label(self) -> str:
        """Name and members."""
        return self.name if self.members == 1 else f"{self.name} ×{self.members}"

    @property
    def in_memory(self) -> bool:
        """Whether it is an array in memory."""
        return self.kind is NodeKind.BUFFER


def families_of(dag: CanonicalDag) -> list[Family]:
    """Return the families in the order of their scopes: of a DAG as extraction makes it that is one of dependence."""
    numbers, first, counts = np.unique(dag.node_scope, return_index=True, return_counts=True)
    found = []
    for number, node, count in zip(numbers.tolist(), first.tolist(), counts.tolist(), strict=True):
        scope = dag.scopes[number]
        kernel = "" if scope.kernel == NO_KERNEL else dag.kernels[scope.kernel].name
        found.append(Family(number, scope.name, scope.origin, kernel, NodeKind(dag.kind[node]), count))
    return found


def equal_edges(*columns: npt.NDArray[np.integer]) -> Iterator[tuple[list[int], int]]:
    """Yield the different rows of columns of edges, in ascending order, and how often each of them is there."""
    rows = np.stack([column.astype(np.int64) for column in columns], axis=1)
    different, counts = np.unique(rows, axis=0, return_counts=True)
    yield from zip(different.tolist(), counts.tolist(), strict=True)


_SHAPES = {
    NodeKind.BUFFER: "cylinder",
    NodeKind.PSEUDO_SOURCE: "point",
    NodeKind.PSEUDO_SINK: "point",
    NodeKind.DOWNSAMPLER: "invtrapezium",
    NodeKind.UPSAMPLER: "trapezium",
    NodeKind.ELEMENTWISE: "box",
    NodeKind.SOURCE: "box",
    NodeKind.SINK: "box",
}


def to_dot(dag: CanonicalDag) -> str:
    """Return a Graphviz text: a node per scope, an edge per pair of scopes with its volume and its number of edges."""
    lines = [f"digraph {json_text(dag.name)} {{", '  node [shape=box, fontname="sans-serif"];']
    clusters: dict[str, list[str]] = {}
    for family in families_of(dag):
        node = f"    n{family.scope} [label={json_text(family.label)}, shape={_SHAPES[family.kind]}];"
        clusters.setdefault(family.kernel, []).append(node)
    for place, (kernel, nodes) in enumerate(clusters.items()):
        opening = [f"  subgraph cluster_{place} {{", f"    label={json_text(kernel)};"]
        lines += [*opening, *nodes, "  }"] if kernel else nodes
    ends = dag.node_scope[dag.edge_source], dag.node_scope[dag.edge_target]
    for (source, target, volume, order), count in equal_edges(*ends, dag.edge_volume, dag.edge_order):
        label, tooltip = f"{volume}" if count == 1 else f"{volume} ×{count}", json_text(dag.orders[order])
        lines.append(f"  n{source} -> n{target} [label={json_text(label)}, tooltip={tooltip}];")
    return "\n".join([*lines, "}"]) + "\n"
