"""Sharding: which dimension of each kernel is split over the chips of a tensor parallel group [ko24, section 3]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dfcompile.dfmodel_backend.inter_chip.layouts import conversion, given_layout, needed_layout
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.machine import Collective
from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, is_one, solve
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim
from dfcompile.errors import InfeasibleError

if TYPE_CHECKING:
    import pulp

SLACK = 1e-6  # of a level that later ones must keep, in units of the largest tensor


@dataclass(frozen=True, slots=True)
class InterChip:
    """A sharding and the bytes that it moves between chips."""

    sharding: dict[int, Dim]  # by kernel id
    communication_bytes: float


@dataclass(frozen=True, slots=True)
class SplitTimes:
    """What a sharding costs in time, in ns: the objective of a time-aware sharding.

    Attributes:
        kernels: of each kernel by id and split dimension: its compute and its all-reduce.
        edges: of a layout change behind each kernel, by id and split dimension, for each collective.
    """

    kernels: Mapping[tuple[int, Dim], float]
    edges: Mapping[tuple[int, Dim, Collective], float]


def shard(
    design: Design,
    options: MilpOptions,
    pinned: Mapping[int, Dim] | None = None,
    times: SplitTimes | None = None,
    *,
    ties_whole: bool = False,
) -> InterChip:
    """Choose the sharding of a design's kernels; see `shard_kernels`."""
    return shard_kernels(design.kernels, design.edges, options, pinned, times, ties_whole=ties_whole)


def shard_kernels(
    kernels: Sequence[DesignKernel],
    edges: Sequence[DesignEdge],
    options: MilpOptions,
    pinned: Mapping[int, Dim] | None = None,
    times: SplitTimes | None = None,
    *,
    ties_whole: bool = False,
) -> InterChip:
    """Choose the sharding that moves the fewest bytes between chips, or takes the least time if ``times`` are given.

    A kernel that is split along k all-reduces its output; an edge whose ends disagree on the layout converts it. Ties
    go to splitting as many bytes of output as possible, then to an all-reduce in a kernel before a conversion behind
    it, then to rows before columns, so that every solver gives the same sharding. With ``ties_whole`` they go to
    splitting as little as possible instead.

    Raises:
        InfeasibleError: the pinned shardings contradict what a kernel allows.
    """
    return _ShardingProblem(kernels, edges, options, pinned or {}, times).solve(ties_whole=ties_whole)


_PREFERRED = (Dim.OUTER, Dim.M, Dim.N, Dim.K, Dim.NONE)
Terms = list[tuple["pulp.LpVariable", float]]


