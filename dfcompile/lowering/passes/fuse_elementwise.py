"""The passes fuse-elementwise and fuse-reductions: what is computed of single elements is computed where it is read."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from dfcompile.errors import UserError
from dfcompile.frontend import Level, Program
from dfcompile.lowering import Operator, Tensor, lowering_pass
from dfcompile.lowering.expressions import MOST_OPERANDS, is_readable, operand_names, stored, substitute
from dfcompile.lowering.operators import CanonicalOperator, Elementwise, Reduce
from dfcompile.lowering.rewriter import ProgramRewriter
from dfcompile.records import replace

_Operand: TypeAlias = tuple[str, tuple[int, ...]]  # an array, and the result dimensions that its own stand for


@lowering_pass("fuse-elementwise", level=Level.CANONICAL, source="own")
def fuse_elementwise(program: Program, *, max: int = MOST_OPERANDS) -> Program:  # noqa: A002  # as users write it
    """Join an element-wise operator with the only one that uses its result, up to ``max`` operands.

    ``t = f(a); y = g(t, b)`` becomes ``y = g(f(a), b)``, with the name of the last one. An array that is an output, in
    memory, or seen through a view stays.
    """
    return joined(program, max, _chained)


Joined: TypeAlias = tuple[Operator, list[Tensor | None], CanonicalOperator]  # with whom, and what the two become


def joined(program: Program, most: int, join: Callable[[ProgramRewriter, Operator, int], Joined | None]) -> Program:
    """Return a program whose operators are joined with what writes their operands, as long as there is such a one.

    Raises:
        UserError: no such number of operands at most.
    """
    if not 1 <= most <= MOST_OPERANDS:
        raise UserError(f"option 'max': found {most} against 1 to {MOST_OPERANDS} operands")
    graph = ProgramRewriter(program)
    for op in graph.operators():
        while (found := join(graph, op, most)) is not None:
            producer, inputs, operator = found
            op = graph.replace(producer, op, inputs=inputs, operator=operator)  # noqa: PLW2901
    return graph.finish()


def sole_producers(graph: ProgramRewriter, op: Operator) -> Iterator[tuple[Tensor, Operator, Elementwise]]:
    """Yield the operands of an operator that element-wise operators write and nobody else sees, with these."""
    for tensor in op.operands():
        producer = graph.producer(tensor)
        found = None if producer is None else producer.canonical(Elementwise)
        if producer is None or found is None or found.starts is not None or not graph.is_internal(tensor):
            continue
        if [reader.name for reader in graph.readers(tensor)] == [op.name]:
            yield tensor, producer, found


def _chained(graph: ProgramRewriter, consumer: Operator, most: int) -> Joined | None:
    """Return an element-wise operator whose result only the consumer uses, and what the two become."""
    outer = consumer.canonical(Elementwise)
    if outer is None or outer.starts is not None:
        return None
    second, result = _operands(consumer, outer), consumer.output()
    for tensor, producer, inner in sole_producers(graph, consumer):
        # The consumer reads it element by element, nowhere broadcast or transposed.
        axes = {its for name, its in second if name == tensor.name}
        if tensor.shape != result.shape or axes != {tuple(range(result.rank))}:
            continue
        first = _operands(producer, inner)
        # Each array is read once for each way in which it lies in the result.
        joined = list(dict.fromkeys([*first, *(operand for operand in second if operand[0] != tensor.name)]))
        names = {operand: f"operand{position}" for position, operand in enumerate(joined)}
        of_first = dict(zip(operand_names(len(first)), (names[operand] for operand in first), strict=True))
        inside = stored(substitute(inner.expression, of_first), tensor, producer.operands())
        of_second = (inside if operand[0] == tensor.name else names[operand] for operand in second)
        whole = substitute(outer.expression, dict(zip(operand_names(len(second)), of_second, strict=True)))
        short = operand_names(min(len(joined), MOST_OPERANDS))
        expression = substitute(whole, dict(zip(names.values(), short, strict=False)))
        if len(joined) <= most and is_readable(expression):
            operator = Elementwise(expression, tuple(its for _, its in joined))
            return producer, [graph.tensor(name) for name, _ in joined], operator
    return None


def _operands(op: Operator, elementwise: Elementwise) -> list[_Operand]:
    tensors = op.operands()
    axes = elementwise.operand_axes(tensors, op.output())
    return [(tensor.name, its) for tensor, its in zip(tensors, axes, strict=True)]


@lowering_pass("fuse-reductions", level=Level.CANONICAL, source="own")
def fuse_reductions(program: Program, *, max: int = MOST_OPERANDS) -> Program:  # noqa: A002  # as users write it
    """Join an element-wise operator with the reduction that alone uses its result, up to ``max`` operands.

    ``t = f(a, b); y = sum(t)`` becomes ``y = sum(f(a, b))``: one task where there were two, and nothing between them.
    An array that is an output, in memory, or seen through a view stays, as does one whose operands do not lie in it as
    numpy broadcasts.
    """
    return joined(program, max, _reduced)


def _reduced(graph: ProgramRewriter, op: Operator, most: int) -> Joined | None:
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
