"""What expansions and passes see: a node of the program with its tensors, and an operator's attributes or fields."""

from collections.abc import Collection, Container, Mapping
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.errors import UnsupportedOpError, VerificationError
from dfcompile.frontend import CANONICAL, AttributeValue
from dfcompile.lowering.operators.base import Canonical, Canonical_co, read_operator
from dfcompile.lowering.tensor import Tensor

T = TypeVar("T")

POSITIVE = range(1, 2**63)  # values of an attribute


class Node(Struct, frozen=True, eq=False):
    """A node of the program on its way to the next level.

    Attributes:
        name: unique in the program; a canonical operator's name is its origin's with a suffix (``conv1.matmul``).
        dialect: ``onnx`` or ``canonical``.
        op_type: such as ``Conv``.
        origin: the user's operator.
        inputs: by position; ``None`` where an optional operand is omitted.
        outputs: by position; ``None`` where an optional result is not used.
    """

    name: str
    dialect: str
    op_type: str
    origin: str
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor | None, ...]

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
        tensor = self.optional_output(position)
        if tensor is None:
            raise self.unsupported(f"result {position} is not used")
        return tensor

    def optional_output(self, position: int) -> Tensor | None:
        """Return a result, or ``None`` if the model does not use it."""
        return self.outputs[position] if position < len(self.outputs) else None

    def operands(self) -> tuple[Tensor, ...]:
        """Return the operands that are there, in order."""
        return _there(self.inputs)

    def results(self) -> tuple[Tensor, ...]:
        """Return the results that are there, in order."""
        return _there(self.outputs)

    def check_result(self, wanted: Tensor, found: Tensor | None) -> None:
        """Check that a result is what lowering the operator wrote.

        Args:
            wanted: the result.
            found: the array; ``None``: nothing writes it.

        Raises:
            VerificationError: it is not written, or has another shape or element type.
        """
        if found is None:
            raise VerificationError(f"operator {self.name!r}: nothing writes its result {wanted.name!r}")
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            is_as = f"{found.dtype}{list(found.shape)} against {wanted.dtype}{list(wanted.shape)}"
            raise VerificationError(f"operator {self.name!r}: result {wanted.name!r} is {is_as}")

    def unsupported(self, reason: str) -> UnsupportedOpError:
        """Return the error that names this operator and its operands."""
        operands = ", ".join("omitted" if tensor is None else str(tensor) for tensor in self.inputs)
        return UnsupportedOpError(f"node {self.origin!r}: {self.op_type}({operands}): {reason}")

    def refuse_if(self, condition: object, reason: str) -> None:
        """Check that an expansion takes a form of the operator, where the check and its reason are one line.

        Raises:
            UnsupportedOpError: it does not, as the condition holds.
        """
        if condition:
            raise self.unsupported(reason)


def _there(tensors: tuple[Tensor | None, ...]) -> tuple[Tensor, ...]:
    if None not in tensors:
        return tensors  # type: ignore[return-value]  # nearly always all are there
    return tuple(tensor for tensor in tensors if tensor is not None)


