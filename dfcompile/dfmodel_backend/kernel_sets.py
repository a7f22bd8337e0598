"""Sets of kernels, as bit masks: which may share a configuration by their order alone, whatever it costs.

Down-sets hold every predecessor of their members. A mapping into configurations is a chain of down-sets from the empty
set to all kernels, each configuration the difference of two neighbours. Of a few topological orders the prefixes are
some of the down-sets, few whatever the graph.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain, islice
from operator import or_

import numpy as np
from msgspec import Struct, field

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers, members_of
from dfcompile.dfmodel_backend.workload.design import Design


def kernels_of(mask: int) -> Iterator[int]:
    """Yield the kernels of a set, ascending: a set has few of thousands of kernels."""
    while mask:
        bit = mask & -mask
        mask ^= bit
        yield bit.bit_length() - 1


class DownSets(Struct, frozen=True):
    """All down-sets of a DAG."""

    larger: dict[int, tuple[int, ...]]  # per down-set, those with one kernel more; smaller down-sets first

    def __iter__(self) -> Iterator[int]:
        return iter(self.larger)

    def supersets(self, down_set: int, most: int, may_grow: Callable[[int], bool]) -> Iterator[int]:
        """Yield larger down-sets with at most ``most`` kernels more, fewer kernels first.

        ``may_grow`` tells of a set of added kernels whether larger ones are of interest; where it says no, no set
        that holds them is yielded but for those reached another way.
        """
        layer = [down_set]
        for _ in range(most):
            layer = sorted({larger for smaller in layer for larger in self.larger[smaller]})
            if not layer:
                return
            yield from layer
            layer = [larger for larger in layer if may_grow(larger ^ down_set)]


@lru_cache(maxsize=4)  # of one graph whatever its kernels cost
def list_down_sets(predecessors: tuple[int, ...], limit: int) -> DownSets | None:
    """Return all down-sets, or None if there are more than ``limit``."""
    followers = followers_of(predecessors)
    larger: dict[int, tuple[int, ...]] = {}
    free = {0: sum(1 << kernel for kernel, needed in enumerate(predecessors) if not needed)}
    while free:
        if len(larger) + len(free) > limit:
            return None
        following: dict[int, int] = {}
        for down_set, kernels in free.items():
            found = []
            for kernel in kernels_of(kernels):
                after = down_set | 1 << kernel
                found.append(after)
                if after not in following:
                    ready = (one for one in followers[kernel] if not predecessors[one] & ~after)
                    following[after] = kernels ^ 1 << kernel | sum(1 << one for one in ready)
            larger[down_set] = tuple(found)
        free = {down_set: following[down_set] for down_set in sorted(following)}
    return DownSets(larger)


def followers_of(predecessors: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the kernels that wait for each kernel, ascending."""
    followers: list[list[int]] = [[] for _ in predecessors]
    for kernel, needed in enumerate(predecessors):
        for one in kernels_of(needed):
            followers[one].append(kernel)
    return tuple(map(tuple, followers))


def joined(orders: Iterable[tuple[int, ...]]) -> DownSets:
    """Return the prefixes of topological orders of the same kernels as down-sets."""
    larger: dict[int, dict[int, None]] = {0: {}}
    for order in orders:
        done = 0
        for kernel in order:
            larger[done][done | 1 << kernel] = None
            done |= 1 << kernel
            larger.setdefault(done, {})
    by_size = sorted(larger, key=lambda down_set: (down_set.bit_count(), down_set))
    return DownSets({down_set: tuple(larger[down_set]) for down_set in by_size})


