"""The program: an SDFG at one level of lowering, with what the later stages need beside it."""

from collections.abc import Mapping
from enum import IntEnum, unique
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct

if TYPE_CHECKING:
    import dace


@unique
class Level(IntEnum):
    """How far a program has been lowered."""

    ONNX = 0  # ONNX library nodes, as imported
    CANONICAL = 1  # canonical operators: a small set
    NESTS = 2  # loop nests
    MAPS = 3  # of these, one state, only map scopes at top level


class Port(Struct, frozen=True):
    """An input or output of the model and the SDFG array that holds it.

    ``shape`` is the model's; the array may have another shape of as many elements (a reshape at the border of the
    model costs nothing). An input that is constant depends on parameters alone: one of a chip's share, that other chips
    make of theirs.
    """

    name: str  # the user's name
    array: str  # name of the SDFG array
    shape: tuple[int, ...]
    dtype: str  # numpy name, such as float32
    is_constant: bool = False


class KnownInput(Struct, frozen=True, eq=False):
    """An input of the model that is none of the program: its value is fixed, or it has no elements.

    Attributes:
        position: among all inputs of the model.
        name: the user's.
        value: that it has in every run; read-only.
    """

    position: int
    name: str
    value: npt.NDArray[np.generic]


@unique
class Coverage(IntEnum):
    """How a node of the model is accounted for."""

    COSTED = 0  # became tasks
    VIEW = 1  # moves no data: reshape, flatten, squeeze, unsqueeze, identity
    FOLDED = 2  # depends on constants alone: computed once when the model is read


class ModelNode(Struct, frozen=True):
    """A node of the user's model."""

    name: str  # the user's operator name: what every origin refers to
    op_type: str  # ONNX operator type
    coverage: Coverage


class ChosenExpansion(Struct, frozen=True):
    """Which expansion an operator was lowered by."""

    operator: str  # its name in the program
    op_type: str
    origin: str  # the user's operator
    name: str  # of the expansion


class AppliedPass(Struct, frozen=True):
    """What a pass did to the program.

    Attributes:
        name: of the pass.
        before: operators of level 0 or 1, or map scopes of level 2, before it.
        after: the same after it.
        of: what was counted.
    """

    name: str
    before: int
    after: int
    of: str = "operators"


class Program(Struct, frozen=True, dict=True):
    """A model as an SDFG of one state, at one level of lowering.

    Attributes:
        name: of the model, an identifier.
        level: of ``sdfg``.
        sdfg: one state; input, output and parameter arrays are not transient. Never mutated after construction.
        inputs: of the model, as far as their values differ from run to run.
        outputs: of the model, as far as they have elements.
        parameters: values of the constant arrays (weights, biases) by array name; read-only.
        nodes: every node of the model, in the model's order.
        chosen: the expansions that led here, level after level, operators in the order in which they were lowered.
        applied: the passes that changed something on the way here.
        known_inputs: the other inputs of the model, in its order.
    """

    name: str
    level: Level
    sdfg: "dace.SDFG"
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    parameters: Mapping[str, npt.NDArray[np.generic]]
    nodes: tuple[ModelNode, ...]
    chosen: tuple[ChosenExpansion, ...] = ()
    applied: tuple[AppliedPass, ...] = ()
    known_inputs: tuple[KnownInput, ...] = ()

    @property
    def complex_types(self) -> tuple[str, ...]:
        """Names of the complex element types of its arrays."""
        dtypes = {np.dtype(array.dtype.type) for array in self.sdfg.arrays.values()}
        return tuple(sorted(dtype.name for dtype in dtypes if dtype.kind == "c"))
