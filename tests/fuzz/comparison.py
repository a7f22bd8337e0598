"""Whether two results of a model are the same, as far as rounding leaves it open."""

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx

from tests.fuzz.draw import Array

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Of double precision onnxruntime computes some functions in single precision steps.
ROUNDING = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 1e-9}
LONGEST = 600  # terms of a sum
# In single precision: as `stash_type` says, or as onnxruntime does.
STASHED = frozenset(["GroupNormalization", "LayerNormalization", "RMSNormalization", "Shrink"])
# Where a little less or more is something else; of the logarithm and the like, beyond the border of what is defined.
JUMPING = frozenset(
    ["Acos", "Acosh", "ArgMax", "ArgMin", "Asin", "Atanh", "BitShift", "Cast", "CastLike", "Ceil", "Div", "Equal",
     "Floor", "Greater", "GreaterOrEqual", "Hardmax", "IsInf", "IsNaN", "Less", "LessOrEqual", "Log", "Mod",
     "OneHot", "Pow", "Reciprocal", "ReduceLogSum", "Round", "Shrink", "Sign", "Sqrt", "Tan", "ThresholdedRelu",
     "Where"]
)  # fmt: skip
# What has one right result for the operands that are read, of arithmetic that which is nearest.
EXACT = frozenset(
    ["Abs", "Add", "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor",
     "Cast", "CastLike", "Ceil", "CenterCropPad", "Clip", "Concat", "DepthToSpace", "Div", "Dropout", "Equal",
     "Expand", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Hardmax",
     "Identity", "IsInf", "IsNaN", "Less", "LessOrEqual", "Max", "Min", "Mul", "Neg", "Not", "OneHot", "Or", "Pad",
     "Reciprocal", "ReduceMax", "ReduceMin", "Relu", "Reshape", "Round", "Sign", "Slice", "SpaceToDepth", "Split",
     "Sqrt", "Squeeze", "Sub", "ThresholdedRelu", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor"]
)  # fmt: skip


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
    for name, value in expected.items():
        text = _array_difference(found[name], value, model, longest)
        if text:
            return f"output {name!r}: {text}"
    return ""


def wrong_elements(found: Array, expected: Array, model: onnx.ModelProto, longest: int = LONGEST) -> Bools:
    """Return which elements of two arrays of one type and shape differ; the arguments are those of `difference`."""
    if expected.dtype.kind == "V":  # real numbers of a few bits: compared as what they stand for
        found, expected = found.astype(np.float32), expected.astype(np.float32)
        return np.asarray((found != expected) & ~(np.isnan(found) & np.isnan(expected)))
    if expected.dtype.kind != "f":
        return np.asarray(found != expected)
    coarse = any(node.op_type in STASHED for node in model.graph.node)
    tolerance = _tolerance(expected, longest, coarse=coarse)
    return _beyond(found.astype(np.float64), expected.astype(np.float64), tolerance)


def _array_difference(found: Array, expected: Array, model: onnx.ModelProto, longest: int) -> str:
    if (found.dtype, found.shape) != (expected.dtype, expected.shape):
        return f"{found.dtype}{list(found.shape)} against {expected.dtype}{list(expected.shape)}"
    wrong = wrong_elements(found, expected, model, longest)
    if not wrong.any():
        return ""
    place = tuple(int(index) for index in np.argwhere(wrong)[0])
    return f"{wrong.sum()} of {wrong.size} elements, {list(place)} is {found[place]} against {expected[place]}"


def _tolerance(expected: Array, longest: int, *, coarse: bool) -> float:
    """Return what rounding may amount to: of sums as long as the largest operand, of the largest result."""
    finite = np.abs(expected[np.isfinite(expected)].astype(np.float64))
    scale = max(1.0, float(finite.max(initial=0.0)))
    rounding = ROUNDING["float32" if coarse and expected.dtype == np.float64 else expected.dtype.name]
    return rounding * scale * (32 + 4 * math.sqrt(longest))


def _beyond(found: Floats, expected: Floats, tolerance: float) -> Bools:
    exact = (found == expected) | (np.isnan(found) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        near = np.abs(found - expected) <= tolerance
    return np.asarray(~(exact | near))
