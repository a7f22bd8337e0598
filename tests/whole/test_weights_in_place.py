"""Weights of a PyTorch model are not copied on the way to the program."""

from pathlib import Path

import numpy as np
import pytest

from dfcompile.frontend.model import ReadOptions
from dfcompile.frontend.onnx_model import program_of
from dfcompile.frontend.torch.torch_model import export_onnx, torch_model


def test_parameters_are_views_of_the_module() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))

    proto, weights = export_onnx(torch_model(Path("model.py"), module, torch.zeros(1, 3)))
    program = program_of("model", proto, ReadOptions(), weights)

    held = [parameter.detach().numpy() for parameter in module.parameters()]
    assert not proto.graph.initializer
    assert len(program.parameters) == len(held)
    for value in program.parameters.values():
        assert not value.flags.writeable
        assert any(np.shares_memory(value, array) for array in held)
