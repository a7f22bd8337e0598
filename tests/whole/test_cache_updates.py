"""Slices that are assigned, as PyTorch exports them: keys in a cache, at a place that is known or that the run says."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from tests.interpreter import interpret
from tests.onnx_nodes import lowered, scopes

CACHE, KEY = torch.randn(2, 3, 8, 4), torch.randn(2, 3, 4)


class KnownPlace(nn.Module):
    """A key is written to a place that the model knows."""

    def forward(self, cache: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        cache = cache.clone()
        cache[:, :, 5] = key
        return cache * 2


class PlaceOfTheRun(nn.Module):
    """A key is written to a place that is an input."""

    def forward(self, cache: torch.Tensor, key: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        cache = cache.clone()
        cache[:, :, place] = key.unsqueeze(2)
        return cache * 2


class Router(nn.Module):
    """The two largest of a row share its weight, as in a mixture of experts."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        largest, places = torch.topk(x, 2)
        return torch.zeros_like(x).scatter(-1, places, torch.softmax(largest, -1))


MODELS: list[tuple[nn.Module, tuple[torch.Tensor, ...], str]] = [
    (KnownPlace(), (CACHE, KEY), "write"),
    (PlaceOfTheRun(), (CACHE, KEY, torch.tensor([3])), "update"),
    (Router(), (torch.randn(3, 8),), "update"),
]


def dynamo(model: nn.Module, inputs: tuple[torch.Tensor, ...], _: Path) -> onnx.ModelProto:
    program = torch.onnx.export(model.eval(), inputs, dynamo=True, verbose=False)
    assert program is not None
    return program.model_proto


def legacy(model: nn.Module, inputs: tuple[torch.Tensor, ...], folder: Path) -> onnx.ModelProto:
    path = folder / "model.onnx"
    torch.onnx.export(model.eval(), inputs, path, dynamo=False, opset_version=17)
    return onnx.load(path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of both exporters
@pytest.mark.parametrize("export", [dynamo, legacy])
@pytest.mark.parametrize(("model", "inputs", "step"), MODELS, ids=["known place", "place of the run", "router"])
def test_what_is_written_is_what_torch_writes(
    model: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    step: str,
    export: Callable[[nn.Module, tuple[torch.Tensor, ...], Path], onnx.ModelProto],
    tmp_path: Path,
) -> None:
    exported = export(model, inputs, tmp_path)
    program = lowered(exported)
    names = [value.name for value in exported.graph.input]
    (found,) = interpret(program, dict(zip(names, (value.numpy() for value in inputs), strict=True))).values()

    expected = model(*inputs).detach().numpy()

    assert np.allclose(found.astype(np.float64), expected, rtol=1e-6, atol=1e-6)
    assert any(f".{step}." in scope for scope in scopes(program))
