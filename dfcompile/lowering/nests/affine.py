"""Affine functions of loops: the indices with which a nest accesses its arrays."""

import ast
from collections.abc import Sequence
from functools import lru_cache
from math import prod

from dfcompile.errors import UserError
from dfcompile.frontend.affine import Affine
from dfcompile.lowering.expressions import expression_tree


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
