"""Known shapes: a node as rules about shapes see it, how they say what does not fit together, and shapes of results.

ONNX's inference does not say all of these, and some otherwise than onnxruntime. It counts windows of ``ceil_mode`` that
begin behind the data and its front padding, gives up on a transposed convolution whose result is smaller than its data,
and adds output padding to one that is padded to a size. Of an Einsum it takes the first extent of a label. It counts
all numbers of the spectrum of an STFT that has only one side, and knows no result of a MaxUnpool to a size, nor the
cache of an Attention that has none before.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

import onnx
from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.einsum_equation import read_equation
from dfcompile.frontend.onnx.draft import AttributeValue, Constants, integer, integers, text

Shape: TypeAlias = tuple[int, ...]
Shapes: TypeAlias = tuple[Shape | None, ...]  # static ones, None where it is not known
_POOLING = frozenset(["AveragePool", "LpPool", "MaxPool"])
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

    def expect(self, operand: Operand, *expected: Shape, wanted: str = "") -> None:
        """Check the shape of an operand, if it is known.

        Raises:
            UserError: it is none of the expected ones.
        """
        shape = self.shape(operand)
        if shape is not None and shape not in expected:
            raise UserError(self.against(operand, wanted or " or ".join(map(shape_text, expected))))

    def known_at_least(self, operand: Operand, least: int) -> Shape:
        """Return the shape of an operand, which has enough dimensions.

        Raises:
            UnknownShapeError: it is omitted or not known.
            UserError: it has fewer.
        """
        self.expect_least_rank(operand, least)
        return self.known(operand)

    def expect_least_rank(self, operand: Operand, least: int) -> None:
        """Check that an operand whose shape is known has enough dimensions.

        Raises:
            UserError: it has fewer.
        """
        shape = self.shape(operand)
        if shape is not None and len(shape) < least:
            raise UserError(f"input {self.label(operand)} has {len(shape)} dimensions against at least {least}")

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


def right_shapes(node: onnx.NodeProto, operands: Shapes, constants: Constants) -> Shapes:
    """Return the shapes of a node's results as far as we know them better than ONNX; None: we do not.

    Args:
        node: of any operator.
        operands: static shape of each of its inputs, None if it is not known.
        constants: values by name.
    """
    shape = window_result(node, operands) or _einsum_result(node, operands) or _told_result(node, operands, constants)
    return (shape, shape) if shape is not None else _caches(node, operands)


def window_result(node: onnx.NodeProto, operands: Shapes) -> Shape | None:
    """Return the shape of a node's first result; None if it is no such operator, or its operands do not tell.

    Args:
        node: of any operator.
        operands: static shape of each of its inputs, None if it is not known.
    """
    data = operands[0] if operands else None
    weights = operands[1] if len(operands) > 1 else None
    if data is None or len(data) < 3:
        return None
    lead: Shape = data[:2]
    sizes: Shape | None = None
    if node.op_type in _POOLING:
        sizes = window_counts(node, data[2:], integers(node, "kernel_shape") or ())
    elif weights is not None and len(weights) == len(data):
        if node.op_type == "Conv":
            lead, sizes = (data[0], weights[0]), window_counts(node, data[2:], weights[2:])
        elif node.op_type == "ConvTranspose":
            lead = (data[0], weights[1] * integer(node, "group", 1))
            sizes = _transposed_sizes(node, data[2:], weights[2:])
    return None if sizes is None else (*lead, *sizes)


def _transposed_sizes(node: onnx.NodeProto, data: Shape, kernel: Shape) -> Shape | None:
    """Return what a transposed convolution makes of each spatial dimension, if the node says it or its pads do not."""
    rank = len(data)
    given = integers(node, "output_shape") or ()
    if len(given) == rank:
        return given
    strides, dilations = (integers(node, name) or (1,) * rank for name in ("strides", "dilations"))
    paddings = integers(node, "output_padding") or (0,) * rank
    if not text(node, "auto_pad").startswith("SAME") or (len(strides), len(dilations), len(paddings)) != (rank,) * 3:
        return None
    # Padded so that the size is the data's, times the stride; ONNX's inference adds the output padding to that.
    spans = [
        stride * (extent - 1) + dilation * (size - 1) + 1 + padding
        for stride, extent, dilation, size, padding in zip(strides, data, dilations, kernel, paddings, strict=True)
    ]
    return tuple(min(span, stride * extent) for span, stride, extent in zip(spans, strides, data, strict=True))


def window_counts(node: onnx.NodeProto, data: Shape, kernel: Shape) -> Shape | None:
    """Return how many windows there are per spatial dimension."""
    rank = len(data)
    strides, dilations = (integers(node, name) or (1,) * rank for name in ("strides", "dilations"))
    pads = integers(node, "pads") or (0,) * (2 * rank)
    if (len(kernel), len(strides), len(dilations), len(pads)) != (rank, rank, rank, 2 * rank) or min(strides) < 1:
        return None
    auto_pad = text(node, "auto_pad")
    if auto_pad.startswith("SAME"):
        return tuple(-(-extent // stride) for extent, stride in zip(data, strides, strict=True))
    if auto_pad == "VALID":
        pads = (0,) * (2 * rank)
    counts = []
    for axis, (extent, stride) in enumerate(zip(data, strides, strict=True)):
        begin, end = pads[axis], pads[axis + rank]
        left = extent + begin + end - (dilations[axis] * (kernel[axis] - 1) + 1)
        count = left // stride + 1
        if integer(node, "ceil_mode"):
            # A window that would begin in the padding behind the data is none.
            count = min(-(-left // stride) + 1, -(-(extent + begin) // stride))
        counts.append(count)
    return tuple(counts)


def _einsum_result(node: onnx.NodeProto, operands: Shapes) -> Shape | None:
    """Return the shape that an Einsum gives."""
    if node.op_type != "Einsum" or None in operands:
        return None
    try:
        equation = read_equation(text(node, "equation"), operands, str)
    except UserError:
        return None  # validation says so
    return tuple(equation.extents[label] for label in equation.result)


def _told_result(node: onnx.NodeProto, operands: Shapes, constants: Constants) -> Shape | None:
    """Return the shape of a result that operands tell by their values."""
    if node.op_type == "STFT":
        signal = operands[0] if operands else None
        window = operands[2] if len(operands) > 2 else None
        step, length = _constant_integer(node, 1, constants), _constant_integer(node, 3, constants)
        if length is None and window is not None and len(window) == 1:
            length = window[0]
        if signal is None or len(signal) < 2 or not step or step < 1 or not length or not 1 <= length <= signal[1]:
            return None
        numbers = length // 2 + 1 if integer(node, "onesided", 1) else length
        return (signal[0], (signal[1] - length) // step + 1, numbers, 2)
    if node.op_type == "MaxUnpool" and len(node.input) > 2 and node.input[2] in constants:
        return tuple(int(size) for size in constants[node.input[2]].ravel())
    return None


def _caches(node: onnx.NodeProto, operands: Shapes) -> Shapes:
    """Return the shapes of the results of an Attention that is given no keys and values of before."""
    if node.op_type != "Attention" or any(node.input[4:6]) or len(operands) < 3:
        return ()
    return (None, *(_by_head(shape, integer(node, "kv_num_heads")) for shape in operands[1:3]))


def _by_head(shape: Shape | None, heads: int) -> Shape | None:
    """Return the shape ``[b, heads, l, h]`` of keys or values that may stand side by side, ``[b, l, heads * h]``."""
    if shape is None or len(shape) != 3 or heads < 1:
        return shape if shape is not None and len(shape) == 4 else None
    return (shape[0], heads, shape[1], shape[2] // heads)


def _constant_integer(node: onnx.NodeProto, position: int, constants: Constants) -> int | None:
    if position >= len(node.input) or node.input[position] not in constants:
        return None
    value = constants[node.input[position]]
    return int(value.item()) if value.size == 1 and value.dtype.kind in "iu" else None
