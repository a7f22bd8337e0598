"""Pipeline partition of a graph that holds all layers: stages, each fused, the slowest as fast as possible.

Bounds take kernels as whole, and what a stage sends on.
"""

import math
import sys
from collections.abc import Sequence
from itertools import accumulate
from operator import or_

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Members, Numbers, members_of
from dfcompile.dfmodel_backend.fusion.designs.fused import Fused, configs_of
from dfcompile.dfmodel_backend.intra_chip.set_times import CHUNK, arc_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs
from dfcompile.dfmodel_backend.options import sums_of

ROUNDING = 1e-12  # relative: partitions whose slowest stages differ less are equally fast
BOUND_ROUNDING = 1e-13  # relative


class Partition(Struct, frozen=True):
    """Configurations in order with the stage of each, and the time of the slowest stage."""

    chain: list[int]
    stages: list[int]
    slowest_ns: float


def fuse_stages(model: DesignModel, arcs: Arcs, below_ns: float = math.inf) -> Fused | None:
    """Return the partition into at most as many stages as pipeline chips whose slowest stage is fastest, or None.

    None, too, if no partition takes at most ``below_ns``. Bisection on the time of the slowest stage until there is no
    faster partition; each step walks the down-sets once per stage with the least time in the stage so far. A stage ends
    with what it sends on, and what it keeps in DRAM and what waits there fit.
    """
    walk = _Walk(model, arcs)
    best = walk.partition(below_ns)
    if best is None:
        return None
    low = least_stage_ns(model, walk.down_sets)
    while best.slowest_ns > low * (1 + ROUNDING):
        found = walk.partition(best.slowest_ns * (1 - ROUNDING))
        if found is None:
            break
        best = found
        middle = (low + best.slowest_ns) / 2
        found = walk.partition(middle)
        low, best = (middle, best) if found is None else (low, found)
    return Fused(configs_of(model, best.chain), best.slowest_ns, tuple(best.stages))


def stage_times(model: DesignModel, arcs: Arcs) -> Column:
    """Return the time of each arc, infinite where it cannot be a configuration of a stage."""
    times = arc_times(model, arcs)
    is_possible = (arcs.members.sum(axis=1) == 1)[arcs.added] | (not model.design.is_kernel_by_kernel)
    return np.where(is_possible, times, np.inf)


