"""Self-timed execution of a graph of actors: every firing as early as tokens and places allow, until it repeats."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from itertools import chain, repeat
from operator import sub

from msgspec import Struct

from dfcompile.actor_graphs.graph import ActorGraph
from dfcompile.errors import UserError

MOST_FIRINGS = 5_000_000


class Execution(Struct, frozen=True):
    """What an execution came to.

    Attributes:
        period_cycles: of the iterations that belong together, in the long run; ``None`` in a deadlock.
        first_cycles: until the first of these have ended; ``None`` in a deadlock.
        waits: of a deadlock: who waits for whom, the last for the first; else empty.
    """

    period_cycles: Fraction | None
    first_cycles: int | None
    waits: tuple[str, ...] = ()


class _Times:
    """When tokens, or places for them, are there: times that never fall, each with how many."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.runs = deque([[0, count]] if count else [])

    def put(self, time: int, count: int) -> None:
        if not count:
            return
        self.count += count
        if self.runs and self.runs[-1][0] == time:
            self.runs[-1][1] += count
        else:
            self.runs.append([time, count])

    def take(self, count: int) -> int:
        """Take the first so many and return when the last of them is there."""
        self.count -= count
        runs, time = self.runs, 0
        while count:
            run = runs[0]
            time = run[0]
            taken = min(count, run[1])
            count -= taken
            run[1] -= taken
            if not run[1]:
                runs.popleft()
        return time

    def last(self, count: int) -> "_Times":
        """Return the last so many."""
        kept = _Times(0)
        kept.count, kept.runs = self.count, deque([*run] for run in self.runs)
        kept.take(self.count - count)
        return kept

    def each(self) -> Iterator[int]:
        """Yield the time of each."""
        return chain.from_iterable(repeat(time, count) for time, count in self.runs)

    def is_later(self, other: "_Times", cycles: int) -> bool:
        """Whether it is another one, all of it so many cycles later."""
        pairs = zip(self.runs, other.runs, strict=False)
        return len(self.runs) == len(other.runs) and all(
            time == then + cycles and count == many for (time, count), (then, many) in pairs
        )


