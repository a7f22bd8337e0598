"""Elementwise operators run as their operand is made: the tensor between never leaves the processing elements."""

from dataclasses import replace
from math import gcd

from dfcompile.bounds.einsum.rows import Rows
from dfcompile.bounds.operators import BoundedModel, BoundedOperator, Operand
from dfcompile.canonical_dag import TensorRole


def with_epilogues(model: BoundedModel) -> BoundedModel:
    """Return a model whose elementwise operators are part of what makes their operand, if they alone read it.

    The result is that of the elementwise operator: a tile of it is what the last visit to a tile of the operand
    leaves. Other operands of it are counted once. The name is that of the first operator.
    """
    readers: dict[str, int] = {}
    for op in model.operators:
        for operand in op.reads:
            readers[operand.tensor] = readers.get(operand.tensor, 0) + 1
    inner = {tensor.name for tensor in model.tensors if tensor.role is TensorRole.INTERMEDIATE}
    found: list[BoundedOperator] = []
    maker: dict[str, int] = {}
    for op in model.operators:
        place = _place(op, maker, {name for name in inner if readers.get(name) == 1}, found)
        if place is None:
            found.append(op)
            place = len(found) - 1
        else:
            found[place] = _merged(found[place], op)
        maker |= dict.fromkeys((operand.tensor for operand in op.writes), place)
    return replace(model, operators=_in_order(found))


def _place(op: BoundedOperator, maker: dict[str, int], single: set[str], found: list[BoundedOperator]) -> int | None:
    """Return the operator that an elementwise one becomes a part of."""
    if op.shape != Rows() or len(op.writes) != 1:
        return None
    for operand in op.reads:
        place = maker.get(operand.tensor)
        if place is not None and operand.tensor in single and operand.words == op.writes[0].words:
            before = found[place]
            if len(before.writes) == 1 and _bytes(before.writes[0], before) == _bytes(op.writes[0], op):
                return place
    return None


def _bytes(operand: Operand, op: BoundedOperator) -> int:
    return operand.units * op.element_bytes


def _merged(first: BoundedOperator, last: BoundedOperator) -> BoundedOperator:
    unit = gcd(first.element_bytes, last.element_bytes)
    first, last = _in_units(first, unit), _in_units(last, unit)
    made = first.writes[0].tensor
    known = {operand.tensor for operand in first.reads}
    others = tuple(operand for operand in last.reads if operand.tensor != made and operand.tensor not in known)
    within = (*first.within, last.name, *last.within)
    return replace(first, reads=(*first.reads, *others), writes=last.writes, within=within)


def _in_units(op: BoundedOperator, unit: int) -> BoundedOperator:
    times = op.element_bytes // unit
    reads, writes = (
        tuple(replace(operand, units=operand.units * times) for operand in side) for side in (op.reads, op.writes)
    )
    return replace(op, reads=reads, writes=writes, element_bytes=unit)


def _in_order(operators: list[BoundedOperator]) -> tuple[BoundedOperator, ...]:
    """Return operators such that each comes after those whose results it reads, else in their order."""
    maker = {operand.tensor: at for at, op in enumerate(operators) for operand in op.writes}
    found: list[int] = []
    done: set[int] = set()
    for start in range(len(operators)):
        stack = [start]
        while stack:
            at = stack[-1]
            missing = [
                maker[operand.tensor]
                for operand in operators[at].reads
                if operand.tensor in maker and maker[operand.tensor] not in done and maker[operand.tensor] != at
            ]
            if at in done or not missing:
                stack.pop()
                if at not in done:
                    done.add(at)
                    found.append(at)
            else:
                stack.extend(reversed(missing))
    return tuple(operators[at] for at in found)
