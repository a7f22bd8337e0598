"""Python files that hold a ``@dace.program``: numerical programs written in NumPy, run with the user's rights."""

from pathlib import Path

import numpy as np

from dfcompile.errors import UserError
from dfcompile.frontend.dace_program.concrete import NumpyReference, concrete_program, defines_program, example_values
from dfcompile.frontend.model import FileKind, Model, ReadOptions
from dfcompile.frontend.onnx.draft import read_only
from dfcompile.frontend.torch.python_module import running


def read_dace_program(path: Path, options: ReadOptions) -> Model:
    """Return the program that a Python file defines with ``@dace.program``.

    Its symbols get their sizes from ``--dim``. Arguments that it reads are inputs; those that it writes, and what it
    returns, are outputs. A function ``example_inputs``, whose parameters are symbols, gives inputs by name.

    Raises:
        UserError: the file raises, a symbol has no size, or the program has something that cannot be compiled; the
            message has the user's line.
    """
    # Other kinds of models need none of this: it takes a program apart.
    from dfcompile.frontend.dace_program.walk import imported_program

    for name in options.shapes:
        raise UserError(f"{path}: --shape {name}: against sizes of the program's symbols (--dim NAME=SIZE)")
    with running(path) as module:
        program = concrete_program(module, options.dims)
        found = imported_program(path.stem, program)
        values = example_values(module, program, options.dims)
    examples = tuple(read_only(np.array(values[port.name])) for port in found.inputs if port.name in values)
    if examples and len(examples) < len(found.inputs):
        missing = next(port.name for port in found.inputs if port.name not in values)
        raise UserError(f"{path}: example_inputs gives no {missing!r} against all inputs")
    return Model(found, NumpyReference(program, found.inputs, found.outputs), examples)


DACE_PROGRAM = FileKind(".py", read_dace_program, content="@dace.program", claims=defines_program)
