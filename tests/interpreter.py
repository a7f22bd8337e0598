"""Runs a program of level 2 with numpy, scope by scope: independent of DaCe's code generator and much faster.

Integers follow C++: ``/`` truncates, ``%`` has the sign of the dividend. What was never written is NaN, or the largest
integer, so that reading it shows.
"""

import ast
import math
from collections.abc import Callable, Mapping

import dace
import numpy as np
import numpy.typing as npt
from dace.sdfg.nodes import AccessNode, MapEntry, Tasklet
from dace.sdfg.state import SDFGState
from dace.sdfg.utils import dfs_topological_sort

from dfcompile.frontend import Level, Program, element_kind, integer_limits
from dfcompile.host.stages import Work

Array = npt.NDArray[np.generic]

_REDUCTIONS: Mapping[str, np.ufunc] = {
    "lambda a, b: a + b": np.add,
    "lambda a, b: a * b": np.multiply,
    "lambda a, b: max(a, b)": np.maximum,
    "lambda a, b: min(a, b)": np.minimum,
}


def interpret(
    program: Program,
    inputs: Mapping[str, Array],
    *,
    work: Work | None = None,  # nothing is compiled
) -> dict[str, Array]:
    """Return the outputs of a program by the user's names; the arguments are those of ``run_program``."""
    assert program.level is Level.MAPS
    sdfg = program.sdfg
    memory = {name: _poison(array) for name, array in sdfg.arrays.items() if not isinstance(array, dace.data.View)}
    for name, value in program.parameters.items():
        memory[name] = np.array(value).reshape(memory[name].shape)
    for port in program.inputs:
        if port.array in memory:
            memory[port.array] = np.array(inputs[port.name]).reshape(memory[port.array].shape)
    with np.errstate(all="ignore"):
        for state in dfs_topological_sort(sdfg, [sdfg.start_block]):
            _run_state(state, memory)
    return {port.name: memory[port.array].reshape(port.shape) for port in program.outputs}


def _run_state(state: SDFGState, memory: dict[str, Array]) -> None:
    for node in dfs_topological_sort(state, state.source_nodes()):
        if isinstance(node, AccessNode) and isinstance(node.desc(state.sdfg), dace.data.View):
            source = next(edge.src.data for edge in state.in_edges(node) if edge.dst_conn == "views")
            array = node.desc(state.sdfg)
            memory[node.data] = memory[source].reshape(array.shape).view(array.dtype.type)
        elif isinstance(node, MapEntry):
            _run_scope(state, node, memory)


def _poison(array: dace.data.Array) -> Array:
    dtype = np.dtype(array.dtype.type)
    kind = element_kind(dtype.name)
    worst = integer_limits(dtype.name)[1] if kind in "iu" else kind == "b" or np.nan
    return np.full([int(size) for size in array.shape], worst, dtype)


def _run_scope(state: SDFGState, entry: MapEntry, memory: Mapping[str, Array]) -> None:
    (tasklet,) = dict.fromkeys(edge.dst for edge in state.out_edges(entry))
    assert isinstance(tasklet, Tasklet)
    extents = [int(last) + 1 for _, last, _ in entry.map.range.ranges]
    loops: dict[str, Array] = {
        name: np.arange(extent).reshape([-1 if at == axis else 1 for at in range(len(extents))])
        for axis, (name, extent) in enumerate(zip(entry.map.params, extents, strict=True))
    }
    values = {
        edge.dst_conn: np.squeeze(memory[edge.data.data])  # a tasklet sees no dimension of extent 1
        if _is_table(edge.data)
        else memory[edge.data.data][_index(edge.data, loops)]
        for edge in state.in_edges(tasklet)
        if edge.data.data is not None
    }
    (out,) = state.out_edges(tasklet)
    target = memory[out.data.data]
    variables = {**loops, **values}
    result = np.broadcast_to(_evaluate(tasklet.code.as_string, out.src_conn, variables), extents)
    if _is_table(out.data):
        target = target.squeeze()  # as of a table
        places = _places(tasklet.code.as_string, variables)
    else:
        places = _index(out.data, loops)
    index = tuple(np.broadcast_to(position, extents) for position in places)
    if out.data.wcr is None:
        target[index] = result.astype(target.dtype)
        return
    is_real = element_kind(target.dtype.name) in "fc"
    wide = np.result_type(target.dtype, np.float64) if is_real else target.dtype
    _accumulate(
        _REDUCTIONS[ast.unparse(ast.parse(out.data.wcr.strip(), mode="eval"))], target, index, result.astype(wide)
    )


def _accumulate(reduction: np.ufunc, target: Array, index: tuple[Array, ...], values: Array) -> None:
    """Accumulate in the wide type of the values; a NaN is the extremum of some numbers if it is the first of them."""
    offsets = np.zeros(values.shape, np.int64)
    for position, extent in zip(index, target.shape, strict=True):
        offsets = offsets * extent + position
    flat, elements = offsets.ravel(), values.ravel()
    sums = target.reshape(-1).astype(values.dtype)
    if reduction in (np.add, np.multiply):
        reduction.at(sums, flat, elements)
    else:
        is_nan = np.isnan(elements)
        reduction.at(sums, flat[~is_nan], elements[~is_nan])
        written, first = np.unique(flat, return_index=True)
        if is_nan.any():
            sums[written[is_nan[first]]] = np.nan
    target[...] = sums.astype(target.dtype).reshape(target.shape)


