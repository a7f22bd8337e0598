"""The pass fuse-elementwise: chains of element-wise operators become one."""

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend import Level, Program
from dfcompile.lowering.expression_tree import is_readable
from dfcompile.lowering.expressions import MOST_OPERANDS, operand_names, stored, substitute
from dfcompile.lowering.lowering_pass import lowering_pass
from dfcompile.lowering.node import Operator
from dfcompile.lowering.operators import Elementwise
from dfcompile.lowering.rewriter import ProgramRewriter
from dfcompile.lowering.tensor import Tensor


class _Operand(Struct, frozen=True):
    """An array and the result dimensions that its dimensions stand for."""

    array: str
    axes: tuple[int, ...]


class _Elementwise(Struct, frozen=True, eq=False):
    """An element-wise operator of the program."""

    expression: str
    operands: tuple[_Operand, ...]
    tensors: tuple[Tensor, ...]  # the same operands
    result: Tensor


class _Joined(Struct, frozen=True, eq=False):
    """What two operators become: each array is read once for each way in which it lies in the result."""

    operands: tuple[_Operand, ...]
    expression: str


@lowering_pass("fuse-elementwise", level=Level.CANONICAL, source="own")
def fuse_elementwise(program: Program, *, max: int = MOST_OPERANDS) -> Program:  # noqa: A002  # as users write it
    """Join an element-wise operator with the only one that uses its result, up to ``max`` operands.

    ``t = f(a); y = g(t, b)`` becomes ``y = g(f(a), b)``, with the name of the last one. An array that is an output, in
    memory, or seen through a view stays.
    """
    if not 1 <= max <= MOST_OPERANDS:
        raise UserError(f"option 'max': found {max} against 1 to {MOST_OPERANDS} operands")
    graph = ProgramRewriter(program)
    for op in graph.operators():
        consumer = op
        while (found := _producer(graph, consumer, max)) is not None:
            producer, joined = found
            consumer = graph.replace(
                producer,
                consumer,
                inputs=[graph.tensor(operand.array) for operand in joined.operands],
                operator=Elementwise(joined.expression, tuple(operand.axes for operand in joined.operands)),
            )
    return graph.finish()


def _producer(graph: ProgramRewriter, consumer: Operator, most: int) -> tuple[Operator, _Joined] | None:
    """Return an element-wise operator whose result only the consumer uses, and what the two become."""
    outer = _elementwise(consumer)
    if outer is None:
        return None
    for tensor in consumer.operands():
        producer = graph.producer(tensor)
        inner = None if producer is None else _elementwise(producer)
        if producer is None or inner is None or not graph.is_internal(tensor):
            continue
        if [reader.name for reader in graph.readers(tensor)] == [consumer.name] and _is_whole(tensor, outer):
            joined = _joined(inner, tensor, outer)
            if len(joined.operands) <= most and is_readable(joined.expression):
                return producer, joined
    return None


def _elementwise(op: Operator) -> _Elementwise | None:
    found = op.canonical(Elementwise)
    if found is None or found.starts is not None:
        return None
    tensors = op.operands()
    axes = found.operand_axes(tensors, op.output())
    operands = tuple(_Operand(tensor.name, its) for tensor, its in zip(tensors, axes, strict=True))
    return _Elementwise(found.expression, operands, tensors, op.output())


def _is_whole(between: Tensor, consumer: _Elementwise) -> bool:
    """Return whether the consumer reads a tensor element by element, nowhere broadcast or transposed."""
    axes = {operand.axes for operand in consumer.operands if operand.array == between.name}
    return between.shape == consumer.result.shape and axes == {tuple(range(consumer.result.rank))}


def _joined(producer: _Elementwise, between: Tensor, consumer: _Elementwise) -> _Joined:
    first, second = producer.operands, consumer.operands
    joined = list(dict.fromkeys([*first, *(operand for operand in second if operand.array != between.name)]))
    names = dict(zip(joined, (f"operand{position}" for position in range(len(joined))), strict=True))
    inner = substitute(
        producer.expression,
        dict(zip(operand_names(len(first)), (names[operand] for operand in first), strict=True)),
    )
    inner = stored(inner, between, producer.tensors)
    outer = substitute(
        consumer.expression,
        {
            name: inner if operand.array == between.name else names[operand]
            for name, operand in zip(operand_names(len(second)), second, strict=True)
        },
    )
    short = operand_names(min(len(joined), MOST_OPERANDS))
    return _Joined(tuple(joined), substitute(outer, dict(zip(names.values(), short, strict=False))))
