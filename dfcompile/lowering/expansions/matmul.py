"""Matrix multiplication ``C[…, i, j] = sum_k A[…, i, k] * B[…, k, j]``: n rows, m columns, a contraction of k."""

from msgspec import Struct

from dfcompile.lowering import CanonicalNode, MapFragment, Reduction, Tensor, expansion, parametric_expansion
from dfcompile.lowering.expansions.own_loops import PARTS, Reduced, split_reduction
from dfcompile.lowering.expressions import product_of, sum_dtype
from dfcompile.lowering.map_fragment import Access, Loops
from dfcompile.lowering.operators import MatMul


class _Product(Struct, frozen=True):
    """Operands, and loops with their extents, of one MatMul; loops of leading dimensions of extent 1 are left out.

    Attributes:
        a: element of A at a row and k.
        b: element of B at k and a column.
        c: element of C at a row and a column.
        batch: loops of the leading dimensions of A and B.
        rows: loops of the leading dimensions of A alone, then i.
        columns: loops of the leading dimensions of B alone, then j.
        in_order: all these loops in the order of C's dimensions: row by row.
        k: the loop that is summed over.
        times: expression of the product of two elements.
    """

    a: Access
    b: Access
    c: Access
    batch: Loops
    rows: Loops
    columns: Loops
    in_order: Loops
    k: Loops
    times: str

    @staticmethod
    def of(op: CanonicalNode[MatMul]) -> "_Product":
        """Return operands and loops of an operator."""
        a, b, c = op.input(0), op.input(1), op.output()
        transpose_a, transpose_b = op.operator.transpose_a, op.operator.transpose_b
        leading = {name: extent for name, extent in zip(_leading(c), c.shape, strict=False) if name != "0"}
        of_a, of_b = set(_leading(a)), set(_leading(b))
        n, m = {"i": c.shape[-2]}, {"j": c.shape[-1]}
        return _Product(
            (a, (*_leading(a), *(("k", "i") if transpose_a else ("i", "k")))),
            (b, (*_leading(b), *(("j", "k") if transpose_b else ("k", "j")))),
            (c, (*_leading(c), "i", "j")),
            batch={name: extent for name, extent in leading.items() if name in of_a and name in of_b},
            rows={name: extent for name, extent in leading.items() if name not in of_b} | n,
            columns={name: extent for name, extent in leading.items() if name not in of_a} | m,
            in_order=leading | n | m,
            k={"k": a.shape[-2] if transpose_a else a.shape[-1]},
            times=product_of("a", "b", (a.dtype, b.dtype), c.dtype),
        )

    def add(
        self, build: MapFragment, step: str, spatial: Loops, loops: Loops, write: Access, **copies: Access
    ) -> None:  # fmt: skip
        """Add a family of tasks that multiply and, unless k is spatial, sum over k; ``copies`` replace operands."""
        total, reads = None if "k" in spatial else Reduction.SUM, {"a": self.a, "b": self.b, **copies}
        build.map(step, spatial=spatial, loops=loops, reads=reads, write=write, code=self.times, accumulate=total)

    def gather(self, build: MapFragment, parts: Tensor, loops: Loops) -> None:
        """Add the task that writes C from the results of a family of tasks, in the order of its loops."""
        build.map("gather", loops=loops, reads={"part": (parts, self.c[1])}, write=self.c, code="part")


def _leading(tensor: Tensor) -> tuple[str, ...]:
    """Return the index of each dimension before the last two: a loop, numbered from the last, or 0 for an extent 1."""
    extents = tensor.shape[:-2]
    return tuple(f"b{len(extents) - axis}" if extent > 1 else "0" for axis, extent in enumerate(extents))


@expansion(MatMul, "mv", source="dematteis23", default=True)
def matrix_vector(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """One matrix-vector task per column of B: A is broadcast row by row, C comes out row by row."""
    p = _Product.of(op)
    rows = {**p.batch, **p.rows, **p.k}
    a, parts = build.array("rows", rows.values(), op.input(0).dtype), build.array("columns", op.output().shape)
    build.map("broadcast", loops=rows, reads={"a": p.a}, write=(a, list(rows)), code="a")
    p.add(build, "mv", {**p.batch, **p.columns}, {**p.rows, **p.k}, (parts, p.c[1]), a=(a, list(rows)))
    p.gather(build, parts, p.in_order)


@expansion(MatMul, "lmv", source="dematteis23")
def left_matrix_vector(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """One task per row of A, multiplied with all of B: B is broadcast by columns, C comes out column by column."""
    p = _Product.of(op)
    columns = {**p.batch, **p.columns, **p.k}
    stored = [*(name for name in columns if name not in {"k", "j"}), "k", "j"]
    b = build.array("columns", [columns[name] for name in stored], op.input(1).dtype)
    parts = build.array("rows", op.output().shape)
    build.map("broadcast", loops=columns, reads={"b": p.b}, write=(b, stored), code="b")
    p.add(build, "lmv", {**p.batch, **p.rows}, {**p.columns, **p.k}, (parts, p.c[1]), b=(b, stored))
    p.gather(build, parts, {**p.batch, **p.columns, **p.rows})


@expansion(MatMul, "op", source="dematteis23")
def outer_product(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """One outer-product task per k and one task that sums them: C comes out column by column."""
    p, c = _Product.of(op), op.output()
    by_columns = {**p.batch, **p.columns, **p.rows}
    partial = build.array("products", (*p.k.values(), *c.shape), sum_dtype(c.dtype)), ("k", *p.c[1])
    p.add(build, "op", p.k, by_columns, partial)
    loops, total = {**by_columns, **p.k}, Reduction.SUM
    build.map("reduce", loops=loops, reads={"product": partial}, write=p.c, code="product", accumulate=total)


@expansion(MatMul, "ip", source="dematteis23")
def inner_product(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """One inner-product task per element of C, which comes out row by row."""
    p, parts = _Product.of(op), build.array("elements", op.output().shape)
    p.add(build, "ip", p.in_order, p.k, (parts, p.c[1]))
    p.gather(build, parts, p.in_order)


@expansion(MatMul, "columns", source="onnx")
def columns(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """One task per column of B, as `mv`, but without copies: tasks read A itself, row by row, and write into C.

    Each task keeps its column while the rows of A pass by, the same row at a time for all tasks: B is stationary.
    """
    p = _Product.of(op)
    p.add(build, "columns", {**p.batch, **p.columns}, {**p.rows, **p.k}, p.c)


@expansion(MatMul, "rows", source="onnx")
def rows(op: CanonicalNode[MatMul], build: MapFragment) -> None:
    """One task per row of A, as `lmv`, but without copies: tasks read B itself, column by column, and write into C.

    Each task keeps its row while the columns of B pass by, the same column at a time for all tasks: A is stationary.
    """
    p = _Product.of(op)
    p.add(build, "rows", {**p.batch, **p.rows}, {**p.columns, **p.k}, p.c)


@parametric_expansion(MatMul, "split-k", source="brent74", parameter="parts", values=PARTS)
def split_inner_product(op: CanonicalNode[MatMul], build: MapFragment, parts: int) -> None:
    """Divide each inner product into at most ``parts`` ones over parts of k, which a tree of tasks adds up."""
    p = _Product.of(op)
    split_reduction(build, Reduced(p.in_order, p.k, {"a": p.a, "b": p.b}, p.c, p.times, Reduction.SUM), parts)
