"""The search for a Pareto set: parts of the space by what they may be at best, until none is left or tries are up."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from heapq import heapify, heappop, heappush
from math import prod

from msgspec import Struct

from dfcompile.exploration.asked import MOST_TASKS, TASKS_PER_TRY, Asked, Figures, figures_of, largest_gap, pareto_set
from dfcompile.exploration.job import Outcome
from dfcompile.exploration.space import Bounds, Space
from dfcompile.records import replace

_BATCH = 8  # schedules that are made before anything is concluded, on however many processors
_WORTH = 0.001  # of a figure for a try: what wins less by estimates comes last
_PARTS_PER_TRY = 60  # that are looked at

Picks = tuple[int | None, ...]


class Candidate(Struct, frozen=True, order=True):
    """A lowering on a number of processing elements.

    Attributes:
        pes: number of processing elements.
        granularity: number of it.
        picks: option of each group; of some of the space, of the first groups.
    """

    pes: int
    granularity: int
    picks: tuple[int, ...]


class Point(Struct, frozen=True):
    """A candidate with an amount of memory, and what it takes."""

    candidate: Candidate
    outcome: Outcome
    figures: Figures

    @classmethod
    def of(cls, asked: Asked, candidate: Candidate, outcome: Outcome) -> "Point":
        """Return the point of an outcome, with its figures."""
        machine = asked.machine(candidate.pes, outcome.memory_bytes)
        return cls(candidate, outcome, figures_of(asked.objectives, machine, outcome.makespan_cycles, outcome.io_bytes))


class Found(Struct, frozen=True):
    """What a search gives.

    Attributes:
        front: the Pareto set of what was scheduled, by processing elements, memory and figures.
        schedules: that were made.
        tries: that they count as.
        open_combinations: lowerings on a number of processing elements that bounds do not exclude.
        too_large: of the space, what has an option of too many tasks to be scheduled.
        gap: nothing that is open is in every figure by more than that part better than a point of the front; 0: the
            front is proved.
        gap_of_schedulable: the same of what has not too many tasks.
    """

    front: tuple[Point, ...]
    schedules: int
    tries: int
    open_combinations: int
    too_large: tuple[str, ...]
    gap: float
    gap_of_schedulable: float


class _Part(Struct, frozen=True, order=True):
    """Some of the space: what is fixed, and what it may be at best; those that may win most come first."""

    is_doubtful: bool  # an estimate says that it wins little
    minus_gap: float
    some: Candidate
    bounds: tuple[Figures, ...]  # for each amount of memory


Evaluate = Callable[[Sequence[Candidate]], Iterator[tuple[Outcome, ...]]]
Notify = Callable[[int, float], None]


class Search:
    """The Pareto set of a space by branch and bound: `run` finds it.

    A part of the space is left out where a point of the front is no worse in any figure than bounds say of it. What is
    whole is scheduled; what wins little for its tries by estimates comes last. Half of the schedules are of points of
    the front with one choice changed, those that win most. No result depends on time, or on where jobs run.

    Args:
        asked: of the user.
        space: of expansions.
        bounds: of what parts of it take.
        evaluate: gives the outcomes of candidates, in their order.
        notify: is told tries and the gap, after every batch.
    """

    def __init__(self, asked: Asked, space: Space, bounds: Bounds, evaluate: Evaluate, notify: Notify) -> None:
        self._asked, self._space, self._bounds = asked, space, bounds
        self._evaluate, self._notify = evaluate, notify
        self._estimated = cache(lambda near: bounds.estimated(near.picks, near.granularity, near.pes))
        self._points: list[Point] = []
        self._front: list[Figures] = []
        self._seen: set[Candidate] = set()
        self._open: list[_Part] = []
        self._left: list[_Part] = []  # neither excluded nor ever scheduled
        self._tries = 0
        self._parts = asked.tries * _PARTS_PER_TRY

    def run(self) -> Found:
        """Return the front, and how far what was left out may be better."""
        self._begin()
        while self._open and self._tries < self._asked.tries and self._parts > 0:
            batch = self._next_batch()
            if batch:
                self._schedule(batch)
                self._notify(self._tries, self._gap())
        left = [part for part in (*self._open, *self._left) if self._gap_of(part.bounds) > 0]
        sizes = [len(group.options) for group in self._space.groups]
        ways = (prod(sizes[len(part.some.picks) :]) for part in left)
        by_machine = sorted(self._points, key=lambda one: (one.candidate.pes, one.outcome.memory_bytes, one.figures))
        return Found(
            front=tuple(by_machine),
            schedules=len(self._seen),
            tries=self._tries,
            open_combinations=sum(ways),
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
        """Schedule the defaults, and each expansion wherever it can be; begin with all of the space."""
        asked = self._asked
        first = [
            Candidate(pes, granularity, picks)
            for picks in self._space.uniform()
            if not self._is_too_large(picks)
            for granularity in range(len(asked.granularities))
            for pes in asked.pes
        ]
        first = list(dict.fromkeys(first))
        for at in range(0, len(first), _BATCH):
            if self._tries < asked.tries or not self._points:
                self._schedule(first[at : at + _BATCH])
                self._notify(self._tries, self._gap())
        for pes in asked.pes:
            for granularity in range(len(asked.granularities)):
                self._push(Candidate(pes, granularity, ()))

    def _next_batch(self) -> list[Candidate]:
        batch = self._neighbours()
        cost = sum(map(self._cost, batch))
        while self._open and len(batch) < _BATCH and self._parts > 0 and self._tries + cost < self._asked.tries:
            part = heappop(self._open)
            now = self._gap_of(part.bounds)
            if now <= 0:
                continue  # something in the front is no worse
            if -now != part.minus_gap:
                heappush(self._open, replace(part, minus_gap=-now))
                continue
            self._parts -= 1
            candidate = part.some
            if len(candidate.picks) < len(self._space.groups):
                for pick in range(len(self._space.groups[len(candidate.picks)].options)):
                    self._push(replace(candidate, picks=(*candidate.picks, pick)))
                continue
            if candidate in self._seen or candidate in batch:
                continue
            least = _WORTH * self._cost(candidate)
            if not part.is_doubtful and self._gap_of(self._estimated(candidate)) <= least:
                heappush(self._open, replace(part, is_doubtful=True))
                continue
            cost += self._cost(candidate)
            batch.append(candidate)
        return batch

    def _neighbours(self) -> list[Candidate]:
        """Return what estimates say of the front with one group changed: what most of is won with for its tries."""
        won: dict[Candidate, float] = {}
        for base in dict.fromkeys(point.candidate for point in self._points):
            for at, group in enumerate(self._space.groups):
                for pick in range(len(group.options)):
                    near = replace(base, picks=(*base.picks[:at], pick, *base.picks[at + 1 :]))
                    if near not in self._seen and near not in won and not self._is_too_large(near.picks):
                        won[near] = self._gap_of(self._estimated(near)) / self._cost(near)
        best = sorted((near for near, gap in won.items() if gap > _WORTH), key=lambda near: -won[near])
        room, taken = self._asked.tries - self._tries, []
        for near in best[: _BATCH // 2]:
            room -= self._cost(near)
            if room >= 0:
                taken.append(near)
        return taken

    def _push(self, some: Candidate) -> None:
        if some in self._seen:
            return
        padded: Picks = (*some.picks, *(None for _ in self._space.groups[len(some.picks) :]))
        bounds = self._bounds.of(padded, some.granularity, some.pes)
        size = self._gap_of(bounds)
        if size <= 0:
            return
        part = _Part(False, -size, some, bounds)  # noqa: FBT003
        if self._is_too_large(some.picks):
            self._left.append(part)
        else:
            heappush(self._open, part)

    # -- schedules

    def _schedule(self, batch: Sequence[Candidate]) -> None:
        for candidate, outcomes in zip(batch, self._evaluate(batch), strict=True):
            self._seen.add(candidate)
            self._tries += self._cost(candidate)
            self._points += [Point.of(self._asked, candidate, outcome) for outcome in outcomes]
        self._points = [self._points[at] for at in pareto_set([point.figures for point in self._points])]
        self._front = [point.figures for point in self._points]
        heapify(self._open)

    def _cost(self, candidate: Candidate) -> int:
        return 1 + self._tasks(candidate.picks) // TASKS_PER_TRY

    def _tasks(self, picks: Sequence[int]) -> int:
        return sum(group.tasks(pick) for group, pick in zip(self._space.groups, picks, strict=False))

    def _is_too_large(self, picks: Sequence[int]) -> bool:
        return self._tasks(picks) > MOST_TASKS

    # -- what is known

    def _gap_of(self, bounds: Sequence[Figures]) -> float:
        return largest_gap(self._front, bounds)

    def _gap(self) -> float:
        """Return the gap of all that is open; the front may have come nearer to some of it since."""
        return max((-part.minus_gap for part in (*self._open, *self._left)), default=0.0)
