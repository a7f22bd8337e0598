"""What RNN, LSTM and GRU share: the product of all inputs with weights, then steps with gates and activations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from dfcompile.lowering import CanonicalFragment, Operator, Reduction, Tensor
from dfcompile.lowering.expansions.elementwise import FORMULAS, Formula
from dfcompile.lowering.expressions import literal, operand_names, substitute, sum_dtype
from dfcompile.lowering.operators import Concat, MatMul

_MOST_OPERATORS = 20_000  # canonical operators of all steps
_MOST_TASKS = 2**18  # of the products of all steps; beyond, `compact` is the default: one task per product
_STEP_OPERATORS = 5  # canonical operators of a step, at most
_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}  # whether each is reversed


# What a step reads of an array: the array; for each of its dimensions, which dimension of the step's
# ``[1, batch, hidden]`` indexes it; and for each of its dimensions, where the part begins.
Part: TypeAlias = tuple[Tensor, tuple[int, ...], tuple[int, ...]]


class Term(Struct, frozen=True, eq=False):
    """An expression of one element of ``[1, batch, hidden]``, and the parts of arrays that its names stand for."""

    expression: str
    parts: Mapping[str, Part] = {}

    @staticmethod
    def of(expression: str, **terms: "Term") -> "Term":
        """Return an expression such as ``reset * old`` with a term in place of each of its names."""
        parts = {name: part for term in terms.values() for name, part in term.parts.items()}
        return Term(substitute(expression, {name: term.expression for name, term in terms.items()}), parts)

    @staticmethod
    def read(
        name: str, tensor: Tensor, axes: tuple[int, ...] = (0, 1, 2), starts: tuple[int, ...] = (0, 0, 0)
    ) -> "Term":
        """Return a name that stands for a part of an array; see `Part`."""
        return Term(name, {name: (tensor, axes, starts)})


class Step(Struct, frozen=True):
    """A step of one direction.

    Attributes:
        position: in the sequence.
        direction: 0, or 1 for the second one.
    """

    position: int
    direction: int

    def name(self, part: str) -> str:
        """Return the name of a part of the step within the operator."""
        return f"{'back_' * self.direction}step{self.position}_{part}"


States: TypeAlias = tuple[Tensor | None, ...]  # each [1, batch, hidden]; None: zero
Cell: TypeAlias = "Callable[[Recurrence, Step, States], States]"


class Kind(Struct, frozen=True):
    """How RNN, LSTM and GRU differ.

    Attributes:
        cell: computes the states after a step from those before; Y has the first of them.
        states: number of states.
        gates: number of gates of a step, each as large as a state.
        activations: names of one direction's activations if the operator names none.
        resets: whether a reset gate scales the state for the last gate, before or after the product with its weights.
    """

    cell: Cell
    states: int
    gates: int
    activations: tuple[str, ...]
    resets: bool = False


def has_many_rows(op: Operator) -> bool:
    """Whether one task per row of the recurrent weights and step would be too many tasks."""
    x, recurrent = op.input(0), op.input(2)
    if (x.rank, recurrent.rank) != (3, 3):
        return False
    steps = x.shape[1 if op.integer("layout", 0) else 0]
    return steps * recurrent.shape[0] * recurrent.shape[1] > _MOST_TASKS


class Recurrence:
    """An operator with the operands X, W, R, B, lengths and initial states: the product of all inputs, then steps.

    Attributes:
        op: the operator.
        directions: 1 or 2.
        hidden: elements of a state.
        functions: per direction its activations, as expressions of ``a``.
        matrices: per direction the recurrent weights ``[rows, hidden]``: one of all gates; two if the last gate
            multiplies a state that is reset before, the second of that gate.
    """

    def __init__(self, op: Operator, build: CanonicalFragment, kind: Kind, *, is_compact: bool) -> None:
        """Add the product of all inputs.

        Args:
            op: the operator.
            build: what to add the steps to.
            kind: which recurrent operator it is.
            is_compact: whether every product of a step is one task.

        Raises:
            UnsupportedOpError: operands contradict each other, or there are too many steps.
        """
        self.op, self._build, self._kind, self._is_compact = op, build, kind, is_compact
        self._is_batch_first = op.integer("layout", 0) != 0
        x, weights, recurrent = (op.input(position) for position in range(3))
        if (x.rank, weights.rank, recurrent.rank) != (3, 3, 3):
            raise op.unsupported("operands X, W and R against three dimensions of each")
        self._batch, self._steps = x.shape[:2] if self._is_batch_first else reversed(x.shape[:2])
        self._reversals = _DIRECTIONS[op.choice("direction", "forward", _DIRECTIONS)]
        self.directions, self.hidden = len(self._reversals), recurrent.shape[2]
        rows = kind.gates * self.hidden
        shapes = {"W": (self.directions, rows, x.shape[2]), "R": (self.directions, rows, self.hidden)}
        for (name, shape), tensor in zip(shapes.items(), (weights, recurrent), strict=True):
            op.refuse_if(tensor.shape != shape, f"operand {name} has shape {list(tensor.shape)} against {list(shape)}")
        if (size := op.integer("hidden_size", self.hidden)) != self.hidden:
            raise op.unsupported(f"attribute 'hidden_size' is {size} against {self.hidden} of operand R")
        if (count := self._steps * self.directions * _STEP_OPERATORS) > _MOST_OPERATORS:
            excess = f"{self._steps} steps become up to {count} operators"
            raise op.unsupported(f"{excess} against at most {_MOST_OPERATORS}")
        op.refuse_if(op.real("clip", 1.0) <= 0, f"attribute 'clip' is {op.real('clip', 1.0)} against a positive number")
        is_after = op.integer("linear_before_reset", 0) != 0
        # A last gate whose state is reset needs its own recurrent bias (reset after the product) or product (before).
        own_bias = kind.gates - 1 if kind.resets and is_after else None
        together = kind.gates - 1 if kind.resets and not is_after else kind.gates
        self._lengths, self._biases = self._given_lengths(), tuple(self._given_biases(own_bias))
        columns = self.directions * rows
        # Products of all inputs with the weights of all gates: [steps, batch, directions * gates * hidden].
        self._inputs = build.array("inputs", (*x.shape[:2], columns), sum_dtype(x.dtype))
        matrix = build.view(weights, "weights", (columns, x.shape[2]))
        build.add(MatMul(transpose_b=True), [x, matrix], self._inputs, step="inputs")
        self.functions = activations_of(op, kind.activations, self.directions)
        groups = [gates for gates in (range(together), range(together, kind.gates)) if gates]
        self.matrices = [[self._matrix(direction, gates) for gates in groups] for direction in range(self.directions)]

    def gate(self, step: Step, gate: int, name: str, product: Tensor | None, row: int) -> Term:
        """Return the sum that goes into a gate: its rows of both products, and its biases.

        Args:
            step: the step.
            gate: its number, in the order of ONNX's weights.
            name: prefix of the names in the expression.
            product: ``[1, batch, rows]`` of the last state with weights; None if the state is zero.
            row: number of the gate among those of the product.
        """
        first, position = (step.direction * self._kind.gates + gate) * self.hidden, step.position
        axes, starts = ((1, 0, 2), (0, position, first)) if self._is_batch_first else ((0, 1, 2), (position, 0, first))
        parts: dict[str, Part] = {f"{name}x": (self._inputs, axes, starts)}
        if product is not None:
            parts[f"{name}h"] = product, (0, 1, 2), (0, 0, row * self.hidden)
        for number, (bias, begins) in enumerate(self._biases):
            begin = begins[gate]
            if begin is not None:
                parts[f"{name}b{number}"] = bias, (0, 2), (step.direction, begin)
        return Term(" + ".join(parts), parts)

    def activated(self, term: Term, function: str) -> Term:
        """Return an activation, an expression of ``a``, of a term, which is clipped before if the operator says so."""
        if "clip" in self.op.attributes:
            bound = literal(self.op.real("clip", 0.0), "float32")
            term = Term.of(f"min({bound}, max(-{bound}, a))", a=term)  # in this order a NaN stays one
        return Term.of(function, a=term)

    def product(self, step: Step, state: Tensor | None, name: str = "product", number: int = 0) -> Tensor | None:
        """Return ``state @ transposed(matrices[number])``, ``[1, batch, rows]``; None for a zero state."""
        if state is None:
            return None
        matrix = self.matrices[step.direction][number]
        rows, hidden = matrix.shape
        label, batch = step.name(name), self._batch
        result = self._build.array(label, (1, batch, rows), sum_dtype(state.dtype))
        if self._is_compact:
            repeated = self._build.view(state, f"{label}_state", (1, batch, 1, hidden))
            self._build.reduce(Reduction.SUM, [repeated, matrix], result, [3], "a * b", step=label)
        else:
            self._build.add(MatMul(transpose_b=True), [state, matrix], result, step=label)
        return result

    def state(self, step: Step, name: str, value: Term, old: Tensor | None) -> Tensor:
        """Return a new state; sequences that are too short for the step keep the old one, or zero."""
        if self._lengths is None:
            return self.computed(step, name, value)
        length = Term.read("length", self._lengths, (1,), (0,))
        kept = Term("0") if old is None else Term.read("old", old)
        source = f"value if length > {step.position} else kept"
        return self.computed(step, name, Term.of(source, value=value, length=length, kept=kept))

    def computed(self, step: Step, name: str, value: Term) -> Tensor:
        """Add the element-wise task of a term and return its array ``[1, batch, hidden]``."""
        names = dict(zip(value.parts, operand_names(len(value.parts)), strict=True))
        tensors, axes, starts = zip(*value.parts.values(), strict=True)
        source, shape = substitute(value.expression, names), (1, self._batch, self.hidden)
        return self._build.computed(step.name(name), source, tensors, shape, axes=axes, starts=starts)

    def _initial(self, position: int, direction: int) -> Tensor | None:
        """Return a direction's initial state from an operand; None if it is zero or omitted."""
        batch, count, hidden = self._batch, self.directions, self.hidden
        given = optional(self.op, position, (batch, count, hidden) if self._is_batch_first else (count, batch, hidden))
        if given is None or (given.value is not None and not np.any(given.value)):
            return None
        if count == 1:
            return self._build.view(given, "initial", (1, batch, hidden))
        read = ("i1", str(direction), "i2") if self._is_batch_first else (str(direction), "i1", "i2")
        return self._build.copied("initial", given, read, (1, batch, hidden), step=f"initial{position}_{direction}")

    def run(self) -> None:
        """Build the steps of every direction, then the results: Y and the last states."""
        outputs: dict[tuple[int, int], Tensor] = {}
        last: list[tuple[Tensor, ...]] = []
        has_outputs, positions = self.op.optional_output(0) is not None, range(self._steps)
        for direction, is_reversed in enumerate(self._reversals):
            current: States = tuple(self._initial(5 + number, direction) for number in range(self._kind.states))
            for position in reversed(positions) if is_reversed else positions:
                step = Step(position, direction)
                current = self._kind.cell(self, step, current)
                if has_outputs and current[0] is not None:
                    # Where a sequence has ended, Y is zero.
                    read, is_whole = Term.read("a", current[0]), self._lengths is None
                    outputs[position, direction] = current[0] if is_whole else self.state(step, "output", read, None)
            last.append(tuple(state for state in current if state is not None))
        if has_outputs:
            self._join(0, [outputs[key] for key in sorted(outputs)])
        for number in range(self._kind.states):
            self._join(1 + number, [of_direction[number] for of_direction in last])

    def _join(self, position: int, parts: Sequence[Tensor]) -> None:
        """Concatenate arrays ``[1, batch, hidden]`` to a result, if it is used."""
        y = self.op.optional_output(position)
        if y is None:
            return
        if len(parts) == 1:
            self._build.view_as(parts[0], y)
            return
        batch, hidden, name = self._batch, self.hidden, f"result{position}"
        axis, shape = 0, (len(parts), batch, hidden)
        if self._is_batch_first:
            parts = [self._build.view(part, f"{name}_part", (batch, 1, hidden)) for part in parts]
            axis, shape = 1, (batch, len(parts), hidden)
        self._build.add_reshaped(Concat(axis), parts, y, name, shape, step=name)

    def _matrix(self, direction: int, gates: range) -> Tensor:
        """Return the recurrent weights of some gates, ``[rows, hidden]``."""
        given, first, rows = self.op.input(2), gates.start * self.hidden, len(gates) * self.hidden
        if given.shape == (1, rows, self.hidden):
            return self._build.view(given, "recurrent", (rows, self.hidden))
        if given.value is not None:
            return self._build.parameter("recurrent", given.value[direction, first : first + rows])
        read, step = (str(direction), f"{first} + i0", "i1"), f"recurrent{direction}_{gates.start}"
        return self._build.copied("recurrent", given, read, (rows, self.hidden), step=step)

    def _given_lengths(self) -> Tensor | None:
        """Return the length of each sequence; None if all are as long as the longest."""
        lengths = optional(self.op, 4, (self._batch,))
        if lengths is None or lengths.value is None:
            return lengths
        known = lengths.value.astype(np.int64)
        if np.any(known < 0) or np.any(known > self._steps):
            raise self.op.unsupported(f"lengths {known.tolist()} against 0 to {self._steps}")
        return None if np.all(known == self._steps) else lengths

    def _given_biases(self, own_bias: int | None) -> Iterator[tuple[Tensor, tuple[int | None, ...]]]:
        """Yield arrays ``[directions, …]`` of biases, and per gate where its bias begins along the second dimension.

        Constant biases are added up beforehand. The recurrent bias of gate ``own_bias`` is omitted: the cell adds it.
        """
        gates, hidden = range(self._kind.gates), self.hidden
        rows = len(gates) * hidden
        given = optional(self.op, 3, (self.directions, 2 * rows))
        if given is None:
            return
        of_inputs = tuple(gate * hidden for gate in gates)
        if given.value is None:
            yield given, of_inputs
            yield given, tuple(None if gate == own_bias else rows + gate * hidden for gate in gates)
            return
        is_added = np.repeat([gate != own_bias for gate in gates], hidden)
        yield self._build.parameter("bias", given.value[:, :rows] + given.value[:, rows:] * is_added), of_inputs


