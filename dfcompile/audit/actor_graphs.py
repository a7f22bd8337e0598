"""Computes the figures of a graph of actors anew: an execution in time, which counts tokens and places."""

from collections.abc import Iterable
from fractions import Fraction
from heapq import heappop, heappush
from operator import ge

from dfcompile.actor_graphs.graph import ActorGraph
from dfcompile.audit.comparing import expect_at_least, expect_figures, expect_rows
from dfcompile.report.actor_graphs import ActorsReport


def audit_actors(report: ActorsReport, graph: ActorGraph) -> None:
    """Compute the figures of a report anew; that nothing is faster, and that sizes are minimal, is taken as it is.

    Raises:
        VerificationError: naming the figure.
    """
    names = [actor.name for actor in graph.actors]
    for place, found, channel in expect_rows("report.channels", report.channels, graph.channels):
        source, target = names[channel.source], names[channel.target]
        expect_figures(place, found, source=source, target=target, tokens=channel.tokens)
    for number, (place, row, actor) in enumerate(expect_rows("report.actors", report.actors, graph.actors)):
        count = graph.firings[number]
        busy = sum(actor.cycles[at % len(actor.cycles)] for at in range(count)) * graph.iterations
        expect_figures(place, row, firings=count * graph.iterations, busy_cycles=busy)
        expect_at_least("report.least_period_cycles", report.least_period_cycles, busy, f"what {actor.name!r} takes")
    sizes = tuple(channel.size_tokens for channel in report.channels)
    period, first = plain_period(graph, sizes) or (None, None)
    expect_figures("report", report, period_cycles=period, first_cycles=first, size_tokens=sum(filter(None, sizes)))
    if period is not None:
        expect_at_least("report.period_cycles", period, report.least_period_cycles, "least_period_cycles")


def plain_period(graph: ActorGraph, sizes: tuple[int | None, ...]) -> tuple[Fraction, int] | None:
    """Return how long the iterations that belong together take in the long run, and until the first have ended.

    Time goes from event to event. At each first all that ends ends, then all that can begin begins. When the first
    actor has fired as often as in an iteration, and all is as it was at such a time before, it repeats itself.

    Args:
        graph: of actors.
        sizes: of channels; some circle of each leads back to the first actor, or its pace is not that of all.

    Returns:
        Of a deadlock ``None``.
    """
    return _Plain(graph, sizes).run()


class _Plain:
    """Tokens and places that there are, and what comes."""

    def __init__(self, graph: ActorGraph, sizes: tuple[int | None, ...]) -> None:
        self._graph = graph
        self._tokens = [channel.tokens for channel in graph.channels]
        sized = zip(graph.channels, sizes, strict=True)
        self._places = [None if size is None else size - channel.tokens for channel, size in sized]
        self._ends = [(channel.source, channel.target) for channel in graph.channels]
        self._fired = [0] * len(graph.actors)
        self._is_busy = [False] * len(graph.actors)
        self._coming: list[tuple[int, int, int, int]] = []  # time, actor that ends or none, channel, tokens

    def run(self) -> tuple[Fraction, int] | None:
        """Go on until all is as before."""
        every, remembered = self._graph.firings, self._state(0)
        time = first = done = before = then = 0
        able: Iterable[int] = range(len(self._graph.actors))
        while True:
            for actor in able:
                self._begin(actor, time)
            if not self._coming:
                return None
            time, moved = self._coming[0][0], dict[int, None]()
            while self._coming and self._coming[0][0] == time:
                _, actor, channel, tokens = heappop(self._coming)
                if actor >= 0:
                    self._end(actor, time)
                    moved |= dict.fromkeys(self._graph.channels_of[actor])
                else:
                    self._tokens[channel] += tokens
                    moved[channel] = None
            able = {end: None for at in moved for end in self._ends[at]}
            if not first and all(map(ge, self._fired, (count * self._graph.iterations for count in every))):
                first = time
            if self._fired[0] >= every[0] * (done + 1):
                done = self._fired[0] // every[0]
                state = self._state(time)
                if state == remembered and first:
                    return Fraction(time - then, done - before) * self._graph.iterations, first
                if done >= 2 * before:
                    remembered, before, then = state, done, time

    def _begin(self, number: int, time: int) -> None:
        """Let an actor begin if it can."""
        actor = self._graph.actors[number]
        phase = self._fired[number] % len(actor.cycles)
        channels = [(at, self._graph.channels[at], self._places[at]) for at in self._graph.channels_of[number]]
        if self._is_busy[number]:
            return
        for at, channel, places in channels:
            if channel.target == number and self._tokens[at] < channel.read[phase]:
                return
            if channel.source == number and places is not None and places < channel.written[phase]:
                return
        for at, channel, places in channels:
            if channel.target == number:
                self._tokens[at] -= channel.read[phase]
            if channel.source == number and places is not None:
                self._places[at] = places - channel.written[phase]
        self._is_busy[number] = True
        heappush(self._coming, (time + actor.cycles[phase], number, 0, 0))

    def _end(self, number: int, time: int) -> None:
        """Let a firing end: what it has read makes room, what it writes is there or comes later."""
        actor = self._graph.actors[number]
        phase = self._fired[number] % len(actor.cycles)
        for at in self._graph.channels_of[number]:
            channel, places = self._graph.channels[at], self._places[at]
            if channel.target == number and places is not None:
                self._places[at] = places + channel.read[phase]
            if channel.source == number and channel.written[phase]:
                heappush(self._coming, (time + actor.latency, -1, at, channel.written[phase]))
        self._fired[number] += 1
        self._is_busy[number] = False

    def _state(self, time: int) -> object:
        phases = tuple(fired % len(actor.cycles) for fired, actor in zip(self._fired, self._graph.actors, strict=True))
        coming = tuple((at - time, *what) for at, *what in sorted(self._coming))
        return tuple(self._tokens), tuple(self._places), phases, tuple(self._is_busy), coming
