"""Graphs within nodes."""

import onnx


def subgraphs(node: onnx.NodeProto) -> tuple[onnx.GraphProto, ...]:
    """Return the graphs that a node holds as attributes."""
    return tuple(
        graph
        for entry in node.attribute
        if entry.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
        for graph in ((entry.g,) if entry.type == onnx.AttributeProto.GRAPH else entry.graphs)
    )