def _is_table(memlet: dace.Memlet) -> bool:
    """Whether the tasklet gets the whole array and takes the element that it wants."""
    return bool(memlet.volume == 1 and memlet.subset.num_elements() > 1)


def _index(memlet: dace.Memlet, loops: Mapping[str, Array]) -> tuple[Array, ...]:
    for first, last, _ in memlet.subset.ranges:
        assert first == last, f"memlet {memlet}: more than one element"
    return tuple(
        np.asarray(eval(str(first), {"__builtins__": {}}, dict(loops))) for first, _, _ in memlet.subset.ranges
    )


def _places(code: str, values: Mapping[str, Array]) -> tuple[Array, ...]:
    """Return where a tasklet writes that computes it, per dimension."""
    statement = ast.parse(code).body[0]
    assert isinstance(statement, ast.Assign)
    assert isinstance(statement.targets[0], ast.Subscript)
    place = statement.targets[0].slice
    return tuple(_computed(index, values) for index in (place.elts if isinstance(place, ast.Tuple) else [place]))


def _evaluate(code: str, result: str, values: Mapping[str, Array]) -> Array:
    statement = ast.parse(code).body[0]
    assert isinstance(statement, ast.Assign)
    target = statement.targets[0]
    target = target.value if isinstance(target, ast.Subscript) else target
    assert isinstance(target, ast.Name)
    assert target.id == result
    return _computed(statement.value, values)


def _computed(expression: ast.expr, values: Mapping[str, Array]) -> Array:
    tree = ast.fix_missing_locations(ast.Expression(_Vectorised().visit(expression)))
    return np.asarray(eval(compile(tree, "tasklet", "eval"), dict(_NAMES), dict(values)))


class _Vectorised(ast.NodeTransformer):
    """Turns what numpy does not overload, or overloads otherwise than C++, into calls."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = {ast.Div: "_divide", ast.Mod: "_remainder"}.get(type(node.op))
        return _call(name, node.left, node.right) if name else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return _call("_choose", node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        return _call("_all" if isinstance(node.op, ast.And) else "_any", *node.values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return _call("_not", node.operand) if isinstance(node.op, ast.Not) else node


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _divide(a: Array, b: Array) -> Array:
    if np.result_type(a, b).kind not in "iub":
        return np.asarray(np.divide(a, b))
    floor = np.floor_divide(a, b)
    return np.where((np.less(a, 0) != np.less(b, 0)) & (floor * b != a), floor + 1, floor)


def _pow(a: Array, b: Array) -> Array:
    """A signed exponent, be it of an integer, gives a real number, as DaCe's ``pow`` does."""
    if np.result_type(a, b).kind == "f" or np.asarray(b).dtype.kind == "i":
        base, exponent = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        # Side by side in memory, and two at least: if all are one exponent of 1/2, numpy takes the square root instead.
        found = np.power(np.append(base, 1.0), np.append(exponent, 1.0))
        return np.asarray(found[:-1].reshape(base.shape))
    return np.asarray(np.power(a, b))


def _largest(*values: Array) -> Array:
    found = values[0]
    for value in values[1:]:
        found = np.where(np.greater(found, value), found, value)
    return found


def _smallest(*values: Array) -> Array:
    found = values[0]
    for value in values[1:]:
        found = np.where(np.less(found, value), found, value)
    return found


def _erf(a: Array) -> Array:
    return np.array([math.erf(value) for value in np.ravel(a).tolist()]).reshape(np.shape(a))


class _Casts:
    """Stands for the module dace: ``dace.float32(a)``."""

    def __getattr__(self, dtype: str) -> Callable[[Array], Array]:
        return lambda a: np.asarray(a).astype(dtype)


_NAMES: dict[str, object] = {
    "__builtins__": {},
    "_all": lambda *values: np.logical_and.reduce(np.broadcast_arrays(*values)),
    "_any": lambda *values: np.logical_or.reduce(np.broadcast_arrays(*values)),
    "_choose": np.where,
    "_divide": _divide,
    "_not": np.logical_not,
    "_remainder": np.fmod,
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "conj": np.conj,
    "cos": np.cos,
    "cosh": np.cosh,
    "dace": _Casts(),
    "erf": _erf,
    "exp": np.exp,
    "expm1": np.expm1,
    "floor": np.floor,
    "fmod": np.fmod,
    "inf": np.inf,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "log": np.log,
    "log1p": np.log1p,
    "max": _largest,
    "min": _smallest,
    "nan": np.nan,
    "pow": _pow,
    "py_mod": np.mod,
    "real": np.real,
    "rint": np.rint,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
}
