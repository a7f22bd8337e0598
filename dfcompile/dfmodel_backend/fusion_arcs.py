"""Configurations that a design allows: pairs of down-sets of its kernels, as columns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.design import Design
from dfcompile.dfmodel_backend.design_model import DesignModel, Members
from dfcompile.dfmodel_backend.down_sets import DownSets, list_down_sets
from dfcompile.dfmodel_backend.set_limits import SetLimits

MOST_DOWN_SETS = 20_000
MOST_ARCS = 2_000_000

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class Arcs:
    """A configuration each; kernels are numbered by position in the design.

    Attributes:
        down_sets: all of them as masks, smaller ones first.
        before: number of the down-set that ran earlier, per arc.
        after: number of the down-set that has run then, per arc; ascending.
        added: number of the set of kernels of the configuration, per arc.
        sets: the different sets, as masks.
        members: the same as ``[set, kernel]``.
        limits: which sets are possible, by what that depends on: filled as it becomes known.
    """

    down_sets: tuple[int, ...]
    before: Numbers
    after: Numbers
    added: Numbers
    sets: tuple[int, ...]
    members: Members
    limits: dict[bytes, SetLimits] = field(default_factory=dict)

    @property
    def starts(self) -> Numbers:
        """First arc of each group of arcs with the same end."""
        return np.flatnonzero(np.r_[True, self.after[1:] != self.after[:-1]])


def slot_count(design: Design) -> int:
    """Return how many configurations there are at most."""
    return design.execution.configurations or len(design.kernels)


def _forward_kernels(design: Design) -> int:
    return sum(1 << position for position, kernel in enumerate(design.kernels) if not kernel.backward)


def allowed_kernels(design: Design) -> tuple[int, ...]:
    """Return, per configuration, the set of kernels that may be in it; pins do not hold in a pipeline of stages."""
    slots = slot_count(design)
    if design.execution.batch.layers_in_graph > 1:
        return ((1 << len(design.kernels)) - 1,) * slots
    halves = has_halves(design)
    masks = []
    for slot in range(slots):
        mask = 0
        for position, kernel in enumerate(design.kernels):
            late = halves and kernel.backward and slot < slots // 2
            early = halves and not kernel.backward and slot >= (slots + 1) // 2
            if kernel.pinned_config in (-1, slot) and not late and not early:
                mask |= 1 << position
        masks.append(mask)
    return tuple(masks)


def predecessors_of(design: Design) -> tuple[int, ...]:
    """Return the set of direct predecessors of each kernel."""
    position = {kernel.id: number for number, kernel in enumerate(design.kernels)}
    found = [0] * len(position)
    for edge in design.edges:
        found[position[edge.target]] |= 1 << position[edge.source]
    return tuple(found)


def lattice_of(design: Design, most: int = MOST_DOWN_SETS) -> DownSets | None:
    """Return the down-sets of a design's kernels that a chain may visit, or None if there are too many.

    Where the two passes take separate halves of the configurations, no configuration starts or ends with the forward
    pass unfinished and the backward pass begun.
    """
    predecessors = predecessors_of(design)
    if not has_halves(design):
        return list_down_sets(predecessors, most)
    forward = _forward_kernels(design)
    late = tuple(needed if forward >> kernel & 1 else needed | forward for kernel, needed in enumerate(predecessors))
    return list_down_sets(late, most)


def has_halves(design: Design) -> bool:
    """Return whether forward and backward pass take separate halves of the configurations [ko24]."""
    return design.execution.batch.layers_in_graph == 1 and any(kernel.backward for kernel in design.kernels)


def intervals_of(design: Design) -> DownSets:
    """Return the prefixes of a topological order that keeps to the file's order: a few of the down-sets."""
    predecessors = predecessors_of(design)
    done = 0
    larger: dict[int, tuple[int, ...]] = {}
    pending = list(range(len(predecessors)))
    while pending:
        first = next(kernel for kernel in pending if predecessors[kernel] & ~done == 0)
        pending.remove(first)
        larger[done] = (done | 1 << first,)
        done |= 1 << first
    larger[done] = ()
    return DownSets(larger)


def arcs_of(model: DesignModel, lattice: DownSets) -> Arcs:
    """Return the configurations whose kernels may share a slot and whose weights fit SRAM, of kernels alone all."""
    design = model.design
    allowed = tuple(dict.fromkeys(allowed_kernels(design)))
    number = {down_set: place for place, down_set in enumerate(lattice)}
    sets: dict[int, int] = {}
    rows: list[tuple[int, int, int]] = []
    for before, after in _pairs(design, lattice, _grows(model, allowed)):
        added = after ^ before
        if any(added & ~mask == 0 for mask in allowed):
            rows.append((number[after], number[before], sets.setdefault(added, len(sets))))
    rows.sort()
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Arcs(
        down_sets=tuple(lattice),
        before=columns[:, 1],
        after=columns[:, 0],
        added=columns[:, 2],
        sets=tuple(sets),
        members=members_of(tuple(sets), len(design.kernels)),
    )


def arcs_kernel_by_kernel(design: Design) -> Arcs:
    """Return the configurations of one kernel each, in the order of the file whatever the edges say [ko24]."""
    count = len(design.kernels)
    positions = np.arange(count)
    sets = tuple(1 << position for position in range(count))
    return Arcs(
        down_sets=tuple((1 << position) - 1 for position in range(count + 1)),
        before=positions,
        after=positions + 1,
        added=positions,
        sets=sets,
        members=members_of(sets, count),
    )


def members_of(sets: tuple[int, ...], kernels: int) -> Members:
    """Return masks as rows ``[set, kernel]``."""
    width = max(1, -(-kernels // 8))
    packed = np.frombuffer(b"".join(mask.to_bytes(width, "little") for mask in sets), np.uint8)
    return np.unpackbits(packed.reshape(len(sets), width), axis=1, count=kernels, bitorder="little").astype(bool)


def _pairs(design: Design, lattice: DownSets, may_grow: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    most = min(design.machine.cores, len(design.kernels))
    for before in lattice:
        for after in lattice.supersets(before, most, may_grow):
            yield before, after
    if has_halves(design) and slot_count(design) % 2:
        yield from _middle_pairs(lattice, _forward_kernels(design), most, may_grow)


def _middle_pairs(
    lattice: DownSets, forward: int, most: int, may_grow: Callable[[int], bool]
) -> Iterator[tuple[int, int]]:
    """Yield pairs whose kernels are of both passes: of an odd number of configurations the middle one is for both."""
    late = [after for after in lattice if after & forward == forward and after != forward]
    for before in lattice:
        if before & ~forward == 0 and before != forward:
            for after in late:
                if (after ^ before).bit_count() <= most and may_grow(after ^ before):
                    yield before, after


def _grows(model: DesignModel, allowed: tuple[int, ...]) -> Callable[[int], bool]:
    """Return whether a larger set may be possible: what several kernels hold is all there, weights are whole."""
    sizes, capacity = model.growth_limit
    held = {1 << position: round(size) for position, size in enumerate(sizes)}
    weights = {0: 0}
    known: dict[int, bool] = {}

    def weight(added: int) -> int:
        if added not in weights:
            lowest = added & -added
            weights[added] = weight(added ^ lowest) + held[lowest]
        return weights[added]

    def grows(added: int) -> bool:
        if added not in known:
            fits = not capacity or weight(added) <= capacity
            known[added] = fits and any(added & ~mask == 0 for mask in allowed)
        return known[added]

    return grows