class _ShardingProblem:
    def __init__(
        self,
        kernels: Sequence[DesignKernel],
        edges: Sequence[DesignEdge],
        options: MilpOptions,
        pinned: Mapping[int, Dim],
        times: SplitTimes | None,
    ) -> None:
        import pulp

        self._pulp = pulp
        self._options = options
        self._kernels = {kernel.id: kernel for kernel in kernels}
        self._times = times
        self._problem = pulp.LpProblem("sharding", pulp.LpMinimize)
        self._choice = {kernel.id: self._dims(kernel, pinned.get(kernel.id)) for kernel in kernels}
        self._unit = max((kernel.output_bytes for kernel in kernels), default=1.0) or 1.0
        self._reduced: Terms = [
            (self._choice[kernel.id][Dim.K], kernel.output_bytes / self._unit)
            for kernel in kernels
            if Dim.K in self._choice[kernel.id] and kernel.collective in (Collective.NONE, Collective.ALL_REDUCE)
        ]
        self._converted: Terms = []
        self._slowed: Terms = []
        for edge in edges:
            self._add_edge(edge)

    def solve(self, *, ties_whole: bool) -> InterChip:
        moved = [*self._reduced, *self._converted]
        if self._times is not None:
            unit_ns = max([*self._times.kernels.values(), 0.0]) or 1.0
            taken = [
                (variable, self._times.kernels.get((number, dim), 0.0) / unit_ns)
                for number, variables in self._choice.items()
                for dim, variable in variables.items()
            ]
            self._minimize([*taken, *((variable, time_ns / unit_ns) for variable, time_ns in self._slowed)])
        else:
            self._minimize(moved)
        sign = -1 if ties_whole else 1
        whole = [
            (variables[Dim.NONE], sign * self._kernels[number].output_bytes / self._unit)
            for number, variables in self._choice.items()
            if Dim.NONE in variables
        ]
        self._minimize(whole)
        self._minimize(self._converted)
        ranked = [
            (variables[dim], float(rank))
            for variables in self._choice.values()
            for rank, dim in enumerate(_PREFERRED)
            if dim in variables
        ]
        self._minimize(ranked)
        sharding = {
            number: next(dim for dim, variable in variables.items() if len(variables) == 1 or is_one(variable))
            for number, variables in self._choice.items()
        }
        return InterChip(sharding, sum(factor for variable, factor in moved if is_one(variable)) * self._unit)

    def _dims(self, kernel: DesignKernel, pinned: Dim | None) -> dict[Dim, pulp.LpVariable]:
        allowed = allowed_dims(kernel)
        if pinned is not None and pinned not in allowed:
            raise InfeasibleError(f"kernel {kernel.name!r}: sharding {pinned} against one of {', '.join(allowed)}")
        dims = allowed if pinned is None else (pinned,)
        variables = {
            dim: self._problem.add_variable(f"split_{kernel.id}_{dim.name}", cat="Binary") for dim in dims
        }  # fmt: skip
        self._problem += self._pulp.lpSum(variables.values()) == 1
        return variables

    def _add_edge(self, edge: DesignEdge) -> None:
        """One 0/1 cost of the edge, and one per split of its producer: a change costs what is split then."""
        giver, taker = self._kernels[edge.source], self._kernels[edge.target]
        size = giver.output_bytes
        converts = self._problem.add_variable(f"convert_{edge.source}_{edge.target}", 0)
        self._converted.append((converts, size / self._unit))
        slow = self._problem.add_variable(f"slow_{edge.source}_{edge.target}", 0)
        self._slowed.append((slow, 1.0))
        for given, gives in self._choice[edge.source].items():
            for taken, takes in self._choice[edge.target].items():
                change = conversion(given_layout(given), needed_layout(taker, taken, size))
                if change is Collective.NONE:
                    continue
                self._problem += converts >= gives + takes - 1
                if self._times is not None:
                    time_ns = self._times.edges.get((edge.source, given, change), 0.0)
                    self._problem += slow >= time_ns * (gives + takes - 1)

    def _minimize(self, terms: Terms) -> None:
        """Minimise a level and keep its value for the levels that follow; CBC refuses one without terms."""
        terms = [term for term in terms if term[1]]
        if not terms:
            return
        objective = self._pulp.LpAffineExpression(terms)
        self._problem.setObjective(objective)
        if solve(self._problem, self._options) is not Outcome.OPTIMAL:
            raise InfeasibleError("sharding: no optimum within the time limit (raise it, or pin shardings)")
        least = sum(factor * (variable.value() or 0.0) for variable, factor in terms)
        self._problem += self._pulp.LpAffineExpression(terms) <= least + SLACK


def allowed_dims(kernel: DesignKernel) -> tuple[Dim, ...]:
    """Return the dimensions along which a kernel may be split: of heads the heads, of weights always one."""
    if kernel.outer > 1:
        return (Dim.OUTER,)
    extents = {Dim.M: kernel.m, Dim.K: kernel.k, Dim.N: kernel.n}
    allowed = tuple(
        dim
        for dim, extent in extents.items()
        if extent > 1 and dim is not kernel.tiling.shard and (dim is not Dim.K or kernel.variant.is_gemm)
    )
    return allowed if kernel.has_weight and allowed else (*allowed, Dim.NONE)


def split_times(model: DesignModel) -> SplitTimes:
    """Return what each split of each kernel costs on the chips of a model; its own sharding plays no part."""
    kernels: dict[tuple[int, Dim], float] = {}
    edges: dict[tuple[int, Dim, Collective], float] = {}
    design = model.design
    for dim in Dim:
        sharding = {kernel.id: dim for kernel in design.kernels if dim in allowed_dims(kernel)}
        split = DesignModel(design, sharding, model.tiles, model.compatibility)
        for position, share in enumerate(split.shares):
            if share.kernel.id not in sharding:
                continue
            reduced = sum(size for collective, size in share.exchange if collective is Collective.ALL_REDUCE)
            network_ns = model.tiles * reduced * model.network.ratio_ns_per_byte(Collective.ALL_REDUCE)
            kernels[share.kernel.id, dim] = float(split.least_parts[position, 0]) + network_ns
            whole_bytes = share.output_bytes * split.chips_of_output(share)
            for change in (Collective.ALL_GATHER, Collective.ALL_TO_ALL):
                ratio = model.network.ratio_ns_per_byte(change)
                edges[share.kernel.id, dim, change] = split.tiles * whole_bytes * ratio
    return SplitTimes(kernels, edges)
