"""Conversions of a tensor's layout on the chips of a network: the fastest way of several, and what an exchange costs.

Each is along one dimension. Volumes and times per byte are those of [ko24, section 3 and 4]; reduce-scatter, all-gather
and all-reduce as their composition are those of [chan07], [thakur05].
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations, product

from msgspec import Struct

from dfcompile.dfmodel_backend.inter_chip.splits import are_independent, canonical, largest_share, moved_elements
from dfcompile.dfmodel_backend.machine.network import collective_times as times
from dfcompile.dfmodel_backend.machine.network.topologies import Topology, topology
from dfcompile.dfmodel_backend.machine.system import Collective, Link, System
from dfcompile.dfmodel_backend.workload.graph import DimensionLayout, ExchangeKind, Layout, Partial, Split
from dfcompile.errors import InternalError


class TensorGroup(Struct, frozen=True):
    """All chips of a system as one tensor parallel group.

    Attributes:
        shape: of the network.
        links: one per dimension, innermost first.
        link_latency_ns: of one hop.
    """

    shape: Topology
    links: tuple[Link, ...]
    link_latency_ns: float

    @staticmethod
    def of(system: System) -> "TensorGroup":
        """Return the group of all chips of a system of several."""
        machine = system.machine
        return TensorGroup(topology(machine.topology), machine.links, machine.link_latency_ns)

    @property
    def chips(self) -> tuple[int, ...]:
        """Chips along each dimension, innermost first."""
        return tuple(link.chips for link in self.links)

    @property
    def likeness(self) -> tuple[object, ...]:
        """What times follow from: groups of which this is equal differ in power, or on a grid in the order of links."""
        links = [(link.shape, link.chips, link.gb_per_s) for link in self.links]
        return (*(sorted(links) if self.shape.is_grid else links), self.link_latency_ns)

    def time_ns(self, collective: Collective, size_bytes: float) -> float:
        """Return the time of a collective on a whole tensor.

        All-reduces (a reduce-scatter and an all-gather) and all-gathers go dimension by dimension: on a grid each
        chip takes its share of what the inner dimensions left on to the next one, ``sum_d r_d / (N_0 ... N_(d-1))``
        per byte; in a hierarchy the whole tensor passes the gateway of each inner group. An exchange among all is
        bound by the narrowest cut.
        """
        per_byte, latency_ns = self.cost(collective)
        return size_bytes * per_byte + latency_ns

    def cost(self, collective: Collective) -> tuple[float, float]:
        """Return the time per byte of a whole tensor, and the latency of the hops."""
        # An all-reduce goes around twice, as a scatter and a gather; everything else passes each link on its way once.
        separate_phases = collective is Collective.ALL_REDUCE
        latency_ns = sum(
            times.all_reduce_latency_ns(link, self.link_latency_ns, separate_phases=separate_phases)
            for link in self.links
        )
        if collective is Collective.ALL_TO_ALL:
            chips = [link.chips for link in self.links]
            return times.exchange_ns_per_byte(self.shape, chips, [link.gb_per_s for link in self.links]), latency_ns
        per_byte = sum(
            times.ns_per_byte(collective, link, separate_phases=True) * share
            for link, share in zip(self.links, self._shares(), strict=True)
        )
        return per_byte, latency_ns

    def _shares(self) -> Iterator[float]:
        """Yield the part of a tensor that a chip exchanges along each dimension."""
        share = 1.0
        for link in self.links:
            yield share
            share /= link.chips if self.shape.is_grid else 1


MOST_ORDERED = 3  # layouts of one tensor of which every order of making them is tried
STEP_COST = 1e-12  # of a time: of equally fast ways the one with fewer steps


class Step(Struct, frozen=True):
    """One conversion.

    Attributes:
        kind: the collective.
        dimensions: of the network along which chips take part.
        before: layout.
        after: layout.
        message_bytes: of the tensor that the chips of one group have together at that step, at most: what times are per
            byte of.
        moved_bytes: that all chips together receive.
        time_ns: of it.
    """

    kind: ExchangeKind
    dimensions: tuple[int, ...]
    before: Layout
    after: Layout
    message_bytes: int
    moved_bytes: int
    time_ns: float


Way = tuple[Step, ...]


def splits_of(layout: Layout) -> tuple[Split, ...]:
    """Return the splits of a layout."""
    return tuple(held for held in layout if isinstance(held, Split))


def share_elements(layout: Layout, elements: int) -> int:
    """Return the elements of the chip with most of an array."""
    return largest_share(splits_of(layout), elements)


class Conversions:
    """Conversions of an array between layouts on the chips of a group; what is found is kept.

    Attributes:
        way: the fastest steps from one layout to another.
        plan: the ways from a layout to all of several.
    """

    def __init__(self, group: TensorGroup, elements: int, element_bytes: int) -> None:
        self._group = group
        self._chips = group.chips
        self._elements = elements
        self._element_bytes = element_bytes
        self._cost, self.way, self.plan = cache(self._cost_along), cache(self._shortest), cache(self._plan)

    def _cost_along(self, kind: ExchangeKind, place: int) -> tuple[float, float]:
        """Return what a conversion along a dimension costs in its group: in a hierarchy with the inner ones."""
        shape, links = self._group.shape, self._group.links
        part = slice(place if shape.is_grid else 0, place + 1)
        group = TensorGroup(Topology(shape.kinds[part]), links[part], self._group.link_latency_ns)
        # A reduce-scatter has as many bytes as an all-gather, the other way round.
        return group.cost(Collective["ALL_GATHER" if kind is ExchangeKind.REDUCE_SCATTER else kind.name])

    def _share(self, layout: Layout) -> int:
        return share_elements(layout, self._elements)

    def _plan(self, given: Layout, needed: tuple[Layout, ...]) -> tuple[Way, ...]:
        """Return the ways to all of several layouts; each may start at any layout that there is by then.

        All orders of up to `MOST_ORDERED` layouts are tried; of more the nearest comes first.
        """
        if len(needed) > MOST_ORDERED:
            nearest = min(needed, key=lambda one: _rank(self.way(given, one)))
            return self._in_order(given, (nearest, *(one for one in needed if one != nearest)))
        plans = (self._in_order(given, order) for order in permutations(needed))
        return min(plans, key=lambda ways: _rank([step for way in ways for step in way]))

    def _in_order(self, given: Layout, order: Sequence[Layout]) -> tuple[Way, ...]:
        there = {given: None}
        ways: dict[Layout, Way] = {}
        for target in order:
            ways[target] = min((self.way(start, target) for start in there), key=_rank)
            there |= dict.fromkeys(step.after for step in ways[target])
        # In the order in which they are made, so that each start is there.
        return tuple(ways[target] for target in order)

    def completed(self, given: Layout) -> Layout:
        """Return the layout without partial results that is fastest to reach."""
        options = [
            (None, *self._helpers(given, place)) if isinstance(held, Partial) else (held, None)
            for place, held in enumerate(given)
        ]
        layouts = [one for one in product(*options) if are_independent(splits_of(one), self._elements)]
        return min(layouts, key=lambda one: _rank(self.way(given, one)))

    def _shortest(self, given: Layout, needed: Layout) -> Way:
        held = [
            tuple(dict.fromkeys((given[place], needed[place], None, *self._helpers(given, place))))
            for place in range(len(given))
        ]
        heap: list[tuple[float, int, int, Layout, Way]] = [(0.0, 0, 0, given, ())]
        done: set[Layout] = set()
        pushed = 0
        while heap:
            cost, moved, _, layout, way = heapq.heappop(heap)
            if layout == needed:
                return way
            if layout in done:
                continue
            done.add(layout)
            for step in self._steps(layout, needed, held):
                if step.after not in done:
                    pushed += 1
                    total = cost + step.time_ns * (1 + STEP_COST) + STEP_COST
                    heapq.heappush(heap, (total, moved + step.moved_bytes, pushed, step.after, (*way, step)))
        raise InternalError(f"layout {given}: found no way to {needed}")

    def _helpers(self, given: Layout, place: int) -> tuple[Split, ...]:
        """Return splits in which partial results may be scattered: blocks of all, or of what others have in a row."""
        if not isinstance(given[place], Partial):
            return ()
        elements = self._elements
        outer = [self._chips[d] for d in range(len(given) - 1, place, -1) if isinstance(given[d], Partial)]
        found = []
        bases = [((elements,), elements), *(((*split.moduli, split.block), split.block) for split in splits_of(given))]
        for start, length in bases:
            moduli, block = list(start), length
            for count in outer:
                block = -(-block // count)
                moduli.append(block)
            found.append(canonical(elements, moduli, -(-block // self._chips[place])))
        return tuple(dict.fromkeys(found))

    def _steps(self, layout: Layout, needed: Layout, held: Sequence[Sequence[DimensionLayout]]) -> Iterator[Step]:
        for place, options in enumerate(held):
            for option in options:
                kind = _kind(layout[place], option)
                if kind is None:
                    continue
                after = (*layout[:place], option, *layout[place + 1 :])
                if after == needed or are_independent(splits_of(after), self._elements):
                    yield self._step(kind, place, layout, after)
        if len(layout) > 1:
            yield from self._together(layout, needed)

    def _step(self, kind: ExchangeKind, place: int, before: Layout, after: Layout) -> Step:
        message = self._share((*before[:place], *before[place + 1 :])) * self._element_bytes
        moved = self._moved(kind, place, before, after) * self._element_bytes
        time_ns = self._time_ns(kind, place, self._passing(place, before) * self._element_bytes) if moved else 0.0
        return Step(kind, (place,), before, after, message, moved, time_ns)

    def _time_ns(self, kind: ExchangeKind, place: int, size_bytes: int) -> float:
        per_byte, latency_ns = self._cost(kind, place)
        return size_bytes * per_byte + latency_ns

    def _passing(self, place: int, before: Layout) -> int:
        """Return the elements of all chips that share the links along a dimension.

        On a grid each group has links of its own; in a hierarchy all inner groups share a gateway, and what it hands on
        comes from, or goes to, their chips over inner links.
        """
        if self._group.shape.is_grid or not place:
            return self._share((*before[:place], *before[place + 1 :]))
        partial = math.prod(
            count for count, held in zip(self._chips[:place], before, strict=False) if isinstance(held, Partial)
        )
        return self._share(before[place + 1 :]) * partial

    def _moved(self, kind: ExchangeKind, place: int, before: Layout, after: Layout) -> int:
        """Return the elements that all chips together receive; chips that have the same do the same."""
        others = [number for number in range(len(before)) if number != place]
        copies = math.prod(self._chips[other] for other in others if not isinstance(before[other], Split))
        count, elements = self._chips[place], self._elements
        match kind:
            case ExchangeKind.SLICE:
                return 0
            case ExchangeKind.ALL_GATHER | ExchangeKind.REDUCE_SCATTER:
                return (count - 1) * elements * copies
            case ExchangeKind.ALL_REDUCE:
                return 2 * (count - 1) * elements * copies
            case ExchangeKind.ALL_TO_ALL:
                return moved_elements(splits_of((before[place],)), splits_of((after[place],)), elements) * copies

    def _together(self, layout: Layout, needed: Layout) -> Iterator[Step]:
        """Yield conversions of all chips at once."""
        whole: Layout = (None,) * len(layout)
        everyone, size = math.prod(self._chips), self._elements * self._element_bytes
        dimensions = tuple(range(len(layout)))
        if all(isinstance(held, Partial) for held in layout):
            time_ns = self._group.time_ns(Collective.ALL_REDUCE, size)
            yield Step(ExchangeKind.ALL_REDUCE, dimensions, layout, whole, size, 2 * (everyone - 1) * size, time_ns)
        if len(splits_of(layout)) < len(layout):
            return
        time_ns = self._group.time_ns(Collective.ALL_GATHER, size)
        yield Step(ExchangeKind.ALL_GATHER, dimensions, layout, whole, size, (everyone - 1) * size, time_ns)
        if len(splits_of(needed)) == len(needed):
            moved = moved_elements(splits_of(layout), splits_of(needed), self._elements) * self._element_bytes
            time_ns = self._group.time_ns(Collective.ALL_TO_ALL, size) if moved else 0.0
            yield Step(ExchangeKind.ALL_TO_ALL, dimensions, layout, needed, size, moved, time_ns)


def _rank(steps: Sequence[Step]) -> tuple[float, int, int]:
    time_ns = sum(step.time_ns for step in steps)
    return (
        time_ns + STEP_COST * (time_ns + 1) * len(steps),
        sum(step.message_bytes for step in steps if step.kind is not ExchangeKind.SLICE),
        sum(step.moved_bytes for step in steps),
    )


def _kind(before: DimensionLayout, after: DimensionLayout) -> ExchangeKind | None:
    """Return what changes a layout along one dimension, if anything does."""
    if before == after or isinstance(after, Partial):
        return None
    match before:
        case Partial():
            return ExchangeKind.REDUCE_SCATTER if isinstance(after, Split) else ExchangeKind.ALL_REDUCE
        case Split():
            return ExchangeKind.ALL_TO_ALL if isinstance(after, Split) else ExchangeKind.ALL_GATHER
        case None:
            return ExchangeKind.SLICE
