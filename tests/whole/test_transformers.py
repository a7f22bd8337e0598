"""Transformers: a model from its PyTorch file, as exported with operators of attention, and as onnxruntime fuses it."""

import importlib.util
import warnings
from pathlib import Path
from types import ModuleType

import onnx
import onnxruntime
import pytest
import torch

from dfcompile.frontend import Model, ReadOptions, read_model, reference_answer
from dfcompile.lowering import Choice, lower_to_canonical, lower_to_nests
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, assert_same, checked_maps

MODELS = Path("tests/models")


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, MODELS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported(name: str, path: Path, opset: int) -> Path:
    module = loaded(name)
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        torch.onnx.export(
            module.model(), module.example_inputs(), path, dynamo=True, opset_version=opset, external_data=False,
            verbose=False,
        )  # fmt: skip
    return path


def check(model: Model, *choices: Choice) -> None:
    """Check values of the lowered model against those of the original."""
    inputs = model.example_feeds(seed=0)
    maps = checked_maps(lower_to_nests(lower_to_canonical(model.program, TABLE, choices), TABLE, choices))
    found = interpret(maps, {port.name: value for port, value in zip(model.program.inputs, inputs, strict=True)})
    answers = zip((port.name for port in maps.outputs), reference_answer(model, inputs).outputs, strict=True)
    assert_same(found, dict(answers), 1e-4, 1e-5)


def operators(model: Model) -> set[str]:
    return {node.op_type for node in model.program.nodes}


@pytest.mark.slow
def test_decoder_with_a_cache_from_its_file_and_with_operators_of_attention(tmp_path: Path) -> None:
    check(read_model(MODELS / "llama.py"))

    model = read_model(exported("llama", tmp_path / "llama.onnx", 23))
    assert {"Attention", "RMSNormalization"} < operators(model)
    check(model)
    check(model, Choice("Attention", "flash"))


@pytest.mark.slow
def test_mixture_of_experts_from_its_file() -> None:
    check(read_model(MODELS / "mixture.py"))


@pytest.mark.slow
def test_encoder_layer_as_onnxruntime_fuses_it(tmp_path: Path) -> None:
    plain, fused = exported("encoder_layer", tmp_path / "plain.onnx", 18), tmp_path / "fused.onnx"
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(fused)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(str(plain), options, providers=["CPUExecutionProvider"])

    model = read_model(fused)
    assert {"com.microsoft.FusedMatMul", "com.microsoft.SkipLayerNormalization"} < operators(model)
    check(model)


@pytest.mark.slow
def test_batch_is_given_by_its_name(tmp_path: Path) -> None:
    module = loaded("encoder_layer")
    with warnings.catch_warnings(action="ignore"), torch.no_grad():
        torch.onnx.export(
            module.model(), (torch.randn(2, 16, 64),), tmp_path / "dynamic.onnx", dynamo=True, opset_version=23,
            external_data=False, verbose=False, dynamic_shapes=({0: torch.export.Dim("batch")},),
        )  # fmt: skip
    model = read_model(tmp_path / "dynamic.onnx", ReadOptions(dims={"batch": 3}))

    assert [port.shape for port in model.program.inputs] == [(3, 16, 64)]
    assert onnx.load(tmp_path / "dynamic.onnx").graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    check(model)
