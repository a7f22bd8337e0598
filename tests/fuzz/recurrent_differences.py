"""Where a recurrent operator of onnxruntime computes otherwise: sequence by sequence, what one of them explains."""

import numpy as np

from tests.fuzz.comparison import Bools, wrong_elements
from tests.fuzz.disagreement import Disagreement, KnownDifference
from tests.fuzz.draw import Array

_UNDEFINED_IS_ZERO = {"hardsigmoid", "relu", "thresholdedrelu"}  # of RNN: a NaN counts as less than every number
_X, _RECURRENT, _STATE, _CELL = 0, 2, 5, 6
_WEIGHTS = (1, 2, 3, 7)
_REAL = (0, 1, 2, 3, 5, 6, 7)


def _only_where_undefined(case: Disagreement) -> bool:
    """Return whether results differ only in sequences that read a NaN or an infinity."""
    differs = _differs(case)
    return differs is not None and not np.any(differs & ~_reads_undefined(case))


def _only_where_undefined_is_zero(case: Disagreement) -> bool:
    """Return whether that holds, of sequences whose activation makes a number of NaN."""
    differs = _differs(case)
    if differs is None:
        return False
    is_zero = [bool(names & _UNDEFINED_IS_ZERO) for names in _activations(case, len(differs))]
    return not np.any(differs & ~(_reads_undefined(case) & np.array(is_zero)[:, np.newaxis]))


def _only_where_zero_is_left_out(case: Disagreement) -> bool:
    """Return whether a state is known to be zero, and only sequences differ that onnxruntime has as NaN of weights."""
    differs = _differs(case)
    constants = {entry.name for entry in case.model.graph.initializer}
    states = [*case.node.input, "", "", ""][_STATE : _CELL + 1 if case.node.op_type == "LSTM" else _CELL]
    if differs is None or not any(not name or (name in constants and not case.operands[name].any()) for name in states):
        return False
    spoilt = np.any([_by_sequence(np.isnan(value)) for value in case.expected.values()], axis=0)
    return not np.any(differs & ~(spoilt & _reads_undefined(case, _WEIGHTS)))


def _only_where_halves_overflow(case: Disagreement) -> bool:
    """Return whether results of half precision differ only in sequences of which dfcompile's are not all finite."""
    differs = _differs(case)
    if differs is None or any(value.dtype != np.float16 for value in case.expected.values()):
        return False
    overflowing = np.any([_by_sequence(~np.isfinite(case.found[name])) for name in case.expected], axis=0)
    return not np.any(differs & ~(overflowing & ~_reads_undefined(case)))


def _only_where_softplus_overflows(case: Disagreement) -> bool:
    """Return whether results differ only in sequences with a Softplus, of which onnxruntime's are not all finite."""
    differs = _differs(case)
    if differs is None:
        return False
    with_softplus = np.array(["softplus" in names for names in _activations(case, len(differs))])
    infinite = np.any([_by_sequence(_is_held(value)) for value in case.expected.values()], axis=0)
    return not np.any(differs & ~(infinite & with_softplus[:, np.newaxis]))


def _is_held(value: Array) -> Bools:
    """Return where a value is not finite, or comes of one that was not before it was held within the finite numbers."""
    return np.asarray(~(np.abs(value) < float(np.finfo(value.dtype.name).max) / 1024))


def _differs(case: Disagreement) -> Bools | None:
    """Return ``[directions, batch]``: which sequences differ; None where that cannot be told."""
    is_batch_first = any(entry.name == "layout" and entry.i for entry in case.node.attribute)
    if is_batch_first or any(case.found[name].shape != value.shape for name, value in case.expected.items()):
        return None
    wrong = [
        _by_sequence(wrong_elements(case.found[name], value, case.model, case.longest))
        for name, value in case.expected.items()
    ]
    return np.asarray(np.any(wrong, axis=0))


def _by_sequence(elements: Bools) -> Bools:
    """Return ``[directions, batch]`` of a last state ``[directions, batch, hidden]``, or of those of all steps."""
    return np.asarray(elements.any(axis=(0, 3) if elements.ndim == 4 else 2))


def _reads_undefined(case: Disagreement, positions: tuple[int, ...] = _REAL) -> Bools:
    """Return ``[directions, batch]``: which sequences read a NaN or an infinity in operands at positions."""
    directions, batch = case.operands[case.node.input[_RECURRENT]].shape[0], case.operands[case.node.input[_X]].shape[1]
    reads = np.zeros((directions, batch), np.bool_)
    for position, name in enumerate(case.node.input):
        if not name or position not in positions:
            continue
        undefined = np.asarray(~np.isfinite(case.operands[name].astype(np.float64)))
        if position == _X:
            reads |= undefined.any(axis=(0, 2))
        elif position in (_STATE, _CELL):
            reads |= undefined.any(axis=2)
        else:
            reads |= np.asarray(undefined.reshape(directions, -1).any(axis=1))[:, np.newaxis]
    return reads


def _activations(case: Disagreement, directions: int) -> list[set[str]]:
    """Return the activations per direction, in lower case; none where the node has the default ones."""
    names = [
        text.decode().lower() for entry in case.node.attribute if entry.name == "activations" for text in entry.strings
    ]
    each = len(names) // directions
    return [set(names[each * at : each * (at + 1)]) for at in range(directions)]


RECURRENT_DIFFERENCES = (
    KnownDifference(
        "GRU LSTM RNN",
        "a state or cell that is known to be zero is left out, whatever the weights; onnxruntime's 0 * inf is NaN",
        "tests/fuzz/test_recurrent_differences.py",
        _only_where_zero_is_left_out,
    ),
    KnownDifference(
        "GRU LSTM",
        "NaN or infinity: onnxruntime holds what goes into a gate within the finite numbers, even without a clip",
        "tests/fuzz/test_recurrent_differences.py",
        _only_where_undefined,
    ),
    KnownDifference(
        "RNN",
        "NaN or infinity: onnxruntime's Relu, HardSigmoid and ThresholdedRelu of NaN are 0 within a recurrence",
        "tests/fuzz/test_recurrent_differences.py",
        _only_where_undefined_is_zero,
    ),
    KnownDifference(
        "GRU LSTM RNN",
        "Softplus within a recurrence: onnxruntime takes log(1 + exp(x)), which is infinite where x is above 88",
        "tests/fuzz/test_recurrent_differences.py",
        _only_where_softplus_overflows,
    ),
    KnownDifference(
        "GRU LSTM RNN",
        "half precision: a state or gate above 65504 is infinite; onnxruntime has single precision within the node",
        "tests/fuzz/test_recurrent_differences.py",
        _only_where_halves_overflow,
    ),
)
