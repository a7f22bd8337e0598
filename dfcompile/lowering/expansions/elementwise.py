"""The canonical Elementwise."""

from dfcompile.lowering import CanonicalNode, MapFragment, expansion
from dfcompile.lowering.expressions import operand_names
from dfcompile.lowering.operators import Elementwise


@expansion(Elementwise, "map", source="dematteis23", default=True)
def elementwise(op: CanonicalNode[Elementwise], build: MapFragment) -> None:
    """``Y[i, …] = expression(a[i, …], b[i, …], …)``: one element-wise task in row order."""
    result, operands = op.output(), op.operands()
    loops = {f"i{axis}": extent for axis, extent in enumerate(result.shape)}
    every = zip(operand_names(len(operands)), operands, op.operator.indices(operands, result), strict=True)
    reads = {name: (tensor, indices) for name, tensor, indices in every}
    build.map("", loops=loops, reads=reads, write=(result, list(loops)), code=op.operator.expression)
