"""Operators of a model, as far as their traffic is concerned; equal ones are looked at once."""

from functools import cached_property, lru_cache
from typing import TypeAlias, assert_never

from msgspec import Struct

from dfcompile.bounds.curve import Curve, constant
from dfcompile.bounds.einsum.attention import Attention, attention_curve
from dfcompile.bounds.einsum.convolution import Convolution, convolution_curve
from dfcompile.bounds.einsum.plain import PlainEinsum, plain_curve
from dfcompile.bounds.einsum.pooling import Pooling
from dfcompile.bounds.einsum.rows import Moving, Rows, rows_curve
from dfcompile.bounds.einsum.window_orders import Kept
from dfcompile.bounds.proved import Contracted, Passing, least_passing, proved_words
from dfcompile.bounds.tilings import Rules
from dfcompile.canonical_dag import TensorRole
from dfcompile.records import replace

Shape: TypeAlias = PlainEinsum | Convolution | Pooling | Attention | Rows | None


class Operand(Struct, frozen=True):
    """A tensor as an operator reads or writes it.

    Attributes:
        tensor: name.
        words: different ones that are read or written.
        units: that a word takes, of `BoundedOperator.element_bytes`.
    """

    tensor: str
    words: int
    units: int = 1

    @property
    def size(self) -> int:
        """Units of all words."""
        return self.words * self.units


class BoundedOperator(Struct, frozen=True):
    """An operator of a model.

    Attributes:
        name: the user's.
        op_type: such as ``Conv``.
        count: equal operations, one after the other, each with its own part of the operands of ``shape``.
        shape: of one of them; its operands are the first of ``reads`` (the two of a product, the three of attention),
            what else is read is read once. ``None``: nothing is known but that each word moves once.
        reads: operands.
        writes: results.
        element_bytes: of a unit: words of its operands and results take one or several.
        within: names of operators that run as its result is made.
        is_elementwise: whether a word of a result needs one word at most of each operand.
    """

    name: str
    op_type: str
    count: int
    shape: Shape
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    element_bytes: int
    within: tuple[str, ...] = ()
    is_elementwise: bool = False

    @property
    def compulsory_words(self) -> int:
        """Units that move however large the buffer is."""
        return sum(operand.size for operand in (*self.reads, *self.writes))

    @property
    def macs(self) -> int:
        """Multiplications of products; 0 of other operators."""
        match self.shape:
            case PlainEinsum() | Convolution() | Attention():
                return self.count * self.shape.macs
            case Pooling() | Rows() | None:
                return 0
        assert_never(self.shape)

    @property
    def is_floor(self) -> bool:
        """Whether no tiling is known: the curve says that each word moves once, whatever the buffer."""
        return self.shape is None

    def curve(self, rules: Rules, kept: frozenset[str] = frozenset()) -> Curve:
        """Return the curve of the operator.

        Args:
            rules: how traffic is counted.
            kept: tensors that are held whole beside the buffer: they do not move and take nothing of it.
        """
        is_read = tuple(operand.tensor not in kept for operand in self.reads)
        is_written = tuple(operand.tensor not in kept for operand in self.writes)
        reads, writes = (tuple(Moving(each.words, each.units) for each in side) for side in (self.reads, self.writes))
        return _curve(self.shape, self.count, (reads, writes), (is_read, is_written), rules)

    def proved(self, size: int) -> int:
        """Return the units that move at least, of this operator alone, with a buffer of ``size`` units.

        No word takes less than a unit, so that the words of a proof are units too.
        """
        match self.shape:
            case PlainEinsum() | Convolution():
                inner = self.shape.contracted
                products = Contracted(self.count * inner.macs, inner.reuse, 0, 0)
                return max(self.compulsory_words, proved_words(products, size))
            case Attention() if not self.shape.is_masked:
                scores = self.passing
                assert scores is not None
                macs = self.count * self.shape.scores * self.shape.width
                words = least_passing(macs, size, lambda crossing: scores.most_products(crossing, (0, 0)))
                return max(self.compulsory_words, words)
            case Pooling() | Attention() | Rows() | None:
                return self.compulsory_words
        assert_never(self.shape)

    @property
    def passing(self) -> Passing | None:
        """What a proof needs whose tensors may be made and used up without moving; ``None`` without products.

        Of attention that is the first product, whose result is no tensor of a model.
        """
        match self.shape:
            case PlainEinsum() | Convolution():
                return Passing(self.shape.contracted.reuse, self.shape.depth, (*self._factors, self.writes[0].words))
            case Attention() if not self.shape.is_masked:
                return Passing(1, self.shape.width, (*self._factors, self.count * self.shape.scores))
            case Pooling() | Attention() | Rows() | None:
                return None
        assert_never(self.shape)

    @property
    def _factors(self) -> tuple[int, int]:
        return self.reads[0].words, self.reads[1].words


class BoundedTensor(Struct, frozen=True):
    """A tensor of a model.

    Attributes:
        name: of the array.
        words: of all of it.
        element_bytes: of a word.
        role: where it lives.
    """

    name: str
    words: int
    element_bytes: int
    role: TensorRole


