"""Fusion of a design by the solver that was asked for; arcs between down-sets are listed once for many tile counts."""

import math

from dfcompile.dfmodel_backend.design import Design
from dfcompile.dfmodel_backend.design_arc_flow import fuse_design_by_arc_flow
from dfcompile.dfmodel_backend.design_assignment import fuse_design_by_assignment
from dfcompile.dfmodel_backend.design_model import DesignModel
from dfcompile.dfmodel_backend.design_options import DesignOptions
from dfcompile.dfmodel_backend.down_sets import DownSets
from dfcompile.dfmodel_backend.fusion_arcs import (
    Arcs,
    arcs_kernel_by_kernel,
    arcs_of,
    intervals_of,
    lattice_of,
    members_of,
)
from dfcompile.dfmodel_backend.intra_chip import Fused, fuse, is_kernel_by_kernel, kernel_by_kernel
from dfcompile.dfmodel_backend.options import MappingOptions, Solver
from dfcompile.dfmodel_backend.pipeline import fuse_stages
from dfcompile.dfmodel_backend.pipeline_arc_flow import fuse_stages_by_arc_flow
from dfcompile.dfmodel_backend.pipeline_bound import least_stage_ns


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
            self._singles = arcs_kernel_by_kernel(design)
            return
        self._milp = MappingOptions(solver=self.solver, time_limit_s=options.time_limit_s)
        if self.solver in (Solver.ASSIGNMENT_CBC, Solver.ASSIGNMENT_HIGHS):
            return
        lattice = None if options.solver is Solver.INTERVALS else lattice_of(design, options.max_down_sets)
        if lattice is None:
            self.solver, self.is_exact = Solver.INTERVALS, False
            lattice = intervals_of(design)
        self._lattice = lattice

    def fuse(self, model: DesignModel, below_ns: float = math.inf) -> Fused | None:
        """Return the fastest assignment, or None if nothing fits SRAM, DRAM and cores.

        A pipeline whose slowest stage takes more than ``below_ns`` is of no interest: None, too.
        """
        if self._by_kernel and not self._pipelined:
            return kernel_by_kernel(model, self._singles)
        if self.solver in (Solver.ASSIGNMENT_CBC, Solver.ASSIGNMENT_HIGHS):
            return fuse_design_by_assignment(model, self._milp)
        arcs = self._arcs(model)
        if self.solver in (Solver.CBC, Solver.HIGHS):
            by_arc_flow = fuse_stages_by_arc_flow if self._pipelined else fuse_design_by_arc_flow
            return by_arc_flow(model, arcs, self._milp)
        return fuse_stages(model, arcs, below_ns) if self._pipelined else fuse(model, arcs)

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
            assert self._lattice is not None
            self._known[held] = arcs_of(model, self._lattice)
        return self._known[held]
