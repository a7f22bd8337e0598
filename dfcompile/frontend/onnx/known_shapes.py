"""Known shapes: a node as rules about shapes see it, and how they say what does not fit together."""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.draft import AttributeValue

Shape: TypeAlias = tuple[int, ...]
Operand = TypeVar("Operand", int, str)


class UnknownShapeError(Exception):
    """A rule has asked for a shape that is not known: it has no more to say."""


class KnownShapes(Struct, Generic[Operand], frozen=True):
    """A node, as far as it is known.

    Attributes:
        shapes: static shape of each operand that is there, by what rules call it; None: not known.
        attributes: given ones, and perhaps those that have a default.
    """

    shapes: Mapping[Operand, Shape | None]
    attributes: Mapping[str, AttributeValue]

    def label(self, operand: Operand) -> str:
        """Return how an operand reads in errors."""
        return repr(operand)

    def has(self, operand: Operand) -> bool:
        """Whether an optional operand is there."""
        return operand in self.shapes

    def shape(self, operand: Operand) -> Shape | None:
        """Return the shape of an operand, None if it is omitted or not known."""
        return self.shapes.get(operand)

    def known(self, operand: Operand, *ranks: int) -> Shape:
        """Return the shape of an operand, which has one of some numbers of dimensions if these are given.

        Raises:
            UnknownShapeError: it is omitted or not known.
            UserError: it has another number of dimensions.
        """
        shape = self.expect_rank(operand, *ranks) if ranks else self.shape(operand)
        if shape is None:
            raise UnknownShapeError
        return shape

    def integer(self, name: str, default: int = 0) -> int:
        """Return an attribute that is an integer."""
        value = self.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return an attribute that is a list of integers, None if it is absent."""
        value = self.attributes.get(name)
        return tuple(item for item in value if isinstance(item, int)) if isinstance(value, tuple) else None

    def against(self, operand: Operand, wanted: str) -> str:
        """Return how errors say what shape an operand has against what."""
        return f"{self.label(operand)} is {shape_text(self.known(operand))} against {wanted}"

    def per_head(self, operand: Operand, columns: int, count: str) -> int:
        """Return how many of some columns of an operand are those of each head.

        Args:
            operand: for errors.
            columns: of all heads.
            count: attribute that says how many heads there are.

        Raises:
            UserError: the columns are not those of so many heads.
        """
        heads = self.integer(count)
        is_whole = heads >= 1 and not columns % heads
        require(is_whole, f"{self.label(operand)} has {columns} columns against a multiple of {count!r}, {heads}")
        return columns // heads

    def expect(self, operand: Operand, *expected: Shape) -> None:
        """Check the shape of an operand, if it is known.

        Raises:
            UserError: it is none of the expected ones.
        """
        shape = self.shape(operand)
        if shape is not None and shape not in expected:
            raise UserError(self.against(operand, " or ".join(map(shape_text, expected))))

    def expect_rank(self, operand: Operand, *ranks: int) -> Shape | None:
        """Return the shape of an operand that has one of some numbers of dimensions, None if it is not known.

        Raises:
            UserError: it has another number of dimensions.
        """
        shape = self.shape(operand)
        if shape is not None and len(shape) not in ranks:
            wanted = " or ".join(map(str, ranks))
            raise UserError(f"{self.label(operand)} has {len(shape)} dimensions ({shape_text(shape)}) against {wanted}")
        return shape


def require(condition: object, otherwise: str) -> None:
    """Check what has to hold of a node.

    Raises:
        UserError: it does not; the message says what was found against what.
    """
    if not condition:
        raise UserError(otherwise)


def shape_text(shape: Sequence[int]) -> str:
    """Return how a shape reads in errors.

    >>> shape_text((2, 3)), shape_text(())
    ('2×3', 'a scalar')
    """
    return "×".join(map(str, shape)) or "a scalar"


def broadcast_together(left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether two arrays can stand for arrays of one shape, as in numpy.

    >>> broadcast_together((2, 1), (3,)), broadcast_together((2,), (3,))
    (True, False)
    """
    return all(a == b or 1 in {a, b} for a, b in zip(reversed(left), reversed(right), strict=False))
