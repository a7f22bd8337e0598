"""Where onnxruntime deviates from ONNX, or ONNX leaves open what is right: each entry as narrow as it can be."""

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import onnx

from tests.fuzz.attention_differences import ATTENTION_DIFFERENCES
from tests.fuzz.comparison import LONGEST, Floats, difference
from tests.fuzz.disagreement import Disagreement, KnownDifference
from tests.fuzz.draw import Array
from tests.fuzz.quantised_differences import QUANTISED_DIFFERENCES
from tests.fuzz.recurrent_differences import RECURRENT_DIFFERENCES
from tests.fuzz.resize_differences import RESIZE_DIFFERENCES


def _only_where(case: Disagreement, excused: Callable[[Array], npt.NDArray[np.bool_]]) -> bool:
    """Return whether what is excused of onnxruntime's values is all that differs."""
    without = {
        name: np.where(excused(value), case.found[name], value) if value.dtype.kind == "f" else value
        for name, value in case.expected.items()
        if value.shape == case.found[name].shape
    }
    return len(without) == len(case.expected) and not difference(case.found, without, case.model, case.longest)


def _only_undefined(case: Disagreement) -> bool:
    """Return whether onnxruntime's values are NaN wherever they differ."""
    return _only_where(case, np.isnan)


def _only_divided_by_zero(case: Disagreement) -> bool:
    """Return whether onnxruntime's values are NaN or infinite wherever they differ."""
    return _only_where(case, lambda value: ~np.isfinite(value))


def _only_smallest(case: Disagreement) -> bool:
    """Return whether onnxruntime has the smallest finite number wherever dfcompile has a negative infinity."""
    without = {
        name: np.where((case.found[name] == -np.inf) & (value == _SMALLEST[value.dtype.name]), -np.inf, value)
        for name, value in case.expected.items()
        if value.dtype.name in _SMALLEST and value.shape == case.found[name].shape
    }
    return not difference({name: case.found[name] for name in without}, without, case.model, case.longest)


def _may_overflow(case: Disagreement) -> bool:
    """Return whether the data are integers, and a reduction of their sizes is too large for their type or a double."""
    data = case.operands[case.node.input[0]]
    if data.dtype.kind not in "iu":
        return False
    largest = _REDUCED_SIZES[case.node.op_type](np.abs(data.astype(np.float64)))
    if case.node.op_type == "ReduceLogSumExp" and data.dtype.kind == "u" and largest > _LARGEST_EXPONENT:
        return True  # of signed ones the largest is subtracted before
    # The mean of what a type holds is such a number; only the sum may be none of double precision.
    held = np.inf if case.node.op_type == "ReduceMean" else float(np.iinfo(data.dtype.name).max)
    return largest > min(held, _LARGEST_EXACT)


def _may_overflow_in_einsum(case: Disagreement) -> bool:
    """Return whether the operands are integers, and sums of products of their sizes are too large for double precision.

    onnxruntime sums by its reductions.
    """
    operands = [case.operands[name] for name in case.node.input]
    equation = next((entry.s.decode() for entry in case.node.attribute if entry.name == "equation"), "")
    if any(value.dtype.kind not in "iu" for value in operands):
        return False
    sums = np.einsum(equation.replace(" ", ""), *(np.abs(value.astype(np.float64)) for value in operands))
    held = float(np.iinfo(operands[0].dtype.name).max)
    return float(np.max(sums, initial=0)) > min(held, _LARGEST_EXACT)


_LARGEST_EXACT = 2.0**53
_LARGEST_EXPONENT = float(np.log(np.finfo(np.float64).max))
_REDUCED_SIZES: Mapping[str, Callable[[Floats], float]] = {
    "ReduceL1": lambda sizes: float(np.sum(sizes)),
    "ReduceL2": lambda sizes: float(np.sqrt(np.sum(sizes * sizes))),
    "ReduceLogSumExp": lambda sizes: float(np.max(sizes, initial=0) + np.log(max(1, sizes.size))),
    "ReduceMean": lambda sizes: float(np.sum(sizes)),
    "ReduceProd": lambda sizes: float(np.prod(np.maximum(sizes, 1))),
    "ReduceSum": lambda sizes: float(np.sum(sizes)),
    "ReduceSumSquare": lambda sizes: float(np.sum(sizes * sizes)),
}
_SMALLEST = {"float32": float(np.finfo(np.float32).min), "float64": float(np.finfo(np.float64).min)}


