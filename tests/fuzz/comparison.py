"""Whether two results of a model are the same, as far as rounding leaves it open."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx

from tests.fuzz.draw import Array

Floats = npt.NDArray[np.float64]

# Of double precision onnxruntime computes some functions in single precision steps.
_ROUNDING = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 1e-9}
LONGEST = 600  # terms of a sum
_STASHED = "GroupNormalization LayerNormalization RMSNormalization"  # in single precision, as `stash_type` says
# Where a little less or more is something else; of the logarithm and the like, beyond the border of what is defined.
_JUMPING = """
    Acos Acosh ArgMax ArgMin Asin Atanh BitShift Cast CastLike Ceil Div Equal Floor Greater GreaterOrEqual Hardmax IsInf
    IsNaN Less LessOrEqual Log Mod OneHot Pow Reciprocal ReduceLogSum Round Shrink Sign Sqrt Tan ThresholdedRelu Where
"""
_EXACT = """
    Abs And Cast CastLike Clip Concat DepthToSpace Equal Expand Flatten Gather GatherElements Greater GreaterOrEqual
    Identity Less LessOrEqual Max Min Neg Not Or Pad Relu Reshape Sign Slice SpaceToDepth Split Squeeze Tile Transpose
    Trilu Unsqueeze Where Xor
"""


def difference(
    found: Mapping[str, Array], expected: Mapping[str, Array], model: onnx.ModelProto, longest: int = LONGEST
) -> str:
    """Return what differs, or nothing.

    Args:
        found: results by name.
        expected: results by name.
        model: that gives them.
        longest: elements of the largest operand; a sum may have as many terms.
    """
    coarse = any(node.op_type in _STASHED.split() for node in model.graph.node)
    for name, value in expected.items():
        text = _array_difference(found[name], value, _tolerance(value, longest, coarse=coarse))
        if text:
            return f"output {name!r}: {text}"
    return ""


def _array_difference(found: Array, expected: Array, tolerance: float) -> str:
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype}{list(found.shape)} against {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind != "f":
        wrong = np.asarray(found != expected)
    else:
        wrong = _beyond(found.astype(np.float64), expected.astype(np.float64), tolerance)
    if not wrong.any():
        return ""
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} elements, {list(place)} is {found[place]} against {expected[place]}"


def _tolerance(expected: Array, longest: int, *, coarse: bool) -> float:
    """Return what rounding may amount to: of sums as long as the largest operand, of the largest result."""
    if expected.dtype.kind != "f":
        return 0.0
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    scale = max(1.0, float(finite.max(initial=0.0)))
    rounding = _ROUNDING["float32" if coarse and expected.dtype == np.float64 else expected.dtype.name]
    return rounding * scale * (32 + 4 * math.sqrt(longest))


def _beyond(found: Floats, expected: Floats, tolerance: float) -> Array:
    exact = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        near = np.abs(found - expected) <= tolerance
    return np.asarray(~(exact | near))


def is_conclusive(model: onnx.ModelProto) -> bool:
    """Return whether rounding cannot be magnified: no step function reads what was rounded."""
    rounded: set[str] = set()
    for node in model.graph.node:
        reads_rounded = bool(rounded.intersection(node.input))
        if reads_rounded and node.op_type in _JUMPING.split():
            return False
        if reads_rounded or node.op_type not in _EXACT.split():
            rounded.update(node.output)
    return True
