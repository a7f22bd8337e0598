"""Where integers of quantised data differ from onnxruntime's."""

import numpy as np

from tests.fuzz.disagreement import Disagreement, KnownDifference
from tests.fuzz.draw import Array


def _along(case: Disagreement, values: Array) -> Array:
    """Return scales or zero points so that they stand beside the data."""
    x = case.operands[case.node.input[0]]
    named = {entry.name: entry.i for entry in case.node.attribute}
    axis, block = named.get("axis", 1), named.get("block_size", 0)
    if block:
        return np.repeat(values, block, axis).take(range(x.shape[axis]), axis)
    if values.size == 1:
        return values.reshape(())
    return np.expand_dims(values, [other for other in range(x.ndim) if other != axis % x.ndim])


def _steps(case: Disagreement) -> Array:
    """Return the data over their scales."""
    x, scales = (case.operands[name] for name in case.node.input[:2])
    with np.errstate(all="ignore"):
        return np.divide(x, _along(case, scales), dtype=np.float32)


def _beyond(case: Disagreement, expected: Array) -> Array:
    """Return what the least 32-bit integer and a zero point become: if that is negative, it passes the least one."""
    least = np.full_like(expected, expected.min())
    if len(case.node.input) < 3 or expected.dtype.kind not in "iu":
        return least
    is_negative = np.less(_along(case, case.operands[case.node.input[2]]), 0)
    return np.asarray(np.where(is_negative, np.iinfo(expected.dtype.name).max, least))


def _quantises_infinite_halves(case: Disagreement) -> bool:
    """Return whether an element that differs is infinitely many steps, and onnxruntime made an integer of it first."""
    x, (found,), (expected,) = case.operands[case.node.input[0]], case.found.values(), case.expected.values()
    if x.dtype != np.float16 or found.shape != x.shape:
        return False
    is_excused = np.isinf(_steps(case)) & (expected == _beyond(case, expected))
    return bool(np.all((found == expected) | is_excused))


def _quantises_undefined(case: Disagreement) -> bool:
    """Return whether steps are NaN wherever the results differ, or infinitely many in blocks of an axis."""
    x, (found,), (expected,) = case.operands[case.node.input[0]], case.found.values(), case.expected.values()
    if x.dtype.kind != "f" or found.shape != x.shape:
        return False
    differs = _steps(case)[found != expected]
    in_blocks = any(entry.name == "block_size" and entry.i for entry in case.node.attribute)
    return bool(np.all(~np.isfinite(differs) if in_blocks else np.isnan(differs)))


def _has_no_range(case: Disagreement) -> bool:
    """Return whether the data have a NaN or an infinity, so that the distance of two steps is none of real numbers."""
    return not bool(np.isfinite(case.operands[case.node.input[0]]).all())


QUANTISED_DIFFERENCES = (
    KnownDifference(
        "QuantizeLinear",
        "infinite in half precision: onnxruntime makes it an integer first, the least one, and adds the zero point, "
        "so that a negative one gives the largest",
        "tests/fuzz/test_known_differences.py",
        _quantises_infinite_halves,
    ),
    KnownDifference(
        "QuantizeLinear",
        "NaN, or an infinity in blocks: onnxruntime makes it the least 32-bit integer and adds the zero point, "
        "so that a negative one gives the largest",
        "onnx.defs: QuantizeLinear-21 speaks of no NaN; tests/fuzz/test_known_differences.py",
        _quantises_undefined,
    ),
    KnownDifference(
        "DynamicQuantizeLinear",
        "NaN or infinity: the scale is one of both, and a step an integer made of 0 * inf or inf / inf",
        "onnx.defs: formulas of DynamicQuantizeLinear-11; tests/fuzz/test_known_differences.py",
        _has_no_range,
    ),
)
