"""Operators of a model, as far as their traffic is concerned; equal ones are looked at once.

Those without products, elementwise ones, reductions, softmax and normalisations, pass row by row.
"""

from collections.abc import Mapping
from functools import cached_property, lru_cache
from itertools import compress, product
from typing import TypeAlias, assert_never

import numpy as np
from msgspec import Struct

from dfcompile.canonical_dag import TensorRole
from dfcompile.io_bounds.curve import Curve, Rules, constant, front
from dfcompile.io_bounds.einsum.convolution import Convolution, Pooling, convolution_curve
from dfcompile.io_bounds.einsum.plain import Attention, PlainEinsum, attention_curve, plain_curve
from dfcompile.io_bounds.einsum.window_orders import Kept
from dfcompile.io_bounds.proved import Contracted, Passing, least_passing, proved_words
from dfcompile.records import replace


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


class Rows(Struct, frozen=True):
    """An operator that passes over each row of its first operand one or several times.

    Attributes:
        row: words of a row that belong together; 1 of an elementwise operator.
        passes: over a row if it is not held: 2 where a figure of all the row is needed for each of its words.
    """

    row: int = 1
    passes: int = 1


def rows_curve(shape: Rows, operands: tuple[Operand, ...], results: tuple[Operand, ...], rules: Rules) -> Curve:
    """Return the curve of an operator row by row.

    The first operand is read once if a row is held, else as often as there are passes; with one word of each operand
    and result in the buffer, and two figures of a row. An operand of fewer words than the first (a scale, a bias) is
    held, or read anew for each word of the first. Where everything is held, figures take places of results that are not
    there yet: of rows of two words that is less.

    Args:
        shape: how it goes over its rows.
        operands: that move; the first comes first, also, of no words, if it is held beside the buffer.
        results: that move.
        rules: how traffic is counted.
    """
    first, others = (operands[0], operands[1:]) if operands else (Operand("", 0, 0), ())
    written = sum(each.size for each in results)
    if not rules.elides_first_read:
        written *= 2
    whole = [each for each in others if each.words >= first.words or first.words == 0]
    small = [each for each in others if each.words < first.words]
    least_size = sum(each.units for each in (*operands, *results)) + (2 * first.units if shape.passes > 1 else 0)
    points = []
    for is_row_held, is_small_held in product((False, True), repeat=2):
        size = least_size + (shape.row - 1) * first.units * is_row_held
        size += sum(each.size for each in small) * is_small_held
        reads = first.size * (1 if is_row_held else shape.passes) + sum(each.size for each in whole)
        reads += sum(each.size if is_small_held else first.words * each.units for each in small)
        points.append((size, reads + written))
    if shape.passes == 1 or sum(each.words for each in results) > 1:
        read = sum(each.size for each in operands)
        points.append((read + sum(each.size for each in results), read + written))
    columns = np.array(points, dtype=np.int64)
    return front(columns[:, 0], columns[:, 1])


Shape: TypeAlias = PlainEinsum | Convolution | Pooling | Attention | Rows | None


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
        return self.count * self.shape.macs if isinstance(self.shape, PlainEinsum | Convolution | Attention) else 0

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
        reads, writes = (tuple(replace(each, tensor="") for each in side) for side in (self.reads, self.writes))
        return _curve(self.shape, self.count, (reads, writes), (is_read, is_written), rules)

    def proved(self, size: int) -> int:
        """Return the units that move at least, of this operator alone, with a buffer of ``size`` units.

        No word takes less than a unit, so that the words of a proof are units too.
        """
        passing = self.passing
        if passing is None:
            return self.compulsory_words
        if isinstance(self.shape, Attention):
            words = least_passing(passing.macs, size, lambda crossing: passing.most_products(crossing, (0, 0)))
        else:
            words = proved_words(Contracted(passing.macs, passing.reuse, 0, 0), size)
        return max(self.compulsory_words, words)

    @property
    def passing(self) -> Passing | None:
        """What a proof needs whose tensors may be made and used up without moving; ``None`` without products.

        Of attention that is the first product, whose result is no tensor of a model.
        """
        match self.shape:
            case PlainEinsum() | Convolution():
                inner, depth = self.shape.contracted, self.shape.depth
                macs, reuse, results = self.count * inner.macs, inner.reuse, self.writes[0].words
            case Attention() if not self.shape.is_masked:
                depth, reuse, results = self.shape.width, 1, self.count * self.shape.scores
                macs = results * depth
            case Pooling() | Attention() | Rows() | None:
                return None
        return Passing(macs, reuse, depth, (self.reads[0].words, self.reads[1].words, results))


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
        words = self._read.get(tensor.name, 0)
        if tensor.role is TensorRole.OUTPUT:
            words = self._written.get(tensor.name, tensor.words)
        elif tensor.role is TensorRole.INTERMEDIATE or (tensor.role is TensorRole.PARAMETER and words == 1):
            return 0
        return words * tensor.element_bytes


# How many operands, the first ones, a shape tells of.
_OPERANDS: Mapping[type, int] = {PlainEinsum: 2, Convolution: 2, Attention: 3, Pooling: 1}
Sides: TypeAlias = tuple[tuple[Operand, ...], tuple[Operand, ...]]
Moved: TypeAlias = tuple[tuple[bool, ...], tuple[bool, ...]]


@lru_cache(maxsize=4096)
def _curve(shape: Shape, count: int, sides: Sides, moved: Moved, rules: Rules) -> Curve:
    reads, writes = sides
    is_read, is_written = moved
    known = _OPERANDS.get(type(shape), 0)
    rest = sum(each.size for each in compress(reads[known:], is_read[known:]))
    flags = (*is_read[:known], *is_written)
    units = tuple(each.units for each in (*reads[:known], *writes))
    if not any(flags) and shape is not None and not isinstance(shape, Rows):
        return constant(rest, 1)
    match shape:
        case PlainEinsum():
            tensors = [replace(tensor, units=size) for tensor, size in zip(shape.tensors, units, strict=True)]
            moving = replace(shape, tensors=tuple(compress(tensors, flags)))
            return plain_curve(moving, rules).times(count).plus(rest)
        case Convolution() | Pooling():  # a pooling's weights take nothing
            letters: tuple[Kept, ...] = ("I", "O") if isinstance(shape, Pooling) else ("I", "W", "O")
            windows = shape.windows if isinstance(shape, Pooling) else shape
            sizes: dict[Kept, int] = {"I": 0, "W": 0, "O": 0, **dict(zip(letters, units, strict=True))}
            curve = convolution_curve(windows, rules, frozenset(compress(letters, flags)), sizes)
            return curve.times(count).plus(rest)
        case Attention():
            queries, keys, values, results = flags
            curve = attention_curve(shape, rules, (queries, keys, values, results))
            return curve.scaled(max(units)).times(count).plus(rest)
        case Rows():
            first = tuple(replace(each, words=each.words * is_read[0]) for each in reads[:1])
            operands = (*first, *compress(reads[1:], is_read[1:]))
            return rows_curve(shape, operands, tuple(compress(writes, is_written)), rules)
        case None:
            return constant(rest + sum(each.size for each in compress(writes, is_written)), 1)
    assert_never(shape)
