"""From a set-up file of DFModel to its solution: what ``dfcompile SETUP`` does."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dfcompile.api.runs import PageSource, Picture, Reported
from dfcompile.audit.design import audit_design
from dfcompile.dfmodel_backend.check.designs import check_design, check_placements
from dfcompile.dfmodel_backend.check.recomputation import recompute_design
from dfcompile.dfmodel_backend.compatibility import parse_compatibility
from dfcompile.dfmodel_backend.design_file.message import read_message
from dfcompile.dfmodel_backend.design_file.reading import design_of
from dfcompile.dfmodel_backend.design_file.schema import dfmodel_pb2 as schema
from dfcompile.dfmodel_backend.fusion.fusion_solver import find_solver
from dfcompile.dfmodel_backend.options import DesignOptions, ShardingObjective
from dfcompile.dfmodel_backend.placement import PlacedConfiguration, place_design
from dfcompile.dfmodel_backend.solve.corrections import corrections_of
from dfcompile.dfmodel_backend.solve.design_search import DesignSolution, solve_design
from dfcompile.options import SetupOptions, read_options, takes
from dfcompile.options.readers import File
from dfcompile.report.design.figures import DesignReport
from dfcompile.report.design.summary import summarize_design
from dfcompile.visualization.dataflow import dataflow_of_design
from dfcompile.visualization.design import placement_svg, to_svg

STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DesignRun(Reported):
    """A solved design.

    Attributes:
        report: all figures.
        message: the file as it was read.
        solution: what was decided.
        placed: units on the grid, per configuration; none without a grid.
        file: that was read.
    """

    report: DesignReport
    message: schema.DSE
    solution: DesignSolution
    placed: tuple[PlacedConfiguration, ...]
    file: Path

    @property
    def answer(self) -> str:
        """The report in one line."""
        return f"{self.report.name}: {self.report.figures.time_s:.4g} s on {self.report.figures.chips:,} chips"

    @property
    def page_source(self) -> PageSource:
        """What a page shows beside the report: kernels and configurations."""
        return PageSource((self.file,), graph=dataflow_of_design(self.solution, self.report.name))

    def graph(self) -> Picture:
        """Return the kernels and the configurations that they are in."""
        return Picture(to_svg(self.solution))

    def placements(self) -> Mapping[int, Picture]:
        """Return the grid of the chip under each configuration that is placed, by its number."""
        design = self.solution.design
        return MappingProxyType({one.configuration: Picture(placement_svg(design, one)) for one in self.placed})


@takes(SetupOptions)
def solve(setup: File, **options: Any) -> DesignRun:
    """Solve a DFModel set-up file: shard its kernels, choose what it leaves open, fuse them.

    Args:
        setup: the file, text or binary.
        options: by name.

    Raises:
        UserError: the file contradicts itself, or nothing fits.
        InternalError: a bug of dfcompile.
    """
    return solved(read_options(SetupOptions, {"setup": setup, **options}))


def solved(asked: SetupOptions) -> DesignRun:
    """Solve a set-up file with options that were read already; see `solve`."""
    file = asked.setup
    options = DesignOptions(
        find_solver(asked.solver).name,
        ShardingObjective(asked.sharding_objective) if asked.sharding_objective else None,
        parse_compatibility(asked.compat),
    )
    message = read_message(file)
    solution = solve_design(design_of(message, str(file)), options)
    check_design(solution.design, solution.decision, solution.figures, options.compatibility)
    recompute_design(
        solution.design, solution.decision, solution.figures, solution.communication_bytes, options.compatibility
    )
    placed = place_design(solution.design, solution.decision, solution.figures, options.compatibility)
    check_placements(solution.design, solution.figures, placed)
    corrections = corrections_of(solution)
    report = summarize_design("stdin" if str(file) == STANDARD_INPUT else file.stem, solution, placed, corrections)
    audit_design(report, solution, placed, corrections)
    return DesignRun(report, message, solution, placed, file)
