"""Constant folding: nodes that depend on constants or static shapes alone are computed once."""

import math
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper

from dfcompile.frontend.draft import Constant, Draft
from dfcompile.frontend.element_type import onnx_type
from dfcompile.frontend.reference_evaluation import evaluate
from dfcompile.frontend.shapes import TensorType, infer_types

_RANDOM = frozenset(
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"]
)
# Nodes whose result may be far larger than their operands; without a known shape they are left alone.
_GROWING = frozenset(["ConstantOfShape", "Expand", "OneHot", "Pad", "Range", "Resize", "Tile"])
_LARGEST_RESULT = 2**26  # elements, unless the operands have as many


def fold_constants(draft: Draft) -> Draft:
    """Return the draft with every node replaced by its value that depends on constants and static shapes alone.

    Folding a Shape makes a Reshape's result known, which makes the next Shape static: hence until nothing changes.
    A node that produces an output of the model stays.

    Raises:
        UserError: ONNX's reference implementation cannot compute a node that is constant.
    """
    while True:
        folded = _fold_once(draft, infer_types(draft))
        if folded is draft:
            return draft
        draft = folded


def _fold_once(draft: Draft, types: Mapping[str, TensorType]) -> Draft:
    constants = dict(draft.constants)
    outputs = frozenset(draft.output_names)
    kept = []
    for node in draft.proto.graph.node:
        values = None if outputs.intersection(node.output) else _value(node, constants, types, draft.proto)
        if values is None:
            kept.append(node)
        else:
            constants.update(values)
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
    if any(name and name not in operands for name in node.input) or not _fits(node, types, operands):
        return None
    return _computed(node, operands, proto)


def _fits(node: onnx.NodeProto, types: Mapping[str, TensorType], operands: Mapping[str, Constant]) -> bool:
    shapes = [types[name].known_shape for name in node.output if name in types]
    if node.op_type in _GROWING and (not shapes or None in shapes):
        return False
    most = max(_LARGEST_RESULT, sum(value.size for value in operands.values()))
    return all(shape is None or math.prod(shape) <= most for shape in shapes)


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
