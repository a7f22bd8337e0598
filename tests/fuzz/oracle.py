"""onnxruntime, which says what a model computes; without optimisations, in one thread."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import ml_dtypes  # noqa: F401  # numpy then knows its types by name
import numpy as np
import onnx

from dfcompile.frontend.onnx import onnxruntime_evaluation
from tests.fuzz.draw import Array

if TYPE_CHECKING:
    import onnxruntime

_NUMPY_TYPES = {"tensor(float)": "float32", "tensor(double)": "float64"}
_CODED = {"tensor(float8e4m3fn)": "float8_e4m3fn"}


@dataclass(frozen=True, slots=True)
class Answer:
    """Results by name, or why there are none."""

    results: Mapping[str, Array]
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Session:
    """A model that onnxruntime has taken."""

    session: onnxruntime.InferenceSession

    @property
    def inputs(self) -> dict[str, tuple[str, list[object]]]:
        """Data type and shape of each input."""
        return {
            port.name: (_NUMPY_TYPES.get(port.type, port.type.removeprefix("tensor(").rstrip(")")), list(port.shape))
            for port in self.session.get_inputs()
        }

    def run(self, feeds: Mapping[str, Array]) -> Answer:
        ports = self.session.get_outputs()
        try:
            found = self.session.run([port.name for port in ports], dict(feeds))
        except Exception as error:  # noqa: BLE001  # its exceptions have no common base
            return Answer({}, _one_line(error))
        return Answer({port.name: _typed(value, port.type) for port, value in zip(ports, found, strict=True)})


def _typed(value: Array, onnx_name: str) -> Array:
    """Return a result in its own type: numbers of 8 bits come as their codes."""
    return np.asarray(value).view(_CODED[onnx_name]) if onnx_name in _CODED else np.asarray(value)


def load(model: bytes) -> Session | Answer:
    """Return the model as onnxruntime takes it, or its refusal."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # read when it is imported: else it writes files and sends events
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4
    try:
        exact = onnxruntime_evaluation.exactly_multiplied(onnx.ModelProto.FromString(model)).SerializeToString()
        return Session(onnxruntime.InferenceSession(exact, options, providers=["CPUExecutionProvider"]))
    except Exception as error:  # noqa: BLE001  # its exceptions have no common base
        return Answer({}, _one_line(error))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:400]
