"""bfloat16 of operators that take it in later operator sets only, as PyTorch's exporters write it."""

import numpy as np
import onnx
import pytest

from dfcompile.errors import UserError
from tests.interpreter import interpret
from tests.onnx_nodes import lowered, random
from tests.onnx_text import model_from_text

CONV = "g (bfloat16[1,2,5,5] x) => (bfloat16[1,3,3,3] y) { y = Conv(x, w) }"
GROUPS = """g (bfloat16[1,2,5,5] x) => (bfloat16[1,3,3,3] y) {
    n = GroupNormalization<num_groups=1>(x, s, s)
    y = Conv(n, w)
}"""


def in_set(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    del model.opset_import[:]
    model.opset_import.append(onnx.helper.make_opsetid("", version))
    return model


@pytest.mark.parametrize("version", [13, 17, 18, 21, 22, 25])
def test_convolution_in_every_operator_set(version: int) -> None:
    x, w = random((1, 2, 5, 5)).astype("bfloat16"), random((3, 2, 3, 3), seed=1).astype("bfloat16")
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float32), (3, 3), (2, 3))
    expected = np.einsum("bcyxij,ocij->boyx", windows, w.astype(np.float32))

    (found,) = interpret(lowered(in_set(model_from_text(CONV, w=w), version)), {"x": x}).values()

    assert found.dtype.name == "bfloat16"
    np.testing.assert_allclose(found.astype(np.float32), expected, rtol=2**-8, atol=1e-6)


def test_model_with_an_operator_that_means_something_else_later_stays_as_it_is() -> None:
    parameters = {"w": np.ones((3, 2, 3, 3), "bfloat16"), "s": np.ones(1, "bfloat16")}

    with pytest.raises(UserError, match=r"node 'Conv.*': input 'n' is bfloat16 against float16, float32, float64"):
        lowered(in_set(model_from_text(GROUPS, **parameters), 18))


def test_other_types_are_checked_as_before() -> None:
    text = "g (int32[1,2,5,5] x) => (int32[1,3,3,3] y) { y = Conv(x, w) }"

    with pytest.raises(UserError, match=r"input 'x' is int32 against float16, float32, float64"):
        lowered(in_set(model_from_text(text, w=np.ones((3, 2, 3, 3), np.int32)), 18))
