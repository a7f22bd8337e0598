"""The pass fuse-elementwise: chains of element-wise operators become one."""

from dataclasses import dataclass

import numpy as np

from dfcompile.errors import UserError
from dfcompile.frontend import Level, Program
from dfcompile.lowering.expressions import operand_names, substitute
from dfcompile.lowering.lowering_pass import lowering_pass
from dfcompile.lowering.operator import Operator, Tensor
from dfcompile.lowering.rewriter import ProgramRewriter

_MOST_OPERANDS = 26  # an expression has a letter for each
_LONGEST_EXPRESSION = 2000
_ATTRIBUTES = {"expression", "axes"}


@dataclass(frozen=True, slots=True)
class _Operand:
    """An array and the result dimensions that its dimensions stand for."""

    array: str
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Joined:
    """What two operators become: each array is read once for each way in which it lies in the result."""

    operands: tuple[_Operand, ...]
    expression: str


@lowering_pass("fuse-elementwise", level=Level.CANONICAL, source="own")
def fuse_elementwise(program: Program, *, max: int = _MOST_OPERANDS) -> Program:  # noqa: A002  # as users write it
    """Join an element-wise operator with the only one that uses its result, up to ``max`` operands.

    ``t = f(a); y = g(t, b)`` becomes ``y = g(f(a), b)``, with the name of the last one. An array that is an output, in
    memory, or seen through a view stays.
    """
    if not 1 <= max <= _MOST_OPERANDS:
        raise UserError(f"option 'max': found {max} against 1 to {_MOST_OPERANDS} operands")
    graph = ProgramRewriter(program)
    for op in graph.operators():
        consumer = op
        while (found := _producer(graph, consumer, max)) is not None:
            producer, joined = found
            consumer = graph.replace(
                producer,
                consumer,
                inputs=[graph.tensor(operand.array) for operand in joined.operands],
                attributes={
                    "expression": joined.expression,
                    "axes": [list(operand.axes) for operand in joined.operands],
                },
            )
    return graph.finish()


def _producer(graph: ProgramRewriter, consumer: Operator, most: int) -> tuple[Operator, _Joined] | None:
    """Return an element-wise operator whose result only the consumer uses, and what the two become."""
    if not _is_elementwise(consumer):
        return None
    for tensor in consumer.operands():
        producer = graph.producer(tensor)
        if producer is None or not _is_elementwise(producer) or not graph.is_internal(tensor):
            continue
        if [reader.name for reader in graph.readers(tensor)] == [consumer.name] and _is_whole(tensor, consumer):
            joined = _joined(producer, tensor, consumer)
            if len(joined.operands) <= most and len(joined.expression) <= _LONGEST_EXPRESSION:
                return producer, joined
    return None


def _is_elementwise(op: Operator) -> bool:
    return op.op_type == "Elementwise" and set(op.attributes) <= _ATTRIBUTES


def _is_whole(between: Tensor, consumer: Operator) -> bool:
    """Return whether the consumer reads a tensor element by element, nowhere broadcast or transposed."""
    result = consumer.output()
    axes = {operand.axes for operand in _operands(consumer) if operand.array == between.name}
    return between.shape == result.shape and axes == {tuple(range(result.rank))}


def _operands(op: Operator) -> list[_Operand]:
    """Return the operands of an element-wise operator in order."""
    rank, given = op.output().rank, op.attributes.get("axes")
    operands = []
    for position, tensor in enumerate(op.operands()):
        own = given[position] if isinstance(given, list) else None
        last = range(rank - tensor.rank, rank)
        operands.append(_Operand(tensor.name, tuple(own if isinstance(own, list) else last)))
    return operands


def _joined(producer: Operator, between: Tensor, consumer: Operator) -> _Joined:
    first, second = _operands(producer), _operands(consumer)
    joined = list(dict.fromkeys([*first, *(operand for operand in second if operand.array != between.name)]))
    names = dict(zip(joined, (f"operand{position}" for position in range(len(joined))), strict=True))
    inner = substitute(
        str(producer.attributes.get("expression", "a")),
        dict(zip(operand_names(len(first)), (names[operand] for operand in first), strict=True)),
    )
    inner = _as_stored(inner, between, producer.operands())
    outer = substitute(
        str(consumer.attributes.get("expression", "a")),
        {
            name: inner if operand.array == between.name else names[operand]
            for name, operand in zip(operand_names(len(second)), second, strict=True)
        },
    )
    short = operand_names(min(len(joined), _MOST_OPERANDS))
    return _Joined(tuple(joined), substitute(outer, dict(zip(names.values(), short, strict=False))))


def _as_stored(expression: str, between: Tensor, operands: tuple[Tensor, ...]) -> str:
    """Keep what storing the intermediate result did to it: integers wrap around, truth values are 0 or 1."""
    stored = np.dtype(between.dtype)
    is_plain = {between.dtype, *(tensor.dtype for tensor in operands)} == {between.dtype} and stored.kind == "f"
    return expression if is_plain else f"dace.{stored.name}({expression})"
