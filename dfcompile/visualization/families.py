"""The families of a canonical DAG, the nodes of a scope each, and what joins them; as text for Graphviz."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag.dag import NO_KERNEL, CanonicalDag, NodeKind
from dfcompile.host.printable import json_text


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
