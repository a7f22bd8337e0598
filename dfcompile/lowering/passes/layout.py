"""The pass layout: weights are stored as they are read, transposed copies are read where they came from."""

from collections.abc import Sequence

import numpy as np

from dfcompile.frontend import Level, Program
from dfcompile.lowering import Operator, Tensor, lowering_pass
from dfcompile.lowering.operators import Copy, Elementwise, MatMul
from dfcompile.lowering.operators.loop_nest import affine
from dfcompile.lowering.rewriter import ProgramRewriter


@lowering_pass("layout", level=Level.CANONICAL, source="own")
def layout(program: Program) -> Program:
    """Remove transposes: weights are stored as they are read, products and element-wise operators read in any order.

    A copy that permutes the axes of a parameter becomes another parameter. One whose result only element-wise operators
    and matrix products read, the latter with at most the last two axes exchanged, is not made: they read its operand. A
    copy of a copy reads the first one's operand.
    """
    graph = ProgramRewriter(program)
    latest: dict[str, Operator] = {}  # of those that were replaced
    for found in graph.operators():
        op = latest.get(found.name, found)
        order = _permutation(op)
        if order is None or not graph.is_internal(op.output()):
            continue
        x, y = op.input(0), op.output()
        if x.value is not None:
            graph.rewire(y, graph.add_parameter(f"{x.name}_{op.name}", np.transpose(x.value, order)))
            graph.remove(op)
            continue
        readers = graph.readers(y)
        if readers and all(_can_read(reader, y, order) for reader in readers):
            for reader in readers:
                latest[reader.name] = _read_instead(graph, reader, y, x, order)
            graph.remove(op)
    return graph.finish()


def _permutation(op: Operator) -> tuple[int, ...] | None:
    """Return which axis of the operand each axis of the result is, if the operator is a copy that permutes axes."""
    copied = op.canonical(Copy)
    if copied is None:
        return None
    x, y = op.input(0), op.output()
    if x.rank != y.rank or x.dtype != y.dtype:
        return None
    nest = copied.loop_nest([x], y)
    read, write = (_loops(indices, len(nest.loops)) for indices in (nest.reads[0], nest.write))
    if read is None or write is None or sorted(read) != sorted(write):
        return None
    order = tuple(read.index(loop) for loop in write)
    return order if tuple(x.shape[axis] for axis in order) == y.shape else None


def _loops(indices: Sequence[str | None], count: int) -> list[str] | None:
    """Return the loop that is each index, if each is a loop of its own."""
    found = []
    for index in indices:
        terms = None if index is None else affine(index)
        if terms is None or [value for value in terms.values() if value] != [1] or "" in terms:
            return None
        found.append(next(iter(terms)))
    return found if len(set(found)) == len(found) == count else None


def _can_read(reader: Operator, tensor: Tensor, order: tuple[int, ...]) -> bool:
    """Return whether an operator can read a transposed tensor where it came from."""
    if reader.canonical(Elementwise) is not None or _permutation(reader) is not None:
        return True
    swapped = (*range(tensor.rank - 2), tensor.rank - 1, tensor.rank - 2)
    return reader.canonical(MatMul) is not None and order == swapped


def _read_instead(graph: ProgramRewriter, op: Operator, old: Tensor, new: Tensor, order: tuple[int, ...]) -> Operator:
    is_old = [tensor is not None and tensor.name == old.name for tensor in op.inputs]
    inputs = [new if here else tensor for tensor, here in zip(op.inputs, is_old, strict=True)]
    elementwise, product = op.canonical(Elementwise), op.canonical(MatMul)
    if elementwise is not None:
        axes = elementwise.operand_axes(op.operands(), op.output())
        # The result dimensions that the dimensions of the operand stand for, from those of its transpose.
        places = [order.index(axis) for axis in range(len(order))]
        turned = tuple(tuple(its[at] for at in places) if here else its for its, here in zip(axes, is_old, strict=True))
        return graph.replace(op, operator=Elementwise(elementwise.expression, turned), inputs=inputs)
    if product is not None:
        flags = (product.transpose_a, product.transpose_b)
        of_a, of_b = (flag != old_here for flag, old_here in zip(flags, is_old, strict=True))
        return graph.replace(op, operator=MatMul(of_a, of_b), inputs=inputs)
    outer = _permutation(op)
    assert outer is not None
    joined = [order[axis] for axis in outer]
    read = tuple(f"i{joined.index(axis)}" for axis in range(new.rank))
    return graph.replace(op, operator=Copy(read=read), inputs=inputs)
