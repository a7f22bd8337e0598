"""Fusion as an assignment of kernels to configurations, solved as a MILP: exact, and needs no list of down-sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion_path import Chain
from dfcompile.dfmodel_backend.fusion_shape import FusionShape
from dfcompile.dfmodel_backend.fusion_terms import OUTSIDE, FlowTerms, FusionTerms
from dfcompile.dfmodel_backend.milp import Outcome, is_one, solve
from dfcompile.dfmodel_backend.options import MappingOptions, Overlap

if TYPE_CHECKING:
    import pulp

Terms = list[tuple["pulp.LpVariable", float]]


def fuse_by_assignment(
    terms: FusionTerms, shape: FusionShape, overlap: Overlap, counted: str, options: MappingOptions
) -> tuple[Chain | None, Outcome]:
    """Return the fastest chain, if one was found, and how the solve ended.

    Args:
        terms: figures of kernels, and limits.
        shape: how many configurations there are, and which kernels may be in which.
        overlap: of compute, memory and network.
        counted: which of them count, of ``CMN``.
        options: solver and its time limit.

    Raises:
        InternalError: the solver failed.
    """
    return _AssignmentBuilder(terms, shape, overlap, counted).finish(options)


class _AssignmentBuilder:
    """Builds and solves the model; ``at[k][c]`` is 1 if kernel k is in configuration c.

    ``by[k][c]`` (the sum of ``at`` up to c) is at most that of each predecessor: edges never run backwards. Times
    are in units of the lower bound and memories in units of their capacity, so that tolerances are relative.
    """

    def __init__(self, terms: FusionTerms, shape: FusionShape, overlap: Overlap, counted: str) -> None:
        import pulp

        self._pulp = pulp
        self._terms = terms
        self._shape = shape
        self._overlap = overlap
        self._counted = counted
        self._kernels = range(len(shape.predecessors))
        count = min(len(shape.allowed), len(self._kernels)) if len(set(shape.allowed)) == 1 else len(shape.allowed)
        self._slots = range(count)
        self._unit_ns = terms.least_ns or 1.0
        self._problem = pulp.LpProblem("fusion_assignment", pulp.LpMinimize)
        self._at = [
            [self._problem.add_variable(f"at_{k}_{c}", 0, shape.allowed[c] >> k & 1, "Integer") for c in self._slots]
            for k in self._kernels
        ]
        self._by = [[pulp.lpSum(self._at[k][: c + 1]) for c in self._slots] for k in self._kernels]
        self._memory: list[Terms] = [[] for _ in self._slots]
        self._sram: list[Terms] = [[] for _ in self._slots]

    def finish(self, options: MappingOptions) -> tuple[Chain | None, Outcome]:
        self._order_kernels()
        for c in self._slots:
            for number, flow in enumerate(self._terms.flows):
                self._add_flow(number, flow, c)
            self._add_held(c)
            self._add_tiled(c)
            self._limit_sram(c)
            self._limit_dram(c)
        self._problem.setObjective(self._pulp.lpSum(self._time(c) for c in self._slots))
        outcome = solve(self._problem, options)
        if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
            return None, outcome
        return tuple(sum(1 << k for k in self._kernels if is_one(self._at[k][c])) for c in self._slots), outcome

    def _order_kernels(self) -> None:
        for k in self._kernels:
            self._problem += self._pulp.lpSum(self._at[k]) == 1
            for p in self._kernels:
                if self._shape.predecessors[k] >> p & 1:
                    for c in self._slots[:-1]:
                        self._problem += self._by[k][c] <= self._by[p][c]
        for c in self._slots:
            held = self._pulp.lpSum(self._at[k][c] for k in self._kernels)
            self._problem += held <= min(self._shape.most_kernels, len(self._kernels))
            if c + 1 in self._slots and self._shape.allowed[c] == self._shape.allowed[c + 1]:  # empty ones last
                following = self._pulp.lpSum(self._at[k][c + 1] for k in self._kernels)
                self._problem += following <= len(self._kernels) * held

    def _add_flow(self, number: int, flow: FlowTerms, c: int) -> None:
        """Traffic and SRAM of one tensor: max over its readers, each a lower bound on a variable."""
        source = flow.source
        read = self._share(f"read_{number}_{c}")
        write = self._share(f"write_{number}_{c}")
        border = self._amount(f"border_{number}_{c}")
        inside = self._amount(f"inside_{number}_{c}")
        made = self._at[source][c] if source != OUTSIDE else 0
        capacity = self._terms.sram_bytes
        for reader in flow.readers:
            here = self._at[reader.kernel][c]
            self._problem += read >= here - made
            self._problem += border >= reader.border_bytes / capacity * (here - made)
            if source != OUTSIDE:
                self._problem += inside >= reader.inside_bytes / capacity * (here + made - 1)
                self._problem += write >= made - here
        if flow.leaves:
            self._problem += write >= made
        self._memory[c] += [(read, flow.memory_ns), (write, flow.memory_ns)]
        self._sram[c] += [(border, 1.0), (inside, 1.0), (write, flow.written_bytes / capacity)]

    def _add_held(self, c: int) -> None:
        for number, tensor in enumerate(self._terms.held):
            if len(tensor.kernels) == 1:
                held = self._at[tensor.kernels[0]][c]
            else:
                held = self._share(f"held_{number}_{c}")
                for k in tensor.kernels:
                    self._problem += held >= self._at[k][c]
            self._memory[c].append((held, tensor.memory_ns))
            self._sram[c].append((held, tensor.sram_bytes / self._terms.sram_bytes))

    def _add_tiled(self, c: int) -> None:
        """A kernel whose weights do not fit whole may be alone and load them in tiles: more traffic, less SRAM."""
        for tiled in self._terms.tiled:
            alone = self._problem.add_variable(f"alone_{tiled.kernel}_{c}", cat="Binary")
            self._problem += alone <= self._at[tiled.kernel][c]
            for other in self._kernels:
                if other != tiled.kernel:
                    self._problem += self._at[other][c] + alone <= 1
            self._memory[c].append((alone, tiled.added_memory_ns))
            self._sram[c].append((alone, -tiled.saved_sram_bytes / self._terms.sram_bytes))

    def _limit_sram(self, c: int) -> None:
        if not math.isinf(self._terms.sram_bytes):
            self._problem += self._sum(self._sram[c]) <= 1

    def _limit_dram(self, c: int) -> None:
        room = self._terms.dram_bytes
        if math.isinf(room):
            return
        terms: Terms = []
        unit = max(1.0, room)
        for number, flow in enumerate(self._terms.flows):
            live = self._share(f"live_{number}_{c}")
            terms.append((live, flow.live_bytes / unit))
            inside = flow.source != OUTSIDE
            made = self._by[flow.source][c] if inside else 1
            made_before = (self._by[flow.source][c - 1] if c else 0) if inside else 1
            if flow.leaves:
                self._problem += live >= made
            for reader in flow.readers:
                self._problem += live >= made - self._by[reader.kernel][c]
                self._problem += live >= made_before - (self._by[reader.kernel][c - 1] if c else 0)
        self._problem += self._sum(terms) <= room / unit

    def _time(self, c: int) -> pulp.LpVariable:
        """Return a variable above the time of configuration c."""
        time = self._amount(f"time_{c}")
        parts = {"C": self._compute(c), "M": self._sum(self._memory[c], self._unit_ns), "N": self._network(c)}
        compute, memory, network = (parts[kind] if kind in self._counted else 0 for kind in "CMN")
        if self._overlap is Overlap.NO_OVERLAP:
            self._problem += time >= compute + memory + network
        elif self._overlap is Overlap.PERFECT_OVERLAP:
            for part in (compute, memory, network):
                self._problem += time >= part
        else:
            self._problem += time >= compute + network
            self._problem += time >= memory + network
        return time

    def _compute(self, c: int) -> pulp.LpVariable:
        compute = self._amount(f"compute_{c}")
        if self._terms.compute_ns is not None:
            self._problem += compute >= self._per_kernel(self._terms.compute_ns, c)
            return compute
        used: Terms = []
        areas: Terms = []
        unit = self._unit_ns / self._terms.cycle_ns
        for k, table in enumerate(self._terms.tables):
            rows = [
                self._problem.add_variable(f"split_{k}_{c}_{row}", cat="Binary") for row in range(len(table.cycles))
            ]
            self._problem += self._pulp.lpSum(rows) == self._at[k][c]
            used += [(variable, float(cores)) for variable, cores in zip(rows, table.cores, strict=True)]
            cycles = [(variable, float(cycles)) for variable, cycles in zip(rows, table.cycles, strict=True)]
            self._problem += compute >= self._sum(cycles, unit)
            areas.append((self._at[k][c], table.least_area / self._terms.cores))
        self._problem += self._sum(used) <= self._terms.cores
        # Not needed for the model but for its relaxation: a configuration takes at least its area over all cores.
        self._problem += compute >= self._sum(areas, unit)
        return compute

    def _network(self, c: int) -> pulp.LpVariable:
        network = self._amount(f"network_{c}")
        for column in self._terms.network_ns:
            self._problem += network >= self._per_kernel(column, c)
        return network

    def _per_kernel(self, column: Column, c: int) -> pulp.LpAffineExpression:
        return self._sum([(self._at[k][c], float(column[k])) for k in self._kernels], self._unit_ns)

    def _sum(self, terms: Terms, unit: float = 1.0) -> pulp.LpAffineExpression:
        """Add up; an expression made of pairs with the same variable would keep the last one only."""
        total: dict[str, tuple[pulp.LpVariable, float]] = {}
        for variable, factor in terms:
            old = total.get(variable.name)
            total[variable.name] = (variable, factor / unit + (old[1] if old else 0.0))
        return self._pulp.LpAffineExpression(list(total.values()))

    def _share(self, name: str) -> pulp.LpVariable:
        return self._problem.add_variable(name, 0, 1)

    def _amount(self, name: str) -> pulp.LpVariable:
        return self._problem.add_variable(name, 0)
