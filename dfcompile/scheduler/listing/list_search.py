"""Short list schedules: several rules, improved forwards and backwards in time, then changed at random.

First all urgencies change, then, where that is quick, a few tasks at a time.
"""

import random
from collections.abc import Iterator

from msgspec import Struct

from dfcompile.host.stages import Work, work_of
from dfcompile.scheduler.listing.list_schedule import ListSchedule, ListScheduler, Rule

_SEED = 20230616
_PASSES = 4  # forwards and backwards, after the first
_PARTS = (1000, 1050, 1100, 1200, 1400, 1700)  # thousandths of the bound that a schedule is asked for
_NOISE = (16, 64, 256, 512)  # of an urgency, in 1024ths
_NEVER_EARLY = 2**62
_KEPT = 8
_WANDERING_PASSES = 200  # of fewer none is left for single tasks
_LONGER_ONCE_IN = 10  # changes: one that makes the schedule longer is kept
_LITTLE = 50  # if it is longer by such a part


class Budget(Struct, frozen=True):
    """How much is tried.

    Attributes:
        node_passes: nodes placed, over all tries.
        fewest_passes: over the whole graph, however large it is.
        most_passes: however small it is.
    """

    node_passes: int
    fewest_passes: int
    most_passes: int


class ListSearch:
    """Finds short list schedules; keeps the shortest of them, for their replays to decide."""

    def __init__(self, scheduler: ListScheduler, bound: int, budget: Budget) -> None:
        """Begin without any.

        Args:
            scheduler: of the graph.
            bound: what no schedule is shorter than, in cycles: the search ends with it.
            budget: how much is tried.
        """
        self._scheduler, self._bound = scheduler, bound
        passes = min(budget.node_passes // max(scheduler.nodes, 1), budget.most_passes)
        self._passes, self._fewest = max(passes, budget.fewest_passes), budget.fewest_passes
        self._left = scheduler.left()
        self._found: dict[int, ListSchedule] = {}  # by cycles
        self._late: dict[int, list[int]] = {}
        self._rules_tried = 0

    @property
    def needs_bound(self) -> bool:
        """Whether rules were tried that come from the bound; else another one changes only when the search ends."""
        return self._rules_tried > 1

    def run(self, known: ListSchedule) -> tuple[ListSchedule, ...]:
        """Return the shortest schedules found, the shortest first.

        Args:
            known: a schedule of any other origin; where none is shorter, it is improved as well.
        """
        local = self._passes // 2 if self._passes >= _WANDERING_PASSES else 0
        most = self._passes
        with work_of(most) as work:
            self._passes -= local
            for rule in self._rules():
                if self._is_done():
                    break
                self._rules_tried += 1
                self._passes -= 1
                found = self._scheduler.forwards(rule)
                self._keep(found, found.start)
                self._turn(found)
                work.is_at(most - local - self._passes)
            self._passes += local
            if local:
                self._wander(work)
        if known.cycles < min(self._found):
            self._keep(known, known.start)
            self._passes = self._fewest
            self._turn(known)
        return tuple(self._found[cycles] for cycles in sorted(self._found))

    def _rules(self) -> Iterator[Rule]:
        """Yield urgencies, and from when on tasks keep elements that they can use only in part."""
        nodes, left = self._scheduler.nodes, self._left
        longest = [-cycles for cycles in left]
        yield Rule.at_once(longest, [0] * nodes)
        for part in _PARTS:
            target = self._bound * part // 1000
            yield Rule.at_once(longest, [target - cycles for cycles in left])
        yield Rule.at_once(longest, [_NEVER_EARLY] * nodes)
        choice = random.Random(_SEED)  # noqa: S311 - a search, no secret
        while True:
            shortest = min(self._found)
            noise, target = choice.choice(_NOISE), shortest * choice.choice(_PARTS) // 1000
            basis = choice.choice((longest, self._late[shortest]))
            urgency = [cycles * (1024 + choice.randrange(-noise, noise + 1)) for cycles in basis]
            latest = [target - cycles for cycles in left] if choice.randrange(2) else self._late[shortest]
            yield Rule.at_once(urgency, latest)

    def _turn(self, found: ListSchedule) -> None:
        """Place a schedule backwards by its ends, then forwards, and so on as long as it gets shorter [li92]."""
        shortest = found.cycles
        for _ in range(_PASSES):
            if self._is_done():
                return
            self._passes -= 2
            from_end = [found.cycles - end for end in found.end]
            turned, late = self._scheduler.backwards(Rule.at_once(from_end, from_end))
            self._keep(turned, late)
            found = self._scheduler.forwards(Rule.at_once(late, late))
            self._keep(found, late)
            if min(found.cycles, turned.cycles) >= shortest:
                return
            shortest = min(found.cycles, turned.cycles)

    def _wander(self, work: Work) -> None:
        """Place a few tasks otherwise, from the shortest schedule on; go on from what is not longer, or little longer.

        A list leaves no element idle that some task could have. Where tasks that stream together need several
        elements at once another task has to wait: so some begin no earlier than in a cycle drawn at random.
        """
        choice = random.Random(_SEED)  # noqa: S311 - a search, no secret
        late = self._late[min(self._found)]
        rule, cycles = Rule.at_once(late, late), min(self._found)
        while not self._is_done():
            self._passes -= 1
            work.add()
            changed = _changed(rule, choice, cycles)
            found = self._scheduler.forwards(changed)
            self._keep(found, found.start)
            most = cycles if choice.randrange(_LONGER_ONCE_IN) else cycles + cycles // _LITTLE
            if found.cycles <= most:
                rule, cycles = changed, found.cycles

    def _keep(self, found: ListSchedule, late: list[int]) -> None:
        if found.cycles in self._found or (len(self._found) == _KEPT and found.cycles > max(self._found)):
            return
        self._found[found.cycles], self._late[found.cycles] = found, late
        if len(self._found) > _KEPT:
            longest = max(self._found)
            del self._found[longest], self._late[longest]

    def _is_done(self) -> bool:
        return bool(self._found) and (self._passes <= 0 or min(self._found) <= self._bound)


def _changed(rule: Rule, choice: random.Random, cycles: int) -> Rule:
    """Return a rule in which a few tasks are more or less urgent, or begin otherwise."""
    urgency, latest, release = rule.urgency[:], rule.latest[:], rule.release[:]
    for _ in range(choice.choice((1, 1, 2, 3, max(len(urgency) // 16, 1)))):
        node = choice.randrange(len(urgency))
        match choice.randrange(6):
            case 0:
                urgency[node] += choice.randrange(-cycles // 4, cycles // 4 + 1)
            case 1:
                latest[node] = 0
            case 2:
                latest[node] = _NEVER_EARLY
            case 3:
                latest[node] = choice.randrange(cycles + 1)
            case 4:
                release[node] = 0
            case _:
                release[node] = choice.randrange(cycles + 1)
    return Rule(urgency, latest, release)
