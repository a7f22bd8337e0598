"""Operand counts: whether a node has as many operands and results as its operator."""

import onnx


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
