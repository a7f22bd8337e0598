"""Fusion as an assignment of kernels to configurations, solved as a MILP: exact, and needs no list of down-sets."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dfcompile.dfmodel_backend.columns import Column
from dfcompile.dfmodel_backend.fusion.fusion_problem import FusionProblem
from dfcompile.dfmodel_backend.fusion.solvers.milp_ties import ChainProgram, settle_ties
from dfcompile.dfmodel_backend.fusion.solvers.path import Chain
from dfcompile.dfmodel_backend.intra_chip.flow_columns import NOBODY
from dfcompile.dfmodel_backend.intra_chip.set_times import tiles_alone
from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, is_one, solve
from dfcompile.dfmodel_backend.options import sums_of

if TYPE_CHECKING:
    import pulp

Terms = list[tuple["pulp.LpVariable", float]]

ROUNDING = 1e-9  # relative: sums in another order
HALF_A_BYTE = 0.5  # of whole bytes: keeps a tight fit clear of the tolerances of integer programs


class Assignment:
    """Builds and solves the model; ``at[k][c]`` is 1 if kernel k is in configuration c.

    ``by[k][c]`` (the sum of ``at`` up to c) is at most that of each predecessor: edges never run backwards. Times
    are in units of the lower bound and memories in units of their capacity, so that tolerances are relative.
    """

    def __init__(self, fusion: FusionProblem) -> None:
        import pulp

        self._pulp = pulp
        self._fusion = fusion
        self._model, self._shape = model, shape = fusion.model, fusion.shape
        self._kernels = range(len(shape.predecessors))
        self._alone = np.eye(len(self._kernels), dtype=bool)
        # Of the configurations of each kernel: those with several inputs are not tiled, but run as often.
        self._tiles: list[int] = model.tiles_of(self._alone)[0].tolist()
        self._runs = [max(1, count) for count in model.inputs.tolist()]
        self._apart = sum(1 << k for k, count in enumerate(model.inputs.tolist()) if count)
        self._sources: list[int] = model.flows.source.tolist()
        self._readers = list(self._readers_of_flows())
        self._held, self._tiled = list(self._held_terms()), list(self._tiled_weights())
        self._sram_bytes = self._with_slack(model.sram_capacity) if model.sram_capacity else math.inf
        is_roomy = model.dram_room >= model.stage_bytes.sum() + model.most_waiting
        self._dram_bytes = math.inf if is_roomy else self._with_slack(model.dram_room)
        masks = shape.allowed[: len(self._kernels)] if len(set(shape.allowed)) == 1 else shape.allowed
        self._stages = [range(stage * len(masks), (stage + 1) * len(masks)) for stage in range(shape.stages)]
        self._masks = masks * shape.stages
        self._slots = range(len(self._masks))
        self._unit_ns = model.least_ns() or 1.0
        self._problem = pulp.LpProblem("fusion_assignment", pulp.LpMinimize)
        self._at = [
            [self._problem.add_variable(f"at_{k}_{c}", 0, self._masks[c] >> k & 1, "Integer") for c in self._slots]
            for k in self._kernels
        ]
        self._by = [[pulp.lpSum(self._at[k][: c + 1]) for c in self._slots] for k in self._kernels]
        self._memory: list[Terms] = [[] for _ in self._slots]
        self._sram: list[Terms] = [[] for _ in self._slots]

    def _with_slack(self, size: float) -> float:
        return math.floor(size) + HALF_A_BYTE if self._model.rules.has_whole_bytes else size * (1 + ROUNDING)

    def _readers_of_flows(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the kernels that read each tensor, with their places among the readers of all tensors."""
        readers = self._model.flows.readers
        kernels = readers.kernels.tolist()
        for first, end in readers.places:
            yield [(kernels[place], place) for place in range(first, end) if kernels[place] != NOBODY]

    def _held_terms(self) -> Iterator[tuple[tuple[int, ...], float, float]]:
        """Yield the kernels of each tensor that is held, the time to load it and its SRAM, with what kernels add."""
        held, gb_per_s = self._model.held, self._model.machine.dram_gb_per_s
        added = dict(enumerate(self._model.sram_extra_bytes.tolist()))
        for (first, end), moved, size in zip(held.users.places, held.moved.tolist(), held.size.tolist(), strict=True):
            kernels = tuple(held.users.kernels[first:end].tolist())
            extra = added.pop(kernels[0], 0.0) if len(kernels) == 1 else 0.0
            yield kernels, moved / gb_per_s, size + extra
        yield from (((kernel,), 0.0, extra) for kernel, extra in added.items() if extra)

    def _tiled_weights(self) -> Iterator[tuple[int, float, float]]:
        """Yield the kernels that fit SRAM only alone, weights in tiles: SRAM that this saves, time that it adds."""
        model = self._model
        for kernel in self._kernels if model.sram_capacity else ():
            tiles = tiles_alone(model, kernel)
            if tiles is not None and tiles > 1:
                row = self._alone[kernel : kernel + 1]
                added = model.steps(row, np.array([tiles], np.int64)).memory_ns - model.steps(row).memory_ns
                yield kernel, model.sram_alone(kernel, 1) - model.sram_alone(kernel, tiles), float(added[0])

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
            for number in range(len(self._sources)):
                self._add_flow(number, c)
            self._add_held(c)
            self._add_tiled(c)
            if not math.isinf(self._sram_bytes):
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
        program = ChainProgram(
            self._problem,
            time=(time, self._unit_ns),
            dram_bytes=self._sum(
                [term for terms in self._memory for term in terms], 1 / self._model.machine.dram_gb_per_s
            ),
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

    def _add_flow(self, number: int, c: int) -> None:
        """Traffic and SRAM of one tensor: max over its readers, each a lower bound on a variable."""
        flows, source, readers = self._model.flows, self._sources[number], self._readers[number]
        read = self._share(f"read_{number}_{c}")
        write = self._share(f"write_{number}_{c}")
        border = self._amount(f"border_{number}_{c}")
        inside = self._amount(f"inside_{number}_{c}")
        made = self._at[source][c] if source != NOBODY else 0
        capacity = self._sram_bytes
        for kernel, place in readers:
            here = self._at[kernel][c]
            self._problem += read >= here - made
            self._problem += border >= float(flows.border[place]) / capacity * (here - made)
            if source != NOBODY:
                self._problem += inside >= float(flows.inside[place]) / capacity * (here + made - 1)
                self._problem += write >= made - here
        if flows.leaves[number]:
            self._problem += write >= made
        size, gb_per_s = float(flows.size[number]), self._model.machine.dram_gb_per_s
        read_ns = (self._tiles[readers[0][0]] if readers else 1) * size / gb_per_s
        write_ns = (self._tiles[source] if source != NOBODY else 1) * size / gb_per_s
        self._memory[c] += [(read, read_ns), (write, write_ns)]
        self._sram[c] += [(border, 1.0), (inside, 1.0), (write, 2 * float(flows.written[number]) / capacity)]

    def _add_held(self, c: int) -> None:
        for number, (kernels, memory_ns, sram_bytes) in enumerate(self._held):
            if len(kernels) == 1:
                held = self._at[kernels[0]][c]
            else:
                held = self._share(f"held_{number}_{c}")
                for k in kernels:
                    self._problem += held >= self._at[k][c]
            self._memory[c].append((held, memory_ns))
            self._sram[c].append((held, sram_bytes / self._sram_bytes))

    def _add_tiled(self, c: int) -> None:
        """A kernel whose weights do not fit whole may be alone and load them in tiles: more traffic, less SRAM."""
        for kernel, saved_bytes, added_ns in self._tiled:
            alone = self._problem.add_variable(f"alone_{kernel}_{c}", cat="Binary")
            self._problem += alone <= self._at[kernel][c]
            for other in self._kernels:
                if other != kernel:
                    self._problem += self._at[other][c] + alone <= 1
            self._memory[c].append((alone, added_ns))
            self._sram[c].append((alone, -saved_bytes / self._sram_bytes))

    def _limit_dram(self, slots: range) -> None:
        """What a stage keeps and what waits; how much of a tensor waits depends on the kernels that run."""
        room = self._dram_bytes
        if math.isinf(room):
            return
        unit = max(1.0, room)
        keeps = [
            (self._at[k][c], size / unit)
            for k, size in enumerate(self._model.stage_bytes.tolist())
            for c in slots
            if size
        ]
        for c in slots:
            waits = self._waiting(c, unit)
            for times in sorted(set(self._tiles)):
                used = self._sum([*keeps, *((live, size * times) for live, size in waits)])
                if times == min(self._tiles):
                    self._problem += used <= room / unit
                    continue
                most = sum(size * times for _, size in waits)
                for k in self._kernels:
                    if self._tiles[k] == times:
                        self._problem += used <= room / unit + most * (1 - self._at[k][c])

    def _waiting(self, c: int, unit: float) -> Terms:
        """Return what may wait while configuration c runs, with its size."""
        terms: Terms = []
        for number, source in enumerate(self._sources):
            live = self._share(f"live_{number}_{c}")
            terms.append((live, self._model.micro_batch * float(self._model.flows.size[number]) / unit))
            inside = source != NOBODY
            made = self._by[source][c] if inside else 1
            made_before = (self._by[source][c - 1] if c else 0) if inside else 1
            if self._model.flows.leaves[number]:
                self._problem += live >= made
            for kernel, _ in self._readers[number]:
                self._problem += live >= made - self._by[kernel][c]
                self._problem += live >= made_before - (self._by[kernel][c - 1] if c else 0)
        return terms

    def _keep_apart(self, c: int) -> None:
        if self._apart in (0, self._shape.every_kernel):
            return
        which = self._problem.add_variable(f"apart_{c}", cat="Binary")
        for k in self._kernels:
            self._problem += self._at[k][c] <= (which if self._apart >> k & 1 else 1 - which)

    def _slowest(self, times: list[pulp.LpVariable]) -> pulp.LpVariable | pulp.LpAffineExpression:
        """Return the time of all configurations; of a pipeline that of the slowest stage, with what it sends on."""
        if len(self._stages) == 1:
            return self._pulp.lpSum(times)
        slowest, link = self._amount("slowest"), self._model.pipeline_link
        for stage, slots in enumerate(self._stages):
            sent = []
            for number, source in enumerate(self._sources):
                sends = self._share(f"sends_{number}_{stage}")
                for kernel, _ in self._readers[number] if source != NOBODY else ():
                    self._problem += sends >= self._by[source][slots[-1]] - self._by[kernel][slots[-1]]
                size = float(self._model.flows.size[number])
                sent.append((sends, self._model.tiles * size / link.gb_per_s if link else 0.0))
            self._problem += slowest >= self._pulp.lpSum(times[c] for c in slots) + self._sum(sent, self._unit_ns)
        return slowest

    def _time(self, c: int) -> pulp.LpVariable:
        """Return a variable above the time of configuration c."""
        time = self._amount(f"time_{c}")
        parts = {"C": self._compute(c), "M": self._sum(self._memory[c], self._unit_ns), "N": self._network(c)}
        rules = self._model.rules
        compute, memory, network = (parts[kind] if kind in rules.counted else 0 for kind in "CMN")
        sums = sums_of(rules.overlap, compute, memory, network)
        for taken in sums:
            self._problem += time >= taken
        for times in sorted({count for count in self._runs if count > 1}):
            # As often as the kernel with the most repeats says; a kernel that is elsewhere says nothing.
            here = self._share(f"repeats_{times}_{c}")
            for k in self._kernels:
                if self._runs[k] == times:
                    self._problem += here >= self._at[k][c]
            for taken in sums:
                self._problem += time >= times * taken - times * self._most_ns / self._unit_ns * (1 - here)
        return time

    @cached_property
    def _most_ns(self) -> float:
        """Return a time that no configuration takes once, whatever is in it and however its weights are tiled."""
        rows = np.array([max(1, work.rows) for work in self._model.works], np.int64)
        steps = self._model.steps(self._alone, rows)
        compute_ns = steps.compute_ns.sum() * self._model.machine.cores
        return float(compute_ns + steps.memory_ns.sum() + sum(part.sum() for part in self._model.network_parts()))

    def _compute(self, c: int) -> pulp.LpVariable:
        compute, machine = self._amount(f"compute_{c}"), self._model.machine
        if peak := self._model.rules.utilization * machine.peak_gflops:
            self._problem += compute >= self._per_kernel(np.array(self._tiles, float) * self._model.flop / peak, c)
            return compute
        used: Terms = []
        areas: Terms = []
        for k, table in enumerate(self._model.tables):
            unit = self._unit_ns / (self._tiles[k] / machine.frequency_ghz)
            rows = [
                self._problem.add_variable(f"split_{k}_{c}_{row}", cat="Binary") for row in range(len(table.cycles))
            ]
            self._problem += self._pulp.lpSum(rows) == self._at[k][c]
            used += [(variable, float(cores)) for variable, cores in zip(rows, table.cores, strict=True)]
            cycles = [(variable, float(cycles)) for variable, cycles in zip(rows, table.cycles, strict=True)]
            self._problem += compute >= self._sum(cycles, unit)
            areas.append((self._at[k][c], table.least_area / machine.cores / unit))
        self._problem += self._sum(used) <= machine.cores
        # Not needed for the model but for its relaxation: a configuration takes at least its area over all cores.
        self._problem += compute >= self._sum(areas)
        return compute

    def _network(self, c: int) -> pulp.LpVariable:
        network = self._amount(f"network_{c}")
        for column in self._model.network_parts():
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
