"""The ONNX file that --emit onnx writes: what viewers show, every node with its origin, no weights."""

import numpy as np
import onnx

from dfcompile.frontend import ReadOptions
from dfcompile.frontend.onnx_model import program_of
from dfcompile.frontend.sdfg.onnx_form import ORIGIN_KEY, program_to_onnx

MODEL = """<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]>
net (float[1,2,6,6] x) => (float[1,3,4,4] y)
<float[3,2,3,3] weight, float[3] bias> {
  [first] c = Conv<strides=[1,1], pads=[0,0,0,0]>(x, weight, bias)
  [second] g = com.microsoft.FastGelu(c)
  [third] y = Clip(g, , limit)
}
"""


def model() -> onnx.ModelProto:
    found = onnx.parser.parse_model(MODEL.replace("float[3] bias>", "float[3] bias, float limit = {6}>"))
    for name, shape in (("weight", (3, 2, 3, 3)), ("bias", (3,))):
        found.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, np.float32), name))
    return found


def test_operators_stand_as_they_are_lowered_with_their_origins() -> None:
    written = onnx.load_model_from_string(program_to_onnx(program_of("net", model(), ReadOptions())))

    assert [(node.domain, node.op_type) for node in written.graph.node] == [
        ("", "Conv"), ("com.microsoft", "FastGelu"), ("", "Clip")
    ]  # fmt: skip
    assert [{entry.key: entry.value for entry in node.metadata_props}[ORIGIN_KEY] for node in written.graph.node] == [
        "first",
        "second",
        "third",
    ]
    assert list(written.graph.node[2].input)[1] == ""  # left out, and still in its place
    attributes = {each.name: list(each.ints) for each in written.graph.node[0].attribute}
    assert attributes["pads"] == [0, 0, 0, 0]


def test_arrays_have_types_and_shapes_and_weights_no_values() -> None:
    text = program_to_onnx(program_of("net", model(), ReadOptions()))
    written = onnx.load_model_from_string(text)

    shapes = {
        value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*written.graph.input, *written.graph.value_info, *written.graph.output)
    }
    assert shapes[written.graph.node[0].input[0]] == [1, 2, 6, 6]
    assert shapes[written.graph.node[0].input[1]] == [3, 2, 3, 3]
    assert {name for node in written.graph.node for name in (*node.input, *node.output) if name} == set(shapes)
    assert not written.graph.initializer
    assert text == program_to_onnx(program_of("net", model(), ReadOptions()))
