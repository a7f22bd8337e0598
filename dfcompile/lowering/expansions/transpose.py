"""ONNX Transpose."""

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.operators import Copy


@onnx_expansion("Transpose", "result-order", default=True)
def transpose_by_result(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i] = X[i permuted]`` in the row order of Y, which can stream; a view if only extents of 1 move."""
    _transpose(op, build, by_result=True)


@onnx_expansion("Transpose", "data-order")
def transpose_by_data(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i permuted] = X[i]`` in the row order of X, which can stream; a view if only extents of 1 move."""
    _transpose(op, build, by_result=False)


def _transpose(op: Operator, build: CanonicalFragment, *, by_result: bool) -> None:
    x, y = op.input(0), op.output()
    permutation = op.integers("perm", tuple(reversed(range(x.rank))))
    moved = [axis for axis in permutation if x.shape[axis] > 1]
    if moved == sorted(moved):
        build.view_as(x, y)
    elif by_result:
        build.add(Copy(read=tuple(f"i{permutation.index(axis)}" for axis in range(x.rank))), [x], y)
    else:
        build.add(Copy(x.shape, write=tuple(f"i{axis}" for axis in permutation)), [x], y)