class Operator(Node, frozen=True, eq=False):
    """An ONNX operator; to passes also a canonical one, whose fields `canonical` reads.

    Attributes:
        attributes: as given in the model; of a canonical operator as they are saved.
    """

    attributes: Mapping[str, AttributeValue]

    def canonical(self, operator: type[Canonical]) -> Canonical | None:
        """Return the canonical operator with its fields if it is one of a class, as in ``op.canonical(MatMul)``.

        Raises:
            UserError: the attributes are not the fields of the class; the message names both.
        """
        if (self.dialect, self.op_type) != (CANONICAL, operator.__name__):
            return None
        return read_operator(operator, self.attributes, self.name)

    def _attribute(self, name: str, default: object, kind: type[T] | tuple[type[T], ...], wanted: str) -> T:
        found = self.attributes.get(name, default)
        if not isinstance(found, kind):
            raise self.unsupported(f"attribute {name!r} is {found!r} against {wanted}")
        return found

    def integer(self, name: str, default: int, known: Container[int] | None = None, wanted: str = "") -> int:
        """Return an integer attribute.

        Args:
            name: of the attribute.
            default: if it is not given.
            known: the values that it may have; any unless they are given.
            wanted: these in words.

        Raises:
            UnsupportedOpError: it is not an integer, or none of those.
        """
        found = self._attribute(name, default, int, "an integer")
        self.refuse_if(known is not None and found not in known, f"attribute {name!r} is {found} against {wanted}")
        return found

    def real(self, name: str, default: float) -> float:
        """Return a number attribute.

        Raises:
            UnsupportedOpError: it is not a number.
        """
        return float(self._attribute(name, default, (int, float), "a number"))

    def text(self, name: str, default: str) -> str:
        """Return a text attribute.

        Raises:
            UnsupportedOpError: it is not a text.
        """
        return self._attribute(name, default, str, "a text")

    def choice(self, name: str, default: str, known: Collection[str], wanted: str = "") -> str:
        """Return a text attribute that is one of a few, perhaps in other words.

        Raises:
            UnsupportedOpError: it is none of them.
        """
        found = self.text(name, default)
        self.refuse_if(found not in known, f"attribute {name!r} is {found!r} against {wanted or ', '.join(known)}")
        return found

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return a list attribute of integers.

        Raises:
            UnsupportedOpError: it is missing without a default, or not a list of integers.
        """
        return self._list(name, self.attributes.get(name, default), int, "is", "integers")

    def reals(self, name: str, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """Return a list attribute of numbers.

        Raises:
            UnsupportedOpError: it is missing without a default, or not a list of numbers.
        """
        return tuple(map(float, self._list(name, self.attributes.get(name, default), (int, float), "is", "numbers")))

    def _list(
        self, name: str, found: object, kind: type[T] | tuple[type[T], ...], verb: str, wanted: str
    ) -> tuple[T, ...]:
        if not isinstance(found, list | tuple) or not all(isinstance(item, kind) for item in found):
            raise self.unsupported(f"attribute {name!r} {verb} {found!r} against a list of {wanted}")
        return tuple(item for item in found if isinstance(item, kind))

    def items(self, name: str) -> tuple[AttributeValue, ...]:
        """Return a list attribute, whatever is in it.

        Raises:
            UnsupportedOpError: it is missing or no list.
        """
        return tuple(self._attribute(name, None, (list, tuple), "a list"))

    def texts(self, found: AttributeValue, name: str) -> tuple[str, ...]:
        """Return texts, those of (an item of) an attribute.

        Raises:
            UnsupportedOpError: they are no list of texts.
        """
        return self._list(name, found, str, "has", "texts")

    def static_integers(self, position: int, name: str) -> tuple[int, ...] | None:
        """Return the values of an operand that fixes the structure (axes, shape …); ``None`` if it is omitted.

        Raises:
            UnsupportedOpError: its value is only known when the model runs.
        """
        if self.optional_input(position) is None:
            return None
        return tuple(int(value) for value in np.ravel(self.constant(position, name)))

    def constant(self, position: int, name: str) -> npt.NDArray[np.generic]:
        """Return the value of an operand that must be there.

        Raises:
            UnsupportedOpError: it is omitted, or its value is only known when the model runs.
        """
        value = self.input(position).value
        if value is None:
            raise self.unsupported(f"operand {name!r} is computed by the model against a constant")
        return value

    def check_unknown(
        self,
        *,
        operands: Mapping[int, str] | None = None,
        results: Mapping[int, str] | None = None,
        attributes: Mapping[str, AttributeValue] | None = None,
    ) -> None:
        """Check that the operator has nothing that its expansion does not know.

        Args:
            operands: names of those that have to be omitted, by position.
            results: names of those that the model must not use, by position.
            attributes: the one value that each may have.

        Raises:
            UnsupportedOpError: it has, naming the first.
        """
        for position, name in (operands or {}).items():
            self.refuse_if(self.optional_input(position) is not None, f"the operand {name!r} has no expansion")
        for position, name in (results or {}).items():
            self.refuse_if(self.optional_output(position) is not None, f"the result {name!r} has no expansion")
        for name, known in (attributes or {}).items():
            found = self.attributes.get(name, known)
            self.refuse_if(found != known, f"attribute {name!r} is {found!r} against {known!r}")

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
        self.refuse_if(not -rank <= axis < max(rank, 1), f"axis {axis} against rank {rank}")
        return axis % rank if rank else 0


class CanonicalNode(Node, Generic[Canonical_co], frozen=True, eq=False):
    """A node of level 1: a canonical operator with its tensors.

    Attributes:
        operator: such as ``MatMul(transpose_a=True)``.
    """

    operator: Canonical_co
