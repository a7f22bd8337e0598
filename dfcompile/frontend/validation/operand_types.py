"""Operand types: the element types of a node's operands are allowed and agree, as the operator's schema says."""

import onnx

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.element_type import schema_name, taken_names
from dfcompile.frontend.onnx.schemas import schema_of
from dfcompile.frontend.onnx.shapes import Types


def check_operand_types(node: onnx.NodeProto, types: Types, opset: int) -> None:
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
