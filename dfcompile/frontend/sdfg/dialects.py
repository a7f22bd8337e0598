"""The two dialects of operators, and how operands and attributes stand on a node."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

AttributeValue: TypeAlias = "int | float | str | Sequence[AttributeValue]"

ONNX = "onnx"
CANONICAL = "canonical"


def input_connector(position: int) -> str:
    """Return the connector of an operand by position; an omitted optional operand has no connector."""
    return f"in_{position}"


def output_connector(position: int) -> str:
    """Return the connector of a result by position; an omitted optional result has no connector."""
    return f"out_{position}"


def attributes_text(attributes: Mapping[str, AttributeValue]) -> str:
    """Return attributes as the JSON object that a node keeps."""
    return json.dumps(dict(attributes), sort_keys=True)
