"""The program of level 1 that one of several chips runs: fewer iterations, on parts of arrays."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from types import MappingProxyType

import dace
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag import Digit, Kernel, KernelLoop
from dfcompile.canonical_dag.kernel import OWN, KernelShare, ProgramShare
from dfcompile.errors import OperatorFieldError, VerificationError
from dfcompile.frontend import ChosenExpansion, Port, Program, scalar_type
from dfcompile.lowering import CanonicalNode, CanonicalOperator, ExpansionTable
from dfcompile.lowering.nests.program import View, root_of
from dfcompile.lowering.operators.loop_nest import Index, kernel_loops
from dfcompile.lowering.program_builder import ProgramBuilder
from dfcompile.lowering.program_nodes import canonical_nodes
from dfcompile.lowering.tensor import Tensor, free_name, is_materialised
from dfcompile.options import Choice
from dfcompile.records import replace

Values = npt.NDArray[np.generic]
_Copy = tuple[str, int | str]  # array that is no view, and which copy: `OWN`, a number, or the operator of a table


class Cut(Struct, frozen=True):
    """The first iterations of a loop, where it moves in an array.

    Attributes:
        loop: name.
        digit: of the loop in the array.
        extent: iterations of the whole loop.
        kept: iterations that are left.
    """

    loop: str
    digit: Digit
    extent: int
    kept: int


class OperatorShare(Struct, frozen=True):
    """An operator on fewer iterations.

    Attributes:
        operator: with fields of the share.
        operands: shape of each part that it reads.
        results: shape of each part that it writes.
        cuts: per operand what is left of it.
    """

    operator: CanonicalOperator
    operands: tuple[tuple[int, ...], ...]
    results: tuple[tuple[int, ...], ...]
    cuts: tuple[tuple[Cut, ...], ...]


def share_of(op: CanonicalNode[CanonicalOperator], loops: Mapping[str, int]) -> OperatorShare | None:
    """Return an operator on the first iterations of some of its loops; None if it does not say how.

    An array of which a loop has no digit is whole. That the share has the loops that are wanted, and the same digits,
    is seen from the operator that is made.

    Args:
        op: the whole operator.
        loops: iterations that are left of each loop that is split, by name.
    """
    operands, results = op.operands(), op.results()
    if not loops:
        whole = tuple(tensor.shape for tensor in operands), tuple(tensor.shape for tensor in results)
        return OperatorShare(op.operator, *whole, ((),) * len(operands))
    nest = op.operator.loop_nest(operands, op.output()) if len(results) == 1 else None
    if nest is None:
        return None
    known = {loop.name: loop for loop in kernel_loops(nest, [one.shape for one in operands], results[0].shape)}
    if not set(loops) <= set(known):
        return None
    extents = {name: loops.get(name, loop.extent) for name, loop in nest.loops.items()}
    operator = op.operator.on_share(operands, results[0], extents)
    split = [known[name] for name in loops]
    digits = [[loop.inputs[place] for loop in split] for place in range(len(operands))]
    cuts = [_cuts(split, one, loops) for one in (*digits, [loop.outputs[0] for loop in split])]
    ends = zip((*operands, results[0]), (*nest.reads, nest.write), cuts, strict=True)
    shapes = [_shape(tensor.shape, indices, found) for tensor, indices, found in ends]
    kept = tuple(shape for shape in shapes if shape is not None)
    if operator is None or len(kept) < len(shapes):
        return None
    share = OperatorShare(operator, kept[:-1], kept[-1:], tuple(cuts[:-1]))
    return share if _has_loops(op, share, extents, cuts) else None


def _cuts(split: Sequence[KernelLoop], digits: Sequence[Digit | None], loops: Mapping[str, int]) -> tuple[Cut, ...]:
    """Return what is left of an array in which loops that are split have these digits."""
    pairs = zip(split, digits, strict=True)
    return tuple(Cut(loop.name, digit, loop.extent, loops[loop.name]) for loop, digit in pairs if digit is not None)


def _shape(shape: Sequence[int], indices: Sequence[Index], cuts: Sequence[Cut]) -> tuple[int, ...] | None:
    """Return the shape of what is left of an array; None if that is no array of as many dimensions."""
    left = list(shape)
    for cut in cuts:
        axis = cut.digit.axis
        if left[axis] % cut.extent or indices[axis] is None:
            return None
        left[axis] = left[axis] // cut.extent * cut.kept
    return tuple(left)


def _has_loops(
    op: CanonicalNode[CanonicalOperator],
    share: OperatorShare,
    extents: Mapping[str, int],
    cuts: Sequence[tuple[Cut, ...]],
) -> bool:
    """Return whether a share fits its arrays, has the loops that are wanted, and moves in all parts as it should."""
    operands = [replace(tensor, shape=shape) for tensor, shape in zip(op.operands(), share.operands, strict=True)]
    result = replace(op.output(), shape=share.results[0])
    try:
        share.operator.check(operands, [result])
    except OperatorFieldError:
        return False
    nest = share.operator.loop_nest(operands, result)
    if nest is None or {name: loop.extent for name, loop in nest.loops.items()} != extents:
        return False
    loops = {loop.name: loop for loop in kernel_loops(nest, share.operands, share.results[0])}
    for place, found in enumerate(cuts):
        for cut in found:
            if cut.kept > 1:
                loop = loops.get(cut.loop)
                digits = () if loop is None else (*loop.inputs, loop.outputs[0])
                if not digits or digits[place] != Digit(_stride(cut, found), cut.digit.axis):
                    return False
    return True


def _stride(cut: Cut, cuts: Sequence[Cut]) -> int:
    """Return the stride of a digit in what is left of its array."""
    stride = cut.digit.stride
    for other in cuts:
        if other.digit.stride < cut.digit.stride:
            stride = stride // other.extent * other.kept
    return stride


def cut_values(values: Values, cuts: Sequence[Cut]) -> Values:
    """Return the elements of an array that are left, in their order, flat.

    >>> cut_values(np.arange(12), [Cut("k", Digit(1, 1), 4, 2)])
    array([0, 1, 4, 5, 8, 9])
    """
    flat = np.ascontiguousarray(values).reshape(-1)
    # Outer digits first: they leave the strides of inner ones as they are.
    for cut in sorted(cuts, key=lambda one: -one.digit.stride):
        flat = flat.reshape(-1, cut.extent, cut.digit.stride)[:, : cut.kept].reshape(-1)
    return flat


def choices_of(chosen: Sequence[ChosenExpansion]) -> Iterator[Choice]:
    """Yield what was chosen for each operator, so that no condition on extents chooses otherwise for a share.

    Where that is not the same for all steps of the user's operator, step by step.
    """
    names: dict[tuple[str, str], set[str]] = {}
    for found in chosen:
        names.setdefault((found.op_type, found.origin), set()).add(found.name)
    for (op_type, origin), named in names.items():
        if len(named) == 1:
            yield Choice(op_type, min(named), origin)
    for found in chosen:
        if len(names[found.op_type, found.origin]) > 1:
            yield Choice(found.op_type, found.name, found.operator)


class SharedProgram:
    """A program of level 1 as one of several chips runs it, under any sharding.

    Attributes:
        program: of level 1, whole.
    """

    def __init__(self, program: Program, table: ExpansionTable, kernels: Mapping[str, Kernel]) -> None:
        """Read the operators of a program.

        Args:
            program: of level 1.
            table: of expansions.
            kernels: that the operators were lowered to, by name.
        """
        self.program = program
        self._table = table
        self._kernels = kernels
        self._shares: dict[tuple[str, tuple[tuple[str, int], ...]], OperatorShare | None] = {}

    @cached_property
    def operators(self) -> tuple[CanonicalNode[CanonicalOperator], ...]:
        """Of the whole program."""
        return tuple(canonical_nodes(self.program, self._table))

    @cached_property
    def _viewed(self) -> Mapping[str, str]:
        """What each view is of."""
        state = self.program.sdfg.start_state
        views = (edge for node in state.data_nodes() for edge in state.in_edges(node) if edge.dst_conn == "views")
        return MappingProxyType({edge.dst.data: edge.src.data for edge in views})

    def refused(self, share: ProgramShare) -> tuple[str, ...]:
        """Return the kernels whose operators cannot run so many iterations of these loops alone.

        Where a pass has put the scopes of an operator into another kernel, none can: which part that one reads is not
        known of the operators. One that writes a part of an array cannot: what the array is then depends on the others.
        """
        wanted = {one.kernel: one for one in share.kernels}
        if any(op.name not in self._kernels for op in self.operators):
            return tuple(one.kernel for one in share.kernels if one.loops)
        writers = Counter(tensor.name for op in self.operators for tensor in op.results())

        def is_possible(op: CanonicalNode[CanonicalOperator]) -> bool:
            loops, writes_parts = wanted[op.name].loops, any(writers[tensor.name] > 1 for tensor in op.results())
            return not (loops and writes_parts) and self._share(op, loops) is not None

        return tuple(op.name for op in self.operators if op.name in wanted and not is_possible(op))

    def _share(self, op: CanonicalNode[CanonicalOperator], loops: tuple[tuple[str, int], ...]) -> OperatorShare | None:
        if (op.name, loops) not in self._shares:
            self._shares[op.name, loops] = share_of(op, dict(loops))
        return self._shares[op.name, loops]

    def shared(self, share: ProgramShare) -> Program:
        """Return what a chip runs: inputs and weights are the parts that it holds, an exchanged array is an output.

        What an exchange makes is an input: no stream crosses it. Sizes and weights are those of the chip that has the
        first iterations of all loops that are split.

        Raises:
            VerificationError: an operator cannot run so; see `refused`.
        """
        wanted = {one.kernel: one for one in share.kernels}
        shares = {}
        for op in self.operators:
            found = self._share(op, wanted[op.name].loops) if op.name in wanted else share_of(op, {})
            if found is None:
                raise VerificationError(f"operator {op.name!r}: no share of it against {wanted[op.name].loops}")
            shares[op.name] = found
        reads = {op.name: self._copies(op, wanted.get(op.name), shares[op.name]) for op in self.operators}
        return _ShareBuilder(self, shares, reads).build()

    def _copies(
        self, op: CanonicalNode[CanonicalOperator], wanted: KernelShare | None, share: OperatorShare
    ) -> tuple[_Copy, ...]:
        """Return which copy of which array each operand is: of a table in memory, no operand of the kernel, its own."""
        kernel = self._kernels.get(op.name)
        numbers = () if wanted is None else wanted.reads
        named = list(zip(() if kernel is None else kernel.inputs, numbers, strict=False))
        found: list[_Copy] = []
        for tensor, shape in zip(op.operands(), share.operands, strict=True):
            root = root_of(tensor.name, self._viewed)
            if named and named[0][0] == root:
                found.append(named.pop(0))
            else:
                found.append((root, OWN if shape == tensor.shape else op.name))
        return tuple(found)


class _ShareBuilder:
    """Builds the program of a share."""

    def __init__(
        self, whole: SharedProgram, shares: Mapping[str, OperatorShare], reads: Mapping[str, tuple[_Copy, ...]]
    ) -> None:
        self._program, self._operators = whole.program, whole.operators
        self._shares, self._reads = shares, reads
        self._made = {tensor.name for op in whole.operators for tensor in op.results()}
        self._taken = set(whole.program.sdfg.arrays)
        self._parts: dict[_Copy, Tensor] = {}  # what is there before the program runs
        self._views: dict[tuple[str, tuple[int, ...], str], Tensor] = {}
        self._results: dict[str, Tensor] = {}  # several operators may write parts of one

    def build(self) -> Program:
        for op in self._operators:
            share = self._shares[op.name]
            for place, (tensor, copy) in enumerate(zip(op.operands(), self._reads[op.name], strict=True)):
                if copy not in self._parts and (copy[1] != OWN or copy[0] not in self._made):
                    name = copy[0] if copy[1] == OWN else self._free_name(f"{copy[0]}_copy")
                    value = self._program.parameters.get(copy[0])
                    shape = share.operands[place]
                    if value is not None:
                        value = cut_values(value, share.cuts[place]).reshape(shape)
                        value.setflags(write=False)
                    self._parts[copy] = Tensor(name, shape, tensor.dtype, value, tensor.is_constant)
        builder = ProgramBuilder(self._border())
        for op in self._operators:
            self._add(builder, op)
        program = self._program
        return builder.finish(program.level, program.nodes, program.chosen)

    def _free_name(self, name: str) -> str:
        free = free_name(name, self._taken)
        self._taken.add(free)
        return free

    def _border(self) -> Program:
        """Return a program without operators that has the inputs, weights and outputs of the share."""
        program = self._program
        sdfg = dace.SDFG(program.sdfg.name)
        sdfg.add_state("main", is_start_block=True)
        exchanged = [copy[0] for copy in self._parts if copy[1] != OWN and copy[0] in self._made]
        written = ((op, self._shares[op.name].results) for op in self._operators)
        pairs = (pair for op, shapes in written for pair in zip(op.results(), shapes, strict=True))
        made = {tensor.name: Port(tensor.name, tensor.name, shape, tensor.dtype) for tensor, shape in pairs}
        wanted = dict.fromkeys((*(port.array for port in program.outputs), *exchanged))
        outputs = tuple(made[name] for name in wanted if name in made)
        inputs, parameters = [], {}
        for part in self._parts.values():
            sdfg.add_array(part.name, list(part.shape), scalar_type(part.dtype))
            if part.value is None:
                inputs.append(Port(part.name, part.name, part.shape, part.dtype, part.is_constant))
            else:
                parameters[part.name] = part.value
        values = MappingProxyType(parameters)
        return replace(program, sdfg=sdfg, inputs=tuple(inputs), outputs=outputs, parameters=values)

    def _add(self, builder: ProgramBuilder, op: CanonicalNode[CanonicalOperator]) -> None:
        share = self._shares[op.name]
        parts = zip(self._reads[op.name], share.operands, op.operands(), strict=True)
        operands = [self._operand(builder, copy, shape, tensor.dtype) for copy, shape, tensor in parts]
        shapes = zip(op.results(), share.results, strict=True)
        results = [Tensor(tensor.name, shape, tensor.dtype) for tensor, shape in shapes]
        for tensor in results:
            if tensor.name not in self._results:
                in_memory = is_materialised(self._program.sdfg.arrays[tensor.name])
                builder.add_array(tensor.name, tensor.shape, tensor.dtype, materialised=in_memory)
                self._results[tensor.name] = tensor
        builder.add_canonical(replace(op, operator=share.operator, inputs=tuple(operands), outputs=tuple(results)))

    def _operand(self, builder: ProgramBuilder, copy: _Copy, shape: tuple[int, ...], dtype: str) -> Tensor:
        """Return what an operator reads: an array, or a view of it; both have the same elements in the same order."""
        source = self._parts[copy] if copy in self._parts else self._results[copy[0]]
        if (source.shape, source.dtype) == (shape, dtype):
            return source
        if source.elements != prod(shape):
            raise VerificationError(f"array {source.name!r}: {source} of a chip against a view of {list(shape)}")
        key = source.name, shape, dtype
        if key not in self._views:
            self._views[key] = Tensor(self._free_name(f"{source.name}_view"), shape, dtype)
            builder.add_view(View(self._views[key], source.name))
        return self._views[key]
