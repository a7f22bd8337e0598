"""onnxruntime: runs a model; the one file that imports it, since it is optional."""

import importlib.util
import os
from functools import cache

import numpy as np
import onnx
from onnx import parser

from dfcompile.frontend.onnx.draft import Constant, Constants
from dfcompile.frontend.onnx.exact_products import has_products, with_unsigned_operands

_ERRORS_ONLY = 4  # severity of the log lines that are printed: fatal ones


# onnxruntime refuses files of a newer form than it knows; what is new in them is not about tensors and operators.
_FORM = 10


def is_installed() -> bool:
    """Whether onnxruntime can be imported."""
    return importlib.util.find_spec("onnxruntime") is not None


def evaluated(model: onnx.ModelProto, feeds: Constants) -> tuple[str, tuple[Constant, ...]] | None:
    """Return who computed, and the outputs of a model in its order; None if onnxruntime cannot run the model.

    Nothing is fused or reordered, one thread computes, and products of integers are exact, so that a result depends on
    the model and the inputs alone, not on the processor.

    Args:
        model: that passed dfcompile's own checks: onnxruntime ends the process over some that do not.
        feeds: its inputs by name.
    """
    try:
        return _evaluated(exactly_multiplied(model), feeds)
    except ValueError:  # the model is larger than the 2 GB of a protobuf message
        return None


def exactly_multiplied(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model of the same results whose products of integers onnxruntime computes exactly on this processor."""
    return with_unsigned_operands(model) if has_products(model) and products_saturate() else model


@cache
def products_saturate() -> bool:
    """Whether onnxruntime lets sums of uint8 times int8 saturate here: it does on x86-64 without VNNI."""
    left, right = np.full((2, 8), 255, np.uint8), np.full((8, 2), 127, np.int8)
    probe = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> probe (uint8[2, 8] a, int8[8, 2] b) => (int32[2, 2] y)'
        "{ y = MatMulInteger(a, b) }"
    )
    answer = _evaluated(probe, {"a": left, "b": right})
    return answer is not None and not np.array_equal(answer[1][0], left.astype(np.int32) @ right.astype(np.int32))


def _evaluated(model: onnx.ModelProto, feeds: Constants) -> tuple[str, tuple[Constant, ...]] | None:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when it is imported: else it writes files and sends events
    import onnxruntime
    from onnxruntime.capi import onnxruntime_pybind11_state as states

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    try:
        session = onnxruntime.InferenceSession(
            _serialised(model), options, providers=["CPUExecutionProvider"]
        )  # fmt: skip
        outputs = session.run(None, dict(feeds))
    except (
        states.EPFail,
        states.Fail,
        states.InvalidArgument,
        states.InvalidGraph,
        states.InvalidProtobuf,
        states.NotImplemented,
        states.RuntimeException,
    ):
        return None
    return f"onnxruntime {onnxruntime.__version__}", tuple(np.asarray(output) for output in outputs)


def _serialised(model: onnx.ModelProto) -> bytes:
    found: bytes = model.SerializeToString()
    if model.ir_version > _FORM:
        # Of a field that stands twice, protobuf takes the last: so no weight is copied.
        found += onnx.ModelProto(ir_version=_FORM).SerializeToString()
    return found
