"""Decoders of images, which resize: as PyTorch's exporters write them, run against the original."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from benchmarks.onnx_export import export
from dfcompile.canonical_dag.extraction import extract
from dfcompile.frontend import Coverage, read_model, reference_answer
from dfcompile.lowering import lower_to_canonical, lower_to_nests
from tests.interpreter import interpret
from tests.onnx_nodes import TABLE, checked_maps

SEGMENTATION = Path("tests/models/segmentation.py")


@pytest.mark.slow
@pytest.mark.parametrize(("exporter", "opset"), [("", 0), ("dynamo", 20), ("legacy", 11), ("legacy", 17)])
def test_decoders_that_resize(tmp_path: Path, exporter: str, opset: int) -> None:
    path = SEGMENTATION
    if exporter:
        path = tmp_path / "segmentation.onnx"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the exporters warn of themselves
            export(SEGMENTATION, path, f"{exporter}-{opset}")
    model = read_model(path)
    lowered = checked_maps(lower_to_nests(lower_to_canonical(model.program, TABLE), TABLE))
    feeds = model.example_feeds(seed=0)
    named = {port.name: value for port, value in zip(lowered.inputs, feeds, strict=True)}
    (found,) = interpret(lowered, named).values()

    assert [node.op_type for node in model.program.nodes].count("Resize") == 3
    assert {node.coverage for node in model.program.nodes} <= {Coverage.COSTED, Coverage.VIEW, Coverage.FOLDED}
    wanted = reference_answer(model, feeds).outputs[0]
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=1e-4, atol=1e-5)
    assert extract(lowered.sdfg).tasks_count < 5000
