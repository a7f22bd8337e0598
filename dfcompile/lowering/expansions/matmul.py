"""Matrix multiplication ``C[b, i, j] = sum_k A[b, i, k] * B[b, k, j]``.

The canonical MatMul has n rows, m columns and a contraction of k; ``transpose_a`` and ``transpose_b`` say that the
last two dimensions of an operand are stored the other way round. Leading dimensions are batch; an operand may lack
them or have extent 1 there (it is then the same for every batch).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dfcompile.lowering import MapFragment, Operator, Reduction, Tensor, expansion
from dfcompile.lowering.expressions import sum_dtype


@dataclass(frozen=True, slots=True)
class _Product:
    """Extents and index expressions of one MatMul."""

    a: Tensor
    b: Tensor
    c: Tensor
    batch: dict[str, int]
    n: int
    m: int
    k: int
    transpose_a: bool
    transpose_b: bool

    def at_a(self, i: str, k: str) -> tuple[Tensor, Sequence[str]]:
        """Index A at row i and column k."""
        return self.a, (*self._batch_of(self.a), *((k, i) if self.transpose_a else (i, k)))

    def at_b(self, k: str, j: str) -> tuple[Tensor, Sequence[str]]:
        """Index B at row k and column j."""
        return self.b, (*self._batch_of(self.b), *((j, k) if self.transpose_b else (k, j)))

    def at(self, tensor: Tensor, *indices: str) -> tuple[Tensor, Sequence[str]]:
        """Index an array that has all batch dimensions in front."""
        return tensor, (*self.batch, *indices)

    @property
    def batch_extents(self) -> tuple[int, ...]:
        """Extents of the batch dimensions."""
        return tuple(self.batch.values())

    def _batch_of(self, tensor: Tensor) -> tuple[str, ...]:
        rank = tensor.rank - 2
        names = tuple(self.batch)[len(self.batch) - rank :]
        return tuple(name if extent > 1 else "0" for name, extent in zip(names, tensor.shape[:rank], strict=True))


def _product(op: Operator) -> _Product:
    a, b, c = op.input(0), op.input(1), op.output()
    transpose_a, transpose_b = bool(op.integer("transpose_a", 0)), bool(op.integer("transpose_b", 0))
    batch = {f"b{axis}": extent for axis, extent in enumerate(c.shape[:-2])}
    k = a.shape[-2] if transpose_a else a.shape[-1]
    return _Product(a, b, c, batch, c.shape[-2], c.shape[-1], k, transpose_a, transpose_b)


@expansion("MatMul", "mv", source="dematteis23", default=True)
def matrix_vector(op: Operator, build: MapFragment) -> None:
    """One matrix-vector task per column of B: A is broadcast row by row, C comes out row by row."""
    p = _product(op)
    a = build.array("rows", (*p.batch_extents, p.n, p.k), p.a.dtype)
    parts = build.array("columns", p.c.shape)
    rows = {**p.batch, "i": p.n, "k": p.k}
    build.map("broadcast", loops=rows, reads={"a": p.at_a("i", "k")}, write=p.at(a, "i", "k"), code="a")
    build.map(
        "mv",
        spatial={**p.batch, "j": p.m},
        loops={"i": p.n, "k": p.k},
        reads={"a": p.at(a, "i", "k"), "b": p.at_b("k", "j")},
        write=p.at(parts, "i", "j"),
        code="a * b",
        accumulate=Reduction.SUM,
    )
    _gather(build, p, parts, {**p.batch, "i": p.n, "j": p.m})


@expansion("MatMul", "lmv", source="dematteis23")
def left_matrix_vector(op: Operator, build: MapFragment) -> None:
    """One task per row of A, multiplied with all of B: B is broadcast by columns, C comes out column by column."""
    p = _product(op)
    b = build.array("columns", (*p.batch_extents, p.k, p.m), p.b.dtype)
    parts = build.array("rows", p.c.shape)
    columns = {**p.batch, "j": p.m, "k": p.k}
    build.map("broadcast", loops=columns, reads={"b": p.at_b("k", "j")}, write=p.at(b, "k", "j"), code="b")
    build.map(
        "lmv",
        spatial={**p.batch, "i": p.n},
        loops={"j": p.m, "k": p.k},
        reads={"a": p.at_a("i", "k"), "b": p.at(b, "k", "j")},
        write=p.at(parts, "i", "j"),
        code="a * b",
        accumulate=Reduction.SUM,
    )
    _gather(build, p, parts, {**p.batch, "j": p.m, "i": p.n})


@expansion("MatMul", "op", source="dematteis23")
def outer_product(op: Operator, build: MapFragment) -> None:
    """One outer-product task per k and one task that sums them: C comes out column by column."""
    p = _product(op)
    partial = build.array("products", (p.k, *p.c.shape), sum_dtype(p.c.dtype))
    build.map(
        "op",
        spatial={"k": p.k},
        loops={**p.batch, "j": p.m, "i": p.n},
        reads={"a": p.at_a("i", "k"), "b": p.at_b("k", "j")},
        write=(partial, ("k", *p.batch, "i", "j")),
        code="a * b",
    )
    build.map(
        "reduce",
        loops={**p.batch, "j": p.m, "i": p.n, "k": p.k},
        reads={"product": (partial, ("k", *p.batch, "i", "j"))},
        write=p.at(p.c, "i", "j"),
        code="product",
        accumulate=Reduction.SUM,
    )


@expansion("MatMul", "ip", source="dematteis23")
def inner_product(op: Operator, build: MapFragment) -> None:
    """One inner-product task per element of C, which comes out row by row."""
    p = _product(op)
    parts = build.array("elements", p.c.shape)
    build.map(
        "ip",
        spatial={**p.batch, "i": p.n, "j": p.m},
        loops={"k": p.k},
        reads={"a": p.at_a("i", "k"), "b": p.at_b("k", "j")},
        write=p.at(parts, "i", "j"),
        code="a * b",
        accumulate=Reduction.SUM,
    )
    _gather(build, p, parts, {**p.batch, "i": p.n, "j": p.m})


def _gather(build: MapFragment, p: _Product, parts: Tensor, loops: dict[str, int]) -> None:
    """One task takes the elements of the family in turn."""
    build.map("gather", loops=loops, reads={"part": p.at(parts, "i", "j")}, write=p.at(p.c, "i", "j"), code="part")
