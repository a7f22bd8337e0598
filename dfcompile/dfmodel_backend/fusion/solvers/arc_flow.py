"""Fusion as one unit of flow through the down-sets, configuration by configuration, solved as a MILP: exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.fusion.solvers.milp_ties import LARGEST, ChainProgram, settle_ties
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain, PathCosts, Ranking
from dfcompile.dfmodel_backend.kernel_sets import FusionShape, PathArcs
from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, is_one, solve

if TYPE_CHECKING:
    import pulp

Node = tuple[int, int]  # configurations so far, number of the down-set
Flow = dict[tuple[int, int], "pulp.LpVariable"]  # by configuration and arc; arc -1 - state: an empty configuration
Balance = dict[Node, list[tuple["pulp.LpVariable", int]]]


def fuse_by_arc_flow(
    arcs: PathArcs,
    costs: PathCosts,
    usable: npt.NDArray[np.bool_],
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
    found, end = _all_arcs(arcs, usable) if shape.is_unlimited else _arcs_of_slots(arcs, usable, shape)
    flow, balance = _flow(problem, found, end)
    start: Node = (0, 0)
    if start not in balance or end not in balance:
        return None, Outcome.INFEASIBLE
    taken = {place: variable for place, variable in flow.items() if place[1] >= 0}
    time = pulp.LpAffineExpression([(variable, costs.time[arc] / scale) for (_, arc), variable in taken.items()])
    problem.setObjective(time * LARGEST)
    for number, (node, around) in enumerate(balance.items()):
        supply = 1 if node == start else -1 if node == end else 0
        problem.addConstraint(pulp.LpAffineExpression(around) == supply, f"balance_{number}")
    outcome = solve(problem, options)
    if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        return None, outcome

    def chain() -> Chain:
        return _chain(arcs, taken, shape)

    def without(_: Chain) -> pulp.LpConstraint:
        used = [variable for variable in taken.values() if is_one(variable)]
        return pulp.lpSum(used) <= len(used) - 1

    if outcome is Outcome.FEASIBLE:
        return chain(), outcome
    program = ChainProgram(
        problem,
        time=(time, scale),
        dram_bytes=pulp.LpAffineExpression([(variable, costs.dram_bytes[arc]) for (_, arc), variable in taken.items()]),
        configurations=pulp.LpAffineExpression([(variable, 1) for variable in taken.values()]),
        chain=chain,
        without=without,
        ranking=ranking,
    )
    return settle_ties(program, options), outcome


def _chain(arcs: PathArcs, taken: Flow, shape: FusionShape) -> Chain:
    chosen = sorted(place for place, variable in taken.items() if is_one(variable))
    if shape.is_unlimited:
        return tuple(arcs.mask(arc) for _, arc in chosen)
    chain = [0] * len(shape.allowed)
    for slot, arc in chosen:
        chain[slot] = arcs.mask(arc)
    return tuple(chain)


Found = list[tuple[int, int, Node, Node]]  # configuration, arc, from where to where


def _all_arcs(arcs: PathArcs, usable: npt.NDArray[np.bool_]) -> tuple[Found, Node]:
    numbers = np.flatnonzero(usable).tolist()
    found = [(0, arc, (0, int(arcs.before[arc])), (0, int(arcs.after[arc]))) for arc in numbers]
    return found, (0, len(arcs.down_sets) - 1)


def _arcs_of_slots(arcs: PathArcs, usable: npt.NDArray[np.bool_], shape: FusionShape) -> tuple[Found, Node]:
    """Return the arcs that can be reached from the start, per configuration, and the end."""
    numbers = np.flatnonzero(usable).tolist()
    found: Found = []
    reached = {0}
    for slot, mask in enumerate(shape.allowed):
        following = dict.fromkeys(sorted(reached))
        found += [(slot, -1 - state, (slot, state), (slot + 1, state)) for state in sorted(reached)]
        for arc in numbers:
            before, after = int(arcs.before[arc]), int(arcs.after[arc])
            if before in reached and arcs.mask(arc) & ~mask == 0:
                found.append((slot, arc, (slot, before), (slot + 1, after)))
                following[after] = None
        reached = set(following)
    return found, (len(shape.allowed), len(arcs.down_sets) - 1)


def _flow(problem: pulp.LpProblem, found: Found, end: Node) -> tuple[Flow, Balance]:
    """Add a variable per arc from which the end can be reached."""
    useful = {end}
    flow: Flow = {}
    balance: Balance = {}
    for slot, arc, before, after in reversed(found):
        if after in useful:
            useful.add(before)
            variable = problem.add_variable(f"arc_{slot}_{len(flow)}", cat="Binary")
            flow[slot, arc] = variable
            balance.setdefault(before, []).append((variable, 1))
            balance.setdefault(after, []).append((variable, -1))
    return flow, balance
