"""Where onnxruntime's attention in double precision is not one in double precision."""

import math

import numpy as np
import onnx
from onnx import helper

from tests.fuzz.comparison import difference
from tests.fuzz.disagreement import Disagreement, KnownDifference
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


ATTENTION_DIFFERENCES = (
    KnownDifference(
        "Attention",
        "in double precision onnxruntime takes the scale for the square of a root in single precision",
        "onnx.defs: doc of Attention-23, scale; tests/fuzz/test_attention_differences.py",
        _is_scaled_in_single_precision,
    ),
)
