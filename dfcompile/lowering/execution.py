"""Runs a lowered program: DaCe compiles its maps, so that their numbers can be compared with a reference."""

import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import dace
import numpy as np
import numpy.typing as npt
from dace.config import set_temporary

from dfcompile.errors import InternalError, UserError
from dfcompile.frontend import Level, Program
from dfcompile.lowering.accumulators import widen_accumulators

Values = Mapping[str, npt.NDArray[np.generic]]


def run_program(program: Program, inputs: Values) -> dict[str, npt.NDArray[np.generic]]:
    """Compile a program of level 2 and run it once.

    Args:
        program: only map scopes.
        inputs: arrays by the user's input name, of the model's shapes and data types.

    Returns:
        Arrays by the user's output name.

    Raises:
        UserError: there is no C++ compiler or CMake.
        InternalError: the program is not lowered, or the inputs do not fit.
    """
    if program.level is not Level.MAPS:
        raise InternalError(f"program {program.name!r}: level {program.level.name} against {Level.MAPS.name}")
    arguments = {name: np.array(value, order="C") for name, value in program.parameters.items()}
    for port in program.inputs:
        given = inputs[port.name]
        if (given.shape, given.dtype.name) != (port.shape, port.dtype):
            raise InternalError(f"input {port.name!r}: {given.dtype}{given.shape} against {port.dtype}{port.shape}")
        arguments[port.array] = np.array(given.reshape(_shape(program, port.array)), order="C")  # DaCe takes no views
    for port in program.outputs:
        if port.array not in arguments:
            dtype = program.sdfg.arrays[port.array].dtype.type
            arguments[port.array] = np.zeros(_shape(program, port.array), dtype=dtype)
    used = program.sdfg.arglist()
    with _build_environment() as folder:
        sdfg = dace.SDFG.from_json(program.sdfg.to_json())  # compiling changes an SDFG
        widen_accumulators(sdfg)
        sdfg.build_folder = str(folder)
        compiled = sdfg.compile()
        compiled(**{name: value for name, value in arguments.items() if name in used})
        del compiled
    return {port.name: arguments[port.array].reshape(port.shape) for port in program.outputs}


def _shape(program: Program, array: str) -> tuple[int, ...]:
    return tuple(int(size) for size in program.sdfg.arrays[array].shape)


@contextmanager
def _build_environment() -> Iterator[Path]:
    """Give a build folder that is removed afterwards; strict floating point; CMake of this environment is found."""
    scripts = sysconfig.get_path("scripts")
    path = os.environ.get("PATH", "")
    os.environ["PATH"] = f"{scripts}{os.pathsep}{path}"
    try:
        for tool, package in (("cmake", "pip install cmake"), ("g++", "apt-get install g++")):
            if shutil.which(tool) is None:
                raise UserError(f"running a lowered model: no {tool!r} on PATH (try '{package}')")
        with (
            tempfile.TemporaryDirectory(prefix="dfcompile-") as folder,
            set_temporary("compiler", "cpu", "args", value="-w"),
            set_temporary("compiler", "build_type", value="Release"),
        ):
            yield Path(folder)
    finally:
        os.environ["PATH"] = path
