"""Pipeline partition of a graph that holds all layers: stages, each fused, the slowest as fast as possible."""

import math
from dataclasses import dataclass

import numpy as np

from dfcompile.dfmodel_backend.columns import Column, Numbers
from dfcompile.dfmodel_backend.design_memory import dram_need
from dfcompile.dfmodel_backend.design_model import DesignModel
from dfcompile.dfmodel_backend.design_shape import slot_count
from dfcompile.dfmodel_backend.fusion_arcs import Arcs, members_of
from dfcompile.dfmodel_backend.intra_chip import Fused, arc_times, configs_of, is_kernel_by_kernel
from dfcompile.dfmodel_backend.pipeline_bound import least_stage_ns, sends_ns

ROUNDING = 1e-12  # relative: partitions whose slowest stages differ less are equally fast


@dataclass(frozen=True, slots=True)
class Partition:
    """Configurations in order with the stage of each, and the time of the slowest stage."""

    chain: list[int]
    stages: list[int]
    slowest_ns: float


def fuse_stages(model: DesignModel, arcs: Arcs, below_ns: float = math.inf) -> Fused | None:
    """Return the partition into at most as many stages as pipeline chips whose slowest stage is fastest, or None.

    None, too, if no partition takes at most ``below_ns``. Bisection on the time of the slowest stage until there is no
    faster partition; each step walks the down-sets once per stage with the least time in the stage so far. A stage ends
    with what it sends on. A partition with a stage that exceeds DRAM is refused.
    """
    walk = _Walk(model, arcs)
    best = walk.partition(below_ns)
    if best is None:
        return None
    low = least_stage_ns(model, walk.down_sets)
    while (found := walk.partition(best.slowest_ns * (1 - ROUNDING))) is not None:
        best = found
        middle = (low + best.slowest_ns) / 2
        found = walk.partition(middle)
        low, best = (middle, best) if found is None else (low, found)
    configs = configs_of(model, best.chain)
    return Fused(configs, best.slowest_ns, tuple(best.stages)) if _fits_dram(model, configs, best) else None


def _fits_dram(model: DesignModel, configs: dict[int, int], found: Partition) -> bool:
    capacity = model.design.machine.dram_bytes
    for stage in range(max(found.stages) + 1):
        inside = [
            position
            for position, share in enumerate(model.shares)
            if found.stages[configs[share.kernel.id]] == stage
        ]  # fmt: skip
        if capacity and dram_need(model, inside).total > capacity:
            return False
    return True


class _Walk:
    """Chains of configurations in stages of limited time."""

    def __init__(self, model: DesignModel, arcs: Arcs) -> None:
        self._sets = arcs.sets
        self._states = len(arcs.down_sets)
        self.down_sets = members_of(arcs.down_sets, len(model.shares))
        self._sends = sends_ns(model, self.down_sets)
        self._stages = model.degrees.pipeline
        times = arc_times(model, arcs)
        by_kernel = is_kernel_by_kernel(model.design)
        self._slots = len(model.shares) if by_kernel else slot_count(model.design)
        if by_kernel:
            times = np.where((arcs.members.sum(axis=1) == 1)[arcs.added], times, np.inf)
        usable = np.isfinite(times)
        self._before, self._after = arcs.before[usable], arcs.after[usable]
        self._added, self._times = arcs.added[usable], times[usable]
        changes: Numbers = np.flatnonzero(np.r_[True, self._after[1:] != self._after[:-1]])
        self._starts = changes if usable.any() else np.zeros(0, np.int64)

    def partition(self, limit_ns: float) -> Partition | None:
        """Return a partition with no stage above a limit, or None."""
        begin = np.full(self._states, np.inf)
        begin[0] = 0.0
        history: list[list[Column]] = []
        for _ in range(self._stages):
            history.append(self._stage(begin, limit_ns))
            least = np.minimum.reduce(history[-1])
            ended = least + self._sends <= limit_ns
            if ended[-1] and np.isfinite(least[-1]):
                return self._trace(history)
            # A stage may begin wherever this one, or an empty one, has ended.
            begin = np.where(ended & np.isfinite(least), 0.0, np.inf)
        return None

    def _stage(self, begin: Column, limit_ns: float) -> list[Column]:
        """Return the least time in a stage after 0, 1, … of its configurations, per down-set."""
        layers = [begin]
        ends = self._after[self._starts]
        for _ in range(self._slots if len(self._starts) else 0):
            reached = layers[-1][self._before] + self._times
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
            count = int(np.argmin([layer[state] for layer in layers]))
            slowest_ns = max(slowest_ns, float(layers[count][state] + self._sends[state]))
            for number in range(count, 0, -1):
                first, last = np.searchsorted(self._after, [state, state + 1])
                part = slice(first, last)
                arc = first + int(np.argmin(layers[number - 1][self._before[part]] + self._times[part]))
                chain.append(self._sets[self._added[arc]])
                stages.append(stage)
                state = int(self._before[arc])
        return Partition(chain[::-1], _dense(stages[::-1]), slowest_ns)


def _dense(stages: list[int]) -> list[int]:
    """Number the stages from 0 without gaps."""
    numbers = {stage: number for number, stage in enumerate(dict.fromkeys(stages))}
    return [numbers[stage] for stage in stages]
