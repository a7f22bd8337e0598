"""ONNX GatherND and ReverseSequence: rows at indices of several dimensions, which become one."""

from collections.abc import Sequence
from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expansions.gather import few_progressions
from dfcompile.lowering.operators import Gather, Lookup


@onnx_expansion("GatherND", "rows", default=True)
def gather_nd(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b…, u…] = X[b…, indices[b…, u…]]``: rows of X at linear indices, which one task computes beforehand."""
    x, indices, batch = op.input(0), op.input(1), op.integer("batch_dims", 0)
    within = batch + indices.shape[-1]
    _take_rows(op, build, flat_rows(op, build, indices, x.shape[:within], batch), within)


@onnx_expansion("ReverseSequence", "rows", default=True)
def reverse_sequence(op: Operator, build: CanonicalFragment) -> None:
    """``Y[t, b] = X[lengths[b] - 1 - t if t < lengths[b] else t, b]``: rows at linear indices, computed beforehand."""
    x, lengths = op.input(0), op.input(1)
    batch_axis, time_axis = op.axis("batch_axis", 1), op.axis("time_axis", 0)
    if {batch_axis, time_axis} != {0, 1}:
        raise op.unsupported(f"batch axis {batch_axis} and time axis {time_axis} against 0 and 1")
    steps, batches = (x.shape[axis] for axis in (time_axis, batch_axis))
    step, between = (batches, 1) if time_axis == 0 else (1, steps)
    times, starts = np.arange(steps), np.arange(batches) * between
    if lengths.value is not None:
        last = np.asarray(lengths.value).reshape(-1, 1) - 1
        if ((last < -1) | (last >= steps)).any():
            raise op.unsupported(f"a length outside of 0 to {steps}")
        found = np.where(times <= last, last - times, times) * step + starts[:, None]
        rows = build.parameter("rows", (found.T if time_axis == 0 else found).astype(np.int64).reshape(-1))
    else:
        operands = [lengths, build.parameter("times", times), build.parameter("starts", starts)]
        source, axes = f"(a - 1 - b if b < a else b) * {step} + c", [[batch_axis], [time_axis], [batch_axis]]
        each = build.computed("row", source, operands, x.shape[:2], "int64", axes=axes, step="rows")
        rows = build.view(each, "rows", (each.elements,))
    _take_rows(op, build, rows, 2)


def flat_rows(op: Operator, build: CanonicalFragment, indices: Tensor, extents: Sequence[int], batch: int) -> Tensor:
    """Return the linear index of each row that indices of several dimensions name, ``[n]``; constants are computed.

    Args:
        op: the operator, whose operand 1 the indices are.
        build: its fragment.
        indices: ``[b…, u…, k]``, each counted from the end if it is negative.
        extents: of the dimensions ``b…`` and of the k that are indexed.
        batch: how many dimensions b there are.

    Raises:
        UnsupportedOpError: a constant index is outside of its dimension.
    """
    inner, count = np.array(extents[batch:], np.int64), prod(indices.shape[:-1])
    strides = np.array([prod(extents[at + 1 :]) for at in range(batch, len(extents))], np.int64)
    offsets = np.arange(prod(extents[:batch]), dtype=np.int64) * prod(extents[batch:])
    shape = (len(offsets), count // len(offsets), len(inner))
    if indices.value is not None:
        given = np.asarray(indices.value).reshape(shape)
        if ((given < -inner) | (given >= inner)).any():
            raise op.unsupported(f"an index outside of the dimensions {list(extents[batch:])}")
        return build.parameter("rows", ((given % inner) * strides).sum(axis=2).reshape(-1) + offsets.repeat(shape[1]))
    if len(extents) == 1:
        return build.view(indices, "rows", (count,))
    # The start of a batch is added with its last index.
    starts = np.zeros((len(offsets), 1, len(inner)), np.int64)
    starts[:, 0, -1] = offsets
    operands = [build.view(indices, "indices", shape), build.parameter("extents", inner)]
    operands += [build.parameter("strides", strides), build.parameter("starts", starts)]
    rows = build.array("row", shape[:2], "int64")
    build.reduce(Reduction.SUM, operands, rows, [2], "((a + b) % b) * c + d", step="rows")
    return build.view(rows, "rows", (count,))


def _take_rows(op: Operator, build: CanonicalFragment, rows: Tensor, within: int) -> None:
    """Write the rows of X, whose first dimensions are numbered through, at linear indices."""
    x, y = op.input(0), op.output()
    inner = prod(x.shape[within:])
    table = build.view(x, "table", (prod(x.shape[:within]), inner))
    runs, shape = () if rows.value is None else few_progressions(rows.value), (rows.elements, inner)
    if runs:
        taken = build.made("taken", Gather(0, runs), [table], shape, step="gather")
    else:
        taken = build.made("taken", Lookup(0), [table, rows], shape, step="lookup")
    build.view_as(taken, y)
