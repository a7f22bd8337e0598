"""What checks require of figures: equal, close or at most, in the words found and expected."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.errors import VerificationError

if TYPE_CHECKING:
    from dfcompile.dfmodel_backend.attained.kernel_figures import KernelFigures
    from dfcompile.dfmodel_backend.attained.task_model import TaskConfiguration
    from dfcompile.dfmodel_backend.evaluate.graphs import Configuration

EXACT = 1e-12  # relative: floating-point sums in another order


def joined(one: KernelFigures | TaskConfiguration | Configuration, overlap: Overlap) -> float:
    """Return the time of all in ns, as the overlap rule has it [ko24, section 5]."""
    match overlap:
        case Overlap.PERFECT_OVERLAP:
            return max(one.compute_ns, one.memory_ns, one.network_ns)
        case Overlap.NO_OVERLAP:
            return one.compute_ns + one.memory_ns + one.network_ns
        case Overlap.OVERLAP_COMPUTE_MEMORY:
            return max(one.compute_ns, one.memory_ns) + one.network_ns


def require(what: str, found: object, expected: object) -> None:
    """Require that two values are equal.

    Raises:
        VerificationError: they are not.
    """
    if found != expected:
        raise VerificationError(f"{what}: found {found} against {expected}")


def require_close(what: str, found: float, expected: float, relative: float = EXACT) -> None:
    """Require that two values are equal but for rounding.

    Raises:
        VerificationError: they are not.
    """
    if not math.isclose(found, expected, rel_tol=relative, abs_tol=1e-15):
        raise VerificationError(f"{what}: found {found} against {expected}")


def require_at_most(what: str, found: float, most: float, relative: float = EXACT) -> None:
    """Require that a value is no larger than another, but for rounding.

    Raises:
        VerificationError: it is.
    """
    if found > most * (1 + relative):
        raise VerificationError(f"{what}: found {found} against at most {most}")
