"""Choices are improved from the best of several starts, and never get longer by estimates."""

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing.candidate import space_of
from dfcompile.choosing.descent import Descent, candidate_of, fastest_options
from dfcompile.choosing.operator_options import OptionTable, time_alone
from dfcompile.choosing.sketches import Sketches
from dfcompile.frontend import Program
from dfcompile.lowering import known_alternatives, registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Effort, Volumes
from tests.examples import examples
from tests.unit.choosing.random_programs import programs

TABLE = registered_expansions()


@given(programs(), st.sampled_from([2, 16]))
@examples(10)
def test_the_best_start_counts(program: Program, pes: int) -> None:
    pieces = (None, pes, 4 * pes, 1)
    space = space_of(known_alternatives(program, TABLE), TABLE, (), [Granularity(pieces=each) for each in pieces], pes)
    sketches = Sketches(OutlinedModel(program, TABLE).outline, Volumes.EXACT, pes, Effort.QUICK)
    table = OptionTable(space, sketches)
    for choices in space.covering():
        outline = sketches.outline(choices)
        if outline is not None:
            table.add(outline)
    operators = table.options()
    fewest = tuple(each.options(time_alone)[0] for each in operators)
    fastest = fastest_options(operators, 10**6)
    without = fastest_options([each.without(1) for each in operators], 10**6)
    starts = [sketches.required(candidate_of(operators, each, space)) for each in (fewest, fastest, without)]

    best, *first = Descent(operators, sketches, space, 10**6).best([fewest, fastest, without], [])

    least = min(start.estimate.cycles for start in starts)
    assert best.estimate.cycles <= least
    assert [sketch.estimate.cycles for sketch in first] in ([], [least])
    assert all(option.pieces != 1 for option in without)
