"""What rounding may change: the original, run by onnxruntime node by node, with noise of the size of rounding.

Results of different implementations differ by rounding, and a chain of nodes may magnify that without bound: a step
between two integers, a difference of what is nearly equal, a function that is steep. No tolerance tells that from a
wrong value; the original itself does. Only onnxruntime is asked: what dfcompile makes of a model cannot excuse itself.
Inputs and constants are exact, and so is what the nodes make of them that do not round: a step function that reads
those has one right value.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

from tests.fuzz.comparison import EXACT, JUMPING, LONGEST, ROUNDING, STASHED, Bools, Floats, wrong_elements
from tests.fuzz.draw import Array
from tests.fuzz.node_alone import Alone, CannotRunError

UNITS = (1, 2, 4, 8, 16, 32)  # of rounding: the noise of a value, as many roundings make one result
RUNS = 8  # with each
BESIDE_ONE = {"Celu": 1.0, "Elu": 1.0, "Selu": 1.7581}  # of exp(x) - 1: the factor without attributes, at most
LEAST_SIGMOID = -104.0  # below that, the sigmoid is less than what single precision holds
BEYOND = 0.5  # of what noise changes: how far an element may lie outside of all that it gives


def only_rounding(
    model: onnx.ModelProto,
    feeds: Mapping[str, Array],
    found: Mapping[str, Array],
    expected: Mapping[str, Array],
    longest: int = LONGEST,
) -> bool:
    """Return whether rounding in the original changes every element that differs about as much; see `rounded`."""
    return all(explained.all() for explained in rounded(model, feeds, found, expected, longest).values())


def rounded(
    model: onnx.ModelProto,
    feeds: Mapping[str, Array],
    found: Mapping[str, Array],
    expected: Mapping[str, Array],
    longest: int = LONGEST,
) -> Mapping[str, Bools]:
    """Return the elements that do not differ, or that rounding in the original changes about as much.

    Args:
        model: the original.
        feeds: its inputs by name.
        found: results by name.
        expected: onnxruntime's results by name.
        longest: elements of the largest operand.
    """
    constants = {entry.name: np.asarray(numpy_helper.to_array(entry)) for entry in model.graph.initializer}
    known = {**constants, **feeds}
    try:
        nodes = tuple(_with_operands(model, node, known) for node in model.graph.node)
        # Each with other signs: that a zero has one of them in none of the runs is then as good as impossible.
        noises = [_Noise(np.random.default_rng([units, run]), units) for units in UNITS for run in range(RUNS)]
        runs = [_noisy_run(nodes, known, noise) for noise in noises]
    except CannotRunError:
        return {name: np.zeros(value.shape, np.bool_) for name, value in expected.items()}
    if any(found[name].shape != value.shape or found[name].dtype != value.dtype for name, value in expected.items()):
        return {name: np.zeros(value.shape, np.bool_) for name, value in expected.items()}
    return {
        name: _explained(
            found[name], value, wrong_elements(found[name], value, model, longest), [run[name] for run in runs]
        )
        for name, value in expected.items()
    }


def _with_operands(model: onnx.ModelProto, node: onnx.NodeProto, known: Mapping[str, Array]) -> Alone:
    """Return a node alone, with its real constants as operands if that runs: rounding within it is noise of these."""
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    for constant in [entry for entry in opened.graph.initializer if known[entry.name].dtype.kind == "f"]:
        opened.graph.initializer.remove(constant)
    alone = Alone(opened, node)
    if any(name not in known for name in alone.operands):
        return Alone(model, node)
    try:
        alone.run({name: known[name] for name in alone.operands})
    except CannotRunError:
        return Alone(model, node)
    return alone


class _Noise:
    """Disturbs values as rounding does."""

    def __init__(self, generator: np.random.Generator, units: int) -> None:
        self._generator = generator
        self._units = units

    def signs(self, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
        """Return -1, 0 or 1 for every element."""
        return self._generator.integers(-1, 2, shape)

    def factors(self, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
        """Return factors of which most are far below 1."""
        return np.exp2(self._generator.uniform(-8, 2, shape))

    def most(self, value: Array) -> Floats:
        """Return by how much an element may be larger."""
        return self._units * ROUNDING[value.dtype.name] * np.abs(value.astype(np.float64))

    def disturbed(self, value: Array, *, coarse: bool) -> Array:
        """Return the value with every element a little larger, or smaller, or as it was; a zero of either sign.

        One that stays and is next to a whole number may become that: only of such a one is a power of a negative number
        defined.
        """
        if value.dtype.kind != "f":
            return value
        unit = ROUNDING["float32" if coarse and value.dtype == np.float64 else value.dtype.name]
        steps = self.signs(value.shape)
        with np.errstate(all="ignore"):
            changed = value.astype(np.float64) * (1 + self._units * unit * steps)
            whole = np.rint(value.astype(np.float64))
            is_near = np.abs(changed - whole) <= self._units * unit * np.abs(whole)
            changed = np.where((steps == 0) & is_near, whole, changed)
            return np.where(value == 0, np.copysign(value, steps), changed).astype(value.dtype)


def _noisy_run(nodes: Sequence[Alone], known: Mapping[str, Array], noise: _Noise) -> Mapping[str, Array]:
    values = dict(known)
    rounded: set[str] = set()
    for alone in nodes:
        op_type = alone.node.op_type
        # Rounding within a node is as if its operands were a little otherwise, but for what has steps of its own.
        coarse = op_type in STASHED
        operands = {name: values[name] for name in alone.operands}
        if op_type not in EXACT | JUMPING:
            operands = {name: noise.disturbed(value, coarse=coarse) for name, value in operands.items()}
        reads_rounded = bool(rounded.intersection(operands))
        results = alone.run(operands)
        if op_type in _WITHIN:
            results = _WITHIN[op_type](alone, {**known, **operands}, results, noise)
        if op_type == "Equal" and reads_rounded:
            results = _of_nearly_equal(alone, {**known, **operands}, results, noise)
        if op_type not in EXACT:
            results = {name: noise.disturbed(value, coarse=coarse) for name, value in results.items()}
        if op_type not in EXACT or reads_rounded:
            rounded.update(results)
        values.update(results)
    return values


def _without_cancellation(
    alone: Alone, values: Mapping[str, Array], results: Mapping[str, Array], noise: _Noise
) -> dict[str, Array]:
    """Return x s / d + (b - m s / d), as onnxruntime works out an InstanceNormalization: m s / d swallows a small b."""
    x, scale, _ = (values[name] for name in alone.node.input)
    epsilon = next((attribute.f for attribute in alone.node.attribute if attribute.name == "epsilon"), 1e-5)
    space = tuple(range(2, x.ndim))
    with np.errstate(all="ignore"):
        deviation = np.sqrt(x.var(axis=space, keepdims=True) + epsilon)
        swallowing = x.mean(axis=space, keepdims=True) * scale.reshape(-1, *(1 for _ in space)) / deviation
        swallowing = np.broadcast_to(swallowing.astype(x.dtype), x.shape)
        (name, result), *_ = results.items()
        error: Array = np.subtract(noise.disturbed(swallowing, coarse=False), swallowing)
        return {name: np.add(result, error)}


def _of_rounded_sum(
    alone: Alone, values: Mapping[str, Array], results: Mapping[str, Array], noise: _Noise
) -> dict[str, Array]:
    """Return the logarithm of a sum that is rounded as its positive and its negative part are, whatever cancels."""
    (name, result), *_ = results.items()
    data = alone.node.input[0]
    if result.dtype.kind != "f" or data not in alone.operands:
        return dict(results)
    x = values[data].astype(np.float64)
    dtype = values[data].dtype
    with np.errstate(all="ignore"):
        positive, negative = (
            np.exp(alone.run({**values, data: np.maximum(part, 0).astype(dtype)})[name].astype(np.float64))
            for part in (x, 0 - x)
        )
        total = np.where(np.isnan(result), positive - negative, np.exp(result.astype(np.float64)))
        rounded = _rounded_sum(total, positive + negative, dtype, noise)
        cancels = (positive > 0) & (negative > 0)
        return {name: np.where(cancels, np.log(rounded), result).astype(result.dtype)}


def _rounded_sum(
    total: Floats, size: Floats, dtype: np.dtype[np.generic], noise: _Noise, *, turns: bool = False
) -> Floats:
    """Return a sum with an error of the size of its terms; where that may swallow it, it may be zero, or anything.

    One that is next to a whole number may be that.

    Args:
        total: the sum.
        size: of the absolute values of its terms.
        dtype: in which it is computed.
        noise: what disturbs it.
        turns: whether what is left of one that is swallowed has the other sign.
    """
    held = size.astype(dtype)
    error = np.subtract(noise.disturbed(held, coarse=False), held, dtype=np.float64)
    kind = noise.signs(total.shape)
    left = noise.factors(total.shape)
    swallowed = np.where(kind > 0, 0.0, total * (-left if turns else left))
    whole = np.rint(total)
    is_near = (np.abs(total - whole) <= noise.most(held)) & (whole != 0)
    rounded = np.where((kind == 0) & is_near, whole, total + error)
    return np.where((noise.most(held) >= np.abs(total)) & (kind != 0), swallowed, rounded)


def _of_rounded_transform(
    alone: Alone, values: Mapping[str, Array], results: Mapping[str, Array], noise: _Noise
) -> dict[str, Array]:
    """Return the Fourier transform as sums that are rounded as their terms are, whatever cancels."""
    (name, result), *_ = results.items()
    x = values[alone.node.input[0]]
    given = {entry.name: entry.i for entry in alone.node.attribute}
    operands = [*alone.node.input, "", ""]
    axis = int(values[operands[2]].item()) if operands[2] else given.get("axis", 1 if alone.opset < 20 else -2)
    length = int(values[operands[1]].item()) if operands[1] else x.shape[axis]
    with np.errstate(all="ignore"):
        read = np.moveaxis(np.abs(x.astype(np.float64)), axis, 0)[:length]
        size = np.moveaxis(read.sum(axis=(0, -1), keepdims=True), 0, axis)
        if given.get("inverse", 0):
            size /= max(1, length)
        sizes = np.broadcast_to(size, result.shape)
        rounded = _rounded_sum(result.astype(np.float64), sizes, result.dtype, noise, turns=True)
        return {name: rounded.astype(result.dtype)}


def _of_rounded_frames(
    alone: Alone, values: Mapping[str, Array], results: Mapping[str, Array], noise: _Noise
) -> dict[str, Array]:
    """Return the Fourier transforms of the frames of a signal, as `_of_rounded_transform`."""
    (name, result), *_ = results.items()
    signal, step, window, length = [*alone.node.input, "", ""][:4]
    size = np.abs(values[signal].astype(np.float64)).sum(axis=-1)
    factors = np.abs(values[window].astype(np.float64)) if window else np.ones(int(values[length].item()))
    frames = np.lib.stride_tricks.sliding_window_view(size, len(factors), axis=1)[:, :: int(values[step].item())]
    with np.errstate(all="ignore"):
        sizes = np.broadcast_to((frames @ factors)[:, : result.shape[1], None, None], result.shape)
        rounded = _rounded_sum(result.astype(np.float64), sizes, result.dtype, noise, turns=True)
        return {name: rounded.astype(result.dtype)}


def _of_rounded_exponential(
    alone: Alone, values: Mapping[str, Array], results: Mapping[str, Array], noise: _Noise
) -> dict[str, Array]:
    """Return alpha (exp(x) - 1) as onnxruntime works it out: to the last bit of one, which may be more than x."""
    (name, result), *_ = results.items()
    if result.dtype.kind != "f":
        return dict(results)
    x = values[alone.node.input[0]]
    given = {entry.name: entry.f for entry in alone.node.attribute}
    factor = abs(given.get("alpha", BESIDE_ONE[alone.node.op_type]) * given.get("gamma", 1.0))
    one = np.full(result.shape, min(factor, float(np.finfo(result.dtype.name).max)), result.dtype)
    with np.errstate(all="ignore"):
        error = np.subtract(noise.disturbed(one, coarse=False), one)
        return {name: np.where(np.less(x, 0), np.add(result, error), result)}


def _of_rational_sigmoid(
    alone: Alone, values: Mapping[str, Array], results: Mapping[str, Array], noise: _Noise
) -> dict[str, Array]:
    """Return a sigmoid as onnxruntime works it out, half of one and a fraction: to the last bit of one, not of itself.

    What single precision has as 0 is 0.
    """
    (name, result), *_ = results.items()
    if result.dtype != np.float32:
        return dict(results)
    x = values[alone.node.input[0]]
    error = np.where(np.less(x, LEAST_SIGMOID), 0.0, ROUNDING["float32"] * noise.signs(result.shape))
    return {name: np.clip(result + error, 0.0, 1.0).astype(np.float32)}


def _with_error_of_sigmoid(
    alone: Alone, values: Mapping[str, Array], results: Mapping[str, Array], noise: _Noise
) -> dict[str, Array]:
    """Return x sigmoid(x) with an absolute error of the sigmoid: onnxruntime's is 0 where it is below some 1e-8.

    So is the factor of x in Gelu, half of 1 and an error function.
    """
    (name, result), *_ = results.items()
    x = values[alone.node.input[0]]
    with np.errstate(all="ignore"):
        error: Array = np.subtract(noise.disturbed(x, coarse=False), x)
        return {name: np.add(result, error)}


def _of_rounded_gates(
    alone: Alone, values: Mapping[str, Array], results: Mapping[str, Array], noise: _Noise
) -> dict[str, Array]:
    """Return states of a recurrence with errors of the size of one: gates are rounded to the last bit of that."""
    rounded = {}
    with np.errstate(all="ignore"):
        for name, result in results.items():
            size = np.ones(result.shape)
            rounded[name] = _rounded_sum(result.astype(np.float64), size, result.dtype, noise).astype(result.dtype)
    return rounded


def _of_nearly_equal(
    alone: Alone, values: Mapping[str, Array], results: Mapping[str, Array], noise: _Noise
) -> dict[str, Array]:
    """Return whether numbers are equal, of nearly equal ones either: that noise makes two the same is a rare chance."""
    operands = [values[name] for name in alone.node.input]
    if any(value.dtype.kind != "f" for value in operands):
        return dict(results)
    (name, result), *_ = results.items()
    first, second = operands
    with np.errstate(all="ignore"):
        apart = np.abs(first.astype(np.float64) - second.astype(np.float64))
        near = apart <= np.maximum(noise.most(first), noise.most(second))
    return {name: np.where(near & (noise.signs(result.shape) > 0), np.logical_not(result), result)}


_Change = Callable[[Alone, Mapping[str, Array], Mapping[str, Array], _Noise], dict[str, Array]]
# What a node rounds within itself, so that it is not as if its operands were a little otherwise.
_WITHIN: Mapping[str, _Change] = {
    "InstanceNormalization": _without_cancellation,
    "ReduceLogSum": _of_rounded_sum,
    "DFT": _of_rounded_transform,
    "STFT": _of_rounded_frames,
    "Sigmoid": _of_rational_sigmoid,
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _of_rounded_gates),
    **dict.fromkeys(BESIDE_ONE, _of_rounded_exponential),
    **dict.fromkeys(("Gelu", "Swish"), _with_error_of_sigmoid),
}


def _explained(found: Array, expected: Array, wrong: Bools, runs: Sequence[Array]) -> Bools:
    """Return which elements are not wrong, or among what noise gives, or between, or not much farther off."""
    explained = np.array(~wrong)
    if not wrong.any() or any(run.shape != expected.shape for run in runs):
        return explained
    samples = np.stack([expected[wrong], *(run[wrong] for run in runs)]).astype(np.float64)
    value = found[wrong].astype(np.float64)
    with np.errstate(invalid="ignore"):
        same = (samples == value) | (np.isnan(samples) & np.isnan(value))
        finite = np.isfinite(samples)
        least = np.where(finite, samples, np.inf).min(axis=0)
        most = np.where(finite, samples, -np.inf).max(axis=0)
        # Whole numbers, of any type, do not lie beyond.
        beyond = np.where(np.all(~finite | (samples == np.rint(samples)), axis=0), 0.0, BEYOND * (most - least))
        # What noise makes infinite as well as finite, as a logarithm beside 0, has all between.
        below = (value >= least - beyond) | np.any(samples == -np.inf, axis=0)
        above = (value <= most + beyond) | np.any(samples == np.inf, axis=0)
        between = np.isfinite(value) & finite.any(axis=0) & below & above
    explained[wrong] = same.any(axis=0) | between
    return explained
