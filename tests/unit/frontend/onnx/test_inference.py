"""What makes ONNX's own inference fail is said as a fault of the model."""

import numpy as np
import onnx
import pytest

from dfcompile.errors import UserError
from tests.onnx_text import program_from_model, program_from_text


def test_step_without_an_element() -> None:
    graph = "g (float[1,7,1] x, float[3] w) => (float[1,5,2,2] y) { [s] y = STFT(x, step, w) }"

    with pytest.raises(UserError, match="model: an operand has no elements against those that its node reads"):
        program_from_text(graph, step=np.zeros(0, np.int64))


def test_operand_that_nothing_gives_in_a_first_version() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 1]> g (bool[3] a) => (bool[3] y) { y = Not(x) }'
    )

    with pytest.raises(UserError, match="x"):
        program_from_model(model)
