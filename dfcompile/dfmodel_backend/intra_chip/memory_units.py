"""Cores and memory units (PMUs) of sets of kernels as configurations: limits of tensors, least cycles, fewest units."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import assert_never

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import KernelVariant
from dfcompile.dfmodel_backend.columns import Column, Members
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.inter_chip.shares import EdgeShare, Share
from dfcompile.dfmodel_backend.intra_chip.cores import CoreSplit, SplitTable, least_enough
from dfcompile.dfmodel_backend.intra_chip.unit_walk import Choice, Stop, Walk
from dfcompile.dfmodel_backend.machine.system import LaneStage, PmuGrid
from dfcompile.dfmodel_backend.workload.design import Design


def labels_of(design: Design) -> tuple[LaneStage, ...]:
    """Return how the reader of each edge spreads it over its cores; the design may say so itself.

    The input of a product with a weight goes to stages; of a product of two inputs the first one goes to lanes, the
    second one to stages; inputs of elementwise kernels go to lanes [ko24].
    """
    variants = {kernel.id: kernel.variant for kernel in design.kernels}
    served: dict[int, None] = {}
    labels = []
    for edge in design.edges:
        label = _label(variants[edge.target], is_first=edge.target not in served)
        served[edge.target] = None
        labels.append(edge.label or label)
    return tuple(labels)


def _label(variant: KernelVariant, *, is_first: bool) -> LaneStage:
    """Return how a kernel spreads the tensor that comes in over its first connection, or over another one."""
    match variant:
        case KernelVariant.GEMM_INPUT1_WEIGHT:
            return LaneStage.STAGE
        case KernelVariant.GEMM_INPUT1_INPUT2:
            return LaneStage.LANE if is_first else LaneStage.STAGE
        case KernelVariant.ELEMENTWISE_INPUT1 | KernelVariant.ELEMENTWISE_INPUT1_INPUT2:
            return LaneStage.LANE
    assert_never(variant)


ONE = CoreSplit(1, 1)


class Allocation(Struct, frozen=True):
    """Cores and PMUs of one configuration; kernels and edges by position.

    Attributes:
        splits: cores of each kernel.
        edges: PMUs of each tensor that is in the configuration, at its border or inside.
        weights: PMUs of the weights of each kernel that holds some.
        extras: PMUs of what the design adds to each kernel's configuration.
        cycles: of the slowest kernel, for one tile.
    """

    splits: dict[int, CoreSplit]
    edges: dict[int, int]
    weights: dict[int, int]
    extras: dict[int, int]
    cycles: int

    @property
    def cores(self) -> int:
        """Cores of all kernels."""
        return sum(split.cores for split in self.splits.values())

    @property
    def pmus(self) -> int:
        """PMUs of all tensors."""
        return sum(self.edges.values()) + sum(self.weights.values()) + sum(self.extras.values())


class PmuModel:
    """Sets of kernels with the limits of the chip; kernels and edges are numbered by position.

    A tensor takes the largest of the lower limits of its PMUs. Of its two ends only those in the configuration count.
    """

    def __init__(
        self,
        design: Design,
        grid: PmuGrid,
        shares: tuple[Share, ...],
        edges: tuple[EdgeShare, ...],
        sizes: tuple[Column, Column],
        compatibility: Compatibility,
    ) -> None:
        self.labels = labels_of(design)
        self.pmus = grid.pmus
        self._machine = design.machine
        self._shares, self._edges = shares, edges
        self._unit = grid.pmu_bytes
        self._size, self._depth = ([float(value) for value in column] for column in sizes)
        self._counts_skipped = compatibility.skipped_weights_take_pmus
        self._counts_extra = not compatibility.sram_extra_takes_no_pmus
        known = {share.work.shape: SplitTable(share.work, design.machine) for share in shares}
        self.tables = [known[share.work.shape] for share in shares]
        levels = design.levels
        self._order = sorted(range(len(shares)), key=lambda kernel: (levels[kernel], kernel))
        self._touching: list[list[int]] = [[] for _ in shares]
        for number, edge in enumerate(edges):
            self._touching[edge.source].append(number)
            self._touching[edge.target].append(number)
        self._known: dict[tuple[tuple[int, ...], int], int | None] = {}

    def order(self, inside: Sequence[int]) -> tuple[int, ...]:
        """Return the kernels of a set in topological order."""
        chosen = set(inside)
        return tuple(kernel for kernel in self._order if kernel in chosen)

    def _crossing(self, edge: int, parts: int = 1) -> int:
        """Return the PMUs for two tiles of a tensor between the chip and DRAM, of which a part is there at a time."""
        return math.ceil(2 * self._size[edge] / (parts * self._unit))

    def _inside(self, edge: int) -> int:
        """Return the PMUs for as many tiles of a tensor as are in flight between two kernels on the chip."""
        return math.ceil(self._depth[edge] * self._size[edge] / self._unit)

    def _weight(self, kernel: int, split: CoreSplit, parts: int = 1) -> int:
        """Return the PMUs for a part of the weights of a kernel, 0 if it holds none: cores load from one per lane."""
        share = self._shares[kernel]
        if not share.kernel.has_weight or (share.kernel.skip_weight and not self._counts_skipped):
            return 0
        return max(math.ceil(share.weight_bytes / (parts * self._unit)), split.lanes)

    def _added(self, kernel: int) -> int:
        """Return the PMUs for what the design adds to the SRAM of a kernel's configuration."""
        return math.ceil(self._shares[kernel].kernel.sram_extra_bytes / self._unit) if self._counts_extra else 0

    def _given(self, kernel: int, split: CoreSplit) -> int:
        """Return the PMUs that take what the cores of a kernel put out.

        A product puts out ``lanes x stages`` blocks once per ``k`` steps, in rows as wide as a PMU.
        """
        share = self._shares[kernel]
        if not share.kernel.variant.is_gemm:
            return split.lanes
        return -(-split.cores * self._machine.stages_per_core // share.work.k)

    def _taken(self, edge: int, split: CoreSplit) -> int:
        """Return the PMUs that feed the cores of the kernel that reads a tensor: one per lane, or as wide as stages."""
        wide = -(-split.stages * self._machine.stages_per_core // self._machine.lanes_per_core)
        return {LaneStage.LANE: split.lanes, LaneStage.STAGE: wide}[self.labels[edge]]

    def _tensor(self, number: int, writer: CoreSplit | None, reader: CoreSplit | None, parts: int = 1) -> int:
        """Return the PMUs of a tensor, given the splits of those of its two kernels that are in the configuration."""
        whole = self._inside(number) if writer and reader else self._crossing(number, parts if writer else 1)
        given = self._given(self._edges[number].source, writer) if writer else 0
        return max(whole, given, self._taken(number, reader) if reader else 0)

    @cached_property
    def _least_by_edge(self) -> tuple[Column, Column, Column]:
        """Fewest PMUs of each edge inside, where only its source is, and where only its target is."""
        inside, leaving, entering = (
            np.array([self._tensor(number, writer, reader) for number in range(len(self._edges))], float)
            for writer, reader in ((ONE, ONE), (ONE, None), (None, ONE))
        )
        return inside, leaving, entering

    @cached_property
    def _least_own(self) -> Column:
        """Fewest PMUs of each kernel for its weights, and for what the design adds."""
        return np.array([self._weight(one, ONE) + self._added(one) for one in range(len(self.tables))], float)

    @cached_property
    def held_pmus(self) -> Column:
        """PMUs that each kernel adds to any configuration: weights, what the design adds, and tensors it writes.

        They add up over any set: a tensor counts with its writer alone.
        """
        held = self._least_own.copy()
        inside, leaving, _ = self._least_by_edge
        for number, edge in enumerate(self._edges):
            held[edge.source] += min(inside[number], leaving[number])
        return held

    def least_pmus(self, members: Members) -> Column:
        """Return the fewest PMUs of sets, ``[set, kernel]``: one core per kernel, weights whole."""
        source = np.array([edge.source for edge in self._edges], np.intp)
        starts, ends = members[:, source], members[:, np.array([edge.target for edge in self._edges], np.intp)]
        inside, leaving, entering = self._least_by_edge
        return np.asarray(
            (starts & ends).astype(float) @ inside
            + (starts & ~ends).astype(float) @ leaving
            + (ends & ~starts).astype(float) @ entering
            + members.astype(float) @ self._least_own
        )

    def least_pmus_alone(self, kernel: int, parts: int) -> int:
        """Return the fewest PMUs of a kernel alone that loads its weights in so many parts."""
        return self.count({kernel: ONE}, parts).pmus

    def least_cycles(self, inside: Sequence[int], parts: int = 1, at_least: int = 0) -> int | None:
        """Return the cycles of the slowest kernel if cores and PMUs are split best; None if they do not suffice.

        Args:
            inside: positions of the kernels.
            parts: in which the weights are loaded; above 1 of one kernel alone.
            at_least: a bound that is known.
        """
        key = (tuple(inside), parts)
        if key in self._known:
            return self._known[key]
        tables = [self.tables[kernel] for kernel in inside]
        self._known[key] = None
        if self.is_possible(inside, parts, max((table.cycles[-1] for table in tables), default=0)):
            least = max([at_least, *(table.cycles[0] for table in tables)])
            times = sorted({time for table in tables for time in table.cycles if time >= least} or {0})
            # The longest of them is possible.
            found = least_enough(len(times) - 1, lambda number: self.is_possible(inside, parts, times[number]))
            self._known[key] = times[found]
        return self._known[key]

    def allocation(self, inside: Sequence[int], parts: int, cycles: int) -> Allocation | None:
        """Return the fewest cores and PMUs, together, with which no kernel takes more than so many cycles.

        None if there are too few of them.
        """
        walk = self._walk(inside, parts, cycles)
        splits = None if walk is None else walk.fewest_units()
        return None if splits is None else self.count(dict(zip(self.order(inside), splits, strict=True)), parts)

    def count(self, splits: Mapping[int, CoreSplit], parts: int) -> Allocation:
        """Return what a configuration takes with a given split of each of its kernels."""
        ordered = sorted(splits)
        ends = ((splits.get(edge.source), splits.get(edge.target)) for edge in self._edges)
        return Allocation(
            splits={kernel: splits[kernel] for kernel in ordered},
            edges={number: self._tensor(number, *both, parts) for number, both in enumerate(ends) if any(both)},
            weights={one: size for one in ordered if (size := self._weight(one, splits[one], parts))},
            extras={one: size for one in ordered if (size := self._added(one))},
            cycles=max((self.tables[kernel].cycles_of(split) for kernel, split in splits.items()), default=0),
        )

    def is_possible(self, inside: Sequence[int], parts: int, cycles: int) -> bool:
        """Return whether there are enough cores and PMUs for no kernel to take more than so many cycles."""
        walk = self._walk(inside, parts, cycles)
        return walk is not None and walk.is_possible()

    def _walk(self, inside: Sequence[int], parts: int, cycles: int) -> Walk | None:
        """Return the walk through kernels, with the least splits of at most so many cycles; None if one has none."""
        splits = {kernel: self.tables[kernel].least(cycles) for kernel in self.order(inside)}
        if not all(splits.values()):
            return None
        number_of = {kernel: number for number, kernel in enumerate(splits)}
        stops = [self._stop(kernel, of_kernel, number_of, parts) for kernel, of_kernel in splits.items()]
        return Walk(stops, self._machine.cores, self.pmus)

    def _stop(self, kernel: int, splits: Sequence[CoreSplit], number_of: Mapping[int, int], parts: int) -> Stop:
        """Return a kernel with some splits on a walk of numbered kernels: what it reads of them, enters and leaves."""
        touching = [(number, self._edges[number]) for number in self._touching[kernel]]
        reads = [(one, edge.source) for one, edge in touching if edge.target == kernel and edge.source in number_of]
        entering = [one for one, edge in touching if edge.target == kernel and edge.source not in number_of]
        leaving = [one for one, edge in touching if edge.source == kernel and edge.target not in number_of]
        choices = []
        for split in splits:
            own = self._added(kernel) + self._weight(kernel, split, parts)
            own += sum(self._tensor(number, split, None, parts) for number in leaving)
            own += sum(self._tensor(number, None, split) for number in entering)
            taken = tuple(self._taken(number, split) for number, _ in reads)
            choices.append(Choice(split, own, self._given(kernel, split), taken))
        return Stop(tuple(choices), tuple((number_of[source], self._inside(number)) for number, source in reads))
