"""Branch and bound for a Pareto set: takes the most promising part of the space until none is left or tries are up."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import accumulate, islice
from math import prod

from msgspec import Struct

from dfcompile.exploration.asked import MOST_TASKS, TASKS_PER_TRY, Asked, Figures, figures_of, largest_gap, pareto_set
from dfcompile.exploration.job import Outcome
from dfcompile.exploration.space import Bounds, Space
from dfcompile.records import replace

_BATCH = 8  # schedules before the front is updated, whatever the number of processors: results do not depend on it
_FIRST = 4 * _BATCH  # of the uniform choices, which depend on no front
_LEAST_GAIN = 0.001  # gap per try: candidates whose estimates promise less are scheduled last
_PARTS_PER_TRY = 60  # of the space, that are examined at most

Picks = tuple[int | None, ...]


class Candidate(Struct, frozen=True, order=True):
    """A lowering on a number of processing elements.

    Attributes:
        pes: number of processing elements.
        granularity: its position among those asked for.
        picks: the option of each group; of a part of the space, of the first groups alone.
    """

    pes: int
    granularity: int
    picks: tuple[int, ...]


class Point(Struct, frozen=True):
    """A candidate scheduled with an amount of memory, and its figures."""

    candidate: Candidate
    outcome: Outcome
    figures: Figures

    @classmethod
    def of(cls, asked: Asked, candidate: Candidate, outcome: Outcome) -> "Point":
        """Return the point of an outcome, with its figures."""
        machine = asked.machine(candidate.pes, outcome.memory_bytes)
        return cls(candidate, outcome, figures_of(asked.objectives, machine, outcome.makespan_cycles, outcome.io_bytes))


class SearchResult(Struct, frozen=True):
    """The Pareto set, and how much better an exhaustive search could be.

    Attributes:
        front: the Pareto set of what was scheduled, by processing elements, memory and figures.
        schedules: how many were made.
        tries: how many these count as.
        open_combinations: candidates that bounds do not exclude.
        too_large: options with too many tasks to be scheduled, as ``operator:expansions``.
        gap: 0.1: for each open candidate some point of the front is at most 10 % worse in every figure; 0: proved.
        gap_of_schedulable: the same without candidates of too many tasks.
    """

    front: tuple[Point, ...]
    schedules: int
    tries: int
    open_combinations: int
    too_large: tuple[str, ...]
    gap: float
    gap_of_schedulable: float


class _Part(Struct, frozen=True, order=True):
    """All candidates with the same first picks; the part that may improve the front most sorts first."""

    is_doubtful: bool  # an estimate promises little
    minus_gap: float
    prefix: Candidate  # with the picks that are fixed
    bounds: tuple[Figures, ...]  # for each amount of memory


Evaluate = Callable[[Sequence[Candidate]], Iterator[tuple[Outcome, ...]]]
Notify = Callable[[int, float], None]


class Search:
    """The Pareto set of a space by branch and bound: `run` finds it.

    A part is dropped if a point of the front is as good as the part's bounds in every figure, else divided by its next
    pick; a part with all picks is scheduled, last if estimates promise little per try. Half of each batch are points of
    the front with one pick changed, the most promising ones. No result depends on time, or on where jobs run.

    Args:
        asked: by the user.
        space: of expansions.
        bounds: lower bounds of the figures of parts.
        evaluate: schedules candidates and yields their outcomes, in order.
        notify: receives the number of tries and the gap, after every batch.
    """

    def __init__(self, asked: Asked, space: Space, bounds: Bounds, evaluate: Evaluate, notify: Notify) -> None:
        self._asked, self._space, self._bounds = asked, space, bounds
        self._evaluate, self._notify = evaluate, notify
        self._bounded = cache(lambda near: bounds.of(near.picks, near.granularity, near.pes))
        self._estimated = cache(lambda near: bounds.estimated(near.picks, near.granularity, near.pes))
        self._points: list[Point] = []
        self._front: list[Figures] = []
        self._seen: set[Candidate] = set()
        self._open: list[_Part] = []
        self._left: list[_Part] = []  # neither excluded nor ever scheduled
        self._tries = 0
        self._parts = asked.tries * _PARTS_PER_TRY

    def run(self) -> SearchResult:
        """Search until the tries are used up or the front is proved."""
        self._begin()
        while self._open and self._tries < self._asked.tries and self._parts > 0:
            batch = self._next_batch()
            if batch:
                self._schedule(batch)
                self._notify(self._tries, self._gap())
        left = [part for part in (*self._open, *self._left) if self._gap_of(part.bounds) > 0]
        sizes = [len(group.options) for group in self._space.groups]
        by_machine = sorted(self._points, key=lambda at: (at.candidate.pes, at.outcome.memory_bytes, at.figures))
        return SearchResult(
            front=tuple(by_machine),
            schedules=len(self._seen),
            tries=self._tries,
            open_combinations=sum(prod(sizes[len(part.prefix.picks) :]) for part in left),
            too_large=tuple(
                f"{group.origins[0]}:{' '.join(name for _, name in option)}"
                for group in self._space.groups
                for pick, option in enumerate(group.options)
                if group.tasks(pick) > MOST_TASKS
            ),
            gap=max((self._gap_of(part.bounds) for part in left), default=0.0),
            gap_of_schedulable=max((self._gap_of(part.bounds) for part in self._open), default=0.0),
        )

    def _begin(self) -> None:
        """Schedule the default lowering and those that use one expansion wherever possible; then open all the space."""
        asked = self._asked
        first = [
            Candidate(pes, granularity, picks)
            for picks in self._space.uniform()
            if not self._is_too_large(picks)
            for granularity in range(len(asked.granularities))
            for pes in asked.pes
        ]
        first = list(dict.fromkeys(first))
        for start in range(0, len(first), _FIRST):
            some, room = first[start : start + _FIRST], asked.tries - self._tries
            costs = accumulate(map(self._cost, some))
            batch = [candidate for candidate, cost in zip(some, costs, strict=True) if cost <= room]
            if batch or not self._points:
                self._schedule(batch or some[:1])
                self._notify(self._tries, self._gap())
        for pes in asked.pes:
            for granularity in range(len(asked.granularities)):
                self._push(Candidate(pes, granularity, ()))

    def _next_batch(self) -> list[Candidate]:
        batch = self._neighbours()
        cost = sum(map(self._cost, batch))
        while self._open and len(batch) < _BATCH and self._parts > 0 and self._tries + cost < self._asked.tries:
            part = heappop(self._open)
            gap = self._gap_of(part.bounds)
            if gap <= 0:
                continue  # a point of the front is as good as the bounds
            if -gap != part.minus_gap:  # the front has improved since: it may not be first any more
                heappush(self._open, replace(part, minus_gap=-gap))
                continue
            self._parts -= 1
            candidate = part.prefix
            if len(candidate.picks) < len(self._space.groups):
                for pick in range(len(self._space.groups[len(candidate.picks)].options)):
                    self._push(replace(candidate, picks=(*candidate.picks, pick)))
                continue
            if candidate in self._seen or candidate in batch:
                continue
            least_gain = _LEAST_GAIN * self._cost(candidate)
            if not part.is_doubtful and self._gap_of(self._estimated(candidate)) <= least_gain:
                heappush(self._open, replace(part, is_doubtful=True))
                continue
            cost += self._cost(candidate)
            batch.append(candidate)
        return batch

    def _neighbours(self) -> list[Candidate]:
        """Return points of the front with one pick changed, those with the largest estimated gain per try."""
        near = (
            changed
            for base in dict.fromkeys(point.candidate for point in self._points)
            for changed in self._changed(base)
        )
        room, taken = self._asked.tries - self._tries, []
        for candidate in islice(self._most_gainful(dict.fromkeys(near)), _BATCH // 2):
            room -= self._cost(candidate)
            if room >= 0:
                taken.append(candidate)
        return taken

    def _changed(self, base: Candidate) -> Iterator[Candidate]:
        for number, group in enumerate(self._space.groups):
            for pick in range(len(group.options)):
                near = replace(base, picks=(*base.picks[:number], pick, *base.picks[number + 1 :]))
                if near not in self._seen and not self._is_too_large(near.picks):
                    yield near

    def _most_gainful(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Yield candidates by their estimated gain per try, the largest first, estimating what may come next."""
        heap = [(-self._gain(each, self._bounded(each)), number, each, False) for number, each in enumerate(candidates)]
        heapify(heap)
        while heap and -heap[0][0] > _LEAST_GAIN:
            _, number, candidate, is_estimated = heappop(heap)
            if is_estimated:
                yield candidate
            else:
                heappush(heap, (-self._gain(candidate, self._estimated(candidate)), number, candidate, True))

    def _gain(self, candidate: Candidate, figures: Sequence[Figures]) -> float:
        return self._gap_of(figures) / self._cost(candidate)

    def _push(self, prefix: Candidate) -> None:
        """Open a part of the space, unless its bounds say that it cannot improve the front."""
        if prefix in self._seen:
            return
        padded: Picks = (*prefix.picks, *(None for _ in self._space.groups[len(prefix.picks) :]))
        bounds = self._bounds.of(padded, prefix.granularity, prefix.pes)
        gap = self._gap_of(bounds)
        if gap <= 0:
            return
        part = _Part(False, -gap, prefix, bounds)  # noqa: FBT003
        if self._is_too_large(prefix.picks):
            self._left.append(part)
        else:
            heappush(self._open, part)

    # -- schedules

    def _schedule(self, batch: Sequence[Candidate]) -> None:
        for candidate, outcomes in zip(batch, self._evaluate(batch), strict=True):
            self._seen.add(candidate)
            self._tries += self._cost(candidate)
            self._points += [Point.of(self._asked, candidate, outcome) for outcome in outcomes]
        self._points = [self._points[number] for number in pareto_set([point.figures for point in self._points])]
        self._front = [point.figures for point in self._points]
        heapify(self._open)

    def _cost(self, candidate: Candidate) -> int:
        return 1 + self._space.tasks(candidate.picks) // TASKS_PER_TRY

    def _is_too_large(self, picks: Sequence[int]) -> bool:
        return self._space.tasks(picks) > MOST_TASKS

    # -- what is known

    def _gap_of(self, bounds: Sequence[Figures]) -> float:
        return largest_gap(self._front, bounds)

    def _gap(self) -> float:
        """Return the gap of all open parts, as it was when each was pushed: an upper bound of what it is."""
        return max((-part.minus_gap for part in (*self._open, *self._left)), default=0.0)
