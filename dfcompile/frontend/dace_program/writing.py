"""Writing: what one operation does becomes an operator, or nothing where its result is an earlier value seen anew."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.dace_program.emission import Declared, Emission, Nest, Operation, Read
from dfcompile.frontend.dace_program.places import Affine, Container, Loop, Place, along, own_dimensions, substituted

COPY = "a"
NEUTRAL = {"SUM": 0, "PRODUCT": 1}


class Leaf(Struct, frozen=True):
    """An operation on single elements, with the loops around.

    Attributes:
        what: its name.
        loops: around it, outer to inner.
        reads: operands ``a``, ``b`` …, at least one.
        expression: of operands and loops.
        names: of loops in the expression.
        reduction: how values written to one element become one; empty: none.
    """

    what: Operation
    loops: tuple[Loop, ...]
    reads: tuple[Read, ...]
    expression: str = COPY
    names: frozenset[str] = frozenset()
    reduction: str = ""


def write(emission: Emission, leaf: Leaf, target: Container, indices: tuple[Affine, ...]) -> None:
    """Give a container the value that it has after an operation.

    Raises:
        UserError: several iterations write one element.
    """
    moving = {name for _, read in leaf.reads for index in read for name in index if name} | leaf.names
    moving |= {name for index in indices for name in index if name}
    extents = {loop.name: loop.extent for loop in leaf.loops}
    is_full = not leaf.reduction and _is_full(indices, target.shape, extents)
    if not is_full and target.value is not None:
        moving |= {name for index in target.value.indices for name in index if name in extents}
    loops = tuple(loop for loop in leaf.loops if loop.name in moving or leaf.reduction)
    around = tuple(loop for loop in target.loops if loop.name in moving)
    if not leaf.reduction:
        _check_injective(loops, around, indices)
    target.is_written = True
    if is_full and leaf.expression == COPY and emission.arrays[leaf.reads[0][0]].dtype == target.dtype:
        target.value = _seen_anew(leaf.reads[0], indices)
        return
    base = "" if is_full else _base(emission, leaf, target, around)
    nest = Nest(loops, leaf.reads, (*along(around), *indices), leaf.expression, leaf.reduction, base)
    declared = Declared((*(loop.extent for loop in around), *target.shape), target.dtype)
    array = emission.nest(leaf.what, nest, declared)
    target.value = Place(array, (*along(around), *own_dimensions(len(target.shape))))


def _base(emission: Emission, leaf: Leaf, target: Container, around: Sequence[Loop]) -> str:
    """Return the array with the elements that are not written; none where a reduction starts anew."""
    value = target.value
    if leaf.reduction and (value is None or _is_neutral(emission, value, leaf.reduction)):
        return ""
    if value is None:  # what is not written is not defined: 0 here
        zero = emission.constant(np.zeros((1,), target.dtype))
        value = Place(zero, ({},))
    return emission.materialised(leaf.what, value, around, target)


def _is_neutral(emission: Emission, value: Place, reduction: str) -> bool:
    constant = emission.constants.get(value.array)
    return constant is not None and reduction in NEUTRAL and bool(np.all(constant == NEUTRAL[reduction]))


def _is_full(indices: Sequence[Affine], shape: Sequence[int], extents: dict[str, int]) -> bool:
    """Whether all elements are written: each dimension by a loop of its own."""
    used: set[str] = set()
    for index, extent in zip(indices, shape, strict=True):
        loops = {name for name in index if name and extents.get(name, 1) > 1}
        if extent == 1 and not loops:
            continue
        if len(loops) != 1 or index.get("") or loops & used:
            return False
        (name,) = loops
        if index[name] != 1 or extents.get(name) != extent:
            return False
        used |= loops
    return True


def _check_injective(loops: Sequence[Loop], around: Sequence[Loop], indices: Sequence[Affine]) -> None:
    own = {loop.name for loop in around}
    for loop in loops:
        if loop.extent > 1 and loop.name not in own and not any(loop.name in index for index in indices):
            raise UserError("all iterations of a map write one element against one element each (or a reduction)")


def _seen_anew(read: Read, indices: Sequence[Affine]) -> Place:
    """Return where the elements of a container stand that is a copy: nothing is moved.

    Loops of the maps around the container stay as they are; each dimension takes the place of the loop that wrote it.
    """
    array, places = read
    values: dict[str, Affine] = {
        next(name for name in index if name): {f"d{axis}": 1}
        for axis, index in enumerate(indices)
        if any(name for name in index)
    }
    return Place(array, substituted(places, values))
