"""The automatic choice: expansions and granularities of all operators together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dfcompile.choosing.candidate import Space
from dfcompile.choosing.operator_choice import candidate_of, fastest_options
from dfcompile.choosing.operator_options import OperatorOption, OperatorOptions, OptionTable
from dfcompile.choosing.scoring import Scores
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.options import Volumes

_FEWEST_TASKS = 2**15  # that a choice may have, however few processing elements there are
_TASKS_PER_ELEMENT = 48
_ESTIMATED_SCOPES = 2_000  # in changes of single operators: some tenths of a second
_SCORED_TASKS = 12_000  # of uniform choices that are compared by their schedules: about a second

@dataclass(frozen=True, slots=True, eq=False)
class Rival:
    """A uniform choice beside the one that was taken.

    Attributes:
        sketch: of it.
        score: of its schedule; ``None`` where that was not needed or too expensive.
        is_excluded: whether it is proved that no schedule of it is better.
    """

    sketch: Sketch
    score: tuple[float, ...] | None
    is_excluded: bool


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """What was chosen for a model on a number of processing elements.

    Attributes:
        sketch: of the choice.
        score: of its schedule.
        rivals: the uniform choices.
        operators: of the model, with the options of each shape.
    """

    sketch: Sketch
    score: tuple[float, ...]
    rivals: tuple[Rival, ...]
    operators: tuple[OperatorOptions, ...]


def select(space: Space, sketches: Sketches, volumes: Volumes, pes: int, scores: Scores) -> Selection:
    """Choose expansions and granularities for all operators of a model together.

    Each operator gets the option that is fastest alone, those of one shape the same one; single operators are changed as
    long as the estimate of the whole gets shorter. Uniform choices, one expansion for each type and one granularity for
    all, are compared with that, the most promising first, unless a bound says that they are no better. The best of all
    that were compared by their schedules is taken, so none of these is better than the choice.

    Args:
        space: all that may be chosen.
        sketches: of the model on that many processing elements.
        volumes: of edges.
        pes: number of processing elements P.
        scores: say what is to be small.

    Raises:
        UserError: no choice for the whole model is possible.
    """
    uniform = list(_distinct(sketches.of(candidate) for candidate in space.uniform()))
    most = max(_FEWEST_TASKS, _TASKS_PER_ELEMENT * pes, *(each.estimate.tasks for each in uniform[:1]))
    operators = _operators(space, sketches, volumes, pes)
    own = _improved(space, sketches, operators, most)
    uniform.sort(key=lambda sketch: sketch.estimate.cycles)
    first, *others = [*own, *uniform]
    chosen, least = first, scores.of(first)
    rivals, left = [], _SCORED_TASKS
    for sketch in others:
        excluded = scores.excludes(sketch, least)
        found = None
        if not excluded and sketch.estimate.tasks <= left:
            left -= sketch.estimate.tasks
            found = scores.of(sketch)
            if found < least:
                chosen, least = sketch, found
        rivals.append(Rival(sketch, found, excluded))
    return Selection(chosen, least, tuple(rivals[-len(uniform) :]), operators)


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
    table = OptionTable((*space.onnx, *space.canonical), volumes, pes)
    for choices in space.covering():
        outline = sketches.outline(choices)
        if outline is not None:
            table.add(outline)
    return table.options(tuple(dict.fromkeys(granularity.pieces for granularity in space.granularities)))


def _improved(
    space: Space, sketches: Sketches, operators: Sequence[OperatorOptions], most_tasks: int
) -> list[Sketch]:
    """Return the choice of the options that are fastest alone, and what single changes of it make of it, best first."""
    options = list(fastest_options(operators, most_tasks))

    def sketch_of(changed: Sequence[OperatorOption]) -> Sketch | None:
        return sketches.of(candidate_of(operators, changed, space.fixed))

    alone = sketch_of(options)
    if alone is None:
        return []
    best = alone
    tries = _ESTIMATED_SCOPES // max(len(alone.outline.graph.scopes), 1)
    for _, (number, option) in zip(range(tries), _changes(operators, tuple(options)), strict=False):
        changed = [*options[:number], option, *options[number + 1 :]]
        found = sketch_of(changed)
        if found is not None and found.estimate.cycles < best.estimate.cycles and found.estimate.tasks <= most_tasks:
            best, options = found, changed
    return [best] if best is alone else [best, alone]


def _changes(
    operators: Sequence[OperatorOptions], options: Sequence[OperatorOption]
) -> Iterator[tuple[int, OperatorOption]]:
    """Yield other options, of the operators that take longest first, those most like the chosen one first."""
    longest = sorted(
        range(len(operators)), key=lambda number: -options[number].alone.cycles * len(operators[number].origins)
    )
    for number in longest:
        taken = options[number]
        others = (option for option in operators[number].options if option != taken)
        for option in sorted(others, key=lambda other: abs(other.alone.cycles - taken.alone.cycles)):
            yield number, option
