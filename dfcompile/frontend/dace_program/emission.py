"""Emission: operators of level 0 are collected, each with a name that has the line of the user's file.

What one operation does becomes an operator, or nothing where its result is an earlier value seen anew.
"""

import ast
from collections.abc import Collection, Mapping, Sequence
from string import ascii_lowercase

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.affine import Affine, affine_text
from dfcompile.frontend.dace_program.expressions import of_one_type, with_names
from dfcompile.frontend.dace_program.places import Container, Loop, Place, along, own_dimensions
from dfcompile.frontend.sdfg.identifiers import AttributeValue, safe_identifier
from dfcompile.frontend.sdfg.operator_graph import Operator
from dfcompile.records import replace

MAP = "dace.Map"
COPY = "a"
NEUTRAL = {"SUM": 0, "PRODUCT": 1}


class Declared(Struct, frozen=True):
    """An array of level 0."""

    shape: tuple[int, ...]
    dtype: str


class Nest(Struct, frozen=True):
    """Loops around one expression.

    Attributes:
        loops: outer to inner.
        reads: one per operand ``a``, ``b`` … of the expression.
        write: index of the result's dimensions, of loops; empty as long as it is not known where that stands.
        expression: of operands and of loops by their names.
        names: of loops in the expression.
        reduction: ``SUM`` and the like, how values that are written to one element become one; empty: none.
        base: array of the result's shape, whose elements are kept where none is written.
    """

    loops: tuple[Loop, ...]
    reads: tuple[Place, ...]
    write: tuple[Affine, ...] = ()
    expression: str = COPY
    names: frozenset[str] = frozenset()
    reduction: str = ""
    base: str = ""


class Emission:
    """The steps and arrays so far; the one mutable class of this room beside the walk."""

    def __init__(self, reserved: Sequence[str]) -> None:
        self.arrays: dict[str, Declared] = {}
        self.constants: dict[str, npt.NDArray[np.generic]] = {}
        self.steps: list[Operator] = []
        self._names = set(reserved)

    def constant(self, value: npt.NDArray[np.generic]) -> str:
        """Add a constant and return its array; equal ones are one."""
        for name, known in self.constants.items():
            if known.dtype == value.dtype and known.shape == value.shape and known.tobytes() == value.tobytes():
                return name
        name = self._free("constant")
        self.arrays[name] = Declared(value.shape, value.dtype.name)
        self.constants[name] = value
        return name

    def operator(
        self, what: str, op_type: str, inputs: Sequence[str], result: Declared, attributes: Mapping[str, AttributeValue]
    ) -> str:
        """Add an operator and return the array that it writes."""
        name = self._free(safe_identifier(what))
        array = self._free(f"{name}_result")
        self.arrays[array] = result
        self.steps.append(Operator(name, op_type, name, tuple(inputs), (array,), attributes))
        return array

    def nest(self, what: str, nest: Nest, result: Declared) -> str:
        """Add loops around an expression and return the array that they write."""
        names = {loop.name: f"i{number}" for number, loop in enumerate(nest.loops)}
        inner = [loop for loop in nest.loops if not loop.is_task and loop.extent > 1]
        named = zip(ascii_lowercase, nest.reads, strict=False)
        dtypes = {letter: self.arrays[read.array].dtype for letter, read in named}
        expression = ast.parse(of_one_type(nest.expression, dtypes), mode="eval").body
        attributes: dict[str, AttributeValue] = {
            "expression": with_names(expression, names),
            "extents": [loop.extent for loop in nest.loops],
            "spatial": sum(loop.is_task for loop in nest.loops) if inner else 0,
            "reads": [[affine_text(index, names) for index in read.indices] for read in nest.reads],
            "write": [affine_text(index, names) for index in nest.write],
        }
        if nest.reduction:
            attributes["reduction"] = nest.reduction
        if nest.base:
            attributes["has_base"] = 1
        operands = [read.array for read in nest.reads]
        return self.operator(what, MAP, [*operands, nest.base] if nest.base else operands, result, attributes)

    def materialised(self, what: str, place: Place, loops: Sequence[Loop], like: Container) -> str:
        """Return an array that has a value as it is, one per iteration of some loops; a copy unless there is one."""
        own = [Loop(f"{like.name}.d{axis}", extent) for axis, extent in enumerate(like.shape)]
        declared = Declared((*(loop.extent for loop in loops), *like.shape), like.dtype)
        wanted = (*along(loops), *own_dimensions(len(like.shape)))
        if self.arrays[place.array] == declared and _is_as(place.indices, wanted, declared.shape):
            return place.array
        every = (*loops, *own)
        return self.nest(what, Nest(every, (place.at(along(own)),), along(every)), declared)

    def owned(self, what: str, container: Container, taken: Collection[str]) -> str:
        """Return the array that has the last value of a container and is nobody else's: an output of the program."""
        assert container.value is not None
        array = self.materialised(what, container.value, (), container)
        if array in taken or array not in {result for step in self.steps for result in step.results}:
            own = tuple(Loop(f"d{axis}", extent) for axis, extent in enumerate(container.shape))
            return self.nest(what, Nest(own, (Place(array, along(own)),), along(own)), self.arrays[array])
        return array

    def _free(self, name: str) -> str:
        found, number = name, 1
        while found in self._names:
            number += 1
            found = f"{name}_{number}"
        self._names.add(found)
        return found


