"""A reduction split into parts: each part becomes a partial result of its own, and a tree of tasks combines these.

``n`` elements in ``m`` parts, combined ``f`` at a time, take ``n / m + log_f(m)`` cycles on enough processing elements
instead of ``n`` [brent74].
"""

from collections.abc import Sequence
from math import prod
from typing import Final

from msgspec import Struct

from dfcompile.lowering.expressions import Reduction, linear_index, substitute, sum_dtype
from dfcompile.lowering.map_fragment import Access, Loops, MapFragment, Reads
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
