"""Where onnxruntime deviates from ONNX, or ONNX leaves open what is right: each entry as narrow as it can be."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from tests.fuzz.comparison import difference
from tests.fuzz.draw import Array


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A node of a model whose value differs.

    Attributes:
        model: all of it.
        node: one of the model's.
        opset: its operator set.
        operands: what is known of the node's operands, by name: inputs and constants of the model.
        found: dfcompile's results of the model.
        expected: onnxruntime's.
        before: operators of the nodes before it.
    """

    model: onnx.ModelProto
    node: onnx.NodeProto
    opset: int
    operands: Mapping[str, Array]
    found: Mapping[str, Array]
    expected: Mapping[str, Array]
    before: frozenset[str]


@dataclass(frozen=True, slots=True)
class KnownDifference:
    """A reason why a value may differ from onnxruntime's.

    Attributes:
        op_types: of the nodes, one of which the model must have.
        reason: why onnxruntime is no oracle here.
        source: where that can be read.
        holds: whether it explains the disagreement.
    """

    op_types: str
    reason: str
    source: str
    holds: Callable[[Disagreement], bool]


def _only_undefined(case: Disagreement) -> bool:
    """Return whether onnxruntime's values are NaN wherever they differ."""
    without = {
        name: np.where(np.isnan(value), case.found[name], value) if value.dtype.kind == "f" else value
        for name, value in case.expected.items()
        if value.shape == case.found[name].shape
    }
    return len(without) == len(case.expected) and not difference(case.found, without, case.model)


def _only_smallest(case: Disagreement) -> bool:
    """Return whether onnxruntime has the smallest finite number wherever dfcompile has a negative infinity."""
    without = {
        name: np.where((case.found[name] == -np.inf) & (value == _SMALLEST[value.dtype.name]), -np.inf, value)
        for name, value in case.expected.items()
        if value.dtype.name in _SMALLEST and value.shape == case.found[name].shape
    }
    return not difference({name: case.found[name] for name in without}, without, case.model)


def _may_overflow(case: Disagreement) -> bool:
    """Return whether an input or constant has nearly an extreme integer, or a product of its own that is none."""
    of_product = case.node.input[0] if case.node.op_type == "ReduceProd" else ""
    for name, value in case.operands.items():
        if value.dtype.kind in "iu":
            sizes = np.abs(value.astype(np.float64))
            largest = float(np.prod(np.maximum(sizes, 1))) if name == of_product else float(np.max(sizes, initial=0))
            if largest > 2.0 ** (8 * value.dtype.itemsize - 2):
                return True
    return False


_SMALLEST = {"float32": float(np.finfo(np.float32).min), "float64": float(np.finfo(np.float64).min)}


def _is_infinite(case: Disagreement) -> bool:
    """Return whether an input or constant is infinite, and onnxruntime's values are NaN wherever they differ."""
    given = any(np.isinf(value).any() for value in case.operands.values() if value.dtype.kind == "f")
    return given and _only_undefined(case)


def _reads_undefined(case: Disagreement) -> bool:
    """Return whether a NaN can reach the node: from an input or constant, or of a function before it."""
    given = any(value.dtype.kind == "f" and np.isnan(value).any() for value in case.operands.values())
    return given or bool(_MAKES_UNDEFINED & case.before)


def _is_undefined_here(case: Disagreement) -> bool:
    """Return whether a NaN can reach the node, and dfcompile's values are NaN wherever they differ."""
    without = {
        name: np.where(np.isnan(case.found[name]), np.nan, value) if value.dtype == np.float64 else value
        for name, value in case.expected.items()
        if value.shape == case.found[name].shape
    }
    same = len(without) == len(case.expected) and not difference(case.found, without, case.model)
    return same and _reads_undefined(case)


def _is_of_integers_without_axes(case: Disagreement) -> bool:
    """Return whether a node that reduces over no axis has integer results that differ by one at most."""
    whole = any(entry.name == "noop_with_empty_axes" and entry.i for entry in case.node.attribute)
    return whole and all(
        value.dtype.kind in "iu" and bool(np.all(np.abs(np.subtract(value, case.found[name], dtype=np.float64)) <= 1))
        for name, value in case.expected.items()
    )


