"""What a circuit with values begins with, and what it has to come to: inputs, weights, outputs of the original."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.extraction import ExtractionOptions
from dfcompile.frontend import Model, reference_answer
from dfcompile.lowering.levels import LevelTwo, program_of
from dfcompile.lowering.nests.program import NestProgram, View, root_of
from dfcompile.rtl.arithmetic import WORD_BITS
from dfcompile.rtl.circuit import Circuit
from dfcompile.rtl.datapath import Datapath, datapath_of, refused

Array = npt.NDArray[np.generic]


class ReferenceOutput(Struct, frozen=True):
    """An output of the original.

    Attributes:
        name: the user's.
        array: that holds it.
        values: for each input, shape [inputs], as one array each.
        limits: how far an element may be from these, for each input, shape [inputs].
    """

    name: str
    array: str
    values: tuple[Array, ...]
    limits: tuple[float, ...]


class CircuitValues(Struct, frozen=True, eq=False):
    """The values of a circuit.

    Attributes:
        datapath: what its tasks compute.
        constants: arrays that are the same in every run.
        inputs: of each array that is an input: what it holds in each run.
        outputs: of the original.
    """

    datapath: Datapath
    constants: Mapping[str, Array]
    inputs: Mapping[str, tuple[Array, ...]]
    outputs: tuple[ReferenceOutput, ...]


def circuit_values(
    model: Model,
    lowered: tuple[LevelTwo, ExtractionOptions, CanonicalDag],
    circuit: Circuit,
    feeds: Sequence[Sequence[Array]],
) -> CircuitValues:
    """Return the values of a circuit; the original is run once for each input.

    Args:
        model: as read, with its weights.
        lowered: the model on level 2, how its canonical DAG was made of it, and that DAG.
        circuit: of the DAG.
        feeds: arrays of the model's inputs, for each run.

    Raises:
        UserError: a task has no values, or the original cannot be run; the message says why.
    """
    # What runs programs needs DaCe.
    from dfcompile.lowering.execution.verification import (
        QUANTISATION,
        allowed_error,
        coarsest_dtype,
        is_quantised,
        longest_sum,
        tolerance,
    )

    program, extraction, dag = lowered
    if not isinstance(program, NestProgram):
        raise refused("the model", "a pass that rewrites map scopes", "loop nests")
    datapath = datapath_of(program, extraction, dag, circuit)
    maps = program_of(program)
    relative, steps = tolerance(coarsest_dtype(maps), longest_sum(maps)), QUANTISATION if is_quantised(maps) else 0.0
    answers = [reference_answer(model, feed).outputs for feed in feeds]
    shown = {step.tensor.name: step.source for step in program.steps if isinstance(step, View)}
    outputs = []
    for port, values in zip(program.library.outputs, zip(*answers, strict=True), strict=True):
        limits = tuple(allowed_error(value, relative, steps) for value in values)
        outputs.append(ReferenceOutput(port.name, root_of(port.array, shown), values, limits))
    stored = {array.name for array in datapath.arrays}
    ports = [root_of(port.array, shown) for port in program.library.inputs]
    inputs = {name: values for name, values in zip(ports, zip(*feeds, strict=True), strict=True) if name in stored}
    constants = {name: value for name, value in program.library.parameters.items() if name in stored}
    return CircuitValues(datapath, constants, inputs, tuple(outputs))


def words_of(values: Array) -> str:
    """Return an array as words in hexadecimal, one on a line."""
    bits = WORD_BITS[values.dtype.name]
    numbers = np.ascontiguousarray(values).reshape(-1).view(f"u{bits // 8}").tolist()
    return "".join(f"{number:0{bits // 4}x}\n" for number in numbers)


def from_words(words: Sequence[str], dtype: str) -> Array:
    """Return the array that words in hexadecimal are."""
    return np.array([int(word, 16) for word in words], dtype=f"u{WORD_BITS[dtype] // 8}").view(dtype)
