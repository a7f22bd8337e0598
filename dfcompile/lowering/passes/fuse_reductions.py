"""The pass fuse-reductions: what a reduction alone reads is computed as it is reduced."""

from dfcompile.frontend import Level, Program
from dfcompile.lowering import Operator, lowering_pass
from dfcompile.lowering.expressions import MOST_OPERANDS, is_readable, operand_names, stored, substitute
from dfcompile.lowering.operators import Elementwise, Reduce
from dfcompile.lowering.passes.fuse_elementwise import Joined, joined, sole_producers
from dfcompile.lowering.rewriter import ProgramRewriter
from dfcompile.records import replace


@lowering_pass("fuse-reductions", level=Level.CANONICAL, source="own")
def fuse_reductions(program: Program, *, max: int = MOST_OPERANDS) -> Program:  # noqa: A002  # as users write it
    """Join an element-wise operator with the reduction that alone uses its result, up to ``max`` operands.

    ``t = f(a, b); y = sum(t)`` becomes ``y = sum(f(a, b))``: one task where there were two, and nothing between them.
    An array that is an output, in memory, or seen through a view stays, as does one whose operands do not lie in it as
    numpy broadcasts.
    """
    return joined(program, max, _joined)


def _joined(graph: ProgramRewriter, op: Operator, most: int) -> Joined | None:
    """Return an element-wise operator whose result only the reduction uses, and what the two become."""
    reduce = op.canonical(Reduce)
    if reduce is None:
        return None
    operands = op.operands()
    for tensor, producer, inner in sole_producers(graph, op):
        (at, *others_at) = (place for place, operand in enumerate(operands) if operand.name == tensor.name)
        is_whole = not others_at and tensor.shape == reduce.full_shape(operands)
        first, kept = producer.operands(), [*operands[:at], *operands[at + 1 :]]
        # Operands of a reduction lie in the result as numpy broadcasts.
        is_broadcast = inner.axes in (None, Elementwise(inner.expression).operand_axes(first, producer.output()))
        if not (is_whole and is_broadcast) or len(first) + len(kept) > most:
            continue
        names = operand_names(len(first) + len(kept))
        of_first = dict(zip(operand_names(len(first)), names, strict=False))
        inside = stored(substitute(inner.expression, of_first), tensor, first)
        others = iter(names[len(first) :])
        numbered = enumerate(operand_names(len(operands)))
        outer = {name: inside if position == at else next(others) for position, name in numbered}
        expression = substitute(reduce.expression, outer)
        if is_readable(expression):
            return producer, [*first, *kept], replace(reduce, expression=expression)
    return None
