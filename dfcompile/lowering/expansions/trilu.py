"""ONNX Trilu: one triangle of every matrix."""

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion


@onnx_expansion("Trilu", "mask", default=True)
def trilu(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, i, j] = X[…, i, j] if j - i >= k else 0`` (upper, else ``<=``): one task with a constant mask."""
    x, y = op.input(0), op.output()
    (diagonal,) = op.static_integers(1, "k") or (0,)
    build.check_parameter(x.shape[-2:])
    rows, columns = (np.arange(extent) for extent in x.shape[-2:])
    distance = columns[None, :] - rows[:, None]
    inside = distance >= diagonal if op.integer("upper", 1) else distance <= diagonal
    build.elementwise("a if b else 0", [x, build.parameter("mask", inside)], y)
