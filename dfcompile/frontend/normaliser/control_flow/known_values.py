"""Known values: what a model's constants and static shapes say of a value, node by node."""

import numpy as np
import onnx
from onnx import helper

from dfcompile.frontend.normaliser.fold_limits import CONTRACTIONS, GROWING, RANDOM, TEXTS, may_fold, room_for_folds
from dfcompile.frontend.onnx.draft import Constant, Draft
from dfcompile.frontend.onnx.reference_evaluation import alone, evaluate
from dfcompile.frontend.onnx.shapes import TensorType, infer_types

_SIZES = frozenset(["Shape", "Size"])


class KnownValues:
    """The values of a growing list of nodes; each is computed once."""

    def __init__(self, draft: Draft) -> None:
        self._shell = draft.shell()
        self._known: dict[str, Constant] = dict(draft.constants)
        self._producers: dict[str, onnx.NodeProto] = {}
        self._order: dict[int, int] = {}
        self._types: dict[str, TensorType] = {}
        self._unknown: set[str] = set(draft.input_names)

    def add(self, node: onnx.NodeProto) -> None:
        """Take a node whose operands are there already."""
        self._order[id(node)] = len(self._order)
        self._producers.update((name, node) for name in node.output if name)

    def add_constant(self, name: str, value: Constant) -> None:
        """Take a constant."""
        self._known[name] = value

    def value(self, name: str) -> Constant | None:
        """Return a value; None if it depends on an input, or is too large to be computed before anything else.

        Raises:
            UserError: it depends on constants alone, but an operator cannot be computed.
        """
        waiting = [name]
        while waiting:
            current = waiting[-1]
            if current in self._known or current in self._unknown:
                waiting.pop()
                continue
            producer = self._producers.get(current)
            missing = None if producer is None else self._missing(producer)
            if missing:
                waiting += missing
                continue
            if producer is not None and missing is not None:
                self._compute(producer)
            if current not in self._known:
                self._unknown.add(current)
        return self._known.get(name)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a value, None if it is not known."""
        if name in self._known:
            return self._known[name].shape
        if name and name not in self._types:
            self._types.update(infer_types(self._above(name)))
        found = self._types.get(name)
        return None if found is None else found.known_shape

    def _missing(self, node: onnx.NodeProto) -> list[str] | None:
        """Return the operands of a node that are still to be computed; None if one of them cannot be."""
        if node.op_type in RANDOM:
            return None
        if node.op_type in _SIZES:
            return []
        missing = [operand for operand in node.input if operand and operand not in self._known]
        place = self._order[id(node)]
        for operand in missing:
            producer = self._producers.get(operand)
            if operand in self._unknown or producer is None or self._order[id(producer)] >= place:
                return None
        return missing

    def _compute(self, node: onnx.NodeProto) -> None:
        operands = {operand: self._known[operand] for operand in node.input if operand in self._known}
        if node.op_type in _SIZES:
            shape = self.shape(node.input[0])
            if shape is None:
                return
            operands = {node.input[0]: np.broadcast_to(np.zeros((), np.float32), shape)}
        model = alone(node, operands, self._shell)
        if node.op_type in GROWING | CONTRACTIONS | TEXTS:
            types = infer_types(Draft(model, operands))
            if not may_fold(node, types, operands, room_for_folds(operands)):
                return
        found = evaluate(model, operands, f"node {node.name!r}: {node.op_type} of constants cannot be computed")
        self._known.update(zip(filter(None, node.output), found, strict=True))

    def _above(self, name: str) -> Draft:
        """Return the part of the model that a value depends on."""
        waiting, seen, nodes = [name], {name}, dict[int, onnx.NodeProto]()
        while waiting:
            producer = self._producers.get(waiting.pop())
            if producer is None or id(producer) in nodes:
                continue
            nodes[id(producer)] = producer
            waiting += [operand for operand in producer.input if operand not in seen]
            seen.update(producer.input)
        proto = onnx.ModelProto()
        proto.CopyFrom(self._shell)
        del proto.graph.output[:]
        proto.graph.output.append(helper.make_empty_tensor_value_info(name))
        proto.graph.node.extend(sorted(nodes.values(), key=lambda node: self._order[id(node)]))
        return Draft(proto, {known: value for known, value in self._known.items() if known in seen})
