"""The pass of canonical DAGs, on those of dfcompile's generators."""

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.testing import canonical_dags, check_pass


def streams(dag: CanonicalDag, above: int) -> int:
    between = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
    return int((between & (dag.edge_volume > above)).sum())


def test_no_large_stream_is_left() -> None:
    passed = check_pass("through-memory{above=64}")

    assert max(streams(dag, above=64) for dag in canonical_dags()) > 0
    assert max(streams(dag, above=64) for dag in passed) == 0


def test_a_dag_without_large_streams_is_returned_itself() -> None:
    dags = tuple(canonical_dags())

    assert check_pass("through-memory{above=1000000}") == dags
