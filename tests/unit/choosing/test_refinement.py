"""Of a small model every number of pieces is looked at: what single operators and usual numbers do not tell."""

import numpy as np
import pytest

from dfcompile.canonical_dag.extraction import Granularity
from dfcompile.choosing import refinement
from dfcompile.choosing.candidate import Candidate, granularities, space_of
from dfcompile.choosing.estimate import Memory
from dfcompile.choosing.refinement import Refinement
from dfcompile.choosing.scoring import NOTHING, Score, Scores
from dfcompile.choosing.search import Selection
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.frontend import Program
from dfcompile.lowering import known_alternatives
from dfcompile.lowering.alternatives.outlined import OutlinedModel
from dfcompile.options import Effort, Volumes
from dfcompile.scheduler import ScheduleOptions
from tests.onnx_text import program_from_text
from tests.unit.choosing.automatic_choices import TABLE, automatic, least_makespan

OPTIONS = ScheduleOptions(2, "best", effort=Effort.QUICK)


def sum_of_rows() -> Program:
    """A task that adds 128 streams takes a cycle, one that adds 128 elements takes 128."""
    return program_from_text(
        "g (float[16,8] x) => (float[1,1] y) { n = LayerNormalization(x, w) y = ReduceSum(n) }",
        w=np.ones(8, np.float32),
    )


def chosen(granularity: Granularity | None = None) -> Selection:
    return automatic(sum_of_rows(), granularity=granularity).on(OPTIONS)


def test_all_numbers_of_pieces_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    found = chosen()
    monkeypatch.setattr(refinement, "_TRIES", 0)
    before = chosen()

    assert found.score is not None
    assert before.score is not None
    assert found.score < before.score
    assert found.sketch.candidate.granularity.pieces == 128


def test_the_score_is_that_of_the_choice_made_anew() -> None:
    found = chosen()
    candidate = found.sketch.candidate

    assert found.score is not None
    assert found.score[0] == least_makespan(sum_of_rows(), candidate.choices, (candidate.granularity,), OPTIONS)
    assert found.made is not None
    assert found.made.timed.schedule.makespan_cycles == found.score[0]


def test_pieces_that_the_user_wants_stay() -> None:
    assert chosen(Granularity(pieces=2)).sketch.candidate.granularity == Granularity(pieces=2)


def test_pieces_that_suit_what_is_best_for_each_operator_alone_are_looked_at() -> None:
    program = program_from_text(
        "g (float[2,9] x) => (float[2,1] y) { n = LayerNormalization(x, w) s = Softmax(n) y = MatMul(s, v) }",
        w=np.ones(9, np.float32),
        v=np.ones((9, 1), np.float32),
    )
    found = automatic(program).on(ScheduleOptions(1, "best", effort=Effort.QUICK))

    # Uniform choices take 148 cycles, and no change of a single operator of the best one is better.
    assert found.score is not None
    assert found.score[0] == 132


def test_numbers_of_pieces_and_of_parts_that_give_the_same_tasks_are_looked_at_once() -> None:
    program = program_from_text(
        "g (float[4,11] x) => (float[1,1] y) { p = MatMul(x, w) m = ReduceMax(p, columns) y = Relu(m) }",
        w=np.ones((11, 1), np.float32),
        columns=np.array([0]),
    )
    found = automatic(program).on(ScheduleOptions(12, "best", effort=Effort.QUICK))

    # Of 126 ways to lower and divide it the best takes 8 cycles.
    assert found.score is not None
    assert found.score[0] == 8


def test_what_is_as_fast_as_the_best_in_equally_many_pieces_is_changed_as_well() -> None:
    program = program_from_text(
        "g (float[1,39] x) => (float[1,1] y) { n = LayerNormalization(x, w) y = ReduceSum(n, rows) }",
        w=np.ones(39, np.float32),
        rows=np.array([1]),
    )
    found = automatic(program).on(ScheduleOptions(12, "best", effort=Effort.QUICK))

    # Two choices take 27 cycles; the one with smaller FIFOs differs from those of 25 in several operators.
    assert found.score is not None
    assert found.score[0] == 25


def test_what_is_nearly_as_fast_as_the_best_is_changed_as_well() -> None:
    program = program_from_text(
        "g (float[2,40] x) => (float[2,1] y) { n = LayerNormalization(x, w) s = Softmax(n) y = MatMul(s, v) }",
        w=np.ones(40, np.float32),
        v=np.ones((40, 1), np.float32),
    )
    found = automatic(program).on(ScheduleOptions(12, "best", effort=Effort.QUICK))

    # With FIFOs of two elements 63 cycles are found, two changes away from what takes 65.
    assert found.score is not None
    assert found.score[0] <= 63


class Estimates(Scores):
    """Choices are as good as their estimates; notes those that are asked for."""

    limits = NOTHING

    def __init__(self) -> None:
        self.asked = list[Candidate]()

    def of(self, sketch: Sketch) -> Score:
        self.asked.append(sketch.candidate)
        return (sketch.estimate.time,)


PROGRAM = program_from_text(
    "g (float[16,36] x) => (float[1,1] y) { n = LayerNormalization(x, w) y = ReduceSum(n) }", w=np.ones(36, np.float32)
)
OUTLINES = OutlinedModel(PROGRAM, TABLE)


def refined(scores: Estimates, pes: int = 12, earlier: Refinement | None = None) -> tuple[Score, Refinement]:
    """Return the score of what becomes of the published choice, and how it was found."""
    sketches = Sketches(OUTLINES.outline, Volumes.EXACT, pes, Effort.QUICK, Memory(96, 4.0))
    known = known_alternatives(PROGRAM, TABLE)
    space = space_of(known, TABLE, (), granularities(pes), pes, has_all_values=True)
    declared = sketches.required(next(space.uniform()))
    before = Selection(declared, scores.of(declared), (), (), None, {}, NOTHING)
    refinement = Refinement(space, sketches, scores, earlier)
    after = refinement.better(before, 0)
    assert after.score is not None
    return after.score, refinement


def test_pieces_that_stream_to_as_many_parts_of_a_sum_are_looked_at() -> None:
    score, _ = refined(Estimates())

    # Published it takes 2,385 cycles. Four pieces alone wait for all of what is written and read, four parts alone for
    # the one task before them.
    assert score[0] < 2000


def test_what_was_scheduled_on_other_numbers_of_elements_is_not_scheduled_again() -> None:
    """Pieces for 12 elements may give the tasks of pieces for 6."""
    first, again, afterwards = Estimates(), Estimates(), Estimates()
    _, earlier = refined(first)
    refined(again, 6)
    refined(afterwards, 6, earlier)

    assert set(again.asked[1:]) & set(first.asked[1:])
    assert not set(afterwards.asked[1:]) & set(first.asked[1:])


def test_what_was_changed_before_is_not_changed_again_but_others() -> None:
    _, earlier = refined(Estimates())
    before = set(earlier.changed)
    _, again = refined(Estimates())
    _, afterwards = refined(Estimates(), earlier=earlier)

    assert again.changed == before
    assert afterwards.changed > before


def test_more_is_tried_of_everything_once_a_little_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    little, more = Estimates(), Estimates()
    refined(more)
    monkeypatch.setattr(refinement, "_IN_VAIN", refinement._IN_VAIN[:1])
    _, stopped = refined(little)

    assert stopped._left > 0  # it was not stopped by the number of tries
    assert more.asked[: len(little.asked)] == little.asked
    assert len(more.asked) > len(little.asked)