def _is_infinite(case: Disagreement) -> bool:
    """Return whether an operand is infinite, and onnxruntime's values are NaN wherever they differ."""
    given = any(np.isinf(value).any() for value in case.operands.values() if value.dtype.kind == "f")
    return given and _only_undefined(case)


def _is_not_finite(case: Disagreement) -> bool:
    """Return whether an operand has a NaN or an infinity, and onnxruntime's values are NaN wherever they differ."""
    return (_reads_undefined(case) or _is_infinite(case)) and _only_undefined(case)


def _is_infinite_in_between(case: Disagreement) -> bool:
    """Return whether an operand is infinite, or all results that onnxruntime has as NaN are."""
    results = all(
        np.isinf(case.found[name][np.isnan(value) & ~np.isnan(case.found[name])]).all()
        for name, value in case.expected.items()
        if value.dtype.kind == "f" and value.shape == case.found[name].shape
    )
    return _is_infinite(case) or (results and _only_undefined(case))


def _reads_undefined(case: Disagreement) -> bool:
    """Return whether an operand has a NaN."""
    return any(value.dtype.kind == "f" and bool(np.isnan(value).any()) for value in case.operands.values())


def _ranks_undefined(case: Disagreement) -> bool:
    """Return whether a NaN is ranked: whatever is before or behind it."""
    data = case.operands[case.node.input[0]]
    return data.dtype.kind == "f" and bool(np.isnan(data).any())


def _is_undefined_here(case: Disagreement) -> bool:
    """Return whether an operand has a NaN or an infinity, and dfcompile's values are NaN wherever they differ."""
    without = {
        name: np.where(np.isnan(case.found[name]), np.nan, value) if value.dtype.kind == "f" else value
        for name, value in case.expected.items()
        if value.shape == case.found[name].shape
    }
    same = len(without) == len(case.expected) and not difference(case.found, without, case.model, case.longest)
    return same and any(
        value.dtype.kind == "f" and not bool(np.isfinite(value).all()) for value in case.operands.values()
    )


def _attends_to_nothing(case: Disagreement) -> bool:
    """Return whether an operand is not finite, and dfcompile's values are NaN or zero wherever they differ."""
    without = {
        name: np.where(np.isnan(found) | (found == 0), found, case.expected[name])
        for name, found in case.found.items()
        if found.shape == case.expected[name].shape
    }
    same = len(without) == len(case.expected) and not difference(case.found, without, case.model, case.longest)
    return same and any(
        value.dtype.kind == "f" and not bool(np.isfinite(value).all()) for value in case.operands.values()
    )


def _is_one_causal_query(case: Disagreement) -> bool:
    """Return whether one query has several new keys behind those of a cache, and may attend to the first of them."""
    names = dict(enumerate(case.node.input))
    if not any(entry.name == "is_causal" and entry.i for entry in case.node.attribute) or not names.get(4):
        return False
    queries, keys = (case.operands[names[position]] for position in (0, 1))
    return bool(queries.shape[-2] == 1 < keys.shape[-2])


def _is_undefined_here_in_double_precision(case: Disagreement) -> bool:
    """Return whether that holds, and all results are of double precision."""
    return _is_undefined_here(case) and all(value.dtype == np.float64 for value in case.expected.values())


def _updates_undefined(case: Disagreement) -> bool:
    """Return whether it is the least or largest of updates, and dfcompile has a NaN wherever they differ."""
    names = [entry.s for entry in case.node.attribute if entry.name == "reduction"]
    return names in ([b"min"], [b"max"]) and _reads_undefined(case) and _is_undefined_here(case)


def _is_remainder_of_long_integers(case: Disagreement) -> bool:
    """Return whether the node is an fmod of integers, one of which double precision may not hold."""
    is_fmod = any(entry.name == "fmod" and entry.i for entry in case.node.attribute)
    return is_fmod and any(
        value.dtype.kind in "iu" and bool(np.any(np.abs(value.astype(np.float64)) >= 2.0**53))
        for value in case.operands.values()
    )


def _is_infinity_of_largest(found: Array, expected: Array) -> npt.NDArray[np.bool_]:
    """Return where an infinity was found for the largest finite number of its sign."""
    largest = np.finfo(expected.dtype.name).max
    ours, theirs = found.astype(np.float64), expected.astype(np.float64)
    is_pair: npt.NDArray[np.bool_] = (
        np.isinf(ours) & (np.abs(theirs) == float(largest)) & (np.signbit(ours) == np.signbit(theirs))
    )
    return is_pair


