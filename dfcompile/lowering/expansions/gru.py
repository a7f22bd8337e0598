"""ONNX GRU: a state, three gates."""

from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.recurrent import (
    At,
    Part,
    Recurrence,
    States,
    Term,
    has_many_rows,
    recurrence_of,
)
from dfcompile.lowering.expansions.recurrent_activations import activations_of

_UPDATE, _RESET, _HIDDEN = range(3)  # as weights are stored


@onnx_expansion("GRU", "steps", default=True)
def steps(op: Operator, build: CanonicalFragment) -> None:
    """``h = (1 - z) * g + z * h``: a product of all inputs, then per step one or two of the state and as many maps."""
    _gru(op, build, is_compact=False)


@onnx_expansion("GRU", "compact", default=has_many_rows)
def compact(op: Operator, build: CanonicalFragment) -> None:
    """As ``steps``, but every product of a step is one task: what long sequences and large states need."""
    _gru(op, build, is_compact=True)


class _Cell(Struct, frozen=True, eq=False):
    """What a step of one direction does: the state is reset before it is multiplied with the weights, or after that."""

    recurrence: Recurrence
    matrices: tuple[Tensor, ...]  # of all gates, or of those that see the whole state and of the one that sees the rest
    functions: tuple[str, ...]

    def __call__(self, at: At, states: States) -> States:
        """Return the state after a step."""
        recurrence, (old,) = self.recurrence, states
        function, of_hidden = self.functions
        product = None if old is None else recurrence.product(at, old, self.matrices[0])
        update = recurrence.activated(recurrence.gate(at, _UPDATE, "z", product, _UPDATE), function)
        reset = recurrence.activated(recurrence.gate(at, _RESET, "r", product, _RESET), function)
        if len(self.matrices) == 1:
            hidden = self._reset_after(at, product, reset)
        else:
            hidden = self._reset_before(at, old, reset)
        hidden = recurrence.activated(hidden, of_hidden)
        value = Term(f"(1 - ({update.expression})) * ({hidden.expression})", {**update.parts, **hidden.parts})
        if old is not None:
            value = value.plus(f"({update.expression}) * old", {"old": Part(old)})
        return (recurrence.state(at, "state", value, old),)

    def _reset_before(self, at: At, old: Tensor | None, reset: Term) -> Term:
        recurrence, product = self.recurrence, None
        if old is not None:
            value = Term(f"({reset.expression}) * old", {**reset.parts, "old": Part(old)})
            rest = recurrence.computed(at, "reset", value)
            product = recurrence.product(at, rest, self.matrices[1], "hidden")
        return recurrence.gate(at, _HIDDEN, "g", product, 0)

    def _reset_after(self, at: At, product: Tensor | None, reset: Term) -> Term:
        recurrence, hidden = self.recurrence, self.recurrence.extents.hidden
        term = recurrence.gate(at, _HIDDEN, "g", None, 0)
        parts = {}
        if product is not None:
            parts["gh"] = Part(product, starts=(0, 0, _HIDDEN * hidden))
        bias = recurrence.op.optional_input(3)
        if bias is not None:
            parts["gr"] = Part(bias, (0, 2), (at.direction, (3 + _HIDDEN) * hidden))
        if not parts:
            return term
        return term.plus(f"({reset.expression}) * ({' + '.join(parts)})", {**reset.parts, **parts})


def _gru(op: Operator, build: CanonicalFragment, *, is_compact: bool) -> None:
    is_after = op.integer("linear_before_reset", 0) != 0
    separate = frozenset([_HIDDEN] if is_after else ())
    recurrence = recurrence_of(op, build, 3, is_compact=is_compact, separate=separate)
    directions = recurrence.extents.directions
    functions = activations_of(op, ("Sigmoid", "Tanh"), directions)
    gates = (range(3),) if is_after else (range(2), range(2, 3))
    cells = [
        _Cell(recurrence, tuple(recurrence.matrix(direction, some) for some in gates), functions[direction])
        for direction in range(directions)
    ]
    recurrence.run(cells, 1)
