"""Operands: a node as the rules about shapes see it, and what several of these rules need."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx
from msgspec import Struct
from onnx import AttributeProto

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import Constant
from dfcompile.frontend.onnx.shapes import TensorType

Shape = tuple[int, ...]


class Operands(Struct, frozen=True):
    """A node and what is known of its operands.

    Attributes:
        node: the node.
        shapes: static shape of each input by position; None if it is omitted or not known.
        constants: value of each input by position; None if it is omitted or only known when the model runs.
        opset: version of ONNX's operators that the node is of.
    """

    node: onnx.NodeProto
    shapes: tuple[Shape | None, ...]
    constants: tuple[Constant | None, ...]
    opset: int

    @property
    def where(self) -> str:
        """How the node reads in errors."""
        return f"node {self.node.name!r}"

    def shape(self, position: int) -> Shape | None:
        """Return the shape of an input, None if it is omitted or not known."""
        return self.shapes[position] if position < len(self.shapes) else None

    def name(self, position: int) -> str:
        """Return how an input reads in errors."""
        return repr(self.node.input[position])

    def has(self, name: str) -> bool:
        """Whether an attribute is given."""
        return any(entry.name == name for entry in self.node.attribute)

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        return next((entry.i for entry in self.node.attribute if entry.name == name), default)

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return an attribute that is a list of integers, None if it is absent."""
        return next((tuple(entry.ints) for entry in self.node.attribute if entry.name == name), None)

    def text(self, name: str, default: str) -> str:
        """Return an attribute that is a text."""
        found = (entry.s.decode("utf-8", errors="replace") for entry in self.node.attribute if entry.name == name)
        return next(found, default)

    def numbers(self, name: str, position: int) -> tuple[int, ...] | None:
        """Return integers that are an attribute or, in later versions, a constant operand; None if not known."""
        given = self.integers(name)
        if given is not None:
            return given
        value = self.constants[position] if position < len(self.constants) else None
        return None if value is None else tuple(int(number) for number in np.ravel(value))

    def wrong(self, found: str) -> UserError:
        """Return the error that names this node."""
        return UserError(f"{self.where}: {found}")


def operands_of(
    node: onnx.NodeProto, types: Mapping[str, TensorType], constants: Mapping[str, Constant], opset: int
) -> Operands:
    """Return a node with what is known of its operands."""
    shapes = tuple(types[name].known_shape if name in types else None for name in node.input)
    return Operands(node, shapes, tuple(constants.get(name) for name in node.input), opset)


def check_least(operands: Operands, least: Mapping[str, int]) -> None:
    """Check that numbers among the attributes are at least as large as they must be.

    Raises:
        UserError: one is smaller.
    """
    for entry in operands.node.attribute:
        bound = least.get(entry.name)
        if bound is None:
            continue
        given: Iterable[float] = entry.ints
        if entry.type == AttributeProto.INT:
            given = (entry.i,)
        elif entry.type == AttributeProto.FLOAT:
            given = (entry.f,)
        for size in given:
            if not size >= bound:  # nor is NaN
                raise operands.wrong(f"attribute {entry.name!r} has {size} against at least {bound}")


def check_rank(operands: Operands, position: int, expected: int) -> None:
    """Check the number of dimensions of an operand whose shape is known.

    Raises:
        UserError: it has another one.
    """
    shape = operands.shape(position)
    if shape is not None and len(shape) != expected:
        found = f"{operands.name(position)} has {len(shape)} dimensions ({shape_text(shape)})"
        raise operands.wrong(f"{found} against {expected}")


def check_least_rank(operands: Operands, position: int, least: int) -> None:
    """Check that an operand whose shape is known has enough dimensions.

    Raises:
        UserError: it has fewer.
    """
    shape = operands.shape(position)
    if shape is not None and len(shape) < least:
        raise operands.wrong(
            f"input {operands.name(position)} has {len(shape)} dimensions against at least {least}"
        )  # fmt: skip


def check_vector(operands: Operands, position: int, length: int, what: str) -> None:
    """Check that an operand whose shape is known is a vector of a length.

    Raises:
        UserError: it has another shape.
    """
    shape = operands.shape(position)
    if shape is not None and shape != (length,):
        raise operands.wrong(f"{operands.name(position)} is {shape_text(shape)} against {length} {what}")


def front_axis(operands: Operands, axis: int, rank: int, position: int = 0) -> int:
    """Return an axis of an operand counted from the front.

    Raises:
        UserError: the operand has no such axis.
    """
    if not -rank <= axis < max(rank, 1):
        raise operands.wrong(f"axis {axis} against {rank} dimensions of {operands.name(position)}")
    return axis % rank if rank else 0


def broadcasts_to(shape: Sequence[int], target: Sequence[int]) -> bool:
    """Whether an array of a shape can stand for one of another shape, as in numpy.

    >>> broadcasts_to((3, 1), (2, 3, 4)), broadcasts_to((2, 3), (3,))
    (True, False)
    """
    return len(shape) <= len(target) and all(
        size in {1, wanted} for size, wanted in zip(reversed(shape), reversed(target), strict=False)
    )


def broadcast_together(left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether two arrays can stand for arrays of one shape, as in numpy.

    >>> broadcast_together((2, 1), (3,)), broadcast_together((2,), (3,))
    (True, False)
    """
    return all(a == b or 1 in {a, b} for a, b in zip(reversed(left), reversed(right), strict=False))


def shape_text(shape: Sequence[int]) -> str:
    """Return how a shape reads in errors.

    >>> shape_text((2, 3)), shape_text(())
    ('2×3', 'a scalar')
    """
    return "×".join(str(size) for size in shape) if shape else "a scalar"
