"""Expressions: what the code of a tasklet computes, of its operands and of the loops around.

C++ has no operation of a complex number and one of another type, NumPy has: so operands are cast.
"""

import ast
from collections.abc import Mapping
from copy import deepcopy
from itertools import product

import dace
import numpy as np
import numpy.typing as npt

from dfcompile.errors import UserError
from dfcompile.frontend.dace_program.places import Loop

_CAST_NAMES = ("complex128", "complex64", "float32", "float64", "int32", "int64")
_CASTS: Mapping[str, type[np.generic]] = {name: getattr(np, name) for name in _CAST_NAMES}
_REAL_PARTS = {"complex64": "float32", "complex128": "float64"}
_REAL_FUNCTIONS = frozenset(["abs", "imag", "real"])


def assigned_expression(tasklet: "dace.nodes.Tasklet", result: str) -> ast.expr:
    """Return what a tasklet writes.

    Args:
        tasklet: of Python code.
        result: name of what it writes.

    Raises:
        UserError: it does anything else than one assignment.
    """
    statements = tasklet.code.code
    if tasklet.code.language is dace.Language.Python and len(statements) == 1:
        match statements[0]:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == result:
                return value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if name == result:
                return value
    raise UserError(f"code {tasklet.code.as_string!r} against one assignment of an expression of Python to {result!r}")


def names_in(expression: ast.expr) -> frozenset[str]:
    """Return the names of variables; those of functions and modules are none."""
    called = {id(node.func) for node in ast.walk(expression) if isinstance(node, ast.Call)}
    within = {id(node.value) for node in ast.walk(expression) if isinstance(node, ast.Attribute)}
    found = (node for node in ast.walk(expression) if isinstance(node, ast.Name))
    return frozenset(node.id for node in found if id(node) not in called | within)


def with_names(expression: ast.expr, names: Mapping[str, str]) -> str:
    """Return the source of an expression with others in the place of its names."""
    trees = {name: ast.parse(source, mode="eval").body for name, source in names.items()}
    return ast.unparse(_Renaming(trees).visit(deepcopy(expression)))


class _Renaming(ast.NodeTransformer):
    def __init__(self, trees: Mapping[str, ast.expr]) -> None:
        self._trees = trees

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._trees.get(node.id, node)


def evaluated(source: str, loops: tuple[Loop, ...], dtype: str) -> npt.NDArray[np.generic]:
    """Return the values of an expression that depends on loops alone, shape of their extents, or ``[1]``.

    Raises:
        UserError: it has a function that is not known here.
    """
    code = compile(source, "tasklet", "eval")
    known = {"dace": _Casts(), "__builtins__": {}, "min": min, "max": max, "abs": abs, "int": int, "float": float}
    found = np.empty(tuple(loop.extent for loop in loops) or (1,), dtype)
    for at in product(*(range(loop.extent) for loop in loops)):
        try:
            found[at or 0] = eval(code, known, dict(zip((loop.name for loop in loops), at, strict=True)))  # noqa: S307
        except (NameError, AttributeError, ArithmeticError, TypeError, ValueError) as error:
            raise UserError(f"constant {source!r}: {error}") from error
    return found


class _Casts:
    def __getattr__(self, name: str) -> type[np.generic]:
        if name not in _CASTS:
            raise AttributeError(f"no type {name!r}")
        return _CASTS[name]


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
    if not any(dtype in _REAL_PARTS for dtype in dtypes.values()) and not _is_imaginary(tree):
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
        return ast.IfExp(self.visit(node.test), *self._alike(self.visit(node.body), self.visit(node.orelse)))

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
        if common not in _REAL_PARTS:
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
                return name if name in _REAL_PARTS or hasattr(np, name) else ""
            case ast.Call(func=ast.Name(id=name), args=[argument, *_]):
                dtype = self._dtype(argument)
                return _REAL_PARTS.get(dtype, dtype) if name in _REAL_FUNCTIONS else dtype
        return ""


def _is_imaginary(node: ast.expr) -> bool:
    """Return whether a part of an expression has an imaginary number."""
    return any(isinstance(each, ast.Constant) and isinstance(each.value, complex) for each in ast.walk(node))


def _cast(node: ast.expr, dtype: str, common: str) -> ast.expr:
    """Return a part of an expression as a type."""
    if dtype == common:
        return node
    return ast.Call(ast.Attribute(ast.Name("dace", ast.Load()), common, ast.Load()), [deepcopy(node)], [])
