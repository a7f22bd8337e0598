"""The built-in solvers: shortest paths over all down-sets, or over those of a few orders, and integer programs.

Those are arc flows, by CBC and by HiGHS: an exact MILP that finds a chain of configurations, or a pipeline of them, as
a path through down-sets. A down-set is a set of kernels that can have run at some time: with each kernel it holds all
before it. A step of the path, a 0/1 variable, is a configuration, an empty one or the end of a stage. Constraints of
flow make steps a path.
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
from dfcompile.dfmodel_backend.fusion.fusion_problem import (
    ALONG_ORDERS,
    SHORTEST_PATH,
    Fusion,
    FusionProblem,
    StageProblem,
)
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver
from dfcompile.dfmodel_backend.fusion.pipelines import fuse_stages, stage_times
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, PathCosts, Ranking, is_better
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets import Arcs, FusionShape, PathArcs
from dfcompile.dfmodel_backend.milp import MilpOptions, MilpSolver, Outcome, is_one, solve
from dfcompile.records import replace

if TYPE_CHECKING:
    import pulp


Node = tuple[int, ...]  # stage of a pipeline (if it is one), configurations so far, number of the down-set
Key = tuple[int, ...]  # stage (likewise), slot of the configuration, arc; ``-1 - down_set``: none, or the stage ends
Step = tuple[Key, Node, Node]  # the step, and the nodes before and after it
Flow = dict[Key, "pulp.LpVariable"]


def _flow(problem: pulp.LpProblem, steps: Sequence[Step], start: Node, end: Node) -> Flow:
    """Add a variable per step from which the end can be reached, and constraints by which chosen steps form a path.

    Returns the variables; none if no path leads from start to end.
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
    for number, (node, terms) in enumerate(balance.items()):
        supply = 1 if node == start else -1 if node == end else 0
        problem.addConstraint(pulp.LpAffineExpression(terms) == supply, f"balance_{number}")
    return flow


