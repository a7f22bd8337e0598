"""Exports a model file to ONNX, in the way that its user would: ``python -m benchmarks.onnx_export MODEL TARGET``."""

import importlib.util
import logging
import sys
import warnings
from pathlib import Path


def export(model: Path, target: Path) -> None:
    """Write the model that a Python file defines."""
    import torch

    spec = importlib.util.spec_from_file_location("model", model)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    inputs = module.example_inputs()
    torch.onnx.export(
        module.model().eval(), (inputs,), target, dynamo=True, opset_version=18, external_data=False, verbose=False
    )


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    export(Path(sys.argv[1]), Path(sys.argv[2]))
