"""Canonical operators that are one scope of the loops that they have themselves: Copy, Elementwise, Nest, Reduce."""

from collections.abc import Mapping, Sequence
from string import ascii_lowercase
from typing import cast

from dfcompile.canonical_dag import LoopKind
from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, Reduction
from dfcompile.lowering.expansion import expansion, onnx_expansion, parametric_expansion
from dfcompile.lowering.expressions import operand_names
from dfcompile.lowering.map_fragment import Access
from dfcompile.lowering.operators import CanonicalOperator, Copy, Elementwise, Nest, Reduce
from dfcompile.lowering.operators.loop_nest import LoopNest
from dfcompile.lowering.partial_results import PARTS, Reduced, split_reduction


@expansion(Copy, "map", source="dematteis23", default=True)
def copy(op: CanonicalNode[Copy], build: MapFragment) -> None:
    """``Y[write(i)] = X[read(i)]``: one element-wise task in the order of the loops."""
    add_scope(op, build, "a")


@expansion(Elementwise, "map", source="dematteis23", default=True)
def elementwise(op: CanonicalNode[Elementwise], build: MapFragment) -> None:
    """``Y[i, …] = expression(a[i, …], b[i, …], …)``: one element-wise task in row order."""
    add_scope(op, build, op.operator.expression)


@expansion(Reduce, "map", source="dematteis23", default=True)
def reduce_map(op: CanonicalNode[Reduce], build: MapFragment) -> None:
    """``Y[kept] = reduce over the others of expression(a[i, …], b[i, …], …)``: one downsampler.

    The kept dimensions are the outer loops, in row order; the reduced ones the inner loops.
    """
    add_scope(op, build, op.operator.expression, op.operator.reduction)


@parametric_expansion(Reduce, "split", source="brent74", parameter="parts", values=PARTS)
def reduce_split(op: CanonicalNode[Reduce], build: MapFragment, parts: int) -> None:
    """Each result from so many partial results at most: a task for each of these, then a tree of tasks."""
    nest, reads, write = _accesses(op)
    kept = {name: loop.extent for name, loop in nest.loops.items() if loop.kind is LoopKind.PARALLEL}
    reduced = {name: loop.extent for name, loop in nest.loops.items() if name not in kept}
    whole = Reduced(kept, reduced, reads, write, op.operator.expression, op.operator.reduction)
    split_reduction(build, whole, parts)


def add_scope(
    op: CanonicalNode[CanonicalOperator],
    build: MapFragment,
    code: str,
    accumulate: Reduction | None = None,
    order: Sequence[str] | None = None,
    variables: str = ascii_lowercase,
) -> None:
    """Add the scope of an operator's loops.

    Args:
        op: the operator.
        build: its fragment.
        code: of the variables.
        accumulate: how results are combined.
        order: of the loops; unless it is given, what is reduced changes fastest: each result is complete at once.
        variables: a letter per operand.
    """
    nest, reads, write = _accesses(op, variables)
    order = order or sorted(nest.loops, key=lambda name: nest.loops[name].kind is not LoopKind.PARALLEL)
    loops = {name: nest.loops[name].extent for name in order}
    build.map("", loops=loops, reads=reads, write=write, code=code, accumulate=accumulate)


def _accesses(
    op: CanonicalNode[CanonicalOperator], variables: str = ascii_lowercase
) -> tuple[LoopNest, Mapping[str, Access], Access]:
    """Return the loops of an operator, what it reads by variable, and what it writes: all at known places."""
    operands, result = op.operands(), op.output()
    nest = op.operator.loop_nest(operands, result)
    assert nest is not None
    assert not any(None in indices for indices in (*nest.reads, nest.write))
    places = cast("Sequence[Sequence[str]]", (*nest.reads, nest.write))
    reads = zip(variables, zip(operands, places[:-1], strict=True), strict=False)
    return nest, dict(reads), (result, places[-1])


@expansion(Nest, "map", source="dematteis23", default=True)
def nest(op: CanonicalNode[Nest], build: MapFragment) -> None:
    """``Y[write(i)] = expression(a[read_0(i)], …)``: one scope; before it a copy if elements stay."""
    operator, operands, y = op.operator, op.operands(), op.output()
    loops = operator.loops()
    names = list(loops)
    read = operands[:-1] if operator.has_base else operands
    reads = dict(zip(operand_names(len(read)), zip(read, operator.reads, strict=True), strict=True))
    if operator.has_base:
        every = {f"d{axis}": extent for axis, extent in enumerate(y.shape)}
        build.map("kept", loops=every, reads={"a": (operands[-1], list(every))}, write=(y, list(every)), code="a")
    build.map(
        "part" if operator.has_base else "",
        spatial={name: loops[name] for name in names[: operator.spatial]},
        loops={name: loops[name] for name in names[operator.spatial :]},
        reads=reads,
        write=(y, operator.write),
        code=operator.expression,
        accumulate=operator.reduction,
        after_write=operator.has_base,
    )


@onnx_expansion("dace.Map", "map", source="ben-nun19", default=True)
def dace_map(op: Operator, build: CanonicalFragment) -> None:
    """A map of a ``@dace.program`` with one tasklet: one task, or one per iteration of the user's map around it."""
    kind = op.text("reduction", "")
    reads = tuple(op.texts(indices, "reads") for indices in op.items("reads"))
    expression, extents, write = op.text("expression", ""), op.integers("extents"), op.texts(op.items("write"), "write")
    reduction, has_base = Reduction[kind] if kind else None, op.integer("has_base", 0) != 0
    found = Nest(expression, extents, reads, write, op.integer("spatial", 0), reduction, has_base)
    build.add(found, op.operands(), op.output())
