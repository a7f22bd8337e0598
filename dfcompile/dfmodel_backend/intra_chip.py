"""Fusion of a sharded design into configurations, and the choice of the tile count: exact, by down-sets."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.design import Design, Dim
from dfcompile.dfmodel_backend.design_evaluator import Decision, DesignModel
from dfcompile.dfmodel_backend.down_sets import DownSets, list_down_sets
from dfcompile.errors import InfeasibleError

_MOST_DOWN_SETS = 20_000


@dataclass(frozen=True, slots=True)
class Fused:
    """The best assignment for one tile count."""

    configs: dict[int, int]
    time_ns: float


def optimize_tiles(design: Design, sharding: dict[int, Dim], compatibility: Compatibility = RIGHT) -> Decision:
    """Choose tile count and configurations with the least time; ties go to fewer tiles.

    A tile count whose lower bound is not below the best time so far is skipped.

    Raises:
        InfeasibleError: no tile count fits SRAM.
    """
    models = [DesignModel(design, sharding, tiles, compatibility) for tiles in tile_counts(design, compatibility)]
    bounds = [(model.least_ns(range(len(model.shares))), model.tiles, model) for model in models]
    lattice = None if _is_kernel_by_kernel(design) else lattice_of(design)
    best: tuple[float, int, Decision] | None = None
    for least_ns, tiles, model in sorted(bounds, key=lambda one: one[:2]):
        if best is not None and least_ns > best[0]:
            break
        # Equal times count too: of tile counts that tie the smallest is wanted.
        fused = fuse(model, best[0] * (1 + 1e-12) if best else math.inf, lattice)
        if fused is not None and (best is None or (fused.time_ns, tiles) < best[:2]):
            best = (fused.time_ns, tiles, Decision(sharding, tiles, fused.configs))
    if best is None:
        counts = ", ".join(str(model.tiles) for model in models[:3]) + (", …" if models[3:] else "")
        raise InfeasibleError(
            f"design: no mapping fits {design.machine.sram_bytes:.0f} bytes of SRAM with {counts} tiles "
            "(a smaller or no tile_size, more sram_cap, or more configurations)"
        )
    return best[2]


def tile_counts(design: Design, compatibility: Compatibility = RIGHT) -> list[int]:
    """Return every tile count that is the smallest with some size of tile; 1 if the sequence is not cut."""
    batch = design.execution.batch
    if not batch.sequence:
        return [1]
    if batch.tile and not compatibility.tile_size_is_a_hint:
        return [-(-batch.sequence // batch.tile)]
    sizes = range(1, (batch.tile or batch.sequence) + 1)
    return sorted({-(-batch.sequence // size) for size in sizes})


def fuse(model: DesignModel, below_ns: float = math.inf, lattice: DownSets | None = None) -> Fused | None:
    """Return the fastest assignment into at most as many configurations as the design allows, or None.

    Assignments slower than ``below_ns`` are of no interest: what cannot become faster is dropped on the way.

    Kernels of the forward and the backward pass take separate halves of the configurations, as in [ko24]. A state
    is a down-set and the number of configurations used so far.
    """
    execution = model.design.execution
    count = len(model.shares)
    slots = execution.configurations or count
    if _is_kernel_by_kernel(model.design):
        return _kernel_by_kernel(model)
    space = _space(model, lattice_of(model.design) if lattice is None else lattice)
    every = (1 << count) - 1
    best: dict[int, _State] = {0: (0.0, ())}
    for slot in range(slots):
        best = _fill_slot(space, best, _allowed(model, slot, slots), below_ns)
    found = best.get(every)
    if found is None:
        return None
    configs = {
        model.shares[position].kernel.id: slot
        for slot, kernels in enumerate(found[1])
        for position in range(count)
        if kernels >> position & 1
    }
    return Fused(configs, found[0])


_State = tuple[float, tuple[int, ...]]  # time so far, and the set of kernels of each slot


@dataclass(frozen=True, slots=True)
class _Space:
    """Down-sets of the graph, smaller ones first, and what the kernels outside of each take at least."""

    down_sets: DownSets
    rest_ns: dict[int, float]
    costs: _Costs


def lattice_of(design: Design) -> DownSets:
    """Return the down-sets of a design's kernels, by position; they depend on neither sharding nor tiles.

    Raises:
        InfeasibleError: there are too many.
    """
    position = {kernel.id: number for number, kernel in enumerate(design.kernels)}
    predecessors = [0] * len(position)
    for edge in design.edges:
        predecessors[position[edge.target]] |= 1 << position[edge.source]
    found = list_down_sets(tuple(predecessors), _MOST_DOWN_SETS)
    if found is None:
        raise InfeasibleError(f"design: more than {_MOST_DOWN_SETS} down-sets (pin some kernels to configurations)")
    return found


def _space(model: DesignModel, down_sets: DownSets) -> _Space:
    """Sum what kernels take at least along the lattice; the rest of a down-set is the total less its own sum."""
    sums: dict[int, tuple[float, float, float]] = {0: (0.0, 0.0, 0.0)}
    total = sums[0]
    for smaller, larger in down_sets.larger.items():
        total = sums[smaller]
        for one in larger:
            added = model.least_parts[(one ^ smaller).bit_length() - 1]
            sums[one] = (total[0] + added[0], total[1] + added[1], total[2] + added[2])
    overlap = model.design.execution.overlap
    rest_ns = {
        down_set: overlap.time_ns(total[0] - own[0], total[1] - own[1], total[2] - own[2]) * (1 - 1e-9)
        for down_set, own in sums.items()
    }
    return _Space(down_sets, rest_ns, _Costs(model))


def _fill_slot(space: _Space, best: dict[int, _State], allowed: int, below_ns: float) -> dict[int, _State]:
    """Return the states after one more configuration, which may be empty."""
    following = {down_set: (time_ns, (*chain, 0)) for down_set, (time_ns, chain) in best.items()}
    every = max(space.rest_ns).bit_length()
    for before, rest_ns in space.rest_ns.items():
        if before not in best or best[before][0] + rest_ns > below_ns:
            continue
        time_ns, chain = best[before]
        for after in space.down_sets.supersets(
            before, every, lambda added: added & ~allowed == 0 and space.costs.may_grow(added)
        ):
            added = after ^ before
            cost = None if added & ~allowed else space.costs.time_ns(added)
            if cost is None or time_ns + cost + space.rest_ns[after] > below_ns:
                continue
            if after not in following or time_ns + cost < following[after][0]:
                following[after] = (time_ns + cost, (*chain, added))
    return following


def _is_kernel_by_kernel(design: Design) -> bool:
    """As many configurations as kernels mean kernel by kernel, too [ko24]."""
    execution, count = design.execution, len(design.kernels)
    return execution.kernel_by_kernel or execution.configurations in (0, count)


def _kernel_by_kernel(model: DesignModel) -> Fused | None:
    costs = _Costs(model)
    times = [costs.time_ns(1 << position) for position in range(len(model.shares))]
    known = [time_ns for time_ns in times if time_ns is not None]
    if len(known) < len(times):
        return None
    return Fused({share.kernel.id: position for position, share in enumerate(model.shares)}, sum(known))


def _allowed(model: DesignModel, slot: int, slots: int) -> int:
    """Return the kernels that may be in a slot."""
    kernels = [share.kernel for share in model.shares]
    halves = any(kernel.backward for kernel in kernels)
    allowed = 0
    for position, kernel in enumerate(kernels):
        if kernel.pinned_config not in (-1, slot):
            continue
        if halves and kernel.backward and slot < slots // 2:
            continue
        if halves and not kernel.backward and slot >= (slots + 1) // 2:
            continue
        allowed |= 1 << position
    return allowed


class _Costs:
    """Times of sets of kernels, each computed once."""

    def __init__(self, model: DesignModel) -> None:
        self._model = model
        self._capacity = model.design.machine.sram_bytes
        self._known: dict[int, float | None] = {}
        self._grows: dict[int, bool] = {}

    def time_ns(self, kernels: int) -> float | None:
        if kernels not in self._known:
            self._known[kernels] = self._time_ns(_positions(kernels))
        return self._known[kernels]

    def may_grow(self, kernels: int) -> bool:
        """Return whether a larger set may fit: weights of several kernels are all held, and whole."""
        if kernels not in self._grows:
            shares = [self._model.shares[position] for position in _positions(kernels)]
            held = sum(share.weight_bytes for share in shares if not share.kernel.skip_weight)
            few = len(shares) < self._model.design.machine.cores
            self._grows[kernels] = few and (not self._capacity or held <= self._capacity)
        return self._grows[kernels]

    def _time_ns(self, inside: list[int]) -> float | None:
        if len(inside) > self._model.design.machine.cores:
            return None
        weight_tiles = 1
        if self._capacity and self._model.sram_bytes(inside) > self._capacity:
            share = self._model.shares[inside[0]]
            if len(inside) > 1 or not share.weight_bytes:
                return None
            weight_tiles = self._fewest_weight_tiles(inside, share.rows)
            if not weight_tiles:
                return None
        return self._model.step(inside, weight_tiles).time_ns

    def _fewest_weight_tiles(self, inside: list[int], most: int) -> int:
        if self._model.sram_bytes(inside, most) > self._capacity:
            return 0
        low, high = 1, most
        while high - low > 1:
            middle = (low + high) // 2
            if self._model.sram_bytes(inside, middle) <= self._capacity:
                high = middle
            else:
                low = middle
        return high


def _positions(kernels: int) -> list[int]:
    return [position for position in range(kernels.bit_length()) if kernels >> position & 1]
