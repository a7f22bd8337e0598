"""Compares what is reported of a design with what the pure evaluator says of the decision alone.

The evaluator gets what was decided, and a model of its own: nothing that a solver kept or computed.
"""

from dfcompile.dfmodel_backend.check.recomputation import reject_differences
from dfcompile.dfmodel_backend.compatibility import Compatibility
from dfcompile.dfmodel_backend.evaluate.designs import Decision, DesignFigures, evaluate_design
from dfcompile.dfmodel_backend.evaluate.sharding import sharding_bytes
from dfcompile.dfmodel_backend.workload.design import Design


def recompute_design(
    design: Design, decision: Decision, figures: DesignFigures, moved_bytes: float, compatibility: Compatibility
) -> None:
    """Compare every figure of a solved design with the evaluator's.

    Args:
        design: with its degrees.
        decision: what was decided of it.
        figures: as they will be reported.
        moved_bytes: by the sharding, as they will be reported.
        compatibility: of the figures.

    Raises:
        VerificationError: naming the figure, found against expected.
    """
    reject_differences(figures, evaluate_design(design, decision, compatibility))
    expected_bytes = sharding_bytes(design, decision.sharding, compatibility)
    reject_differences({"sharding_bytes": moved_bytes}, {"sharding_bytes": expected_bytes})
