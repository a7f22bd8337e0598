"""A front end: networks of layers as JSON.

``{"inputs": 2, "layers": [{"weights": [[1, 2], [3, 4]], "activation": "Relu"}]}``
"""

import json
from pathlib import Path

import numpy as np

from dfcompile.errors import UserError
from dfcompile.frontend import FileKind, Model, ReadOptions

ACTIVATIONS = ("Relu", "Sigmoid", "Tanh")


def read_layers(path: Path, options: ReadOptions) -> Model:
    """Return the model: each layer multiplies a row by its weights and applies its activation.

    Raises:
        UserError: the file is no JSON, or no network of layers.
    """
    import onnx  # heavy: only where a file of this kind is read

    from dfcompile.frontend.file_kinds.onnx_file import onnx_model

    inputs, layers = _parsed(path)
    nodes, weights, before = [], [], "x"
    for number, (values, activation) in enumerate(layers):
        weights.append(onnx.numpy_helper.from_array(values, f"w{number}"))
        nodes.append(onnx.helper.make_node("MatMul", [before, f"w{number}"], [f"h{number}"], name=f"layer{number}"))
        before = "y" if number == len(layers) - 1 else f"a{number}"
        nodes.append(onnx.helper.make_node(activation, [f"h{number}"], [before], name=f"activation{number}"))
    float32 = onnx.TensorProto.FLOAT
    x = onnx.helper.make_tensor_value_info("x", float32, [1, inputs])
    y = onnx.helper.make_tensor_value_info("y", float32, [1, layers[-1][0].shape[1]])
    graph = onnx.helper.make_graph(nodes, path.stem, [x], [y], weights)
    opset = onnx.helper.make_opsetid("", 18)
    return onnx_model(path.stem, onnx.helper.make_model(graph, opset_imports=[opset]), options)


def _parsed(path: Path) -> tuple[int, list[tuple[np.ndarray, str]]]:
    """Return the number of inputs, and weights and activation of each layer."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        inputs = int(held["inputs"])
        layers = [(np.array(layer["weights"], np.float32), layer["activation"]) for layer in held["layers"]]
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: found no network of layers: {error}") from error
    expected = inputs
    for number, (weights, activation) in enumerate(layers):
        if weights.ndim != 2 or weights.shape[0] != expected:
            raise UserError(f"{path}: layer {number}: found weights {weights.shape} against {expected} rows")
        if activation not in ACTIVATIONS:
            raise UserError(f"{path}: layer {number}: found activation {activation!r} against {', '.join(ACTIVATIONS)}")
        expected = weights.shape[1]
    if not layers:
        raise UserError(f"{path}: found no layers against at least one")
    return inputs, layers


LAYERS = FileKind(".layers", read_layers)