def fuse_by_arc_flow(
    arcs: PathArcs,
    costs: PathCosts,
    usable: Mask,
    shape: FusionShape,
    options: MilpOptions,
    ranking: Ranking,
) -> tuple[Chain | None, Outcome]:
    """Return the fastest chain, if one was found, and how the solve ended; ties are broken as by `least_chain`.

    One 0/1 variable per configuration and slot that it may take; flow is conserved at each down-set after each slot.
    A network flow's matrix: the linear relaxation has an integral optimum. If slots are unlimited, as many as kernels
    and each open to any kernel, one set of variables stands for all.

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
    configurations = {key: variable for key, variable in flow.items() if key[-1] >= 0}
    program = _Program(problem, arcs, costs, shape, configurations)
    problem.setObjective(program.sum(costs.time / scale) * LARGEST)
    outcome = solve(problem, options)
    if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        return None, outcome
    return program.chain() if outcome is Outcome.FEASIBLE else program.settle_ties(scale, ranking, options), outcome


# Relative slack of an objective that is fixed while the next one is minimised. It must be larger than a solver's
# tolerance: within that, CBC's preprocessing rejects feasible solutions. Exact ranks exclude chains worse by less.
SLACK = 1e-5
LARGEST = 1e6  # largest coefficient of an objective, which is scaled to it as solvers' tolerances are absolute
MOST_SOLVES = 40  # per objective: chains that are slower by less than a solver's tolerance are excluded one by one


class _Program(Struct, frozen=True, eq=False):
    """The MILP of a chain, what it was made from, and the variables of its configurations."""

    problem: pulp.LpProblem
    arcs: PathArcs
    costs: PathCosts
    shape: FusionShape
    configurations: Flow

    def sum(self, column: Column) -> pulp.LpAffineExpression:
        """Return a figure, one value per arc, summed over the configurations of the chain."""
        import pulp

        return pulp.LpAffineExpression([(variable, column[arc]) for (_, arc), variable in self.configurations.items()])

    def chain(self) -> Chain:
        """Return the chain of the last solve."""
        chosen = sorted(key for key, variable in self.configurations.items() if is_one(variable))
        if self.shape.is_unlimited:
            return tuple(self.arcs.mask(arc) for _, arc in chosen)
        chain = [0] * len(self.shape.allowed)
        for slot, arc in chosen:
            chain[slot] = self.arcs.mask(arc)
        return tuple(chain)

    def settle_ties(self, unit_ns: float, ranking: Ranking, options: MilpOptions) -> Chain:
        """Return, of the fastest chains, one with the fewest DRAM bytes, then with the fewest configurations.

        The objectives are minimised one after the other with those before them fixed. Solvers keep constraints within
        a tolerance only: each chain is ranked exactly, and excluded if it is worse than the best one.

        Args:
            unit_ns: time that counts as 1 in the constraint on time.
            ranking: exact ranks of chains.
            options: solver and its limits.

        Raises:
            UserError: the solver is not installed, or ended without an answer.
        """
        import pulp

        problem, best = self.problem, self.chain()
        time, dram_bytes = self.sum(self.costs.time / unit_ns), self.sum(self.costs.dram_bytes)
        for level, objective in enumerate((dram_bytes, self.sum(np.ones(len(self.costs.time)))), start=1):
            rank = ranking.rank(best)
            problem.addConstraint(time <= (rank[0] + ranking.tie_ns) / unit_ns * (1 + SLACK), f"time_{level}")
            if level > 1:
                problem.addConstraint(dram_bytes <= rank[1] * (1 + SLACK) + SLACK, "dram_bytes")
            largest = max((abs(factor) for factor in objective.values()), default=0.0) or 1.0
            problem.setObjective(objective * (min(largest, LARGEST) / largest))
            for solved in range(MOST_SOLVES):
                if solve(problem, options) not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
                    break
                chain = self.chain()
                chain_rank = ranking.rank(chain)
                if is_better(chain_rank, rank, ranking.tie_ns):
                    best, rank = chain, chain_rank
                    break
                if chain_rank[0] <= rank[0] + ranking.tie_ns and chain_rank[1:level] <= rank[1:level]:
                    break  # no worse in what is fixed: the chain that was best is optimal in this objective too
                used = [variable for variable in self.configurations.values() if is_one(variable)]
                problem.addConstraint(pulp.lpSum(used) <= len(used) - 1, f"without_{level}_{solved}")
        return best


def _steps_of_slots(arcs: PathArcs, usable: Mask, shape: FusionShape) -> tuple[list[Step], Node]:
    """Return the steps that can be reached from the start, slot by slot unless they are unlimited, and the end."""
    numbers = np.flatnonzero(usable).tolist()
    if shape.is_unlimited:
        any_slot: list[Step] = [((0, arc), (0, int(arcs.before[arc])), (0, int(arcs.after[arc]))) for arc in numbers]
        return any_slot, (0, len(arcs.down_sets) - 1)
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


def _staged(fusion: Fusion, model: DesignModel, chain: Chain, times: Sequence[float], stages: Sequence[int]) -> Fusion:
    """Return a fusion with the configurations of a pipeline, their times in ns and stages, renumbered without gaps."""
    sends = model.sends_ns(members_of(tuple(accumulate(chain, or_)), len(model.shares)))
    slowest_ns = 0.0
    numbers = {stage: number for number, stage in enumerate(dict.fromkeys(stages))}
    for stage in numbers:
        inside = [position for position, other in enumerate(stages) if other == stage]
        slowest_ns = max(slowest_ns, sum(times[position] for position in inside) + float(sends[inside[-1]]))
    return replace(fusion, chain=chain, time_ns=slowest_ns, stages=tuple(numbers[stage] for stage in stages))


def stages_by_arc_flow(model: DesignModel, arcs: Arcs, options: MilpOptions, solver: str) -> Fusion:
    """Return the pipeline whose slowest stage is fastest, if one was found; ``solver`` is named as its finder.

    The objective is at least the time of each stage. What a stage keeps, and tensors that wait, fit its DRAM.

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
        # Time of its configurations, and of sending its results to the next stage unless it is empty.
        terms = [
            (variable, float(times[arc] if arc >= 0 else sends[-1 - arc] * (slot > 0)) / unit_ns)
            for (stage_of_step, slot, arc), variable in flow.items()
            if stage_of_step == stage
        ]
        problem += slowest >= pulp.LpAffineExpression(terms)
    configurations = {key: variable for key, variable in flow.items() if key[-1] >= 0}
    for terms in _dram_terms(model, arcs, configurations) if model.design.machine.dram_bytes else ():
        problem += pulp.LpAffineExpression(terms) <= 1 + 1e-9
    outcome = solve(problem, options)
    fusion = Fusion(None, math.inf, outcome in (Outcome.OPTIMAL, Outcome.INFEASIBLE), solver)
    if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        return fusion
    chosen = sorted(key for key, variable in configurations.items() if is_one(variable))
    chain, chosen_stages = tuple(arcs.sets[arcs.added[arc]] for _, _, arc in chosen), [stage for stage, _, _ in chosen]
    return _staged(fusion, model, chain, [float(times[arc]) for _, _, arc in chosen], chosen_stages)


