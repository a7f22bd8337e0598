"""ONNX RNN, LSTM and GRU: a state or two, one to four gates."""

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.recurrent import Kind, Recurrence, States, Step, Term, has_many_rows, optional

_INPUT, _OUTPUT, _FORGET, _CELL = range(4)  # gates of an LSTM, as weights are stored
_PEEPHOLES = {_INPUT: 0, _OUTPUT: 1, _FORGET: 2}
_UPDATE, _RESET, _HIDDEN = range(3)  # gates of a GRU


def _rnn_cell(recurrence: Recurrence, step: Step, states: States) -> States:
    (old,), (function,) = states, recurrence.functions[step.direction]
    value = recurrence.activated(recurrence.gate(step, 0, "g", recurrence.product(step, old), 0), function)
    return (recurrence.state(step, "state", value, old),)


def _lstm_cell(recurrence: Recurrence, step: Step, states: States) -> States:
    """Return state and cell after a step."""
    (old, old_cell), functions = states, recurrence.functions[step.direction]
    product = recurrence.product(step, old)
    entering = recurrence.activated(_seeing_gate(recurrence, step, _INPUT, "i", product, old_cell), functions[0])
    candidate = recurrence.activated(recurrence.gate(step, _CELL, "g", product, _CELL), functions[1])
    value = Term.of("entering * candidate", entering=entering, candidate=candidate)
    if old_cell is not None:
        kept = Term(f"1 - ({entering.expression})")
        if not recurrence.op.integer("input_forget", 0):
            kept = recurrence.activated(_seeing_gate(recurrence, step, _FORGET, "f", product, old_cell), functions[0])
        value = Term.of("value + kept * cell", value=value, kept=kept, cell=Term.read("cell", old_cell))
    cell = recurrence.state(step, "cell", value, old_cell)
    gate = recurrence.activated(_seeing_gate(recurrence, step, _OUTPUT, "o", product, cell), functions[0])
    shown = Term.of(functions[2], a=Term.read("cell", cell))
    return recurrence.state(step, "state", Term.of("gate * shown", gate=gate, shown=shown), old), cell


def _seeing_gate(
    recurrence: Recurrence, step: Step, gate: int, name: str, product: Tensor | None, cell: Tensor | None
) -> Term:
    """Return what goes into a gate that sees the cell through its peephole."""
    term, hidden = recurrence.gate(step, gate, name, product, gate), recurrence.hidden
    peepholes = optional(recurrence.op, 7, (recurrence.directions, 3 * hidden))
    if peepholes is None or cell is None:
        return term
    peephole = Term.read(f"{name}p", peepholes, (0, 2), (step.direction, _PEEPHOLES[gate] * hidden))
    return Term.of("term + peephole * cell", term=term, peephole=peephole, cell=Term.read("cell", cell))


def _gru_cell(recurrence: Recurrence, step: Step, states: States) -> States:
    """Return the state after a step: it is reset before it is multiplied with the weights, or after that."""
    (old,), (function, of_hidden) = states, recurrence.functions[step.direction]
    product = recurrence.product(step, old)
    update = recurrence.activated(recurrence.gate(step, _UPDATE, "z", product, _UPDATE), function)
    reset = recurrence.activated(recurrence.gate(step, _RESET, "r", product, _RESET), function)
    if len(recurrence.matrices[step.direction]) == 1:
        hidden = _reset_after(recurrence, step, product, reset)
    else:
        product = None
        if old is not None:
            rest = recurrence.computed(step, "reset", Term.of("reset * old", reset=reset, old=Term.read("old", old)))
            product = recurrence.product(step, rest, "hidden", 1)
        hidden = recurrence.gate(step, _HIDDEN, "g", product, 0)
    value = Term.of("(1 - update) * hidden", update=update, hidden=recurrence.activated(hidden, of_hidden))
    if old is not None:
        value = Term.of("value + update * old", value=value, update=update, old=Term.read("old", old))
    return (recurrence.state(step, "state", value, old),)


def _reset_after(recurrence: Recurrence, step: Step, product: Tensor | None, reset: Term) -> Term:
    term, hidden = recurrence.gate(step, _HIDDEN, "g", None, 0), recurrence.hidden
    recurrent = dict[str, Term]()
    if product is not None:
        recurrent["gh"] = Term.read("gh", product, starts=(0, 0, _HIDDEN * hidden))
    bias = recurrence.op.optional_input(3)
    if bias is not None:
        recurrent["gr"] = Term.read("gr", bias, (0, 2), (step.direction, (3 + _HIDDEN) * hidden))
    if not recurrent:
        return term
    return Term.of(f"term + reset * ({' + '.join(recurrent)})", term=term, reset=reset, **recurrent)


_KINDS = {
    "RNN": Kind(_rnn_cell, 1, 1, ("Tanh",)),
    "LSTM": Kind(_lstm_cell, 2, 4, ("Sigmoid", "Tanh", "Tanh")),
    "GRU": Kind(_gru_cell, 1, 3, ("Sigmoid", "Tanh"), resets=True),
}


@onnx_expansion("RNN", "steps", default=True)
def rnn(op: Operator, build: CanonicalFragment) -> None:
    """``h = tanh(x @ W + h @ R + b)``: a product of all inputs, then per step one of the state and a map."""
    Recurrence(op, build, _KINDS["RNN"], is_compact=False).run()


@onnx_expansion("LSTM", "steps", default=True)
def lstm(op: Operator, build: CanonicalFragment) -> None:
    """``c = f * c + i * g``, ``h = o * tanh(c)``: a product of all inputs, then per step one of the state, two maps."""
    Recurrence(op, build, _KINDS["LSTM"], is_compact=False).run()


@onnx_expansion("GRU", "steps", default=True)
def gru(op: Operator, build: CanonicalFragment) -> None:
    """``h = (1 - z) * g + z * h``: a product of all inputs, then per step one or two of the state and as many maps."""
    Recurrence(op, build, _KINDS["GRU"], is_compact=False).run()


def compact(op: Operator, build: CanonicalFragment) -> None:
    """As ``steps``, but the product of a step is one task: what long sequences and large states need."""
    Recurrence(op, build, _KINDS[op.op_type], is_compact=True).run()


COMPACT = tuple(onnx_expansion(op_type, "compact", default=has_many_rows)(compact) for op_type in ("RNN", "LSTM"))


@onnx_expansion("GRU", "compact", default=has_many_rows)
def compact_gru(op: Operator, build: CanonicalFragment) -> None:
    """As ``steps``, but every product of a step is one task: what long sequences and large states need."""
    compact(op, build)