def optional(op: Operator, position: int, shape: Sequence[int]) -> Tensor | None:
    """Return an operand, or None if it is omitted.

    Raises:
        UnsupportedOpError: its shape is not the given one.
    """
    tensor = op.optional_input(position)
    if tensor is not None and tensor.shape != tuple(shape):
        raise op.unsupported(f"operand {position} has shape {list(tensor.shape)} against {list(shape)}")
    return tensor


# Activations that are ONNX operators too, with the same formula; the others exist in recurrent operators alone.
_OPERATORS = ("Elu", "HardSigmoid", "LeakyRelu", "Relu", "Sigmoid", "Softplus", "Softsign", "Tanh", "ThresholdedRelu")
_FORMULAS: Mapping[str, Formula] = {
    **{name.lower(): FORMULAS[name] for name in _OPERATORS},
    "affine": Formula("alpha * a + beta"),
    "scaledtanh": Formula("alpha * tanh(beta * a)"),
}
_PARAMETERS = ("alpha", "beta")


def activations_of(op: Operator, defaults: Sequence[str], directions: int) -> tuple[tuple[str, ...], ...]:
    """Return per direction the activations of a recurrent operator, as expressions of ``a``.

    Attributes activation_alpha and activation_beta list the numbers of those activations that have one, in their order.

    Args:
        op: the operator.
        defaults: names of one direction's activations if the operator names none.
        directions: 1 or 2.

    Raises:
        UnsupportedOpError: an activation is unknown or lacks a number, or numbers are left over.
    """
    names = _names(op, defaults, directions)
    numbers = {name: iter(op.reals(f"activation_{name}", ())) for name in _PARAMETERS}
    functions = tuple(_activation(op, name, numbers) for name in names)
    for name, left in numbers.items():
        if next(left, None) is not None:
            raise op.unsupported(f"attribute 'activation_{name}' has more numbers than {', '.join(names)} take")
    return tuple(functions[first : first + len(defaults)] for first in range(0, len(names), len(defaults)))


