"""Concatenation, ONNX's and the canonical Concat."""

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, expansion, onnx_expansion
from dfcompile.lowering.operators import Concat


@onnx_expansion("Concat", "copy", default=True)
def concat(op: Operator, build: CanonicalFragment) -> None:
    """``Y[…, offset_n + i, …] = X_n[…, i, …]``; a view of a single operand."""
    operands, y = op.operands(), op.output()
    if len(operands) == 1:
        build.view_as(operands[0], y)
    else:
        build.add(Concat(op.axis(rank=y.rank)), operands, y)


@expansion(Concat, "copy", source="dematteis23", default=True)
def concat_parts(op: CanonicalNode[Concat], build: MapFragment) -> None:
    """One task per operand copies it into its place; the result is in memory, as several tasks write it."""
    y, axis = op.output(), op.operator.axis
    offset = 0
    for position, x in enumerate(op.operands()):
        loops = {f"i{at}": extent for at, extent in enumerate(x.shape)}
        place = [f"{offset} + {name}" if at == axis and offset else name for at, name in enumerate(loops)]
        build.map(f"part{position}", loops=loops, reads={"x": (x, list(loops))}, write=(y, place), code="x")
        offset += x.shape[axis]
