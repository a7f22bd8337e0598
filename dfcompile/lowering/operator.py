"""What an expansion sees: an operator with its tensors and attributes, frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend import AttributeValue


@dataclass(frozen=True, slots=True, eq=False)
class Tensor:
    """An operand or result: an SDFG array.

    Attributes:
        name: of the SDFG array.
        shape: in elements, no symbols.
        dtype: numpy name.
        value: of a parameter; ``None`` for what is only known when the model runs.
        is_constant: depends on parameters alone.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    value: npt.NDArray[np.generic] | None = None
    is_constant: bool = False

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """A node of the program on its way to the next level.

    Attributes:
        name: unique in the program; a canonical operator's name is its origin's with a suffix (``conv1.matmul``).
        dialect: ``onnx`` or ``canonical``.
        op_type: such as ``Conv``.
        origin: the user's operator.
        inputs: by position; ``None`` where an optional operand is omitted.
        outputs: by position; ``None`` where an optional result is not used.
        attributes: as given in the model.
    """

    name: str
    dialect: str
    op_type: str
    origin: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]
    attributes: Mapping[str, AttributeValue]

    def input(self, position: int) -> Tensor:
        """Return an operand that must be there.

        Raises:
            UnsupportedOpError: it is omitted.
        """
        tensor = self.optional_input(position)
        if tensor is None:
            raise self.unsupported(f"operand {position} is omitted")
        return tensor

    def optional_input(self, position: int) -> Tensor | None:
        """Return an operand, or ``None`` if it is omitted."""
        return self.inputs[position] if position < len(self.inputs) else None

    def output(self, position: int = 0) -> Tensor:
        """Return a result that must be there.

        Raises:
            UnsupportedOpError: the model does not use it, so it has no array.
        """
        tensor = self.outputs[position] if position < len(self.outputs) else None
        if tensor is None:
            raise self.unsupported(f"result {position} is not used")
        return tensor

    def operands(self) -> tuple[Tensor, ...]:
        """Return the operands that are there, in order."""
        return tuple(tensor for tensor in self.inputs if tensor is not None)

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute.

        Raises:
            UnsupportedOpError: it is not an integer.
        """
        found = self.attributes.get(name, default)
        if not isinstance(found, int):
            raise self.unsupported(f"attribute {name!r} is {found!r} against an integer")
        return found

    def real(self, name: str, default: float) -> float:
        """Return a number attribute.

        Raises:
            UnsupportedOpError: it is not a number.
        """
        found = self.attributes.get(name, default)
        if not isinstance(found, int | float):
            raise self.unsupported(f"attribute {name!r} is {found!r} against a number")
        return float(found)

    def text(self, name: str, default: str) -> str:
        """Return a text attribute.

        Raises:
            UnsupportedOpError: it is not a text.
        """
        found = self.attributes.get(name, default)
        if not isinstance(found, str):
            raise self.unsupported(f"attribute {name!r} is {found!r} against a text")
        return found

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list attribute of texts.

        Raises:
            UnsupportedOpError: it is missing or not a list of texts.
        """
        found = self.attributes.get(name)
        if not isinstance(found, list | tuple) or not all(isinstance(item, str) for item in found):
            raise self.unsupported(f"attribute {name!r} is {found!r} against a list of texts")
        return tuple(str(item) for item in found)

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return a list attribute of integers.

        Raises:
            UnsupportedOpError: it is missing without a default, or not a list of integers.
        """
        found = self.attributes.get(name, default)
        if not isinstance(found, list | tuple) or not all(isinstance(item, int) for item in found):
            raise self.unsupported(f"attribute {name!r} is {found!r} against a list of integers")
        return tuple(item for item in found if isinstance(item, int))

    def static_integers(self, position: int, name: str) -> tuple[int, ...] | None:
        """Return the values of an operand that fixes the structure (axes, shape …); ``None`` if it is omitted.

        Raises:
            UnsupportedOpError: its value is only known when the model runs.
        """
        tensor = self.optional_input(position)
        if tensor is None:
            return None
        if tensor.value is None:
            raise self.unsupported(f"operand {name!r} is computed by the model against a constant")
        return tuple(int(value) for value in np.ravel(tensor.value))

    def axis(self, name: str = "axis", default: int = 0, rank: int | None = None) -> int:
        """Return an axis attribute, counted from the front.

        Raises:
            UnsupportedOpError: it is outside of the rank (of operand 0 unless given).
        """
        return self.front_axis(self.integer(name, default), self.input(0).rank if rank is None else rank)

    def front_axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front.

        Raises:
            UnsupportedOpError: it is outside of the rank.
        """
        if not -rank <= axis < max(rank, 1):
            raise self.unsupported(f"axis {axis} against rank {rank}")
        return axis % rank if rank else 0

    def unsupported(self, reason: str) -> UnsupportedOpError:
        """Return the error that names this operator and its operands."""
        operands = ", ".join("omitted" if tensor is None else str(tensor) for tensor in self.inputs)
        return UnsupportedOpError(f"node {self.origin!r}: {self.op_type}({operands}): {reason}")

    def with_name(self, name: str) -> "Operator":
        """Return the same operator under another name."""
        return replace(self, name=name)