def _only_largest(case: Disagreement) -> bool:
    """Return whether a bound is omitted, and onnxruntime has the largest finite number for dfcompile's infinity."""
    omits = len(list(filter(None, case.node.input))) < 3  # the data and two bounds
    without = {
        name: np.where(_is_infinity_of_largest(case.found[name], value), case.found[name], value)
        for name, value in case.expected.items()
        if value.dtype.kind == "f" and value.shape == case.found[name].shape
    }
    return omits and not difference({name: case.found[name] for name in without}, without, case.model, case.longest)


def _reduces_nothing_from_the_end(case: Disagreement) -> bool:
    """Return whether the node's data has no elements, and an axis of it is negative."""
    data = case.operands.get(case.node.input[0])
    axes = [axis for entry in case.node.attribute if entry.name == "axes" for axis in entry.ints]
    if len(case.node.input) > 1 and case.node.input[1] in case.operands:
        axes += case.operands[case.node.input[1]].reshape(-1).tolist()
    return data is not None and data.size == 0 and min(axes, default=0) < 0


def _is_of_integers_beyond_single_precision(case: Disagreement) -> bool:
    """Return whether integers are the same but where single precision does not hold the operand."""
    (operand,) = case.operands.values()
    (name,) = case.expected
    same = case.found[name] == case.expected[name]
    return operand.dtype.kind in "iu" and bool(np.all(same | (np.abs(operand.astype(np.float64)) > 2.0**24)))


def _is_power_beyond_its_type(case: Disagreement) -> bool:
    """Return whether integers are the same but where their type does not hold the power."""
    base, exponent = (case.operands[name] for name in case.node.input)
    (name,) = case.expected
    found, expected = case.found[name], case.expected[name]
    if base.dtype.kind not in "iu" or found.shape != expected.shape:
        return False
    with np.errstate(all="ignore"):
        power = np.power(base.astype(np.float64), exponent.astype(np.float64))
    limits = np.iinfo(base.dtype.name)
    is_held = (power >= limits.min) & (power <= limits.max)
    return bool(np.all((found == expected) | ~is_held))


def _is_rounded_beside_one(case: Disagreement) -> bool:
    """Return whether values differ by no more than alpha times what is lost of an exponential beside 1."""
    (name,) = case.expected
    alpha = next((entry.f for entry in case.node.attribute if entry.name == "alpha"), 1.0)
    with np.errstate(all="ignore"):
        error = np.abs(np.subtract(case.found[name], case.expected[name], dtype=np.float64))
        return bool(np.all(np.isnan(error) | (error <= 2.0**-22 * abs(alpha))))


def _is_of_undefined_halves(case: Disagreement) -> bool:
    """Return whether the operand is of half precision, and dfcompile's value NaN wherever the two differ."""
    (operand,) = case.operands.values()
    (name,) = case.expected
    without = {name: np.where(np.isnan(operand), operand, case.expected[name])}
    return operand.dtype == np.float16 and not difference(case.found, without, case.model, case.longest)


def _reduces_nothing(case: Disagreement) -> bool:
    """Return whether there are no elements to take the mean of, and dfcompile's is NaN."""
    data = case.operands[case.node.input[0]]
    return not data.size and all(bool(np.isnan(value).all()) for value in case.found.values())


def _leaves_out_beta(case: Disagreement) -> bool:
    """Return whether a product of no elements is summed up, and onnxruntime's values are the third operand itself."""
    beta = next((entry.f for entry in case.node.attribute if entry.name == "beta"), 1.0)
    multiplied = {name: np.multiply(value, beta, dtype=value.dtype) for name, value in case.expected.items()}
    is_empty = not case.operands[case.node.input[0]].size
    return is_empty and not difference(case.found, multiplied, case.model, case.longest)


def _is_of_integers_without_axes(case: Disagreement) -> bool:
    """Return whether a node that reduces over no axis has integer results that differ by one at most."""
    whole = any(entry.name == "noop_with_empty_axes" and entry.i for entry in case.node.attribute)
    return whole and all(
        value.dtype.kind in "iu" and bool(np.all(np.abs(np.subtract(value, case.found[name], dtype=np.float64)) <= 1))
        for name, value in case.expected.items()
    )


