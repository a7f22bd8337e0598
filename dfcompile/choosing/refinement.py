"""Small models: all numbers of pieces and all parts of sums are looked at, and what looks best is scheduled."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain, product

from dfcompile.choosing.candidate import Candidate, Space
from dfcompile.choosing.descent import candidate_of
from dfcompile.choosing.estimate import least_bytes
from dfcompile.choosing.operator_options import OperatorOption, OperatorOptions, OptionTable
from dfcompile.choosing.scoring import NEVER, Score, Scores
from dfcompile.choosing.search import Selection
from dfcompile.choosing.sketches import Sketch, Sketches
from dfcompile.expansion_names import base_name
from dfcompile.records import replace

# Cycles of a model on one element: into however many tasks it is cut, it is scheduled in a tenth of a second.
SMALL_WORK = 2_000
_WORTH = 1000  # what may be better by one part in so many is scheduled
_ESTIMATED = 100  # choices beside those that differ in one operator: some tenths of a second
_CHANGES = 40  # of each operator, those that take least alone
_ALIKE = 8  # choices of all operators in as many pieces
_APART = 4  # choices that may differ from the known one in several operators
_SCHEDULE = 15  # times as long as a plan, about, where SRAM is small
_TRIES = 48 * _SCHEDULE  # plans and schedules: some seconds
_NEAR = 50  # what takes longer by one part in so many is changed, too
# Plans in a row that are no better: what looks worse than they do is no better. First a little is tried of everything.
_IN_VAIN = (50, 200)
_SCHEDULED_IN_VAIN = 10  # plans, as which a schedule counts there: few are made where each takes long

_Scored = tuple[Sketch, Score]
_LookedAt = dict[object, tuple[Candidate, Score]]  # by the tasks that they give, with what their scores are at least


class Refinement:
    """Looks for a better choice for a small model by scheduling a few of all that there are."""

    def __init__(self, space: Space, sketches: Sketches, scores: Scores, earlier: "Refinement | None" = None) -> None:
        """Say what is chosen from.

        Args:
            space: all that may be chosen, with all values of parametric expansions.
            sketches: of the model.
            scores: say what is to be small; in the first place cycles.
            earlier: on more processing elements: what it scheduled counts and is not scheduled again, what it changed
                is not changed again.
        """
        self._space, self._sketches, self._scores = space, sketches, scores
        self._left = _TRIES if earlier is None else _TRIES // 2  # half for each further number
        self._looked_at: _LookedAt = {}
        self._earlier: _LookedAt = {} if earlier is None else earlier.seen
        # candidates, each with the plans that were in vain when it was left
        self.changed: set[tuple[int, Candidate]] = set() if earlier is None else earlier.changed

    @property
    def seen(self) -> _LookedAt:
        """What was looked at so far, earlier included."""
        return self._earlier | self._looked_at

    def better(self, known: Selection, least_cycles: int) -> Selection:
        """Return a selection, or one of a better choice.

        Args:
            known: what was chosen.
            least_cycles: that the tasks of no choice take less than.
        """
        if known.score is None:
            return known
        best = known.sketch, known.score
        if not _is_worth_it(max(least_cycles, self._memory_cycles(known.sketch)), best):
            return known
        scheduled = ((rival.sketch, rival.score) for rival in known.rivals if rival.score is not None)
        self._looked_at.update({_told(sketch): (sketch.candidate, score) for sketch, score in scheduled})
        operators = self._operators()
        options = list(_by_time(operators))
        fast = (each for each in options if _is_worth_it(self._least_cycles(each), best))
        by_time = (candidate_of(operators, each, self._space) for each in fast)
        alike = self._promising(self._alike(operators, known.sketch.candidate), best)
        best = self._scheduled(alike[:_ALIKE], best)
        apart = self._promising(by_time, best)
        best = self._scheduled(apart[:_APART], best)
        if best[0].candidate.choices != known.sketch.candidate.choices:
            alike = self._promising(self._alike(operators, best[0].candidate), best)
            best = self._scheduled(alike[:_ALIKE], best)
        alone = candidate_of(operators, options[0], self._space)
        while self._left > 0:
            starts = ((most, each) for most in _IN_VAIN for each in self._starts(best, alone))
            untried = next((each for each in starts if each not in self.changed), None)
            if untried is None:
                break
            self.changed.add(untried)
            most, start = untried
            changes = self._promising(self._changes(operators, start, best), best)
            best = self._scheduled(changes, best, most, until_better=True)
        sketch, score = best
        expansions = self._space.expansions_of(sketch.outline.chosen)
        return replace(known, sketch=sketch, score=score, expansions=expansions)

    def _starts(self, best: _Scored, alone: Candidate) -> Iterator[Candidate]:
        """Yield what is changed: what is best, each operator's own best, and what is nearly as fast.

        What is best may be so by pieces that suit nothing else.
        """
        yield from (best[0].candidate, alone)
        near = sorted((score, number, each) for number, (each, score) in enumerate(self._looked_at.values()))
        yield from (each for score, _, each in near if (score[0] - best[1][0]) * _NEAR <= best[1][0])

    def _operators(self) -> tuple[OperatorOptions, ...]:
        """Return every operator by itself, with all that may be chosen for it."""
        table = OptionTable(self._space, self._sketches, has_all_pieces=True)
        for choices in self._space.covering():
            outline = self._sketches.outline(choices)
            if outline is not None:
                table.add(outline)
        several = ((each, _different(each.known)) for each in table.options())
        return tuple(OperatorOptions((origin,), options) for each, options in several for origin in each.origins)

    def _alike(self, operators: Iterable[OperatorOptions], known: Candidate) -> Iterator[Candidate]:
        """Yield candidates of the known expansions and of the published ones, all operators in as many pieces.

        What is cut alike streams to one another, pieces to parts of sums as well, which options alone do not tell.
        """
        if len(self._space.granularities) > 1:
            pieces = dict.fromkeys(option.pieces for each in operators for option in each.known)
            for choices, count in product((known.choices, next(self._space.uniform()).choices), pieces):
                granularity = replace(self._space.granularities[0], pieces=count)
                yield Candidate(choices, granularity)
                if count is not None:
                    yield Candidate(self._space.in_parts(choices, count), granularity)

    def _least_cycles(self, options: Sequence[OperatorOption]) -> int:
        """Return what no estimate of operators with such options is below, as a rule."""
        work = sum(option.alone.work_cycles for option in options)
        return max(-(-work // self._sketches.pes), *(option.alone.bound_cycles for option in options))

    def _changes(self, operators: Iterable[OperatorOptions], known: Candidate, best: _Scored) -> Iterator[Candidate]:
        """Yield the candidates that differ from a known one in one operator, and may be better than the best."""
        for each in operators:
            (origin,) = each.origins
            others = tuple(choice for choice in known.choices if choice.origin != origin)
            for option in sorted(each.known, key=_cost)[:_CHANGES]:
                if not _is_worth_it(option.alone.bound_cycles, best):
                    continue
                granularity = known.granularity
                if len(self._space.granularities) > 1:
                    granularity = granularity.but_for(origin, option.pieces, option.rest)
                yield Candidate((*self._space.fixed, *option.choices(origin), *others), granularity)

    def _promising(self, candidates: Iterable[Candidate], best: _Scored) -> list[Sketch]:
        """Return sketches of what may be better and was not scheduled, those of the shortest estimates first.

        One of each estimate comes before the others of it, unless it is no better; in turn these have few tasks, which
        stream more, and many, which hold less in memory.
        """
        found: dict[object, Sketch] = {}
        for sketch in map(self._sketches.of, candidates):
            if sketch is not None and _told(sketch) not in self._looked_at:
                least = max(sketch.estimate.bound_cycles, self._memory_cycles(sketch))
                if _is_worth_it(least, best):
                    found.setdefault(_told(sketch), sketch)
        alike = defaultdict[object, int](int)
        ranks = {}
        for told, sketch in found.items():
            whole = sketch.estimate
            key = whole.cycles, whole.memory_cycles, whole.tasks
            ranks[told] = whole.time >= best[1][0], alike[key], whole.time, whole.tasks
            alike[key] += 1
        few = sorted(found, key=lambda told: ranks[told])
        many = sorted(found, key=lambda told: (*ranks[told][:3], -ranks[told][3]))
        return [found[told] for told in dict.fromkeys(chain.from_iterable(zip(few, many, strict=True)))]

    def _scheduled(
        self, sketches: Sequence[Sketch], best: _Scored, in_vain: int = _IN_VAIN[0], *, until_better: bool = False
    ) -> _Scored:
        """Return the best of some choices and a known one, as far as there is time to schedule them.

        Args:
            sketches: of the choices, those first that look best.
            best: known.
            in_vain: plans in a row that may be no better.
            until_better: whether the first better one is enough.
        """
        known, vain = best, 0
        for sketch in sketches:
            if self._left <= 0 or vain >= in_vain or (until_better and best is not known):
                break
            if not _is_worth_it(sketch.estimate.bound_cycles, best):
                continue
            if (told := _told(sketch)) in self._earlier:
                self._looked_at[told] = self._earlier[told]
                self._left, vain = self._left - _SCHEDULE, vain + _SCHEDULED_IN_VAIN
                continue
            plan = self._scores.planned(sketch)
            self._looked_at[told] = sketch.candidate, plan or NEVER
            # Equal times may come with smaller FIFOs, which changes of single operators are not tried for.
            if plan > best[1] or (until_better and plan and not _is_worth_it(plan[0], best)):
                self._left, vain = self._left - 1, vain + 1
                continue
            self._left, vain = self._left - _SCHEDULE, vain + _SCHEDULED_IN_VAIN
            score = self._scores.of(sketch)
            self._looked_at[told] = sketch.candidate, score
            if score < best[1]:
                best, vain = (sketch, score), 0
        return best

    def _memory_cycles(self, sketch: Sketch) -> float:
        """Return what DRAM takes at least, not rounded: of few cycles a part of one counts."""
        memory = self._sketches.memory
        return 0 if memory is None else least_bytes(sketch.outline.graph) / memory.bytes_per_cycle


def _is_worth_it(least_cycles: float, best: _Scored) -> bool:
    return best[1][0] * (_WORTH - 1) > least_cycles * _WORTH


def _told(sketch: Sketch) -> object:
    """Return what tells which tasks a choice gives: several numbers of pieces or of parts may give the same."""
    chosen = tuple((each.origin, each.op_type, base_name(each.name)) for each in sketch.outline.chosen)
    return chosen, tuple((each.tasks, each.producers) for each in sketch.estimate.families)


def _different(options: Iterable[OperatorOption]) -> tuple[OperatorOption, ...]:
    """Return one of the options that give the same tasks by other numbers of pieces or of parts."""
    found: dict[object, OperatorOption] = {}
    for option in options:
        names = tuple((op_type, base_name(name)) for op_type, name in option.expansions)
        found.setdefault((names, option.alone), option)
    return tuple(found.values())


def _by_time(operators: Sequence[OperatorOptions]) -> Iterator[tuple[OperatorOption, ...]]:
    """Yield options of all operators, those first that take the least time together one after another."""
    ordered = [sorted(each.known, key=_cost) for each in operators]
    heap = [(_sum(own[0] for own in ordered), (0,) * len(ordered))]
    seen = {heap[0][1]}
    for _ in range(_ESTIMATED):
        if not heap:
            return
        _, places = heappop(heap)
        yield tuple(own[at] for own, at in zip(ordered, places, strict=True))
        for number, own in enumerate(ordered):
            following = (*places[:number], places[number] + 1, *places[number + 1 :])
            if following[number] < len(own) and following not in seen:
                seen.add(following)
                heappush(heap, (_sum(own[at] for own, at in zip(ordered, following, strict=True)), following))


def _cost(option: OperatorOption) -> tuple[int, int, int]:
    alone = option.alone
    return alone.time, alone.cycles + alone.memory_cycles, alone.tasks


def _sum(options: Iterable[OperatorOption]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*map(_cost, options), strict=True)))
