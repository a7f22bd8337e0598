"""ONNX Einsum: sums of products over named dimensions."""

from collections.abc import Iterable, Mapping
from math import prod

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.einsum_equation import Labels, read_equation
from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expressions import sum_dtype
from dfcompile.lowering.operators import MatMul


class _Term(Struct, frozen=True):
    """A product of operands: one label per dimension, and an array of any shape with its elements in row order."""

    array: Tensor
    labels: Labels


@onnx_expansion("Einsum", "matmul", default=True)
def einsum(op: Operator, build: CanonicalFragment) -> None:
    """``Y[i, j] = sum_k A[i, k] * B[k, j]`` and the like: a MatMul where a dimension is contracted.

    It goes operand by operand from the left. Diagonals and sums over a dimension that only one operand has come first;
    dimensions are reordered by copies where a product needs it. Without a contraction the product is element-wise.
    """
    terms, result, extents = _parsed(op)
    dtype = op.output().dtype
    steps = _Steps(build, extents, dtype if len(terms) == 1 else sum_dtype(dtype))
    left = steps.alone(terms[0], _needed(result, terms[1:]))
    for position, term in enumerate(terms[1:], 2):
        needed = _needed(result, terms[position:])
        right = steps.alone(term, {*needed, *left.labels})
        is_last = position == len(terms)
        alone = steps.alone(left, {*needed, *right.labels})
        left = steps.product(alone, right, needed, dtype if is_last else sum_dtype(dtype))
    build.view_as(steps.arranged(left, result).array, op.output())


def _needed(result: Labels, later: Iterable[_Term]) -> set[str]:
    return {*result, *(label for term in later for label in term.labels)}


class _Steps:
    """The canonical operators of one Einsum, named by what they do."""

    def __init__(self, build: CanonicalFragment, extents: Mapping[str, int], sums: str) -> None:
        self._build = build
        self._extents = extents
        self._sums = sums  # data type of what is summed up before a product
        self._counts: dict[str, int] = {}

    def alone(self, term: _Term, needed: set[str]) -> _Term:
        """Take diagonals, and sum over what no other operand and no result needs."""
        term = self.arranged(term, tuple(dict.fromkeys(term.labels)))
        kept = tuple(label for label in term.labels if label in needed)
        if kept == term.labels:
            return term
        total = self._build.array(self._name("total"), self._shape(kept), self._sums)
        axes = [axis for axis, label in enumerate(term.labels) if label not in needed]
        self._build.reduce(Reduction.SUM, [self._shaped(term)], total, axes, step=self._name("sum"))
        return _Term(total, kept)

    def arranged(self, term: _Term, labels: Labels) -> _Term:
        """Return the dimensions in another order; of a label that an operand has twice, the diagonal."""
        if term.labels == labels:
            return term
        name, step = self._name("arranged"), self._name("arrange")
        read = [f"i{labels.index(label)}" for label in term.labels]
        return _Term(self._build.copied(name, self._shaped(term), read, self._shape(labels), step=step), labels)

    def product(self, left: _Term, right: _Term, needed: set[str], dtype: str) -> _Term:
        """Multiply, and sum over what both operands have and nothing else needs."""
        shared = [label for label in left.labels if label in right.labels]
        batch = tuple(label for label in shared if label in needed)
        contracted = tuple(label for label in shared if label not in needed)
        rows = tuple(label for label in left.labels if label not in shared)
        columns = tuple(label for label in right.labels if label not in shared)
        labels = (*batch, *rows, *columns)
        if not contracted:
            name, step, shape = self._name("product"), self._name("multiply"), self._shape(labels)
            axes = [[labels.index(label) for label in term.labels] or [0] for term in (left, right)]
            operands = [self._shaped(left), self._shaped(right)]
            return _Term(self._build.computed(name, "a * b", operands, shape, dtype, axes=axes, step=step), labels)
        a, transpose_a = self._matrices(left, batch, rows, contracted)
        b, transpose_b = self._matrices(right, batch, contracted, columns)
        outer, n, m = (self._elements(part) for part in (batch, rows, columns))
        name, step, operator = self._name("product"), self._name("matmul"), MatMul(transpose_a, transpose_b)
        return _Term(self._build.made(name, operator, [a, b], (outer, n, m), dtype, step=step), labels)

    def _matrices(self, term: _Term, batch: Labels, rows: Labels, columns: Labels) -> tuple[Tensor, bool]:
        """Return the term as a batch of matrices, and whether these are stored the other way round."""
        is_transposed = term.labels == (*batch, *columns, *rows) != (*batch, *rows, *columns)
        parts = (batch, columns, rows) if is_transposed else (batch, rows, columns)
        flat = self.arranged(term, tuple(label for part in parts for label in part))
        return self._viewed(flat.array, tuple(self._elements(part) for part in parts)), is_transposed

    def _shaped(self, term: _Term) -> Tensor:
        return self._viewed(term.array, self._shape(term.labels))

    def _viewed(self, array: Tensor, shape: tuple[int, ...]) -> Tensor:
        return array if array.shape == shape else self._build.view(array, self._name("view"), shape)

    def _name(self, step: str) -> str:
        count = self._counts[step] = self._counts.get(step, -1) + 1
        return f"{step}{count or ''}"

    def _elements(self, labels: Labels) -> int:
        return prod(self._extents[label] for label in labels)

    def _shape(self, labels: Labels) -> tuple[int, ...]:
        return tuple(self._extents[label] for label in labels) or (1,)


def _parsed(op: Operator) -> tuple[tuple[_Term, ...], Labels, Mapping[str, int]]:
    """Return the operands with their labels, the labels of the result, and the extent that each label stands for."""
    text, operands = op.text("equation", ""), op.operands()
    # An operand without dimensions stands as an array of one element.
    sources = text.replace(" ", "").partition("->")[0].split(",")
    pairs = list(zip(operands, sources, strict=False))
    shapes = [operand.shape if source or operand.elements > 1 else () for operand, source in pairs]
    try:
        equation = read_equation(text, shapes, lambda position: repr(operands[position].name))
    except UserError as error:
        raise op.unsupported(str(error)) from error
    extents = equation.extents
    # An extent of 1 that stands for more is the same for each of them: as if the operand had no such dimension.
    dimensions = (zip(labels, shape, strict=True) for labels, shape in zip(equation.terms, shapes, strict=True))
    kept = (tuple(label for label, extent in pairs if extent == extents[label]) for pairs in dimensions)
    terms = tuple(_Term(operand, labels) for operand, labels in zip(operands, kept, strict=True))
    return terms, equation.result, extents
