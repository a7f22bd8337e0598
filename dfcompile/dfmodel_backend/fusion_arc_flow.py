"""Fusion as one unit of flow through the down-sets, configuration by configuration, solved as a MILP: exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion_arcs import Arcs
from dfcompile.dfmodel_backend.fusion_path import Chain
from dfcompile.dfmodel_backend.fusion_shape import FusionShape
from dfcompile.dfmodel_backend.milp import Outcome, is_one, solve
from dfcompile.dfmodel_backend.options import MappingOptions

if TYPE_CHECKING:
    import pulp

Node = tuple[int, int]  # configurations so far, number of the down-set
Flow = dict[tuple[int, int], "pulp.LpVariable"]  # by configuration and arc; arc -1 - state: an empty configuration
Balance = dict[Node, list[tuple["pulp.LpVariable", int]]]


def fuse_by_arc_flow(
    arcs: Arcs, times: Column, usable: npt.NDArray[np.bool_], shape: FusionShape, options: MappingOptions
) -> tuple[Chain | None, Outcome]:
    """Return the fastest chain, if one was found, and how the solve ended.

    One 0/1 variable per configuration and slot that it may take, flow conserved at each down-set after each slot: a
    network's matrix, so that the linear relaxation is integral. Where there is a configuration for each kernel, slots
    need not be told apart.

    Args:
        arcs: possible configurations.
        times: of each arc, in ns.
        usable: which arcs to consider.
        shape: how many configurations there are, and which kernels may be in which.
        options: solver and its time limit.

    Raises:
        InternalError: the solver failed.
    """
    import pulp

    scale = float(times[usable].max(initial=0.0)) or 1.0
    problem = pulp.LpProblem("fusion_arc_flow", pulp.LpMinimize)
    found, end = _all_arcs(arcs, usable) if shape.is_unlimited else _arcs_of_slots(arcs, usable, shape)
    flow, balance = _flow(problem, found, end)
    start: Node = (0, 0)
    if start not in balance or end not in balance:
        return None, Outcome.INFEASIBLE
    terms = [(variable, times[arc] / scale) for (_, arc), variable in flow.items() if arc >= 0]
    problem.setObjective(pulp.LpAffineExpression(terms))
    for number, (node, around) in enumerate(balance.items()):
        supply = 1 if node == start else -1 if node == end else 0
        problem.addConstraint(pulp.LpAffineExpression(around) == supply, f"balance_{number}")
    outcome = solve(problem, options)
    if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        return None, outcome
    taken = sorted((slot, arc) for (slot, arc), variable in flow.items() if arc >= 0 and is_one(variable))
    if shape.is_unlimited:
        return tuple(arcs.sets[arcs.added[arc]] for _, arc in taken), outcome
    chain = [0] * len(shape.allowed)
    for slot, arc in taken:
        chain[slot] = arcs.sets[arcs.added[arc]]
    return tuple(chain), outcome


Found = list[tuple[int, int, Node, Node]]  # configuration, arc, from where to where


def _all_arcs(arcs: Arcs, usable: npt.NDArray[np.bool_]) -> tuple[Found, Node]:
    numbers = np.flatnonzero(usable).tolist()
    found = [(0, arc, (0, int(arcs.before[arc])), (0, int(arcs.after[arc]))) for arc in numbers]
    return found, (0, len(arcs.down_sets) - 1)


def _arcs_of_slots(arcs: Arcs, usable: npt.NDArray[np.bool_], shape: FusionShape) -> tuple[Found, Node]:
    """Return the arcs that can be reached from the start, per configuration, and the end."""
    numbers = np.flatnonzero(usable).tolist()
    found: Found = []
    reached = {0}
    for slot, mask in enumerate(shape.allowed):
        following = dict.fromkeys(sorted(reached))
        found += [(slot, -1 - state, (slot, state), (slot + 1, state)) for state in sorted(reached)]
        for arc in numbers:
            before, after = int(arcs.before[arc]), int(arcs.after[arc])
            if before in reached and arcs.sets[arcs.added[arc]] & ~mask == 0:
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
