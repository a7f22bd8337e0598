"""Where onnxruntime's attention in double precision is not one in double precision."""

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.fuzz.comparison import difference
from tests.fuzz.disagreement import Disagreement, KnownDifference
from tests.fuzz.draw import Array
from tests.fuzz.oracle import Session, load


def _is_scaled_in_single_precision(case: Disagreement) -> bool:
    """Return whether onnxruntime says the same where the queries are scaled in double precision before."""
    if any(value.dtype != np.float64 for value in case.expected.values()):
        return False
    queries, attributes = case.node.input[0], {entry.name: entry for entry in case.node.attribute}
    value, heads = case.operands[queries].astype(np.float64), attributes.get("q_num_heads")
    size = value.shape[-1] // (heads.i if heads is not None and value.ndim == 3 else 1)
    scale = attributes["scale"].f if "scale" in attributes else 1 / math.sqrt(size)
    session = load(_with_scale_one(case.model).SerializeToString())
    if not isinstance(session, Session):
        return False
    feeds = {**case.operands, queries: value * scale}
    answer = session.run({name: feeds[name] for name in session.inputs})
    return not answer.refusal and not difference(case.found, answer.results, case.model, case.longest)


def _with_scale_one(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model of a node with the queries as an input, and with a scale of which the root is exact."""
    other = onnx.ModelProto()
    other.CopyFrom(model)
    node, graph = other.graph.node[0], other.graph
    kept = [entry for entry in node.attribute if entry.name != "scale"]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute("scale", 1.0)])
    for constant in [entry for entry in graph.initializer if entry.name == node.input[0]]:
        graph.initializer.remove(constant)
        graph.input.append(helper.make_tensor_value_info(constant.name, constant.data_type, constant.dims))
    return other


def _is_causal_from_the_first_key(case: Disagreement) -> bool:
    """Return whether it is causal over keys in part, and in single precision onnxruntime says what dfcompile does."""
    names = dict(enumerate(case.node.input))
    is_causal = any(entry.name == "is_causal" and entry.i for entry in case.node.attribute)
    if not is_causal or not names.get(_KEYS_THERE) or any(v.dtype != np.float64 for v in case.expected.values()):
        return False
    single = onnx.ModelProto()
    single.CopyFrom(case.model)
    for entry in (*single.graph.input, *single.graph.output):
        if entry.type.tensor_type.elem_type == TensorProto.DOUBLE:
            entry.type.tensor_type.elem_type = TensorProto.FLOAT
    for constant in single.graph.initializer:
        value = numpy_helper.to_array(constant)
        if value.dtype == np.float64:
            constant.CopyFrom(numpy_helper.from_array(value.astype(np.float32), constant.name))
    session = load(single.SerializeToString())
    if not isinstance(session, Session):
        return False
    feeds = {name: _single(case.operands[name]) for name in session.inputs}
    answer = session.run(feeds)
    found = {name: _single(value) for name, value in case.found.items()}
    return not answer.refusal and not difference(found, answer.results, single, case.longest)


def _single(value: Array) -> Array:
    return value.astype(np.float32) if value.dtype == np.float64 else value


_KEYS_THERE = 6  # operand: how many keys of each sequence there are

ATTENTION_DIFFERENCES = (
    KnownDifference(
        "Attention",
        "causal over a part of the keys, in double precision: the last query attends to the last of them; in "
        "onnxruntime the first one to the first, as if all of them were there",
        "onnx.defs: doc of Attention-24, bottom-right causal bias; tests/fuzz/test_attention_differences.py",
        _is_causal_from_the_first_key,
    ),
    KnownDifference(
        "Attention",
        "in double precision onnxruntime takes the scale for the square of a root in single precision",
        "onnx.defs: doc of Attention-23, scale; tests/fuzz/test_attention_differences.py",
        _is_scaled_in_single_precision,
    ),
)
