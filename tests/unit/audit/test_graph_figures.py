"""What the audit finds of graphs, against the analysis and the bounds that reports show."""

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.audit.graph_figures import GraphFigures
from dfcompile.canonical_dag import CanonicalDag, critical_path, io_elements, streaming_depth, total_work
from dfcompile.scheduler.bounds.makespan import lower_bound_cycles
from dfcompile.scheduler.evaluation import io_bytes
from tests.examples import examples
from tests.strategies import canonical_dags


@examples(80)
@given(canonical_dags(), st.integers(1, 6))
def test_bound_is_between_that_of_the_scheduler_and_its_half(dag: CanonicalDag, pes: int) -> None:
    found = GraphFigures(dag).least_makespan_cycles(pes)

    assert found <= lower_bound_cycles(dag, pes) <= max(2 * found - 1, 0)


@examples(80)
@given(canonical_dags())
def test_figures_of_graphs_are_those_of_the_analysis(dag: CanonicalDag) -> None:
    found = GraphFigures(dag)

    assert found.tasks == dag.tasks_count
    assert found.total_work_cycles == total_work(dag)
    assert found.critical_path_cycles == critical_path(dag)
    assert found.streaming_depth_cycles == streaming_depth(dag)
    assert (found.io_elements, found.io_bytes) == (io_elements(dag), io_bytes(dag))
