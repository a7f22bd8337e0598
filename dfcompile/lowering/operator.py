"""An operator as a program holds it, with its attributes: what expansions of ONNX operators see, and all passes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dfcompile.frontend import CANONICAL, AttributeValue
from dfcompile.lowering.node import Node
from dfcompile.lowering.operators.base import Canonical, read_operator


@dataclass(frozen=True, slots=True, eq=False)
class Operator(Node):
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
