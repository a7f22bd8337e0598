"""Results whose shape operands tell: spectra of signals, and what pooling is undone to."""

import numpy as np
import pytest
from onnx import helper

from dfcompile.frontend.onnx.known_shapes import right_shapes

CONSTANTS = {
    "step": np.array(4),
    "length": np.array(8),
    "lengths": np.array([8, 9]),
    "shape": np.array([1, 1, 6, 4]),
}


@pytest.mark.parametrize(
    ("inputs", "attributes", "expected"),
    [
        (["x", "step", "", "length"], {}, (2, 4, 5, 2)),
        (["x", "step", "", "length"], {"onesided": 0}, (2, 4, 8, 2)),
        (["x", "step", "w"], {}, (2, 4, 4, 2)),
        (["x", "unknown", "w"], {}, None),
        (["x", "step"], {}, None),
        (["x", "step", "", "lengths"], {}, None),
    ],
)
def test_spectra(inputs: list[str], attributes: dict[str, int], expected: tuple[int, ...] | None) -> None:
    node = helper.make_node("STFT", inputs, ["y"])
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    shapes = {"x": (2, 20, 1), "w": (7,)}

    found = right_shapes(node, tuple(shapes.get(name) for name in inputs), CONSTANTS)

    assert found[:1] == (() if expected is None else (expected,))


def test_a_size_that_pooling_is_undone_to() -> None:
    node = helper.make_node("MaxUnpool", ["x", "i", "shape"], ["y"], kernel_shape=[2, 2])

    assert right_shapes(node, ((1, 1, 2, 2), (1, 1, 2, 2), None), CONSTANTS)[0] == (1, 1, 6, 4)
    assert right_shapes(helper.make_node("Relu", ["x"], ["y"]), ((2,),), CONSTANTS) == ()