class _Walk:
    """Chains of configurations in stages of limited time."""

    def __init__(self, model: DesignModel, arcs: Arcs) -> None:
        self._sets = arcs.sets
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

    def partition(self, limit_ns: float) -> Partition | None:
        """Return a partition with no stage above a limit, or None."""
        limit_ns = min(limit_ns, sys.float_info.max)  # what is not possible takes infinite time
        if self._kept[-1] + self._waiting.max(initial=0.0) > self._capacity:
            return self._partition_in_dram(limit_ns)
        begin = np.full(self._states, np.inf)
        begin[0] = 0.0
        seen = np.isfinite(begin)
        history: list[list[Column]] = []
        for _ in range(self._stages):
            history.append(self._stage(begin, limit_ns))
            least = np.minimum.reduce(history[-1])
            ended = least + self._sends <= limit_ns
            if ended[-1] and np.isfinite(least[-1]):
                return self._trace(history)
            # Where earlier stages could begin the following ones have been already.
            ended &= ~seen
            if not ended.any():
                return None
            seen |= ended
            begin = np.where(ended, 0.0, np.inf)
        return None

    def _partition_in_dram(self, limit_ns: float) -> Partition | None:
        """The same where DRAM may not hold each stage: what a stage keeps depends on where it begins."""
        came_from = {0: 0}
        begins = [0]
        for _ in range(self._stages):
            following: list[int] = []
            for first in begins:
                for last in self._ends(first, limit_ns):
                    if last not in came_from:
                        came_from[last] = first
                        following.append(last)
            begins = following
        if self._states - 1 not in came_from:
            return None
        last = self._states - 1
        parts: list[tuple[list[int], float]] = []
        while last:
            parts.append(self._stage_between(came_from[last], last, limit_ns))
            last = came_from[last]
        parts.reverse()
        chain = [added for sets, _ in parts for added in sets]
        stages = [stage for stage, (sets, _) in enumerate(parts) for _ in sets]
        return Partition(chain, stages, max(time_ns for _, time_ns in parts))

    def _ends(self, first: int, limit_ns: float) -> list[int]:
        """Return the down-sets with which a stage may end that begins behind a down-set."""
        room = self._capacity - (self._kept - self._kept[first])
        layers = self._stage(self._only(first), limit_ns, self._waiting <= room[self._after])
        least = np.minimum.reduce(layers)
        ended = np.flatnonzero(least + self._sends <= limit_ns).tolist()
        most = float(self._waiting.max(initial=0.0))
        return [
            last
            for last in ended
            if last != first and (most <= room[last] or self._fastest(first, last, limit_ns) is not None)
        ]

    def _fastest(self, first: int, last: int, limit_ns: float) -> list[Column] | None:
        """Return the least times in a stage from one down-set to another, or None if it takes too long."""
        room = self._capacity - float(self._kept[last] - self._kept[first])
        layers = self._stage(self._only(first), limit_ns, self._waiting <= room)
        return layers if min(layer[last] for layer in layers) + self._sends[last] <= limit_ns else None

    def _only(self, state: int) -> Column:
        begin = np.full(self._states, np.inf)
        begin[state] = 0.0
        return begin

    def _stage_between(self, first: int, last: int, limit_ns: float) -> tuple[list[int], float]:
        layers = self._fastest(first, last, limit_ns)
        assert layers is not None
        room = self._capacity - float(self._kept[last] - self._kept[first])
        chain, _ = self._trace_stage(layers, last, self._waiting <= room)
        return chain[::-1], float(min(layer[last] for layer in layers) + self._sends[last])

    def _stage(self, begin: Column, limit_ns: float, allowed: npt.NDArray[np.bool_] | None = None) -> list[Column]:
        """Return the least time in a stage after 0, 1, … of its configurations, per down-set."""
        times = self._times if allowed is None else np.where(allowed, self._times, np.inf)
        layers = [begin]
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

    def _trace(self, history: list[list[Column]]) -> Partition:
        state = self._states - 1
        chain: list[int] = []
        stages: list[int] = []
        slowest_ns = 0.0
        for stage in range(len(history) - 1, -1, -1):
            layers = history[stage]
            slowest_ns = max(slowest_ns, float(min(layer[state] for layer in layers) + self._sends[state]))
            sets, state = self._trace_stage(layers, state)
            chain += sets
            stages += [stage] * len(sets)
        return Partition(chain[::-1], dense(stages[::-1]), slowest_ns)

    def _trace_stage(
        self, layers: list[Column], state: int, allowed: npt.NDArray[np.bool_] | None = None
    ) -> tuple[list[int], int]:
        """Return the sets of a stage's configurations, the last one first, and where it begins."""
        times = self._times if allowed is None else np.where(allowed, self._times, np.inf)
        count = int(np.argmin([layer[state] for layer in layers]))
        sets = []
        for number in range(count, 0, -1):
            first, last = np.searchsorted(self._after, [state, state + 1])
            part = slice(first, last)
            arc = first + int(np.argmin(layers[number - 1][self._before[part]] + times[part]))
            sets.append(self._sets[self._added[arc]])
            state = int(self._before[arc])
        return sets, state


def dense(stages: list[int]) -> list[int]:
    """Number the stages from 0 without gaps."""
    numbers = {stage: number for number, stage in enumerate(dict.fromkeys(stages))}
    return [numbers[stage] for stage in stages]


def staged(model: DesignModel, sets: Sequence[int], times: Sequence[float], stages: Sequence[int]) -> Fused:
    """Return sets of kernels in the order in which they run, with the stage of each, numbered anew without gaps."""
    sends = model.sends_ns(members_of(tuple(accumulate(sets, or_)), len(model.shares)))
    slowest_ns = 0.0
    for stage in dict.fromkeys(stages):
        inside = [place for place, number in enumerate(stages) if number == stage]
        slowest_ns = max(slowest_ns, sum(times[place] for place in inside) + float(sends[inside[-1]]))
    return Fused(configs_of(model, sets), slowest_ns, tuple(dense(list(stages))))


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
