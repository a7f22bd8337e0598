"""The Graphviz form of a canonical DAG: families collapsed, one cluster per kernel or per user operator."""

from collections.abc import Iterator
from enum import StrEnum, unique
from typing import assert_never

import numpy as np

from dfcompile.canonical_dag.dag import NO_KERNEL, CanonicalDag, NodeKind
from dfcompile.host.printable import json_text


@unique
class Cluster(StrEnum):
    """What a box around nodes stands for."""

    KERNEL = "kernel"
    ORIGIN = "origin"


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


def to_dot(dag: CanonicalDag, cluster: Cluster = Cluster.KERNEL) -> str:
    """Return a Graphviz text: a node per scope, an edge per pair of scopes with its volume and its number of edges."""
    return "\n".join(_lines(dag, cluster)) + "\n"


def _lines(dag: CanonicalDag, cluster: Cluster) -> Iterator[str]:
    yield f"digraph {json_text(dag.name)} {{"
    yield '  node [shape=box, fontname="sans-serif"];'
    clusters: dict[str, list[str]] = {}
    for number, text in _nodes(dag):
        clusters.setdefault(_cluster(dag, number, cluster), []).append(text)
    for place, (label, texts) in enumerate(clusters.items()):
        if label:
            yield f"  subgraph cluster_{place} {{"
            yield f"    label={json_text(label)};"
        yield from (f"    {text}" for text in texts)
        if label:
            yield "  }"
    yield from _edges(dag)
    yield "}"


def _nodes(dag: CanonicalDag) -> Iterator[tuple[int, str]]:
    numbers, first, counts = np.unique(dag.node_scope, return_index=True, return_counts=True)
    for number, node, count in zip(numbers.tolist(), first.tolist(), counts.tolist(), strict=True):
        name = dag.scopes[number].name
        label = name if count == 1 else f"{name} ×{count}"
        shape = _SHAPES[NodeKind(dag.kind[node])]
        yield number, f"n{number} [label={json_text(label)}, shape={shape}];"


def _cluster(dag: CanonicalDag, number: int, cluster: Cluster) -> str:
    scope = dag.scopes[number]
    if scope.kernel == NO_KERNEL:
        return ""
    match cluster:
        case Cluster.KERNEL:
            return dag.kernels[scope.kernel].name
        case Cluster.ORIGIN:
            return scope.origin
    assert_never(cluster)


def _edges(dag: CanonicalDag) -> Iterator[str]:
    columns = (dag.node_scope[dag.edge_source], dag.node_scope[dag.edge_target], dag.edge_volume, dag.edge_order)
    rows, counts = np.unique(
        np.stack([column.astype(np.int64) for column in columns], axis=1), axis=0, return_counts=True
    )
    for (source, target, volume, order), count in zip(rows.tolist(), counts.tolist(), strict=True):
        label = f"{volume}" if count == 1 else f"{volume} ×{count}"
        text = json_text(label)
        yield f"  n{source} -> n{target} [label={text}, tooltip={json_text(dag.orders[order])}];"
