"""The canonical operators over windows: convolutions, the matrix of windows that makes one a product, reductions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Self

from dfcompile.canonical_dag import LoopKind, LoopPart
from dfcompile.lowering.expressions import Reduction, linear_index
from dfcompile.lowering.operators.base import AnyExtents, CanonicalOperator
from dfcompile.lowering.operators.field_kinds import Count, Extents
from dfcompile.lowering.operators.loop_nest import KINDS, Loop, LoopNest, kernel_loops, moved_up
from dfcompile.lowering.tensor import Tensor
from dfcompile.records import replace


@dataclass(frozen=True, slots=True)
class Im2col(CanonicalOperator):
    """``cols[g, (c, k…), (b, y…)] = X[b, g*channels + c, stride*y + dilation*k …]``: the windows as columns.

    Without groups the result has no dimension g.

    Attributes:
        kernel: extent of a window, per spatial dimension.
        strides: distance between windows, per spatial dimension.
        dilations: distance between the elements of a window, per spatial dimension.
        counts: number of windows, per spatial dimension.
        group: number of groups of channels.
    """

    kernel: Extents
    strides: Extents
    dilations: Extents
    counts: Extents
    group: Count = 1

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the windows lie within the data and fill the result."""
        x, cols = *self.check_operands(operands, 1), results[0]
        _check_fields(self, x, "kernel", "strides", "dilations", "counts")
        check_spans(self, x, self.kernel, self.counts)
        wanted = x.elements // prod(x.shape[2:]) * prod(self.kernel) * prod(self.counts)
        if cols.elements != wanted:
            raise self.fault(f"result {cols} against {wanted} elements")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return batch, groups, channels of a group, elements and places of windows; these need all of X."""
        x, channels = operands[0], operands[0].shape[1] // self.group
        elements, places = _loops("k", self.kernel), _loops("y", self.counts)
        extents = {"b": x.shape[0], "g": self.group, "c": channels, **elements, **places}
        rows = _linear(["c", *elements], extents)
        columns = _linear(["b", *places], extents)
        write = ("g", rows, columns) if result.rank == 3 else (rows, columns)
        if result.rank != 3 and (result.rank, self.group) != (2, 1):
            return LoopNest({}, ((None,) * x.rank,), (None,) * result.rank)
        read = ("b", _linear(["g", "c"], extents), *window_places(self.strides, self.dilations))
        return LoopNest({name: Loop(extent) for name, extent in extents.items()}, (read,), write)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:
        """Return the first elements of windows, of the first windows, of the first groups."""
        strides, dilations = _moved_windows(self, operands, result, extents)
        kernel = tuple(extents[name] for name in _loops("k", self.kernel))
        counts = tuple(extents[name] for name in _loops("y", self.counts))
        return type(self)(kernel, strides, dilations, counts, extents["g"])


@dataclass(frozen=True, slots=True)
class Convolution(CanonicalOperator):
    """``Y[b, o, y…] = sum_{c, k…} X[b, c, stride*y + dilation*k …] * W[o, c, k…]``, X being padded before.

    Attributes:
        strides: distance between windows, per spatial dimension.
        dilations: distance between the elements of a window, per spatial dimension.
        group: number of groups of channels; a filter sees the channels of its group.
    """

    strides: Extents
    dilations: Extents
    group: Count = 1

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that filters and channels are those of the groups and that the windows lie within the data."""
        x, w, y = *self.check_operands(operands, 2), results[0]
        _check_fields(self, x, "strides", "dilations")
        if w.rank != x.rank or w.shape[1] * self.group != x.shape[1] or w.shape[0] % self.group:
            raise self.fault(f"filters {w} against filters of {self.group} groups for {x}")
        if y.shape[:2] != (x.shape[0], w.shape[0]) or y.rank != x.rank:
            raise self.fault(f"result {y} against one channel per filter of {w}")
        check_spans(self, x, w.shape[2:], y.shape[2:])

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:
        """Return batch, groups, filters, channels, elements of a filter and windows; the latter two need all of X."""
        x, w = operands
        elements, places = _loops("k", w.shape[2:]), _loops("y", result.shape[2:])
        loops = {
            "b": Loop(x.shape[0], LoopPart.N),
            "g": Loop(self.group, LoopPart.OUTER),
            "o": Loop(w.shape[0] // self.group),
            "c": Loop(w.shape[1], LoopPart.K, LoopKind.SUM),
            **{name: Loop(extent, LoopPart.K, LoopKind.SUM) for name, extent in elements.items()},
            **{name: Loop(extent, LoopPart.N) for name, extent in places.items()},
        }
        extents = {name: loop.extent for name, loop in loops.items()}
        filters = _linear(["g", "o"], extents)
        read = ("b", _linear(["g", "c"], extents), *window_places(self.strides, self.dilations))
        return LoopNest(loops, (read, (filters, "c", *elements)), ("b", filters, *places))

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:
        """Return the first groups, and the first elements of filters."""
        strides, dilations = _moved_windows(self, operands, result, extents)
        return replace(self, strides=strides, dilations=dilations, group=extents["g"])


@dataclass(frozen=True, slots=True)
class TransposedConvolution(CanonicalOperator):
    """``Y[b, o, stride*y + dilation*k …] += X[b, c, y…] * W[c, o, k…]``; Y is not yet cropped by pads.

    Attributes:
        strides: distance between windows of the result, per spatial dimension.
        dilations: distance between the elements of a window, per spatial dimension.
        group: number of groups of channels; a filter sees the channels of its group.
    """

    strides: Extents
    dilations: Extents
    group: Count = 1

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that filters and channels are those of the groups and that the windows lie within the result."""
        x, w, y = *self.check_operands(operands, 2), results[0]
        _check_fields(self, x, "strides", "dilations")
        if w.rank != x.rank or w.shape[0] != x.shape[1]:
            raise self.fault(f"filters {w} against one per channel of {x}")
        if y.shape[:2] != (x.shape[0], w.shape[1] * self.group) or y.rank != x.rank:
            raise self.fault(f"result {y} against {w.shape[1] * self.group} channels")
        check_spans(self, y, w.shape[2:], x.shape[2:])

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:  # noqa: ARG002
        """Return batch, groups, filters of a group, channels, elements of a filter and of the data; these overlap."""
        x, w = operands
        loops = {
            "b": Loop(x.shape[0], LoopPart.N),
            "g": Loop(self.group, LoopPart.OUTER),
            "o": Loop(w.shape[1]),
            "c": Loop(w.shape[0] // self.group, LoopPart.K, LoopKind.SUM),
            "k": Loop(prod(w.shape[2:])),
            "y": Loop(prod(x.shape[2:]), LoopPart.N),
        }
        extents = {name: loop.extent for name, loop in loops.items()}
        anywhere = (None,) * (x.rank - 2)
        channels, filters = _linear(["g", "c"], extents), _linear(["g", "o"], extents)
        return LoopNest(loops, (("b", channels, *anywhere), (channels, "o", *anywhere)), ("b", filters, *anywhere))

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:  # noqa: ARG002
        """Return the convolution of the groups that are left."""
        return replace(self, group=extents["g"])


@dataclass(frozen=True, slots=True)
class Window(CanonicalOperator):
    """``Y[b, c, y…] = reduce_k expression(X[b, c, stride*y + dilation*k …])``, X being padded before.

    Attributes:
        reduction: how the elements of a window become one.
        kernel: extent of a window, per spatial dimension.
        strides: distance between windows, per spatial dimension.
        dilations: distance between the elements of a window, per spatial dimension.
        expression: Python source of the element ``a``, computed before the reduction.
    """

    reduction: Reduction
    kernel: Extents
    strides: Extents
    dilations: Extents
    expression: str = "a"

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the windows lie within the data."""
        x, y = *self.check_operands(operands, 1), results[0]
        self.check_expression(self.expression, 1)
        if y.rank != x.rank or y.shape[:2] != x.shape[:2]:
            raise self.fault(f"result {y} against the batch and the channels of {x}")
        for name in ("kernel", "strides", "dilations"):
            self.check_length(name, x.rank - 2)
        check_spans(self, x, self.kernel, y.shape[2:], "{count} windows")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:  # noqa: ARG002
        """Return batch, channels, windows and the elements of a window; windows that overlap need all of X."""
        write = ("b", "c", *_loops("y", self.kernel))
        loops = {name: Loop(extent) for name, extent in zip(write, result.shape, strict=True)}
        loops |= {name: Loop(extent, kind=KINDS[self.reduction]) for name, extent in _loops("k", self.kernel).items()}
        return LoopNest(loops, (("b", "c", *window_places(self.strides, self.dilations)),), write)

    def on_share(self, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]) -> Self:
        """Return the first elements of each window."""
        strides, dilations = _moved_windows(self, operands, result, extents)
        kernel = tuple(extents[name] for name in _loops("k", self.kernel))
        return replace(self, strides=strides, dilations=dilations, kernel=kernel)


