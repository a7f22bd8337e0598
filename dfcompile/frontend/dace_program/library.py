"""Library calls: NumPy's products, reductions and linear algebra as DaCe's library nodes have them."""

from collections.abc import Callable, Mapping, Sequence

import dace
from dace.sdfg.nodes import CodeNode
from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.affine import Affine
from dfcompile.frontend.dace_program.emission import Declared, Emission, Nest
from dfcompile.frontend.dace_program.places import Container, Loop, Place, along, own_dimensions
from dfcompile.frontend.sdfg.identifiers import AttributeValue


class Operand(Struct, frozen=True):
    """What a call is given: where the elements of the window stand, and its shape."""

    place: Place
    shape: tuple[int, ...]
    dtype: str

    @property
    def loops(self) -> frozenset[str]:
        """Names of the loops that it depends on."""
        names = {name for index in self.place.indices for name in index if name}
        return frozenset(names - {f"d{axis}" for axis in range(len(self.shape))})


class Call(Struct, frozen=True):
    """A call of a library within the maps around it.

    Attributes:
        node: of the call.
        what: its name.
        operands: by connector.
        result: shape and element type of the result.
        loops: around it.
    """

    node: CodeNode
    what: str
    operands: Mapping[str, Operand]
    result: Declared
    loops: tuple[Loop, ...]


def library_call(emission: Emission, call: Call) -> Place:
    """Emit a call, and return where its result stands: indices of the loops around and of its own dimensions.

    Raises:
        UserError: the library has no such function here, or not with these options.
    """
    name = type(call.node).__name__
    if name not in _CALLS:
        raise UserError(f"{name} of DaCe's libraries against {', '.join(sorted(_CALLS))}")
    return _CALLS[name](emission, call)


def _product(emission: Emission, call: Call) -> Place:
    node = call.node
    if (node.alpha, node.beta, node.transA, node.transB) != (1, 0, False, False):
        raise UserError("a product with alpha, beta or transposition against a @ b")
    a, b = call.operands["_a"], call.operands["_b"]
    leading = [max(len(operand.shape) - 2, 0) for operand in (a, b)]
    if leading[0] != leading[1] and (a.loops or b.loops):
        raise UserError("a product of a batch and a matrix within a map against two batches or two matrices")
    ranks = [min(len(operand.shape), 2) for operand in (a, b)]
    return _batched(emission, call, "linalg.matmul", [a, b], {"ranks": ranks})


def _chosen(emission: Emission, call: Call) -> Place:
    """``np.where``: an expression of three operands, broadcast to the result's shape."""
    operands = [call.operands[name] for name in ("_mrg_mask", "_mrg_t", "_mrg_f")]
    used = frozenset[str]().union(*(operand.loops for operand in operands))
    around = tuple(loop for loop in call.loops if loop.name in used)
    own = tuple(Loop(f"own{axis}", extent) for axis, extent in enumerate(call.result.shape))
    reads = []
    for operand in operands:
        pairs = zip(own[len(own) - len(operand.shape) :], operand.shape, strict=True)
        at = [{loop.name: 1} if extent > 1 else {} for loop, extent in pairs]
        reads.append(operand.place.at(at))
    every = (*around, *own)
    declared = Declared(tuple(loop.extent for loop in every), call.result.dtype)
    array = emission.nest(call.what, Nest(every, tuple(reads), along(every), "b if a else c"), declared)
    return Place(array, (*along(around), *own_dimensions(len(own))))


def _solution(emission: Emission, call: Call) -> Place:
    a, b = _square(call.operands["_ain"]), call.operands["_bin"]
    if len(b.shape) > 1 and a.shape[:-1] != b.shape[:-1]:
        raise UserError(f"systems {list(a.shape)} with right-hand sides {list(b.shape)} against as many of both")
    return _batched(emission, call, "linalg.solve", [a, b], {"vector": int(len(b.shape) == 1)})


