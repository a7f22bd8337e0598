"""Concrete programs: a ``@dace.program`` with sizes in the place of its symbols; it is parsed, and run by NumPy."""

import ast
import inspect
import traceback
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dace
import numpy as np
from dace.config import set_temporary
from dace.frontend.python.parser import DaceProgram
from msgspec import Struct

from dfcompile.errors import UserError, nearest
from dfcompile.frontend.model import Answer, Array
from dfcompile.frontend.program import Port
from dfcompile.frontend.torch.python_module import PythonModule, guarded, line_in, silenced

_DECORATOR = "program"
_WIDER = {"float32": np.float64, "complex64": np.complex128}


@dataclass(frozen=True, slots=True)
class ConcreteProgram:
    """A program all of whose sizes are known.

    Attributes:
        path: of the user's file.
        arguments: in order.
        function: the user's, with sizes in the place of symbols.
    """

    path: Path
    arguments: tuple[Port, ...]
    function: types.FunctionType

    def plain(self) -> types.FunctionType:
        """Return the function with programs that it calls as the functions that they are: nothing of DaCe is run."""
        names: dict[str, object] = dict(self.function.__globals__)
        for name, value in self.function.__globals__.items():
            if isinstance(value, DaceProgram):
                names[name] = _with_globals(value.f, names)
        return _with_globals(self.function, names)

    def parsed(self) -> dace.SDFG:
        """Return the program as DaCe parses it, nothing simplified.

        Raises:
            UserError: DaCe does not understand it; the message has the user's line.
        """
        try:
            # Nodes know the lines that the parser gives them. "inspect" would look up the others on the call stack, in
            # up to a tenth of a second each, and find lines of DaCe. What DaCe warns of or prints is an error later, or
            # nothing.
            with set_temporary("compiler", "lineinfo", value="given"), silenced():
                return dace.program(self.function).to_sdfg(simplify=False)
        except Exception as error:  # of whatever kind DaCe's parser raises
            reason = " ".join(str(error).split("\n")[0].split()) or type(error).__name__
            where = f"{self.path}{_line_of(self.path, error)}"
            raise UserError(f"{where}: DaCe cannot parse the program: {reason}") from error


def defines_program(path: Path) -> bool:
    """Whether a Python file defines a function decorated with ``dace.program``; it is read, not run."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    imports = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imports += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    is_of_dace = "dace" in {name.partition(".")[0] for name in imports}
    return is_of_dace and any(_is_program(each) for node in functions for each in node.decorator_list)


def _is_program(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if isinstance(called, ast.Attribute):
        return called.attr == _DECORATOR
    return isinstance(called, ast.Name) and called.id == _DECORATOR


def concrete_program(module: PythonModule, dims: Mapping[str, int]) -> ConcreteProgram:
    """Return the program that a file defines.

    Args:
        module: the file, run.
        dims: size of each symbol by its name.

    Raises:
        UserError: there are several programs and none is named like the file, a symbol has no size, a size is of no
            symbol or less than 1, or an argument has no type.
    """
    path, program = module.path, _program(module)
    function = program.f
    symbols = {value.name for value in vars(module.module).values() if isinstance(value, dace.symbol)}
    for name, size in dims.items():
        if name not in symbols:
            raise UserError(f"{path}: --dim {name}: the program has no symbol of that name{nearest(name, symbols)}")
        if size < 1:
            raise UserError(f"{path}: --dim {name}={size}: against a size of at least 1")
    annotations = {name: _annotation(path, name, hint) for name, hint in function.__annotations__.items()}
    used = {str(symbol) for hint in annotations.values() for extent in hint.shape for symbol in _symbols(extent)}
    used |= {name for name in function.__code__.co_names if name in symbols}
    for name in sorted(used - set(dims)):
        raise UserError(f"{path}: symbol {name!r} of the program has no size (--dim {name}=…)")
    globals_ = {
        name: dims[value.name] if isinstance(value, dace.symbol) and value.name in dims else value
        for name, value in function.__globals__.items()
    }
    found = _with_globals(function, globals_)
    found.__module__ = function.__module__
    arguments = []
    for name in inspect.signature(function).parameters:
        if name not in annotations:
            raise UserError(f"{path}: argument {name!r} has no type against one such as dace.float32[N]")
        arguments.append(_argument(name, annotations[name], dims))
    found.__annotations__ = {each.name: _typed(each) for each in arguments}
    return ConcreteProgram(path, tuple(arguments), found)


def _with_globals(function: types.FunctionType, names: dict[str, object]) -> types.FunctionType:
    defaults, closure = function.__defaults__, function.__closure__
    return types.FunctionType(function.__code__, names, function.__name__, defaults, closure)


def _program(module: PythonModule) -> DaceProgram:
    known = {name: value for name, value in vars(module.module).items() if isinstance(value, DaceProgram)}
    own = {name: value for name, value in known.items() if value.f.__module__ == module.module.__name__}
    called = {name for value in own.values() for name in value.f.__code__.co_names}
    outer = [value for name, value in own.items() if name not in called]
    if len(outer) == 1:
        return outer[0]
    if module.path.stem in own:
        return own[module.path.stem]
    wanted = f"one, or one named {module.path.stem!r}"
    raise UserError(f"{module.path}: found {len(own)} programs ({', '.join(own)}) against {wanted}")


def _annotation(path: Path, name: str, hint: object) -> dace.data.Data:
    if isinstance(hint, dace.typeclass):
        return dace.data.Scalar(hint)
    if isinstance(hint, dace.data.Scalar) or type(hint) is dace.data.Array:
        return hint
    raise UserError(f"{path}: argument {name!r} is {hint!r} against a type such as dace.float32[N]")


def _symbols(extent: object) -> "set[dace.symbolic.symbol]":
    return set(extent.free_symbols) if hasattr(extent, "free_symbols") else set()


def _argument(name: str, hint: dace.data.Data, dims: Mapping[str, int]) -> Port:
    dtype = np.dtype(hint.dtype.type).name
    if isinstance(hint, dace.data.Scalar):
        return Port(name, name, (), dtype)
    values = {symbol: dims[str(symbol)] for extent in hint.shape for symbol in _symbols(extent)}
    return Port(name, name, tuple(int(dace.symbolic.evaluate(extent, values)) for extent in hint.shape), dtype)


def _typed(argument: Port) -> dace.data.Data:
    dtype = dace.dtypes.dtype_to_typeclass(np.dtype(argument.dtype).type)
    return dace.data.Array(dtype, argument.shape) if argument.shape else dace.data.Scalar(dtype)


def _line_of(path: Path, error: BaseException) -> str:
    """Return ``:12`` if the error, or what caused it, is about line 12 of the file."""
    found: BaseException | None = error
    while found is not None:
        line = getattr(getattr(found, "node", None), "lineno", None)
        if isinstance(line, int):
            return f":{line}"
        found = found.__cause__ or found.__context__
    return line_in(path, error) or _parsed_line(path, error)


def _parsed_line(path: Path, error: BaseException) -> str:
    """Return ``:12`` if DaCe's parser was at line 12 of the file when it raised; its errors need not say it."""
    line = 0
    for frame, _ in traceback.walk_tb(error.__traceback__):
        at = getattr(frame.f_locals.get("self"), "current_lineinfo", None)
        if isinstance(at, dace.dtypes.DebugInfo) and at.filename and Path(at.filename).name == path.name:
            line = at.start_line
        node = frame.f_locals.get("node")
        if isinstance(node, ast.stmt | ast.expr):
            line = node.lineno
    return f":{line}" if line else ""


