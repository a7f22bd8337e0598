"""Verification: the lowered model, compiled and run, against the user's original, within a stated tolerance."""

from math import prod, sqrt

import numpy as np
import numpy.typing as npt
from dace.sdfg.nodes import MapEntry, Tasklet
from msgspec import Struct

from dfcompile.errors import DisagreementError, UserError
from dfcompile.frontend import Answer, Model, Program, element_kind, real_epsilon, reference_answer
from dfcompile.host.stages import stage, work_of
from dfcompile.lowering.execution.compiled_run import COMPILING_PARTS, RUNNING_PARTS, run_program

Array = npt.NDArray[np.generic]
Outputs = tuple[tuple[Array, Array], ...]  # to compare: expected and computed, or before and after a change

# Tolerance for a chain of operators, by the coarsest type, relative to the largest value of an output: two libraries
# compute the last digits of functions differently, and round intermediate values differently.
CHAIN = {
    "float8_e8m0fnu": 1.0,
    "float4_e2m1fn": 5e-1,
    "float8_e5m2": 5e-1,
    "float8_e5m2fnuz": 5e-1,
    "float8_e4m3fnuz": 2.5e-1,
    "float8_e4m3fn": 2.5e-1,
    "bfloat16": 8e-2,
    "float16": 2e-2,
    "float32": 5e-5,
    "float64": 1e-9,
}
_SUM_TYPES = frozenset(["float16", "float32", "float64"])  # others are added up in float32, by every library
# Further tolerance for quantised models, five steps of 255: a number half-way between two steps is rounded to either,
# and later operators may enlarge the difference.
QUANTISATION = 2e-2
_QUANTISERS = ("DynamicQuantizeLinear", "DynamicQuantizeMatMul", "QGemm", "QuantizeLinear")
_QUANTISER_PREFIX = "QLinear"  # of the names of all other operators that quantise
REFERENCE_PARTS = 1  # rough duration for the progress display, as COMPILING_PARTS
SUM = 2.0  # tolerance of a sum of n terms, in roundings per square root of n: the reference adds in another order


class Deviation(Struct, frozen=True):
    """How far the lowered model is from the original, over all elements of all outputs, on one input.

    Attributes:
        absolute: the largest difference.
        relative: the largest difference as a part of the largest finite value of the same output.
        outputs: pairs of the original's output and the lowered model's.
    """

    absolute: float
    relative: float
    outputs: Outputs = ()


class Effect(Struct, frozen=True, eq=False):
    """How much the original's outputs change if the values of each input come in another order.

    Attributes:
        relative: the largest change as a part of the largest value of the same output.
        outputs: pairs of the output before and after the change.
    """

    relative: float
    outputs: Outputs


def verified_deviation(model: Model, maps: Program, seed: int) -> Deviation:
    """Return how far the lowered model is from the original, on one input.

    Args:
        model: as read.
        maps: the same, lowered to map scopes.
        seed: of the input, if the model comes with none.

    Raises:
        DisagreementError: an output differs by more than `tolerance` allows.
        UserError: the original cannot be run, or there is no compiler.
    """
    with work_of(REFERENCE_PARTS + COMPILING_PARTS + RUNNING_PARTS) as work:
        with stage("running the original"), work.part(REFERENCE_PARTS):
            inputs = model.example_feeds(seed)
            answer = reference_answer(model, inputs)
        feeds = {port.name: value for port, value in zip(maps.inputs, inputs, strict=True)}
        computed = run_program(maps, feeds, work=work)
    relative = tolerance(coarsest_dtype(maps), longest_sum(maps))
    quantisation = QUANTISATION if is_quantised(maps) else 0.0
    outputs = tuple(zip(answer.outputs, (computed[port.name] for port in maps.outputs), strict=True))
    named = zip(maps.outputs, outputs, strict=True)
    deviations = [_deviation(port.name, *pair, relative, quantisation, answer) for port, pair in named]
    absolute = max((deviation.absolute for deviation in deviations), default=0.0)
    return Deviation(absolute, max((deviation.relative for deviation in deviations), default=0.0), outputs)


def effect_of_inputs(model: Model, seed: int) -> Effect | None:
    """Return how much the original's outputs change if the values of each input come in another order.

    If little, comparing outputs proves little: a deep network without trained weights often ignores its input.

    Args:
        model: as read.
        seed: of the input, if the model comes with none.

    Returns:
        ``None`` if all values of each input are equal, or the original refuses the other order.

    Raises:
        UserError: the original cannot be run.
    """
    inputs = model.example_feeds(seed)
    others = [np.roll(value.reshape(-1), 1).reshape(value.shape) for value in inputs]
    if all(np.array_equal(*pair) for pair in zip(inputs, others, strict=True)):
        return None
    with stage("running the original on other values"), work_of(2) as work:
        answer = reference_answer(model, inputs)
        work.add()
        try:
            changed = reference_answer(model, others)
        except UserError:
            return None
    outputs = tuple(zip(answer.outputs, changed.outputs, strict=True))
    return Effect(max(_change(*pair) for pair in outputs), outputs) if outputs else None


