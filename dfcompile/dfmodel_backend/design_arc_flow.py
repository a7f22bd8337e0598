"""Fusion of a design as one unit of flow through its down-sets, slot by slot, solved as a MILP: exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dfcompile.dfmodel_backend.design_model import DesignModel
from dfcompile.dfmodel_backend.fusion_arcs import Arcs, allowed_kernels, arcs_of, intervals_of, members_of
from dfcompile.dfmodel_backend.intra_chip import ROUNDING, Fused, arc_times, configs_of, fuse
from dfcompile.dfmodel_backend.milp import Outcome, is_one, solve
from dfcompile.dfmodel_backend.network_time import Column
from dfcompile.dfmodel_backend.options import MappingOptions

if TYPE_CHECKING:
    import pulp

Node = tuple[int, int]  # configurations so far, number of the down-set


def fuse_design_by_arc_flow(model: DesignModel, arcs: Arcs, options: MappingOptions) -> Fused | None:
    """Return the fastest assignment, or None if there is none.

    One 0/1 variable per configuration and slot that it may take, flow conserved at each down-set after each slot: a
    network's matrix, so that the linear relaxation is integral. Arcs whose lower bound is above the time of the best
    cut of one topological order are left out.

    Raises:
        InternalError: the solver failed.
    """
    import pulp

    times = arc_times(model, arcs)
    usable = np.flatnonzero(_promising(model, arcs, times))
    scale = float(times[usable].max(initial=0.0)) or 1.0
    problem = pulp.LpProblem("design_arc_flow", pulp.LpMinimize)
    flow, balance = _flow(problem, model, arcs, usable)
    end: Node = (len(allowed_kernels(model.design)), len(arcs.down_sets) - 1)
    if end not in balance:
        return None
    terms = [(variable, times[arc] / scale) for (_, arc), variable in flow.items() if arc >= 0]
    problem.setObjective(pulp.LpAffineExpression(terms))
    for number, (node, around) in enumerate(balance.items()):
        supply = 1 if node == (0, 0) else -1 if node == end else 0
        problem.addConstraint(pulp.LpAffineExpression(around) == supply, f"balance_{number}")
    if solve(problem, options) not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
        return None
    chain = [0] * end[0]
    for (slot, arc), variable in flow.items():
        if arc >= 0 and is_one(variable):
            chain[slot] = arcs.sets[arcs.added[arc]]
    time_ns = sum(times[arc] for (_, arc), variable in flow.items() if arc >= 0 and is_one(variable))
    return Fused(configs_of(model, chain), float(time_ns))


def _flow(
    problem: pulp.LpProblem, model: DesignModel, arcs: Arcs, usable: npt.NDArray[np.int64]
) -> tuple[dict[tuple[int, int], pulp.LpVariable], dict[Node, list[tuple[pulp.LpVariable, int]]]]:
    """Add a variable per slot and arc, arc -1 - state being an empty configuration, where something can flow."""
    masks = allowed_kernels(model.design)
    found: list[tuple[int, int, int, int]] = []  # slot, arc, before, after
    reached = {0}
    for slot, mask in enumerate(masks):
        following = dict.fromkeys(sorted(reached))
        found += [(slot, -1 - state, state, state) for state in sorted(reached)]
        for arc in usable.tolist():
            before, after = int(arcs.before[arc]), int(arcs.after[arc])
            if before in reached and arcs.sets[arcs.added[arc]] & ~mask == 0:
                found.append((slot, arc, before, after))
                following[after] = None
        reached = set(following)
    useful = {(len(masks), len(arcs.down_sets) - 1)}
    flow: dict[tuple[int, int], pulp.LpVariable] = {}
    balance: dict[Node, list[tuple[pulp.LpVariable, int]]] = {}
    for slot, arc, before, after in reversed(found):
        if (slot + 1, after) in useful:
            useful.add((slot, before))
            variable = problem.add_variable(f"arc_{slot}_{len(flow)}", cat="Binary")
            flow[slot, arc] = variable
            balance.setdefault((slot, before), []).append((variable, 1))
            balance.setdefault((slot + 1, after), []).append((variable, -1))
    return flow, balance


def _promising(model: DesignModel, arcs: Arcs, times: Column) -> npt.NDArray[np.bool_]:
    """Return which arcs may be part of an assignment that beats the best cut of one topological order."""
    incumbent = fuse(model, arcs_of(model, intervals_of(model.design)))
    finite: npt.NDArray[np.bool_] = np.isfinite(times)
    if incumbent is None:
        return finite
    before = members_of(arcs.down_sets, len(model.shares)).astype(float) @ model.least_parts
    overlap = model.design.execution.overlap
    rest = before[-1] - before
    started = overlap.times_ns(before[:, 0], before[:, 1], before[:, 2])
    left = overlap.times_ns(rest[:, 0], rest[:, 1], rest[:, 2])
    least = started[arcs.before] + times + left[arcs.after]
    promising: npt.NDArray[np.bool_] = finite & (least * (1 - ROUNDING) <= incumbent.time_ns)
    return promising
