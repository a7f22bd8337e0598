"""Results that onnxruntime gives as codes are numbers: no number is the same as no number, a zero as a zero."""

import numpy as np

from tests.fuzz.comparison import difference
from tests.fuzz.oracle import Session, load
from tests.onnx_text import model_from_text

TEXT = "g (float[5] x) => (float8e4m3fn[5] y) { y = Cast<to=17>(x) }"


def test_numbers_of_8_bits() -> None:
    model = model_from_text(TEXT)
    model.opset_import[0].version = 19
    session = load(model.SerializeToString())
    assert isinstance(session, Session)
    x = np.array([1, -3, np.nan, 0, 1e9], np.float32)
    expected = session.run({"x": x}).results
    codes = expected["y"].view(np.uint8)

    assert expected["y"].dtype.name == "float8_e4m3fn"
    assert codes.tolist()[:2] == [0x38, 0xC4]
    other = np.array([codes[0], codes[1], 0xFF, 0x80, codes[4]], np.uint8).view("float8_e4m3fn")
    assert difference({"y": other}, expected, model) == ""
    wrong = np.array([0x39, *codes[1:]], np.uint8).view("float8_e4m3fn")
    assert difference({"y": wrong}, expected, model) == "output 'y': 1 of 5 elements, [0] is 1.125 against 1.0"
