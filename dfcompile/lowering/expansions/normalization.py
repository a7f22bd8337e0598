"""Normalisations: elements relative to mean and variance of their batch, layer, instance or group."""

from collections.abc import Sequence
from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expressions import literal, sum_dtype
from dfcompile.lowering.operators import Lookup


@onnx_expansion("BatchNormalization", "affine", default=True)
def batch_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c, …] = X[b, c, …] * factor[c] + offset[c]``: one element-wise task; the factors are computed once."""
    op.integer("training_mode", 0, (0,), "0 (export the model for inference)")
    x, y = op.input(0), op.output()
    operands, epsilon = [op.input(position) for position in range(1, 5)], _epsilon(op)
    x_axes, channel = list(range(x.rank)), [1] if x.rank > 1 else [0]
    known = [np.asarray(tensor.value, np.float64) for tensor in operands if tensor.value is not None]
    if len(known) == len(operands):
        factor = known[0] / np.sqrt(known[3] + epsilon)
        factors = build.parameter("factor", factor.astype(x.dtype))
        offsets = build.parameter("offset", (known[1] - known[2] * factor).astype(x.dtype))
        build.elementwise("a * b + c", [x, factors, offsets], y, axes=[x_axes, channel, channel])
        return
    source = f"(a - d) / sqrt(e + {literal(epsilon, 'float32')}) * b + c"
    build.elementwise(source, [x, *operands], y, axes=[x_axes, *[channel] * len(operands)])


def layer_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = (X - mean) / sqrt(var + epsilon) * scale + bias`` over the last axes, from ``axis`` on."""
    x, axes = op.input(0), _last_axes(op)
    _check_precision(op)
    mean, inverse = statistics(build, x, axes, _epsilon(op))
    for position, statistic, step in ((1, mean, "mean_out"), (2, inverse, "inverse_out")):
        if op.optional_output(position) is not None:
            build.elementwise("a", [statistic], op.output(position), step=step)
    if op.optional_output(0) is not None:  # else only its statistics are used
        add_scaled(build, x, (mean, inverse), op.input(1), op.optional_input(2), op.output())


def rms_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X / sqrt(mean(X * X) + epsilon) * scale`` over the last axes, from ``axis`` on."""
    x, axes = op.input(0), _last_axes(op)
    _check_precision(op)
    inverse = inverse_root_mean_square(build, x, axes, _epsilon(op))
    if op.optional_output(1) is not None:
        build.elementwise("a", [inverse], op.output(1), step="inverse_out")
    build.elementwise("a * b * c", [x, inverse, op.input(1)], op.output(), step="scale")


EXPANSIONS = tuple(
    onnx_expansion(op_type, name, source=source, default=True)(rewrite)
    for op_type, name, source, rewrite in (
        ("LayerNormalization", "two-pass", "onnx", layer_normalization),
        ("com.microsoft.LayerNormalization", "two-pass", "onnxruntime", layer_normalization),
        ("RMSNormalization", "map", "onnx", rms_normalization),
        ("com.microsoft.SimplifiedLayerNormalization", "map", "onnxruntime", rms_normalization),
    )
)


@onnx_expansion("InstanceNormalization", "two-pass", default=True)
def instance_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c, …] = (X - mean[b, c]) / sqrt(var[b, c] + epsilon) * scale[c] + bias[c]``."""
    x = op.input(0)
    of_x = statistics(build, x, range(2, x.rank), _epsilon(op))
    add_scaled(build, x, of_x, op.input(1), op.input(2), op.output(), along=[1])


