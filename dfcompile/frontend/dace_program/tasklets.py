"""Tasklets: the code of one, as an expression of its operands and of the loops around."""

import ast
from collections.abc import Mapping
from copy import deepcopy
from itertools import product
from types import MappingProxyType

import dace
import numpy as np
import numpy.typing as npt

from dfcompile.errors import UserError
from dfcompile.frontend.dace_program.places import Loop

_CASTS: Mapping[str, type[np.generic]] = MappingProxyType(
    {
        "complex128": np.complex128,
        "complex64": np.complex64,
        "float32": np.float32,
        "float64": np.float64,
        "int32": np.int32,
        "int64": np.int64,
    }
)


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
