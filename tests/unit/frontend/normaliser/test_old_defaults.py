"""What operators meant by default in their operator set, written down when a model is read."""

import pytest
from onnx import helper

from dfcompile.frontend.normaliser.opset import with_old_defaults


@pytest.mark.parametrize(("op_type", "before"), [("Resize", 11), ("DFT", 20)])
def test_defaults_that_changed_are_said_and_given_values_stay(op_type: str, before: int) -> None:
    plain, other = helper.make_node(op_type, ["x", "s"], ["y"]), helper.make_node("Relu", ["y"], ["z"])
    (explicit, kept) = with_old_defaults([plain, other], before - 1)
    said = {attribute.name: helper.get_attribute_value(attribute) for attribute in explicit.attribute}

    assert kept is other
    assert not plain.attribute
    assert said == (
        {"axis": 1}
        if op_type == "DFT"
        else {"coordinate_transformation_mode": b"asymmetric", "nearest_mode": b"simple"}
    )
    assert next(with_old_defaults([plain], before)) is plain
    assert next(with_old_defaults([explicit], before - 1)) is explicit
