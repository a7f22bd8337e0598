"""Conv by tiles, compiled and run against ONNX."""

import numpy as np
import pytest

from dfcompile.testing import check_onnx_expansion


@pytest.mark.parametrize("name", ["winograd", "winograd4", "fft"])
def test_tiles_of_a_padded_convolution_with_groups(name: str) -> None:
    generator = np.random.default_rng(0)
    parameters = {
        "w": generator.uniform(-1, 1, (4, 3, 3, 3)).astype(np.float32),
        "b": generator.uniform(-1, 1, 4).astype(np.float32),
    }
    conv = "Conv<group=2, pads=[1, 1, 1, 1]>(x, w, b)"

    dag = check_onnx_expansion(
        "Conv", name, graph=f"g (float[2,6,7,9] x) => (float[2,4,7,9] y) {{ y = {conv} }}", parameters=parameters
    )

    assert dag.tasks_count < 4_000
