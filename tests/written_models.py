"""A fixture that writes small ONNX models from their text; the conftest of a folder takes it over."""

from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import parser

HEADER = '<ir_version: 8, opset_import: ["": 18]>\n'

ModelWriter = Callable[[str], Path]


@pytest.fixture
def write_model(tmp_path: Path) -> ModelWriter:
    """Write ONNX text (with or without its header) to a file and give its path."""

    def write(text: str) -> Path:
        model = parser.parse_model(text if text.startswith("<") else HEADER + text)
        path = tmp_path / "model.onnx"
        onnx.save(model, str(path))
        return path

    return write
