"""Schemas: what ONNX's tools know of an operator, of ONNX itself or a contributed one."""

from collections.abc import Mapping
from functools import cache

import onnx
from onnx.defs import OpSchema

from dfcompile.frontend.onnx.contributed.attentions import ATTENTIONS
from dfcompile.frontend.onnx.contributed.layers import LAYERS
from dfcompile.frontend.onnx.contributed.quantised import QUANTISED
from dfcompile.frontend.onnx.contributed_operator import DOMAIN, ContributedOperator
from dfcompile.frontend.onnx.element_type import schema_name

# The contributed operators that can be compiled, by the name that drafts have for them.
CONTRIBUTED: Mapping[str, ContributedOperator] = {each.op_type: each for each in (*LAYERS, *ATTENTIONS, *QUANTISED)}


def schema_of(op_type: str, opset: int) -> OpSchema:
    """Return the schema of an operator as drafts call it.

    Args:
        op_type: such as ``Gelu``, or ``com.microsoft.Gelu``.
        opset: version of ONNX's own operators.

    Raises:
        onnx.defs.SchemaError: there is no such operator in that version.
    """
    if op_type in CONTRIBUTED:
        register_contributed()
        return onnx.defs.get_schema(op_type, 1, DOMAIN)
    return onnx.defs.get_schema(op_type, opset, "")


def fits_schema(node: onnx.NodeProto, opset: int) -> bool:
    """Whether a node of ONNX's own operators has as many operands and results as its operator takes and gives.

    Args:
        node: any.
        opset: version of the operators; of one that they do not have the answer is no.
    """
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, "")
    except onnx.defs.SchemaError:
        return False
    return (
        schema.min_input <= len(node.input) <= schema.max_input
        and schema.min_output <= len(node.output) <= schema.max_output
    )


@cache  # ONNX has one table of schemas for the process, which refuses a second entry of a name
def register_contributed() -> None:
    """Tell ONNX's checker and shape inference of the contributed operators, under the names that drafts have."""
    for operator in CONTRIBUTED.values():
        onnx.defs.register_schema(operator.schema(schema_name))
