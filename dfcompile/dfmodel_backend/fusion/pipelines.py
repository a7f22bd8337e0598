"""Pipeline partition of a graph that holds all layers: stages, each fused, the slowest as fast as possible.

Exact: by shortest paths within stages. Bounds take kernels as whole, and what a stage sends on.
"""

import math
import sys
from collections.abc import Iterator

import numpy as np

from dfcompile.dfmodel_backend.columns import Column, Mask, Members, Numbers, members_of
from dfcompile.dfmodel_backend.fusion.fusion_problem import SHORTEST_PATH, Fusion
from dfcompile.dfmodel_backend.intra_chip.set_times import CHUNK, arc_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets import Arcs
from dfcompile.dfmodel_backend.options import sums_of

ROUNDING = 1e-12  # relative: partitions whose slowest stages differ less are equally fast
BOUND_ROUNDING = 1e-13  # relative


def fuse_stages(model: DesignModel, arcs: Arcs, below_ns: float = math.inf) -> Fusion:
    """Return the partition into at most as many stages as pipeline chips whose slowest stage is fastest, if any.

    There is none, too, if no partition takes at most ``below_ns``. Bisection on the time of the slowest stage until
    there is no faster partition; each step walks the down-sets once per stage with the least time in the stage so far.
    A stage ends with what it sends on, and what it keeps in DRAM and what waits there fit.
    """
    walk = _Walk(model, arcs)
    best = walk.partition(below_ns)
    if best is None:
        return Fusion(None, math.inf, is_optimal=True, solver=SHORTEST_PATH)
    low = least_stage_ns(model, walk.down_sets)
    while best.time_ns > low * (1 + ROUNDING):
        found = walk.partition(best.time_ns * (1 - ROUNDING))
        if found is None:
            break
        best = found
        middle = (low + best.time_ns) / 2
        found = walk.partition(middle)
        low, best = (middle, best) if found is None else (low, found)
    return best


def stage_times(model: DesignModel, arcs: Arcs) -> Column:
    """Return the time of each arc, infinite where it cannot be a configuration of a stage."""
    times = arc_times(model, arcs)
    is_possible = (arcs.members.sum(axis=1) == 1)[arcs.added] | (not model.design.is_kernel_by_kernel)
    return np.where(is_possible, times, np.inf)


_Way = tuple[list[Column], Mask, float]  # least times, allowed arcs, time of the stage


