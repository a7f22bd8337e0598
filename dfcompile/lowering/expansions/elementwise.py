"""Element-wise operators: one task, every element read and written once, in row order.

The canonical Elementwise has an ``expression`` of its operands ``a``, ``b``, ``c`` …; operands are broadcast as in
numpy, or as the attribute ``axes`` says: per operand the list of result dimensions that its own dimensions stand for.
"""

from string import ascii_lowercase

from dfcompile.lowering import MapFragment, Operator, expansion


@expansion("Elementwise", "map", source="dematteis23", default=True)
def elementwise(op: Operator, build: MapFragment) -> None:
    """``Y[i, …] = expression(a[i, …], b[i, …], …)``: one element-wise task in row order."""
    result = op.output()
    loops = {f"i{axis}": extent for axis, extent in enumerate(result.shape)}
    reads = {}
    for letter, tensor, axes in zip(ascii_lowercase, op.operands(), operand_axes(op), strict=False):
        reads[letter] = (
            tensor,
            [f"i{axis}" if extent > 1 else "0" for axis, extent in zip(axes, tensor.shape, strict=True)],
        )
    build.map("", loops=loops, reads=reads, write=(result, list(loops)), code=op.text("expression", "a"))


def operand_axes(op: Operator) -> list[list[int]]:
    """Return per operand the result dimensions that its dimensions stand for; numpy's alignment unless given."""
    rank = op.output().rank
    given = op.attributes.get("axes")
    if isinstance(given, list):
        return [[int(axis) for axis in axes] for axes in given if isinstance(axes, list)]
    return [list(range(rank - tensor.rank, rank)) for tensor in op.operands()]
