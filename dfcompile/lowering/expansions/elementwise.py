"""Element-wise operators: one task, every element read and written once, in row order.

The canonical Elementwise has an ``expression`` of its operands ``a``, ``b``, ``c`` …; operands are broadcast as in
numpy, or as the attribute ``axes`` says: per operand the list of result dimensions that its own dimensions stand
for.
"""

from collections.abc import Sequence

from dfcompile.lowering import CanonicalFragment, MapFragment, Operator, Tensor, expansion
from dfcompile.lowering.expressions import inlined, operand_names


def add_elementwise(
    build: CanonicalFragment,
    step: str,
    expression: str,
    operands: Sequence[Tensor],
    result: Tensor,
    axes: Sequence[Sequence[int]] | None = None,
) -> None:
    """Add a canonical Elementwise; constants of one element are written into its expression.

    Args:
        build: the fragment.
        step: see `CanonicalFragment.op`.
        expression: of ``a``, ``b``, ``c`` … for the operands in order.
        operands: broadcast to the result as in numpy unless ``axes`` says otherwise; at most 26.
        result: written once, in row order.
        axes: per operand the result dimensions that its dimensions stand for.
    """
    source, kept = inlined(expression, operands)
    left = [operands[position] for position in kept]
    if axes is None:
        build.op("Elementwise", step, left, [result], expression=source)
    else:
        chosen = [list(axes[position]) for position in kept]
        build.op("Elementwise", step, left, [result], expression=source, axes=chosen)


@expansion("Elementwise", "map", source="dematteis23", default=True)
def elementwise(op: Operator, build: MapFragment) -> None:
    """``Y[i, …] = expression(a[i, …], b[i, …], …)``: one element-wise task in row order."""
    result, operands = op.output(), op.operands()
    loops = {f"i{axis}": extent for axis, extent in enumerate(result.shape)}
    names = operand_names(len(operands))
    reads = {
        name: (tensor, [f"i{axis}" if extent > 1 else "0" for axis, extent in zip(axes, tensor.shape, strict=True)])
        for name, tensor, axes in zip(names, operands, operand_axes(op), strict=True)
    }
    build.map("", loops=loops, reads=reads, write=(result, list(loops)), code=op.text("expression", "a"))


def operand_axes(op: Operator) -> list[list[int]]:
    """Return per operand the result dimensions that its dimensions stand for; numpy's alignment unless given."""
    rank = op.output().rank
    given = op.attributes.get("axes")
    if isinstance(given, list):
        return [[int(axis) for axis in axes] for axes in given if isinstance(axes, list)]
    return [list(range(rank - tensor.rank, rank)) for tensor in op.operands()]
