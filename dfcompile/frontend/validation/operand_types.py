"""Operand types: the element types of a node's operands are allowed and agree, as the operator's schema says."""

from collections.abc import Mapping

import onnx
from onnx.defs import OpSchema

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.element_type import schema_name, taken_names
from dfcompile.frontend.onnx.schemas import schema_of
from dfcompile.frontend.onnx.shapes import TensorType


def check_operand_types(node: onnx.NodeProto, types: Mapping[str, TensorType], opset: int) -> None:
    """Check the element types of a node's operands.

    Raises:
        UserError: an operand has a type that the operator does not take, or two that must agree do not.
    """
    schema = schema_of(node.op_type, opset)
    first: dict[str, str] = {}  # operand that binds a type variable of the schema
    for position, name in enumerate(node.input):
        if not name or name not in types:
            continue
        formal = _formal(schema, position)
        found = types[name].dtype
        if schema_name(found) not in formal.types:
            taken = ", ".join(taken_names(formal.types))
            raise UserError(
                f"node {node.name!r}: input {name!r} is {found} against {taken} for {formal.name} of {node.op_type}"
            )
        if formal.type_str.startswith("tensor(") or not formal.is_homogeneous:
            continue
        other = first.setdefault(formal.type_str, name)
        if types[other].dtype != found:
            raise UserError(
                f"node {node.name!r}: input {name!r} is {found} against {types[other].dtype} of {other!r} "
                f"({node.op_type} takes one element type; add a Cast)"
            )


def _formal(schema: OpSchema, position: int) -> OpSchema.FormalParameter:
    return schema.inputs[min(position, len(schema.inputs) - 1)]
