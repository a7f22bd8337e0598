"""Canonical operators that are one scope of the loops that they have themselves: Copy, Elementwise, Nest, Reduce.

A reduction may be split into parts: each becomes a partial result of its own, and a tree of tasks combines these.
``n`` elements in ``m`` parts, combined ``f`` at a time, take ``n / m + log_f(m)`` cycles on enough processing elements
instead of ``n`` [brent74].
"""

from collections.abc import Mapping, Sequence
from math import prod
from string import ascii_lowercase
from typing import Final, cast

from msgspec import Struct

from dfcompile.canonical_dag import LoopKind
from dfcompile.lowering import CanonicalFragment, CanonicalNode, Operator
from dfcompile.lowering.expansion import expansion, onnx_expansion, parametric_expansion
from dfcompile.lowering.expressions import Reduction, linear_index, operand_names, substitute, sum_dtype
from dfcompile.lowering.map_fragment import Access, Loops, MapFragment, Reads
from dfcompile.lowering.operators import CanonicalOperator, Copy, Elementwise, Nest, Reduce
from dfcompile.lowering.operators.loop_nest import LoopNest
from dfcompile.lowering.tensor import Tensor, free_name

PARTS: Final = tuple(2**exponent for exponent in range(1, 13))  # of one reduction, that expansions offer
_FAN_IN = 4  # partial results that a task combines in one cycle, each from an input of its own
_LEAST_LENGTH = 2  # elements of a part


class Reduced(Struct, frozen=True, eq=False):
    """``write reduction= code(reads)``: one result per iteration of the loops that are kept.

    Attributes:
        kept: loops and their extents, outer to inner; each iteration has a result of its own.
        reduced: loops and their extents, outer to inner; their iterations are combined.
        reads: variable of the code -> element.
        write: the result, which only the kept loops index.
        code: expression of the variables.
        reduction: how its values are combined.
    """

    kept: Loops
    reduced: Loops
    reads: Reads
    write: Access
    code: str
    reduction: Reduction


class _Parts(Struct, frozen=True):
    """How the loop ``name`` is divided: loops outside of it are parts entirely, those inside of it belong to a part.

    Attributes:
        outer: loops of which every iteration is a part.
        name: of the loop that is divided.
        count: whole parts of it.
        length: iterations of each.
        rest: iterations of the last part, which is shorter; 0 if there is none, as where the outer loops are parts.
        inner: loops of each part.
    """

    outer: Loops
    name: str
    count: int
    length: int
    rest: int
    inner: Loops


def split_reduction(build: MapFragment, whole: Reduced, parts: int) -> None:
    """Build a reduction in at most so many parts per result; of too few elements each result is a task.

    Each partial result is a task, and so is each result of every level of the tree. Neighbours are combined, so the
    order of the elements stays.

    Args:
        build: of the operator.
        whole: the reduction.
        parts: per result, at most; each has two elements at least.
    """
    found = _parts_of(whole.reduced, parts)
    if found is None:
        _add(build, whole, "", whole.kept, whole.reduced, whole.reads, whole.write)
    else:
        _combine(build, whole, *_partial_results(build, whole, found))


def _add(build: MapFragment, whole: Reduced, step: str, spatial: Loops, loops: Loops, reads: Reads, to: Access) -> None:
    code, total = whole.code, whole.reduction
    build.map(step, spatial=spatial, loops=loops, reads=reads, write=to, code=code, accumulate=total)


def _parts_of(reduced: Loops, parts: int) -> _Parts | None:
    """Divide the outermost loops first; one inside of others evenly, so that all parts are alike."""
    outer: dict[str, int] = {}
    left = parts
    names = list(reduced)
    for place, (name, extent) in enumerate(reduced.items()):
        inner = {other: reduced[other] for other in names[place + 1 :]}
        is_last = all(other == 1 for other in inner.values())
        if extent <= left and not is_last:
            outer[name] = extent
            left //= extent
            continue
        count = min(left, extent // _LEAST_LENGTH if is_last else extent)
        if left < parts:
            count = max((each for each in range(1, count + 1) if extent % each == 0), default=1)
        elif count < 2:
            return None
        length = -(-extent // count)
        return _Parts(outer, name, extent // length, length, extent % length, inner)
    return None


def _partial_results(build: MapFragment, whole: Reduced, parts: _Parts) -> tuple[Tensor, tuple[Access, ...]]:
    """Add the tasks of all parts; return their results, one after another in the last dimension, and that of a rest."""
    dtype = sum_dtype(whole.write[0].dtype)
    kept, part = list(whole.kept), _part_loop(whole)
    loops = {**parts.outer, part: parts.count}
    partial = build.array("partial", (*whole.kept.values(), prod(loops.values())), dtype)
    place = linear_index(tuple(loops), tuple(loops.values()))
    inner, reads = {parts.name: parts.length, **parts.inner}, _moved(whole, parts, f"{parts.length}*{part}")
    _add(build, whole, "parts", {**whole.kept, **loops}, inner, reads, (partial, (*kept, place)))
    if not parts.rest:
        return partial, ()
    rest = build.array("rest", (*whole.kept.values(), 1), dtype)
    inner = {**parts.outer, parts.name: parts.rest, **parts.inner}
    reads = _moved(whole, parts, f"{parts.length * parts.count}")
    _add(build, whole, "rest", whole.kept, inner, reads, (rest, (*kept, "0")))
    return partial, _elements(rest, kept, range(1))


def _combine(build: MapFragment, whole: Reduced, level: Tensor, left_over: tuple[Access, ...]) -> None:
    """Combine neighbours level by level; what no task of a level takes waits for the last one."""
    kept, part = list(whole.kept), _part_loop(whole)
    number = 0
    while level.shape[-1] > _FAN_IN:
        number += 1
        count = level.shape[-1] // _FAN_IN
        combined = build.array(f"combined{number}", (*whole.kept.values(), count), level.dtype)
        names = _variables(_FAN_IN)
        reads = {name: (level, (*kept, f"{_FAN_IN}*{part} + {place}")) for place, name in enumerate(names)}
        spatial, write, code = {**whole.kept, part: count}, (combined, (*kept, part)), whole.reduction.combined(names)
        build.map(f"combine{number}", spatial=spatial, loops={}, reads=reads, write=write, code=code)
        left_over = (*_elements(level, kept, range(_FAN_IN * count, level.shape[-1])), *left_over)
        level = combined
    left = (*_elements(level, kept, range(level.shape[-1])), *left_over)
    names = _variables(len(left))
    of_left, code = dict(zip(names, left, strict=True)), whole.reduction.combined(names)
    build.map("combine", spatial=whole.kept, loops={}, reads=of_left, write=whole.write, code=code)


def _variables(count: int) -> tuple[str, ...]:
    """Return names of variables that no loop of an operator has."""
    return tuple(f"partial{number}" for number in range(count))


def _elements(level: Tensor, kept: Sequence[str], places: Sequence[int]) -> tuple[Access, ...]:
    return tuple((level, (*kept, str(place))) for place in places)


def _moved(whole: Reduced, parts: _Parts, start: str) -> Reads:
    """Return the reads with the divided loop from a place on."""
    moved = {parts.name: f"{start} + {parts.name}"}
    reads = whole.reads.items()
    return {name: (tensor, [substitute(each, moved) for each in indices]) for name, (tensor, indices) in reads}


def _part_loop(whole: Reduced) -> str:
    """Return a name for the loop over parts that nothing else has."""
    return free_name("part", whole.kept, whole.reduced, whole.reads)


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