def _is_as(indices: Sequence[Affine], wanted: Sequence[Affine], shape: Sequence[int]) -> bool:
    """Whether indices are those wanted; along a dimension of extent 1 there is one index alone."""
    pairs = zip(indices, wanted, shape, strict=True)
    return all(extent == 1 or dict(index) == dict(other) for index, other, extent in pairs)


def write(emission: Emission, what: str, leaf: Nest, target: Container, indices: tuple[Affine, ...]) -> None:
    """Give a container the value that it has after an operation.

    Args:
        emission: so far.
        what: name of the operation.
        leaf: the operation on single elements, with the loops around; it reads at least one.
        target: that it writes to.
        indices: of the container, of loops.

    Raises:
        UserError: several iterations write one element.
    """
    moving = {name for read in leaf.reads for index in read.indices for name in index if name} | leaf.names
    moving |= {name for index in indices for name in index if name}
    extents = {loop.name: loop.extent for loop in leaf.loops}
    is_full = not leaf.reduction and _is_full(indices, target.shape, extents)
    if not is_full and target.value is not None:
        moving |= {name for index in target.value.indices for name in index if name in extents}
    loops = tuple(loop for loop in leaf.loops if loop.name in moving or leaf.reduction)
    around = tuple(loop for loop in target.loops if loop.name in moving)
    own = {loop.name for loop in around}.union(*indices)
    if not leaf.reduction and any(loop.extent > 1 and loop.name not in own for loop in loops):
        raise UserError("all iterations of a map write one element against one element each (or a reduction)")
    target.is_written = True
    if is_full and leaf.expression == COPY and emission.arrays[leaf.reads[0].array].dtype == target.dtype:
        # Nothing is moved. Loops of the maps around the container stay as they are; each of its dimensions takes the
        # place of the loop that wrote it.
        wrote = {next(filter(None, index)): {f"d{axis}": 1} for axis, index in enumerate(indices) if any(index)}
        target.value = leaf.reads[0].substituted(wrote)
        return
    base = "" if is_full else _base(emission, what, leaf, target, around)
    nest = replace(leaf, loops=loops, write=(*along(around), *indices), base=base)
    array = emission.nest(what, nest, Declared((*(loop.extent for loop in around), *target.shape), target.dtype))
    target.value = Place(array, (*along(around), *own_dimensions(len(target.shape))))


def _base(emission: Emission, what: str, leaf: Nest, target: Container, around: Sequence[Loop]) -> str:
    """Return the array with the elements that are not written; none where a reduction starts anew."""
    value = target.value
    if leaf.reduction and (value is None or _is_neutral(emission, value, leaf.reduction)):
        return ""
    if value is None:  # what is not written is not defined: 0 here
        value = Place(emission.constant(np.zeros((1,), target.dtype)), ({},))
    return emission.materialised(what, value, around, target)


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
