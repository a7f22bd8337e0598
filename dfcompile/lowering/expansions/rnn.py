"""ONNX RNN: a state, one gate."""

from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.recurrent import At, Recurrence, States, has_many_rows, recurrence_of
from dfcompile.lowering.expansions.recurrent_activations import activations_of


@onnx_expansion("RNN", "steps", default=True)
def steps(op: Operator, build: CanonicalFragment) -> None:
    """``h = tanh(x @ W + h @ R + b)``: a product of all inputs, then per step one of the state and a map."""
    _rnn(op, build, is_compact=False)


@onnx_expansion("RNN", "compact", default=has_many_rows)
def compact(op: Operator, build: CanonicalFragment) -> None:
    """As ``steps``, but the product of a step is one task: what long sequences and large states need."""
    _rnn(op, build, is_compact=True)


class _Cell(Struct, frozen=True, eq=False):
    """What a step of one direction does."""

    recurrence: Recurrence
    matrix: Tensor
    function: str

    def __call__(self, at: At, states: States) -> States:
        """Return the state after a step."""
        recurrence, (old,) = self.recurrence, states
        product = None if old is None else recurrence.product(at, old, self.matrix)
        value = recurrence.activated(recurrence.gate(at, 0, "g", product, 0), self.function)
        return (recurrence.state(at, "state", value, old),)


def _rnn(op: Operator, build: CanonicalFragment, *, is_compact: bool) -> None:
    recurrence = recurrence_of(op, build, 1, is_compact=is_compact)
    directions = recurrence.extents.directions
    functions = activations_of(op, ("Tanh",), directions)
    cells = [
        _Cell(recurrence, recurrence.matrix(direction, range(1)), functions[direction][0])
        for direction in range(directions)
    ]
    recurrence.run(cells, 1)
