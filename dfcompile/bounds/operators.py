"""Operators of a model, as far as their traffic is concerned; equal ones are looked at once."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias, assert_never

from dfcompile.bounds.curve import Curve, constant
from dfcompile.bounds.einsum.attention import Attention, attention_curve
from dfcompile.bounds.einsum.convolution import Convolution, convolution_curve
from dfcompile.bounds.einsum.plain import PlainEinsum, plain_curve
from dfcompile.bounds.einsum.rows import Rows, rows_curve
from dfcompile.bounds.einsum.window_orders import Kept
from dfcompile.bounds.proved import Contracted, Passing, least_passing, proved_words
from dfcompile.bounds.tilings import Rules
from dfcompile.canonical_dag import TensorRole

Shape: TypeAlias = PlainEinsum | Convolution | Attention | Rows | None


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor as an operator reads or writes it.

    Attributes:
        tensor: name.
        words: different ones that are read or written.
    """

    tensor: str
    words: int


@dataclass(frozen=True, slots=True)
class BoundedOperator:
    """An operator of a model.

    Attributes:
        name: the user's.
        op_type: such as ``Conv``.
        count: equal operations, one after the other, each with its own part of the operands of ``shape``.
        shape: of one of them; its operands are the first of ``reads`` (the two of a product, the three of attention),
            what else is read is read once. ``None``: nothing is known but that each word moves once.
        reads: operands.
        writes: results.
        element_bytes: of a word.
        within: names of operators that run as its result is made.
    """

    name: str
    op_type: str
    count: int
    shape: Shape
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]
    element_bytes: int
    within: tuple[str, ...] = ()

    @property
    def compulsory_words(self) -> int:
        """Words that move however large the buffer is."""
        return sum(operand.words for operand in (*self.reads, *self.writes))

    @property
    def macs(self) -> int:
        """Multiplications of products; 0 of other operators."""
        match self.shape:
            case PlainEinsum() | Convolution() | Attention():
                return self.count * self.shape.macs
            case Rows() | None:
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
        words = tuple(operand.words for operand in self.reads), tuple(operand.words for operand in self.writes)
        return _curve(self.shape, self.count, words, (is_read, is_written), rules)

    def proved(self, size: int) -> int:
        """Return the words that move at least, of this operator alone, with a buffer of ``size`` words."""
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
            case Attention() | Rows() | None:
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
            case Attention() | Rows() | None:
                return None
        assert_never(self.shape)

    @property
    def _factors(self) -> tuple[int, int]:
        return self.reads[0].words, self.reads[1].words


@dataclass(frozen=True, slots=True)
class BoundedTensor:
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


@dataclass(frozen=True)
class BoundedModel:
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
        """Different words that are read of each tensor by the operator that reads most of it."""
        read: dict[str, int] = {}
        for op in self.operators:
            for operand in op.reads:
                read[operand.tensor] = max(read.get(operand.tensor, 0), operand.words)
        return read

    def compulsory_of(self, tensor: BoundedTensor) -> int:
        """Return the bytes of a tensor that every run moves."""
        match tensor.role:
            case TensorRole.OUTPUT:
                return tensor.words * tensor.element_bytes
            case TensorRole.INPUT:
                return self._read.get(tensor.name, 0) * tensor.element_bytes
            case TensorRole.PARAMETER:
                words = self._read.get(tensor.name, 0)
                return words * tensor.element_bytes if words > 1 else 0
            case TensorRole.INTERMEDIATE:
                return 0
        assert_never(tensor.role)


Words: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
Moved: TypeAlias = tuple[tuple[bool, ...], tuple[bool, ...]]


@lru_cache(maxsize=4096)
def _curve(shape: Shape, count: int, words: Words, moved: Moved, rules: Rules) -> Curve:
    reads, writes = words
    is_read, is_written = moved
    known = _operands_of(shape)
    rest = sum(n for n, flag in zip(reads[known:], is_read[known:], strict=True) if flag)
    flags = (*is_read[:known], *is_written)
    if not any(flags) and shape is not None and not isinstance(shape, Rows):
        return constant(rest, 1)
    match shape:
        case PlainEinsum():
            tensors = tuple(t for t, flag in zip(shape.tensors, flags, strict=True) if flag)
            moving = PlainEinsum(shape.name, shape.ranks, shape.extents, tensors)
            return plain_curve(moving, rules).times(count).plus(rest)
        case Convolution():
            letters: tuple[Kept, ...] = ("I", "W", "O")
            found = frozenset(letter for letter, flag in zip(letters, flags, strict=True) if flag)
            return convolution_curve(shape, rules, found).times(count).plus(rest)
        case Attention():
            queries, keys, values, results = flags
            return attention_curve(shape, rules, (queries, keys, values, results)).times(count).plus(rest)
        case Rows():
            read = tuple(n if flag else 0 for n, flag in zip(reads, is_read, strict=True))
            written = tuple(n for n, flag in zip(writes, is_written, strict=True) if flag)
            return rows_curve(shape, read[:1] + tuple(n for n in read[1:] if n), written, rules)
        case None:
            return constant(rest + sum(n for n, flag in zip(writes, is_written, strict=True) if flag), 1)
    assert_never(shape)


def _operands_of(shape: Shape) -> int:
    match shape:
        case PlainEinsum() | Convolution():
            return 2
        case Attention():
            return 3
        case Rows() | None:
            return 0
    assert_never(shape)
