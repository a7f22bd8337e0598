"""Mapped graphs beside each other: kernels in configurations that are told apart, memory told."""

from dfcompile.dfmodel_backend import map_graph
from dfcompile.visualization.dataflow import DataflowEdge, MappedGraph, dataflow_of_graphs
from tests.unit.dfmodel_backend.graphs import chain, machine


def test_kernels_of_each_graph_are_in_its_own_configurations() -> None:
    """On one core a kernel is alone on the chip; on four both are."""
    apart, together = (map_graph(chain(), machine(cores=cores)) for cores in (1, 4))
    assert [len(one.figures.configs) for one in (apart, together)] == [2, 1]

    graph = dataflow_of_graphs(
        [
            MappedGraph("first", chain(), apart),
            MappedGraph("second", chain(), together),
            MappedGraph("x", chain(), None),
        ],
        "layers",
    )

    assert graph.configurations == ("1 · first", "2 · first", "1 · second", "not mapped · x")
    assert [(node.name, node.kind, node.configuration) for node in graph.nodes] == [
        row
        for a, b in ((0, 1), (2, 2), (3, 3))
        for row in (
            ("a", "MatMul", a), ("b", graph.nodes[1].kind, b),
            ("x", "buffer", a), ("w", "buffer", a), ("y", "buffer", b),
        )
    ]  # fmt: skip
    assert graph.unit == "bytes"
    assert set(graph.edges[:4]) == {
        DataflowEdge(0, 1, 1, 32, in_memory=True),  # from one configuration to the next
        DataflowEdge(2, 0, 1, 32, in_memory=True),
        DataflowEdge(3, 0, 1, 48, in_memory=True),
        DataflowEdge(1, 4, 1, 32, in_memory=True),
    }
    assert DataflowEdge(5, 6, 1, 32, in_memory=False) in graph.edges
    assert len(graph.edges) == 12