@dataclass(frozen=True, slots=True)
class Col2im(AnyExtents):
    """``Y[b, c, stride*y + dilation*k …] += X[b, c, k…, y…]``: windows are added up where they overlap.

    Attributes:
        strides: distance between windows of the result, per spatial dimension.
        dilations: distance between the elements of a window, per spatial dimension.
    """

    strides: Extents
    dilations: Extents

    def check(self, operands: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        """Check that the windows lie within the result."""
        x, y = *self.check_operands(operands, 1), results[0]
        rank = len(self.strides)
        self.check_length("dilations", rank)
        if y.rank != 2 + rank or x.rank != 2 + 2 * rank or x.shape[:2] != y.shape[:2]:
            raise self.fault(f"windows {x} of {rank} spatial dimensions against the result {y}")
        check_spans(self, y, x.shape[2 : 2 + rank], x.shape[2 + rank :], "windows")

    def loop_nest(self, operands: Sequence[Tensor], result: Tensor) -> LoopNest:  # noqa: ARG002
        """Return batch and channels; windows overlap."""
        anywhere = (None,) * (result.rank - 2)
        loops = {"b": Loop(result.shape[0]), "c": Loop(result.shape[1])}
        return LoopNest(loops, (("b", "c", *anywhere, *anywhere),), ("b", "c", *anywhere))


def _moved_windows(
    operator: Im2col | Convolution | Window, operands: Sequence[Tensor], result: Tensor, extents: Mapping[str, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return strides and dilations of windows in what is left of the first operand ``X[b, c, y…]``.

    Args:
        operator: whose loops over windows are ``y0`` …, over elements of a window ``k0`` ….
        operands: of the operator.
        result: of the operator.
        extents: of the loops, as many iterations as are left.
    """
    found = kernel_loops(operator.loop_nest(operands, result), [tensor.shape for tensor in operands], result.shape)
    digits, windows = [(loop, loop.inputs[0]) for loop in found], zip(operator.strides, operator.dilations, strict=True)
    steps = [{f"y{axis}": stride, f"k{axis}": dilation} for axis, (stride, dilation) in enumerate(windows)]
    moved = [moved_up(terms, 2 + axis, digits, extents) for axis, terms in enumerate(steps)]
    strides, dilations = (tuple(each[f"{name}{axis}"] for axis, each in enumerate(moved)) for name in "yk")
    return strides, dilations


def _linear(names: Sequence[str], extents: Mapping[str, int]) -> str:
    return linear_index(names, [extents[name] for name in names])


def _loops(letter: str, extents: Sequence[int]) -> dict[str, int]:
    return {f"{letter}{axis}": extent for axis, extent in enumerate(extents)}


def window_places(strides: Sequence[int], dilations: Sequence[int]) -> tuple[str, ...]:
    """Return per spatial dimension where the element ``k0`` … of the window ``y0`` … is.

    >>> window_places((2, 1), (1, 3))
    ('2*y0 + 1*k0', '1*y1 + 3*k1')
    """
    steps = zip(strides, dilations, strict=True)
    return tuple(f"{stride}*y{axis} + {dilation}*k{axis}" for axis, (stride, dilation) in enumerate(steps))


def _check_fields(operator: Im2col | Convolution | TransposedConvolution, x: Tensor, *names: str) -> None:
    """Check that fields have an item per spatial dimension, and that groups can share channels."""
    for name in names:
        operator.check_length(name, x.rank - 2)
    if x.rank < 3 or x.shape[1] % operator.group:  # X[batch, channel, …]
        raise operator.fault(f"field 'group' is {operator.group} against a divisor of the channels of {x}")


def check_spans(
    operator: Im2col | Convolution | TransposedConvolution | Window | Col2im,
    over: Tensor,
    kernel: Sequence[int],
    counts: Sequence[int],
    said: str = "{count} windows of {size}",
) -> None:
    """Check that the last window ends within the data.

    Raises:
        OperatorFieldError: it does not.
    """
    spatial = zip(over.shape[2:], counts, operator.strides, kernel, operator.dilations, strict=True)
    for axis, (extent, count, stride, size, dilation) in enumerate(spatial, 2):
        span = stride * (count - 1) + dilation * (size - 1) + 1
        if span > extent:
            windows = said.format(count=count, size=size)
            raise operator.fault(f"{windows} span {span} elements against {extent} of axis {axis} of {over}")
