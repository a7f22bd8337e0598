"""Sharding: which dimension of each kernel is split over the chips of a tensor parallel group [ko24, section 3]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dfcompile.dfmodel_backend.design import Collective, Design, DesignKernel, Dim
from dfcompile.dfmodel_backend.layouts import conversion, given_layout, needed_layout
from dfcompile.dfmodel_backend.milp import Outcome, is_one, solve
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.errors import InfeasibleError

if TYPE_CHECKING:
    import pulp


@dataclass(frozen=True, slots=True)
class InterChip:
    """A sharding and the bytes that it moves between chips."""

    sharding: dict[int, Dim]  # by kernel id
    communication_bytes: float


def shard(design: Design, options: MappingOptions, pinned: dict[int, Dim] | None = None) -> InterChip:
    """Choose the sharding that moves the fewest bytes; among those, the one that leaves the least on each chip.

    A kernel that is split along k all-reduces its output; an edge whose ends disagree on the layout converts it.

    What is then still a tie goes to rows before columns, so that every solver gives the same sharding.

    Raises:
        InfeasibleError: the pinned shardings contradict what a kernel allows.
    """
    import pulp

    kernels = {kernel.id: kernel for kernel in design.kernels}
    problem = pulp.LpProblem("sharding", pulp.LpMinimize)
    choice: dict[int, dict[Dim, pulp.LpVariable]] = {}
    for kernel in design.kernels:
        allowed = _allowed(kernel)
        wanted = (pinned or {}).get(kernel.id)
        if wanted is not None and wanted not in allowed:
            raise InfeasibleError(f"kernel {kernel.name!r}: sharding {wanted} against one of {', '.join(allowed)}")
        dims = allowed if wanted is None else (wanted,)
        choice[kernel.id] = {dim: problem.add_variable(f"split_{kernel.id}_{dim.name}", cat="Binary") for dim in dims}
        problem += pulp.lpSum(choice[kernel.id].values()) == 1
    unit = max((kernel.output_bytes for kernel in design.kernels), default=1.0) or 1.0
    moved = [
        (choice[kernel.id][Dim.K], kernel.output_bytes / unit)
        for kernel in design.kernels
        if Dim.K in choice[kernel.id] and kernel.collective is Collective.NONE
    ]
    for edge in design.edges:
        size = kernels[edge.source].output_bytes
        cost = problem.add_variable(f"convert_{edge.source}_{edge.target}", 0)
        moved.append((cost, size / unit))
        for given, gives in choice[edge.source].items():
            for taken, takes in choice[edge.target].items():
                needed = needed_layout(kernels[edge.target], taken, size)
                if conversion(given_layout(given), needed) is not Collective.NONE:
                    problem += cost >= gives + takes - 1
    problem.setObjective(pulp.LpAffineExpression(moved))
    _solve(problem, options)
    least = sum(factor for variable, factor in moved for _ in range(round(variable.value() or 0.0)))
    problem += pulp.LpAffineExpression(moved) <= least + 1e-6
    # Ties: what is not split lies whole on every chip, and moves to and from DRAM whole.
    whole = [
        (variable, kernel.output_bytes / unit)
        for kernel in design.kernels
        for dim, variable in choice[kernel.id].items()
        if dim in (Dim.NONE, Dim.K)
    ]
    problem.setObjective(pulp.LpAffineExpression(whole))
    _solve(problem, options)
    problem += pulp.LpAffineExpression(whole) <= sum(factor for one, factor in whole if is_one(one)) + 1e-6
    ranked = [(each[dim], rank) for each in choice.values() for rank, dim in enumerate(_PREFERRED) if dim in each]
    problem.setObjective(pulp.LpAffineExpression(ranked))
    _solve(problem, options)
    sharding = {
        number: next(dim for dim, variable in variables.items() if is_one(variable))
        for number, variables in choice.items()
    }
    return InterChip(sharding, least * unit)


_PREFERRED = (Dim.OUTER, Dim.M, Dim.N, Dim.K, Dim.NONE)


def _solve(problem: pulp.LpProblem, options: MappingOptions) -> None:
    if solve(problem, options) is not Outcome.OPTIMAL:
        raise InfeasibleError("sharding: no optimum within the time limit (raise it, or pin shardings)")


def _allowed(kernel: DesignKernel) -> tuple[Dim, ...]:
    if kernel.outer > 1:
        return (Dim.OUTER,)
    extents = {Dim.M: kernel.m, Dim.K: kernel.k, Dim.N: kernel.n}
    allowed = tuple(
        dim
        for dim, extent in extents.items()
        if extent > 1 and dim is not kernel.tiling.shard and (dim is not Dim.K or kernel.variant.is_gemm)
    )
    return allowed if kernel.has_weight and allowed else (*allowed, Dim.NONE)
