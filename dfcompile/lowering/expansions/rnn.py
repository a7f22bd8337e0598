"""ONNX RNN: a state, one gate."""

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.expansions.recurrent import At, States, has_many_rows, recurrence_of
from dfcompile.lowering.expansions.recurrent_activations import activations_of


@onnx_expansion("RNN", "steps", default=True)
def steps(op: Operator, build: CanonicalFragment) -> None:
    """``h = tanh(x @ W + h @ R + b)``: a product of all inputs, then per step one of the state and a map."""
    _rnn(op, build, is_compact=False)


@onnx_expansion("RNN", "compact", default=has_many_rows)
def compact(op: Operator, build: CanonicalFragment) -> None:
    """As ``steps``, but the product of a step is one task: what long sequences and large states need."""
    _rnn(op, build, is_compact=True)


def _rnn(op: Operator, build: CanonicalFragment, *, is_compact: bool) -> None:
    recurrence = recurrence_of(op, build, 1, is_compact=is_compact)
    functions = activations_of(op, ("Tanh",), recurrence.extents.directions)
    matrices = recurrence.matrices(range(1))

    def cell(at: At, states: States) -> States:
        (old,) = states
        (matrix,), (function,) = matrices[at.direction], functions[at.direction]
        product = recurrence.product(at, old, matrix)
        value = recurrence.activated(recurrence.gate(at, 0, "g", product, 0), function)
        return (recurrence.state(at, "state", value, old),)

    recurrence.run(cell, 1)
