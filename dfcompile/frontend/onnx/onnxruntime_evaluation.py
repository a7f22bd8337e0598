"""onnxruntime: runs a model; the one file that imports it, since it is optional."""

import importlib.util
import os
from collections.abc import Mapping

import numpy as np
import onnx

from dfcompile.frontend.onnx.draft import Constant

_ERRORS_ONLY = 4  # severity of the log lines that are printed: fatal ones


# onnxruntime refuses files of a newer form than it knows; what is new in them is not about tensors and operators.
_FORM = 10


def is_installed() -> bool:
    """Whether onnxruntime can be imported."""
    return importlib.util.find_spec("onnxruntime") is not None


def evaluated(model: onnx.ModelProto, feeds: Mapping[str, Constant]) -> tuple[str, tuple[Constant, ...]] | None:
    """Return who computed, and the outputs of a model in its order; None if onnxruntime cannot run the model.

    Nothing is fused or reordered and one thread computes, so that a result depends on the model and the inputs alone.

    Args:
        model: that passed dfcompile's own checks: onnxruntime ends the process over some that do not.
        feeds: its inputs by name.
    """
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
        ValueError,  # the model is larger than the 2 GB of a protobuf message
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
