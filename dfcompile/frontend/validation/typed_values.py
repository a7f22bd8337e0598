"""Typed values: every value has an element type and a static shape, and the nodes agree with them."""

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping

import onnx

from dfcompile.errors import UnsupportedOpError, UserError, together
from dfcompile.frontend.normaliser import VIEWS
from dfcompile.frontend.normaliser.opset import opset_of
from dfcompile.frontend.onnx.draft import Draft
from dfcompile.frontend.onnx.element_type import onnx_type, schema_name, taken_names
from dfcompile.frontend.onnx.known_shapes import UnknownShapeError, broadcast_together, require, shape_text
from dfcompile.frontend.onnx.schemas import CONTRIBUTED, schema_of
from dfcompile.frontend.onnx.shapes import TensorType, Types, infer_consistent_types, infer_types
from dfcompile.frontend.validation.axis_shapes import AXIS_CHECKS, REDUCTIONS, check_axes
from dfcompile.frontend.validation.layer_shapes import LAYER_CHECKS, WINDOW_LEAST, WINDOWED
from dfcompile.frontend.validation.operands import Check, Operands, broadcasts_to, operands_of
from dfcompile.records import once

_MOST_ELEMENTS = 2**48  # of a value
_UNKNOWN = TensorType("", None)
# Of an image smaller than the window nothing is left, or one window that reads beyond it: implementations differ.
_WINDOWED = frozenset(["AveragePool", "Conv", "ConvInteger", "LpPool", "MaxPool", "QLinearConv"])


def check_operands(draft: Draft, declared: Iterable[onnx.ValueInfoProto] = ()) -> None:
    """Check that the operands of every node fit together, as far as their types are known.

    ONNX's inference passes over much of this, and where it does not, says less.

    Args:
        draft: as read, or later.
        declared: what the model says of inner values. Their element types have to be right; shapes there are what some
            tool inferred, which nothing relies on.

    Raises:
        UserError: operands of a node do not fit together; the first such node is named.
    """
    types = once(draft, _fitting_types)
    for value in declared:
        found = types.get(value.name)
        kind = value.type.tensor_type.elem_type
        if found is not None and found.dtype and kind not in (onnx.TensorProto.UNDEFINED, onnx_type(found.dtype)):
            name = onnx.TensorProto.DataType.Name(kind).lower()
            raise UserError(f"value {value.name!r}: declared as {name} against {found.dtype} that is computed")


def _fitting_types(draft: Draft) -> Types:
    types, opset = infer_types(draft), opset_of(draft.proto)
    for node in draft.proto.graph.node:
        _check_operand_types(node, types, opset)
        _check_operand_shapes(operands_of(node, types, draft.constants, opset))
        for name in filter(None, node.output):
            least = 1 if node.op_type in _WINDOWED and 0 not in (types[node.input[0]].shape or ()) else 0
            _check_sizes(f"node {node.name!r}: output {name!r}", types.get(name, _UNKNOWN), least)
    return types


def checked_types(draft: Draft) -> Types:
    """Return element type and static shape of every value of a normalised draft.

    Raises:
        UserError: operands of a node do not fit together, a shape depends on data, or an output is declared otherwise.
    """
    check_operands(draft)
    types = infer_consistent_types(draft)
    unknown = [*_unknown_shapes(draft, types)]
    if unknown:
        raise together(unknown)
    for node in draft.proto.graph.node:
        for name in filter(None, node.output):
            _check_sizes(f"node {node.name!r}: output {name!r}", types.get(name, _UNKNOWN), least=1)
        if node.op_type in VIEWS:
            before, after = (types[ends[0]].known_shape or () for ends in (node.input, node.output))
            found = f"{math.prod(before)} elements against {math.prod(after)} of the new shape {after}"
            require(math.prod(before) == math.prod(after), f"node {node.name!r}: {found}")
    for output in draft.proto.graph.output:
        if not output.type.tensor_type.HasField("shape"):
            continue
        inferred, dims = types[output.name].known_shape or (), output.type.tensor_type.shape.dim
        where = f"output {output.name!r}"
        if len(dims) != len(inferred):
            raise UserError(f"{where}: declared with {len(dims)} dimensions against {len(inferred)} that are computed")
        for position, (dim, size) in enumerate(zip(dims, inferred, strict=True)):
            if dim.dim_value > 0 and dim.dim_value != size:
                raise UserError(f"{where}: dimension {position} is declared as {dim.dim_value} against {size} computed")
    return types


def _check_operand_types(node: onnx.NodeProto, types: Types, opset: int) -> None:
    """Check the element types of a node's operands.

    Raises:
        UserError: an operand has a type that the operator does not take, or two that must agree do not.
    """
    formals = schema_of(node.op_type, opset).inputs
    first: dict[str, str] = {}  # operand that binds a type variable of the schema
    for position, name in enumerate(node.input):
        if not name or name not in types:
            continue
        formal, dtype = formals[min(position, len(formals) - 1)], types[name].dtype
        found = f"node {node.name!r}: input {name!r} is {dtype}"
        if schema_name(dtype) not in formal.types:
            taken = ", ".join(taken_names(formal.types))
            raise UserError(f"{found} against {taken} for {formal.name} of {node.op_type}")
        if formal.type_str.startswith("tensor(") or not formal.is_homogeneous:
            continue
        other = first.setdefault(formal.type_str, name)
        if types[other].dtype != dtype:
            wanted = f"{types[other].dtype} of {other!r}"
            raise UserError(f"{found} against {wanted} ({node.op_type} takes one element type; add a Cast)")


