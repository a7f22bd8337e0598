"""Fusion as one unit of flow through the graph of down-sets, solved as a MILP: exact."""

from dfcompile.dfmodel_backend.chain import Arc, ChainSpace
from dfcompile.dfmodel_backend.fusion_dp import Chain
from dfcompile.dfmodel_backend.milp import Outcome, is_one, solve


def fuse_by_arc_flow(space: ChainSpace) -> tuple[Chain, Outcome] | None:
    """Return the fastest chain of configurations and how the solve ended, or None if there is no chain.

    One 0/1 variable per possible configuration; flow is conserved at each down-set. Without a limit on the
    number of configurations the matrix is a network's, so its linear relaxation is integral.
    """
    import pulp

    arcs = [arc for before in space.down_sets for arc in space.arcs_from(before)]
    if not arcs:
        return None
    scale = max(arc.time_ns for arc in arcs) or 1.0
    problem = pulp.LpProblem("fusion_arc_flow", pulp.LpMinimize)
    flow = [problem.add_variable(f"arc_{number}", cat="Binary") for number in range(len(arcs))]
    problem += pulp.LpAffineExpression([(flow[n], arc.time_ns / scale) for n, arc in enumerate(arcs)])
    balance: dict[int, list[tuple[object, int]]] = {down_set: [] for down_set in space.down_sets}
    for number, arc in enumerate(arcs):
        balance[arc.before].append((flow[number], 1))
        balance[arc.after].append((flow[number], -1))
    end = space.model.workload.every_kernel
    for node, down_set in enumerate(space.down_sets):
        supply = 1 if down_set == 0 else -1 if down_set == end else 0
        if not balance[down_set]:
            if supply:
                return None
            continue
        problem += pulp.LpAffineExpression(balance[down_set]) == supply, f"balance_{node}"
    if space.model.options.max_configurations:
        problem += pulp.lpSum(flow) <= space.model.options.max_configurations, "configurations"
    outcome = solve(problem, space.model.options)
    if outcome in (Outcome.INFEASIBLE, Outcome.NOTHING):
        return None
    return _follow({arc.before: arc for number, arc in enumerate(arcs) if is_one(flow[number])}, end), outcome


def _follow(taken: dict[int, Arc], end: int) -> Chain:
    chain = []
    down_set = 0
    while down_set != end:
        arc = taken[down_set]
        chain.append(arc.after ^ arc.before)
        down_set = arc.after
    return tuple(chain)
