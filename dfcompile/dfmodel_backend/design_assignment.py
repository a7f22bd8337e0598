"""Fusion of a design as an assignment of kernels to configurations, solved as a MILP: needs no list of down-sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dfcompile.dfmodel_backend.design_model import DesignModel
from dfcompile.dfmodel_backend.fusion_arcs import allowed_kernels
from dfcompile.dfmodel_backend.intra_chip import Fused, dram_room, most_waiting
from dfcompile.dfmodel_backend.milp import Outcome, is_one, solve
from dfcompile.dfmodel_backend.options import MappingOptions, Overlap
from dfcompile.dfmodel_backend.weight_tiling import fewest_weight_tiles

if TYPE_CHECKING:
    import pulp

Terms = list[tuple["pulp.LpVariable", float]]


def fuse_design_by_assignment(model: DesignModel, options: MappingOptions) -> Fused | None:
    """Return the fastest assignment, or None if there is none; of kernels without ``num_input``.

    Raises:
        InternalError: the solver failed.
    """
    return _Builder(model).finish(options)


class _Builder:
    """Builds and solves the model.

    ``at[k][c]`` is 1 if kernel k is in configuration c, ``both[e][c]`` if both ends of edge e are. What crosses the
    border of c is then ``at[source] + at[target] - 2 both``. ``by[k][c]``, the sum of ``at`` up to c, is at most that
    of each predecessor: edges never run backwards. Times are in units of the lower bound, SRAM in
    units of the capacity.
    """

    def __init__(self, model: DesignModel) -> None:
        import pulp

        self._pulp = pulp
        self._model = model
        self._slots = range(len(allowed_kernels(model.design)))
        self._kernels = range(len(model.shares))
        self._unit_ns = model.least_ns() or 1.0
        self._problem = pulp.LpProblem("design_assignment", pulp.LpMinimize)
        masks = allowed_kernels(model.design)
        self._at = [
            [self._problem.add_variable(f"at_{k}_{c}", 0, masks[c] >> k & 1, "Integer") for c in self._slots]
            for k in self._kernels
        ]
        self._by = [[pulp.lpSum(self._at[k][: c + 1]) for c in self._slots] for k in self._kernels]
        self._both = [[self._edge_inside(number, c) for c in self._slots] for number in range(len(model.edges))]
        self._alone: list[list[tuple[pulp.LpVariable, float, float]]] = [[] for _ in self._slots]

    def finish(self, options: MappingOptions) -> Fused | None:
        self._order_kernels()
        self._add_weight_tiles()
        self._limit_sram()
        self._limit_dram()
        self._problem.setObjective(self._pulp.lpSum(self._time(c) for c in self._slots))
        if solve(self._problem, options) not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
            return None
        place = [next(c for c in self._slots if is_one(self._at[k][c])) for k in self._kernels]
        members = np.array(place)[None, :] == np.arange(len(self._slots))[:, None]
        tiles = np.array([fewest_weight_tiles(self._model, row) or 1 for row in members], np.int64)
        time_ns = float(self._model.steps(members, tiles).time_ns.sum())
        return Fused({share.kernel.id: place[k] for k, share in enumerate(self._model.shares)}, time_ns)

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
            self._problem += self._pulp.lpSum(self._at[k][c] for k in self._kernels) <= cores

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
        room = dram_room(self._model)
        if room >= most_waiting(self._model):
            return
        factor = self._model.tiles * max(1, self._model.design.execution.batch.micro_batch)
        for c in self._slots:
            terms = []
            for number, edge in enumerate(self._model.edges):
                live = self._problem.add_variable(f"live_{number}_{c}", 0, 1)
                read = self._by[edge.target][c - 1] if c else 0
                self._problem += live >= self._by[edge.source][c] - read - self._both[number][c]
                terms.append((live, edge.size_bytes * factor / max(room, 1.0)))
            self._problem += self._pulp.LpAffineExpression(terms) <= (min(1, room)) + 1e-9

    def _time(self, c: int) -> pulp.LpVariable:
        """Return a variable above the time of configuration c."""
        counted = self._model.design.execution.counted
        time = self._problem.add_variable(f"time_{c}", 0)
        parts = {"C": self._compute(c), "M": self._memory(c), "N": self._network(c)}
        compute, memory, network = (parts[kind] if kind in counted else 0 for kind in "CMN")
        overlap = self._model.design.execution.overlap
        if overlap is Overlap.NO_OVERLAP:
            self._problem += time >= compute + memory + network
        elif overlap is Overlap.PERFECT_OVERLAP:
            for part in (compute, memory, network):
                self._problem += time >= part
        else:
            self._problem += time >= compute + network
            self._problem += time >= memory + network
        return time

    def _compute(self, c: int) -> pulp.LpVariable:
        compute = self._problem.add_variable(f"compute_{c}", 0)
        execution, machine = self._model.design.execution, self._model.design.machine
        tiles = self._model.tiles
        if execution.compute_utilization > 0:
            unit = execution.compute_utilization * machine.peak_gflops * self._unit_ns
            terms = [(self._at[k][c], tiles * self._model.shares[k].flop / unit) for k in self._kernels]
            self._problem += compute >= self._pulp.LpAffineExpression(terms)
            return compute
        used, areas = [], []
        unit = machine.frequency_ghz * self._unit_ns / tiles
        for k, table in enumerate(self._model.tables):
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
            size = self._model.tiles * edge.size_bytes / unit
            terms += [(self._at[edge.source][c], size), (self._at[edge.target][c], size)]
            terms.append((self._both[number][c], -2 * size))
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
