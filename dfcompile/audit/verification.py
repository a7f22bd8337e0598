"""The audit of the part on verification: differences of outputs, from the outputs that were compared."""

import numpy as np

from dfcompile.audit.comparing import ROUNDING, expect, expect_figures
from dfcompile.lowering.execution.verification import Array, Outputs
from dfcompile.report.figures import VerificationSummary
from dfcompile.variants import Variant


def audit_verification(where: str, summary: VerificationSummary | None, variant: Variant) -> None:
    """Compare the outputs of the lowered model and of the original anew.

    Raises:
        VerificationError: naming the figure, as found and as recomputed.
    """
    deviation, effect = variant.deviation, variant.effect_of_inputs
    if summary is None or deviation is None:
        expect(f"{where}: whether there is one", summary is not None, deviation is not None)
        return
    largest, part = (_largest(deviation.outputs, are_parts=are_parts) for are_parts in (False, True))
    change = None if effect is None else _largest(effect.outputs, are_parts=True, are_finite=True)
    expect_figures(where, summary, ROUNDING, max_abs_error=largest, max_rel_error=part, effect_of_inputs=change)


def _largest(outputs: Outputs, *, are_parts: bool, are_finite: bool = False) -> float:
    """Return the largest difference of two elements at one place.

    Args:
        outputs: each as it should be, and as it was found.
        are_parts: of the largest finite value of the same output, where that is not 0.
        are_finite: whether elements count only where both are finite; an output of another shape is another one.
    """
    largest = 0.0
    for expected, found in outputs:
        if expected.shape != found.shape:
            largest = max(largest, 1.0)
            continue
        exact, ours = _wide(expected), _wide(found)
        counted = np.isfinite(exact)
        differs = ~((exact == ours) | (np.isnan(exact) & np.isnan(ours)))
        if are_finite:
            counted &= np.isfinite(ours)
            differs &= counted
        with np.errstate(invalid="ignore"):
            difference = float(np.abs(ours[differs] - exact[differs]).max(initial=0.0))
        scale = float(np.abs(exact[counted]).max(initial=0.0)) if are_parts else 0.0
        largest = max(largest, difference / scale if scale else difference)
    return largest


def _wide(values: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.complex128]]:
    return np.asarray(values).astype(np.complex128)
