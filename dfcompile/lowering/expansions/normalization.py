"""Normalisations: elements relative to mean and variance of their batch, layer, instance or group."""

from collections.abc import Sequence
from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expressions import literal, sum_dtype
from dfcompile.lowering.operators.reduce import kept_shape


@onnx_expansion("BatchNormalization", "affine", default=True)
def batch_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c, …] = X[b, c, …] * factor[c] + offset[c]``: one element-wise task; the factors are computed once."""
    if op.integer("training_mode", 0):
        raise op.unsupported("attribute 'training_mode' is 1 against 0 (export the model for inference)")
    x, y = op.input(0), op.output()
    scale, bias, mean, variance = (op.input(position) for position in range(1, 5))
    epsilon = op.real("epsilon", 1e-5)
    x_axes = list(range(x.rank))
    channel = [1] if x.rank > 1 else [0]
    values = [tensor.value for tensor in (scale, bias, mean, variance)]
    known = [np.asarray(value, np.float64) for value in values if value is not None]
    if len(known) == len(values):
        factor = known[0] / np.sqrt(known[3] + epsilon)
        factors = build.parameter("factor", factor.astype(x.dtype))
        offsets = build.parameter("offset", (known[1] - known[2] * factor).astype(x.dtype))
        build.elementwise("a * b + c", [x, factors, offsets], y, axes=[x_axes, channel, channel])
        return
    source = f"(a - d) / sqrt(e + {literal(epsilon, 'float32')}) * b + c"
    axes = [x_axes, channel, channel, channel, channel]
    build.elementwise(source, [x, scale, bias, mean, variance], y, axes=axes)


def layer_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = (X - mean) / sqrt(var + epsilon) * scale + bias`` over the last axes, from ``axis`` on."""
    x, axes = op.input(0), _last_axes(op)
    _check_precision(op)
    mean, inverse = statistics(build, x, axes, _epsilon(op))
    for position, statistic in ((1, mean), (2, inverse)):
        if op.optional_output(position) is not None:
            build.elementwise("a", [statistic], op.output(position), step=("mean_out", "inverse_out")[position - 1])
    if op.optional_output(0) is None:  # only its statistics are used
        return
    source, operands = "(a - b) * c * d", [x, mean, inverse, op.input(1)]
    bias = op.optional_input(2)
    if bias is not None:
        source, operands = f"{source} + e", [*operands, bias]
    build.elementwise(source, operands, op.output(), step="scale")


LAYER_NORMALIZATIONS = (
    onnx_expansion("LayerNormalization", "two-pass", default=True)(layer_normalization),
    onnx_expansion("com.microsoft.LayerNormalization", "two-pass", source="onnxruntime", default=True)(
        layer_normalization
    ),
)


