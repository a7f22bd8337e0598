"""ONNX MaxUnpool: the largest elements of windows go back to where they came from."""

from math import prod

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.operators import Update


@onnx_expansion("MaxUnpool", "update", default=True)
def max_unpool(op: Operator, build: CanonicalFragment) -> None:
    """``Y = 0``, but ``Y[indices[…]] = X[…]`` with Y as one row: each element is written where its index says."""
    x, indices, y = op.input(0), op.input(1), op.output()
    rank = x.rank - 2
    kernel, strides = op.integers("kernel_shape"), op.integers("strides", (1,) * rank)
    pads = op.integers("pads", (0,) * (2 * rank))
    if (len(kernel), len(strides), len(pads)) != (rank, rank, 2 * rank) or indices.shape != x.shape:
        raise op.unsupported(f"indices {indices} of {x}, or attributes that are not of {rank} axes")
    sizes = tuple(
        (extent - 1) * stride - pads[axis] - pads[rank + axis] + size
        for axis, (extent, stride, size) in enumerate(zip(x.shape[2:], strides, kernel, strict=True))
    )
    if y.shape != (*x.shape[:2], *sizes):
        # ONNX's definition counts indices in the size that the windows give, onnxruntime in the one that is asked for.
        raise op.unsupported(f"result {y} against the size {list(sizes)} that its windows give (pad it behind)")
    elements = prod(y.shape)
    build.check_parameter((elements,))
    zeros = build.parameter("zeros", np.zeros((elements,), x.dtype))
    places, values = build.view(indices, "places", (x.elements,)), build.view(x, "values", (x.elements,))
    build.view_as(build.made("result", Update(0, (0,)), [zeros, places, values], (elements,), step=""), y)