def _factor(emission: Emission, call: Call) -> Place:
    if not call.node.lower:
        raise UserError("an upper factor of Cholesky against the lower one")
    (operand,) = call.operands.values()
    return _batched(emission, call, "linalg.cholesky", [_square(operand)], {})


def _square(operand: Operand) -> Operand:
    if len(operand.shape) < 2 or operand.shape[-1] != operand.shape[-2]:
        found = list(operand.shape)
        raise UserError(f"an operand of shape {found} against square matrices (DaCe drops dimensions of extent 1)")
    return operand


def _transposed(emission: Emission, call: Call) -> Place:  # noqa: ARG001  # as the others
    """Return the same elements seen with rows for columns: nothing is moved until somebody needs them in order."""
    (operand,) = call.operands.values()
    return operand.place.at(own_dimensions(len(operand.shape))[::-1])


def _reduced(emission: Emission, call: Call) -> Place:
    (operand,) = call.operands.values()
    rank, axes = len(operand.shape), call.node.axes
    axes = range(rank) if axes is None else [axis % rank for axis in axes]
    kind = reduction_of(call.node.wcr)
    around = tuple(loop for loop in call.loops if loop.name in operand.loops)
    own = [Loop(f"reduced{axis}", extent) for axis, extent in enumerate(operand.shape)]
    kept = tuple(loop for axis, loop in enumerate(own) if axis not in axes)
    order = (*kept, *(own[axis] for axis in axes))
    read = operand.place.at(along(own))
    lead = along(around)
    # The result may have dimensions of extent 1 where there was a reduced one.
    shape = tuple(loop.extent for loop in kept) or (1,)
    nest = Nest((*around, *order), (read,), (*lead, *(along(kept) or ({},))), reduction=kind)
    array = emission.nest(call.what, nest, Declared((*(loop.extent for loop in around), *shape), call.result.dtype))
    wide = [axis for axis, extent in enumerate(call.result.shape) if extent > 1]
    places = [axis for axis, extent in enumerate(shape) if extent > 1]
    by_axis: dict[int, Affine] = {place: {f"d{axis}": 1} for place, axis in zip(places, wide, strict=True)}
    return Place(array, (*lead, *(by_axis.get(axis, {}) for axis in range(len(shape)))))


def reduction_of(wcr: object) -> str:
    """Return how DaCe makes several values one: SUM, PRODUCT, MAX or MIN; empty if it does not.

    Raises:
        UserError: in another way.
    """
    kind = "" if wcr is None else dace.frontend.operations.detect_reduction_type(wcr).name.upper()
    if kind not in ("", "SUM", "PRODUCT", "MAX", "MIN"):
        raise UserError(f"reduction {wcr} against a sum, a product, the largest or the smallest")
    return kind


def _batched(
    emission: Emission, call: Call, op_type: str, operands: Sequence[Operand], attributes: Mapping[str, AttributeValue]
) -> Place:
    """Emit an operator over all iterations of the loops that its operands depend on: they become leading dimensions."""
    names = frozenset[str]().union(*(operand.loops for operand in operands))
    loops = tuple(loop for loop in call.loops if loop.name in names)
    inputs = []
    for operand in operands:
        own = loops if operand.loops else ()
        like = Container("operand", operand.shape, operand.dtype)
        inputs.append(emission.materialised(call.what, operand.place, own, like))
    declared = Declared((*(loop.extent for loop in loops), *call.result.shape), call.result.dtype)
    array = emission.operator(call.what, op_type, inputs, declared, attributes)
    return Place(array, (*along(loops), *own_dimensions(len(call.result.shape))))


_CALLS: Mapping[str, Callable[[Emission, Call], Place]] = {
    "Cholesky": _factor,
    "Inv": lambda emission, call: _batched(emission, call, "linalg.inv", [_square(call.operands["_ain"])], {}),
    "MatMul": _product,
    "MergeLibraryNode": _chosen,
    "Reduce": _reduced,
    "Solve": _solution,
    "Transpose": _transposed,
}
