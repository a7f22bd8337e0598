"""Complex arithmetic: C++ has no operation of a complex number and one of another type, NumPy has."""

import ast
from collections.abc import Mapping
from copy import deepcopy

import numpy as np

_REAL_FUNCTIONS = frozenset(["abs", "imag", "real"])
_COMPLEX = ("complex64", "complex128")


def of_one_type(source: str, dtypes: Mapping[str, str]) -> str:
    """Return an expression in which the operands of each operation are of one type, if one of them is complex.

    Args:
        source: of the expression.
        dtypes: numpy names of the element types of its names.

    >>> of_one_type("a / 3 + b", {"a": "complex64", "b": "float64"})
    'dace.complex128(a / dace.complex64(3)) + dace.complex128(b)'
    >>> of_one_type("a / 3 + b", {"a": "float32", "b": "float64"})
    'a / 3 + b'
    """
    tree = ast.parse(source, mode="eval").body
    if not any(dtype in _COMPLEX for dtype in dtypes.values()) and not _is_imaginary(tree):
        return source
    return ast.unparse(_Casting(dtypes).visit(tree))


class _Casting(ast.NodeTransformer):
    """Casts where an operation has operands of several types; powers are left, which have integers beside them."""

    def __init__(self, dtypes: Mapping[str, str]) -> None:
        self._dtypes = dtypes

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        if not isinstance(node.op, ast.Pow):
            left, right = self._alike(left, right)
        return ast.BinOp(left, node.op, right)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        test = self.visit(node.test)
        return ast.IfExp(test, *self._alike(self.visit(node.body), self.visit(node.orelse)))

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) > 1:
            return node
        left, right = self._alike(self.visit(node.left), self.visit(node.comparators[0]))
        return ast.Compare(left, node.ops, [right])

    def _alike(self, left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr]:
        dtypes = self._dtype(left), self._dtype(right)
        known = [np.dtype(dtype) for dtype in dtypes if dtype]
        imaginary = [1j for side, dtype in zip((left, right), dtypes, strict=True) if not dtype and _is_imaginary(side)]
        common = np.result_type(*known, *imaginary).name if known else ""
        if common not in _COMPLEX:
            return left, right
        return _cast(left, dtypes[0], common), _cast(right, dtypes[1], common)

    def _dtype(self, node: ast.expr) -> str:
        """Return the element type of a part of an expression; empty of a number, which takes that of the other side."""
        match node:
            case ast.Name(id=name):
                return self._dtypes.get(name, "")
            case ast.UnaryOp(operand=operand):
                return self._dtype(operand)
            case ast.BinOp(left=left, right=right) | ast.IfExp(body=left, orelse=right):
                found = [dtype for dtype in (self._dtype(left), self._dtype(right)) if dtype]
                return np.result_type(*map(np.dtype, found)).name if found else ""
            case ast.Call(func=ast.Attribute(value=ast.Name(id="dace"), attr=name)):
                return name if name in _COMPLEX or hasattr(np, name) else ""
            case ast.Call(func=ast.Name(id=name), args=[argument, *_]):
                dtype = self._dtype(argument)
                return (
                    {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
                    if name in _REAL_FUNCTIONS
                    else dtype
                )
        return ""


def _is_imaginary(node: ast.expr) -> bool:
    """Return whether a part of an expression has an imaginary number."""
    return any(isinstance(each, ast.Constant) and isinstance(each.value, complex) for each in ast.walk(node))


def _cast(node: ast.expr, dtype: str, common: str) -> ast.expr:
    """Return a part of an expression as a type."""
    if dtype == common:
        return node
    return ast.Call(ast.Attribute(ast.Name("dace", ast.Load()), common, ast.Load()), [deepcopy(node)], [])