def _change(output: Array, changed: Array) -> float:
    if output.shape != changed.shape:
        return 1.0
    before, after = (np.asarray(value, np.complex128) for value in (output, changed))
    is_finite = np.isfinite(before) & np.isfinite(after)
    largest = float(np.max(np.abs(before), initial=0.0, where=is_finite))
    with np.errstate(invalid="ignore"):
        change = float(np.max(np.abs(after - before), initial=0.0, where=is_finite))
    return change / largest if largest else change


def tolerance(dtype: str, terms: int) -> float:
    """Return how far an output may be from its reference, relative to its largest value, or absolute below 1.

    ``CHAIN[dtype] + SUM * sqrt(terms) * epsilon``, with the epsilon of the type in which references add: the error
    of a sum whose roundings are random grows with the square root of its length [higham02, section 2.8].

    Args:
        dtype: numpy name of the coarsest real type that the model computes in.
        terms: number of terms of its longest sum.

    >>> tolerance("float32", 1) < 1e-4 < tolerance("float32", 200_000) < 2e-4
    True
    """
    sum_type = dtype if dtype in _SUM_TYPES else "float32"
    return CHAIN[dtype] + SUM * sqrt(terms) * real_epsilon(sum_type)


def allowed_error(expected: Array, relative: float, steps: float) -> float:
    """Return how far elements of an output may be from these.

    Args:
        expected: of the reference.
        relative: `tolerance` of the model.
        steps: `QUANTISATION` for a quantised model, else 0.
    """
    largest = float(np.max(np.abs(np.asarray(expected, np.complex128)), initial=0.0, where=np.isfinite(expected)))
    if element_kind(expected.dtype.name) in "fc":
        return (relative + steps) * max(1.0, largest)
    return max(1.0, steps * largest) if steps else 0.0


def coarsest_dtype(maps: Program) -> str:
    """Return the name of the coarsest real element type of a program's arrays; float64 if it has none."""
    dtypes = {np.dtype(array.dtype.type) for array in maps.sdfg.arrays.values()}
    real = {np.dtype(dtype.type(0).real.dtype).name for dtype in dtypes if element_kind(dtype.name) in "fc"}
    return max(real, key=real_epsilon, default="float64")


def is_quantised(maps: Program) -> bool:
    """Whether an operator of the model rounds to quantised steps."""
    names = {chosen.op_type.rpartition(".")[2] for chosen in maps.chosen}
    return any(name in _QUANTISERS or name.startswith(_QUANTISER_PREFIX) for name in names)


def longest_sum(maps: Program) -> int:
    """Return the largest number of values that are accumulated into one element: iterations per element of a result."""
    longest = 1
    for state in maps.sdfg.states():
        for entry in (node for node in state.nodes() if isinstance(node, MapEntry)):
            for tasklet in {edge.dst for edge in state.out_edges(entry) if isinstance(edge.dst, Tasklet)}:
                written = [edge.data for edge in state.out_edges(tasklet) if edge.data.wcr is not None]
                elements = [prod(map(int, maps.sdfg.arrays[memlet.data].shape)) for memlet in written]
                iterations = prod(int(last) + 1 for _, last, _ in entry.map.range.ranges)
                longest = max([longest, *(-(-iterations // count) for count in elements)])
    return longest


def _deviation(name: str, wanted: Array, computed: Array, relative: float, steps: float, answer: Answer) -> Deviation:
    if computed.shape != wanted.shape:
        shapes = f"shape {list(computed.shape)} against {list(wanted.shape)} of {answer.source}"
        raise DisagreementError(f"output {name!r}: {shapes} ({answer.hint})")
    exact, ours = (np.asarray(value, np.complex128) for value in (wanted, computed))  # holds every element type
    is_same = (ours == exact) | (np.isnan(ours) & np.isnan(exact))
    with np.errstate(invalid="ignore"):
        errors = np.where(is_same, 0.0, np.abs(ours - exact))
    largest = float(np.max(np.abs(exact), initial=0.0, where=np.isfinite(exact)))
    limit = allowed_error(wanted, relative, steps)
    wrong = ~(errors <= limit)  # NaN is wrong too: it compares as false
    if wrong.any():
        worst = np.unravel_index(int(np.argmax(np.where(np.isnan(errors), np.inf, errors))), errors.shape)
        place = f"[{', '.join(str(int(position)) for position in worst)}]"
        fault = f"{computed[worst]} at {place} against {wanted[worst]} of {answer.source}, tolerance {limit:.3g}"
        raise DisagreementError(f"output {name!r}: {fault} ({answer.hint})")
    absolute = float(np.max(errors, initial=0.0))
    return Deviation(absolute, absolute / largest if largest else absolute)
