"""Self-timed execution of a graph of actors: every firing as early as tokens and places allow, until it repeats."""

from collections import deque
from collections.abc import Collection, Mapping
from fractions import Fraction

from msgspec import Struct

from dfcompile.actor_graphs.graph import ActorGraph
from dfcompile.errors import UserError

MOST_FIRINGS = 20_000_000


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
        self._runs = deque([[0, count]] if count else [])

    def put(self, time: int, count: int) -> None:
        if not count:
            return
        self.count += count
        if self._runs and self._runs[-1][0] == time:
            self._runs[-1][1] += count
        else:
            self._runs.append([time, count])

    def take(self, count: int) -> int:
        """Take the first so many and return when the last of them is there."""
        self.count -= count
        runs, time = self._runs, 0
        while count:
            run = runs[0]
            time = run[0]
            taken = min(count, run[1])
            count -= taken
            run[1] -= taken
            if not run[1]:
                runs.popleft()
        return time

    def after(self, time: int) -> tuple[tuple[int, int], ...]:
        """Return all, as counted from a time."""
        return tuple((at - time, count) for at, count in self._runs)


class SelfTimed:
    """The execution of some actors of a graph, iteration by iteration.

    A firing begins as soon as the one before has ended, all tokens that it reads are there, and so are places for all
    that it writes. These it takes at once; it frees what it has read when it ends [stuijk06]. The times are the least
    solution of these conditions, so the order in which they are found makes no difference.
    """

    def __init__(self, graph: ActorGraph, sizes: Mapping[int, int], members: Collection[int] | None = None) -> None:
        """Begin.

        Args:
            graph: of the actors.
            sizes: of channels, by number; others are never full.
            members: numbers of the actors; channels from and to others are left out. ``None``: all.
        """
        self._graph = graph
        self._members = range(len(graph.actors)) if members is None else members
        self._inputs: dict[int, list[int]] = {actor: [] for actor in self._members}
        self._outputs: dict[int, list[int]] = {actor: [] for actor in self._members}
        self._tokens: dict[int, _Times] = {}
        self._places: dict[int, _Times] = {}
        for number in dict.fromkeys(number for actor in self._members for number in graph.channels_of[actor]):
            channel = graph.channels[number]
            if channel.source in self._inputs and channel.target in self._inputs:
                self._outputs[channel.source].append(number)
                self._inputs[channel.target].append(number)
                self._tokens[number] = _Times(channel.tokens)
                if number in sizes and not channel.is_state:
                    self._places[number] = _Times(sizes[number] - channel.tokens)
        self._ready = dict.fromkeys(self._members, 0)
        self._left = dict.fromkeys(self._members, 0)

    def run(self) -> Execution:
        """Execute until an iteration begins as an earlier one did, only later.

        Raises:
            UserError: that takes too many firings.
        """
        of_iteration = sum(self._graph.firings[actor] for actor in self._members)
        together = self._graph.iterations
        seen, ends = {self._state(0): 0}, [0]
        for iteration in range(1, MOST_FIRINGS // of_iteration + 1):
            if not self._iterate():
                return Execution(None, None, self._waits())
            ends.append(max(self._ready.values()))
            before = seen.setdefault(self._state(ends[-1]), iteration)
            if before < iteration:
                period = Fraction(ends[-1] - ends[before], iteration - before)
                rounds, rest = divmod(max(together - before, 0), iteration - before)
                first = ends[min(together, before + rest)] + rounds * (ends[-1] - ends[before])
                return Execution(period * together, first)
        raise UserError(
            f"graph {self._graph.name!r}: found more than {MOST_FIRINGS} firings before its execution repeats itself, "
            f"with {of_iteration} in an iteration (smaller rates)"
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
            start = self._ready[actor]
            for number in self._inputs[actor]:
                start = max(start, self._tokens[number].take(channels[number].read[phase]))
            for number in self._outputs[actor]:
                if number in self._places:
                    start = max(start, self._places[number].take(channels[number].written[phase]))
            self._ready[actor] = end = start + one.cycles[phase]
            for number in self._inputs[actor]:
                if number in self._places:
                    self._places[number].put(end, channels[number].read[phase])
            for number in self._outputs[actor]:
                self._tokens[number].put(end + one.latency, channels[number].written[phase])
            self._left[actor] -= 1
        return self._left[actor] < begun

    def _obstacle(self, actor: int) -> tuple[int, bool] | None:
        """Return the channel that the next firing of an actor waits for, and whether for tokens or for places in it."""
        phase = (self._graph.firings[actor] - self._left[actor]) % len(self._graph.actors[actor].cycles)
        for number in self._inputs[actor]:
            if self._tokens[number].count < self._graph.channels[number].read[phase]:
                return number, True
        for number in self._outputs[actor]:
            places = self._places.get(number)
            if places is not None and places.count < self._graph.channels[number].written[phase]:
                return number, False
        return None

    def _state(self, now: int) -> tuple[object, ...]:
        """Return all that later times depend on, as counted from a time."""
        return (
            tuple(ready - now for ready in self._ready.values()),
            tuple(times.after(now) for times in self._tokens.values()),
            tuple(times.after(now) for times in self._places.values()),
        )

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
