"""What an expansion of an ONNX operator builds with: canonical operators, arrays and views."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag.extraction.scopes import Array
from dfcompile.errors import InternalError, OperatorFieldError
from dfcompile.frontend import CANONICAL
from dfcompile.frontend.sdfg.identifiers import underscored
from dfcompile.lowering.expressions import Reduction, inlined
from dfcompile.lowering.nests.program import View, array_of
from dfcompile.lowering.node import CanonicalNode, Operator
from dfcompile.lowering.operators import CanonicalOperator, Copy, Elementwise, Reduce
from dfcompile.lowering.operators.elements import broadcast_shape, kept_shape
from dfcompile.lowering.tensor import Tensor, free_name
from dfcompile.records import replace

Tensors: TypeAlias = Sequence[Tensor]
Axes: TypeAlias = Sequence[Sequence[int]]  # per operand a number per dimension
Shape: TypeAlias = tuple[int, ...]

_MOST_ELEMENTS = 2**26  # of a constant that lowering computes


class Border(Struct, frozen=True, eq=False):
    """What an operator sees of the program around it.

    Attributes:
        names: of the program's arrays; what the operator adds has others.
        outputs: of these, those that leave the program.
        owned: of its operands, those that may become an output: written by an operator, and no view.
    """

    names: Container[str] = frozenset()
    outputs: Collection[str] = frozenset()
    owned: Collection[str] = frozenset()


class CanonicalFragment:
    """The canonical operators that replace one ONNX operator: a list of what is added, from which a program is built.

    Attributes:
        steps: arrays (those with a value are constants), views and canonical operators, in the order in which they were
            added: what one needs stands before it.
        arrays: by name; results are among them, unless they are views.
        materialised: of these, those that live in memory as they were asked for.
        given: arrays that leave the program in the place of a result.
    """

    def __init__(self, op: Operator, border: Border) -> None:
        self._op, self._border = op, border
        self._tensors = {tensor.name: tensor for tensor in op.operands()}
        self._written: set[str] = set()
        self.steps: list[Tensor | View | CanonicalNode[CanonicalOperator]] = []
        self.arrays: dict[str, Array] = {}
        self.materialised: set[str] = set()
        self.given: list[str] = []

    @cached_property
    def nodes(self) -> tuple[CanonicalNode[CanonicalOperator], ...]:
        """The canonical operators."""
        return tuple(step for step in self.steps if isinstance(step, CanonicalNode))

    @cached_property
    def views(self) -> Mapping[str, str]:
        """Of each view what it shows, an array or a view."""
        return {step.tensor.name: step.source for step in self.steps if isinstance(step, View)}

    @property
    def constants(self) -> tuple[str, ...]:
        """Results that depend on parameters alone."""
        return tuple(one.name for one in self._op.results() if self._tensors[one.name].is_constant)

    def array(self, name: str, shape: Iterable[int], dtype: str | None = None, *, materialised: bool = False) -> Tensor:
        """Add an intermediate array and return it.

        Args:
            name: short; the operator's name is put before it.
            shape: in elements.
            dtype: numpy name; of operand 0 unless given.
            materialised: the array lives in memory, its producer and consumer are never joined by a stream.
        """
        tensor = Tensor(self._full_name(name), tuple(shape), dtype or self._op.input(0).dtype)
        if materialised:
            self.materialised.add(tensor.name)
        return self._added(tensor, is_transient=True, is_materialised=materialised)

    def _added(self, tensor: Tensor, *, is_transient: bool, is_materialised: bool) -> Tensor:
        self.steps.append(tensor)
        self._tensors[tensor.name] = tensor
        self.arrays[tensor.name] = array_of(tensor, is_transient=is_transient, is_materialised=is_materialised)
        return tensor

    def check_parameter(self, shape: Iterable[int]) -> None:
        """Check that a constant array can be made; to be asked before it is computed.

        Raises:
            UnsupportedOpError: it has too many elements.
        """
        elements = prod(shape)
        if elements > _MOST_ELEMENTS:
            raise self._op.unsupported(f"needs a constant of {elements} elements against at most {_MOST_ELEMENTS}")

    def parameter(self, name: str, value: npt.NDArray[np.generic]) -> Tensor:
        """Add a constant array that is computed here, once."""
        tensor = Tensor(self._full_name(name), value.shape, value.dtype.name, value, is_constant=True)
        return self._added(tensor, is_transient=False, is_materialised=True)

    def view(self, source: Tensor, name: str, shape: Iterable[int], dtype: str | None = None) -> Tensor:
        """Return the same elements in the same order under another shape: no data moves.

        Args:
            source: what is viewed.
            name: short; the operator's name is put before it.
            shape: in elements.
            dtype: numpy name of a type as wide, as which the bits are read; that of the source unless given.

        Raises:
            OperatorFieldError: it has not as many elements.
        """
        return self._viewed(source, self._full_name(name), shape, dtype)

    def shaped(self, source: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
        """Return an array that has the shape as it is, any other as a `view`."""
        return source if source.shape == shape else self.view(source, name, shape)

    def view_as(self, source: Tensor, target: Tensor) -> None:
        """Make the operator's result a view of ``source``; a copy where it must be an array of its own.

        A result that leaves the program is no view: an array that only this program sees leaves it instead.
        """
        if source.name == target.name:
            return
        is_output = target.name in self._border.outputs
        if is_output and not (self._is_owned(source.name) and source.dtype == target.dtype):
            self.add(Copy(), [self.view(source, "view", target.shape, target.dtype)], target)
            return
        if is_output:
            self.given.append(source.name)
            if source.name in self.arrays:
                self.arrays[source.name] = replace(self.arrays[source.name], is_transient=False, is_materialised=True)
        elif target.name in self._tensors:
            raise InternalError(f"view {target.name!r}: added twice")
        self._viewed(source, target.name, target.shape, target.dtype)

    def _is_owned(self, name: str) -> bool:
        if name in self.arrays:
            return self.arrays[name].is_transient
        return name in self._border.owned and name not in self.given

    def _viewed(self, source: Tensor, name: str, shape: Iterable[int], dtype: str | None) -> Tensor:
        view = Tensor(name, tuple(shape), dtype or source.dtype, None, self._tensors[source.name].is_constant)
        if view.elements != source.elements:
            raise OperatorFieldError(f"view {name!r}: {list(view.shape)} against the elements of {source}")
        self.steps.append(View(view, source.name))
        self._tensors[name] = view
        self._written.add(name)
        return view

    def _full_name(self, name: str) -> str:
        """Return the name behind the operator's; with underscores behind it if an array of the program has it."""
        return free_name(f"{underscored(self._op.name)}_{name}", self._border.names, self._tensors)

    def add(self, operator: CanonicalOperator, operands: Tensors, *results: Tensor, step: str = "") -> None:
        """Add a canonical operator, as in ``build.add(Reduce(Reduction.SUM, axes=(1,)), [x], y, step="sum")``.

        Args:
            operator: such as ``MatMul()``; one of `dfcompile.lowering.operators` or of your own.
            operands: in order.
            results: arrays it writes; the ONNX operator's own results or arrays of `array`.
            step: what it does within the ONNX operator, such as ``sum``; empty if that is this one step.

        Raises:
            OperatorFieldError: the fields contradict operands or results.
        """
        try:
            operator.check(operands, results)
        except OperatorFieldError as error:
            raise OperatorFieldError(f"node {self._op.origin!r}: {error}") from error
        name, op_type = f"{self._op.name}.{step}" if step else self._op.name, type(operator).__name__
        for tensor in results:
            if tensor.name not in self._tensors:
                is_output = tensor.name in self._border.outputs
                self._added(tensor, is_transient=not is_output, is_materialised=is_output)
        read = tuple(self._tensors[tensor.name] for tensor in operands)
        written = tuple(Tensor(tensor.name, tensor.shape, tensor.dtype) for tensor in results)
        self.steps.append(CanonicalNode(name, CANONICAL, op_type, self._op.origin, read, written, operator))
        self._written.update(tensor.name for tensor in written)
        if read and all(tensor.is_constant for tensor in read):
            self._tensors.update({tensor.name: replace(tensor, is_constant=True) for tensor in written})

    def check_results(self) -> None:
        """Check that every result of the operator is there, as the operator has it.

        Raises:
            VerificationError: one is not written, or has another shape or element type.
        """
        for tensor in self._op.results():
            self._op.check_result(tensor, self._tensors[tensor.name] if tensor.name in self._written else None)

    def made(
        self,
        name: str,
        operator: CanonicalOperator,
        operands: Tensors,
        shape: Iterable[int],
        dtype: str | None = None,
        *,
        materialised: bool = False,
        step: str | None = None,
    ) -> Tensor:
        """Add an array as `array` does, and the canonical operator that writes it; return the array.

        Its step has the array's name unless another one is given.
        """
        result = self.array(name, shape, dtype, materialised=materialised)
        self.add(operator, operands, result, step=name if step is None else step)
        return result

    def copied(
        self, name: str, x: Tensor, read: Sequence[str], shape: Iterable[int], step: str | None = None
    ) -> Tensor:
        """Return a new array of the elements of X at affine places of its own indices ``i0``, ``i1`` …."""
        return self.made(name, Copy(read=tuple(read)), [x], shape, x.dtype, step=step)

    def part(self, name: str, x: Tensor, axis: int, first: int, stop: int) -> Tensor:
        """Return the elements of X from one place along an axis to before another one; of a constant a constant."""
        if (first, stop) == (0, x.shape[axis]):
            return x
        if x.value is not None:
            return self.parameter(name, x.value[(slice(None),) * axis + (slice(first, stop),)])
        read = [f"{first} + i{at}" if at == axis else f"i{at}" for at in range(x.rank)]
        return self.copied(name, x, read, (*x.shape[:axis], stop - first, *x.shape[axis + 1 :]))

    def add_reshaped(
        self, operator: CanonicalOperator, operands: Tensors, y: Tensor, name: str, shape: Shape, *, step: str = ""
    ) -> None:
        """Add an operator that writes Y under another shape: to an array of that name, of which Y is a view."""
        if y.shape == shape:
            self.add(operator, operands, y, step=step)
        else:
            self.view_as(self.made(name, operator, operands, shape, y.dtype, step=step), y)

    def elementwise(
        self,
        expression: str,
        operands: Tensors,
        result: Tensor,
        *,
        axes: Axes | None = None,
        starts: Axes | None = None,
        step: str = "",
    ) -> None:
        """Add an `Elementwise`; constants of one element are written into its expression.

        Args:
            expression: of ``a``, ``b``, ``c`` … for the operands in order.
            operands: broadcast to the result as in numpy unless ``axes`` says otherwise; at most 26.
            result: written once, in row order.
            axes: per operand the result dimensions that its dimensions stand for.
            starts: per operand where the part of it that is read begins along each of its dimensions.
            step: see `add`.
        """
        source, kept = inlined(expression, operands)
        chosen, begun = (
            None if each is None else tuple(tuple(each[position]) for position in kept) for each in (axes, starts)
        )
        self.add(Elementwise(source, chosen, begun), [operands[position] for position in kept], result, step=step)

    def computed(
        self,
        name: str,
        expression: str,
        operands: Tensors,
        shape: Iterable[int],
        dtype: str | None = None,
        *,
        axes: Axes | None = None,
        starts: Axes | None = None,
        step: str | None = None,
    ) -> Tensor:
        """Add an array and the `Elementwise` that writes it, and return the array; see `elementwise` and `made`."""
        result = self.array(name, shape, dtype)
        self.elementwise(expression, operands, result, axes=axes, starts=starts, step=name if step is None else step)
        return result

    def reduce(
        self,
        reduction: Reduction,
        operands: Tensors,
        result: Tensor,
        axes: Sequence[int],
        expression: str = "a",
        *,
        step: str = "",
    ) -> None:
        """Add a `Reduce`; whether dimensions are kept is told from the result's shape.

        Args:
            reduction: how elements are combined.
            operands: broadcast to one shape as in numpy.
            result: that shape with extent 1 in the reduced axes, or without these.
            axes: counted from the front.
            expression: of ``a``, ``b`` … for the operands in order, computed before the reduction.
            step: see `add`.
        """
        shape = broadcast_shape([tensor.shape for tensor in operands])
        keepdims = shape is not None and result.shape == kept_shape(shape, axes)
        self.add(Reduce(reduction, tuple(axes), keepdims, expression), operands, result, step=step)

    def reduced(
        self,
        name: str,
        reduction: Reduction,
        operands: Tensors,
        axes: Sequence[int],
        expression: str = "a",
        *,
        dtype: str | None = None,
        step: str | None = None,
    ) -> Tensor:
        """Add an array with extent 1 in the reduced axes and the `Reduce` that writes it; see `reduce` and `made`."""
        shape = kept_shape(broadcast_shape([tensor.shape for tensor in operands]) or (), axes)
        operator = Reduce(reduction, tuple(axes), expression=expression)
        return self.made(name, operator, operands, shape, dtype, step=step)