def _check_operand_shapes(operands: Operands) -> None:
    """Check the shapes of a node's operands, as far as they are known.

    Raises:
        UserError: two operands, or an operand and an attribute, do not fit together.
    """
    op_type = operands.node.op_type
    checks = [_check_vectors, _check_flags, check_axes, _check_contributed, *filter(None, [_CHECKS.get(op_type)])]
    try:
        if op_type in WINDOWED:
            operands.expect_numbers_at_least(WINDOW_LEAST)
        for check in checks:
            with contextlib.suppress(UnknownShapeError):
                check(operands)
    except UserError as error:
        raise UserError(f"node {operands.node.name!r}: {error}") from error


def _check_contributed(operands: Operands) -> None:
    operator = CONTRIBUTED.get(operands.node.op_type)
    if operator is not None:
        operator.results(operator.call_of(operands, operands.constants))


def _check_vectors(operands: Operands) -> None:
    """Operands that list sizes, axes and the like are vectors."""
    op_type = operands.node.op_type
    for position in _VECTORS.get(op_type, ()):
        shape = operands.shape(position)
        if shape is not None and len(shape) != 1 and not (shape == () and op_type in _ONE_AXIS):
            raise UserError(operands.against(position, "a vector"))


def _check_flags(operands: Operands) -> None:
    """Attributes that switch something are 0 or 1, or one of a few."""
    for name, value in operands.attributes.items():
        known = (0, 1, 2, 3) if name == _MODE else (0, 1) if name in _FLAGS else (value,)
        if value not in known:
            expected = ", ".join(map(str, known[:-1]))
            raise UserError(f"attribute {name!r} is {value} against {expected} or {known[-1]}")


def _check_elementwise(operands: Operands) -> None:
    known = operands.known_shapes()
    for at, (position, shape) in enumerate(known):
        for other, other_shape in known[:at]:
            if not broadcast_together(other_shape, shape):
                wanted = f"{shape_text(shape)} of {operands.label(position)} (they do not broadcast)"
                raise UserError(operands.against(other, wanted))


def _check_variadic(operands: Operands) -> None:
    """Before operator set 8 these broadcast nothing."""
    known = operands.known_shapes()
    for position, shape in known[1:] if operands.opset < _VARIADIC_BROADCAST else ():
        first, expected = known[0]
        why = f"(operator set {operands.opset} does not broadcast here)"
        wanted = f"{shape_text(expected)} of {operands.label(first)} {why}"
        require(shape == expected, operands.against(position, wanted))
    _check_elementwise(operands)


def _check_slope(operands: Operands) -> None:
    data, slope = operands.known(0), operands.known(1)
    wanted = f"{shape_text(data)} of {operands.label(0)} (it does not broadcast to that)"
    require(broadcasts_to(slope, data), operands.against(1, wanted))


def _check_bounds(operands: Operands) -> None:
    for position in (1, 2):
        operands.expect(position, ())


def _unknown_shapes(draft: Draft, types: Types) -> Iterator[UnsupportedOpError]:
    """Yield the nodes of whose operands all shapes are known, but not those of their results."""
    for node in draft.proto.graph.node:
        if any(types.get(name, _UNKNOWN).known_shape is None for name in filter(None, node.input)):
            continue  # another one is the cause
        unknown = (name for name in filter(None, node.output) if types.get(name, _UNKNOWN).known_shape is None)
        for name in list(unknown)[:1]:
            found = f"the shape of {name!r} depends on data against a static shape"
            hint = f"{node.op_type} of values that are no constants"
            yield UnsupportedOpError(f"node {node.name!r}: {found} ({hint})")


def _check_sizes(where: str, found: TensorType, least: int) -> None:
    for position, size in enumerate(found.shape or ()):
        if size is not None and size < least:
            raise UserError(f"{where}: dimension {position} is {size} against a size of at least {least}")
    elements = math.prod(found.known_shape or ())
    require(elements <= _MOST_ELEMENTS, f"{where}: {elements} elements against at most {_MOST_ELEMENTS}")


# PyTorch's exporter writes a single axis of these as a scalar, which ONNX's inference and onnxruntime take as well.
_ONE_AXIS = frozenset(["Squeeze", "Unsqueeze"])
_VECTORS: Mapping[str, tuple[int, ...]] = {
    "ConstantOfShape": (0,),
    "Pad": (1, 3),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    **dict.fromkeys(("Expand", "Reshape", "Split", "Squeeze", "Tile", "Unsqueeze", *REDUCTIONS), (1,)),
}
_VARIADIC_BROADCAST = 8  # the operator set from which they do
_MODE = "qk_matmul_output_mode"
_SWITCHES = """
    align_corners allowzero antialias ceil_mode count_include_pad detect_negative detect_positive exclude_outside
    exclusive fmod interleaved inverse is_causal keepdims largest noop_with_empty_axes onesided periodic reverse
    saturate select_last_index sorted spatial storage_order training_mode transA transB upper
"""
_FLAGS = frozenset(_SWITCHES.split())
_BROADCASTING = """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less LessOrEqual Mod Mul Or Pow
    Sub Where Xor
"""
_CHECKS: Mapping[str, Check] = {
    "Clip": _check_bounds,
    "PRelu": _check_slope,
    **dict.fromkeys(_BROADCASTING.split(), _check_elementwise),
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), _check_variadic),
    **AXIS_CHECKS,
    **LAYER_CHECKS,
}
