"""Arc flow: chains of configurations, or pipelines of them, as one unit of flow through down-sets, solved as a MILP.

Exact. A step is a 0/1 variable: a configuration, an empty one, or the end of a stage of a pipeline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.columns import Column, Mask, members_of
from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion
from dfcompile.dfmodel_backend.fusion.pipelines import stage_times
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, PathCosts, Ranking, is_better
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets import Arcs, FusionShape, PathArcs
from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, is_one, solve
from dfcompile.records import replace

if TYPE_CHECKING:
    import pulp

Node = tuple[int, ...]  # stage of a pipeline, configurations so far, number of the down-set
Key = tuple[int, ...]  # stage of a pipeline, configuration, arc; arc -1 - state: none
Step = tuple[Key, Node, Node]  # from where to where
Flow = dict[Key, "pulp.LpVariable"]


def _flow(problem: pulp.LpProblem, steps: Sequence[Step], start: Node, end: Node) -> Flow:
    """Add a variable per step from which the end can be reached, and let flow be conserved between start and end.

    Nothing is returned if there is no way.
    """
    import pulp

    useful = {end}
    flow: Flow = {}
    balance: dict[Node, list[tuple[pulp.LpVariable, int]]] = {}
    for key, before, after in reversed(steps):
        if after in useful:
            useful.add(before)
            variable = problem.add_variable(f"arc_{'_'.join(map(str, key[:-1]))}_{len(flow)}", cat="Binary")
            flow[key] = variable
            balance.setdefault(before, []).append((variable, 1))
            balance.setdefault(after, []).append((variable, -1))
    if start not in balance or end not in balance:
        return {}
    for number, (node, around) in enumerate(balance.items()):
        supply = 1 if node == start else -1 if node == end else 0
        problem.addConstraint(pulp.LpAffineExpression(around) == supply, f"balance_{number}")
    return flow


def fuse_by_arc_flow(
    arcs: PathArcs,
    costs: PathCosts,
    usable: Mask,
    shape: FusionShape,
    options: MilpOptions,
    ranking: Ranking,
) -> tuple[Chain | None, Outcome]:
    """Return the fastest chain, if one was found, and how the solve ended; ties are those of `least_chain`.

    One 0/1 variable per configuration and slot that it may take, flow conserved at each down-set after each slot: a
    network's matrix, so that the linear relaxation is integral. Where there is a configuration for each kernel, slots
    need not be told apart.

    Args:
        arcs: possible configurations.
        costs: of each arc, times in ns.
        usable: which arcs to consider.
        shape: how many configurations there are, and which kernels may be in which.
        options: solver and its limits.
        ranking: of chains.

    Raises:
        UserError: the solver is not installed, or ended without an answer.
    """
    import pulp

    scale = float(costs.time[usable].max(initial=0.0)) or 1.0
    problem = pulp.LpProblem("fusion_arc_flow", pulp.LpMinimize)
    steps, end = _steps_of_slots(arcs, usable, shape)
    flow = _flow(problem, steps, (0, 0), end)
    if not flow:
        return None, Outcome.INFEASIBLE
    taken = {place: variable for place, variable in flow.items() if place[1] >= 0}
    program = _Program(problem, arcs, costs, shape, taken)
    problem.setObjective(program.sum(costs.time / scale) * LARGEST)
    outcome = solve(problem, options)
    if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        return None, outcome
    return program.chain() if outcome is Outcome.FEASIBLE else program.settle_ties(scale, ranking, options), outcome


# Relative: what is fixed must stay possible, by more than a solver's tolerance, within which CBC's preprocessing takes
# some solutions for impossible. Chains that are worse by less than this are cut off by their exact rank.
SLACK = 1e-5
LARGEST = 1e6  # of an objective: solvers' tolerances are absolute
MOST_SOLVES = 40  # per objective: chains that are slower by less than a solver's tolerance are cut off one by one


class _Program(Struct, frozen=True, eq=False):
    """A program of one stage, and what it was made of; `taken` are the variables of its arcs."""

    problem: pulp.LpProblem
    arcs: PathArcs
    costs: PathCosts
    shape: FusionShape
    taken: Flow

    def sum(self, column: Column) -> pulp.LpAffineExpression:
        """Return the sum of a figure of the arcs of the chain."""
        import pulp

        return pulp.LpAffineExpression([(variable, column[arc]) for (_, arc), variable in self.taken.items()])

    def chain(self) -> Chain:
        """Return the chain that was found last."""
        chosen = sorted(place for place, variable in self.taken.items() if is_one(variable))
        if self.shape.is_unlimited:
            return tuple(self.arcs.mask(arc) for _, arc in chosen)
        chain = [0] * len(self.shape.allowed)
        for slot, arc in chosen:
            chain[slot] = self.arcs.mask(arc)
        return tuple(chain)

    def settle_ties(self, unit_ns: float, ranking: Ranking, options: MilpOptions) -> Chain:
        """Return the fastest chain with the fewest DRAM bytes, and of these the one with the fewest configurations.

        The objectives are minimised one after the other with those before them fixed. Solvers only keep what is fixed
        up to a tolerance: each chain is ranked exactly, and cut off if it is worse.

        Args:
            unit_ns: what one of the first objective is; its values are those of a fastest chain.
            ranking: of chains, exact.
            options: solver and its limits.

        Raises:
            UserError: the solver is not installed, or ended without an answer.
        """
        import pulp

        problem, best = self.problem, self.chain()
        time, dram_bytes = self.sum(self.costs.time / unit_ns), self.sum(self.costs.dram_bytes)
        for level, aim in enumerate((dram_bytes, self.sum(np.ones(len(self.costs.time)))), start=1):
            rank = ranking.rank(best)
            problem.addConstraint(time <= (rank[0] + ranking.tie_ns) / unit_ns * (1 + SLACK), f"time_{level}")
            if level > 1:
                problem.addConstraint(dram_bytes <= rank[1] * (1 + SLACK) + SLACK, "dram_bytes")
            largest = max((abs(factor) for factor in aim.values()), default=0.0) or 1.0
            problem.setObjective(aim * (min(largest, LARGEST) / largest))
            for solved in range(MOST_SOLVES):
                if solve(problem, options) not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
                    break
                chain = self.chain()
                found = ranking.rank(chain)
                if is_better(found, rank, ranking.tie_ns):
                    best, rank = chain, found
                    break
                if found[0] <= rank[0] + ranking.tie_ns and found[1:level] <= rank[1:level]:
                    break
                used = [variable for variable in self.taken.values() if is_one(variable)]
                problem.addConstraint(pulp.lpSum(used) <= len(used) - 1, f"without_{level}_{solved}")
        return best


def _steps_of_slots(arcs: PathArcs, usable: Mask, shape: FusionShape) -> tuple[list[Step], Node]:
    """Return the arcs that can be reached from the start, per configuration where these differ, and the end."""
    numbers = np.flatnonzero(usable).tolist()
    if shape.is_unlimited:
        free: list[Step] = [((0, arc), (0, int(arcs.before[arc])), (0, int(arcs.after[arc]))) for arc in numbers]
        return free, (0, len(arcs.down_sets) - 1)
    steps: list[Step] = []
    reached = {0}
    for slot, mask in enumerate(shape.allowed):
        following = dict.fromkeys(sorted(reached))
        steps += [((slot, -1 - state), (slot, state), (slot + 1, state)) for state in sorted(reached)]
        for arc in numbers:
            before, after = int(arcs.before[arc]), int(arcs.after[arc])
            if before in reached and arcs.mask(arc) & ~mask == 0:
                steps.append(((slot, arc), (slot, before), (slot + 1, after)))
                following[after] = None
        reached = set(following)
    return steps, (len(shape.allowed), len(arcs.down_sets) - 1)


def staged(model: DesignModel, chain: Chain, times: Sequence[float], stages: Sequence[int], found: Fusion) -> Fusion:
    """Return what was found with a chain: sets of kernels, and the stage of each, numbered anew without gaps."""
    sends = model.sends_ns(members_of(tuple(accumulate(chain, or_)), len(model.shares)))
    slowest_ns = 0.0
    numbers = {stage: number for number, stage in enumerate(dict.fromkeys(stages))}
    for stage in numbers:
        inside = [place for place, number in enumerate(stages) if number == stage]
        slowest_ns = max(slowest_ns, sum(times[place] for place in inside) + float(sends[inside[-1]]))
    return replace(found, chain=chain, time_ns=slowest_ns, stages=tuple(numbers[stage] for stage in stages))


def stages_by_arc_flow(model: DesignModel, arcs: Arcs, options: MilpOptions, solver: str) -> Fusion:
    """Return the partition whose slowest stage is fastest, if one was found, as of a solver of that name.

    Each stage is at most the objective, and what it keeps and what waits fits DRAM.

    Raises:
        UserError: the solver is not installed, or ended without an answer.
    """
    import pulp

    times, stages = stage_times(model, arcs), range(model.degrees.pipeline)
    sends = model.sends_ns(members_of(arcs.down_sets, len(model.shares)))
    usable = np.flatnonzero(np.isfinite(times)).tolist()
    unit_ns = float(times[usable].max(initial=0.0)) or 1.0
    problem = pulp.LpProblem("pipeline_arc_flow", pulp.LpMinimize)
    steps = list(_steps_of_stages(arcs, usable, len(stages), model.design.slots_of_stage))
    flow = _flow(problem, steps, (0, 0, 0), (len(stages), 0, len(arcs.down_sets) - 1))
    if not flow:
        return Fusion(None, math.inf, is_optimal=True, solver=solver)
    slowest = problem.add_variable("slowest", 0)
    problem.setObjective(pulp.LpAffineExpression([(slowest, 1.0)]))
    for stage in stages:
        # Its configurations, and what it sends on unless it is empty.
        terms = [
            (variable, float(times[arc] if arc >= 0 else sends[-1 - arc] * (slot > 0)) / unit_ns)
            for (one, slot, arc), variable in flow.items()
            if one == stage
        ]
        problem += slowest >= pulp.LpAffineExpression(terms)
    taken = {key: variable for key, variable in flow.items() if key[-1] >= 0}
    for terms in _dram_terms(model, arcs, taken) if model.design.machine.dram_bytes else ():
        problem += pulp.LpAffineExpression(terms) <= 1 + 1e-9
    outcome = solve(problem, options)
    found = Fusion(None, math.inf, outcome in (Outcome.OPTIMAL, Outcome.INFEASIBLE), solver)
    if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        return found
    chosen = sorted(key for key, variable in taken.items() if is_one(variable))
    chain = tuple(arcs.sets[arcs.added[arc]] for _, _, arc in chosen)
    return staged(model, chain, [float(times[arc]) for _, _, arc in chosen], [stage for stage, _, _ in chosen], found)


def _steps_of_stages(arcs: Arcs, usable: Sequence[int], stages: int, slots: int) -> Iterator[Step]:
    """Yield what can flow in each stage, from where the one before can end."""
    begins = {0}
    for stage in range(stages):
        reached, ends = begins, set[int]()
        for slot in range(slots + 1):
            ends |= reached
            yield from (
                ((stage, slot, -1 - state), (stage, slot, state), (stage + 1, 0, state)) for state in sorted(reached)
            )
            following = set[int]()
            for arc in usable if slot < slots else ():
                before, after = int(arcs.before[arc]), int(arcs.after[arc])
                if before in reached:
                    yield (stage, slot, arc), (stage, slot, before), (stage, slot + 1, after)
                    following.add(after)
            reached = following
        begins = ends


def _dram_terms(model: DesignModel, arcs: Arcs, taken: Flow) -> Iterator[list[tuple[pulp.LpVariable, float]]]:
    """Yield the part of DRAM that each configuration of each stage needs beside what the stage keeps."""
    kept: Column = arcs.members.astype(float) @ model.stage_bytes
    done = members_of(arcs.down_sets, len(model.shares))
    waiting = model.waiting_bytes(done[arcs.before], arcs.members[arcs.added])
    for stage in range(model.degrees.pipeline):
        inside = [(slot, arc, variable) for (one, slot, arc), variable in taken.items() if one == stage]
        for slot in range(model.design.slots_of_stage):
            yield [
                (
                    variable,
                    float(kept[arcs.added[arc]] + waiting[arc] * (other == slot)) / model.design.machine.dram_bytes,
                )
                for other, arc, variable in inside
            ]
