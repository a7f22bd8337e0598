"""Runs a lowered program: DaCe compiles its maps, so that their numbers can be compared with a reference."""

import errno
import os
import re
import shutil
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from itertools import count
from pathlib import Path

import dace
import numpy as np
import numpy.typing as npt
from dace.codegen.exceptions import CompilationError, CompilerConfigurationError
from dace.config import set_temporary
from dace.sdfg.nodes import MapEntry

from dfcompile.errors import InternalError, UserError
from dfcompile.frontend import CODED_REALS, PACKED_BITS, Level, Program, element_kind, scalar_type
from dfcompile.host.printable import reason_of
from dfcompile.host.private_folder import ending_with_us, in_private_folder, process_folder
from dfcompile.host.stages import Work, stage
from dfcompile.lowering.execution import lapack
from dfcompile.lowering.execution.compiled_form import UNITS, cut_state, definitions, passed_type, widen_accumulators
from dfcompile.lowering.tensor import declared_tensor

Values = Mapping[str, npt.NDArray[np.generic]]

COMPILING = "compiling the lowered model"
COMPILING_PARTS, RUNNING_PARTS = 24, 3  # against running the original: about, for what is shown of progress
_STEPS_PER_SCOPE = 10**8  # of a map scope on average: level 3 takes the compiler a tenth of a second more for it
LONGEST_LINE = 300  # characters of a tool's output
_ERROR = re.compile(r"(?i)\berror\b")
_BUILDS = count()
# What the machine has too little of, in a compiler's words.
_OUTER_FAILURE = re.compile(
    r"(?i)no space left on device|disk quota exceeded|file too large|cannot allocate memory|out of memory|Killed"
)


def run_program(
    program: Program, inputs: Values, *, optimised: bool = True, work: Work | None = None
) -> dict[str, npt.NDArray[np.generic]]:
    """Compile a program of level 2 and run it once.

    Args:
        program: only map scopes.
        inputs: arrays by the user's input name, of the model's shapes and data types.
        optimised: whether the compiler optimises, the more the longer the program runs; without, a large program that
            runs for a moment is done in half the time.
        work: that this is `COMPILING_PARTS` and `RUNNING_PARTS` of; ``None``: of none.

    Returns:
        Arrays by the user's output name.

    Raises:
        UserError: there is no C++ compiler, CMake or library that the program calls.
        InternalError: the program is not lowered, or the inputs do not fit.
    """
    if program.level is not Level.MAPS:
        raise InternalError(f"program {program.name!r}: level {program.level.name} against {Level.MAPS.name}")
    arguments = {name: _held(value) for name, value in program.parameters.items()}
    for port in program.inputs:
        given = inputs[port.name]
        if (given.shape, given.dtype.name) != (port.shape, port.dtype):
            raise InternalError(f"input {port.name!r}: {given.dtype}{given.shape} against {port.dtype}{port.shape}")
        arguments[port.array] = _held(given.reshape(declared_tensor(program.sdfg, port.array).shape))
    for port in program.outputs:
        if port.array not in arguments:
            arguments[port.array] = np.zeros(declared_tensor(program.sdfg, port.array).shape, _held_dtype(port.dtype))
    names = _own_names(program.sdfg.arrays)
    used = program.sdfg.arglist()
    calls_lapack = lapack.calls_lapack(program.sdfg)
    level = optimisation_level(program.sdfg) if optimised else 0
    libraries = lapack.LIBRARIES if calls_lapack else ""
    with _build_environment(level, libraries) as folder, ending_with_us():
        sdfg = deepcopy(program.sdfg)  # compiling changes an SDFG
        # A name of the model's may be one that C++ has a meaning for, such as M_PI.
        sdfg.replace_dict(names)
        sdfg.name = "lowered"
        _hold(sdfg)
        widen_accumulators(sdfg)
        if calls_lapack:
            sdfg.append_global_code(lapack.definitions())
        cut_state(sdfg, UNITS)
        sdfg.build_folder = str(folder)
        sdfg.save = _unsaved  # DaCe writes it beside the code, for a reader
        steps = work or Work(COMPILING_PARTS + RUNNING_PARTS)
        with stage(COMPILING), steps.part(COMPILING_PARTS, is_unseen=True):
            compiled = _compiled(sdfg)
        with stage("running the lowered model"), steps.part(RUNNING_PARTS, is_unseen=True):
            compiled(**{names[name]: value for name, value in arguments.items() if name in used})
        del compiled
    return {port.name: _given(arguments[port.array], port.dtype).reshape(port.shape) for port in program.outputs}


def _unsaved(*_: object, **__: object) -> str:
    """Return no hash of an SDFG of which no file is made: nobody reads it, and it takes a third as long as the rest."""
    return ""


def _own_names(names: Collection[str]) -> dict[str, str]:
    """Return names of ours for those of the model, of which none is among them."""
    prefix = "array"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return {name: f"{prefix}{number}" for number, name in enumerate(names)}


