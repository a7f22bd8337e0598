"""Pipeline partition of a graph that holds all layers: stages, each fused, the slowest as fast as possible.

Exact: by shortest paths within stages, or as one unit of flow through stages, configurations and down-sets, solved as a
MILP. Bounds take kernels as whole, and what a stage sends on.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING

import numpy as np

from dfcompile.dfmodel_backend.columns import Column, Mask, Members, Numbers, members_of
from dfcompile.dfmodel_backend.fusion.fusion_problem import SHORTEST_PATH, Fusion
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain
from dfcompile.dfmodel_backend.intra_chip.set_times import CHUNK, arc_times
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets import Arcs
from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, is_one, solve
from dfcompile.dfmodel_backend.options import sums_of
from dfcompile.records import replace

if TYPE_CHECKING:
    import pulp

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


def staged(model: DesignModel, chain: Chain, times: Sequence[float], stages: Sequence[int], found: Fusion) -> Fusion:
    """Return what was found with a chain: sets of kernels, and the stage of each, numbered anew without gaps."""
    sends = model.sends_ns(members_of(tuple(accumulate(chain, or_)), len(model.shares)))
    slowest_ns = 0.0
    numbers = {stage: number for number, stage in enumerate(dict.fromkeys(stages))}
    for stage in numbers:
        inside = [place for place, number in enumerate(stages) if number == stage]
        slowest_ns = max(slowest_ns, sum(times[place] for place in inside) + float(sends[inside[-1]]))
    return replace(found, chain=chain, time_ns=slowest_ns, stages=tuple(numbers[stage] for stage in stages))


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


Node = tuple[int, int, int]  # stage, its configurations so far, number of the down-set


class StageFlow:
    """The partition whose slowest stage is fastest, as an integer program.

    One 0/1 variable per stage, configuration of it and arc, and one per stage and down-set that it ends with; flow is
    conserved at each node. Each stage is at most the objective, and what it keeps and what waits fits DRAM.
    """

    def __init__(self, model: DesignModel, arcs: Arcs) -> None:
        import pulp

        self._pulp = pulp
        self._model, self._arcs = model, arcs
        self._times = stage_times(model, arcs)
        self._slots = model.design.slots_of_stage
        self._usable = np.flatnonzero(np.isfinite(self._times)).tolist()
        self._unit_ns = float(self._times[self._usable].max(initial=0.0)) or 1.0
        self._problem = pulp.LpProblem("pipeline_arc_flow", pulp.LpMinimize)
        self._flow: dict[tuple[int, int, int], pulp.LpVariable] = {}  # by stage, configuration, arc
        self._ends: dict[Node, pulp.LpVariable] = {}
        self._balance: dict[Node, list[tuple[pulp.LpVariable, int]]] = {}

    def solve(self, options: MilpOptions, solver: str) -> Fusion:
        """Return the partition, if one was found, as of a solver of that name.

        Raises:
            UserError: the solver is not installed, or ended without an answer.
        """
        stages = range(self._model.degrees.pipeline)
        last: Node = (len(stages), 0, len(self._arcs.down_sets) - 1)
        for stage in stages:
            self._add_stage(stage)
        if last not in self._balance:
            return Fusion(None, math.inf, is_optimal=True, solver=solver)
        for number, (node, around) in enumerate(self._balance.items()):
            if node[0] == len(stages) and node != last:
                continue  # an end that is none
            supply = 1 if node == (0, 0, 0) else -1 if node == last else 0
            self._problem.addConstraint(self._pulp.LpAffineExpression(around) == supply, f"balance_{number}")
        for node, variable in self._ends.items():
            if node[0] == len(stages) - 1 and node[2] != last[2]:
                self._problem += variable == 0
        slowest = self._problem.add_variable("slowest", 0)
        self._problem.setObjective(self._pulp.LpAffineExpression([(slowest, 1.0)]))
        for stage in stages:
            self._problem += slowest >= self._pulp.LpAffineExpression(self._stage_terms(stage))
        self._limit_dram()
        outcome = solve(self._problem, options)
        found = Fusion(None, math.inf, outcome in (Outcome.OPTIMAL, Outcome.INFEASIBLE), solver)
        if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
            return found
        taken = sorted(key for key, variable in self._flow.items() if is_one(variable))
        chain = tuple(self._arcs.sets[self._arcs.added[arc]] for _, _, arc in taken)
        times = [float(self._times[arc]) for _, _, arc in taken]
        return staged(self._model, chain, times, [stage for stage, _, _ in taken], found)

    def _add_stage(self, stage: int) -> None:
        """Add what can flow in a stage, from where the one before can end."""
        reached = {0} if not stage else {node[2] for node in self._balance if node[0] == stage}
        for slot in range(self._slots + 1):
            for state in sorted(reached):
                end = self._problem.add_variable(f"end_{stage}_{slot}_{state}", cat="Binary")
                self._ends[stage, slot, state] = end
                self._link((stage, slot, state), (stage + 1, 0, state), end)
            following: set[int] = set()
            for arc in self._usable if slot < self._slots else ():
                before, after = int(self._arcs.before[arc]), int(self._arcs.after[arc])
                if before in reached:
                    variable = self._problem.add_variable(f"arc_{stage}_{slot}_{arc}", cat="Binary")
                    self._flow[stage, slot, arc] = variable
                    self._link((stage, slot, before), (stage, slot + 1, after), variable)
                    following.add(after)
            reached = following

    def _link(self, source: Node, target: Node, variable: pulp.LpVariable) -> None:
        self._balance.setdefault(source, []).append((variable, 1))
        self._balance.setdefault(target, []).append((variable, -1))

    def _stage_terms(self, stage: int) -> list[tuple[pulp.LpVariable, float]]:
        """Return the time of a stage: its configurations, and what it sends on unless it is empty."""
        sends = self._model.sends_ns(members_of(self._arcs.down_sets, len(self._model.shares)))
        terms = [
            (variable, self._times[arc] / self._unit_ns)
            for (one, _, arc), variable in self._flow.items()
            if one == stage
        ]
        terms += [
            (variable, float(sends[state]) / self._unit_ns)
            for (one, slot, state), variable in self._ends.items()
            if one == stage and slot
        ]
        return terms

    def _limit_dram(self) -> None:
        capacity = self._model.design.machine.dram_bytes
        if not capacity:
            return
        arcs = self._arcs
        kept = arcs.members.astype(float) @ self._model.stage_bytes
        done = members_of(arcs.down_sets, len(self._model.shares))
        waiting = self._model.waiting_bytes(done[arcs.before], arcs.members[arcs.added])
        for stage in range(self._model.degrees.pipeline):
            inside = [(slot, arc, variable) for (one, slot, arc), variable in self._flow.items() if one == stage]
            for slot in range(self._slots):
                terms = [
                    (variable, float(kept[arcs.added[arc]] + waiting[arc] * (other == slot)) / capacity)
                    for other, arc, variable in inside
                ]
                self._problem += self._pulp.LpAffineExpression(terms) <= 1 + 1e-9
