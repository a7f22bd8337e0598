"""Positions of the largest and smallest elements: ArgMax, ArgMin, Hardmax."""

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expressions import is_real
from dfcompile.lowering.operators.reduce import kept_shape


def arg_extremum(op: Operator, build: CanonicalFragment) -> None:
    """``Y = the first (or last) i with X[i] == max(X)`` along an axis: two downsamplers."""
    x, y, axis = op.input(0), op.output(), op.axis()
    extremum = Reduction.MAX if op.op_type == "ArgMax" else Reduction.MIN
    is_last = op.integer("select_last_index", 0) != 0
    _position(build, x, y, axis, extremum, is_last=is_last, finds_nan=is_real(x.dtype))


EXPANSIONS = tuple(onnx_expansion(op_type, "map", default=True)(arg_extremum) for op_type in ("ArgMax", "ArgMin"))


@onnx_expansion("Hardmax", "map", default=True)
def hardmax(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i] = 1 if i is the first position of max(X) else 0`` along an axis."""
    x, y, axis = op.input(0), op.output(), op.axis(default=-1)
    first = build.array("first", kept_shape(x.shape, [axis]), "int64")
    positions = _position(build, x, first, axis, Reduction.MAX, is_last=False, finds_nan=False)
    build.elementwise("1 if a == b else 0", [first, positions], y, step="mark")


def _position(
    build: CanonicalFragment, x: Tensor, y: Tensor, axis: int, extremum: Reduction, *, is_last: bool, finds_nan: bool
) -> Tensor:
    """Write the position of the extremum to ``y``; return the positions along the axis."""
    shape = tuple(extent if at == axis else 1 for at, extent in enumerate(x.shape))
    build.check_parameter(shape)
    positions = build.parameter("positions", np.arange(x.shape[axis], dtype=np.int64).reshape(shape))
    top = build.reduced("extremum", extremum, [x], [axis])
    # The extremum is NaN if the first element is; then that position is sought, and Hardmax marks none.
    nowhere = 0 if is_last else x.shape[axis]
    found = "a == b or b != b" if finds_nan and not is_last else "a == b"
    choice = Reduction.MAX if is_last else Reduction.MIN
    build.reduce(choice, [x, top, positions], y, [axis], f"c if {found} else {nowhere}", step="position")
    return positions
