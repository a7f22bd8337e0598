"""Whether parts of a model along a dimension depend on nothing of one another, so that they may run in sequence."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import zip_longest
from math import prod

from dfcompile.canonical_dag import KernelLoop, LoopKind
from dfcompile.frontend import Program
from dfcompile.lowering.expansion import ExpansionTable
from dfcompile.lowering.levels import lower_to_canonical
from dfcompile.lowering.nests.program import View, root_of
from dfcompile.lowering.node import CanonicalNode
from dfcompile.lowering.operators import CanonicalOperator
from dfcompile.lowering.operators.loop_nest import kernel_loops
from dfcompile.lowering.program_nodes import canonical_nodes
from dfcompile.lowering.shares import share_of

_Blocks = dict[str, int]  # elements in a row of one part, of arrays that are in parts


class DividedModel:
    """A model whose inputs and results may be in parts along one of their axes."""

    def __init__(self, program: Program, table: ExpansionTable) -> None:
        """Take a program of level 0."""
        self._program, self._table = program, table
        self._views: list[View] = []

    @cached_property
    def _lowered(self) -> Program:
        """The program by the published expansions: what depends on what is the same by all."""
        return lower_to_canonical(self._program, self._table)

    @cached_property
    def _operators(self) -> tuple[CanonicalNode[CanonicalOperator], ...]:
        return tuple(canonical_nodes(self._lowered, self._table, self._views.append))

    def consists_of(self, part: Program, count: int) -> bool:
        """Return whether the model is so many times another one, each time on parts of inputs and results of its own.

        Some loop of every operator that touches an array in parts goes through the parts of all arrays that it reads
        and writes in the same order, and each of its iterations makes results of its own. The other model has the same
        operators on fewer iterations of these loops. What is not known of an operator counts as dependent.

        Args:
            part: the same model of level 0 with one size smaller.
            count: how many parts there are.
        """
        loops = self._loops_from(_blocks_of_inputs(self._program, part, count), count)
        if loops is None:
            return False
        operators = canonical_nodes(lower_to_canonical(part, self._table), self._table)
        return all(_is_share(*ends, loops, count) for ends in zip_longest(self._operators, operators))

    def _loops_from(self, blocks: _Blocks, count: int) -> Mapping[str, KernelLoop] | None:
        """Return the loop of each operator that goes through parts; None if some operator has none, or no result parts.

        Args:
            blocks: of the inputs that are in parts; those of other arrays are added.
            count: of parts.
        """
        known = -1
        while known < len(blocks):  # what is made of constants gets parts from who reads it
            known = len(blocks)
            found = [(op.name, self._loop(op, blocks, count)) for op in self._operators]
        loops = {name: loop for name, loop in found if loop is not None}
        is_known = all(op.name in loops or blocks.keys().isdisjoint(self._arrays(op)) for op in self._operators)
        results = {self._root(port.array) for port in self._lowered.outputs}
        return loops if is_known and results and blocks.keys() >= results else None

    def _root(self, name: str) -> str:
        return root_of(name, {view.tensor.name: view.source for view in self._views})

    def _arrays(self, op: CanonicalNode[CanonicalOperator]) -> list[str]:
        return [self._root(tensor.name) for tensor in (*op.operands(), *op.results())]

    def _loop(self, op: CanonicalNode[CanonicalOperator], blocks: _Blocks, count: int) -> KernelLoop | None:
        """Return the loop of an operator that goes through parts, and add the blocks of its other arrays."""
        arrays = self._arrays(op)
        for loop in () if blocks.keys().isdisjoint(arrays) else _loops_of(op):
            if loop.kind is LoopKind.PARALLEL and loop.extent % count == 0:
                own = loop.extent // count  # iterations of a part
                digits = (*loop.inputs, *loop.outputs)
                needed = [None if digit is None else digit.stride * own for digit in digits]
                found = dict(zip(arrays, needed, strict=True))
                ends = zip(arrays, needed, strict=True)
                if all(found[name] == block == blocks.get(name, block) for name, block in ends):
                    blocks.update((name, block) for name, block in found.items() if block is not None)
                    return loop
        return None


def _blocks_of_inputs(whole: Program, part: Program, count: int) -> _Blocks:
    """Return the inputs that are smaller along an axis in the part; empty if one is smaller in another way."""
    blocks: _Blocks = {}
    if [len(port.shape) for port in whole.inputs] != [len(port.shape) for port in part.inputs]:
        return blocks
    for port, smaller in zip(whole.inputs, part.inputs, strict=True):
        axes = [axis for axis, ends in enumerate(zip(port.shape, smaller.shape, strict=True)) if ends[0] != ends[1]]
        if axes:
            if len(axes) > 1 or port.shape[axes[0]] != count * smaller.shape[axes[0]]:
                return {}
            blocks[port.array] = prod(smaller.shape[axes[0] :])
    return blocks


def _loops_of(op: CanonicalNode[CanonicalOperator]) -> Iterator[KernelLoop]:
    operands, results = op.operands(), op.results()
    nest = op.operator.loop_nest(operands, op.output()) if len(results) == 1 else None
    if nest is not None:
        yield from kernel_loops(nest, [tensor.shape for tensor in operands], results[0].shape)


def _is_share(
    op: CanonicalNode[CanonicalOperator] | None,
    part: CanonicalNode[CanonicalOperator] | None,
    loops: Mapping[str, KernelLoop],
    count: int,
) -> bool:
    """Return whether an operator of the part is that of the whole on the iterations of a part."""
    if op is None or part is None or (op.name, op.op_type) != (part.name, part.op_type):
        return False
    loop = loops.get(op.name)
    share = share_of(op, {} if loop is None else {loop.name: loop.extent // count})
    shapes = [tuple(tensor.shape for tensor in tensors) for tensors in (part.operands(), part.results())]
    return share is not None and (share.operator, [share.operands, share.results]) == (part.operator, shapes)
