"""The automatic choice: expansions and granularities of all operators together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import product
from operator import is_

from msgspec import Struct

from dfcompile.choosing.candidate import PIECES_PER_ELEMENT, Candidate, Space
from dfcompile.choosing.descent import Descent, candidate_of, fastest_options
from dfcompile.choosing.operator_options import (
    Cost,
    OperatorOption,
    OperatorOptions,
    OptionTable,
    both_alone,
    cycles_alone,
    mostly_cycles,
    time_alone,
)
from dfcompile.choosing.scoring import NOTHING, ROUNDED, UNBOUNDED, Limits, MadeSchedule, Score, Scores
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.choosing.together import in_more_tasks
from dfcompile.host.stages import counted, work_of
from dfcompile.options import Choice

GLANCED_SCOPES = 60  # of a model: half a second
_WORTH_SCHEDULING = 200  # the published choice is scheduled, however large, if it may be better by one part in so many
_TOO_LONG = 1.05  # estimates of choices of many pieces are up to a twentieth longer than their schedules
_TIMES_FOR_DRAM = 5  # as many tasks may be, where most work is on slices and DRAM takes longer than tasks
_PARTS = (3, 1, 1, 10)  # operators, uniform choices, changes, schedules: about, for what is shown of progress


class Rival(Struct, frozen=True, eq=False):
    """A uniform choice beside the one that was taken.

    Attributes:
        sketch: of it.
        score: of its schedule; ``None`` where that was not needed or too expensive.
        is_excluded: whether it is proved that no schedule of it is better.
    """

    sketch: Sketch
    score: Score | None
    is_excluded: bool


class Selection(Struct, frozen=True, eq=False):
    """What was chosen for a model on a number of processing elements.

    Attributes:
        sketch: of the choice.
        score: of its schedule; ``None`` where no rival was scheduled.
        rivals: the uniform choices.
        limits: to what was compared.
        unseen: uniform choices of which only single operators were estimated: of a large model.
        operators: of the model, with the options of each shape.
        default: the published expansions with the tasks that they declare; ``None`` if there are too many of these.
        expansions: chosen, by operator and type, of types that offer several.
        made: the schedule of the choice, if it was compared by that.
        is_taken: whether the model is lowered so, or it is said only what it would bring.
        is_before_passes: whether it was chosen for the model before passes that change it.
    """

    sketch: Sketch
    score: Score | None
    rivals: tuple[Rival, ...]
    operators: tuple[OperatorOptions, ...]
    default: Sketch | None
    expansions: Mapping[str, Mapping[str, str]]
    limits: Limits
    unseen: int = 0
    made: MadeSchedule | None = None
    is_taken: bool = True
    is_before_passes: bool = False


def select(space: Space, sketches: Sketches, scores: Scores, compared: Limits | None = None) -> Selection:
    """Choose expansions and granularities for all operators of a model together.

    Each operator gets the option that is fastest alone, those of one shape the same. From that, or from the best
    uniform choice, one expansion for each type and one granularity for all, operators are changed where the estimate of
    the whole gets shorter. Uniform choices are compared with the result, unless a bound or a plan says that they are no
    better. The best of all that were compared by their schedules is taken, so none of these is better
    than the choice.

    Args:
        space: all that may be chosen.
        sketches: of the model on a number of processing elements.
        scores: say what is to be small.
        compared: limits to what is compared; ``None``: those of the scores.

    Raises:
        UserError: no choice for the whole model is possible.
    """
    compared = scores.limits if compared is None else compared
    alone, whole, changes, schedules = _PARTS
    with work_of(sum(_PARTS)) as work:
        with work.part(alone):
            table, operators = _operators(space, tuple(space.covering()), sketches)
        default = sketches.of(next(space.uniform()))
        is_in_slices = _is_in_slices(operators)
        limits = compared.in_slices() if is_in_slices else compared
        most = max(limits.most_tasks(sketches.pes), 0 if default is None else default.estimate.tasks)
        largest = max(most, compared.promising_tasks, compared.shorter_tasks)
        affordable = [each for each in space.uniform() if _least_tasks(operators, each) <= largest]
        with work.part(whole):
            distinct, unseen = _sketched(affordable, operators, sketches, compared.scopes)
        uniform = sorted(distinct, key=lambda sketch: (sketch.estimate.tasks > most, sketch.estimate.order))
        with work.part(changes):
            few = [each for each in uniform if each.estimate.tasks <= most][:1]
            for sketch in few:
                operators = table.including(operators, sketch)
            own = _improved(operators, space, sketches, most, few)
            if is_in_slices and own and own[0].estimate.waits_for_dram:
                shorter = max(most, _TIMES_FOR_DRAM * limits.own_tasks)  # so that fewer slices are there at a time
                own = _improved(operators, space, sketches, shorter, own)
            if is_in_slices and own:
                own = (in_more_tasks(own[0], operators, space, sketches, most), *own[1:])
        found = [*own, *uniform] or [sketches.required(next(space.uniform()))]
        with work.part(schedules):
            chosen, least, rivals = _compared(found, default, scores, compared)
    operators = table.including(operators, chosen)
    expansions = space.expansions_of(chosen.outline.chosen)
    uniform_rivals = rivals[max(len(own) - 1, 0) :]
    return Selection(chosen, least, uniform_rivals, operators, default, expansions, compared, unseen)


def _improved(
    operators: tuple[OperatorOptions, ...], space: Space, sketches: Sketches, most: int, known: Sequence[Sketch]
) -> tuple[Sketch, ...]:
    """Return the best choices of at most so many tasks that are found from options alone and from known choices."""
    costs = (time_alone,) if sketches.memory is None else (time_alone, cycles_alone, both_alone, mostly_cycles)
    starts = _fastest(operators, space, (most, min(most, sketches.most_streamed_tasks)), costs)
    return Descent(operators, sketches, space, most).best(starts, known)


def _fastest(
    operators: Sequence[OperatorOptions], space: Space, limits: Iterable[int], costs: Sequence[Cost]
) -> Iterator[tuple[OperatorOption, ...]]:
    """Yield the options that are fastest alone; if tasks are short, those of operators without the fewest pieces too.

    What few pieces of one leave to others, or many pieces bring together, only the estimate of the whole tells; so it
    does whether parts of sums are worth their tasks, and whether tasks or DRAM are what takes longer.

    Args:
        operators: of a model.
        space: all that may be chosen.
        limits: how many tasks all may have together.
        costs: of an operator alone.
    """
    pieces = [granularity.pieces for granularity in space.granularities if granularity.pieces is not None]
    for most, among, cost in product(dict.fromkeys(limits), _with_and_without_parts(operators), costs):
        yield fastest_options(among, most, cost)
        if pieces and min(pieces) * PIECES_PER_ELEMENT[-1] < max(pieces):
            yield fastest_options([each.without(min(pieces)) for each in among], most, cost)


def _with_and_without_parts(operators: Sequence[OperatorOptions]) -> tuple[Sequence[OperatorOptions], ...]:
    plain = [each.plain for each in operators]
    return (operators,) if all(map(is_, plain, operators)) else (operators, plain)


def glance(space: Space, sketches: Sketches) -> Selection | None:
    """Return what is fastest for each operator alone, without schedules; ``None`` of a large model, and without any.

    See `select`. Every expansion of a canonical operator is looked at, but not under each one of what it comes of.
    """
    default = sketches.of(next(space.uniform()))
    if default is None or len(default.outline.graph.scopes) > GLANCED_SCOPES:
        return None
    _, operators = _operators(space, tuple(space.glancing()), sketches)
    most = NOTHING.most_tasks(sketches.pes)
    fastest = [fastest_options(among, most) for among in _with_and_without_parts(operators)]
    made = (sketches.of(candidate_of(operators, options, space)) for options in fastest)
    found = min((each for each in made if each is not None), key=lambda each: each.estimate.cycles, default=None)
    if found is None:
        return None
    expansions = space.expansions_of(found.outline.chosen)
    return Selection(found, None, (), operators, default, expansions, NOTHING, is_taken=False)


def _is_in_slices(operators: Sequence[OperatorOptions]) -> bool:
    """Return whether most of the work of a model is of tasks that wait for slices of arrays, if these are pieces."""
    apart = work = 0
    for each in operators:
        found = max((option.alone for option in each.known), key=lambda alone: alone.apart_cycles)
        apart, work = apart + found.apart_cycles * len(each.origins), work + found.work_cycles * len(each.origins)
    return 2 * apart > work


def _least_tasks(operators: Sequence[OperatorOptions], candidate: Candidate) -> int:
    """Return about how many tasks a choice has, at least: of each scope that an operator has as many as pieces."""
    pieces = candidate.granularity.pieces
    return 0 if pieces is None else pieces * sum(len(each.origins) for each in operators) // 2


def _compared(
    sketches: Sequence[Sketch], default: Sketch | None, scores: Scores, limits: Limits
) -> tuple[Sketch, Score | None, tuple[Rival, ...]]:
    """Return the best of those that there is time to schedule; the first, if that is for none of the others.

    Always the choice is looked at that may be best by what is known of it, from a bound to a plan to a schedule: so
    none is scheduled that a plan excludes. Where the schedule of the choice is needed anyway, there is time for the
    first and for the published one, however large they are; for the latter only if its bound is worth mentioning.

    Returns:
        The choice, its score if that was needed, and the others.
    """
    first, *others = sketches
    published = next((number for number, each in enumerate(sketches) if scores.is_needed and each is default), 0)
    budgets = _Budgets(limits, first.estimate.tasks)
    if not scores.is_needed and not any(budgets.fits(each.estimate.tasks) for each in others):
        return first, None, tuple(Rival(each, None, is_excluded=False) for each in others)
    known = [scores.bound(each) for each in sketches]
    heap = [(bound, number, False) for number, bound in enumerate(known)]
    heapify(heap)
    scored: dict[int, Score] = {}
    chosen = 0
    looks = 0
    with work_of(len(heap)) as work:
        while heap:
            _, number, is_planned = heappop(heap)
            if scored and _is_excluded(known[number], scored[chosen]):
                continue
            left_over = sum(not (scored and _is_excluded(bound, scored[chosen])) for bound, _, _ in heap)
            work.is_at(len(sketches) * looks / (looks + 1 + left_over))
            looks += 1
            is_given = not number or (number == published and _is_worth_it(known[number], scored.get(chosen)))
            tasks = 0 if is_given else sketches[number].estimate.tasks
            cycles = sketches[number].estimate.time
            if not is_planned:
                plan = scores.planned(sketches[number]) if budgets.fits(tasks) else UNBOUNDED
                known[number] = max(known[number], plan)
                # What no plan tells of comes when it may be best by its estimate: it would take the time of others.
                told = plan if plan != UNBOUNDED else (cycles,)
                heappush(heap, (max(known[number], told), number, True))
                continue
            same = [scored[other] for other in scored if sketches[other] is sketches[number]]
            if not budgets.spend(0 if same else tasks, cycles, scored.get(chosen)):
                continue
            scored[number] = same[0] if same else scores.of(sketches[number])
            chosen = min(scored, key=lambda each: (scored[each], sketches[each].estimate.tasks, each))
    best = scored[chosen]
    rivals = (
        Rival(each, scored.get(number), is_excluded=number not in scored and _is_excluded(known[number], best))
        for number, each in enumerate(others, start=1)
    )
    return sketches[chosen], best, tuple(rivals)


class _Budgets:
    """Tasks that may be scheduled: of any choice, of one estimated to be about as short, and of a shorter one."""

    def __init__(self, limits: Limits, spent: int) -> None:
        self._left = [limits.tasks - spent, limits.promising_tasks, limits.shorter_tasks]

    def fits(self, tasks: int) -> bool:
        """Return whether there is time for any choice of so many tasks."""
        return tasks <= max(self._left[0], 0)

    def spend(self, tasks: int, cycles: int, least: Score | None) -> bool:
        """Return whether there is time for a choice estimated to take so many cycles, and take it."""
        is_near = least is None or cycles < _TOO_LONG * least[0]
        is_shorter = least is None or cycles < least[0]
        for number, is_for in enumerate((True, is_near, is_shorter)):
            if is_for and tasks <= max(self._left[number], 0):
                self._left[number] -= tasks
                return True
        return False


def _is_excluded(bound: Score, best: Score) -> bool:
    """Return whether the bound of a choice says that it takes no less than the best one: its first figure decides."""
    return bound != UNBOUNDED and bound[0] * (1 + ROUNDED) >= best[0]


def _is_worth_it(bound: Score, least: Score | None) -> bool:
    """Return whether a choice of which a bound is known may be better by more than one part in so many."""
    return least is None or not bound or (least[0] - bound[0]) * _WORTH_SCHEDULING > least[0]


def _sketched(
    candidates: Sequence[Candidate], operators: Sequence[OperatorOptions], sketches: Sketches, most_scopes: int
) -> tuple[list[Sketch], int]:
    """Return sketches of different lowerings, and of how many candidates there are none.

    The first one, the defaults, is sketched; of the others of a large model those that look best by their operators.
    """
    found: dict[object, Sketch] = {}
    scopes = 0
    ordered = [*candidates[:1], *sorted(candidates[1:], key=_alone(operators))]
    for number, candidate in enumerate(counted(ordered)):
        if scopes > most_scopes:
            return list(found.values()), len(candidates) - number
        sketch = sketches.of(candidate)
        if sketch is not None:
            scopes += len(sketch.outline.graph.scopes)
            found.setdefault((sketch.outline.chosen, candidate.granularity), sketch)
    return list(found.values()), 0


def _alone(operators: Sequence[OperatorOptions]) -> Callable[[Candidate], int]:
    """Return what tells about how long all operators take one after another under a uniform choice."""
    types = [{of: None for option in each.known for of, _ in option.expansions} for each in operators]
    plain: list[dict[int | None, list[OperatorOption]]] = [{} for _ in operators]  # by pieces
    for each, by_pieces in zip(operators, plain, strict=True):
        for option in (*each.known, *each.excluded):
            if option.rest is None:
                by_pieces.setdefault(option.pieces, []).append(option)
    known: list[dict[tuple[object, ...], int]] = [{} for _ in operators]  # thousands of choices differ in little

    def cycles(candidate: Candidate) -> int:
        names = {choice.op_type: choice.name for choice in candidate.choices if not choice.origin}
        total = 0
        for each, own, by_pieces, found in zip(operators, types, plain, known, strict=True):
            pieces = candidate.granularity.pieces_of(each.origins[0])
            key = (pieces, *map(names.get, own))
            if key not in found:  # not every combination is known: then the one that differs last, level after level
                takes = (
                    ([names.get(of, name) != name for of, name in option.expansions], option.alone.time)
                    for option in by_pieces.get(pieces, ())
                )
                found[key] = min(takes, default=([], 0))[1]
            total += found[key] * len(each.origins)
        return total

    return cycles


def _operators(
    space: Space, covering: Sequence[tuple[Choice, ...]], sketches: Sketches
) -> tuple[OptionTable, tuple[OperatorOptions, ...]]:
    table = OptionTable(space, sketches)
    with work_of(2) as work:
        with work.part(1):
            for choices in counted(covering):
                outline = sketches.outline(choices)
                if outline is not None:
                    table.add(outline)
        with work.part(1):
            return table, table.options()