_MAKES_UNDEFINED = frozenset(
    [
        "Acos",
        "Acosh",
        "Asin",
        "Atanh",
        "Div",
        "Log",
        "MeanVarianceNormalization",
        "Mod",
        "Pow",
        "Reciprocal",
        "ReduceLogSum",
        "Sqrt",
    ]
)
KNOWN_DIFFERENCES = (
    KnownDifference(
        "ReduceMax ReduceMin",
        "the extremum of NaN and numbers: onnxruntime's depends on where a NaN stands and how many there are",
        "github.com/microsoft/onnxruntime/issues/10514",
        _reads_undefined,
    ),
    KnownDifference(
        "GlobalMaxPool MaxPool",
        "the maximum of NaN and numbers in a window: onnxruntime's depends on where a NaN stands",
        "tests/fuzz/test_known_differences.py",
        _reads_undefined,
    ),
    KnownDifference(
        "GlobalMaxPool MaxPool",
        "a window of negative infinities: onnxruntime begins with the smallest finite number",
        "tests/fuzz/test_known_differences.py",
        _only_smallest,
    ),
    KnownDifference(
        "ReduceL1 ReduceL2 ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare",
        "integers that overflow: what that gives is not defined; onnxruntime keeps to the largest in some kernels",
        "ISO C++ 7.1 (expr.pre) 4: a result that its type does not hold is undefined",
        _may_overflow,
    ),
    KnownDifference(
        "LRN",
        "an infinite element: onnxruntime slides its sum of squares along, which is inf - inf from then on",
        "tests/fuzz/test_known_differences.py",
        _is_infinite,
    ),
    KnownDifference(
        "Attention",
        "a row that is masked as a whole is 0; onnxruntime's is NaN in double precision",
        "onnx.defs: doc of Attention-24, errata; tests/fuzz/test_known_differences.py",
        _only_undefined,
    ),
    KnownDifference(
        "Attention",
        "masked scores are negative infinities; onnxruntime writes the smallest finite number",
        "onnx.defs: function body of Attention-23",
        _only_smallest,
    ),
    KnownDifference(
        "LogSoftmax",
        "NaN in double precision: a sum with it is NaN, and so is all of the row; onnxruntime's is a number",
        "tests/fuzz/test_known_differences.py",
        _is_undefined_here,
    ),
    KnownDifference(
        "ReduceLogSumExp",
        "integers without an axis: log(exp(x)) is x; onnxruntime rounds it to a little less and cuts that off",
        "tests/fuzz/test_known_differences.py",
        _is_of_integers_without_axes,
    ),
    KnownDifference(
        "BatchNormalization GroupNormalization InstanceNormalization",
        "an infinite operand: onnxruntime computes x (s / d) + (b - m s / d), which is inf - inf",
        "onnx.defs: doc of InstanceNormalization-6, y = scale * (x - mean) / sqrt(variance + epsilon) + B",
        _is_infinite,
    ),
    KnownDifference(
        "MeanVarianceNormalization",
        "onnxruntime divides by a variance of zero; by ONNX's definition 1e-9 is added to its root",
        "onnx.defs: function body of MeanVarianceNormalization-13",
        _only_undefined,
    ),
)


def known_reason(model: onnx.ModelProto, operands: Mapping[str, Array], found: Mapping[str, Array],
                 expected: Mapping[str, Array]) -> str:  # fmt: skip
    """Return why a difference is to be expected, or nothing."""
    opset = next((entry.version for entry in model.opset_import if entry.domain in {"", "ai.onnx"}), 0)
    for place, node in enumerate(model.graph.node):
        before = frozenset(earlier.op_type for earlier in model.graph.node[:place])
        case = Disagreement(model, node, opset, operands, found, expected, before)
        for known in KNOWN_DIFFERENCES:
            if node.op_type in known.op_types.split() and known.holds(case):
                return known.reason
    return ""
