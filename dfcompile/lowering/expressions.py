"""Expressions: Python source of what one iteration of a canonical operator computes, and how several values become one.

The operands are ``a``, ``b``, ``c`` … Arithmetic is that of C++: ``/`` of integers truncates, ``%`` has the sign of the
dividend (``py_mod`` that of the divisor). Functions are those of C++'s cmath, ``max`` and ``min`` of any number of
arguments, and casts such as ``dace.float32(a)``; ``inf`` and ``nan`` are constants. ``max(0, a)`` is
NaN for a NaN ``a``, ``max(a, 0)`` is 0.

Indices of arrays are expressions as well: affine functions of loops.
"""

import ast
from collections.abc import Mapping, Sequence
from copy import copy
from enum import Enum, unique
from functools import lru_cache
from math import prod
from string import ascii_lowercase
from typing import assert_never

import numpy as np

from dfcompile.errors import UserError
from dfcompile.frontend import NARROW_REALS, element_kind, integer_limits, is_number
from dfcompile.frontend.affine import Affine
from dfcompile.lowering.tensor import Tensor

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


@lru_cache(maxsize=4096)
def affine(index: str) -> Affine:
    """Return the factor of each loop in an index expression and, under the empty name, its constant.

    Raises:
        UserError: it is not affine, so that no canonical DAG could be extracted either.

    >>> dict(affine("35*c + 7*(y - 1) + x"))
    {'c': 35, 'y': 7, '': -7, 'x': 1}
    """
    return _affine(expression_tree(index), index)


def _affine(node: ast.expr, index: str) -> dict[str, int]:
    match node:
        case ast.Constant(value=int(value)):
            return {"": value}
        case ast.Name(id=name):
            return {name: 1}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {name: -factor for name, factor in _affine(operand, index).items()}
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as operation, right=right):
            sign = 1 if isinstance(operation, ast.Add) else -1
            total = _affine(left, index)
            for name, factor in _affine(right, index).items():
                total[name] = total.get(name, 0) + sign * factor
            return total
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            one, other = sorted((_affine(left, index), _affine(right, index)), key=lambda terms: set(terms) != {""})
            if set(one) == {""}:
                return {name: one[""] * factor for name, factor in other.items()}
    raise UserError(f"index {index!r}: found against an affine function of the loops")


def linear_index(names: Sequence[str], extents: Sequence[int]) -> str:
    """Return the row-major linear index of several loops as one affine expression.

    >>> linear_index(["c", "y", "x"], (3, 5, 7))
    '35*c + 7*y + x'
    """
    strides = [(name, prod(extents[axis + 1 :])) for axis, name in enumerate(names)]
    return " + ".join(name if stride == 1 else f"{stride}*{name}" for name, stride in strides)


MOST_OPERANDS = len(ascii_lowercase)
_LEAST_INTEGER = -(2**63)  # no number of C++: there it is the negative of one that no type holds


def literal(value: float, dtype: str) -> str:
    """Return a number as source, exactly as an array of ``dtype`` would hold it.

    >>> literal(0.1, "float64"), literal(0.1, "float32"), literal(True, "bool"), literal(float("-inf"), "float32")
    ('0.1', '0.10000000149011612', 'True', '-inf')
    >>> literal(-(2**63), "int64")
    '(-9223372036854775807 - 1)'
    """
    held = np.asarray(value).astype(dtype).item()
    if isinstance(held, complex):
        raise TypeError(f"literal {held}: complex")
    if held == _LEAST_INTEGER and isinstance(held, int):
        return f"({_LEAST_INTEGER + 1} - 1)"
    return repr(held)


def stored(expression: str, between: Tensor, operands: Sequence[Tensor]) -> str:
    """Return an expression with what storing its result did to it: integers wrap around, truth values are 0 or 1.

    Args:
        expression: whose result is put into another expression now.
        between: where it was stored.
        operands: of the expression.
    """
    dtype = between.dtype
    is_one = {dtype, *(tensor.dtype for tensor in operands)} == {dtype}
    is_plain = is_one and element_kind(dtype) == "f" and dtype not in NARROW_REALS
    return expression if is_plain else f"dace.{dtype}({expression})"


def substitute(expression: str, replacements: Mapping[str, str]) -> str:
    """Put expressions in the place of names.

    Raises:
        UserError: an expression is none of Python, or is nested too deeply.

    >>> substitute("a * b", {"a": "b - 2", "b": "c"})
    '(b - 2) * c'
    """
    return _substituted(expression, tuple(replacements.items()))


@lru_cache(maxsize=4096)  # a model has few expressions, and most of its operators have one of them
def _substituted(expression: str, replacements: tuple[tuple[str, str], ...]) -> str:
    trees = {name: expression_tree(source) for name, source in replacements}
    return ast.unparse(_Substitution(trees).visit(expression_tree(expression)))


