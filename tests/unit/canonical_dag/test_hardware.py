"""What parts of a machine take."""

from dfcompile.canonical_dag.hardware import LITERATURE, Hardware
from dfcompile.generators.canonical_dags import chain


def test_parts_of_the_literature_take_nothing() -> None:
    dag = chain(3, 8)

    assert Hardware() == LITERATURE
    assert not LITERATURE.pipeline(dag).any()
    assert not LITERATURE.forward(dag).any()
    assert LITERATURE.cycles(dag).tolist() == dag.work.tolist()
