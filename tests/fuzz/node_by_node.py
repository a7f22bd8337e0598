"""Which nodes of a model differ: each by itself, of the operands that dfcompile computes before it."""

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import onnx
from onnx import numpy_helper

from dfcompile.errors import UserError
from dfcompile.frontend import Program
from tests.fuzz.comparison import LONGEST, Bools, difference
from tests.fuzz.draw import Array
from tests.fuzz.known_differences import known_reason
from tests.fuzz.node_alone import Alone, CannotRunError, shown_results, with_every_result
from tests.fuzz.oracle import Session, load
from tests.fuzz.sensitivity import rounded
from tests.interpreter import interpret


def reason_node_by_node(
    model: onnx.ModelProto,
    feeds: Mapping[str, Array],
    found: Mapping[str, Array],
    lowered: Callable[[onnx.ModelProto], Program],
    longest: int = LONGEST,
) -> str:
    """Return the listed reason why a node differs, if there is one and no other node differs; else nothing.

    What follows from a listed difference, such as a comparison with a NaN, is thus told from another one. A node that
    onnxruntime refuses of those operands (integers divided by a zero that it has not) is compared on its own ones.

    Args:
        model: the original.
        feeds: its inputs by name.
        found: dfcompile's results of the model.
        lowered: gives the program of a model.
        longest: elements of the largest operand of the model; a sum may have as many terms.
    """
    try:
        known = _every_value(model, feeds, lowered)
        if difference(
            found, {name: known[name] for name in found}, model, longest
        ):  # it computes otherwise where all results are outputs
            return ""
        others = _Others(model, feeds, lowered)
        reasons = [_reason_or_others(Alone(model, node), known, others, longest) for node in model.graph.node]
    except (CannotRunError, UserError):
        return ""
    different = [reason for reason in reasons if reason is not None]
    return "; ".join(dict.fromkeys(filter(None, different))) if all(different) else ""


def _every_value(
    model: onnx.ModelProto, feeds: Mapping[str, Array], lowered: Callable[[onnx.ModelProto], Program]
) -> dict[str, Array]:
    """Return the values of a model by name: inputs, constants, and what dfcompile makes of them."""
    shown = with_every_result(model)
    program = lowered(shown)
    results = interpret(program, feeds)
    names = [*(entry.name for entry in model.graph.output), *shown_results(model)]
    empty: dict[str, Array] = {}
    if len(names) != len(program.outputs):  # a program has no outputs without elements
        empty = {
            name: value for name, value in _values(model, shown, feeds).items() if name in names and not value.size
        }
    kept = [name for name in names if name not in empty]
    if len(kept) != len(program.outputs):
        raise CannotRunError
    outputs = {name: results[port.name] for name, port in zip(kept, program.outputs, strict=True)}
    return {**_constants(model), **feeds, **outputs, **empty}


def _values(model: onnx.ModelProto, shown: onnx.ModelProto, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Return onnxruntime's values of a model by name: inputs, constants, results of nodes.

    Args:
        model: the original.
        shown: the same with all results of its nodes as outputs.
        feeds: inputs by name.

    Raises:
        CannotRunError: onnxruntime refuses it.
    """
    session = load(shown.SerializeToString())
    answer = session.run({name: feeds[name] for name in session.inputs}) if isinstance(session, Session) else session
    if answer.refusal:
        raise CannotRunError
    given = tuple(entry.name for entry in model.graph.output)
    outputs = dict(zip((*given, *shown_results(model)), answer.results.values(), strict=True))
    return {**_constants(model), **feeds, **outputs}


def _constants(model: onnx.ModelProto) -> dict[str, Array]:
    return {entry.name: np.asarray(numpy_helper.to_array(entry)) for entry in model.graph.initializer}


class _Others:
    """What onnxruntime makes of a model: computed where it is asked for."""

    def __init__(
        self, model: onnx.ModelProto, feeds: Mapping[str, Array], lowered: Callable[[onnx.ModelProto], Program]
    ) -> None:
        self._model, self._feeds, self._lowered = model, feeds, lowered

    @cached_property
    def values(self) -> dict[str, Array]:
        """Its values by name: inputs, constants, results of nodes.

        Raises:
            CannotRunError: it refuses the model with all its results as outputs.
        """
        return _values(self._model, with_every_result(self._model), self._feeds)

    def lowered(self, alone: Alone) -> dict[str, Array]:
        """Return what dfcompile makes of a node, of onnxruntime's operands."""
        model = alone.model(self.values)
        program = self._lowered(model)
        results = interpret(program, {name: self.values[name] for name in alone.operands})
        names = (entry.name for entry in model.graph.output)
        return {name: results[port.name] for name, port in zip(names, program.outputs, strict=True)}


def _reason_or_others(alone: Alone, known: Mapping[str, Array], others: _Others, longest: int) -> str | None:
    """Return why a node differs: of dfcompile's operands, or of onnxruntime's if it refuses those."""
    try:
        return _reason(alone, known, longest)
    except CannotRunError:
        return _reason(alone, {**others.values, **others.lowered(alone)}, longest)


def _reason(alone: Alone, known: Mapping[str, Array], longest: int) -> str | None:
    """Return why a node differs: nothing if that is not listed, None if it does not differ by more than rounding."""
    operands = {name: known[name] for name in alone.node.input if name in known}
    expected = alone.run(operands)
    found = {name: known[name] for name in expected}
    model = alone.model(operands)
    longest = max([longest] + [value.size for value in operands.values()])
    if not difference(found, expected, model, longest):
        return None
    feeds = {name: known[name] for name in alone.operands}
    reason = known_reason(model, operands, found, expected, longest)
    if reason:
        return reason
    explained = rounded(model, feeds, found, expected, longest)
    if all(elements.all() for elements in explained.values()):
        return None
    # A listed difference of some elements may stand beside rounding of others.
    others = {name: _with(value, expected[name], explained[name]) for name, value in found.items()}
    return known_reason(model, operands, others, expected, longest)


def _with(value: Array, other: Array, elements: Bools) -> Array:
    """Return a value with some elements of another one."""
    return np.where(elements, other, value) if value.shape == other.shape else value