class _Substitution(ast.NodeTransformer):
    """Makes trees that share with the given ones what it does not change."""

    def __init__(self, trees: Mapping[str, ast.expr]) -> None:
        self._trees = trees

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._trees.get(node.id, node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        changed = copy(node)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(changed, name, [self.visit(one) for one in value])
            elif isinstance(value, ast.expr):
                setattr(changed, name, self.visit(value))
        return changed


def operand_names(count: int) -> tuple[str, ...]:
    """Return the names of the first operands of an expression: a, b, c and so on."""
    return tuple(ascii_lowercase[:count])


def inlined(expression: str, operands: Sequence[Tensor]) -> tuple[str, tuple[int, ...]]:
    """Write constants of one element into the expression, so that no task reads them in every iteration.

    Returns:
        The expression in the names of the operands that are left, and their positions; at least one is left.
    """
    known = [(at, one) for at, one in enumerate(operands) if one.elements == 1 and is_number(one.dtype)]
    literals = {at: literal(one.value.item(), one.dtype) for at, one in known if one.value is not None}
    kept = tuple(position for position in range(len(operands)) if position not in literals)
    if not kept:
        kept = (0,)
        literals.pop(0, None)
    before = operand_names(len(operands))
    after = operand_names(len(kept))
    replacements = {before[position]: source for position, source in literals.items()}
    replacements |= {before[position]: name for position, name in zip(kept, after, strict=True)}
    return substitute(expression, replacements), kept


def is_real(dtype: str) -> bool:
    """Whether a data type, given by its numpy name, can hold a NaN.

    >>> is_real("float16"), is_real("int64")
    (True, False)
    """
    return element_kind(dtype) in "fc"


def is_complex(dtype: str) -> bool:
    """Whether a data type holds complex numbers."""
    return element_kind(dtype) == "c"


def conjugate(source: str, dtype: str) -> str:
    """Return the conjugate of an expression; of a real one itself.

    >>> conjugate("a", "complex64"), conjugate("a", "float64")
    ('conj(a)', 'a')
    """
    return f"conj({source})" if is_complex(dtype) else source


def real_type(dtype: str) -> str:
    """Return the data type of the size of a number.

    >>> real_type("complex64"), real_type("float64")
    ('float32', 'float64')
    """
    return {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)


def sum_dtype(dtype: str) -> str:
    """Return the data type of an array of sums on which more is computed: half precision overflows at 65504.

    >>> sum_dtype("float16"), sum_dtype("bfloat16"), sum_dtype("float64")
    ('float32', 'float32', 'float64')
    """
    return "float32" if dtype in NARROW_REALS else dtype


def product_of(left: str, right: str, dtypes: Sequence[str], dtype: str) -> str:
    """Return the product of two elements as it is added up: narrow integers become as wide as their sum.

    >>> product_of("a", "b", ("int8", "uint8"), "int32"), product_of("a", "b", ("float16", "float16"), "float32")
    ('dace.int32(a) * dace.int32(b)', 'a * b')
    """
    if element_kind(dtype) not in "iu" or set(dtypes) == {dtype}:
        return f"{left} * {right}"
    return f"dace.{dtype}({left}) * dace.{dtype}({right})"


def widened(expression: str, dtypes: Mapping[str, str]) -> str:
    """Compute in single precision what is stored in half precision or less, which has no conversions to other types.

    >>> widened("a + b", {"a": "float16", "b": "float32"})
    'dace.float32(a) + b'
    """
    if expression in dtypes or NARROW_REALS.isdisjoint(dtypes.values()):
        return expression
    narrow = (name for name, dtype in dtypes.items() if dtype in NARROW_REALS)
    return substitute(expression, {name: f"dace.float32({name})" for name in narrow})


@unique
class Reduction(Enum):
    """How a map scope accumulates into its result; the value is DaCe's conflict resolution."""

    SUM = "lambda a, b: a + b"
    PRODUCT = "lambda a, b: a * b"
    MAX = "lambda a, b: max(a, b)"
    MIN = "lambda a, b: min(a, b)"

    def initial(self, dtype: str) -> str:
        """Return the neutral element as Python source of a tasklet."""
        match self:
            case Reduction.SUM:
                return "0"
            case Reduction.PRODUCT:
                return "1"
            case Reduction.MAX | Reduction.MIN:
                return _extreme(dtype, least=self is Reduction.MAX)
        assert_never(self)

    def combined(self, operands: Sequence[str]) -> str:
        """Return what several operands, one at least, become together, as Python source of a tasklet.

        >>> Reduction.SUM.combined("abc"), Reduction.MAX.combined("ab"), Reduction.MAX.combined("a")
        ('a + b + c', 'max(a, b)', 'a')
        """
        if len(operands) == 1:
            return operands[0]
        match self:
            case Reduction.SUM | Reduction.PRODUCT:
                return (" + " if self is Reduction.SUM else " * ").join(operands)
            case Reduction.MAX | Reduction.MIN:
                return f"{self.name.lower()}({', '.join(operands)})"
        assert_never(self)


def _extreme(dtype: str, *, least: bool) -> str:
    """Return the least or the largest value of a type as Python source of a tasklet."""
    kind = element_kind(dtype)
    if kind == "b":
        return "False" if least else "True"
    if kind not in "iu":
        return "-inf" if least else "inf"
    smallest, largest = integer_limits(dtype)
    return literal(smallest if least else largest, dtype)