def example_values(module: PythonModule, program: ConcreteProgram, dims: Mapping[str, int]) -> Mapping[str, Array]:
    """Return the user's inputs by argument; none if the file has no ``example_inputs``.

    That is a function whose parameters are symbols, or none, which returns a mapping of arguments' names to arrays.

    Raises:
        UserError: it raises, or returns anything else.
    """
    function = getattr(module.module, "example_inputs", None)
    if function is None:
        return {}
    wanted = list(inspect.signature(function).parameters)
    for name in wanted:
        if name not in dims:
            raise UserError(f"{program.path}: parameter {name!r} of example_inputs is no symbol with a size")
    try:
        found = function(**{name: dims[name] for name in wanted})
    except Exception as error:
        raise UserError(f"{program.path}{line_in(program.path, error)}: {type(error).__name__}: {error}") from error
    if not isinstance(found, Mapping):
        raise UserError(f"{program.path}: example_inputs gives {type(found).__name__} against a dict of arrays")
    values = {}
    for argument in program.arguments:
        if argument.name in found:
            value = np.asarray(found[argument.name])
            if (value.shape, value.dtype.name) != (argument.shape, argument.dtype):
                has = f"{value.dtype.name}{list(value.shape)}"
                wants = f"{argument.dtype}{list(argument.shape)}"
                raise UserError(f"{program.path}: example_inputs gives {argument.name!r} as {has} against {wants}")
            values[argument.name] = value
    return values


class NumpyReference(Struct, frozen=True):
    """Runs a program by NumPy on a copy of its inputs, real and complex numbers in double precision.

    Attributes:
        program: whose function is run.
        inputs: of the program.
        outputs: of the program.
    """

    program: ConcreteProgram
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    def __call__(self, inputs: Sequence[Array]) -> Answer:
        """Return the outputs: arguments that the program writes, then what it returns.

        Raises:
            UserError: the function raises, as NumPy does for a singular matrix.
        """
        given = {port.name: value for port, value in zip(self.inputs, inputs, strict=True)}
        values: dict[str, Array] = {}
        for each in self.program.arguments:
            dtype = _WIDER.get(each.dtype, np.dtype(each.dtype).type)
            value = given.get(each.name)
            values[each.name] = np.zeros(each.shape, dtype) if value is None else np.array(value, dtype)
        passed = {name: value if value.shape else value[()] for name, value in values.items()}
        with np.errstate(all="ignore"):
            returned = guarded(self.program.path, lambda: self.program.plain()(**passed))
        results = returned if isinstance(returned, tuple) else (returned,)
        return Answer(tuple(self._output(port, values, results) for port in self.outputs), "NumPy", "please report it")

    def _output(self, port: Port, values: dict[str, Array], results: Sequence[object]) -> Array:
        if port.name in values:
            return values[port.name]
        number = int(port.name.rpartition("_")[2]) if "_" in port.name else 0
        if number >= len(results):
            raise UserError(f"{self.program.path}: the function returns {len(results)} values against {number + 1}")
        return np.asarray(results[number]).reshape(port.shape)
