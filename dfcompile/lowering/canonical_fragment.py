"""What an expansion of an ONNX operator builds with: canonical operators, arrays and views."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dfcompile.errors import OperatorFieldError
from dfcompile.frontend.sdfg.identifiers import underscored
from dfcompile.lowering.expressions import inlined
from dfcompile.lowering.node import Operator
from dfcompile.lowering.operators import CanonicalOperator, Copy, Elementwise, Reduce
from dfcompile.lowering.operators.reduce import broadcast_shape, kept_shape
from dfcompile.lowering.reduction import Reduction
from dfcompile.lowering.tensor import Tensor

_MOST_ELEMENTS = 2**26  # of a constant that lowering computes


class CanonicalBuilder(Protocol):
    """Where arrays, views and canonical operators go: an SDFG, or an outline of one."""

    def free_name(self, name: str) -> str:
        """Return the name, or one with underscores behind it that no array has or is going to have."""

    def add_array(self, name: str, shape: Iterable[int], dtype: str, *, materialised: bool = False) -> Tensor:
        """Add an array."""

    def add_parameter(self, name: str, value: npt.NDArray[np.generic]) -> Tensor:
        """Add a constant array."""

    def add_view(self, source: Tensor, name: str, shape: Iterable[int], dtype: str | None = None) -> Tensor:
        """Add a view of an array or of a view."""

    def can_be_view(self, source: Tensor, target: Tensor) -> bool:
        """Whether `add_view` can give ``source`` the name of ``target``."""

    def add_canonical(
        self, named: tuple[str, str], operator: CanonicalOperator, operands: Sequence[Tensor], results: Sequence[Tensor]
    ) -> None:
        """Add a canonical operator of a name and an origin, and arrays for those results that have none."""


class CanonicalFragment:
    """The canonical operators that replace one ONNX operator."""

    def __init__(self, builder: CanonicalBuilder, op: Operator) -> None:
        self._builder = builder
        self._op = op
        self.operators_count = 0

    def array(self, name: str, shape: Iterable[int], dtype: str | None = None, *, materialised: bool = False) -> Tensor:
        """Add an intermediate array and return it.

        Args:
            name: short; the operator's name is put before it.
            shape: in elements.
            dtype: numpy name; of operand 0 unless given.
            materialised: the array lives in memory, its producer and consumer are never joined by a stream.
        """
        full = self._full_name(name)
        return self._builder.add_array(full, shape, dtype or self._op.input(0).dtype, materialised=materialised)

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
        return self._builder.add_parameter(self._full_name(name), value)

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
        """Make the operator's result a view of ``source``; a copy where the result must be an array of its own."""
        if self._builder.can_be_view(source, target):
            self._viewed(source, target.name, target.shape, target.dtype)
        else:
            self.add(Copy(), [self.view(source, "view", target.shape, target.dtype)], target)

    def _viewed(self, source: Tensor, name: str, shape: Iterable[int], dtype: str | None) -> Tensor:
        if prod(shape := tuple(shape)) != prod(source.shape):
            raise OperatorFieldError(f"view {name!r}: {list(shape)} against the elements of {source}")
        return self._builder.add_view(source, name, shape, dtype)

    def _full_name(self, name: str) -> str:
        return self._builder.free_name(f"{underscored(self._op.name)}_{name}")

    def add(self, operator: CanonicalOperator, operands: Sequence[Tensor], *results: Tensor, step: str = "") -> None:
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
        name = f"{self._op.name}.{step}" if step else self._op.name
        self._builder.add_canonical((name, self._op.origin), operator, operands, results)
        self.operators_count += 1

    def made(
        self,
        name: str,
        operator: CanonicalOperator,
        operands: Sequence[Tensor],
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

    def add_reshaped(
        self,
        operator: CanonicalOperator,
        operands: Sequence[Tensor],
        y: Tensor,
        name: str,
        shape: tuple[int, ...],
        *,
        step: str = "",
    ) -> None:
        """Add an operator that writes Y under another shape: to an array of that name, of which Y is a view."""
        if y.shape == shape:
            self.add(operator, operands, y, step=step)
        else:
            self.view_as(self.made(name, operator, operands, shape, y.dtype, step=step), y)

    def elementwise(
        self,
        expression: str,
        operands: Sequence[Tensor],
        result: Tensor,
        *,
        axes: Sequence[Sequence[int]] | None = None,
        starts: Sequence[Sequence[int]] | None = None,
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
        operands: Sequence[Tensor],
        shape: Iterable[int],
        dtype: str | None = None,
        *,
        axes: Sequence[Sequence[int]] | None = None,
        starts: Sequence[Sequence[int]] | None = None,
        step: str | None = None,
    ) -> Tensor:
        """Add an array and the `Elementwise` that writes it, and return the array; see `elementwise` and `made`."""
        result = self.array(name, shape, dtype)
        self.elementwise(expression, operands, result, axes=axes, starts=starts, step=name if step is None else step)
        return result

    def reduce(
        self,
        reduction: Reduction,
        operands: Sequence[Tensor],
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
        operands: Sequence[Tensor],
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