def _names(op: Operator, defaults: Sequence[str], directions: int) -> tuple[str, ...]:
    given = op.attributes.get("activations")
    wanted = len(defaults) * directions
    if given is None:
        return (*defaults,) * directions
    names = tuple(name for name in given if isinstance(name, str)) if isinstance(given, list | tuple) else ()
    if op.op_type == "RNN":  # ONNX's own default has two of them, even of one direction
        names = names[:wanted] if len(names) == 2 else names
    op.refuse_if(len(names) != wanted, f"attribute 'activations' is {given!r} against {wanted} names")
    return names


def _activation(op: Operator, name: str, numbers: Mapping[str, Iterator[float]]) -> str:
    formula = _FORMULAS.get(name.lower())
    if formula is None:
        known = ", ".join([*_OPERATORS, "Affine", "ScaledTanh"])
        raise op.unsupported(f"activation {name!r} against one of {known}")
    values = {}
    for parameter in (parameter for parameter in _PARAMETERS if parameter in formula.expression):
        value = next(numbers[parameter], formula.defaults.get(parameter))
        if value is None:
            raise op.unsupported(f"no number in 'activation_{parameter}' for {name}, which has no default")
        values[parameter] = literal(value, "float32")  # ONNX has single precision attributes only
    return substitute(formula.expression, values)
