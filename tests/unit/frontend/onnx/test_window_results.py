"""Numbers of windows: as onnxruntime counts them, of every version of the operators."""

import numpy as np
import onnx
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.frontend.file_kinds.onnx_file import OnnxReference
from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Attribute, Node, lowered, random
from tests.onnx_text import program_from_model

OPSETS = {"AveragePool": (10, 11, 18, 19, 22), "LpPool": (18, 22), "MaxPool": (10, 11, 12, 18, 22)}


def _check(node: Node) -> None:
    """Check values and shapes against onnxruntime; both may refuse the node."""
    model = node.model()
    names = [output.name for output in model.graph.output]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    del model.graph.value_info[:]
    answer = evaluated(model, node.feeds)
    if answer is None:
        event("onnxruntime refuses it")
        return
    lowest = np.finfo(np.float32).min  # what onnxruntime says of a window that lies in the padding alone
    in_padding = answer[1][0] == lowest
    results = interpret(lowered(model), node.feeds)
    assert list(results) == [name for name, expected in zip(names, answer[1], strict=True) if expected.size]
    for name, found in results.items():
        expected = answer[1][names.index(name)]
        assert found.shape == expected.shape
        if name == "y0":
            right = np.where(in_padding, -np.inf, expected).astype(np.float64)
            np.testing.assert_allclose(found.astype(np.float64), right, rtol=1e-5, atol=1e-5)
        else:
            assert np.array_equal(found[~in_padding], expected[~in_padding])
    for name, expected in zip(names, answer[1], strict=True):
        # The same with the shape declared, which is then checked.
        output = next(value for value in model.graph.output if value.name == name)
        output.type.tensor_type.elem_type = onnx.helper.np_dtype_to_tensor_dtype(expected.dtype)
        output.type.tensor_type.shape.dim.extend(
            onnx.TensorShapeProto.Dimension(dim_value=size) for size in expected.shape
        )
    program_from_model(model)


@examples(40)
@given(st.data(), st.sampled_from(sorted(OPSETS)), st.integers(1, 2))
def test_pooling_in_ceil_mode_as_onnxruntime(data: st.DataObject, op_type: str, rank: int) -> None:
    def numbers(low: int, high: int, count: int = rank) -> list[int]:
        return data.draw(st.lists(st.integers(low, high), min_size=count, max_size=count))

    kernel, extents = numbers(1, 4), numbers(1, 9)
    attributes: dict[str, Attribute] = {"kernel_shape": kernel, "strides": numbers(1, 5)}
    opset = data.draw(st.sampled_from(OPSETS[op_type]))
    attributes["ceil_mode"] = data.draw(st.integers(0, 1))
    auto_pad = data.draw(st.sampled_from(["NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    if auto_pad == "NOTSET":
        attributes["pads"] = [data.draw(st.integers(0, size - 1)) for size in (*kernel, *kernel)]
    else:
        attributes["auto_pad"] = auto_pad
    if op_type == "MaxPool" or (opset >= 19 and op_type == "AveragePool"):
        attributes["dilations"] = numbers(1, 2)
    if op_type == "AveragePool":
        attributes["count_include_pad"] = data.draw(st.integers(0, 1))
    has_indices = op_type == "MaxPool" and data.draw(st.booleans())
    if has_indices:
        attributes["storage_order"] = data.draw(st.integers(0, 1))
    x, results = random((1, 2, *extents)), (1, 1) if has_indices else (1,)
    node = Node(op_type, [x], attributes=attributes, opset=opset, results=results)
    try:
        _check(node)
    except UserError as error:
        # What is left of no window, onnxruntime says otherwise.
        assert any(reason in str(error) for reason in ("a size of at least", "elements to cover", "pad differently"))  # noqa: PT017


@pytest.mark.parametrize("opset", [10, 12, 18, 22])
def test_window_that_begins_behind_the_data_is_none(opset: int) -> None:
    attributes: dict[str, Attribute] = {"kernel_shape": [1], "strides": [2], "ceil_mode": 1}

    _check(Node("MaxPool", [random((1, 1, 4))], attributes=attributes, opset=opset))
    _check(Node("MaxPool", [random((1, 1, 4))], attributes=attributes, opset=opset, results=(1, 1)))


@examples(25)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(1, 2), st.integers(1, 12))
def test_transposed_convolution_of_a_given_size(
    extent: int, kernel: int, stride: int, dilation: int, size: int
) -> None:
    attributes: dict[str, Attribute] = {"strides": [stride], "dilations": [dilation], "output_shape": [size]}
    node = Node("ConvTranspose", [random((1, 2, extent)), random((2, 1, kernel), seed=1)], attributes=attributes)
    try:
        _check(node)
    except UserError as error:
        assert "attribute 'output_shape'" in str(error)  # noqa: PT017
        assert evaluated(node.model(), node.feeds) is None


def test_result_that_no_file_can_say_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[1,1,3] x, float[1,1,5] w) => (float[1,1,n] y) {
        y = ConvTranspose <auto_pad = "SAME_UPPER", strides = [4611686018427387904]> (x, w)
    }"""

    with pytest.raises(UserError, match="ConvTranspose has an extent of 9223372036854775813 against at most"):
        lowered(onnx.parser.parse_model(text))


@examples(25)
@given(st.sampled_from(["Hardmax", "Softmax", "LogSoftmax"]), st.data(), st.sampled_from([7, 11, 12]))
def test_old_softmax_and_hardmax_look_at_all_axes_behind_theirs(op_type: str, data: st.DataObject, opset: int) -> None:
    shape = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    axis = data.draw(st.integers(0 if opset < 11 else -len(shape), len(shape) - 1))
    attributes: dict[str, Attribute] = data.draw(st.sampled_from([{}, {"axis": axis}]))

    _check(Node(op_type, [random(shape)], attributes=attributes, opset=opset))


def test_reference_of_an_old_hardmax_knows_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dfcompile.frontend.onnx.onnxruntime_evaluation.is_installed", lambda: False)
    x = np.array([[1, 2], [4, 3]], np.float32)
    node = Node("Hardmax", [x], attributes={"axis": 0}, opset=11)

    answer = OnnxReference(node.model())([x])

    assert answer.outputs[0].tolist() == [[0, 0], [1, 0]]
    assert answer.source == "onnx's reference implementation"


@examples(60)
@given(st.data(), st.sampled_from(["SAME_UPPER", "SAME_LOWER"]), st.sampled_from([7, 11, 22]))
def test_transposed_convolution_that_is_padded_to_a_size(data: st.DataObject, auto_pad: str, opset: int) -> None:
    extent, kernel, stride, dilation = (data.draw(st.integers(1, most)) for most in (4, 3, 3, 2))
    attributes: dict[str, Attribute] = {
        "auto_pad": auto_pad,
        "strides": [stride],
        "dilations": [dilation],
        "output_padding": [data.draw(st.integers(0, stride - 1))],
    }
    operands = [random((1, 2, extent)), random((2, 1, kernel), seed=1)]

    _check(Node("ConvTranspose", operands, attributes=attributes, opset=opset))
