"""How a canonical operator stands in an SDFG: as an operator node whose attributes are its fields."""

import json
from collections.abc import Sequence
from functools import lru_cache

from dfcompile.errors import OperatorFieldError
from dfcompile.frontend import CANONICAL, OperatorNode
from dfcompile.lowering.operators.base import Canonical, CanonicalOperator


def operator_node(
    operator: CanonicalOperator, name: str, origin: str, inputs: Sequence[str], outputs: Sequence[str]
) -> OperatorNode:
    """Return the node of a canonical operator.

    Args:
        operator: such as ``MatMul(transpose_a=True)``.
        name: of the node; unique in the program.
        origin: the user's operator.
        inputs: connectors of the operands.
        outputs: connectors of the results.
    """
    return OperatorNode(
        name,
        dialect=CANONICAL,
        op_type=type(operator).__name__,
        origin=origin,
        attributes=operator.attributes(),
        inputs=inputs,
        outputs=outputs,
    )


def is_node_of(node: object, operator: type[CanonicalOperator]) -> bool:
    """Whether a node of an SDFG is one of a canonical operator."""
    return isinstance(node, OperatorNode) and (node.dialect, node.op_type) == (CANONICAL, operator.__name__)


def operator_of(node: OperatorNode, operator: type[Canonical]) -> Canonical:
    """Return the canonical operator of a node that is one of it.

    Raises:
        OperatorFieldError: an attribute is no field of it, is missing or has a value that it must not have; the
            message names node and attribute.
    """
    try:
        # mypy takes the hash of instances for that of the class.
        found = _of_text(operator, node.attributes_json)  # type: ignore[arg-type]
    except OperatorFieldError as error:
        raise OperatorFieldError(f"node {node.name!r}: {error}") from error
    assert isinstance(found, operator)
    return found


@lru_cache(maxsize=4096)  # a model has few canonical operators that differ from one another
def _of_text(operator: type[CanonicalOperator], text: str) -> CanonicalOperator:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise OperatorFieldError(f"{operator.__name__}: attributes {text!r} against JSON: {error}") from error
    if not isinstance(found, dict):
        raise OperatorFieldError(f"{operator.__name__}: attributes {text!r} against an object of JSON")
    return operator.of_attributes(found)
