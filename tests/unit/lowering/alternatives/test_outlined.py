"""Outlines of a model: what its tasks would be, without lowering it."""

from hypothesis import given

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.canonical_dag.extraction.extract import extract_graph
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.frontend import Program
from dfcompile.lowering import lower_to_canonical, lower_to_nests, registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.lowering.levels import graph_of
from dfcompile.options import Choice
from tests.examples import examples
from tests.unit.choosing.random_programs import choices, programs

TABLE = registered_expansions()
MACHINE = Hardware(pipelines=(("Convolution", 3), ("Elementwise", 7), ("MatMul", 4), ("Reduce", 2), ("Window", 5)))


@examples(25)
@given(programs(), choices())
def test_tasks_of_an_outline_have_the_pipelines_of_those_of_the_lowered_model(
    program: Program, chosen: list[Choice]
) -> None:
    library = lower_to_canonical(program, TABLE, chosen)
    lowered = extract_graph(graph_of(lower_to_nests(library, TABLE, chosen)), ExtractionOptions())
    outlined = extract_graph(OutlinedModel(program, TABLE).outline(chosen).graph, ExtractionOptions())

    def taken(dag: CanonicalDag) -> list[int]:
        cycles: list[int] = MACHINE.cycles(dag)[dag.is_computational].tolist()
        return cycles

    assert sum(MACHINE.pipeline(lowered).tolist()) > 0
    assert taken(outlined) == taken(lowered)
