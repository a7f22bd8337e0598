"""What checks require of figures: equal, close or at most, in the words found and expected."""

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from dfcompile.dfmodel_backend.options import Overlap
from dfcompile.errors import VerificationError

EXACT = 1e-12  # relative: floating-point sums in another order


Name = TypeVar("Name", int, str)


def joined(overlap: Overlap, compute_ns: float, memory_ns: float, network_ns: float) -> float:
    """Return the time of all in ns, as the overlap rule has it [ko24, section 5]."""
    match overlap:
        case Overlap.PERFECT_OVERLAP:
            return max(compute_ns, memory_ns, network_ns)
        case Overlap.NO_OVERLAP:
            return compute_ns + memory_ns + network_ns
        case Overlap.OVERLAP_COMPUTE_MEMORY:
            return max(compute_ns, memory_ns) + network_ns


def longest_paths(kernels: Iterable[Name], edges: Sequence[tuple[Name, Name]]) -> dict[Name, int]:
    """Return the length of the longest path to each kernel, by relaxing all edges until nothing changes."""
    levels, changed = dict.fromkeys(kernels, 0), True
    while changed:
        changed = False
        for source, target in edges:
            if levels[target] <= levels[source]:
                levels[target], changed = levels[source] + 1, True
    return levels


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
