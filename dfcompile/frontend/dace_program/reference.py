"""The reference: the user's function run by Python and NumPy, in double precision."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from dfcompile.errors import UserError
from dfcompile.frontend.dace_program.concrete import ConcreteProgram
from dfcompile.frontend.model import Answer, Array
from dfcompile.frontend.program import Port
from dfcompile.frontend.torch.python_module import guarded

_WIDER = {"float32": np.float64, "complex64": np.complex128}


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