class SelfTimed:
    """The execution of some actors of a graph, iteration by iteration.

    A firing begins as soon as the one before has ended, all tokens that it reads are there, and so are places for all
    that it writes. These it takes at once; it frees what it has read when it ends [stuijk06]. The times are the least
    solution of these conditions, so the order in which they are found makes no difference.

    Attributes:
        ready: when each actor has ended its last firing.
        tokens: when those that are in each channel are there.
        places: when those that each channel has free are there.
    """

    def __init__(
        self,
        graph: ActorGraph,
        sizes: Mapping[int, int],
        members: Collection[int] | None = None,
        begin: "SelfTimed | None" = None,
    ) -> None:
        """Begin.

        Args:
            graph: of the actors.
            sizes: of channels, by number; others are never full.
            members: numbers of the actors; channels from and to others are left out. ``None``: all.
            begin: an execution, also of more actors, with no smaller channels, between two iterations: this one goes
                on from there. What it takes in the long run does not depend on how it begins.
        """
        self._graph = graph
        self._members = range(len(graph.actors)) if members is None else members
        self._inputs: dict[int, list[int]] = {actor: [] for actor in self._members}
        self._outputs: dict[int, list[int]] = {actor: [] for actor in self._members}
        self.tokens: dict[int, _Times] = {}
        self.places: dict[int, _Times] = {}
        for number in dict.fromkeys(number for actor in self._members for number in graph.channels_of[actor]):
            channel = graph.channels[number]
            if channel.source in self._inputs and channel.target in self._inputs:
                self._outputs[channel.source].append(number)
                self._inputs[channel.target].append(number)
                self.tokens[number] = _Times(channel.tokens)
                if number in sizes and not channel.is_state:
                    self.places[number] = _Times(sizes[number] - channel.tokens)
        self.ready = dict.fromkeys(self._members, 0)
        if begin is not None:
            self.ready = {actor: begin.ready[actor] for actor in self._members}
            self.tokens = {number: begin.tokens[number].last(times.count) for number, times in self.tokens.items()}
            self.places = {number: begin.places[number].last(times.count) for number, times in self.places.items()}
        self._left = dict.fromkeys(self._members, 0)
        self._ends: list[int] = []  # of iterations

    def run(self) -> Execution:
        """Execute until an iteration begins as an earlier one did, only later.

        Raises:
            UserError: that takes too many firings.
        """
        together = self._graph.iterations
        for iteration, before in enumerate(self._iterations(), 1):
            if before is not None:
                rounds, rest = divmod(max(together - before, 0), iteration - before)
                first = self._ends[min(together, before + rest)] + rounds * (self._ends[iteration] - self._ends[before])
                return Execution(self._period(before, iteration), first)
        return Execution(None, None, self._waits())

    def keeps(self, period: Fraction) -> bool:
        """Return whether it takes no longer than that in the long run.

        If all times have grown by more since an earlier iteration they go on to, whatever repeats [baccelli92].

        Raises:
            UserError: as `run`.
        """
        earlier, then = 1, list[int]()
        for iteration, before in enumerate(self._iterations(), 1):
            if before is not None:
                return self._period(before, iteration) <= period
            if iteration == 2 * earlier:
                now, allowed = self._times(), period / self._graph.iterations * (iteration - earlier)
                if then and min(map(sub, now, then)) > allowed:
                    return False
                earlier, then = iteration, now
        return False

    def _period(self, before: int, iteration: int) -> Fraction:
        return Fraction(self._ends[iteration] - self._ends[before], iteration - before) * self._graph.iterations

    def _iterations(self) -> Iterator[int | None]:
        """Execute iterations until a deadlock; yield for each the one after which all was the same, only earlier.

        Raises:
            UserError: that takes too many firings.
        """
        self._ends = [max(self.ready.values())]
        remembered, before = self._state(), 0  # after one iteration alone: there may be millions [brent80]
        firings = sum(self._graph.firings[actor] for actor in self._members)
        for iteration in range(1, MOST_FIRINGS // firings + 1):
            if not self._iterate():
                return
            self._ends.append(max(self.ready.values()))
            yield before if self._is_later(remembered, self._ends[-1] - self._ends[before]) else None
            if iteration >= 2 * before:
                remembered, before = self._state(), iteration
        raise UserError(
            f"graph {self._graph.name!r}: found more than {MOST_FIRINGS} firings before its execution repeats itself, "
            f"with {firings} in an iteration (smaller sizes and rates repeat sooner)"
        )

    def _iterate(self) -> bool:
        """Let every actor fire as often as in an iteration; return whether it could."""
        waiting = deque(self._members)
        self._left = {actor: self._graph.firings[actor] for actor in self._members}
        while waiting:
            actor = waiting.popleft()
            if self._fire(actor):
                ends = [self._graph.channels[number] for number in (*self._inputs[actor], *self._outputs[actor])]
                neighbours = dict.fromkeys(end for channel in ends for end in (channel.source, channel.target))
                waiting.extend(other for other in neighbours if self._left[other] and other != actor)
        return not any(self._left.values())

    def _fire(self, actor: int) -> bool:
        """Let an actor fire as often as it can; return whether it did."""
        channels, one = self._graph.channels, self._graph.actors[actor]
        whole, begun = self._graph.firings[actor], self._left[actor]
        while self._left[actor] and self._obstacle(actor) is None:
            phase = (whole - self._left[actor]) % len(one.cycles)
            start = self.ready[actor]
            for number in self._inputs[actor]:
                start = max(start, self.tokens[number].take(channels[number].read[phase]))
            for number in self._outputs[actor]:
                if number in self.places:
                    start = max(start, self.places[number].take(channels[number].written[phase]))
            self.ready[actor] = end = start + one.cycles[phase]
            for number in self._inputs[actor]:
                if number in self.places:
                    self.places[number].put(end, channels[number].read[phase])
            for number in self._outputs[actor]:
                self.tokens[number].put(end + one.latency, channels[number].written[phase])
            self._left[actor] -= 1
        return self._left[actor] < begun

    def _obstacle(self, actor: int) -> tuple[int, bool] | None:
        """Return the channel that the next firing of an actor waits for, and whether for tokens or for places in it."""
        phase = (self._graph.firings[actor] - self._left[actor]) % len(self._graph.actors[actor].cycles)
        for number in self._inputs[actor]:
            if self.tokens[number].count < self._graph.channels[number].read[phase]:
                return number, True
        for number in self._outputs[actor]:
            places = self.places.get(number)
            if places is not None and places.count < self._graph.channels[number].written[phase]:
                return number, False
        return None

    def _state(self) -> tuple[dict[int, int], list[_Times]]:
        """Return all that later times depend on."""
        held = (*self.tokens.values(), *self.places.values())
        return dict(self.ready), [times.last(times.count) for times in held]

    def _is_later(self, state: tuple[dict[int, int], list[_Times]], cycles: int) -> bool:
        """Whether all is as it was in a state, so many cycles later."""
        ready, before = state
        held = (*self.tokens.values(), *self.places.values())
        return all(time == ready[actor] + cycles for actor, time in self.ready.items()) and all(
            times.is_later(other, cycles) for times, other in zip(held, before, strict=True)
        )

    def _times(self) -> list[int]:
        """Return all times that later ones depend on, one by one."""
        held = (*self.tokens.values(), *self.places.values())
        return [*self.ready.values(), *chain.from_iterable(times.each() for times in held)]

    def _waits(self) -> tuple[str, ...]:
        """Follow who waits for whom until somebody comes twice."""
        actor = next(actor for actor, left in self._left.items() if left)
        path: dict[int, str] = {}
        while actor not in path:
            obstacle = self._obstacle(actor)
            assert obstacle is not None  # else it would have fired
            channel, is_read = self._graph.channels[obstacle[0]], obstacle[1]
            other = channel.source if is_read else channel.target
            what = "tokens from" if is_read else "places for tokens to"
            names = [self._graph.actors[each].name for each in (actor, other)]
            path[actor] = f"{names[0]!r} waits for {what} {names[1]!r} in {channel.name!r}"
            actor = other
        links = list(path)
        return tuple(path[each] for each in links[links.index(actor) :])
