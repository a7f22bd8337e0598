"""Source of expressions as trees of Python's syntax; what is nested too deeply for Python is refused."""

import ast
from functools import lru_cache

from dfcompile.errors import UserError

MOST_LEVELS = 150  # Python's own parser takes 200 parentheses, and the recursion of whatever walks a tree is bounded
SHOWN = 60  # characters
_LONGEST_JOINED = 2000  # characters
_DEEPEST_JOINED = 60  # levels: two of them, and what storing adds, stay below what can be read


@lru_cache(maxsize=4096)  # a model has few expressions, and most of its operators have one of them
def expression_tree(source: str) -> ast.expr:
    """Return the tree of an expression; it is shared, and must not be changed.

    Raises:
        UserError: it is none, or is nested too deeply.
    """
    shown = source if len(source) <= SHOWN else f"{source[:SHOWN]}…"
    try:
        tree = ast.parse(source, mode="eval").body
        levels = depth(tree)
    except (SyntaxError, ValueError) as error:
        reason = str(error).partition(" (")[0]
        raise UserError(f"expression {shown!r}: found {reason} against an expression of Python") from error
    except (RecursionError, MemoryError) as error:  # which of the two depends on what is nested
        raise UserError(f"expression {shown!r}: nested too deeply against at most {MOST_LEVELS} levels") from error
    if levels > MOST_LEVELS:
        raise UserError(f"expression {shown!r}: found {levels} levels against at most {MOST_LEVELS}")
    return tree


def depth(tree: ast.AST) -> int:
    """Return how many levels of operations a tree has.

    >>> depth(ast.parse("max(0, -a)", mode="eval").body)
    3
    """
    levels, nodes = 0, [tree]
    while nodes:
        levels += 1
        nodes = [child for node in nodes for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    return levels


def is_readable(expression: str) -> bool:
    """Return whether an expression that passes joined is still short and flat enough to be joined again."""
    return len(expression) <= _LONGEST_JOINED and depth(expression_tree(expression)) <= _DEEPEST_JOINED
