"""Sharding: which dimension of each kernel is split over the chips of a tensor parallel group [ko24, section 3].

Exact: labels of least cost, by eliminating one kernel after the other [dechter99], which is fast on narrow graphs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.inter_chip import shares
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.machine.system import Collective
from dfcompile.dfmodel_backend.options import ShardingObjective
from dfcompile.dfmodel_backend.workload.design import Design, DesignEdge, DesignKernel, Dim
from dfcompile.errors import InfeasibleError, UserError
from dfcompile.records import replace

Levels: TypeAlias = tuple[int, ...]  # not negative; the first that differs counts
Labels: TypeAlias = dict[int, Dim]
Array = npt.NDArray[np.int64]  # or of Python's integers, where those are too small

MOST_ENTRIES = 2**20  # of a table; of all published designs the largest has 12


class Labelling(Struct, frozen=True):
    """What labels cost; costs are exact, so that every solver finds the same.

    Attributes:
        labels: that each node may have, at least one.
        alone: costs of a node's label; what is not listed costs nothing.
        between: costs of the labels of two nodes, of all edges between them.
        levels: of a cost.
    """

    labels: Mapping[int, tuple[Dim, ...]]
    alone: Mapping[tuple[int, Dim], Levels]
    between: Mapping[tuple[int, int], Mapping[tuple[Dim, Dim], Levels]]
    levels: int

    @property
    def nothing(self) -> Levels:
        """A cost of nothing."""
        return (0,) * self.levels

    def cost(self, labels: Mapping[int, Dim]) -> Levels:
        """Return what a labelling costs."""
        found = [self.alone.get(node, self.nothing) for node in labels.items()]
        found += [costs.get((labels[one], labels[two]), self.nothing) for (one, two), costs in self.between.items()]
        return tuple(map(sum, zip(self.nothing, *found, strict=True)))


class _Factor(Struct, frozen=True):
    """What the labels of some nodes cost; an axis each."""

    nodes: tuple[int, ...]
    costs: Array

    def over(self, nodes: tuple[int, ...]) -> Array:
        """Return the costs with an axis for each of more nodes."""
        order = sorted(range(len(self.nodes)), key=lambda axis: nodes.index(self.nodes[axis]))
        shape = {self.nodes[axis]: self.costs.shape[axis] for axis in order}
        return self.costs.transpose(order).reshape([shape.get(node, 1) for node in nodes])


def least_labels(problem: Labelling) -> Labels:
    """Return the labels of least cost.

    Among equal costs the labels that are listed first are taken, of the node that is eliminated last before others.

    Raises:
        UserError: the graph is too wide: a table would have too many entries.
    """
    factors = _factors(problem)
    open_nodes = [node for node, labels in problem.labels.items() if len(labels) > 1]
    decisions: list[tuple[int, tuple[int, ...], Array]] = []
    while open_nodes:
        around = {node: _neighbours(node, factors) for node in open_nodes}
        sizes = {node: prod(len(problem.labels[one]) for one in (node, *around[node])) for node in open_nodes}
        node = min(open_nodes, key=lambda one: sizes[one])
        if sizes[node] > MOST_ENTRIES:
            raise UserError(
                f"sharding: a table of {sizes[node]:,} entries against at most {MOST_ENTRIES:,}: the graph is too wide "
                "(pins of shardings make it narrower)"
            )
        nodes = (*around[node], node)
        joined = sum((one.over(nodes) for one in factors if node in one.nodes), start=np.zeros((1,) * len(nodes), int))
        joined = np.broadcast_to(joined, [len(problem.labels[one]) for one in nodes])
        decisions.append((node, around[node], joined.argmin(axis=-1)))
        factors = [one for one in factors if node not in one.nodes]
        if around[node]:
            factors.append(_Factor(around[node], joined.min(axis=-1)))
        open_nodes.remove(node)
    chosen = dict.fromkeys(problem.labels, 0)
    for node, nodes, best in reversed(decisions):
        chosen[node] = int(best[tuple(chosen[one] for one in nodes)])
    return {node: labels[chosen[node]] for node, labels in problem.labels.items()}


def _neighbours(node: int, factors: Sequence[_Factor]) -> tuple[int, ...]:
    found = dict.fromkeys(one for factor in factors if node in factor.nodes for one in factor.nodes)
    return tuple(one for one in found if one != node)


def _factors(problem: Labelling) -> list[_Factor]:
    """Return a factor per node and pair of nodes that have a choice; what has none is part of what it is beside."""
    units, kind = _packing(problem)

    def number(cost: Levels) -> int:
        return sum(unit * level for unit, level in zip(units, cost, strict=True))

    alone: dict[int, Array] = {
        node: np.array([number(problem.alone.get((node, label), problem.nothing)) for label in labels], kind)
        for node, labels in problem.labels.items()
    }
    pairs = []
    for (first, second), costs in problem.between.items():
        rows, columns = problem.labels[first], problem.labels[second]
        table: Array = np.array(
            [[number(costs.get((row, column), problem.nothing)) for column in columns] for row in rows], kind
        )
        if len(rows) == 1:
            alone[second] = alone[second] + table[0]
        elif len(columns) == 1:
            alone[first] = alone[first] + table[:, 0]
        else:
            pairs.append(_Factor((first, second), table))
    return [_Factor((node,), costs) for node, costs in alone.items() if len(costs) > 1] + pairs


def _packing(problem: Labelling) -> tuple[Levels, type]:
    """Return the units of the levels of a cost in one number, which adds up and compares as they do, and its type."""
    costs = [*problem.alone.values(), *(cost for pairs in problem.between.values() for cost in pairs.values())]
    most = [1 + sum(cost[level] for cost in costs) for level in range(problem.levels)]
    units = [1]
    for size in reversed(most[1:]):
        units.append(units[-1] * size)
    return tuple(reversed(units)), np.int64 if units[-1] * most[0] < 2**62 else np.object_


NOTHING = (0, 0, 0, 0)  # bytes or time, output that is (not) split, bytes of conversions, rank of the dimension


class InterChip(Struct, frozen=True):
    """A sharding and the bytes that it moves between chips."""

    sharding: dict[int, Dim]  # by kernel id
    communication_bytes: float


class SplitTimes(Struct, frozen=True):
    """What a sharding costs in time, in ns: the objective of a time-aware sharding.

    Attributes:
        kernels: of each kernel by id and split dimension: its compute and its all-reduce.
        edges: of a layout change behind each kernel, by id and split dimension, for each collective.
    """

    kernels: Mapping[tuple[int, Dim], float]
    edges: Mapping[tuple[int, Dim, Collective], float]


def shard(
    design: Design,
    pinned: Mapping[int, Dim] | None = None,
    times: SplitTimes | None = None,
    compatibility: Compatibility = RIGHT,
) -> InterChip:
    """Choose the sharding that moves the fewest bytes between chips, or takes the least time if ``times`` are given.

    A kernel that is split along k all-reduces its output, one that reduces along its split dimension its statistics; an
    edge whose ends disagree on the layout converts it. Ties
    go to splitting as many bytes of output as possible, then to an all-reduce in a kernel before a conversion behind
    it, then to rows before columns. Of the original they go to splitting
    as little as possible instead.

    Raises:
        InfeasibleError: the pinned shardings contradict what a kernel allows.
        UserError: the graph is too wide.
    """
    problem = _ShardingProblem(design, pinned or {}, times, compatibility)
    sharding = least_labels(problem.labelling)
    return InterChip(sharding, problem.moved_bytes(sharding))


_PREFERRED = (Dim.OUTER, Dim.M, Dim.N, Dim.K, Dim.NONE)
PARTS = 2**30  # of the largest time: times are compared as whole numbers of such parts


class _ShardingProblem:
    """The aims of a sharding as costs of labels: split dimensions of kernels, and pairs of them along edges."""

    def __init__(
        self, design: Design, pinned: Mapping[int, Dim], times: SplitTimes | None, compatibility: Compatibility
    ) -> None:
        kernels = design.kernels
        edges = design.edges if compatibility.layouts_by_letter else (*design.edges, *shares.layer_edges(design))
        self._kernels = {kernel.id: kernel for kernel in kernels}
        self._times = times
        self._compatibility = compatibility
        self._word_bytes = design.execution.word_bytes
        self._choice = {kernel.id: _choice(kernel, pinned.get(kernel.id)) for kernel in kernels}
        self._largest_ns = max([*times.kernels.values(), *times.edges.values(), 0.0]) or 1.0 if times else 1.0
        between: dict[tuple[int, int], dict[tuple[Dim, Dim], Levels]] = {}
        for edge, needs in zip(edges, shares.needs_of(kernels, edges, compatibility), strict=True):
            costs = between.setdefault((edge.source, edge.target), {})
            for pair, cost in self._pairs(edge, needs).items():
                costs[pair] = tuple(map(sum, zip(cost, costs.get(pair, NOTHING), strict=True)))
        alone = {(number, dim): self._alone(number, dim) for number, dims in self._choice.items() for dim in dims}
        self.labelling = Labelling(self._choice, alone, between, len(NOTHING))

    def moved_bytes(self, sharding: Mapping[int, Dim]) -> float:
        """Return the bytes that a sharding moves."""
        reduced = sum(self._reduced_bytes(number, dim) for number, dim in sharding.items())
        pairs = self.labelling.between.items()
        converted = sum(costs.get((sharding[one], sharding[other]), NOTHING)[2] for (one, other), costs in pairs)
        return float(reduced + converted)

    def _alone(self, number: int, dim: Dim) -> Levels:
        kernel, choice = self._kernels[number], self._choice[number]
        aim = self._reduced_bytes(number, dim)
        if self._times is not None:
            aim = self._parts(self._times.kernels.get((number, dim), 0.0))
        is_worse = Dim.NONE in choice and (dim is Dim.NONE) is not self._compatibility.sharding_ties_whole
        return aim, is_worse * round(kernel.output_bytes), 0, _PREFERRED.index(dim)

    def _reduced_bytes(self, number: int, dim: Dim) -> int:
        kernel = self._kernels[number]
        is_reduced = dim is Dim.K and kernel.collective in (Collective.NONE, Collective.ALL_REDUCE)
        moved = round(kernel.output_bytes) if is_reduced else 0
        if not self._compatibility.layouts_by_letter:
            moved += shares.exchanged_statistics(kernel, dim, kernel.outer * kernel.m, kernel.n) * self._word_bytes
        return moved

    def _pairs(self, edge: DesignEdge, needs: shares.Needs) -> dict[tuple[Dim, Dim], Levels]:
        """Return what an edge costs for each split of its ends that needs a change of layout."""
        size = self._kernels[edge.source].output_bytes
        found: dict[tuple[Dim, Dim], Levels] = {}
        for given in self._choice[edge.source]:
            for taken in self._choice[edge.target]:
                change = shares.conversion(shares.given_layout(given), needs[taken])
                if change is Collective.NONE:
                    continue
                aim = round(size)
                if self._times is not None:
                    aim = self._parts(self._times.edges.get((edge.source, given, change), 0.0))
                found[given, taken] = (aim, 0, round(size), 0)
        return found

    def _parts(self, time_ns: float) -> int:
        return round(time_ns / self._largest_ns * PARTS)


def _choice(kernel: DesignKernel, pinned: Dim | None) -> tuple[Dim, ...]:
    allowed = allowed_dims(kernel)
    if pinned is not None and pinned not in allowed:
        raise InfeasibleError(f"kernel {kernel.name!r}: sharding {pinned} against one of {', '.join(allowed)}")
    return allowed if pinned is None else (pinned,)


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


def candidate_shardings(
    design: Design, objective: ShardingObjective, compatibility: Compatibility
) -> tuple[InterChip, ...]:
    """Return the shardings to try, that of fewest bytes first; one alone if that is what is asked for.

    How long a configuration takes depends on all of its kernels, which are chosen later: compute, memory and network
    overlap, and what stays inside is not moved. Sums over kernels are what a sharding can be found for: the sum of
    compute and exchange, as if all tensors stayed on the chip; and that sum with all tensors moved, which is the time
    itself where each kernel is a configuration of its own and nothing overlaps.

    Raises:
        InfeasibleError: the pinned shardings contradict what a kernel allows.
    """
    if not design.shards_kernels:
        return (InterChip({kernel.id: kernel.pinned_sharding or Dim.NONE for kernel in design.kernels}, 0.0),)
    pinned = {kernel.id: kernel.pinned_sharding for kernel in design.kernels if kernel.pinned_sharding is not None}
    found = [shard(design, pinned, None, compatibility)]
    if objective is ShardingObjective.TIME:
        # In micro-batches of one input, so that degrees and network alone tell shardings apart.
        batch = replace(design.execution.batch, micro_batch=1)
        model = DesignModel(replace(design, execution=replace(design.execution, batch=batch)), {}, 1, compatibility)
        found += [shard(design, pinned, split_times(model, memory=memory), compatibility) for memory in (False, True)]
    return tuple({tuple(one.sharding.items()): one for one in reversed(found)}.values())[::-1]


def split_times(model: DesignModel, *, memory: bool) -> SplitTimes:
    """Return what each split of each kernel costs on the chips of a model; its own sharding plays no part.

    Args:
        model: of the design.
        memory: whether weights and all tensors, written by one kernel and read by others, are moved as well.
    """
    design, counted = model.design, model.design.execution.counted
    readers = Counter(edge.source for edge in design.edges if not edge.zero_out)
    kernels: dict[tuple[int, Dim], float] = {}
    edges: dict[tuple[int, Dim, Collective], float] = {}
    for dim in Dim:
        sharding = {kernel.id: dim for kernel in design.kernels if dim in allowed_dims(kernel)}
        split = DesignModel(design, sharding, model.tiles, model.compatibility)
        for position, share in enumerate(split.shares):
            if share.kernel.id not in sharding:
                continue
            reduced = sum(size for collective, size in share.exchange if collective is Collective.ALL_REDUCE)
            taken_ns = float(split.least_parts[position, 0])
            if "N" in counted:
                taken_ns += model.tiles * reduced * model.network.ratio_ns_per_byte(Collective.ALL_REDUCE)
                taken_ns += (reduced > 0) * model.network.latency_ns(Collective.ALL_REDUCE)
            if memory and "M" in counted:
                streamed = 2 * split.tiles * readers[share.kernel.id] * share.output_bytes
                taken_ns += (float(split.held.moved[position]) + streamed) / design.machine.dram_gb_per_s
            kernels[share.kernel.id, dim] = taken_ns
            whole_bytes = share.output_bytes * split.chips_of_output(share)
            for change in (Collective.ALL_GATHER, Collective.ALL_TO_ALL):
                moved_ns = split.tiles * whole_bytes * model.network.ratio_ns_per_byte(change)
                edges[share.kernel.id, dim, change] = (moved_ns + model.network.latency_ns(change)) * ("N" in counted)
    return SplitTimes(kernels, edges)
