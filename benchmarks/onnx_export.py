"""Exports a model to ONNX as its user would: ``python -m benchmarks.onnx_export MODEL TARGET [EXPORTER] [OPSET]``."""

import importlib.util
import logging
import sys
import warnings
from pathlib import Path

SEED = 0


def export(model: Path, target: Path, exporter: str = "dynamo", opset: int = 18) -> None:
    """Write the model that a Python file defines.

    Args:
        model: the Python file.
        target: the ``.onnx`` file.
        exporter: ``dynamo``, or ``legacy`` for the exporter that traces TorchScript.
        opset: of the file.
    """
    import torch

    spec = importlib.util.spec_from_file_location("model", model)
    assert spec is not None
    assert spec.loader is not None
    sys.path.insert(0, str(model.resolve().parent))  # a model file may import its neighbours
    module = importlib.util.module_from_spec(spec)
    torch.manual_seed(SEED)
    spec.loader.exec_module(module)
    inputs = module.example_inputs()
    tensors = inputs if isinstance(inputs, tuple) else (inputs,)
    network = module.model().eval()
    if exporter == "legacy":
        torch.onnx.export(network, tensors, target, dynamo=False, opset_version=opset, verbose=False)
    else:
        torch.onnx.export(
            network, tensors, target, dynamo=True, opset_version=opset, external_data=False, verbose=False
        )


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    chosen = dict(zip(("model", "target", "exporter", "opset"), sys.argv[1:], strict=False))
    export(
        Path(chosen["model"]), Path(chosen["target"]), chosen.get("exporter", "dynamo"), int(chosen.get("opset", 18))
    )
