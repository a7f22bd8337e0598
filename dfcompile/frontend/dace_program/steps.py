"""Steps: what a program does, one operator of level 0 after another, every array written once."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.frontend.program import Port
from dfcompile.frontend.sdfg.dialects import AttributeValue

MAP = "dace.Map"


class Step(Struct, frozen=True):
    """An operator of level 0.

    Attributes:
        name: unique; has the line of the user's file.
        op_type: such as ``linalg.inv``.
        inputs: names of arrays.
        output: name of the array that it writes.
        attributes: of the operator.
    """

    name: str
    op_type: str
    inputs: tuple[str, ...]
    output: str
    attributes: Mapping[str, AttributeValue]


class Declared(Struct, frozen=True):
    """An array of level 0."""

    shape: tuple[int, ...]
    dtype: str


class Steps(Struct, frozen=True, eq=False):
    """A whole program.

    Attributes:
        arrays: by name.
        constants: values of those that depend on nothing.
        steps: in the program's order.
        inputs: arguments that are read before they are written.
        outputs: arguments that are written, then what is returned.
    """

    arrays: Mapping[str, Declared]
    constants: Mapping[str, npt.NDArray[np.generic]]
    steps: tuple[Step, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
