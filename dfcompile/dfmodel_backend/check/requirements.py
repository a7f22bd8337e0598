"""Comparisons that the checks share, and two figures that they recompute: combined times, longest paths."""

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.errors import VerificationError

EXACT = 1e-12  # relative tolerance of floating-point sums that are added up in another order

Name = TypeVar("Name", int, str)


def combined_ns(overlap: Overlap, compute_ns: float, memory_ns: float, network_ns: float) -> float:
    """Return the time of compute, memory and network together under an overlap rule, in ns [ko24, section 5]."""
    match overlap:
        case Overlap.PERFECT_OVERLAP:
            return max(compute_ns, memory_ns, network_ns)
        case Overlap.NO_OVERLAP:
            return compute_ns + memory_ns + network_ns
        case Overlap.OVERLAP_COMPUTE_MEMORY:
            return max(compute_ns, memory_ns) + network_ns


def longest_paths(kernels: Iterable[Name], edges: Sequence[tuple[Name, Name]]) -> dict[Name, int]:
    """Return the number of edges of the longest path to each kernel, by relaxing all edges until nothing changes."""
    levels, changed = dict.fromkeys(kernels, 0), True
    while changed:
        changed = False
        for source, target in edges:
            if levels[target] <= levels[source]:
                levels[target], changed = levels[source] + 1, True
    return levels


def require(figure: str, reported: object, expected: object) -> None:
    """Require that a reported value is the expected one; the error begins with the name of the figure.

    Raises:
        VerificationError: they differ.
    """
    if reported != expected:
        raise VerificationError(f"{figure}: found {reported} against {expected}")


def require_close(figure: str, reported: float, expected: float, relative: float = EXACT) -> None:
    """Require that a reported value is the expected one within a relative tolerance.

    Raises:
        VerificationError: they differ by more.
    """
    if not math.isclose(reported, expected, rel_tol=relative, abs_tol=1e-15):
        raise VerificationError(f"{figure}: found {reported} against {expected}")


def require_at_most(figure: str, reported: float, most: float, relative: float = EXACT) -> None:
    """Require that a reported value is at most ``most``, within a relative tolerance.

    Raises:
        VerificationError: it is larger.
    """
    if reported > most * (1 + relative):
        raise VerificationError(f"{figure}: found {reported} against at most {most}")