def rms_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X / sqrt(mean(X * X) + epsilon) * scale`` over the last axes, from ``axis`` on."""
    x, axes = op.input(0), _last_axes(op)
    _check_precision(op)
    dtype, kept = sum_dtype(x.dtype), kept_shape(x.shape, axes)
    squares, inverse = build.array("squares", kept, dtype), build.array("inverse", kept, dtype)
    build.reduce(Reduction.SUM, [x], squares, axes, "a * a", step="squares")
    add_inverse_root(build, squares, inverse, prod(x.shape[axis] for axis in axes), _epsilon(op))
    if op.optional_output(1) is not None:
        build.elementwise("a", [inverse], op.output(1), step="inverse_out")
    build.elementwise("a * b * c", [x, inverse, op.input(1)], op.output(), step="scale")


RMS_NORMALIZATIONS = (
    onnx_expansion("RMSNormalization", "map", default=True)(rms_normalization),
    onnx_expansion("com.microsoft.SimplifiedLayerNormalization", "map", source="onnxruntime", default=True)(
        rms_normalization
    ),
)


@onnx_expansion("InstanceNormalization", "two-pass", default=True)
def instance_normalization(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c, …] = (X - mean[b, c]) / sqrt(var[b, c] + epsilon) * scale[c] + bias[c]``."""
    x, channel = op.input(0), [1]
    x_axes = list(range(x.rank))
    mean, inverse = statistics(build, x, x_axes[2:], _epsilon(op))
    axes = [x_axes, x_axes, x_axes, channel, channel]
    operands = [x, mean, inverse, op.input(1), op.input(2)]
    build.elementwise("(a - b) * c * d + e", operands, op.output(), axes=axes, step="scale")


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
    all_axes = [0, 1, 2, 3]
    mean, inverse = statistics(build, grouped, all_axes[2:], _epsilon(op))
    if scale.shape == (channels,):
        scale, bias = build.view(scale, "scales", (groups, size)), build.view(bias, "biases", (groups, size))
        channel = [1, 2]
    elif scale.shape == (groups,):  # before opset 21
        channel = [1]
    else:
        raise op.unsupported(f"scale of shape {scale.shape} against one element per channel")
    result = build.array("result", grouped.shape)
    axes = [all_axes, all_axes, all_axes, channel, channel]
    build.elementwise("(a - b) * c * d + e", [grouped, mean, inverse, scale, bias], result, axes=axes, step="scale")
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
    x, axis, order = op.input(0), op.axis(default=-1), op.integer("p", 2)
    if order not in (1, 2):
        raise op.unsupported(f"attribute 'p' is {order} against 1 or 2")
    norm = build.array("norm", kept_shape(x.shape, [axis]), sum_dtype(x.dtype))
    build.reduce(Reduction.SUM, [x], norm, [axis], "abs(a)" if order == 1 else "a * a", step="norm")
    root = "b" if order == 1 else "sqrt(b)"
    build.elementwise(f"a / {root} if b != 0 else 0", [x, norm], op.output(), step="divide")


def _last_axes(op: Operator) -> tuple[int, ...]:
    rank = op.input(0).rank
    return tuple(range(op.axis(default=-1), rank))


def statistics(build: CanonicalFragment, x: Tensor, axes: Sequence[int], epsilon: float) -> tuple[Tensor, Tensor]:
    """Return ``mean`` and ``1 / sqrt(var + epsilon)`` over the axes, with extent 1 there."""
    mean, squares = _moments(build, x, axes)
    inverse = build.array("inverse", mean.shape, mean.dtype)
    add_inverse_root(build, squares, inverse, prod(x.shape[axis] for axis in axes), epsilon)
    return mean, inverse


def add_inverse_root(build: CanonicalFragment, squares: Tensor, inverse: Tensor, count: int, epsilon: float) -> None:
    """``inverse = 1 / sqrt(squares / count + epsilon)``."""
    build.elementwise(f"1 / sqrt(a / {count} + {literal(epsilon, 'float32')})", [squares], inverse, step="inverse")


def _moments(build: CanonicalFragment, x: Tensor, axes: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Return the mean and the sum of the squared distances from it, over the axes, with extent 1 there."""
    kept, dtype = kept_shape(x.shape, axes), sum_dtype(x.dtype)
    total, mean, squares = (build.array(name, kept, dtype) for name in ("total", "mean", "squares"))
    build.reduce(Reduction.SUM, [x], total, axes, step="sum")
    build.elementwise(f"a / {prod(x.shape[axis] for axis in axes)}", [total], mean, step="mean")
    build.reduce(Reduction.SUM, [x, mean], squares, axes, "(a - b) * (a - b)", step="squares")
    return mean, squares


def _epsilon(op: Operator) -> float:
    return op.real("epsilon", 1e-5)


def _check_precision(op: Operator) -> None:
    stash_type = op.integer("stash_type", 1)
    if stash_type != 1 and op.input(0).dtype != "float64":
        raise op.unsupported(f"attribute 'stash_type' is {stash_type} against 1 (single precision)")
