"""The automatic choice: expansions and granularities of all operators together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from dfcompile.choosing.candidate import Candidate, Space
from dfcompile.choosing.descent import Descent
from dfcompile.choosing.operator_choice import candidate_of, fastest_options
from dfcompile.choosing.operator_options import OperatorOptions, OptionTable
from dfcompile.choosing.scoring import MadeSchedule, Score, Scores
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.options import Volumes

FEWEST_TASKS = 28_000  # that a choice may have, however few processing elements there are: quickly scheduled
_TASKS_PER_ELEMENT = 48
GLANCED_SCOPES = 300  # of a model: a second


@dataclass(frozen=True, slots=True, eq=False)
class Rival:
    """A uniform choice beside the one that was taken.

    Attributes:
        sketch: of it.
        score: of its schedule; ``None`` where that was not needed or too expensive.
        is_excluded: whether it is proved that no schedule of it is better.
    """

    sketch: Sketch
    score: Score | None
    is_excluded: bool


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What was chosen for a model on a number of processing elements.

    Attributes:
        sketch: of the choice.
        score: of its schedule; ``None`` where no rival was scheduled.
        rivals: the uniform choices.
        operators: of the model, with the options of each shape.
        default: the published expansions with the tasks that they declare; ``None`` if there are too many of these.
        expansions: chosen, by operator and type, of types that offer several.
        made: the schedule of the choice, if it was compared by that.
        is_taken: whether the model is lowered so, or it is said only what it would bring.
    """

    sketch: Sketch
    score: Score | None
    rivals: tuple[Rival, ...]
    operators: tuple[OperatorOptions, ...]
    default: Sketch | None
    expansions: Mapping[str, Mapping[str, str]]
    made: MadeSchedule | None = None
    is_taken: bool = True


def select(space: Space, sketches: Sketches, volumes: Volumes, pes: int, scores: Scores) -> Selection:
    """Choose expansions and granularities for all operators of a model together.

    Each operator gets the option that is fastest alone, those of one shape the same. From that, or from the best
    uniform choice, one expansion for each type and one granularity for all, operators are changed where the estimate of
    the whole gets shorter. Uniform choices are compared with the result, unless a bound or a plan says that they are no
    better. The best of all that were compared by their schedules is taken, so none of these is better
    than the choice.

    Args:
        space: all that may be chosen.
        sketches: of the model on that many processing elements.
        volumes: of edges.
        pes: number of processing elements P.
        scores: say what is to be small.

    Raises:
        UserError: no choice for the whole model is possible.
    """
    operators = _operators(space, sketches, volumes, pes)
    default = sketches.of(next(space.uniform()))
    most = max(FEWEST_TASKS, _TASKS_PER_ELEMENT * pes)
    affordable = (each for each in space.uniform() if _least_tasks(operators, each) <= most)
    distinct = _distinct(map(sketches.of, affordable))
    uniform = sorted(distinct, key=lambda sketch: (sketch.estimate.tasks > most, sketch.estimate.cycles))
    descent = Descent(operators, sketches, space, most)
    own = descent.best(fastest_options(operators, most), [each for each in uniform if each.estimate.tasks <= most][:1])
    chosen, least, rivals = _compared([*own, *uniform], scores)
    return Selection(
        chosen, least, rivals[-len(uniform) :], operators, default, space.expansions_of(chosen.outline.chosen)
    )


def glance(space: Space, sketches: Sketches, volumes: Volumes, pes: int) -> Selection | None:
    """Return what is fastest for each operator alone, without schedules; ``None`` of a large model, and without any.

    See `select`.
    """
    default = sketches.of(next(space.uniform()))
    if default is None or len(default.outline.graph.scopes) > GLANCED_SCOPES:
        return None
    operators = _operators(space, sketches, volumes, pes)
    options = fastest_options(operators, max(FEWEST_TASKS, _TASKS_PER_ELEMENT * pes))
    found = sketches.of(candidate_of(operators, options, space))
    if found is None:
        return None
    expansions = space.expansions_of(found.outline.chosen)
    return Selection(found, None, (), operators, default, expansions, is_taken=False)


def _least_tasks(operators: Sequence[OperatorOptions], candidate: Candidate) -> int:
    """Return about how many tasks a choice has, at least: of each scope that an operator has as many as pieces."""
    pieces = candidate.granularity.pieces
    return 0 if pieces is None else pieces * sum(len(each.origins) for each in operators) // 2


def _compared(sketches: Sequence[Sketch], scores: Scores) -> tuple[Sketch, Score | None, tuple[Rival, ...]]:
    """Return the best of those that there is time to schedule; the first, if that is for none of the others.

    Always the choice is looked at that may be best by what is known of it, from a bound to a plan to a schedule: so
    none is scheduled that a plan excludes.

    Returns:
        The choice, its score if that was needed, and the others.
    """
    first, *others = sketches
    left = scores.most_tasks - first.estimate.tasks
    if all(each.estimate.tasks > left for each in others):
        return first, None, tuple(Rival(each, None, is_excluded=False) for each in others)
    known = [scores.bound(each) for each in sketches]
    heap = [(bound, number, False) for number, bound in enumerate(known)]
    heapify(heap)
    scored: dict[int, Score] = {}
    chosen = 0
    while heap and not (scored and heap[0][0] > scored[chosen]):
        _, number, is_planned = heappop(heap)
        sketch = sketches[number]
        tasks = sketch.estimate.tasks if number else 0  # the first has its share
        if tasks > left:
            continue
        if not is_planned:
            known[number] = max(known[number], scores.planned(sketch))
            heappush(heap, (known[number], number, True))
            continue
        left -= tasks
        scored[number] = scores.of(sketch)
        chosen = min(scored, key=lambda each: (scored[each], each))
    least = scored[chosen]
    rivals = (
        Rival(each, scored.get(number), is_excluded=number not in scored and known[number] > least)
        for number, each in enumerate(others, start=1)
    )
    return sketches[chosen], least, tuple(rivals)


def _distinct(sketches: Iterator[Sketch | None]) -> Iterator[Sketch]:
    """Yield sketches of different lowerings."""
    seen = set()
    for sketch in sketches:
        if sketch is not None:
            key = sketch.outline.chosen, sketch.candidate.granularity
            if key not in seen:
                seen.add(key)
                yield sketch


def _operators(space: Space, sketches: Sketches, volumes: Volumes, pes: int) -> tuple[OperatorOptions, ...]:
    table = OptionTable(space, volumes, pes)
    for choices in space.covering():
        outline = sketches.outline(choices)
        if outline is not None:
            table.add(outline)
    return table.options()
