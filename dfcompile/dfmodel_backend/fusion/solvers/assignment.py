"""Fusion as an assignment of kernels to configurations, solved as a MILP: exact, and needs no list of down-sets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion.fusion_problem import FlowTerms, FusionProblem
from dfcompile.dfmodel_backend.fusion.solvers.milp_ties import ChainProgram, settle_ties
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY
from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, is_one, solve
from dfcompile.dfmodel_backend.options import sums_of

if TYPE_CHECKING:
    import pulp

Terms = list[tuple["pulp.LpVariable", float]]


class Assignment:
    """Builds and solves the model; ``at[k][c]`` is 1 if kernel k is in configuration c.

    ``by[k][c]`` (the sum of ``at`` up to c) is at most that of each predecessor: edges never run backwards. Times
    are in units of the lower bound and memories in units of their capacity, so that tolerances are relative.
    """

    def __init__(self, fusion: FusionProblem) -> None:
        import pulp

        self._pulp = pulp
        self._fusion = fusion
        self._terms, self._shape = terms, shape = fusion.terms(), fusion.shape
        self._kernels = range(len(shape.predecessors))
        masks = shape.allowed[: len(self._kernels)] if len(set(shape.allowed)) == 1 else shape.allowed
        self._stages = [range(stage * len(masks), (stage + 1) * len(masks)) for stage in range(shape.stages)]
        self._masks = masks * shape.stages
        self._slots = range(len(self._masks))
        self._unit_ns = terms.least_ns or 1.0
        self._problem = pulp.LpProblem("fusion_assignment", pulp.LpMinimize)
        self._at = [
            [self._problem.add_variable(f"at_{k}_{c}", 0, self._masks[c] >> k & 1, "Integer") for c in self._slots]
            for k in self._kernels
        ]
        self._by = [[pulp.lpSum(self._at[k][: c + 1]) for c in self._slots] for k in self._kernels]
        self._memory: list[Terms] = [[] for _ in self._slots]
        self._sram: list[Terms] = [[] for _ in self._slots]

    def finish(self, options: MilpOptions, *, settles_ties: bool) -> tuple[Chain | None, Outcome]:
        """Return the fastest chain, if one was found, and how the solve ended.

        Of a pipeline the slowest stage counts, not the sum.

        Args:
            options: solver and its limits.
            settles_ties: whether ties are those of `least_chain`; else they stay as the solver leaves them.

        Raises:
            UserError: the solver is not installed, or ended without an answer.
        """
        self._order_kernels()
        for c in self._slots:
            for number, flow in enumerate(self._terms.flows):
                self._add_flow(number, flow, c)
            self._add_held(c)
            self._add_tiled(c)
            if not math.isinf(self._terms.sram_bytes):
                self._problem += self._sum(self._sram[c]) <= 1
            self._keep_apart(c)
        for slots in self._stages:
            self._limit_dram(slots)
        time = self._slowest([self._time(c) for c in self._slots])
        self._problem.setObjective(time)
        outcome = solve(self._problem, options)
        if outcome not in (Outcome.OPTIMAL, Outcome.FEASIBLE):
            return None, outcome
        if not settles_ties or outcome is Outcome.FEASIBLE:
            return self._chain(), outcome
        machine = self._fusion.model.machine
        program = ChainProgram(
            self._problem,
            time=(time, self._unit_ns),
            dram_bytes=self._sum([term for terms in self._memory for term in terms], 1 / machine.dram_gb_per_s),
            configurations=self._pulp.lpSum(self._used(c) for c in self._slots),
            chain=self._chain,
            without=self._without,
            ranking=self._fusion,
        )
        return settle_ties(program, options), outcome

    def _chain(self) -> Chain:
        return tuple(sum(1 << k for k in self._kernels if is_one(self._at[k][c])) for c in self._slots)

    def _without(self, chain: Chain) -> pulp.LpConstraint:
        taken = [self._at[k][c] for c, kernels in enumerate(chain) for k in self._kernels if kernels >> k & 1]
        return self._pulp.lpSum(taken) <= len(taken) - 1

    def _used(self, c: int) -> pulp.LpVariable:
        """Return a variable that is 1 if a configuration holds kernels."""
        used = self._problem.add_variable(f"used_{c}", cat="Binary")
        for k in self._kernels:
            self._problem += used >= self._at[k][c]
        return used

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
        for c in (c for slots in self._stages for c in slots[:-1]):
            if self._masks[c] == self._masks[c + 1]:  # empty ones last
                held, following = (self._pulp.lpSum(self._at[k][d] for k in self._kernels) for d in (c, c + 1))
                self._problem += following <= len(self._kernels) * held

    def _add_flow(self, number: int, flow: FlowTerms, c: int) -> None:
        """Traffic and SRAM of one tensor: max over its readers, each a lower bound on a variable."""
        source = flow.source
        read = self._share(f"read_{number}_{c}")
        write = self._share(f"write_{number}_{c}")
        border = self._amount(f"border_{number}_{c}")
        inside = self._amount(f"inside_{number}_{c}")
        made = self._at[source][c] if source != NOBODY else 0
        capacity = self._terms.sram_bytes
        for reader in flow.readers:
            here = self._at[reader.kernel][c]
            self._problem += read >= here - made
            self._problem += border >= reader.border_bytes / capacity * (here - made)
            if source != NOBODY:
                self._problem += inside >= reader.inside_bytes / capacity * (here + made - 1)
                self._problem += write >= made - here
        if flow.leaves:
            self._problem += write >= made
        self._memory[c] += [(read, flow.read_ns), (write, flow.write_ns)]
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

    def _limit_dram(self, slots: range) -> None:
        """What a stage keeps and what waits; how much of a tensor waits depends on the kernels that run."""
        room = self._terms.dram_bytes
        if math.isinf(room):
            return
        unit = max(1.0, room)
        keeps = [(self._at[k][c], size / unit) for k, size in enumerate(self._terms.kept_bytes) for c in slots if size]
        for c in slots:
            waits = self._waiting(c, unit)
            for times in sorted(set(self._terms.waiting)):
                used = self._sum([*keeps, *((live, size * times) for live, size in waits)])
                if times == min(self._terms.waiting):
                    self._problem += used <= room / unit
                    continue
                most = sum(size * times for _, size in waits)
                for k in self._kernels:
                    if self._terms.waiting[k] == times:
                        self._problem += used <= room / unit + most * (1 - self._at[k][c])

    def _waiting(self, c: int, unit: float) -> Terms:
        """Return what may wait while configuration c runs, with its size."""
        terms: Terms = []
        for number, flow in enumerate(self._terms.flows):
            live = self._share(f"live_{number}_{c}")
            terms.append((live, flow.live_bytes / unit))
            inside = flow.source != NOBODY
            made = self._by[flow.source][c] if inside else 1
            made_before = (self._by[flow.source][c - 1] if c else 0) if inside else 1
            if flow.leaves:
                self._problem += live >= made
            for reader in flow.readers:
                self._problem += live >= made - self._by[reader.kernel][c]
                self._problem += live >= made_before - (self._by[reader.kernel][c - 1] if c else 0)
        return terms

    def _keep_apart(self, c: int) -> None:
        if self._terms.apart in (0, self._shape.every_kernel):
            return
        which = self._problem.add_variable(f"apart_{c}", cat="Binary")
        for k in self._kernels:
            self._problem += self._at[k][c] <= (which if self._terms.apart >> k & 1 else 1 - which)

    def _slowest(self, times: list[pulp.LpVariable]) -> pulp.LpVariable | pulp.LpAffineExpression:
        """Return the time of all configurations; of a pipeline that of the slowest stage, with what it sends on."""
        if len(self._stages) == 1:
            return self._pulp.lpSum(times)
        slowest = self._amount("slowest")
        for stage, slots in enumerate(self._stages):
            sent = []
            for number, flow in enumerate(self._terms.flows):
                sends = self._share(f"sends_{number}_{stage}")
                for reader in flow.readers if flow.source != NOBODY else ():
                    self._problem += sends >= self._by[flow.source][slots[-1]] - self._by[reader.kernel][slots[-1]]
                sent.append((sends, flow.sent_ns))
            self._problem += slowest >= self._pulp.lpSum(times[c] for c in slots) + self._sum(sent, self._unit_ns)
        return slowest

    def _time(self, c: int) -> pulp.LpVariable:
        """Return a variable above the time of configuration c."""
        time = self._amount(f"time_{c}")
        parts = {"C": self._compute(c), "M": self._sum(self._memory[c], self._unit_ns), "N": self._network(c)}
        rules = self._fusion.model.rules
        compute, memory, network = (parts[kind] if kind in rules.counted else 0 for kind in "CMN")
        sums = sums_of(rules.overlap, compute, memory, network)
        for taken in sums:
            self._problem += time >= taken
        for times in sorted({count for count in self._terms.repeats if count > 1}):
            # As often as the kernel with the most repeats says; a kernel that is elsewhere says nothing.
            here = self._share(f"repeats_{times}_{c}")
            for k in self._kernels:
                if self._terms.repeats[k] == times:
                    self._problem += here >= self._at[k][c]
            for taken in sums:
                self._problem += time >= times * taken - times * self._terms.most_ns / self._unit_ns * (1 - here)
        return time

    def _compute(self, c: int) -> pulp.LpVariable:
        compute = self._amount(f"compute_{c}")
        if self._terms.compute_ns is not None:
            self._problem += compute >= self._per_kernel(self._terms.compute_ns, c)
            return compute
        used: Terms = []
        areas: Terms = []
        for k, table in enumerate(self._terms.tables):
            unit = self._unit_ns / self._terms.cycle_ns[k]
            rows = [
                self._problem.add_variable(f"split_{k}_{c}_{row}", cat="Binary") for row in range(len(table.cycles))
            ]
            self._problem += self._pulp.lpSum(rows) == self._at[k][c]
            used += [(variable, float(cores)) for variable, cores in zip(rows, table.cores, strict=True)]
            cycles = [(variable, float(cycles)) for variable, cycles in zip(rows, table.cycles, strict=True)]
            self._problem += compute >= self._sum(cycles, unit)
            areas.append((self._at[k][c], table.least_area / self._terms.cores / unit))
        self._problem += self._sum(used) <= self._terms.cores
        # Not needed for the model but for its relaxation: a configuration takes at least its area over all cores.
        self._problem += compute >= self._sum(areas)
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
