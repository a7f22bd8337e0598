"""Splits a graph of all layers into pipeline stages, and these into configurations: no slowest stage is faster."""

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
    """Return the partition into stages whose slowest stage is fastest; none if that takes more than ``below_ns``.

    There are at most as many stages as the pipeline has chips. Bisection on the time of the slowest stage: each step
    walks the down-sets once per stage with the least time in the stage so far. The time of a stage includes sending its
    results to the next one; what its kernels keep in DRAM, and the tensors that wait there, must fit.
    """
    walk = _Walk(model, arcs)
    best = walk.partition(below_ns)
    if best is None:
        return Fusion(None, math.inf, is_optimal=True, solver=SHORTEST_PATH)
    low = least_stage_ns(model, walk.down_sets)
    while best.time_ns > low * (1 + ROUNDING):
        faster = walk.partition(best.time_ns * (1 - ROUNDING))
        if faster is None:
            break
        best = faster
        middle = (low + best.time_ns) / 2
        faster = walk.partition(middle)
        low, best = (middle, best) if faster is None else (low, faster)
    return best


def stage_times(model: DesignModel, arcs: Arcs) -> Column:
    """Return the time of each arc, infinite where it cannot be a configuration of a stage."""
    times = arc_times(model, arcs)
    is_one_kernel = (arcs.members.sum(axis=1) == 1)[arcs.added]
    return np.where(is_one_kernel | (not model.design.is_kernel_by_kernel), times, np.inf)


_FastestStage = tuple[list[Column], Mask, float]  # least times, allowed arcs, time of the stage


class _Walk:
    """Chains of configurations, cut into stages: a state is the position of a down-set, an arc adds a configuration."""

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
        # DRAM: what the kernels of a down-set keep there, and what waits there while the configuration of an arc runs.
        self._kept = self.down_sets.astype(float) @ model.stage_bytes
        self._waiting = np.zeros(len(self._before))
        if self._kept[-1] + model.most_waiting > self._capacity:
            for start in range(0, len(self._before), CHUNK):
                part = slice(start, start + CHUNK)
                done, inside = self.down_sets[self._before[part]], arcs.members[self._added[part]]
                self._waiting[part] = model.waiting_bytes(done, inside)
        # Whether every stage fits in DRAM, wherever it begins.
        self._is_roomy = self._kept[-1] + self._waiting.max(initial=0.0) <= self._capacity

    def partition(self, limit_ns: float) -> Fusion | None:
        """Return a partition with no stage above a limit, or None."""
        limit_ns = min(limit_ns, sys.float_info.max)  # what is not possible takes infinite time
        seen = {0}
        begins = [[0]]  # states where each stage may begin, without those where an earlier one may
        while self._states - 1 not in seen:
            if len(begins) > self._stages or not begins[-1]:
                return None
            ends = dict.fromkeys(end for group in self._groups(begins[-1]) for end in self._ends(group, limit_ns))
            begins.append([end for end in ends if end not in seen])
            seen |= ends.keys()
        return self._trace(begins[:-1], limit_ns)

    def _groups(self, begins: list[int]) -> list[list[int]]:
        """Group the states where a stage may begin: one by one if what it keeps in DRAM may limit where it ends."""
        return [begins] if self._is_roomy else [[first] for first in begins]

    def _room(self, begins: list[int]) -> Column:
        """Return, for each state where the stage may end, the DRAM that its kernels leave to waiting tensors."""
        if self._is_roomy:
            return np.full(self._states, np.inf)
        return np.asarray(self._capacity - (self._kept - self._kept[begins[0]]))

    def _ends(self, begins: list[int], limit_ns: float) -> Iterator[int]:
        """Yield the states where a stage may end that begins in one of ``begins`` and keeps the limit."""
        room = self._room(begins)
        least = np.minimum.reduce(self._stage(begins, limit_ns, self._waiting <= room[self._after]))
        most_waiting = float(self._waiting.max(initial=0.0))
        for last in np.flatnonzero(least + self._sends <= limit_ns).tolist():
            if most_waiting <= room[last] or self._fastest(begins, last, limit_ns) is not None:
                yield last

    def _fastest(self, begins: list[int], last: int, limit_ns: float) -> _FastestStage | None:
        """Return the fastest stage that ends in a state, or None if it takes more than the limit."""
        allowed = self._waiting <= self._room(begins)[last]
        layers = self._stage(begins, limit_ns, allowed)
        time_ns = float(min(layer[last] for layer in layers) + self._sends[last])
        return (layers, allowed, time_ns) if time_ns <= limit_ns else None

    def _stage(self, begins: list[int], limit_ns: float, allowed: Mask) -> list[Column]:
        """Return, after 0, 1, … configurations of the stage, the least time in which each state is reached."""
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
        """Return the partition: from the state of all kernels back through those where its stages may begin."""
        state = self._states - 1
        chain: list[int] = []
        stages: list[int] = []
        slowest_ns = 0.0
        for stage in range(len(begins) - 1, -1, -1):
            fastest = (self._fastest(group, state, limit_ns) for group in self._groups(begins[stage]))
            layers, allowed, time_ns = next(within for within in fastest if within is not None)
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
    """Return a lower bound of the time of the slowest stage.

    A stage takes at least the unavoidable compute, memory and network times of its kernels; those that do not overlap
    are added up. Each such sum has a bound, the best slowest stage of all splits, and the largest of these is returned.
    """
    done = down_sets.astype(float) @ model.least_parts
    sums = sums_of(model.design.execution.overlap, *done.T)
    sends = model.sends_ns(down_sets)
    return max(_least_bottleneck(column, sends, model.degrees.pipeline) for column in sums)


def _least_bottleneck(done: Column, sends: Column, stages: int) -> float:
    """Return, by bisection, the least time of the slowest stage; ``done`` is the time of the kernels of each state."""
    low = float(done[-1]) / stages
    high = _slowest_stage(done, sends, stages, float(done[-1]))
    while True:
        below = high * (1 - BOUND_ROUNDING)
        slowest = _slowest_stage(done, sends, stages, below)
        if slowest == math.inf or low >= below:
            return max(low, below) * (1 - BOUND_ROUNDING)
        high = slowest
        middle = (low + high) / 2
        slowest = _slowest_stage(done, sends, stages, middle)
        low, high = (middle, high) if slowest == math.inf else (low, slowest)


def _slowest_stage(done: Column, sends: Column, stages: int, limit: float) -> float:
    """Return the time of the slowest stage if each ends as late as a limit allows; infinite if kernels are left."""
    ends = done + sends
    reached = slowest = 0.0
    for _ in range(stages):
        possible = ends <= reached + limit
        latest = float(done[possible].max(initial=0.0))
        if latest <= reached:
            break
        slowest = max(slowest, float(ends[possible & (done == latest)].min()) - reached)
        reached = latest
    return slowest if reached >= done[-1] else math.inf