@onnx_expansion("GroupNormalization", "two-pass", default=True)
def group_normalization(op: Operator, build: CanonicalFragment) -> None:
    """As InstanceNormalization, with mean and variance of several channels together; scale and bias per channel."""
    x, y, scale, bias = op.input(0), op.output(), op.input(1), op.input(2)
    _check_precision(op)
    batch, channels = x.shape[:2]
    groups = op.integer("num_groups", 0)
    if groups < 1 or channels % groups:
        raise op.unsupported(f"attribute 'num_groups' is {groups} against a divisor of {channels} channels")
    size, rest = channels // groups, prod(x.shape[2:])
    grouped = build.view(x, "grouped", (batch, groups, size, rest))
    of_x = statistics(build, grouped, [2, 3], _epsilon(op))
    along = [1]
    if scale.shape == (channels,):
        scale, bias = build.view(scale, "scales", (groups, size)), build.view(bias, "biases", (groups, size))
        along = [1, 2]
    result = build.array("result", grouped.shape)
    add_scaled(build, grouped, of_x, scale, bias, result, along=along)
    build.view_as(result, y)


@onnx_expansion("MeanVarianceNormalization", "two-pass", default=True)
def mean_variance_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = (X - mean) / (sqrt(var) + 1e-9)`` over the axes."""
    x = op.input(0)
    axes = sorted(op.front_axis(axis, x.rank) for axis in op.integers("axes", (0, 2, 3)))
    mean, squares = _moments(build, x, axes)
    count = prod(x.shape[axis] for axis in axes)
    build.elementwise(f"(a - b) / (sqrt(c / {count}) + 1e-9)", [x, mean, squares], op.output(), step="scale")


@onnx_expansion("LpNormalization", "map", default=True)
def lp_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X / sum(|X| ** p) ** (1/p)`` along an axis, p = 1 or 2; 0 where the norm is 0."""
    x, axis, order = op.input(0), op.axis(default=-1), op.integer("p", 2, (1, 2), "1 or 2")
    size = "abs(a)" if order == 1 else "a * a"
    norm = build.reduced("norm", Reduction.SUM, [x], [axis], size, dtype=sum_dtype(x.dtype))
    root = "b" if order == 1 else "sqrt(b)"
    build.elementwise(f"a / {root} if b != 0 else 0", [x, norm], op.output(), step="divide")


def _last_axes(op: Operator) -> tuple[int, ...]:
    return tuple(range(op.axis(default=-1), op.input(0).rank))


def statistics(build: CanonicalFragment, x: Tensor, axes: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor]:
    """Return ``mean`` and ``1 / sqrt(var + epsilon)`` over the axes, with extent 1 there."""
    mean, squares = _moments(build, x, axes)
    return mean, _inverse_root(build, squares, prod(x.shape[axis] for axis in axes), epsilon)


