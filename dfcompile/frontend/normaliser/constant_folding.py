"""Constant folding: nodes that depend on constants or static shapes alone are computed once."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

from dfcompile.frontend.draft import Constant, Draft
from dfcompile.frontend.element_type import onnx_type
from dfcompile.frontend.normaliser.fold_limits import may_fold, room_for_folds
from dfcompile.frontend.reference_evaluation import evaluate
from dfcompile.frontend.shapes import TensorType, infer_types

_RANDOM = frozenset(
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"]
)


def fold_constants(draft: Draft) -> Draft:
    """Return the draft with every node replaced by its value that depends on constants and static shapes alone.

    Folding a Shape makes a Reshape's result known, which makes the next Shape static: hence until nothing changes.
    A node that produces an output of the model stays.

    Raises:
        UserError: ONNX's reference implementation cannot compute a node that is constant.
    """
    room_bytes = room_for_folds(draft.constants) + _size_bytes(draft.constants)
    while True:
        folded = _fold_once(draft, infer_types(draft), room_bytes - _size_bytes(draft.constants))
        if folded is draft:
            return draft
        draft = folded


def _fold_once(draft: Draft, types: Mapping[str, TensorType], room_bytes: int) -> Draft:
    constants = dict(draft.constants)
    outputs = frozenset(draft.output_names)
    kept = []
    for node in draft.proto.graph.node:
        known = {name: constants[name] for name in node.input if name in constants}
        may = not outputs.intersection(node.output) and may_fold(node, types, known, room_bytes)
        values = _value(node, constants, types, draft.proto) if may else None
        if values is None:
            kept.append(node)
        else:
            constants.update(values)
            room_bytes -= _size_bytes(values)
    return draft if len(kept) == len(draft.proto.graph.node) else draft.replaced(kept, constants)


def _value(
    node: onnx.NodeProto,
    constants: Mapping[str, Constant],
    types: Mapping[str, TensorType],
    proto: onnx.ModelProto,
) -> Mapping[str, Constant] | None:
    if node.op_type in _RANDOM:
        return None
    if node.op_type in {"Shape", "Size"}:
        known = types.get(node.input[0])
        if known is None or known.known_shape is None:
            return None
        # Only the shape counts: a view of one element has it without the memory.
        stand_in = np.broadcast_to(np.zeros((), dtype=known.dtype), known.known_shape)
        return _computed(node, {node.input[0]: stand_in}, proto)
    operands = {name: constants[name] for name in node.input if name in constants}
    if node.op_type == "CastLike" and node.input[1] in types:  # only the type of its second operand counts
        operands[node.input[1]] = np.zeros((), dtype=types[node.input[1]].dtype)
    if any(name and name not in operands for name in node.input):
        return None
    return _computed(node, operands, proto)


def _size_bytes(constants: Mapping[str, Constant]) -> int:
    return sum(value.nbytes for value in constants.values())


def _computed(node: onnx.NodeProto, operands: Mapping[str, Constant], proto: onnx.ModelProto) -> Mapping[str, Constant]:
    results = [name for name in node.output if name]
    inputs = [
        helper.make_tensor_value_info(name, onnx_type(str(value.dtype)), value.shape)
        for name, value in operands.items()
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    model = helper.make_model(
        helper.make_graph([node], "constant", inputs, outputs),
        opset_imports=list(proto.opset_import),
        ir_version=proto.ir_version,
    )
    computed = evaluate(model, operands, f"node {node.name!r}: {node.op_type} of constants: cannot be computed")
    values = {}
    for name, result in zip(results, computed, strict=True):
        value = np.array(result)
        value.flags.writeable = False
        values[name] = value
    return values
