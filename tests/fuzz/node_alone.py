"""A node of a model, run by onnxruntime alone."""

from collections.abc import Mapping
from typing import TypeAlias

import onnx
from onnx import helper

from dfcompile.frontend.onnx.free_name import free_name
from tests.fuzz.draw import Array
from tests.fuzz.oracle import Session, load

_Types: TypeAlias = tuple[tuple[str, str, tuple[int, ...]], ...]


class CannotRunError(Exception):
    """A node does not run alone."""


class Alone:
    """A node of a model as a model of its own: what is a constant stays one.

    Attributes:
        node: of the model.
        operands: names of those that are no constants, each once.
    """

    def __init__(self, model: onnx.ModelProto, node: onnx.NodeProto) -> None:
        self.node = node
        self._model = model
        self._constants = [entry for entry in model.graph.initializer if entry.name in node.input]
        fixed = {"", *(entry.name for entry in self._constants)}
        self.operands = tuple(name for name in dict.fromkeys(node.input) if name not in fixed)
        self._sessions: dict[_Types, Session] = {}

    @property
    def opset(self) -> int:
        """Version of ONNX's operators."""
        return next((entry.version for entry in self._model.opset_import if entry.domain in {"", "ai.onnx"}), 0)

    def run(self, operands: Mapping[str, Array]) -> dict[str, Array]:
        """Return the node's results.

        Raises:
            CannotRunError: onnxruntime refuses it.
        """
        types = tuple((name, operands[name].dtype.name, operands[name].shape) for name in self.operands)
        if types not in self._sessions:
            session = load(self.model(operands).SerializeToString())
            if not isinstance(session, Session):
                raise CannotRunError
            self._sessions[types] = session
        answer = self._sessions[types].run({name: operands[name] for name in self.operands})
        if answer.refusal:
            raise CannotRunError
        return dict(answer.results)

    def model(self, operands: Mapping[str, Array]) -> onnx.ModelProto:
        """Return the model of the node for operands of such types and shapes."""
        inputs = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(operands[name].dtype), operands[name].shape
            )
            for name in self.operands
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in self.node.output if name]
        alone = onnx.ModelProto()
        alone.CopyFrom(self._model)
        alone.graph.CopyFrom(helper.make_graph([self.node], "alone", inputs, outputs, self._constants))
        return alone


def with_every_result(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with copies of all results of its nodes as outputs, behind those that it has, in their order.

    The results themselves are no outputs: a constant that is one is not computed before the model runs.
    """
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    given = {entry.name for entry in model.graph.output}
    taken = {name for node in model.graph.node for name in (*node.input, *node.output)} | given
    for name in shown_results(model):
        copy = free_name(f"{name}.shown", taken)
        shown.graph.node.append(helper.make_node("Identity", [name], [copy]))
        shown.graph.output.append(onnx.ValueInfoProto(name=copy))
    return shown


def shown_results(model: onnx.ModelProto) -> tuple[str, ...]:
    """Return the names of all results of the model's nodes that are no outputs of it."""
    given = {entry.name for entry in model.graph.output}
    return tuple(name for node in model.graph.node for name in node.output if name and name not in given)
