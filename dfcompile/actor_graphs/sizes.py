"""Sizes of channels: what no size can be faster than, and the smallest that are as fast."""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from msgspec import Struct

from dfcompile.actor_graphs.execution import Execution, SelfTimed
from dfcompile.actor_graphs.graph import ActorGraph
from dfcompile.errors import UserError
from dfcompile.scheduler.simulation.plan import strong_components


class Sized(Struct, frozen=True):
    """A graph with sizes of its channels.

    Attributes:
        sizes: tokens that each channel holds; ``None`` of an actor's own state.
        execution: with them.
        least_period_cycles: of the period with channels that are never full; none is faster, whatever the sizes.
        is_minimal: whether with a token less in any one of them an iteration takes longer, or there is a deadlock.
    """

    sizes: tuple[int | None, ...]
    execution: Execution
    least_period_cycles: Fraction
    is_minimal: bool


def least_period(graph: ActorGraph) -> Fraction:
    """Return the cycles of an iteration if no channel is ever full.

    Actors that wait for one another in a circle, and such as fire alone, keep a pace of their own; the slowest sets
    that of all [ghamarian06].

    Raises:
        UserError: some wait for one another for ever, whatever the sizes; or none takes any time.
    """
    ends = np.array([(channel.source, channel.target) for channel in graph.channels], dtype=np.int64).T
    circles: dict[int, list[int]] = {}
    for actor, circle in enumerate(strong_components(len(graph.actors), *ends).tolist()):
        circles.setdefault(circle, []).append(actor)
    found = Fraction(0)
    for members in circles.values():
        execution = SelfTimed(graph, {}, members).run()
        if execution.period_cycles is None:
            raise UserError(
                f"graph {graph.name!r}: a deadlock with channels of any size ({'; '.join(execution.waits)})"
            )
        found = max(found, execution.period_cycles)
    if not found:
        raise UserError(f"graph {graph.name!r}: found no actor that takes time, against one at least (unbounded rates)")
    return found


def sized_as_stated(graph: ActorGraph, sizes: tuple[int | None, ...]) -> Sized:
    """Return what a graph takes with given sizes.

    Raises:
        UserError: as `least_period`, or more tokens are in a channel in the beginning than it holds.
    """
    for channel, size in zip(graph.channels, sizes, strict=True):
        if size is not None and size < channel.tokens:
            raise UserError(
                f"channel {channel.name!r}: found {channel.tokens} tokens in the beginning against a size of {size}"
            )
    bounded = {number: size for number, size in enumerate(sizes) if size is not None}
    least = least_period(graph)
    return Sized(sizes, SelfTimed(graph, bounded).run(), least, is_minimal=False)


def minimal_sizes(graph: ActorGraph) -> Sized:
    """Return sizes with which a graph is as fast as with any, none of which can be smaller without slowing it down.

    More room never slows down, so all channels get more until that is enough, and then each as little as the others
    allow, one after another. The sum need not be the least of all.

    Raises:
        UserError: as `least_period`.
    """
    least = least_period(graph)
    own = {number: channel for number, channel in enumerate(graph.channels) if not channel.is_state}

    def sizes_with(grains: Mapping[int, int]) -> dict[int, int]:
        return {number: channel.least_size + channel.grain * grains[number] for number, channel in own.items()}

    grains = dict.fromkeys(own, 0)
    while not (execution := SelfTimed(graph, sizes_with(grains))).keeps(least):
        grains = {number: 2 * more + 1 for number, more in grains.items()}
    for number in own:
        fewest = 0
        while fewest < grains[number]:
            # Most channels need few: first 0, 1, 3, 7 … are tried, and then halves.
            tried = min(max(2 * fewest - 1, 0), (fewest + grains[number]) // 2)
            shorter = _kept(graph, sizes_with({**grains, number: tried}), number, least, execution)
            if shorter is None:
                fewest = tried + 1
            else:
                grains[number], execution = tried, shorter
    sizes = sizes_with(grains)
    stated = tuple(map(sizes.get, range(len(graph.channels))))
    return Sized(stated, SelfTimed(graph, sizes).run(), least, is_minimal=True)


_NEAR = (6, 24)  # actors


def _kept(
    graph: ActorGraph, sizes: Mapping[int, int], changed: int, period: Fraction, begin: SelfTimed
) -> SelfTimed | None:
    """Return an execution with smaller sizes if it keeps the period.

    What some actors take without the others is no more than with them: mostly those near the changed channel tell.
    """
    near = [graph.channels[changed].source, graph.channels[changed].target]
    known = dict.fromkeys(near)
    for actor in near:  # grows while it is read
        ends = (graph.channels[number] for number in graph.channels_of[actor])
        found = dict.fromkeys(end for channel in ends for end in (channel.source, channel.target) if end not in known)
        known |= found
        near += found
        if len(near) >= _NEAR[-1]:
            break
    for count in _NEAR:
        if count < len(graph.actors) and not SelfTimed(graph, sizes, near[:count], begin).keeps(period):
            return None
    execution = SelfTimed(graph, sizes, begin=begin)
    return execution if execution.keeps(period) else None
