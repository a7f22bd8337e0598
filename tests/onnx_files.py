"""ONNX files for tests, made without PyTorch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save_convolution(
    path: Path,
    *,
    shape: Sequence[int | str] = (1, 1, 28, 28),
    filters: Sequence[int] = (6, 1, 5, 5),
    op_type: str = "Conv",
) -> Path:
    """Save ``y = op_type(x, w, b)``; by default LeNet's first convolution, operator ``conv1``."""
    generator = np.random.default_rng(0)
    weights = numpy_helper.from_array(generator.standard_normal(tuple(filters)).astype(np.float32), "w")
    bias = numpy_helper.from_array(generator.standard_normal(filters[0]).astype(np.float32), "b")
    graph = helper.make_graph(
        [helper.make_node(op_type, ["x", "w", "b"], ["y"], name="conv1")],
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [weights, bias],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return path
