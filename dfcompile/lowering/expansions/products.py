"""Products of matrices, ONNX's Gemm, MatMul and Einsum, and onnxruntime's FusedMatMul."""

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from math import prod

from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.einsum_equation import Labels, read_equation
from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor, onnx_expansion
from dfcompile.lowering.expressions import literal, sum_dtype
from dfcompile.lowering.operators import Elementwise, MatMul


@onnx_expansion("Gemm", "matmul", default=True)
def gemm(op: Operator, build: CanonicalFragment) -> None:
    """``Y = alpha * A' @ B' + beta * C``: a MatMul, then one element-wise operator for the rest.

    With ``beta = 0``, C does not count, whatever it holds.
    """
    alpha, beta = op.real("alpha", 1.0), op.real("beta", 1.0)
    a, b, c, y = op.input(0), op.input(1), op.optional_input(2) if beta else None, op.output()
    scaled = "a" if alpha == 1.0 else f"{alpha!r} * a"
    has_rest = c is not None or alpha != 1.0
    product = build.array("product", y.shape, sum_dtype(y.dtype)) if has_rest else y
    build.add(transposed_product(op), [a, b], product, step="matmul")
    if c is not None:
        added = "b" if beta == 1.0 else f"{beta!r} * b"
        build.add(Elementwise(f"{scaled} + {added}"), [product, c], y, step="bias")
    elif has_rest:
        build.add(Elementwise(scaled), [product], y, step="scale")


def transposed_product(op: Operator) -> MatMul:
    """Return the product of operands of which attributes say how they are stored."""
    return MatMul(op.integer("transA", 0) != 0, op.integer("transB", 0) != 0)


@onnx_expansion("MatMul", "matmul", default=True)
def matmul(op: Operator, build: CanonicalFragment) -> None:
    """``Y = A @ B`` with numpy's rules: batch dimensions are broadcast, vectors are rows or columns.

    Dimensions of A next to its rows that B has not are rows: ``A[s, b, k] @ B[k, m]`` is one product of ``s * b`` rows.
    """
    add_product(build, op.input(0), op.input(1), op.output())


def add_product(build: CanonicalFragment, a: Tensor, b: Tensor, y: Tensor) -> None:
    """Add ``Y = A @ B`` as `matmul` has it, of an operator's result; Y may be of a wider type than A and B."""
    rows, columns, shape = _matrices(build, a, b)
    build.add_reshaped(MatMul(), [rows, columns], y, "product", shape, step="matmul")


def inner_product(build: CanonicalFragment, a: Tensor, b: Tensor, shape: tuple[int, ...], dtype: str) -> Tensor:
    """Add ``A @ B`` as `matmul` has it and return it, an array of a shape and a perhaps wider type."""
    rows, columns, full = _matrices(build, a, b)
    return build.shaped(build.made("product", MatMul(), [rows, columns], full, dtype, step="matmul"), "sums", shape)


def _matrices(build: CanonicalFragment, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """Return operands as matrices, perhaps many of them, and the shape of their product."""
    n = a.shape[-2] if a.rank > 1 else 1
    k, m = a.shape[-1], b.shape[-1] if b.rank > 1 else 1
    # Batch extents of both, from the last on side by side, without those that are 1 in both.
    aligned = zip_longest(reversed(a.shape[:-2]), reversed(b.shape[:-2]), fillvalue=1)
    pairs = [pair for pair in aligned if pair != (1, 1)]
    a_batch, b_batch = ([pair[side] for pair in reversed(pairs)] for side in (0, 1))
    while b_batch and b_batch[-1] == 1:
        n *= a_batch.pop()
        b_batch.pop()
    batch = [max(pair) for pair in zip(a_batch, b_batch, strict=True)]
    rows, columns = build.shaped(a, "rows", (*a_batch, n, k)), build.shaped(b, "columns", (*b_batch, k, m))
    return rows, columns, (*batch, n, m)


@onnx_expansion("com.microsoft.FusedMatMul", "matmul", source="onnxruntime", default=True)
def fused_matmul(op: Operator, build: CanonicalFragment) -> None:
    """``Y = alpha * A' @ B'``: a MatMul of transposed operands, then one element-wise task for a factor, if any."""
    alpha, y = op.real("alpha", 1.0), op.output()
    a, b = (_batched(op, build, position, name) for position, name in enumerate("AB"))
    product = y if alpha == 1.0 else build.array("product", y.shape, sum_dtype(y.dtype))
    build.add(transposed_product(op), [a, b], product, step="matmul")
    if product is not y:
        build.elementwise(f"a * {literal(alpha, 'float32')}", [product], y, step="scale")


def _batched(op: Operator, build: CanonicalFragment, position: int, name: str) -> Tensor:
    """Return ``X[m, b…, k]`` as ``X[b…, m, k]`` if the operator says so."""
    x = op.input(position)
    if not op.integer(f"transBatch{name}", 0) or x.rank == 2:
        return x
    shape = (*x.shape[1:-1], x.shape[0], x.shape[-1])
    read = (f"i{x.rank - 2}", *(f"i{axis}" for axis in range(x.rank - 2)), f"i{x.rank - 1}")
    return build.copied(f"arranged_{name.lower()}", x, read, shape, step=f"arrange_{name.lower()}")


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
