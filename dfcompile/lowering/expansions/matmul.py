"""Matrix multiplication ``C[…, i, j] = sum_k A[…, i, k] * B[…, k, j]``: n rows, m columns, a contraction of k."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.lowering import CanonicalNode, MapFragment, Reduction, Tensor, expansion, parametric_expansion
from dfcompile.lowering.expressions import product_of, sum_dtype
from dfcompile.lowering.operators import MatMul
from dfcompile.lowering.partial_results import PARTS, Reduced, split_reduction


class _Product(Struct, frozen=True):
    """Operands, and loops with their extents, of one MatMul; loops of leading dimensions of extent 1 are left out."""

    a: Tensor
    b: Tensor
    c: Tensor
    batch: Mapping[str, int]  # leading dimensions of A and B
    rows: Mapping[str, int]  # leading dimensions of A alone, then i
    columns: Mapping[str, int]  # leading dimensions of B alone, then j
    in_order: Mapping[str, int]  # all of them as C has them: row by row
    k: int
    transpose_a: bool
    transpose_b: bool

    @property
    def times(self) -> str:
        """The product of two elements."""
        return product_of("a", "b", (self.a.dtype, self.b.dtype), self.c.dtype)

    def at_a(self) -> tuple[Tensor, Sequence[str]]:
        """Index A at a row and k."""
        return self.a, (*_leading(self.a), *(("k", "i") if self.transpose_a else ("i", "k")))

    def at_b(self) -> tuple[Tensor, Sequence[str]]:
        """Index B at k and a column."""
        return self.b, (*_leading(self.b), *(("j", "k") if self.transpose_b else ("k", "j")))

    def at_c(self, like_c: Tensor) -> tuple[Tensor, Sequence[str]]:
        """Index an array of C's shape at a row and a column."""
        return like_c, (*_leading(self.c), "i", "j")


def _product(op: CanonicalNode[MatMul]) -> _Product:
    a, b, c = op.input(0), op.input(1), op.output()
    transpose_a, transpose_b = op.operator.transpose_a, op.operator.transpose_b
    leading = {name: extent for name, extent in zip(_leading(c), c.shape, strict=False) if name != "0"}
    of_a, of_b = set(_leading(a)), set(_leading(b))
    n, m = {"i": c.shape[-2]}, {"j": c.shape[-1]}
    return _Product(
        a,
        b,
        c,
        batch={name: extent for name, extent in leading.items() if name in of_a and name in of_b},
        rows={name: extent for name, extent in leading.items() if name not in of_b} | n,
        columns={name: extent for name, extent in leading.items() if name not in of_a} | m,
        in_order=leading | n | m,
        k=a.shape[-2] if transpose_a else a.shape[-1],
        transpose_a=transpose_a,
        transpose_b=transpose_b,
    )


def _leading(tensor: Tensor) -> tuple[str, ...]:
    """Return the index of each dimension before the last two: a loop, numbered from the last, or 0 if it is one."""
    extents = tensor.shape[:-2]
    return tuple(f"b{len(extents) - axis}" if extent > 1 else "0" for axis, extent in enumerate(extents))


@expansion(MatMul, "mv", source="dematteis23", default=True)
def matrix_vector(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """One matrix-vector task per column of B: A is broadcast row by row, C comes out row by row."""
    p = _product(op)
    rows = {**p.batch, **p.rows, "k": p.k}
    a = build.array("rows", rows.values(), p.a.dtype)
    parts = build.array("columns", p.c.shape)
    build.map("broadcast", loops=rows, reads={"a": p.at_a()}, write=(a, list(rows)), code="a")
    build.map(
        "mv",
        spatial={**p.batch, **p.columns},
        loops={**p.rows, "k": p.k},
        reads={"a": (a, list(rows)), "b": p.at_b()},
        write=p.at_c(parts),
        code=p.times,
        accumulate=Reduction.SUM,
    )
    _gather(build, p, parts, p.in_order)


@expansion(MatMul, "lmv", source="dematteis23")
def left_matrix_vector(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """One task per row of A, multiplied with all of B: B is broadcast by columns, C comes out column by column."""
    p = _product(op)
    columns = {**p.batch, **p.columns, "k": p.k}
    stored = [*(name for name in columns if name not in {"k", "j"}), "k", "j"]
    b = build.array("columns", [columns[name] for name in stored], p.b.dtype)
    parts = build.array("rows", p.c.shape)
    build.map("broadcast", loops=columns, reads={"b": p.at_b()}, write=(b, stored), code="b")
    build.map(
        "lmv",
        spatial={**p.batch, **p.rows},
        loops={**p.columns, "k": p.k},
        reads={"a": p.at_a(), "b": (b, stored)},
        write=p.at_c(parts),
        code=p.times,
        accumulate=Reduction.SUM,
    )
    _gather(build, p, parts, {**p.batch, **p.columns, **p.rows})


@expansion(MatMul, "op", source="dematteis23")
def outer_product(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """One outer-product task per k and one task that sums them: C comes out column by column."""
    p = _product(op)
    by_columns = {**p.batch, **p.columns, **p.rows}
    partial = build.array("products", (p.k, *p.c.shape), sum_dtype(p.c.dtype))
    _, place = p.at_c(p.c)
    build.map(
        "op",
        spatial={"k": p.k},
        loops=by_columns,
        reads={"a": p.at_a(), "b": p.at_b()},
        write=(partial, ("k", *place)),
        code=p.times,
    )
    build.map(
        "reduce",
        loops={**by_columns, "k": p.k},
        reads={"product": (partial, ("k", *place))},
        write=(p.c, place),
        code="product",
        accumulate=Reduction.SUM,
    )


@expansion(MatMul, "ip", source="dematteis23")
def inner_product(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """One inner-product task per element of C, which comes out row by row."""
    p = _product(op)
    parts = build.array("elements", p.c.shape)
    build.map(
        "ip",
        spatial=p.in_order,
        loops={"k": p.k},
        reads={"a": p.at_a(), "b": p.at_b()},
        write=p.at_c(parts),
        code=p.times,
        accumulate=Reduction.SUM,
    )
    _gather(build, p, parts, p.in_order)


@parametric_expansion(MatMul, "split-k", source="brent74", parameter="parts", values=PARTS)
def split_inner_product(op: CanonicalNode[MatMul], build: MapFragment, parts: int) -> None:
    """Each element of C from so many inner products of parts of k at most, which a tree of tasks adds up."""
    p = _product(op)
    reads = {"a": p.at_a(), "b": p.at_b()}
    split_reduction(build, Reduced(p.in_order, {"k": p.k}, reads, p.at_c(p.c), p.times, Reduction.SUM), parts)


def _gather(build: MapFragment, p: _Product, parts: Tensor, loops: Mapping[str, int]) -> None:
    """One task takes the elements of the family in turn."""
    build.map("gather", loops=loops, reads={"part": p.at_c(parts)}, write=p.at_c(p.c), code="part")