def inverse_root_mean_square(build: CanonicalFragment, x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """Return ``1 / sqrt(mean(X * X) + epsilon)`` over the axes, with extent 1 there."""
    squares = build.reduced("squares", Reduction.SUM, [x], axes, "a * a", dtype=sum_dtype(x.dtype))
    return _inverse_root(build, squares, prod(x.shape[axis] for axis in axes), epsilon)


def _inverse_root(build: CanonicalFragment, squares: Tensor, count: int, epsilon: float) -> Tensor:
    source = f"1 / sqrt(a / {count} + {literal(epsilon, 'float32')})"
    return build.computed("inverse", source, [squares], squares.shape, squares.dtype)


def add_scaled(
    build: CanonicalFragment,
    x: Tensor,
    of_x: tuple[Tensor, Tensor],
    scale: Tensor,
    bias: Tensor | None,
    y: Tensor,
    along: Sequence[int] | None = None,
) -> None:
    """``Y = (X - mean) * inverse * scale + bias``, with what `statistics` returns of X; a bias may be omitted.

    Scale and bias stand along dimensions of X; unless these are given, along the last ones.
    """
    source, operands = "(a - b) * c * d", [x, *of_x, scale]
    if bias is not None:
        source, operands = f"{source} + e", [*operands, bias]
    axes = None if along is None else [*[range(x.rank)] * 3, *[along] * (len(operands) - 3)]
    build.elementwise(source, operands, y, axes=axes, step="scale")


def _moments(build: CanonicalFragment, x: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the mean and the sum of the squared distances from it, over the axes, with extent 1 there."""
    dtype = sum_dtype(x.dtype)
    total = build.reduced("total", Reduction.SUM, [x], axes, dtype=dtype, step="sum")
    mean = build.computed("mean", f"a / {prod(x.shape[axis] for axis in axes)}", [total], total.shape, dtype)
    return mean, build.reduced("squares", Reduction.SUM, [x, mean], axes, "(a - b) * (a - b)", dtype=dtype)


def _epsilon(op: Operator) -> float:
    return op.real("epsilon", 1e-5)


def _check_precision(op: Operator) -> None:
    op.integer("stash_type", 1, None if op.input(0).dtype == "float64" else (1,), "1 (single precision)")


_EPSILON = 1e-12  # where a node gives none


@onnx_expansion("com.microsoft.SkipLayerNormalization", "two-pass", source="onnxruntime", default=True)
def skip_layer_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = (S - mean) / sqrt(var + epsilon) * gamma + beta`` over the last axis, with ``S = X + skip + bias``."""
    _normalise(op, build, _sum(op, build, op.optional_input(4)), op.input(2), op.optional_input(3))


@onnx_expansion("com.microsoft.SkipSimplifiedLayerNormalization", "map", source="onnxruntime", default=True)
def skip_simplified_layer_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = S / sqrt(mean(S * S) + epsilon) * gamma`` over the last axis, with ``S = X + skip + bias``."""
    total = _sum(op, build, op.optional_input(3))
    inverse = inverse_root_mean_square(build, total, [total.rank - 1], op.real("epsilon", _EPSILON))
    build.elementwise("a * b * c", [total, inverse, op.input(2)], op.output(), step="scale")


@onnx_expansion("com.microsoft.EmbedLayerNormalization", "two-pass", source="onnxruntime", default=True)
def embed_layer_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = normalised(words[ids] + positions[p] + segments[t]) * gamma + beta`` over the last axis."""
    tokens, words, positions = op.input(0), op.input(2), op.input(3)
    op.check_unknown(results={1: "mask_index"})
    y, places = op.output(), op.optional_input(8)
    looked_up = [_rows(build, words, tokens, "words")]
    if places is not None:
        positions = _rows(build, positions, places, "positions")
    elif positions.shape[0] != y.shape[1]:
        positions = build.copied("positions", positions, ("i0", "i1"), (y.shape[1], positions.shape[1]))
    looked_up.append(positions)
    segments, table = op.optional_input(1), op.optional_input(4)
    if segments is not None and table is not None:
        looked_up.append(_rows(build, table, segments, "segments"))
    _normalise(op, build, _added(op, build, looked_up, y, 2), op.input(5), op.input(6))


def _rows(build: CanonicalFragment, table: Tensor, indices: Tensor, name: str) -> Tensor:
    return build.made(name, Lookup(0), [table, indices], (*indices.shape, table.shape[1]), table.dtype)


def _sum(op: Operator, build: CanonicalFragment, bias: Tensor | None) -> Tensor:
    """Return the sum of the operands, which is a result as well if the model uses it."""
    for position, name in ((1, "mean"), (2, "inv_std_var")):
        if op.optional_output(position) is not None:
            raise op.unsupported(f"the result {name!r} has no expansion (it is of training)")
    x, skip = op.input(0), op.input(1)
    return _added(op, build, [x, skip] if bias is None else [x, skip, bias], x, 3)


def _added(op: Operator, build: CanonicalFragment, operands: Sequence[Tensor], like: Tensor, position: int) -> Tensor:
    total = op.optional_output(position) or build.array("sum", like.shape, like.dtype)
    build.elementwise(" + ".join("abc"[: len(operands)]), operands, total, step="add")
    return total


def _normalise(op: Operator, build: CanonicalFragment, x: Tensor, gamma: Tensor, beta: Tensor | None) -> None:
    of_x = statistics(build, x, [x.rank - 1], op.real("epsilon", _EPSILON))
    add_scaled(build, x, of_x, gamma, beta, op.output())
