"""What ONNX's reference implementation computes otherwise than onnxruntime is not folded."""

import numpy as np
import pytest

from dfcompile.errors import UnsupportedOpError
from dfcompile.lowering import lower_to_canonical, registered_expansions
from tests.onnx_text import program_from_text


def test_resize_of_a_constant_is_lowered_or_refused_but_not_folded() -> None:
    program = program_from_text(
        'g (float[1,2] x) => (float[1,2] y) { r = Resize<mode="nearest", nearest_mode="floor", '
        'coordinate_transformation_mode="align_corners">(c, , scales) y = Add(x, r) }',
        c=np.arange(5, dtype=np.float32).reshape(1, 5),
        scales=np.array([1, 0.5], np.float32),
    )

    with pytest.raises(UnsupportedOpError, match="'Resize_0'"):
        lower_to_canonical(program, registered_expansions())
