"""Cyclo-static dataflow graphs: actors, the channels between them, and how often each fires in an iteration."""

from fractions import Fraction
from functools import cached_property
from math import gcd, lcm

from msgspec import Struct

from dfcompile.errors import UserError

MOST_PHASES = 100_000  # of an actor
LARGEST_NUMBER = 10**12  # of tokens, and of cycles


class Actor(Struct, frozen=True):
    """An actor, which fires once at a time, phase by phase and over again [bilsen96].

    Attributes:
        name: unique in the graph.
        cycles: execution time of each phase.
        latency: cycles from the end of a firing until its tokens can be read.
    """

    name: str
    cycles: tuple[int, ...]
    latency: int = 0


class Channel(Struct, frozen=True):
    """A FIFO of tokens between two actors, or from an actor to itself.

    Attributes:
        name: of it.
        source: number of the actor that writes.
        target: number of the actor that reads.
        written: tokens that each phase of the source writes.
        read: tokens that each phase of the target reads.
        tokens: that are there in the beginning.
        size: tokens that it holds; ``None``: not stated.
    """

    name: str
    source: int
    target: int
    written: tuple[int, ...]
    read: tuple[int, ...]
    tokens: int = 0
    size: int | None = None

    @property
    def is_state(self) -> bool:
        """Whether it is an actor's own: what an actor hands to itself takes no FIFO."""
        return self.source == self.target

    @property
    def grain(self) -> int:
        """The tokens that come and go together: sizes between make no difference."""
        return gcd(*self.written, *self.read)

    @property
    def least_size(self) -> int:
        """What it holds at least if both of its actors are to fire for ever.

        Of actors of one phase, that write p and read c, ``p + c - g + d mod g`` with the grain g and d tokens in the
        beginning, and d at least [bhattacharyya96]: less is a deadlock, whatever the rest of the graph.
        """
        if len(self.written) == len(self.read) == 1:
            return max(self.written[0] + self.read[0] - self.grain + self.tokens % self.grain, self.tokens)
        least = max(*self.written, *self.read, self.tokens)
        return least + (self.tokens - least) % self.grain


class ActorGraph(Struct, frozen=True, dict=True):
    """A consistent, connected graph of actors.

    Attributes:
        name: of it.
        actors: by number.
        channels: between them.
        iterations: that belong together, such as those of an inference; figures are of all of them.
    """

    name: str
    actors: tuple[Actor, ...]
    channels: tuple[Channel, ...]
    iterations: int = 1

    @cached_property
    def channels_of(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the channels that begin or end at each actor."""
        found: list[dict[int, None]] = [{} for _ in self.actors]
        for number, channel in enumerate(self.channels):
            found[channel.source][number] = found[channel.target][number] = None
        return tuple(map(tuple, found))

    @cached_property
    def firings(self) -> tuple[int, ...]:
        """How often each actor fires in an iteration, which leaves as many tokens as there were: the least numbers.

        The repetition vector [lee87], of whole rounds of phases [bilsen96].

        Raises:
            UserError: there is none but 0, which would need more and more memory; or a part of the graph has nothing to
                do with the rest.
        """
        rounds: dict[int, Fraction] = {0: Fraction(1)}
        reached = [0]
        for actor in reached:  # grows while it is read
            for number in self.channels_of[actor]:
                channel = self.channels[number]
                ratio = Fraction(sum(channel.written), sum(channel.read))
                is_source = channel.source == actor
                other = channel.target if is_source else channel.source
                balanced = rounds[actor] * ratio if is_source else rounds[actor] / ratio
                if other not in rounds:
                    rounds[other] = balanced
                    reached.append(other)
                elif rounds[other] != balanced:
                    raise UserError(self._inconsistent(channel, rounds))
        for number, actor_ in enumerate(self.actors):
            if number not in rounds:
                first = self.actors[0].name
                raise UserError(f"actor {actor_.name!r}: no way to {first!r} against one graph (schedule them apart)")
        whole = lcm(*(share.denominator for share in rounds.values()))
        common = gcd(*(int(share * whole) for share in rounds.values()))
        return tuple(int(rounds[at] * whole) // common * len(actor.cycles) for at, actor in enumerate(self.actors))

    def _inconsistent(self, channel: Channel, rounds: dict[int, Fraction]) -> str:
        source, target = self.actors[channel.source].name, self.actors[channel.target].name
        balanced = Fraction(sum(channel.written), sum(channel.read)) * rounds[channel.source] / rounds[channel.target]
        return (
            f"channel {channel.name!r}: {source!r} writes {balanced} tokens for each that {target!r} reads, against 1 "
            "(the rates are inconsistent: no schedule of bounded memory)"
        )
