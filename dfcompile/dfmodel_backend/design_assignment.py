"""Fusion of a design as an assignment of kernels to configurations, solved as a MILP: needs no list of down-sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dfcompile.dfmodel_backend.design_memory import kept_bytes
from dfcompile.dfmodel_backend.design_model import DesignModel, Members
from dfcompile.dfmodel_backend.fusion_arcs import allowed_kernels
from dfcompile.dfmodel_backend.intra_chip import Fused, is_kernel_by_kernel, most_waiting
from dfcompile.dfmodel_backend.milp import Outcome, is_one, solve
from dfcompile.dfmodel_backend.network_time import Column
from dfcompile.dfmodel_backend.options import MappingOptions, Overlap
from dfcompile.dfmodel_backend.pipeline import dense
from dfcompile.dfmodel_backend.pipeline_bound import sends_ns
from dfcompile.dfmodel_backend.weight_tiling import fewest_weight_tiles

if TYPE_CHECKING:
    import pulp

Terms = list[tuple["pulp.LpVariable", float]]


def fuse_design_by_assignment(model: DesignModel, options: MappingOptions) -> Fused | None:
    """Return the fastest assignment, of all layers' graph that with the fastest slowest stage, or None.

    Raises:
        InternalError: the solver failed.
    """
    return _Builder(model).finish(options)


class _Builder:
    """Builds and solves the model.

    ``at[k][c]`` is 1 if kernel k is in configuration c, ``both[e][c]`` if both ends of edge e are. What crosses the
    border of c is then ``at[source] + at[target] - 2 both``. ``by[k][c]``, the sum of ``at`` up to c, is at most that
    of each predecessor: edges never run backwards. Configurations of pipeline stages follow each other. Times are in
    units of the lower bound, SRAM in units of the capacity.
    """

    def __init__(self, model: DesignModel) -> None:
        import pulp

        self._pulp = pulp
        self._model = model
        self._kernels = range(len(model.shares))
        self._is_pipelined = model.design.execution.batch.layers_in_graph > 1
        self._by_kernel = self._is_pipelined and is_kernel_by_kernel(model.design)
        masks = allowed_kernels(model.design)
        if self._by_kernel:
            masks = masks[:1] * len(self._kernels)
        self._stages = [
            range(stage * len(masks), (stage + 1) * len(masks))
            for stage in range(model.degrees.pipeline if self._is_pipelined else 1)
        ]
        masks *= len(self._stages)
        self._slots = range(len(masks))
        self._inputs = [share.kernel.num_input for share in model.shares]
        self._tiles = [1 if count else model.tiles for count in self._inputs]  # of the configurations of each kernel
        self._unit_ns = model.least_ns() or 1.0
        self._problem = pulp.LpProblem("design_assignment", pulp.LpMinimize)
        self._at = [
            [self._problem.add_variable(f"at_{k}_{c}", 0, masks[c] >> k & 1, "Integer") for c in self._slots]
            for k in self._kernels
        ]
        self._by = [[pulp.lpSum(self._at[k][: c + 1]) for c in self._slots] for k in self._kernels]
        self._both = [[self._edge_inside(number, c) for c in self._slots] for number in range(len(model.edges))]
        self._alone: list[list[tuple[pulp.LpVariable, float, float]]] = [[] for _ in self._slots]
        self._most = self._most_time()

    def finish(self, options: MappingOptions) -> Fused | None:
        self._order_kernels()
        self._add_weight_tiles()
        self._limit_sram()
        self._limit_dram()
        self._separate_inputs()
        times = [self._time(c) for c in self._slots]
        self._problem.setObjective(self._slowest(times) if self._is_pipelined else self._pulp.lpSum(times))
        if solve(self._problem, options) not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
            return None
        place = [next(c for c in self._slots if is_one(self._at[k][c])) for k in self._kernels]
        return self._fused_stages(place) if self._is_pipelined else self._fused(place)

    def _fused(self, place: list[int]) -> Fused:
        members = np.array(place)[None, :] == np.arange(len(self._slots))[:, None]
        return Fused(self._configs(place), float(self._times_ns(members).sum()))

    def _fused_stages(self, place: list[int]) -> Fused:
        """Return the assignment with its stages; configurations and stages are numbered without gaps."""
        used = sorted(set(place))
        stages = [next(number for number, slots in enumerate(self._stages) if c in slots) for c in used]
        members = np.array(place)[None, :] == np.array(used)[:, None]
        times = self._times_ns(members)
        slowest = 0.0
        for stage in stages:
            last = max(c for c, one in zip(used, stages, strict=True) if one == stage)
            sent = sends_ns(self._model, np.array(place)[None, :] <= last)
            inside = [time_ns for time_ns, one in zip(times, stages, strict=True) if one == stage]
            slowest = max(slowest, float(sum(inside) + sent[0]))
        configs = self._configs([used.index(c) for c in place])
        return Fused(configs, slowest, tuple(dense(stages)))

    def _configs(self, place: list[int]) -> dict[int, int]:
        return {share.kernel.id: place[k] for k, share in enumerate(self._model.shares)}

    def _times_ns(self, members: Members) -> Column:
        tiles = np.array([fewest_weight_tiles(self._model, row) or 1 for row in members], np.int64)
        return self._model.steps(members, tiles).time_ns

    def _slowest(self, times: list[pulp.LpVariable]) -> pulp.LpVariable:
        """Return a variable above the time of each stage, with what it sends on."""
        slowest = self._problem.add_variable("slowest", 0)
        link = self._model.degrees.pipeline_link
        for slots in self._stages:
            done = [by[slots[-1]] for by in self._by]
            unit = (link.gb_per_s if link else math.inf) * self._unit_ns / self._model.tiles
            sent = [
                (done[edge.source] - done[edge.target]) * (edge.size_bytes / unit) for edge in self._model.edges
            ]  # fmt: skip
            self._problem += slowest >= self._pulp.lpSum([*(times[c] for c in slots), *sent])
        return slowest

    def _separate_inputs(self) -> None:
        """Kernels with several inputs are not with others."""
        if not any(self._inputs) or all(self._inputs):
            return
        for c in self._slots:
            several = self._problem.add_variable(f"several_{c}", cat="Binary")
            for k in self._kernels:
                self._problem += self._at[k][c] <= (several if self._inputs[k] else 1 - several)

    def _edge_inside(self, number: int, c: int) -> pulp.LpVariable:
        edge = self._model.edges[number]
        both = self._problem.add_variable(f"both_{number}_{c}", 0, 1)
        self._problem += both <= self._at[edge.source][c]
        self._problem += both <= self._at[edge.target][c]
        self._problem += both >= self._at[edge.source][c] + self._at[edge.target][c] - 1
        return both

    def _order_kernels(self) -> None:
        cores = self._model.design.machine.cores
        for k in self._kernels:
            self._problem += self._pulp.lpSum(self._at[k]) == 1
        for edge in self._model.edges:
            for c in self._slots[:-1]:
                self._problem += self._by[edge.target][c] <= self._by[edge.source][c]
        for c in self._slots:
            self._problem += self._pulp.lpSum(self._at[k][c] for k in self._kernels) <= (
                1 if self._by_kernel else cores
            )

    def _add_weight_tiles(self) -> None:
        """A kernel whose weights do not fit whole may be alone and load them in tiles: more traffic, less SRAM."""
        for k in self._kernels if self._model.sram_capacity else ():
            row = np.arange(len(self._kernels)) == k
            tiles = fewest_weight_tiles(self._model, row)
            if tiles is None or tiles == 1:
                continue
            parts = np.array([tiles], np.int64)
            saved = self._model.sram_bytes(row[None, :]) - self._model.sram_bytes(row[None, :], parts)
            extra = self._model.steps(row[None, :], parts).dram_bytes - self._model.steps(row[None, :]).dram_bytes
            for c in self._slots:
                alone = self._problem.add_variable(f"alone_{k}_{c}", cat="Binary")
                self._problem += alone <= self._at[k][c]
                for other in self._kernels:
                    if other != k:
                        self._problem += self._at[other][c] + alone <= 1
                self._alone[c].append((alone, float(saved[0]), float(extra[0])))

    def _limit_sram(self) -> None:
        capacity = self._model.sram_capacity
        for c in self._slots if capacity else ():
            size, depth = self._model.sram_sizes
            fixed = self._model.held_bytes + self._model.sram_extra_bytes
            terms = [(self._at[k][c], fixed[k] / capacity) for k in self._kernels]
            for number, edge in enumerate(self._model.edges):
                terms.append((self._at[edge.source][c], 2 * size[number] / capacity))
                terms.append((self._at[edge.target][c], 2 * size[number] / capacity))
                terms.append((self._both[number][c], (depth[number] - 4) * size[number] / capacity))
            terms += [(alone, -saved / capacity) for alone, saved, _ in self._alone[c]]
            self._problem += self._pulp.LpAffineExpression(_summed(terms)) <= 1 + 1e-9

    def _limit_dram(self) -> None:
        """What a stage keeps and what waits; while kernels with several inputs run, one tile does."""
        capacity = self._model.design.machine.dram_bytes
        kept = kept_bytes(self._model) if capacity else np.zeros(len(self._kernels))
        if not capacity or capacity >= kept.sum() + most_waiting(self._model):
            return
        micro_batch = max(1, self._model.design.execution.batch.micro_batch)
        for slots in self._stages:
            keeps = [(self._at[k][c], kept[k] / capacity) for k in self._kernels for c in slots if kept[k]]
            for c in slots:
                waits = self._waiting(c, micro_batch / capacity)
                for tiles in sorted(set(self._tiles)):
                    terms = self._pulp.LpAffineExpression(
                        keeps + [(live, size * tiles) for live, size in waits]
                    )  # fmt: skip
                    if tiles == min(self._tiles):
                        self._problem += terms <= 1 + 1e-9
                        continue
                    # Of a configuration of kernels without several inputs all tiles wait.
                    most = sum(size * tiles for _, size in waits)
                    for k in self._kernels:
                        if self._tiles[k] == tiles:
                            self._problem += terms <= 1 + 1e-9 + most * (1 - self._at[k][c])

    def _waiting(self, c: int, unit: float) -> Terms:
        """Return what may wait while configuration c runs, with the size of a tile."""
        terms = []
        for number, edge in enumerate(self._model.edges):
            live = self._problem.add_variable(f"live_{number}_{c}", 0, 1)
            read = self._by[edge.target][c - 1] if c else 0
            self._problem += live >= self._by[edge.source][c] - read - self._both[number][c]
            terms.append((live, edge.size_bytes * unit))
        return terms

    def _most_time(self) -> float:
        """Return a time that no configuration exceeds, whatever is in it and however its weights are tiled."""
        if not any(count > 1 for count in self._inputs):
            return 0.0
        model, cores = self._model, self._model.design.machine.cores
        alone = np.eye(len(self._kernels), dtype=bool)
        steps = model.steps(alone, np.array([max(1, share.rows) for share in model.shares], np.int64))
        total = float(
            steps.compute_ns.sum() * cores + steps.memory_ns.sum() + sum(p.sum() for p in model.network_parts())
        )
        return total / self._unit_ns

    def _time(self, c: int) -> pulp.LpVariable:
        """Return a variable above the time of configuration c."""
        counted = self._model.design.execution.counted
        time = self._problem.add_variable(f"time_{c}", 0)
        parts = {"C": self._compute(c), "M": self._memory(c), "N": self._network(c)}
        compute, memory, network = (parts[kind] if kind in counted else 0 for kind in "CMN")
        sums = {
            Overlap.NO_OVERLAP: (compute + memory + network,),
            Overlap.PERFECT_OVERLAP: (compute, memory, network),
            Overlap.OVERLAP_COMPUTE_MEMORY: (compute + network, memory + network),
        }[self._model.design.execution.overlap]
        for taken in sums:
            self._problem += time >= taken
        for inputs in sorted({count for count in self._inputs if count > 1}):
            # As often as the kernel with the most inputs says; a kernel that is elsewhere says nothing.
            repeats = self._problem.add_variable(f"repeats_{inputs}_{c}", 0, 1)
            for k in self._kernels:
                if self._inputs[k] == inputs:
                    self._problem += repeats >= self._at[k][c]
            for taken in sums:
                self._problem += time >= inputs * taken - inputs * self._most * (1 - repeats)
        return time

    def _compute(self, c: int) -> pulp.LpVariable:
        compute = self._problem.add_variable(f"compute_{c}", 0)
        execution, machine = self._model.design.execution, self._model.design.machine
        if execution.compute_utilization > 0:
            unit = execution.compute_utilization * machine.peak_gflops * self._unit_ns
            terms = [(self._at[k][c], self._tiles[k] * self._model.shares[k].flop / unit) for k in self._kernels]
            self._problem += compute >= self._pulp.LpAffineExpression(terms)
            return compute
        used, areas = [], []
        for k, table in enumerate(self._model.tables):
            unit = machine.frequency_ghz * self._unit_ns / self._tiles[k]
            rows = [
                self._problem.add_variable(f"split_{k}_{c}_{row}", cat="Binary") for row in range(len(table.cycles))
            ]
            self._problem += self._pulp.lpSum(rows) == self._at[k][c]
            used += list(zip(rows, table.cores, strict=True))
            terms = [(variable, cycles / unit) for variable, cycles in zip(rows, table.cycles, strict=True)]
            self._problem += compute >= self._pulp.LpAffineExpression(terms)
            areas.append((self._at[k][c], table.least_area / (machine.cores * unit)))
        self._problem += self._pulp.LpAffineExpression(used) <= machine.cores
        # Not needed for the model but for its relaxation: a configuration takes at least its area over all cores.
        self._problem += compute >= self._pulp.LpAffineExpression(areas)
        return compute

    def _memory(self, c: int) -> pulp.LpAffineExpression:
        unit = self._model.design.machine.dram_gb_per_s * self._unit_ns
        extra = self._model.extra_bytes
        terms = [(self._at[k][c], extra[k] / unit) for k in self._kernels]
        for number, edge in enumerate(self._model.edges):
            size = edge.size_bytes / unit
            terms += [(self._at[k][c], self._tiles[k] * size) for k in (edge.source, edge.target)]
            terms.append((self._both[number][c], -2 * self._tiles[edge.source] * size))
        terms += [(alone, added / unit) for alone, _, added in self._alone[c]]
        return self._pulp.LpAffineExpression(_summed(terms))

    def _network(self, c: int) -> pulp.LpVariable:
        network = self._problem.add_variable(f"network_{c}", 0)
        for column in self._model.network_parts():
            terms = [(self._at[k][c], column[k] / self._unit_ns) for k in self._kernels]
            self._problem += network >= self._pulp.LpAffineExpression(terms)
        return network


def _summed(terms: Terms) -> Terms:
    """Add up the factors of each variable: an expression made of pairs keeps the last one only."""
    total: dict[str, tuple[pulp.LpVariable, float]] = {}
    for variable, factor in terms:
        old = total.get(variable.name)
        total[variable.name] = (variable, factor + (old[1] if old else 0.0))
    return list(total.values())