def optimisation_level(sdfg: dace.SDFG) -> int:
    """Return how far a compiler should optimise a lowered program, so that it is compiled and run soonest."""
    scopes = [node for node, _ in sdfg.all_nodes_recursive() if isinstance(node, MapEntry)]
    steps = sum(int(node.map.range.num_elements()) for node in scopes)
    return 3 if steps > _STEPS_PER_SCOPE * len(scopes) else 1


def _hold(sdfg: dace.SDFG) -> None:
    """Let arrays be of types that the compiled code knows, in place."""
    sdfg.append_global_code(definitions(sdfg))
    for array in sdfg.arrays.values():
        dtype = np.dtype(array.dtype.type).name
        if dtype in CODED_REALS:
            array.dtype = passed_type(dtype)
        elif dtype in PACKED_BITS:
            array.dtype = scalar_type(_held_dtype(dtype))


def _held(value: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return a copy, since DaCe takes no views; of integers of less than a byte, and of codes, an array of bytes."""
    if value.dtype.name in CODED_REALS:
        return np.array(value.view(np.uint8), order="C")
    return np.array(value, order="C", dtype=_held_dtype(value.dtype.name))


def _given(held: npt.NDArray[np.generic], dtype: str) -> npt.NDArray[np.generic]:
    """Return what an array of the compiled code stands for."""
    return held.view(dtype) if dtype in CODED_REALS else held.astype(dtype, copy=False)


def _held_dtype(dtype: str) -> str:
    """Return the element type that the compiled code knows, which has no integers of less than a byte."""
    if dtype in CODED_REALS:
        return "uint8"
    if dtype not in PACKED_BITS:
        return dtype
    return "uint8" if element_kind(dtype) == "u" else "int8"


def _compiled(sdfg: dace.SDFG) -> dace.CompiledSDFG:
    """Return the compiled SDFG.

    Raises:
        UserError: CMake finds no compiler that works, or the machine has too little of something.
        InternalError: the generated code is no C++; the message is the compiler's first error.
    """
    try:
        return sdfg.compile()
    except (CompilationError, CompilerConfigurationError) as error:
        output = str(error)
        outer = _line_with(_OUTER_FAILURE, output)
        if outer:
            raise UserError(f"{COMPILING}: {outer} (TMPDIR names the folder)") from error
        if re.search(lapack.MISSING, output):
            raise UserError(f"{COMPILING}: {lapack.HINT}") from error
        reason = _line_with(_ERROR, output) or "it fails without a word"
        if isinstance(error, CompilerConfigurationError):
            raise UserError(f"{COMPILING}: no compiler that works: {reason}") from error
        raise InternalError(f"{COMPILING}: {reason}") from error
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise UserError(f"{COMPILING}: {reason_of(error)} (TMPDIR names the folder)") from error


def _line_with(pattern: re.Pattern[str], output: str) -> str:
    """Return the first line of a tool's output that has a pattern, with the next one if it announces it; shortened."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip()]
    at = next((number for number, line in enumerate(lines) if pattern.search(line)), None)
    if at is None:
        return ""
    found = " ".join(lines[at : at + 2]) if lines[at].endswith(":") else lines[at]
    return found if len(found) <= LONGEST_LINE else f"{found[: LONGEST_LINE - 1]}…"


@contextmanager
def _build_environment(level: int, libraries: str) -> Iterator[Path]:
    """Give a private build folder that is removed afterwards; floating point is strict, CMake is found.

    The compiler optimises to a level.

    DaCe's caches of commands and headers run what they hold, and by default stand in a shared folder under a name that
    anybody can foresee. Here they are in a private folder of this process, from its second build on: the first would
    only fill them.
    """
    caches = process_folder() if next(_BUILDS) else None
    with in_private_folder() as folder, ExitStack() as settings:
        variables = {
            "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ.get('PATH', '')}",
            "TMPDIR": str(folder),  # of the compiler
            "DACE_BUILD_CACHE_DIR": str(caches or folder),
            # Calls of a library run beside each other: each in one thread.
            "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
            "LOGNAME": os.environ.get("LOGNAME") or "dfcompile",  # DaCe asks for it, and a container need not know it
        }
        settings.enter_context(_environment(variables))
        for tool, package in (("cmake", "pip install cmake"), ("g++", "apt-get install g++")):
            if shutil.which(tool) is None:
                raise UserError(f"running a lowered model: no {tool!r} on PATH (try '{package}')")
        settings.enter_context(set_temporary("compiler", "cpu", "args", value=f"-w -O{level}"))
        settings.enter_context(set_temporary("compiler", "cpu", "libs", value=libraries))
        settings.enter_context(set_temporary("compiler", "build_type", value="None"))
        settings.enter_context(set_temporary("default_build_folder", value=str(folder)))
        for name in ("precompiled_header", "configure_cache", "command_cache"):
            settings.enter_context(set_temporary("compiler", name, value=caches is not None))
        yield folder


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
