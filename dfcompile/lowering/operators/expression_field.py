"""Fields that hold an expression: Python source of what one iteration computes from elements of the operands."""

import ast
from functools import lru_cache

from dfcompile.errors import UserError
from dfcompile.lowering.expression_tree import expression_tree
from dfcompile.lowering.expressions import operand_names
from dfcompile.lowering.operators.base import CanonicalOperator


def check_expression(operator: CanonicalOperator, expression: str, operands_count: int) -> None:
    """Check that an expression can be parsed and names no operand that is not there.

    Raises:
        OperatorFieldError: it cannot, or does.
    """
    names = _one_letter_names(expression)
    if names is None:
        raise operator.fault(f"field 'expression' is {expression!r} against an expression of Python")
    known = operand_names(operands_count)
    if not names <= set(known):
        found = min(names - set(known))
        raise operator.fault(f"field 'expression' is {expression!r} with {found!r} against operands {', '.join(known)}")


@lru_cache(maxsize=4096)
def _one_letter_names(expression: str) -> frozenset[str] | None:
    """Return the names that stand for operands; names of functions and constants are longer."""
    try:
        tree = expression_tree(expression)
    except UserError:
        return None
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and len(node.id) == 1)
