"""Designs that are solved, placed and summed up, with what their audit asks for."""

from dataclasses import dataclass

from dfcompile.audit.design import audit_design
from dfcompile.dfmodel_backend import Correction, DesignSolution, PlacedConfiguration
from dfcompile.dfmodel_backend.compatibility import RIGHT, Compatibility
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.placement import place_design
from dfcompile.dfmodel_backend.solve.corrections import corrections_of
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.report.design.figures import DesignReport
from dfcompile.report.design.summary import summarize_design


@dataclass(frozen=True, slots=True, eq=False)
class AuditedDesign:
    """A report on a design."""

    report: DesignReport
    solution: DesignSolution
    placed: tuple[PlacedConfiguration, ...]
    corrections: tuple[Correction, ...]

    def audit(self, report: DesignReport) -> None:
        """Audit another report on the same solution."""
        audit_design(report, self.solution, self.placed, self.corrections)


def audited(design: Design, compatibility: Compatibility = RIGHT) -> AuditedDesign:
    """Return the report on a design.

    Raises:
        UserError: nothing fits.
    """
    solution = solve_design(design, DesignOptions(compatibility=compatibility))
    placed = place_design(solution.design, solution.decision, solution.figures, compatibility)
    corrections = corrections_of(solution)
    return AuditedDesign(summarize_design("design", solution, placed, corrections), solution, placed, corrections)
