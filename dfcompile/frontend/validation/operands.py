"""Operands: a node as the rules about shapes see it, and what several of these rules need."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx

from dfcompile.frontend.onnx.draft import Constant, Constants, attribute_value
from dfcompile.frontend.onnx.known_shapes import KnownShapes, Shape, require
from dfcompile.frontend.onnx.shapes import Types


class Operands(KnownShapes[int], frozen=True):
    """A node and what is known of its operands, by position.

    Attributes:
        node: the node.
        constants: value of each input by position; None if it is omitted or only known when the model runs.
        opset: version of ONNX's operators that the node is of.
    """

    node: onnx.NodeProto
    constants: tuple[Constant | None, ...]
    opset: int

    def label(self, operand: int) -> str:
        """Return how an operand reads in errors: by the name of its value."""
        return repr(self.node.input[operand])

    def text(self, name: str, default: str) -> str:
        """Return an attribute that is a text."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, str) else default

    def numbers(self, name: str, position: int) -> tuple[int, ...] | None:
        """Return integers that are an attribute or, in later versions, a constant operand; None if not known."""
        given = self.integers(name)
        value = self.constants[position] if given is None and position < len(self.constants) else None
        return given if value is None else tuple(int(number) for number in np.ravel(value))

    def known_shapes(self) -> list[tuple[int, Shape]]:
        """Return the positions and shapes of all operands whose shape is known."""
        return [(position, shape) for position, shape in self.shapes.items() if shape is not None]

    def axis(self, default: int, least: int = 0) -> int:
        """Return attribute 'axis', which is one of the first operand, counted from the front.

        Raises:
            UnknownShapeError: the shape of the operand is not known.
            UserError: the operand has no such axis, or too few of them.
        """
        self.expect_least_rank(0, least)
        return self.front_axis(self.integer("axis", default), len(self.known(0)))

    def front_axis(self, axis: int, rank: int, position: int = 0) -> int:
        """Return an axis of an operand counted from the front.

        Raises:
            UserError: the operand has no such axis.
        """
        require(-rank <= axis < max(rank, 1), f"axis {axis} against {rank} dimensions of {self.label(position)}")
        return axis % rank if rank else 0

    def expect_vector(self, position: int, length: int, what: str) -> None:
        """Check that an operand whose shape is known is a vector of a length.

        Raises:
            UserError: it has another shape.
        """
        self.expect(position, (length,), wanted=f"{length} {what}")

    def expect_numbers_at_least(self, least: Mapping[str, int]) -> None:
        """Check that numbers among the attributes are at least as large as they must be.

        Raises:
            UserError: one is smaller.
        """
        for name, value in self.attributes.items():
            if name in least and not isinstance(value, str):
                for size in value if isinstance(value, tuple) else (value,):
                    # Nor is NaN.
                    require(size >= least[name], f"attribute {name!r} has {size} against at least {least[name]}")


Check: TypeAlias = Callable[[Operands], object]


def operands_of(node: onnx.NodeProto, types: Types, constants: Constants, opset: int) -> Operands:
    """Return a node with what is known of its operands."""
    return Operands(
        shapes={at: types[name].known_shape if name in types else None for at, name in enumerate(node.input) if name},
        attributes={entry.name: attribute_value(entry) for entry in node.attribute},
        node=node,
        constants=tuple(constants.get(name) for name in node.input),
        opset=opset,
    )


def broadcasts_to(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Whether an array of a shape can stand for one of another shape, as in numpy.

    >>> broadcasts_to((3, 1), (2, 3, 4)), broadcasts_to((2, 3), (3,))
    (True, False)
    """
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(size in {1, wanted} for size, wanted in pairs)