def _steps_of_stages(arcs: Arcs, usable: Sequence[int], stages: int, slots: int) -> Iterator[Step]:
    """Yield the steps of each stage, from the down-sets with which the stage before can end."""
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


def _dram_terms(model: DesignModel, arcs: Arcs, configurations: Flow) -> Iterator[list[tuple[pulp.LpVariable, float]]]:
    """Yield the fraction of DRAM in use in each slot of each stage: what the stage keeps, and tensors that wait."""
    kept: Column = arcs.members.astype(float) @ model.stage_bytes
    done = members_of(arcs.down_sets, len(model.shares))
    waiting = model.waiting_bytes(done[arcs.before], arcs.members[arcs.added])
    for stage in range(model.degrees.pipeline):
        inside = [(slot, arc, variable) for (number, slot, arc), variable in configurations.items() if number == stage]
        for slot in range(model.design.slots_of_stage):
            yield [
                (
                    variable,
                    float(kept[arcs.added[arc]] + waiting[arc] * (other == slot)) / model.design.machine.dram_bytes,
                )
                for other, arc, variable in inside
            ]


DP = FusionSolver(
    name=SHORTEST_PATH,
    is_exact=True,
    source="own",
    summary="shortest path over down-sets",
    module=__name__,
    run=FusionProblem.shortest_path,
    fuse_stages=lambda problem: fuse_stages(problem.model, problem.arcs(), problem.below_ns),
    lists=True,
)
INTERVALS = replace(
    DP,
    name=ALONG_ORDERS,
    is_exact=False,
    summary="the best cut of good topological orders, with a bound",
    run=FusionProblem.along_orders,
)


ROUNDING = 1e-9  # relative: sums in another order


def _arc_flow(name: str, program: MilpSolver) -> FusionSolver:
    def options_of(problem: FusionProblem) -> MilpOptions:
        return MilpOptions(program, problem.options.max_nodes)

    def run(problem: FusionProblem) -> Fusion:
        arcs = problem.listed()
        if arcs is None:
            return problem.along_orders()
        shape, costs = problem.shape, problem.costs_of(arcs)
        usable = _promising(problem, arcs, costs.time)
        slots = 1 if shape.is_unlimited else len(shape.allowed)
        if not problem.may_solve(int(usable.sum()) * slots):
            return problem.instead()
        chain, outcome = fuse_by_arc_flow(arcs, costs, usable, shape, options_of(problem), problem)
        if outcome is Outcome.NOTHING:
            return problem.instead()
        time_ns = np.inf if chain is None else float(problem.set_times(chain).sum())
        return Fusion(chain, time_ns, outcome is not Outcome.FEASIBLE, name)

    def fuse_stages(problem: StageProblem) -> Fusion:
        return stages_by_arc_flow(problem.model, problem.arcs(), options_of(problem), name)

    summary = "the shortest path over down-sets as an integer program"
    return FusionSolver(
        name,
        is_exact=True,
        source="own",
        summary=summary,
        module=__name__,
        run=run,
        fuse_stages=fuse_stages,
        lists=True,
    )


def _promising(problem: FusionProblem, arcs: PathArcs, times: Column) -> Mask:
    """Return which arcs may be part of a chain that beats the best one along a few topological orders."""
    finite: Mask = np.isfinite(times)
    incumbent = problem.along_orders()
    if incumbent.chain is None:
        return finite
    parts, overlap = problem.model.least_parts, problem.model.rules.overlap
    before = members_of(arcs.down_sets, len(parts)).astype(float) @ parts
    rest = before[-1] - before
    least = overlap.times_ns(*before.T)[arcs.before] + times + overlap.times_ns(*rest.T)[arcs.after]
    return np.asarray(finite & (least * (1 - ROUNDING) <= incumbent.time_ns))


INTEGER_PROGRAMS = (_arc_flow("cbc", MilpSolver.CBC), _arc_flow("highs", MilpSolver.HIGHS))