KNOWN_DIFFERENCES = (
    KnownDifference(
        "ReduceMax ReduceMin",
        "the extremum of NaN and numbers: onnxruntime's depends on where a NaN stands and how many there are",
        "github.com/microsoft/onnxruntime/issues/10514",
        _reads_undefined,
    ),
    KnownDifference(
        "ArgMax ArgMin Hardmax",
        "the place of the extremum of NaN and numbers: onnxruntime's depends on where a NaN stands",
        "tests/fuzz/test_known_differences.py",
        _reads_undefined,
    ),
    KnownDifference(
        "GlobalMaxPool MaxPool",
        "the maximum of NaN and numbers in a window: onnxruntime's depends on where a NaN stands",
        "tests/fuzz/test_known_differences.py",
        _reads_undefined,
    ),
    KnownDifference(
        "ScatterElements ScatterND",
        "the extremum of NaN and numbers: NaN; onnxruntime's is the number where a NaN is before it",
        "onnx.reference: NaN; tests/fuzz/test_known_differences.py",
        _updates_undefined,
    ),
    KnownDifference(
        "GlobalMaxPool MaxPool",
        "a window of negative infinities: onnxruntime begins with the smallest finite number",
        "tests/fuzz/test_known_differences.py",
        _only_smallest,
    ),
    KnownDifference(
        "ReduceL1 ReduceL2 ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare",
        "integers that overflow, or that double precision does not hold: what the former gives is not defined; "
        "onnxruntime computes in double precision and keeps to the largest",
        "ISO C++ 7.1 (expr.pre) 4; tests/fuzz/test_known_differences.py",
        _may_overflow,
    ),
    KnownDifference(
        "Einsum",
        "integers that overflow, or that double precision does not hold: onnxruntime sums them as its reductions do",
        "ISO C++ 7.1 (expr.pre) 4; tests/fuzz/test_known_differences.py",
        _may_overflow_in_einsum,
    ),
    KnownDifference(
        "ReduceMean",
        "the mean of no elements: undefined; onnxruntime's is 0",
        "onnx.defs: doc of ReduceMean-18; tests/fuzz/test_known_differences.py",
        _reduces_nothing,
    ),
    KnownDifference(
        "Gemm",
        "a sum of no products: what is left is beta times the third operand; onnxruntime leaves out beta",
        "onnx.defs: doc of Gemm-13; tests/fuzz/test_known_differences.py",
        _leaves_out_beta,
    ),
    KnownDifference(
        "Det",
        "an infinite element: the determinant is infinite if the other rows and columns have one; onnxruntime adds "
        "products of both signs, which is NaN",
        "tests/fuzz/test_known_differences.py",
        _is_infinite,
    ),
    KnownDifference(
        "LRN",
        "NaN or infinity: onnxruntime slides its sum of squares along, which is NaN from then on",
        "tests/fuzz/test_known_differences.py",
        _is_not_finite,
    ),
    KnownDifference(
        "Attention",
        "a row that is masked as a whole is 0; onnxruntime's is NaN in double precision",
        "onnx.defs: doc of Attention-24, errata; tests/fuzz/test_known_differences.py",
        _only_undefined,
    ),
    KnownDifference(
        "Attention",
        "an infinite operand: a row of masked scores and a negative infinity is NaN, or 0 as one that is masked as a "
        "whole; onnxruntime's masked ones count",
        "onnx.defs: function body of Attention-23; tests/fuzz/test_known_differences.py",
        _attends_to_nothing,
    ),
    KnownDifference(
        "Attention",
        "masked scores are negative infinities; onnxruntime writes the smallest finite number",
        "onnx.defs: function body of Attention-23",
        _only_smallest,
    ),
    KnownDifference(
        "Attention",
        "causal, one query and several new keys behind a cache: it attends to the cache and the first of them; "
        "onnxruntime takes it for the last one, which attends to all",
        "onnx.defs: doc of Attention-23, upper left causal bias; tests/fuzz/test_known_differences.py",
        _is_one_causal_query,
    ),
    KnownDifference(
        "LogSoftmax SoftmaxCrossEntropyLoss",
        "NaN or infinity in double precision: a sum with what they give is NaN, so all of the row; not onnxruntime's",
        "tests/fuzz/test_known_differences.py",
        _is_undefined_here_in_double_precision,
    ),
    KnownDifference(
        "GridSample",
        "a neighbour of weight 0 that is not finite makes the sum NaN; at a border onnxruntime does not read it",
        "onnx.reference: NaN as well; tests/fuzz/test_known_differences.py",
        _is_undefined_here,
    ),
    KnownDifference(
        "Resize",
        "a neighbour of weight 0 that is not finite is not read; onnxruntime multiplies it, which is NaN",
        "onnx.reference: not read; tests/fuzz/test_known_differences.py",
        _is_not_finite,
    ),
    KnownDifference(
        "ReduceLogSumExp",
        "NaN beside an infinity: the sum is NaN; onnxruntime takes the infinity for the largest and adds it",
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
        "an infinite operand or s / d: onnxruntime computes x (s / d) + (b - m s / d), which is inf - inf",
        "onnx.defs: doc of InstanceNormalization-6, y = scale * (x - mean) / sqrt(variance + epsilon) + B",
        _is_infinite_in_between,
    ),
    KnownDifference(
        "LayerNormalization",
        "an infinite element: the mean of the row is infinite, onnxruntime's is NaN",
        "tests/fuzz/test_known_differences.py",
        _is_infinite,
    ),
    KnownDifference(
        "Shrink",
        "integers that single precision does not hold: onnxruntime computes in it",
        "tests/fuzz/test_known_differences.py",
        _is_of_integers_beyond_single_precision,
    ),
    KnownDifference(
        "Celu",
        "onnxruntime takes 1 from exp(x / alpha), which leaves nothing of a small x / alpha, and multiplies by alpha",
        "tests/fuzz/test_known_differences.py",
        _is_rounded_beside_one,
    ),
    KnownDifference(
        "Sign",
        "NaN in half precision: it has no sign, onnxruntime's is 0",
        "tests/fuzz/test_known_differences.py",
        _is_of_undefined_halves,
    ),
    KnownDifference(
        "Mod",
        "fmod of integers that double precision does not hold: onnxruntime computes in it",
        "tests/fuzz/test_known_differences.py",
        _is_remainder_of_long_integers,
    ),
    KnownDifference(
        "Clip",
        "an omitted bound: infinity stays, as in ONNX's own implementation; onnxruntime's is the largest finite number",
        "onnx.reference.ops.op_clip; tests/fuzz/test_known_differences.py",
        _only_largest,
    ),
    KnownDifference(
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "ReduceSumSquare",
        "no elements, along an axis counted from the end: onnxruntime's result keeps the extent of that axis",
        "tests/fuzz/test_known_differences.py",
        _reduces_nothing_from_the_end,
    ),
    KnownDifference(
        "TopK",
        "NaN: ONNX says nothing of its rank; onnxruntime's order follows from comparisons that all fail",
        "onnx.defs: TopK-24; tests/fuzz/test_known_differences.py",
        _ranks_undefined,
    ),
    KnownDifference(
        "MeanVarianceNormalization",
        "onnxruntime divides by a variance of zero; by ONNX's definition 1e-9 is added to its root",
        "onnx.defs: function body of MeanVarianceNormalization-13",
        _only_divided_by_zero,
    ),
    KnownDifference(
        "Pow",
        "integers whose power their type does not hold: onnxruntime makes one of a number of double precision",
        "tests/fuzz/test_known_differences.py",
        _is_power_beyond_its_type,
    ),
    *ATTENTION_DIFFERENCES,
    *QUANTISED_DIFFERENCES,
    *RECURRENT_DIFFERENCES,
    *RESIZE_DIFFERENCES,
)


def known_reason(
    model: onnx.ModelProto,
    operands: Mapping[str, Array],
    found: Mapping[str, Array],
    expected: Mapping[str, Array],
    longest: int = LONGEST,
) -> str:
    """Return why a difference is to be expected, or nothing.

    Args:
        model: that gives it; of a single node.
        operands: of the node, by name.
        found: dfcompile's results by name.
        expected: onnxruntime's results by name.
        longest: elements of the largest operand; a sum may have as many terms.
    """
    (node,) = model.graph.node
    opset = next((entry.version for entry in model.opset_import if entry.domain in {"", "ai.onnx"}), 0)
    case = Disagreement(model, node, opset, operands, found, expected, longest)
    for known in KNOWN_DIFFERENCES:
        if node.op_type in known.op_types.split() and known.holds(case):
            return known.reason
    return ""
