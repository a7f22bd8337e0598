"""ONNX GRU: a state, three gates."""

from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.recurrent import At, Recurrence, States, Term, has_many_rows, recurrence_of
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
    """What a step does: the state is reset before it is multiplied with the weights, or after that."""

    recurrence: Recurrence
    matrices: tuple[
        tuple[Tensor, ...], ...
    ]  # per direction, of all gates, or of those that see the whole state and rest
    functions: tuple[tuple[str, ...], ...]

    def __call__(self, at: At, states: States) -> States:
        """Return the state after a step."""
        recurrence, (old,), matrices = self.recurrence, states, self.matrices[at.direction]
        function, of_hidden = self.functions[at.direction]
        product = recurrence.product(at, old, matrices[0])
        update = recurrence.activated(recurrence.gate(at, _UPDATE, "z", product, _UPDATE), function)
        reset = recurrence.activated(recurrence.gate(at, _RESET, "r", product, _RESET), function)
        hidden = self._reset_after(at, product, reset) if len(matrices) == 1 else self._reset_before(at, old, reset)
        value = Term.of("(1 - update) * hidden", update=update, hidden=recurrence.activated(hidden, of_hidden))
        if old is not None:
            value = Term.of("value + update * old", value=value, update=update, old=Term.read("old", old))
        return (recurrence.state(at, "state", value, old),)

    def _reset_before(self, at: At, old: Tensor | None, reset: Term) -> Term:
        recurrence, product = self.recurrence, None
        if old is not None:
            rest = recurrence.computed(at, "reset", Term.of("reset * old", reset=reset, old=Term.read("old", old)))
            product = recurrence.product(at, rest, self.matrices[at.direction][1], "hidden")
        return recurrence.gate(at, _HIDDEN, "g", product, 0)

    def _reset_after(self, at: At, product: Tensor | None, reset: Term) -> Term:
        recurrence, hidden = self.recurrence, self.recurrence.extents.hidden
        term = recurrence.gate(at, _HIDDEN, "g", None, 0)
        recurrent = dict[str, Term]()
        if product is not None:
            recurrent["gh"] = Term.read("gh", product, starts=(0, 0, _HIDDEN * hidden))
        bias = recurrence.op.optional_input(3)
        if bias is not None:
            recurrent["gr"] = Term.read("gr", bias, (0, 2), (at.direction, (3 + _HIDDEN) * hidden))
        if not recurrent:
            return term
        return Term.of(f"term + reset * ({' + '.join(recurrent)})", term=term, reset=reset, **recurrent)


def _gru(op: Operator, build: CanonicalFragment, *, is_compact: bool) -> None:
    is_after = op.integer("linear_before_reset", 0) != 0
    separate = frozenset([_HIDDEN] if is_after else ())
    recurrence = recurrence_of(op, build, 3, is_compact=is_compact, separate=separate)
    functions = activations_of(op, ("Sigmoid", "Tanh"), recurrence.extents.directions)
    matrices = recurrence.matrices(range(3)) if is_after else recurrence.matrices(range(2), range(2, 3))
    recurrence.run(_Cell(recurrence, matrices, functions), 1)