def topological_orders(predecessors: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield orders: as given where that is one, depth first (consumers follow their producer), and level by level.

    Args:
        predecessors: the set of direct predecessors of each kernel, as bit masks.
    """
    latest = [-1] * len(predecessors)  # step at which the last producer ran
    rules: list[Callable[[int], tuple[int, int]]] = [
        lambda kernel: (0, kernel),
        lambda kernel: (-latest[kernel], kernel),
        lambda kernel: (latest[kernel], kernel),
    ]
    followers = followers_of(predecessors)
    for rule in rules:
        latest[:] = [-1] * len(predecessors)
        waits = [needed.bit_count() for needed in predecessors]
        order: list[int] = []
        ready = [kernel for kernel, needed in enumerate(predecessors) if not needed]
        while ready:
            kernel = min(ready, key=rule)
            ready.remove(kernel)
            order.append(kernel)
            for follower in followers[kernel]:
                latest[follower] = len(order)
                waits[follower] -= 1
                if not waits[follower]:
                    ready.append(follower)
        yield tuple(order)


class FusionShape(Struct, frozen=True):
    """Kernels are numbered; sets of them are bit masks.

    Attributes:
        predecessors: of each kernel.
        allowed: of each configuration, in order of execution, the kernels that may be in it.
        most_kernels: of a configuration.
        stages: of a pipeline that follow each other, each with all these configurations.
        forward: kernels of the first pass where two passes take separate halves of the configurations, else 0 [ko24].
        backward: kernels of the second pass there; a kernel of neither may be in any configuration.
    """

    predecessors: tuple[int, ...]
    allowed: tuple[int, ...]
    most_kernels: int
    stages: int = 1
    forward: int = 0
    backward: int = 0

    @property
    def every_kernel(self) -> int:
        """Set of all kernels."""
        return (1 << len(self.predecessors)) - 1

    @property
    def is_unlimited(self) -> bool:
        """Whether kernels may be in any configuration, and there is one for each of them."""
        return len(self.allowed) >= len(self.predecessors) and set(self.allowed) <= {self.every_kernel}

    def lattice(self, most: int) -> DownSets | None:
        """Return the down-sets that a chain may visit, or None if there are more than ``most``.

        Where two passes take separate halves, no configuration starts or ends with the first pass unfinished and the
        second begun.
        """
        return list_down_sets(self._ordered, most)

    def considered(self, most: int) -> tuple[DownSets, bool]:
        """Return the down-sets to consider and whether these are all; where all are too many, those of few orders."""
        lattice = self.lattice(most)
        return (lattice, True) if lattice is not None else (self.intervals(), False)

    def intervals(self) -> DownSets:
        """Return the prefixes of a few topological orders: some of the down-sets, few whatever the graph."""
        return joined(topological_orders(self._ordered))

    @property
    def _ordered(self) -> tuple[int, ...]:
        return tuple(
            needed | self.forward if self.backward >> kernel & 1 else needed
            for kernel, needed in enumerate(self.predecessors)
        )

    def middle_pairs(self, lattice: DownSets) -> Iterator[tuple[int, int]]:
        """Yield pairs whose kernels are of both passes: of an odd number of configurations the middle is for both."""
        if not self.forward or len(self.allowed) % 2 == 0:
            return
        late = [after for after in lattice if after & self.forward == self.forward and after & self.backward]
        for before in lattice:
            if not before & self.backward and before & self.forward != self.forward:
                for after in late:
                    if before & ~after == 0 and (after ^ before).bit_count() <= self.most_kernels:
                        yield before, after


def shape_of(design: Design) -> FusionShape:
    """Return precedence and allowed configurations of a design's kernels, numbered by their position."""
    kernels = design.kernels
    has_halves = design.execution.batch.layers_in_graph == 1 and any(kernel.backward for kernel in kernels)
    forward, backward = (
        sum(1 << position for position, kernel in enumerate(kernels) if has_halves and kernel.backward is is_second)
        for is_second in (False, True)
    )
    return FusionShape(
        predecessors=predecessors_of(len(kernels), design.ends),
        allowed=_allowed(design, forward, backward),
        most_kernels=1 if design.is_kernel_by_kernel else design.machine.cores,
        forward=forward,
        backward=backward,
    )


def predecessors_of(kernels: int, ends: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the set of the direct predecessors of each kernel, given the ends of the edges."""
    masks = [0] * kernels
    for source, target in ends:
        masks[target] |= 1 << source
    return tuple(masks)


def _allowed(design: Design, forward: int, backward: int) -> tuple[int, ...]:
    """Return, per configuration, the kernels that may be in it; pins do not hold in a pipeline of stages.

    Args:
        design: of the kernels.
        forward: kernels that the later half does not hold.
        backward: kernels that the earlier half does not hold.
    """
    if design.is_pipelined:
        return ((1 << len(design.kernels)) - 1,) * design.slots_of_stage
    masks, slots = [], design.slots
    for slot in range(slots):
        pinned = sum(1 << number for number, one in enumerate(design.kernels) if one.pinned_config in (-1, slot))
        early, late = backward * (slot < slots // 2), forward * (slot >= (slots + 1) // 2)
        masks.append(pinned & ~early & ~late)
    return tuple(masks)


MOST_LIMITS = 10_000_000  # sets whose limits are kept, 24 bytes each


class SetLimits(Struct, frozen=True, eq=False):
    """Which sets are possible, and what they have.

    Attributes:
        weight_tiles: parts in which each loads its weights; 0 of one that is not possible.
        crossing: bytes per tile at the border of each.
        compute_ns: of a tile of each.
    """

    weight_tiles: Numbers
    crossing: Column
    compute_ns: Column


class PathArcs(Struct, frozen=True, eq=False):
    """Possible configurations, each a pair of down-sets; kernels are numbered.

    Attributes:
        down_sets: all of them as masks, smaller ones first.
        before: number of the down-set that ran earlier, per arc.
        after: number of the down-set that has run then, per arc; ascending.
    """

    down_sets: tuple[int, ...]
    before: Numbers
    after: Numbers

    def mask(self, arc: int) -> int:
        """Return the set of kernels of an arc."""
        return self.down_sets[int(self.after[arc])] ^ self.down_sets[int(self.before[arc])]


class Arcs(PathArcs, frozen=True, eq=False):
    """Possible configurations with their sets of kernels, each of them once.

    Attributes:
        added: number of the set of kernels of the configuration, per arc.
        sets: the different sets, as masks.
        members: the same as ``[set, kernel]``.
        limits: which sets are possible, by what that depends on: filled as it becomes known.
    """

    added: Numbers
    sets: tuple[int, ...]
    members: Members
    limits: dict[bytes, SetLimits] = field(default_factory=dict)

    def limits_of(self, key: bytes, find: Callable[[Members], SetLimits]) -> SetLimits:
        """Return which sets are possible; what is found for a key is kept as long as there is room."""
        if key in self.limits:
            return self.limits[key]
        found = find(self.members)
        if len(self.limits) < MOST_LIMITS // max(1, len(self.members)):
            self.limits[key] = found
        return found


def arcs_of(shape: FusionShape, lattice: DownSets, may_grow: Callable[[int], bool]) -> Arcs:
    """Return the configurations whose kernels may share a slot, larger ones as far as they may be possible."""
    arcs = arcs_within(shape, lattice, may_grow, len(lattice.larger) ** 2)
    assert arcs is not None  # no more than pairs
    return arcs


def arcs_within(shape: FusionShape, lattice: DownSets, may_grow: Callable[[int], bool], most: int) -> Arcs | None:
    """Return the configurations whose kernels may share a slot, or None if that are more than ``most``.

    Args:
        shape: of the problem.
        lattice: all down-sets, or some.
        may_grow: whether sets that hold a set of kernels may be possible.
        most: configurations, larger ones as far as they may be possible.
    """
    beyond = tuple(shape.every_kernel & ~mask for mask in dict.fromkeys(shape.allowed))
    takes_all = 0 in beyond  # some slot does

    def is_allowed(added: int) -> bool:
        return takes_all or any(not added & kernels for kernels in beyond)

    @cache
    def grows(added: int) -> bool:
        return is_allowed(added) and may_grow(added)

    most_kernels = min(shape.most_kernels, len(shape.predecessors))
    pairs = chain(
        ((before, after) for before in lattice for after in lattice.supersets(before, most_kernels, grows)),
        (pair for pair in shape.middle_pairs(lattice) if grows(pair[0] ^ pair[1])),
    )
    found = list(islice((pair for pair in pairs if is_allowed(pair[0] ^ pair[1])), most + 1))
    if len(found) > most:
        return None
    number = {down_set: place for place, down_set in enumerate(lattice)}
    sets: dict[int, int] = {}
    rows = [(number[after], number[before], sets.setdefault(after ^ before, len(sets))) for before, after in found]
    after, before, added = np.array(sorted(rows), np.int64).reshape(-1, 3).T
    masks = tuple(sets)
    return Arcs(tuple(lattice), before, after, added, masks, members_of(masks, len(shape.predecessors)))


def arcs_of_chain(chain: tuple[int, ...], count: int) -> Arcs:
    """Return the configurations of a chain of sets of ``count`` kernels in their order; empty sets are none."""
    used = tuple(kernels for kernels in chain if kernels)
    positions = np.arange(len(used))
    return Arcs(
        down_sets=(0, *accumulate(used, or_)),
        before=positions,
        after=positions + 1,
        added=positions,
        sets=used,
        members=members_of(used, count),
    )


def single_arcs(count: int) -> Arcs:
    """Return the configurations of one kernel each, in the order of their numbers."""
    return arcs_of_chain(tuple(1 << kernel for kernel in range(count)), count)
