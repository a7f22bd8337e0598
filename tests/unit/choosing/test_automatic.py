"""The automatic choice: what is scheduled, what is left out, and what is said of it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing.candidate import granularities
from dfcompile.choosing.estimate import Memory
from dfcompile.choosing.scoring import QUICK, THOROUGH, UNBOUNDED, Limits, Machine, Makespans, OnMachine, Score
from dfcompile.choosing.search import GLANCED_SCOPES
from dfcompile.choosing.sketches import Sketch
from dfcompile.driver import explore
from dfcompile.errors import UserError
from dfcompile.frontend import Program
from dfcompile.lowering.alternatives.outlined import Outline
from dfcompile.options import Choice, Effort, ExpansionRule, Volumes
from dfcompile.records import replace
from dfcompile.report.summary import summarize
from dfcompile.report.tables import report_table
from dfcompile.scheduler import ScheduleOptions
from dfcompile.scheduler.streaming_schedule import TimedSchedule
from tests.asked_options import asked
from tests.examples import examples
from tests.onnx_text import model_from_text, program_from_text
from tests.unit.choosing.automatic_choices import automatic, convolutions, least_makespan
from tests.unit.choosing.random_programs import programs


def test_a_rival_is_scheduled_however_many_tasks_a_choice_for_few_elements_has() -> None:
    """SqueezeNet on 16 elements took 4 % more than the best uniform choice, which had been left to its estimate."""
    assert THOROUGH.tasks >= 2 * THOROUGH.most_tasks(16)


def test_fewer_pieces_are_looked_at_where_there_would_be_too_many() -> None:
    """GRUs in 400 scopes took twice as long on 512 elements as on 64: 512 pieces of each were too many tasks.

    DenseNet-121 took longer on 2,048 elements than on 512: 128 pieces of each scope left few tasks for the large ones.
    """
    assert [each.pieces for each in granularities(512, 400, 28_000)] == [None, 512, 2048, 1024, 64, 16]
    assert [each.pieces for each in granularities(64, 400, 28_000)] == [None, 64, 256, 128]
    assert [each.pieces for each in granularities(64, 10**6, 28_000)] == [None, 64, 256, 128, 1]
    assert [each.pieces for each in granularities(64, 100, 28_000)] == [None, 64, 256]


class Counted(Makespans):
    """Makespans that remember what was scheduled."""

    def __init__(self, options: ScheduleOptions, machine: Machine | None = None) -> None:
        super().__init__(Volumes.EXACT, options, lambda dag: dag, machine=machine)
        self.scheduled: list[Sketch] = []

    def of(self, sketch: Sketch) -> Score:
        self.scheduled.append(sketch)
        return super().of(sketch)


@given(programs(), st.sampled_from([2, 5, 16]))
@examples(8)
def test_nothing_is_scheduled_that_a_plan_excludes(program: Program, pes: int) -> None:
    scores = Counted(ScheduleOptions(pes, "best", effort=Effort.QUICK))

    found = automatic(program).on(ScheduleOptions(pes, "best", effort=Effort.QUICK), scores)

    assert found.score is not None
    assert len({sketch.candidate for sketch in scores.scheduled}) == len(scores.scheduled)
    assert all(max(scores.bound(each), scores.planned(each)) <= found.score for each in scores.scheduled)
    some = found.rivals[:: 1 + len(found.rivals) // 16]
    assert all(scores.of(rival.sketch) >= found.score for rival in some)


def test_no_rival_is_scheduled_where_dram_takes_as_long_for_all() -> None:
    program = program_from_text("g (float[64,8] x, float[8,16] w) => (float[64,16] y) { y = MatMul(x, w) }")
    options = ScheduleOptions(4, "best", effort=Effort.QUICK)
    for slower, count in ((1, 1), (2, 2)):  # twice as long as what has to be moved: others may be faster

        def moving(_: CanonicalDag, found: TimedSchedule, times: int = slower) -> OnMachine:
            return OnMachine(times * 8 * 4 * (64 * 8 + 8 * 16 + 64 * 16), found.schedule, {})

        scores = Counted(options, Machine(Memory(10**6, 0.125), moving))
        found = automatic(program).on(options, scores)

        assert min(len(scores.scheduled), 2) == count
        assert all(rival.is_excluded for rival in found.rivals) == (count == 1)


class Misleading(Counted):
    """Makespans of which no plan tells anything, and bounds the less the longer a choice takes by its estimate."""

    def bound(self, sketch: Sketch) -> Score:
        return (-sketch.estimate.cycles,)

    def planned(self, sketch: Sketch) -> Score:  # noqa: ARG002  # of a protocol
        return UNBOUNDED


def test_what_no_plan_tells_of_is_scheduled_in_the_order_of_estimates() -> None:
    """Of an attention block a choice of low bound and high estimate took the time that the best one needed."""
    scores = Misleading(ScheduleOptions(4, "best", effort=Effort.QUICK))

    automatic(perceptrons()).on(ScheduleOptions(4, "best", effort=Effort.QUICK), scores)

    cycles = [sketch.estimate.cycles for sketch in scores.scheduled]
    assert len(set(cycles)) > 1
    assert cycles == sorted(cycles)


@given(programs(), st.sampled_from([1, 2, 5]))
@examples(8)
def test_no_choice_is_left_whose_estimate_is_about_as_short(program: Program, pes: int) -> None:
    """BERT on 2,048 elements took three times as long as under one uniform choice, of 900,000 tasks."""
    options = ScheduleOptions(pes, "best", effort=Effort.QUICK)
    few = replace(automatic(program), limits=Limits(0, 2_000, own_tasks=0))
    some = replace(few, limits=replace(few.limits, promising_tasks=10**6)).on(options)

    assert some.score is not None
    assert few.on(options).score is not None
    assert some.score <= few.on(options).score  # type: ignore[operator]  # both are there
    left = [rival.sketch.estimate.cycles for rival in some.rivals if rival.score is None and not rival.is_excluded]
    assert all(cycles >= 1.05 * some.score[0] for cycles in left)


@given(programs(), st.sampled_from([1, 2, 5]))
@examples(8)
def test_no_choice_is_left_whose_estimate_is_shorter(program: Program, pes: int) -> None:
    """ShuffleNet on 2,048 elements took a twentieth longer than under a uniform choice of 1.6 million tasks."""
    options = ScheduleOptions(pes, "best", effort=Effort.QUICK)
    found = replace(automatic(program), limits=Limits(0, 2_000, shorter_tasks=10**6, own_tasks=0)).on(options)

    assert found.score is not None
    left = [rival.sketch.estimate.cycles for rival in found.rivals if rival.score is None and not rival.is_excluded]
    assert all(cycles >= found.score[0] for cycles in left)


def test_slow_schedules_are_made_of_fewer_tasks() -> None:
    """Gangs of 55,000 tasks took four times as long with the default effort as with the quick one."""
    slow = THOROUGH.of_slow_schedules()

    assert slow.most_tasks(2048) < THOROUGH.most_tasks(2048)
    assert slow.tasks < THOROUGH.tasks
    assert not slow.promising_tasks
    assert not slow.shorter_tasks
    assert QUICK.of_slow_schedules().tasks == QUICK.tasks


@given(programs(), st.sampled_from([2, 16]))
@examples(8)
def test_the_published_choice_is_no_better_however_large_it_is(program: Program, pes: int) -> None:
    """Where nothing else can be scheduled the published choice is, if it may be better by one part in 200."""
    options = ScheduleOptions(pes, "best", effort=Effort.QUICK)

    found = replace(automatic(program), limits=Limits(0, 0)).on(options)

    candidate = found.sketch.candidate
    published = least_makespan(program, (), (Granularity(),), options)
    assert found.unseen > 0
    assert 199 * least_makespan(program, candidate.choices, (candidate.granularity,), options) <= 200 * published


def perceptrons() -> Program:
    """A wide layer, then a narrow one: their products have their parallelism in different loops."""
    return program_from_text(
        "g (float[1,60] x) => (float[1,4] z) { y = MatMul(x, v) r = Relu(y) z = MatMul(r, w) }",
        v=np.ones((60, 90), np.float32),
        w=np.ones((90, 4), np.float32),
    )


def test_rules_limit_what_is_chosen_from() -> None:
    options = ScheduleOptions(16, "best", effort=Effort.QUICK)
    rules = (ExpansionRule("Conv", ("im2col",)), ExpansionRule("MatMul", ("mv", "lmv")))

    found = automatic(convolutions(), rules, Granularity(max_tasks=4)).on(options).sketch

    names = {(each.op_type, each.name) for each in found.outline.chosen}
    assert names & {("Conv", "im2col"), ("Conv", "direct")} == {("Conv", "im2col")}
    assert not names & {("MatMul", "op"), ("MatMul", "ip")}
    assert found.candidate.granularity == Granularity(max_tasks=4)


@given(programs())
@examples(30)
def test_a_model_has_no_fewer_scopes_than_its_operators_have_at_least(program: Program) -> None:
    choice = automatic(program)

    for choices in ((), (Choice("Conv", "direct"), Choice("MatMul", "ip"))):
        assert choice.known.least_scopes <= len(choice.outline_of(choices).graph.scopes)


def test_a_large_model_is_not_outlined_for_a_glance() -> None:
    relus = " ".join(f"x{number} = Relu(x{number - 1})" for number in range(1, GLANCED_SCOPES + 1))
    program = program_from_text(f"g (float[4] x0) => (float[4] z) {{ {relus} z = Relu(x{GLANCED_SCOPES}) }}")

    def never(choices: Sequence[Choice]) -> Outline:
        raise AssertionError(choices)

    assert replace(automatic(program), outline_of=never).glance(16) is None


def test_operators_of_one_shape_are_looked_at_once() -> None:
    program = program_from_text(
        "g (float[1,8] x) => (float[1,8] z) { y = MatMul(x, v) r = Relu(y) z = MatMul(r, w) }",
        v=np.ones((8, 8), np.float32),
        w=np.ones((8, 8), np.float32),
    )

    found = automatic(program).on(ScheduleOptions(4, "best", effort=Effort.QUICK))

    assert [each.origins for each in found.operators if len(each.origins) > 1] == [("MatMul_0", "MatMul_1")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    target = tmp_path / "two.onnx"
    text = "g (float[1,10] x) => (float[1,3] z) { y = MatMul(x, v) r = Relu(y) z = MatMul(r, w) }"
    onnx.save(model_from_text(text, v=np.ones((10, 12), np.float32), w=np.ones((12, 3), np.float32)), target)
    return target


def test_report_says_what_was_chosen_and_the_words_that_give_the_same(file: Path) -> None:
    quick = {"partition": "best", "effort": Effort.QUICK}
    chosen = summarize(explore(asked(file, (8, 64), "auto", **quick)))

    for result in chosen.results:
        found = result.automatic
        assert found is not None
        assert found.is_taken
        assert found.rivals is not None
        assert found.rivals.scheduled + found.rivals.excluded == 18  # six expansions, three granularities
        named = asked(file, (result.pes,), *found.expand, granularity=found.granularity, **quick)
        again = summarize(explore(named)).results[0]
        assert again.schedule.makespan_cycles == result.schedule.makespan_cycles
        assert again.schedule.tasks == result.schedule.tasks
        assert result.over_expansions is not None
        assert result.schedule.makespan_cycles is not None
        assert result.over_expansions.lower_bound_cycles <= result.schedule.makespan_cycles
        assert result.mapping is not None


def test_hint_says_what_to_change_and_what_it_brings(file: Path) -> None:
    report = summarize(explore(asked(file, (16,))))

    found = report.results[0].automatic

    assert found is not None
    assert not found.is_taken
    assert f"--expand auto may take {found.estimated_cycles:,} cycles instead of" in " ".join(
        report_table(report, 400, verbose=False, show=("operators",)).split()
    )


def test_granularity_of_an_operator_that_is_not_there_is_an_error(file: Path) -> None:
    with pytest.raises(UserError, match=r"granularity of 'MatMul_7': no operator .*did you mean 'MatMul_"):
        explore(asked(file, (8,), granularity="MatMul_7:pieces=4"))


def test_more_is_not_promised_where_the_objective_compares_as_many_anyway(file: Path) -> None:
    options = asked(file, (8,), "quick", objective="energy")

    found = summarize(explore(options)).results[0].automatic

    assert found is not None
    assert found.rivals is not None
    assert not found.rivals.is_quick


def test_expansions_that_take_no_operator_are_not_tried() -> None:
    """winograd4 takes no window wider than three; here all are, and a rule that names it limits the others."""
    limited = automatic(convolutions(), (ExpansionRule("Conv", ("direct", "winograd4")),))

    assert "winograd4" not in automatic(convolutions())._space(16, THOROUGH).onnx["Conv"]
    assert limited._space(16, THOROUGH).onnx["Conv"] == ("direct", "winograd4")
    assert limited._space(16, THOROUGH).single["Conv", "winograd4"][0].name == "direct"


def test_a_glance_has_every_expansion_in_few_choices() -> None:
    space = automatic(convolutions())._space(16, THOROUGH)
    every = {
        (op_type, name) for types in (space.onnx, space.canonical) for op_type, names in types.items() for name in names
    }

    found = list(space.glancing())

    assert {(choice.op_type, choice.name) for choices in found for choice in choices if not choice.origin} == every
    assert len(found) == max(len(names) for types in (space.onnx, space.canonical) for names in types.values())
    assert len(found) < len(list(space.covering()))


def test_of_a_model_without_tasks_there_is_nothing_to_choose(tmp_path: Path) -> None:
    """Its only operator has no elements: it takes no time, memory included."""
    file = tmp_path / "nothing.onnx"
    onnx.save(model_from_text("g (float[0,3] x) => (float[0,3] y) { y = Atanh(x) }"), file)
    (result,) = summarize(explore(asked(file, (4,), "quick"))).results

    assert result.mapping is not None
    assert (result.makespan_cycles, result.mapping.time_s) == (0, 0.0)