class _Walk:
    """Chains of configurations in stages of limited time."""

    def __init__(self, model: DesignModel, arcs: Arcs) -> None:
        self._model, self._sets = model, arcs.sets
        self._states = len(arcs.down_sets)
        self.down_sets = members_of(arcs.down_sets, len(model.shares))
        self._sends = model.sends_ns(self.down_sets)
        self._stages = model.degrees.pipeline
        times = stage_times(model, arcs)
        self._slots = model.design.slots_of_stage
        usable = np.isfinite(times)
        self._before, self._after = arcs.before[usable], arcs.after[usable]
        self._added, self._times = arcs.added[usable], times[usable]
        changes: Numbers = np.flatnonzero(np.r_[True, self._after[1:] != self._after[:-1]])
        self._starts = changes if usable.any() else np.zeros(0, np.int64)
        self._capacity = model.design.machine.dram_bytes or math.inf
        self._kept = self.down_sets.astype(float) @ model.stage_bytes
        self._waiting = np.zeros(len(self._before))
        if self._kept[-1] + model.most_waiting > self._capacity:
            for start in range(0, len(self._before), CHUNK):
                part = slice(start, start + CHUNK)
                done, inside = self.down_sets[self._before[part]], arcs.members[self._added[part]]
                self._waiting[part] = model.waiting_bytes(done, inside)
        # Whether DRAM holds each stage wherever it begins.
        self._is_roomy = self._kept[-1] + self._waiting.max(initial=0.0) <= self._capacity

    def partition(self, limit_ns: float) -> Fusion | None:
        """Return a partition with no stage above a limit, or None."""
        limit_ns = min(limit_ns, sys.float_info.max)  # what is not possible takes infinite time
        seen = {0}
        begins = [[0]]  # of each stage: where earlier ones could begin it has been already
        while self._states - 1 not in seen:
            if len(begins) > self._stages or not begins[-1]:
                return None
            ends = dict.fromkeys(end for group in self._groups(begins[-1]) for end in self._ends(group, limit_ns))
            begins.append([end for end in ends if end not in seen])
            seen |= ends.keys()
        return self._trace(begins[:-1], limit_ns)

    def _groups(self, begins: list[int]) -> list[list[int]]:
        """Return the down-sets behind which a stage may begin as far as they are alike: what it keeps may limit it."""
        return [begins] if self._is_roomy else [[first] for first in begins]

    def _room(self, begins: list[int]) -> Column:
        """Return the DRAM for what waits in a stage that begins behind one down-set and ends with each."""
        if self._is_roomy:
            return np.full(self._states, np.inf)
        return np.asarray(self._capacity - (self._kept - self._kept[begins[0]]))

    def _ends(self, begins: list[int], limit_ns: float) -> Iterator[int]:
        """Yield the down-sets with which a stage may end that begins behind one of others."""
        room = self._room(begins)
        least = np.minimum.reduce(self._stage(begins, limit_ns, self._waiting <= room[self._after]))
        most = float(self._waiting.max(initial=0.0))
        for last in np.flatnonzero(least + self._sends <= limit_ns).tolist():
            if most <= room[last] or self._fastest(begins, last, limit_ns) is not None:
                yield last

    def _fastest(self, begins: list[int], last: int, limit_ns: float) -> _Way | None:
        """Return the least times in a stage that ends with a down-set, or None if it takes too long."""
        allowed = self._waiting <= self._room(begins)[last]
        layers = self._stage(begins, limit_ns, allowed)
        time_ns = float(min(layer[last] for layer in layers) + self._sends[last])
        return (layers, allowed, time_ns) if time_ns <= limit_ns else None

    def _stage(self, begins: list[int], limit_ns: float, allowed: Mask) -> list[Column]:
        """Return the least time in a stage after 0, 1, … of its configurations, per down-set."""
        times = np.where(allowed, self._times, np.inf)
        layers = [np.full(self._states, np.inf)]
        layers[0][begins] = 0.0
        ends = self._after[self._starts]
        for _ in range(self._slots if len(self._starts) else 0):
            reached = layers[-1][self._before] + times
            reached[reached > limit_ns] = np.inf
            following = np.full(self._states, np.inf)
            following[ends] = np.minimum.reduceat(reached, self._starts)
            if not (following < np.minimum.reduce(layers)).any():
                break
            layers.append(following)
        return layers

    def _trace(self, begins: list[list[int]], limit_ns: float) -> Fusion:
        """Return the partition that ends with all kernels, given where its stages may begin."""
        state = self._states - 1
        chain: list[int] = []
        stages: list[int] = []
        slowest_ns = 0.0
        for stage in range(len(begins) - 1, -1, -1):
            ways = (self._fastest(group, state, limit_ns) for group in self._groups(begins[stage]))
            layers, allowed, time_ns = next(way for way in ways if way is not None)
            slowest_ns = max(slowest_ns, time_ns)
            times = np.where(allowed, self._times, np.inf)
            for number in range(int(np.argmin([layer[state] for layer in layers])), 0, -1):
                part = slice(*np.searchsorted(self._after, [state, state + 1]))
                arc = part.start + int(np.argmin(layers[number - 1][self._before[part]] + times[part]))
                chain.append(self._sets[self._added[arc]])
                stages.append(stage)
                state = int(self._before[arc])
        return Fusion(tuple(chain[::-1]), slowest_ns, is_optimal=True, solver=SHORTEST_PATH, stages=tuple(stages[::-1]))


def least_stage_ns(model: DesignModel, down_sets: Members) -> float:
    """Return a time that the slowest stage takes at least.

    A stage takes at least the unavoidable times of its kernels. Of those that do not overlap the sum adds up over
    kernels; the largest is a bound for each such sum, found by bisection: each stage ends as late as it can.
    """
    done = down_sets.astype(float) @ model.least_parts
    sums = sums_of(model.design.execution.overlap, *done.T)
    sends = model.sends_ns(down_sets)
    return max(_least_bottleneck(column, sends, model.degrees.pipeline) for column in sums)


def _least_bottleneck(done: Column, sends: Column, stages: int) -> float:
    """Return a bound of the largest stage; ``done`` is the time of all kernels of each down-set, the last is all."""
    low = float(done[-1]) / stages
    high = _largest_stage(done, sends, stages, float(done[-1]))
    while True:
        below = high * (1 - BOUND_ROUNDING)
        found = _largest_stage(done, sends, stages, below)
        if found == math.inf or low >= below:
            return max(low, below) * (1 - BOUND_ROUNDING)
        high = found
        middle = (low + high) / 2
        found = _largest_stage(done, sends, stages, middle)
        low, high = (middle, high) if found == math.inf else (low, found)


def _largest_stage(done: Column, sends: Column, stages: int, limit: float) -> float:
    """Return the largest of stages that each end as late as a limit allows, or infinity if they do not get through."""
    ends = done + sends
    reached = largest = 0.0
    for _ in range(stages):
        possible = ends <= reached + limit
        latest = float(done[possible].max(initial=0.0))
        if latest <= reached:
            break
        largest = max(largest, float(ends[possible & (done == latest)].min()) - reached)
        reached = latest
    return largest if reached >= done[-1] else math.inf
