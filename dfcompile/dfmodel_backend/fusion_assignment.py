"""Fusion as an assignment of kernels to configurations, solved as a MILP: needs no list of down-sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dfcompile.dfmodel_backend.bounds import lower_bound_ns
from dfcompile.dfmodel_backend.configuration import FINEST, ConfigurationModel
from dfcompile.dfmodel_backend.fusion_dp import Chain
from dfcompile.dfmodel_backend.milp import Outcome, is_one, solve
from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.dfmodel_backend.workload import NO_SOURCE, Flow

if TYPE_CHECKING:
    import pulp


def fuse_by_assignment(model: ConfigurationModel) -> tuple[Chain, Outcome] | None:
    """Return the fastest chain of configurations and how the solve ended, or None if none was found."""
    return _AssignmentBuilder(model).finish()


class _AssignmentBuilder:
    """Builds and solves the model; ``at[k][c]`` is 1 if kernel k is in configuration c.

    ``by[k][c]`` (the sum of ``at`` up to c) is at most that of each predecessor: edges never run backwards. Times
    are in units of the lower bound and SRAM in units of the capacity, so that tolerances are relative.
    """

    def __init__(self, model: ConfigurationModel) -> None:
        import pulp

        self._pulp = pulp
        self._model = model
        self._work = model.workload
        self._kernels = range(len(self._work.kernels))
        limit = model.options.max_configurations or len(self._work.kernels)
        self._slots = range(min(limit, len(self._work.kernels)))
        self._unit_ns = lower_bound_ns(model) or 1.0
        self._problem = pulp.LpProblem("fusion_assignment", pulp.LpMinimize)
        self._at = [[self._binary(f"at_{k}_{c}") for c in self._slots] for k in self._kernels]
        self._by = [[pulp.lpSum(self._at[k][: c + 1]) for c in self._slots] for k in self._kernels]
        self._alone: dict[tuple[int, int], pulp.LpVariable] = {}
        self._bytes: list[list[tuple[pulp.LpVariable, float]]] = [[] for _ in self._slots]
        self._sram: list[list[tuple[pulp.LpVariable, float]]] = [[] for _ in self._slots]

    def finish(self) -> tuple[Chain, Outcome] | None:
        self._order_kernels()
        for number, flow in enumerate(self._work.flows):
            self._add_flow(number, flow)
        self._add_weights()
        self._add_weight_tiles()
        self._limit_sram()
        self._limit_dram()
        self._add_times()
        outcome = solve(self._problem, self._model.options)
        if outcome in (Outcome.INFEASIBLE, Outcome.NOTHING):
            return None
        chain = [sum(1 << k for k in self._kernels if is_one(self._at[k][c])) for c in self._slots]
        return tuple(kernels for kernels in chain if kernels), outcome

    def _order_kernels(self) -> None:
        for k in self._kernels:
            self._problem += self._pulp.lpSum(self._at[k]) == 1
            for p in self._work.members(self._work.predecessors[k]):
                for c in self._slots[:-1]:
                    self._problem += self._by[k][c] <= self._by[p][c]
        cores = self._model.system.accelerator.cores
        for c in self._slots:
            held = self._pulp.lpSum(self._at[k][c] for k in self._kernels)
            self._problem += held <= min(cores, len(self._kernels))
            if c + 1 in self._slots:  # empty configurations last
                following = self._pulp.lpSum(self._at[k][c + 1] for k in self._kernels)
                self._problem += following <= len(self._kernels) * held

    def _add_flow(self, number: int, flow: Flow) -> None:
        """Traffic and SRAM of one tensor: max over its readers, each a lower bound on a variable."""
        source = flow.source if flow.source != NO_SOURCE else None
        for c in self._slots:
            read = self._share(f"read_{number}_{c}")
            border = self._amount(f"border_{number}_{c}")
            onchip = self._amount(f"onchip_{number}_{c}")
            write = self._share(f"write_{number}_{c}")
            made = self._at[source][c] if source is not None else 0
            for reading in flow.readings:
                here = self._at[reading.kernel][c]
                self._problem += read >= here - made
                taken = 2 * -(-flow.size_bytes // reading.cuts)
                self._problem += border >= taken * (here - made)
                if source is not None:
                    tile = -(-flow.size_bytes // min(reading.cuts, flow.cuts))
                    self._problem += onchip >= reading.buffer_depth * tile * (here + made - 1)
                    self._problem += write >= made - here
            if flow.leaves:
                self._problem += write >= made
            self._bytes[c] += [(read, flow.size_bytes), (write, flow.size_bytes)]
            self._sram[c] += [(border, 1), (onchip, 1), (write, 2 * -(-flow.size_bytes // flow.cuts))]

    def _add_weights(self) -> None:
        for number, weight in enumerate(self._work.weights):
            for c in self._slots:
                held = self._share(f"weight_{number}_{c}")
                for k in weight.kernels:
                    self._problem += held >= self._at[k][c]
                self._bytes[c].append((held, weight.size_bytes))
                self._sram[c].append((held, weight.size_bytes))

    def _add_weight_tiles(self) -> None:
        """A kernel whose weights do not fit whole may be alone and load them in tiles: more traffic, less SRAM."""
        capacity = self._model.system.accelerator.sram_bytes
        for k in self._kernels if capacity else ():
            kernels, members = 1 << k, (k,)
            tiles = self._model.fitting_weight_tiles(kernels, members)
            if tiles is None or tiles == 1:
                continue
            saved = self._model.sram_bytes(kernels, members, FINEST, 1) - math.floor(capacity)
            traffic = self._model.traffic(kernels, members)
            extra = traffic.total_bytes(tiles) - traffic.total_bytes(1)
            for c in self._slots:
                alone = self._alone[k, c] = self._binary(f"alone_{k}_{c}")
                self._problem += alone <= self._at[k][c]
                for other in self._kernels:
                    if other != k:
                        self._problem += self._at[other][c] + alone <= 1
                self._bytes[c].append((alone, extra))
                self._sram[c].append((alone, -saved))

    def _limit_sram(self) -> None:
        capacity = self._model.system.accelerator.sram_bytes
        for c in self._slots if capacity else ():
            terms = [(variable, size / capacity) for variable, size in self._sram[c]]
            # Sizes are whole bytes: half a byte of slack keeps a tight fit clear of the solvers' tolerances.
            self._problem += self._pulp.LpAffineExpression(terms) <= (math.floor(capacity) + 0.5) / capacity

    def _limit_dram(self) -> None:
        capacity = self._model.system.dram_capacity_bytes
        weights = sum(weight.size_bytes for weight in self._work.weights)
        if not capacity or weights + sum(flow.size_bytes for flow in self._work.flows) <= capacity:
            return
        for c in self._slots:
            terms = []
            for number, flow in enumerate(self._work.flows):
                live = self._share(f"live_{number}_{c}")
                terms.append((live, flow.size_bytes / capacity))
                inside = flow.source != NO_SOURCE
                made = self._by[flow.source][c] if inside else 1
                made_before = (self._by[flow.source][c - 1] if c else 0) if inside else 1
                if flow.leaves:
                    self._problem += live >= made
                for reading in flow.readings:
                    self._problem += live >= made - self._by[reading.kernel][c]
                    self._problem += live >= made_before - (self._by[reading.kernel][c - 1] if c else 0)
            self._problem += self._pulp.LpAffineExpression(terms) <= (math.floor(capacity) + 0.5 - weights) / capacity

    def _add_times(self) -> None:
        total = []
        for c in self._slots:
            bandwidth = self._model.system.dram_gb_per_s * self._unit_ns
            memory = self._pulp.LpAffineExpression([(variable, size / bandwidth) for variable, size in self._bytes[c]])
            time = self._amount(f"time_{c}")
            terms = [(self._at[k][c], self._work.kernels[k].network_ns / self._unit_ns) for k in self._kernels]
            network = self._pulp.LpAffineExpression(terms)
            overlap = self._model.options.overlap
            if overlap is Overlap.NO_OVERLAP:
                self._bound_compute(c, time, memory + network)
            elif overlap is Overlap.PERFECT_OVERLAP:
                self._bound_compute(c, time, self._pulp.LpAffineExpression())
                self._problem += time >= memory
                self._problem += time >= network
            else:
                self._bound_compute(c, time, network)
                self._problem += time >= memory + network
            total.append(time)
        self._problem.setObjective(self._pulp.lpSum(total))

    def _bound_compute(self, c: int, time: pulp.LpVariable, plus: pulp.LpAffineExpression) -> None:
        """Keep ``time`` of configuration c above its compute time plus an expression."""
        chip = self._model.system.accelerator
        if self._model.options.compute_utilization > 0:
            flop_per_unit = self._model.options.compute_utilization * chip.peak_gflops * self._unit_ns
            terms = [(self._at[k][c], self._work.kernels[k].flop / flop_per_unit) for k in self._kernels]
            self._problem += time >= self._pulp.LpAffineExpression(terms) + plus
            return
        used = []
        unit = chip.frequency_ghz * self._unit_ns
        for k in self._kernels:
            table = self._model.tables[k]
            rows = [self._binary(f"split_{k}_{c}_{row}") for row in range(len(table.cycles))]
            self._problem += self._pulp.lpSum(rows) == self._at[k][c]
            used += list(zip(rows, table.cores, strict=True))
            terms = [(variable, cycles / unit) for variable, cycles in zip(rows, table.cycles, strict=True)]
            self._problem += time >= self._pulp.LpAffineExpression(terms) + plus
        self._problem += self._pulp.LpAffineExpression(used) <= chip.cores
        # Not needed for the model but for its relaxation: a configuration takes at least its area over all cores.
        areas = [(self._at[k][c], self._model.tables[k].least_area / (chip.cores * unit)) for k in self._kernels]
        self._problem += time >= self._pulp.LpAffineExpression(areas) + plus

    def _binary(self, name: str) -> pulp.LpVariable:
        return self._problem.add_variable(name, cat="Binary")

    def _share(self, name: str) -> pulp.LpVariable:
        return self._problem.add_variable(name, 0, 1)

    def _amount(self, name: str) -> pulp.LpVariable:
        return self._problem.add_variable(name, 0)
