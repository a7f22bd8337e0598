"""Choices are improved from the best of several starts, and never get longer by estimates."""

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing import descent, operator_options
from dfcompile.choosing.candidate import Space, space_of
from dfcompile.choosing.descent import Descent, candidate_of, fastest_options
from dfcompile.choosing.estimate import Memory
from dfcompile.choosing.operator_options import (
    OptionTable,
    both_alone,
    cycles_alone,
    mostly_cycles,
    time_alone,
)
from dfcompile.choosing.sketches import Sketches
from dfcompile.frontend import Program
from dfcompile.lowering import known_alternatives, registered_expansions
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Effort, Volumes
from tests.examples import examples
from tests.onnx_text import program_from_text
from tests.unit.choosing.random_programs import programs

TABLE = registered_expansions()


def options_of(program: Program, pes: int, memory: Memory | None = None) -> tuple[OptionTable, Space, Sketches]:
    """Return the options of the operators of a program in four numbers of pieces and those that fit."""
    pieces = (None, pes, 4 * pes, 1)
    space = space_of(known_alternatives(program, TABLE), TABLE, (), [Granularity(pieces=each) for each in pieces], pes)
    sketches = Sketches(OutlinedModel(program, TABLE).outline, Volumes.EXACT, pes, Effort.QUICK, memory)
    table = OptionTable(space, sketches)
    for choices in space.covering():
        outline = sketches.outline(choices)
        if outline is not None:
            table.add(outline)
    return table, space, sketches


@given(programs(), st.sampled_from([2, 16]))
@examples(10)
def test_the_best_start_counts(program: Program, pes: int) -> None:
    table, space, sketches = options_of(program, pes)
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


@given(programs(), st.sampled_from([2, 16]), st.sampled_from([64, 10**6]), st.sampled_from([0.25, 4.0]))
@examples(10)
def test_what_is_excluded_takes_no_less_than_is_said_and_would_hardly_lower_a_front(
    program: Program, pes: int, sram_bytes: float, bytes_per_cycle: float
) -> None:
    memory = Memory(sram_bytes, bytes_per_cycle)
    found = options_of(program, pes, memory)[0].options()
    with mock.patch.object(operator_options, "_is_excluded", return_value=False):
        every = options_of(program, pes, memory)[0].options()

    for some, both in zip(found, every, strict=True):
        assert not both.excluded
        alone = {(option.expansions, option.pieces, option.rest): option.alone for option in both.known}
        for option in some.excluded:
            least, found_alone = option.alone, alone[option.expansions, option.pieces, option.rest]
            assert least.tasks == found_alone.tasks
            assert least.work_cycles <= found_alone.work_cycles
            assert least.cycles <= found_alone.cycles
            assert least.memory_cycles <= found_alone.memory_cycles
        assert {option.expansions for option in some.known} == {option.expansions for option in both.known}
        for cost in (time_alone, cycles_alone, both_alone, mostly_cycles):
            front = [(each.alone.tasks, cost(each.alone)) for each in some.options(cost)]
            for option in some.excluded:
                taken = alone[option.expansions, option.pieces, option.rest]
                tasks, takes = taken.tasks, cost(taken)
                slack = taken.cycles // 100 + taken.memory_cycles // 100
                assert any(fewer <= tasks and less <= takes + slack for fewer, less in front)


def test_of_what_waits_for_memory_no_more_tasks_are_made_than_it_has_time_for() -> None:
    """A product that DRAM feeds an eighth of a byte in a cycle: few tasks are done as soon as many."""
    program = program_from_text("g (float[64,8] x, float[8,16] w) => (float[64,16] y) { y = MatMul(x, w) }")
    table, space, sketches = options_of(program, 16, Memory(10**6, 0.125))
    operators = table.options()
    starts = [fastest_options(operators, 10**6, cycles_alone)]

    many, *_ = Descent(operators, sketches, space, 10**6).best(starts, [])
    with mock.patch.object(descent, "_MANY_TASKS", 1):
        few, *_ = Descent(operators, sketches, space, 10**6).best(starts, [])
    with mock.patch.object(descent, "_MANY_TASKS", many.estimate.tasks + 1):
        as_before, *_ = Descent(operators, sketches, space, 10**6).best(starts, [])

    assert many.estimate.waits_for_dram
    assert few.estimate.tasks < many.estimate.tasks
    assert few.estimate.time <= many.estimate.time
    assert as_before.estimate.tasks == many.estimate.tasks


@given(programs(), st.sampled_from([2, 16]), st.sampled_from([64, 10**6]), st.sampled_from([0.25, 64.0]))
@examples(10)
def test_fewer_tasks_cost_little_time(program: Program, pes: int, sram_bytes: float, bytes_per_cycle: float) -> None:
    table, space, sketches = options_of(program, pes, Memory(sram_bytes, bytes_per_cycle))
    operators = table.options()
    starts = [fastest_options(operators, 10**6, cost) for cost in (time_alone, cycles_alone)]

    many, *_ = Descent(operators, sketches, space, 10**6).best(starts, [])
    with mock.patch.object(descent, "_MANY_TASKS", 1):
        few, *_ = Descent(operators, sketches, space, 10**6).best(starts, [])

    fewer, longer = many.estimate.tasks - few.estimate.tasks, few.estimate.time - many.estimate.time
    assert fewer > 0 or few.candidate == many.candidate
    assert longer * many.estimate.tasks * 150 <= fewer * many.estimate.time


def test_what_waits_for_tasks_gets_fewer_if_that_costs_hardly_any_time() -> None:
    """Of 400 rows 8 elements do 50 each, in single tasks as soon as one after another."""
    program = program_from_text("g (float[400,8] x, float[8,16] w) => (float[400,16] y) { y = MatMul(x, w) }")
    table, space, sketches = options_of(program, 8, Memory(10**6, 64.0))
    with mock.patch.object(operator_options, "_is_excluded", return_value=False):
        (product,) = operators = table.options()
    starts = [(max(product.known, key=lambda option: option.alone.tasks),)]

    with mock.patch.object(descent, "_ESTIMATED_SCOPES", 0):  # nothing but what gives up tasks
        (many,) = Descent(operators, sketches, space, 10**6).best(starts, [])
        with mock.patch.object(descent, "_MANY_TASKS", 1):
            few, *_ = Descent(operators, sketches, space, 10**6).best(starts, [])

    assert not many.estimate.waits_for_dram
    assert few.estimate.tasks < many.estimate.tasks
    assert few.estimate.time <= many.estimate.time * 1.01


def test_options_of_a_choice_are_estimated_even_if_they_were_excluded() -> None:
    program = program_from_text("g (float[64,8] x, float[8,16] w) => (float[64,16] y) { y = MatMul(x, w) }")
    table, space, sketches = options_of(program, 16, Memory(10**6, 0.125))
    operators = table.options()
    (product,) = operators
    excluded = product.excluded[0]

    (found,) = table.including(operators, sketches.required(candidate_of(operators, [excluded], space)))
    again = table.including((found,), sketches.required(candidate_of(operators, [product.known[0]], space)))

    assert found.excluded == product.excluded[1:]
    assert found.known[:-1] == product.known
    assert (found.known[-1].expansions, found.known[-1].pieces) == (excluded.expansions, excluded.pieces)
    assert found.known[-1].alone.families  # of an estimate
    assert again == (found,)
