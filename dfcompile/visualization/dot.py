"""The Graphviz form of a canonical DAG: families collapsed, one cluster per kernel."""

from dfcompile.canonical_dag.dag import CanonicalDag, NodeKind
from dfcompile.host.printable import json_text
from dfcompile.visualization.families import equal_edges, families_of

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
