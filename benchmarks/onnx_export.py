"""Exports a model to ONNX as its user would: ``python -m benchmarks.onnx_export MODEL TARGET [FORM]``.

A form is an exporter and an operator set (``dynamo-18``, ``legacy-17``), an element type (``float16``, ``bfloat16``) or
a way in which onnxruntime quantises what the legacy exporter wrote: ``qdq`` and ``qlinear`` with scales found on random
inputs, ``dynamic`` with scales that the model computes.
"""

import importlib.util
import logging
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

if TYPE_CHECKING:
    import torch

SEED = 0
CALIBRATIONS = 4
QUANTISED = ("qdq", "qlinear", "dynamic")
ELEMENT_TYPES = ("float16", "bfloat16")


def export(model: Path, target: Path, form: str = "dynamo-18") -> None:
    """Write the model that a Python file defines, in a form."""
    network, inputs = defined(model)
    if form in QUANTISED:
        with tempfile.TemporaryDirectory() as folder:
            whole = Path(folder) / "whole.onnx"
            write(network, inputs, whole, "legacy", 17)
            quantise(whole, target, form)
    elif form in ELEMENT_TYPES:
        import torch

        dtype = cast("torch.dtype", getattr(torch, form))
        cast_inputs = tuple(value.to(dtype) if value.is_floating_point() else value for value in inputs)
        # PyTorch folds batch norms into convolutions with weights of float32, which is no valid model of bfloat16.
        write(network.to(dtype), cast_inputs, target, "dynamo", 23, optimised=form != "bfloat16")
    else:
        exporter, opset = form.split("-")
        write(network, inputs, target, exporter, int(opset))


def defined(model: Path) -> "tuple[torch.nn.Module, tuple[torch.Tensor, ...]]":
    """Return the network of a model file in inference mode, and its example inputs."""
    import torch

    spec = importlib.util.spec_from_file_location("model", model)
    assert spec is not None
    assert spec.loader is not None
    sys.path.insert(0, str(model.resolve().parent))  # a model file may import its neighbours
    module = importlib.util.module_from_spec(spec)
    torch.manual_seed(SEED)
    spec.loader.exec_module(module)
    inputs = module.example_inputs()
    return module.model().eval(), inputs if isinstance(inputs, tuple) else (inputs,)


def write(
    network: "torch.nn.Module",
    inputs: "tuple[torch.Tensor, ...]",
    target: Path,
    exporter: str,
    opset: int,
    *,
    optimised: bool = True,
) -> None:
    """Write a network by one of PyTorch's two exporters: ``dynamo``, or ``legacy``, which traces TorchScript."""
    import torch

    if exporter == "legacy":
        torch.onnx.export(network, inputs, target, dynamo=False, opset_version=opset, verbose=False)
    else:
        torch.onnx.export(
            network,
            inputs,
            target,
            dynamo=True,
            opset_version=opset,
            external_data=False,
            verbose=False,
            optimize=optimised,
        )


def quantise(source: Path, target: Path, form: str) -> None:
    """Write a model with weights and, unless the form is ``dynamic``, activations of eight bits."""
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    if form == "dynamic":
        quantize_dynamic(source, target)
        return
    draw = np.random.default_rng(SEED)
    shapes = {
        value.name: [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
        for value in onnx.load(source).graph.input
    }

    class Random(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = CALIBRATIONS

        def get_next(self) -> Mapping[str, np.ndarray] | None:
            self.left -= 1
            if self.left < 0:
                return None
            return {name: draw.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}

    form_of_file = QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator
    with tempfile.TemporaryDirectory() as folder:
        # Biases that the exporter writes once behind Identity nodes are no initialisers, which the quantiser expects.
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(source, prepared, skip_symbolic_shape=True)
        quantize_static(prepared, target, Random(), quant_format=form_of_file)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    export(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])
