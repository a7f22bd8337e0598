"""Nodes of operators that reduce or normalise along axes."""

from collections.abc import Mapping

import numpy as np

from tests.fuzz.draw import Draw
from tests.fuzz.drawn_node import AttributeValue, DrawnNode, Generator, OperatorVersion


def reduction(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(0 if draw.chance(0.1) else 1))
    if op.op_type == "ReduceLogSum" and data.dtype.kind in "iu":
        data = np.maximum(data, 1)  # no integer is the logarithm of 0: each machine makes another one of it
    attributes: dict[str, AttributeValue] = {}
    if draw.chance(0.6):
        attributes["keepdims"] = draw.integer(0, 1)
    if op.has("noop_with_empty_axes") and draw.chance(0.3):
        attributes["noop_with_empty_axes"] = draw.integer(0, 1)
    axes = draw.axes(data.ndim)
    if not data.size:  # of which onnxruntime takes axes in another order, or from the end, for others
        axes = sorted(axis % data.ndim for axis in axes)
    if op.has("axes"):
        if axes:
            attributes["axes"] = axes
        return DrawnNode([data], attributes)
    if draw.chance(0.3):
        return DrawnNode([data], attributes)
    return DrawnNode([data, np.asarray(axes, np.int64)], attributes, structure=(1,))


def arg_reduction(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(1))
    attributes: dict[str, AttributeValue] = {}
    if draw.chance(0.7):
        attributes["axis"] = draw.axis(data.ndim) if op.since >= 11 else draw.integer(0, data.ndim - 1)
    if draw.chance(0.6):
        attributes["keepdims"] = draw.integer(0, 1)
    if op.has("select_last_index") and draw.chance(0.6):
        attributes["select_last_index"] = draw.integer(0, 1)
    return DrawnNode([data], attributes)


def along_axis(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(1))
    attributes: dict[str, AttributeValue] = {}
    default_fits = op.since >= 13 or op.op_type == "LpNormalization" or data.ndim > 1
    if draw.chance(0.7) or not default_fits:
        attributes["axis"] = draw.axis(data.ndim) if op.since >= 11 else draw.integer(0, data.ndim - 1)
    if op.has("p") and draw.chance(0.6):
        attributes["p"] = draw.integer(1, 2)
    return DrawnNode([data], attributes)


def mean_variance(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(4, 4) if draw.chance(0.6) else draw.shape(1))
    if data.ndim == 4 and draw.chance(0.4):
        return DrawnNode([data], {})
    return DrawnNode([data], {"axes": draw.axes(data.ndim, least=1)})


def cumulative_sum(op: OperatorVersion, draw: Draw) -> DrawnNode:
    data = draw.array(draw.dtype(op.dtypes()), draw.shape(1))
    axis = np.asarray(draw.axis(data.ndim), draw.choice(["int32", "int64"]))
    names = [name for name in ("exclusive", "reverse") if draw.chance(0.6)]
    return DrawnNode([data, axis], {name: draw.integer(0, 1) for name in names}, structure=(1,))


_REDUCTIONS = """
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
"""
GENERATORS: Mapping[str, Generator] = {
    **dict.fromkeys(_REDUCTIONS.split(), reduction),
    **dict.fromkeys(("ArgMax", "ArgMin"), arg_reduction),
    **dict.fromkeys(("Hardmax", "LogSoftmax", "LpNormalization", "Softmax"), along_axis),
    "CumSum": cumulative_sum,
    "MeanVarianceNormalization": mean_variance,
}
