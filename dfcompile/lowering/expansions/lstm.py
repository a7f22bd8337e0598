"""ONNX LSTM: a state and a cell, four gates."""

from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.recurrent import At, Recurrence, States, Term, has_many_rows, optional, recurrence_of
from dfcompile.lowering.expansions.recurrent_activations import activations_of

_INPUT, _OUTPUT, _FORGET, _CELL = range(4)  # as weights are stored
_PEEPHOLES = {_INPUT: 0, _OUTPUT: 1, _FORGET: 2}


@onnx_expansion("LSTM", "steps", default=True)
def steps(op: Operator, build: CanonicalFragment) -> None:
    """``c = f * c + i * g``, ``h = o * tanh(c)``: a product of all inputs, then per step one of the state, two maps."""
    _lstm(op, build, is_compact=False)


@onnx_expansion("LSTM", "compact", default=has_many_rows)
def compact(op: Operator, build: CanonicalFragment) -> None:
    """As ``steps``, but the product of a step is one task: what long sequences and large states need."""
    _lstm(op, build, is_compact=True)


class _Cell(Struct, frozen=True, eq=False):
    """What a step does."""

    recurrence: Recurrence
    matrices: tuple[tuple[Tensor, ...], ...]  # per direction, of all gates
    functions: tuple[tuple[str, ...], ...]
    peepholes: Tensor | None
    is_coupled: bool

    def __call__(self, at: At, states: States) -> States:
        """Return state and cell after a step."""
        recurrence, (old, old_cell), functions = self.recurrence, states, self.functions[at.direction]
        product = recurrence.product(at, old, self.matrices[at.direction][0])
        cell = self._cell(at, product, old_cell)
        gate = recurrence.activated(self._gate(at, _OUTPUT, "o", product, cell), functions[0])
        shown = Term.of(functions[2], a=Term.read("cell", cell))
        return recurrence.state(at, "state", Term.of("gate * shown", gate=gate, shown=shown), old), cell

    def _cell(self, at: At, product: Tensor | None, old: Tensor | None) -> Tensor:
        recurrence, (function, of_cell, _) = self.recurrence, self.functions[at.direction]
        entering = recurrence.activated(self._gate(at, _INPUT, "i", product, old), function)
        candidate = recurrence.activated(recurrence.gate(at, _CELL, "g", product, _CELL), of_cell)
        value = Term.of("entering * candidate", entering=entering, candidate=candidate)
        if old is not None:
            kept = Term(f"1 - ({entering.expression})", {})
            if not self.is_coupled:
                kept = recurrence.activated(self._gate(at, _FORGET, "f", product, old), function)
            value = Term.of("value + kept * cell", value=value, kept=kept, cell=Term.read("cell", old))
        return recurrence.state(at, "cell", value, old)

    def _gate(self, at: At, gate: int, name: str, product: Tensor | None, cell: Tensor | None) -> Term:
        """Return what goes into a gate that sees the cell through its peephole."""
        term = self.recurrence.gate(at, gate, name, product, gate)
        if self.peepholes is None or cell is None:
            return term
        start = _PEEPHOLES[gate] * self.recurrence.extents.hidden
        peephole = Term.read(f"{name}p", self.peepholes, (0, 2), (at.direction, start))
        return Term.of("term + peephole * cell", term=term, peephole=peephole, cell=Term.read("cell", cell))


def _lstm(op: Operator, build: CanonicalFragment, *, is_compact: bool) -> None:
    recurrence = recurrence_of(op, build, 4, is_compact=is_compact)
    e = recurrence.extents
    functions = activations_of(op, ("Sigmoid", "Tanh", "Tanh"), e.directions)
    peepholes = optional(op, 7, (e.directions, 3 * e.hidden))
    is_coupled = op.integer("input_forget", 0) != 0
    recurrence.run(_Cell(recurrence, recurrence.matrices(range(4)), functions, peepholes, is_coupled), 2)
