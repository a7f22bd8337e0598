"""Pipeline partition as one unit of flow through stages, configurations and down-sets, solved as a MILP: exact."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dfcompile.dfmodel_backend.columns import members_of
from dfcompile.dfmodel_backend.fusion.fusion_problem import Fused
from dfcompile.dfmodel_backend.fusion.pipelines.partition import stage_times, staged
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs
from dfcompile.dfmodel_backend.milp import MilpOptions, Outcome, is_one, solve

if TYPE_CHECKING:
    import pulp

Node = tuple[int, int, int]  # stage, its configurations so far, number of the down-set


def fuse_stages_by_arc_flow(model: DesignModel, arcs: Arcs, options: MilpOptions) -> tuple[Fused | None, Outcome]:
    """Return the partition whose slowest stage is fastest, if one was found, and how the solve ended.

    One 0/1 variable per stage, configuration of it and arc, and one per stage and down-set that it ends with; flow is
    conserved at each node. Each stage is at most the objective, and what it keeps and what waits fits DRAM.

    Raises:
        UserError: the solver is not installed, or ended without an answer.
    """
    return _Flow(model, arcs).solve(options)


class _Flow:
    def __init__(self, model: DesignModel, arcs: Arcs) -> None:
        import pulp

        self._pulp = pulp
        self._model, self._arcs = model, arcs
        self._times = stage_times(model, arcs)
        self._slots = model.design.slots_of_stage
        self._usable = np.flatnonzero(np.isfinite(self._times)).tolist()
        self._unit_ns = float(self._times[self._usable].max(initial=0.0)) or 1.0
        self._problem = pulp.LpProblem("pipeline_arc_flow", pulp.LpMinimize)
        self._flow: dict[tuple[int, int, int], pulp.LpVariable] = {}  # by stage, configuration, arc
        self._ends: dict[Node, pulp.LpVariable] = {}
        self._balance: dict[Node, list[tuple[pulp.LpVariable, int]]] = {}

    def solve(self, options: MilpOptions) -> tuple[Fused | None, Outcome]:
        stages = range(self._model.degrees.pipeline)
        last: Node = (len(stages), 0, len(self._arcs.down_sets) - 1)
        for stage in stages:
            self._add_stage(stage)
        if last not in self._balance:
            return None, Outcome.INFEASIBLE
        for number, (node, around) in enumerate(self._balance.items()):
            if node[0] == len(stages) and node != last:
                continue  # an end that is none
            supply = 1 if node == (0, 0, 0) else -1 if node == last else 0
            self._problem.addConstraint(self._pulp.LpAffineExpression(around) == supply, f"balance_{number}")
        for node, variable in self._ends.items():
            if node[0] == len(stages) - 1 and node[2] != last[2]:
                self._problem += variable == 0
        slowest = self._problem.add_variable("slowest", 0)
        self._problem.setObjective(self._pulp.LpAffineExpression([(slowest, 1.0)]))
        for stage in stages:
            self._problem += slowest >= self._pulp.LpAffineExpression(self._stage_terms(stage))
        self._limit_dram()
        outcome = solve(self._problem, options)
        return self._fused() if outcome in (Outcome.OPTIMAL, Outcome.FEASIBLE) else None, outcome

    def _add_stage(self, stage: int) -> None:
        """Add what can flow in a stage, from where the one before can end."""
        reached = {0} if not stage else {node[2] for node in self._balance if node[0] == stage}
        for slot in range(self._slots + 1):
            for state in sorted(reached):
                end = self._problem.add_variable(f"end_{stage}_{slot}_{state}", cat="Binary")
                self._ends[stage, slot, state] = end
                self._link((stage, slot, state), (stage + 1, 0, state), end)
            following: set[int] = set()
            for arc in self._usable if slot < self._slots else ():
                before, after = int(self._arcs.before[arc]), int(self._arcs.after[arc])
                if before in reached:
                    variable = self._problem.add_variable(f"arc_{stage}_{slot}_{arc}", cat="Binary")
                    self._flow[stage, slot, arc] = variable
                    self._link((stage, slot, before), (stage, slot + 1, after), variable)
                    following.add(after)
            reached = following

    def _link(self, source: Node, target: Node, variable: pulp.LpVariable) -> None:
        self._balance.setdefault(source, []).append((variable, 1))
        self._balance.setdefault(target, []).append((variable, -1))

    def _stage_terms(self, stage: int) -> list[tuple[pulp.LpVariable, float]]:
        """Return the time of a stage: its configurations, and what it sends on unless it is empty."""
        sends = self._model.sends_ns(members_of(self._arcs.down_sets, len(self._model.shares)))
        terms = [
            (variable, self._times[arc] / self._unit_ns)
            for (one, _, arc), variable in self._flow.items()
            if one == stage
        ]
        terms += [
            (variable, float(sends[state]) / self._unit_ns)
            for (one, slot, state), variable in self._ends.items()
            if one == stage and slot
        ]
        return terms

    def _limit_dram(self) -> None:
        capacity = self._model.design.machine.dram_bytes
        if not capacity:
            return
        arcs = self._arcs
        kept = arcs.members.astype(float) @ self._model.stage_bytes
        done = members_of(arcs.down_sets, len(self._model.shares))
        waiting = self._model.waiting_bytes(done[arcs.before], arcs.members[arcs.added])
        for stage in range(self._model.degrees.pipeline):
            inside = [(slot, arc, variable) for (one, slot, arc), variable in self._flow.items() if one == stage]
            for slot in range(self._slots):
                terms = [
                    (variable, float(kept[arcs.added[arc]] + waiting[arc] * (other == slot)) / capacity)
                    for other, arc, variable in inside
                ]
                self._problem += self._pulp.LpAffineExpression(terms) <= 1 + 1e-9

    def _fused(self) -> Fused:
        taken = sorted(key for key, variable in self._flow.items() if is_one(variable))
        sets = [self._arcs.sets[self._arcs.added[arc]] for _, _, arc in taken]
        times = [float(self._times[arc]) for _, _, arc in taken]
        return staged(self._model, sets, times, [stage for stage, _, _ in taken])