class BoundedModel(Struct, frozen=True, dict=True):
    """A model: its operators in an order in which they can run, and its tensors.

    Attributes:
        name: of the model.
        operators: each tensor is written by one of them at most, before it is read.
        tensors: all that they read and write.
    """

    name: str
    operators: tuple[BoundedOperator, ...]
    tensors: tuple[BoundedTensor, ...]

    @property
    def compulsory_bytes(self) -> int:
        """What every run moves: what is read of inputs and parameters, and outputs.

        Parameters of a single word are left out: they may be part of the program.
        """
        return sum(map(self.compulsory_of, self.tensors))

    @cached_property
    def _read(self) -> dict[str, int]:
        """Different words that are read of each tensor by the operator that reads most of it.

        Words of a result that nobody reads, as behind a slice, need none of the operands of an elementwise operator.
        """
        words = {tensor.name: tensor.words for tensor in self.tensors}
        outputs = {tensor.name for tensor in self.tensors if tensor.role is TensorRole.OUTPUT}
        read: dict[str, int] = {}
        for op in reversed(self.operators):
            results = [operand.tensor for operand in op.writes if operand.tensor not in outputs]
            unread = sum(words[name] - min(words[name], read.get(name, 0)) for name in results) * op.is_elementwise
            for operand in op.reads:
                read[operand.tensor] = max(read.get(operand.tensor, 0), operand.words - unread)
        return read

    @cached_property
    def _written(self) -> dict[str, int]:
        """Words of each tensor that the operator which makes it writes."""
        return {operand.tensor: operand.words for op in self.operators for operand in op.writes}

    def compulsory_of(self, tensor: BoundedTensor) -> int:
        """Return the bytes of a tensor that every run moves."""
        match tensor.role:
            case TensorRole.OUTPUT:
                return self._written.get(tensor.name, tensor.words) * tensor.element_bytes
            case TensorRole.INPUT:
                return self._read.get(tensor.name, 0) * tensor.element_bytes
            case TensorRole.PARAMETER:
                words = self._read.get(tensor.name, 0)
                return words * tensor.element_bytes if words > 1 else 0
            case TensorRole.INTERMEDIATE:
                return 0
        assert_never(tensor.role)


Sides: TypeAlias = tuple[tuple[Moving, ...], tuple[Moving, ...]]
Moved: TypeAlias = tuple[tuple[bool, ...], tuple[bool, ...]]


@lru_cache(maxsize=4096)
def _curve(shape: Shape, count: int, sides: Sides, moved: Moved, rules: Rules) -> Curve:
    reads, writes = sides
    is_read, is_written = moved
    known = _operands_of(shape)
    rest = sum(each.size for each, flag in zip(reads[known:], is_read[known:], strict=True) if flag)
    flags = (*is_read[:known], *is_written)
    units = tuple(each.units for each in (*reads[:known], *writes))
    if not any(flags) and shape is not None and not isinstance(shape, Rows):
        return constant(rest, 1)
    match shape:
        case PlainEinsum():
            moving = tuple(
                replace(tensor, units=size)
                for tensor, flag, size in zip(shape.tensors, flags, units, strict=True)
                if flag
            )
            return plain_curve(replace(shape, tensors=moving), rules).times(count).plus(rest)
        case Convolution() | Pooling():
            return _windows_curve(shape, rules, flags, units).times(count).plus(rest)
        case Attention():
            queries, keys, values, results = flags
            curve = attention_curve(shape, rules, (queries, keys, values, results))
            return curve.scaled(max(units)).times(count).plus(rest)
        case Rows():
            first = replace(reads[0], words=reads[0].words * is_read[0]) if reads else None
            others = tuple(each for each, flag in zip(reads[1:], is_read[1:], strict=True) if flag)
            written = tuple(each for each, flag in zip(writes, is_written, strict=True) if flag)
            return rows_curve(shape, others if first is None else (first, *others), written, rules)
        case None:
            return constant(rest + sum(each.size for each, flag in zip(writes, is_written, strict=True) if flag), 1)
    assert_never(shape)


def _windows_curve(
    shape: Convolution | Pooling, rules: Rules, flags: tuple[bool, ...], units: tuple[int, ...]
) -> Curve:
    """Return the curve of windows; a pooling's weights take nothing."""
    letters: tuple[Kept, ...] = ("I", "O") if isinstance(shape, Pooling) else ("I", "W", "O")
    windows = shape.windows if isinstance(shape, Pooling) else shape
    moved = frozenset(letter for letter, flag in zip(letters, flags, strict=True) if flag)
    sizes: dict[Kept, int] = {"I": 0, "W": 0, "O": 0}
    sizes.update(zip(letters, units, strict=True))
    return convolution_curve(windows, rules, moved, sizes)


def _operands_of(shape: Shape) -> int:
    match shape:
        case PlainEinsum() | Convolution():
            return 2
        case Attention():
            return 3
        case Pooling():
            return 1
        case Rows() | None:
            return 0
    assert_never(shape)
