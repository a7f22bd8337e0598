"""Models and programs of level 0 from ONNX's text form, for tests."""

import numpy as np
import onnx.parser

from dfcompile.frontend import Program, ReadOptions
from dfcompile.frontend.onnx_model import program_of


def model_from_text(graph: str, **parameters: np.ndarray) -> onnx.ModelProto:
    """Return the model of a graph such as ``g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }``."""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {graph}')
    for name, value in parameters.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    return model


def program_from_model(model: onnx.ModelProto) -> Program:
    return program_of("g", model, ReadOptions())


def program_from_text(graph: str, **parameters: np.ndarray) -> Program:
    return program_from_model(model_from_text(graph, **parameters))
