"""The dataflow graph of a page: families with their operator and configuration, one edge per pair, memory told."""

from dfcompile.api.solve_design import solve
from dfcompile.canonical_dag import parse_dag
from dfcompile.dfmodel_backend.workload.design import Dim
from dfcompile.visualization.dataflow import NO_CONFIGURATION, DataflowEdge, dataflow_of, dataflow_of_design
from tests.locations import DESIGNS, ROOT

# Four tasks read x and w; their single results stream to one task, and through memory to y.
DAG = """dfcompile-dag/1 mv
buffer x
buffer w
elementwise broadcast origin=first
downsampler mv[0:4] origin=first
upsampler gather origin=second
buffer y
edge x -> broadcast volume=6000
edge broadcast -> mv[0:4] volume=6000
edge w -> mv[0:4] volume=6000
edge mv[0:4] -> gather volume=1
edge gather -> y volume=4
"""


def test_families_have_the_operator_that_writes_or_reads_them_and_edges_add_up() -> None:
    graph = dataflow_of(parse_dag(DAG), {})

    assert [(node.name, node.operator, node.kind, node.members) for node in graph.nodes] == [
        ("x", "first", "buffer", 1),
        ("w", "first", "buffer", 1),
        ("broadcast", "first", "elementwise", 1),
        ("mv", "first", "downsampler", 4),
        ("gather", "second", "upsampler", 1),
        ("y", "second", "buffer", 1),
    ]
    assert graph.edges == (
        DataflowEdge(0, 2, 1, 6000, in_memory=True),
        DataflowEdge(1, 3, 4, 24000, in_memory=True),
        DataflowEdge(2, 3, 4, 24000, in_memory=False),
        DataflowEdge(3, 4, 4, 4, in_memory=False),
        DataflowEdge(4, 5, 1, 4, in_memory=True),
    )
    assert {node.configuration for node in graph.nodes} == {NO_CONFIGURATION}


def test_kernels_give_configurations_and_what_leaves_one_goes_through_memory() -> None:
    dag = parse_dag((ROOT / "tests" / "goldens" / "convolution.dag").read_text(encoding="utf-8"))
    places = {kernel.name: int(kernel.name.endswith("matmul")) for kernel in dag.kernels}

    graph = dataflow_of(dag, places)

    assert {node.name: node.configuration for node in graph.nodes if "_" not in node.name} == dict.fromkeys("xwby", 0)
    assert {node.configuration for node in graph.nodes if node.name.startswith("Conv_0.matmul")} == {1}
    for edge in graph.edges:
        source, target = graph.nodes[edge.source], graph.nodes[edge.target]
        if source.configuration != target.configuration or "buffer" in (source.kind, target.kind):
            assert edge.in_memory
    assert {node.configuration for node in graph.nodes} == {0, 1}
    together = dataflow_of(dag, dict.fromkeys(places, 0))
    assert sum(edge.in_memory for edge in together.edges) < len(together.edges)


def test_kernels_of_a_design_say_how_they_are_split() -> None:
    solution = solve(DESIGNS / "llm_1T_calculon_4_32_32.txt").solution

    graph = dataflow_of_design(solution, "gpt3")
    assert [node.configuration for node in graph.nodes] == [
        solution.decision.configs[kernel.id] for kernel in solution.design.kernels
    ]
    split = {kernel.name: solution.decision.sharding.get(kernel.id, Dim.NONE) for kernel in solution.design.kernels}
    assert {node.name: node.kind for node in graph.nodes} == {
        name: "kernel" if dim is Dim.NONE else f"kernel split over chips by {dim.value}" for name, dim in split.items()
    }
    assert len(graph.edges) == len({(edge.source, edge.target) for edge in solution.design.edges})
    assert graph.unit == "bytes"
