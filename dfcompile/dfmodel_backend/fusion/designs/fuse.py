"""Fusion of a design by the solver that was asked for; arcs between down-sets are listed once for many tile counts."""

import math

from dfcompile.dfmodel_backend.design_options import DesignOptions
from dfcompile.dfmodel_backend.fusion.designs.sets import DesignSets
from dfcompile.dfmodel_backend.fusion.designs.shape import shape_of
from dfcompile.dfmodel_backend.fusion.fuse import ARC_FLOW, ASSIGNMENT, fuse_listed, lattice_for
from dfcompile.dfmodel_backend.fusion.pipelines.arc_flow import fuse_stages_by_arc_flow
from dfcompile.dfmodel_backend.fusion.pipelines.bound import least_stage_ns
from dfcompile.dfmodel_backend.fusion.pipelines.partition import fuse_stages, staged
from dfcompile.dfmodel_backend.fusion.solvers.assignment import fuse_by_assignment
from dfcompile.dfmodel_backend.intra_chip.configuration_times import (
    Fused,
    configs_of,
    is_kernel_by_kernel,
    kernel_by_kernel,
)
from dfcompile.dfmodel_backend.intra_chip.sharded_design import DesignModel
from dfcompile.dfmodel_backend.kernel_sets.arcs import Arcs, arcs_kernel_by_kernel, arcs_of, arcs_within, members_of
from dfcompile.dfmodel_backend.kernel_sets.down_sets import DownSets
from dfcompile.dfmodel_backend.milp import Outcome
from dfcompile.dfmodel_backend.options import MappingOptions, Solver
from dfcompile.dfmodel_backend.workload.design import Design


class DesignFusion:
    """Fuses models of one design: the graph is the same, weights change with the degrees."""

    def __init__(self, design: Design, options: DesignOptions) -> None:
        self._options = options
        self._by_kernel = is_kernel_by_kernel(design)
        self._known: dict[tuple[float, ...], Arcs] = {}  # by the weights of all kernels
        self._pipelined = design.execution.batch.layers_in_graph > 1
        self.solver = options.solver
        self.is_exact = True
        self._lattice: DownSets | None = None
        if self._by_kernel and not self._pipelined:
            self._singles = arcs_kernel_by_kernel(len(design.kernels))
            return
        if self.solver in ASSIGNMENT and design.machine.pmu is not None:
            self.solver = Solver.DP  # the assignment does not know memory units
        self._milp = MappingOptions(solver=self.solver, time_limit_s=options.time_limit_s)
        if self.solver in ASSIGNMENT:
            return
        self._lattice, self.solver = lattice_for(shape_of(design), self.solver, options.max_down_sets)
        self.is_exact = self.solver is not Solver.INTERVALS

    def fuse(self, model: DesignModel, below_ns: float = math.inf) -> Fused | None:
        """Return the fastest assignment, or None if nothing fits SRAM, DRAM and cores.

        A pipeline whose slowest stage takes more than ``below_ns`` is of no interest: None, too.
        """
        if self._by_kernel and not self._pipelined:
            return kernel_by_kernel(model, self._singles)
        if self._pipelined:
            return self._fuse_stages(model, below_ns)
        costs = DesignSets(model)
        arcs = None if self.solver in ASSIGNMENT else self._arcs(model)  # which may change the solver
        found = fuse_listed(costs, arcs, self._milp, is_complete=self.solver is not Solver.INTERVALS)
        self.is_exact = self.is_exact and found.is_optimal
        return None if found.chain is None else Fused(configs_of(model, found.chain), found.time_ns)

    def _fuse_stages(self, model: DesignModel, below_ns: float) -> Fused | None:
        costs = DesignSets(model)
        if self.solver not in ASSIGNMENT:
            self._arcs(model)  # which may change the solver
        if self.solver in ARC_FLOW:
            found, outcome = fuse_stages_by_arc_flow(model, self._arcs(model), self._milp)
        elif self.solver in ASSIGNMENT:
            chain, outcome = fuse_by_assignment(costs.terms(), costs.shape, costs.overlap, costs.counted, self._milp)
            found = None if chain is None else staged(model, chain, costs.set_times(chain), costs.shape.stages)
        else:
            return fuse_stages(model, self._arcs(model), below_ns)
        self.is_exact = self.is_exact and outcome in (Outcome.OPTIMAL, Outcome.INFEASIBLE)
        if outcome is Outcome.NOTHING:
            return fuse_stages(model, arcs_of(costs.shape, costs.shape.intervals(), costs.may_grow), below_ns)
        return found

    def least_ns(self, model: DesignModel) -> float:
        """Return a time that no assignment beats: of the slowest stage, if stages of a pipeline share a graph."""
        if not self._pipelined:
            return model.least_ns()
        if self._lattice is None or not self.is_exact:
            return model.least_ns() / model.degrees.pipeline
        return least_stage_ns(model, members_of(tuple(self._lattice), len(model.shares)))

    def _arcs(self, model: DesignModel) -> Arcs:
        held = tuple(model.growth_limit[0].tolist())
        if held not in self._known:
            costs = DesignSets(model)
            assert self._lattice is not None
            arcs = arcs_within(costs.shape, self._lattice, costs.may_grow, self._options.max_arcs)
            if arcs is None:
                self._lattice, self.solver, self.is_exact = costs.shape.intervals(), Solver.INTERVALS, False
                arcs = arcs_of(costs.shape, self._lattice, costs.may_grow)
            self._known[held] = arcs
        return self._known[held]
