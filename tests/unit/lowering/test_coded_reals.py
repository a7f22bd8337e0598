"""Real numbers of 4 and 8 bits that DaCe has no type for: every code, every border, every attribute of Cast."""

from collections.abc import Sequence

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from dfcompile.canonical_dag.extraction import extract
from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend import Answer, Array, Model, ReadOptions
from dfcompile.frontend.onnx.element_type import onnx_type
from dfcompile.frontend.onnx_model import program_of
from tests.coded_reals import POWERS, ROUND_MODES, SIGNED, all_codes, borders, codes_of, every_cast, power_answer
from tests.interpreter import interpret
from tests.onnx_nodes import Attribute, Node, check_node, lowered, random, scopes
from tests.onnx_text import model_from_text


def test_every_code_and_every_border() -> None:
    model, feeds, expected = every_cast()
    found = interpret(lowered(model), feeds)

    for name, codes in expected.items():
        value = found[name]
        if name.startswith("from_"):
            np.testing.assert_array_equal(value, np.array(codes, np.uint8).view(np.float32), err_msg=name)
        else:
            assert codes_of(value) == codes, name


@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("source", ["float16", "bfloat16", "float64", "int32", "bool", "float8_e4m3fn", "int4"])
@pytest.mark.parametrize("saturate", [0, 1])
def test_casts_are_those_of_the_reference(dtype: str, source: str, saturate: int) -> None:
    with np.errstate(all="ignore"):
        x = np.rint(borders(dtype)[:60]) if source in ("int32", "int4") else borders(dtype)
        x = (np.clip(x, -8, 7) if source == "int4" else x).astype(source)
    node = Node("Cast", [x], attributes={"to": onnx_type(dtype), "saturate": saturate}, opset=25)
    with np.errstate(all="ignore"):
        (expected,) = ReferenceEvaluator(node.model()).run(None, node.feeds)

    (found,) = interpret(lowered(node.model()), node.feeds).values()
    assert codes_of(found) == codes_of(np.asarray(expected))


@pytest.mark.parametrize("mode", ROUND_MODES)
@pytest.mark.parametrize("saturate", [0, 1])
def test_powers_of_two_are_those_of_onnxruntime(mode: str, saturate: int) -> None:
    x = borders(POWERS)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape) for name in "xz"]
    to, back = (
        helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=mode),
        helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT),
    )
    graph = helper.make_graph([to, back], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, {"x": x})

    np.testing.assert_array_equal(interpret(lowered(model), {"x": x})["z"], expected)


def test_a_constant_becomes_what_the_same_input_does() -> None:  # and not what ONNX's reference makes of it
    x = np.array([0, np.inf, 1e-40, 3, 1.2 * 2.0**127], np.float32)
    for saturate in (0, 1):
        to = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E8M0, saturate=saturate, round_mode="nearest")
        back = helper.make_node("Cast", ["y"], ["z"], to=TensorProto.FLOAT)
        add = helper.make_node("Mul", ["z", "one"], ["w"])
        info = helper.make_tensor_value_info
        constant = helper.make_tensor("x", TensorProto.FLOAT, [5], x)
        graph = helper.make_graph(
            [to, back, add],
            "g",
            [info("one", TensorProto.FLOAT, [1])],
            [info("w", TensorProto.FLOAT, [5])],
            [constant],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=11)
        codes = np.array(power_answer(x, "nearest", saturate=bool(saturate)), np.uint8)

        found = interpret(lowered(model), {"one": np.ones(1, np.float32)})["w"]
        np.testing.assert_array_equal(found, codes.view(POWERS).astype(np.float32))


def test_round_modes_that_onnx_does_not_have_are_refused() -> None:
    attributes: dict[str, Attribute] = {"to": int(TensorProto.FLOAT8E8M0), "round_mode": "even"}

    with pytest.raises(
        UnsupportedOpError, match=r"node 'op': Cast.*'round_mode' is 'even' against 'up', 'nearest', 'd"
    ):
        lowered(Node("Cast", [random((3,))], attributes=attributes, opset=25).model())


@pytest.mark.parametrize(("dtype", "first"), [("float32", []), ("float16", ["a.single"])])
def test_powers_of_two_take_one_task_on_the_bits(dtype: str, first: list[str]) -> None:
    text = f"g ({dtype.replace('32', '')}[3] x) => (float[3] z) {{ [a] y = Cast<to = 24>(x) [b] z = Cast<to = 1>(y) }}"
    model = model_from_text(text)
    model.opset_import[0].version = 25

    assert scopes(lowered(model)) == [*first, "a.exponent", "b"]


@pytest.mark.parametrize("elements", [16, 13])
def test_constants_of_four_bits_are_read_two_in_a_byte(elements: int) -> None:
    steps = all_codes("float4_e2m1fn")[:elements]
    scale = np.array(0.5, np.float32)
    node = Node("DequantizeLinear", [steps, scale], [0, 1], opset=25)
    program = lowered(node.model())
    (found,) = interpret(program, {}).values()

    assert codes_of(found) == codes_of(steps.astype(np.float32) * scale)  # -0 as well
    (read,) = [tensor for tensor in extract(program.sdfg).tensors if tensor.name == "op_packed"]
    assert read.size_bytes == -(-elements // 2)


def test_blocks_with_powers_of_two_as_scales() -> None:
    steps = all_codes("float4_e2m1fn").reshape(2, 8)
    scales = np.array([[1, 0.5], [4, 2.0**-20]], POWERS)
    expected = (steps.astype(np.float32) * np.repeat(scales.astype(np.float32), 4, 1)).astype(np.float32)
    attributes = {"axis": 1, "block_size": 4, "output_dtype": int(TensorProto.FLOAT)}
    for constants in ((), (0, 1)):
        check_node(Node("DequantizeLinear", [steps, scales], constants, attributes, opset=25), expected)

    x = random((2, 8)) * 5
    with np.errstate(all="ignore"):
        steps = (x / np.repeat(scales.astype(np.float32), 4, 1)).astype("float4_e2m1fn")
    attributes = {"axis": 1, "block_size": 4, "output_dtype": int(TensorProto.FLOAT4E2M1), "precision": 1}
    check_node(Node("QuantizeLinear", [x, scales], (), attributes, opset=25), steps)


@pytest.mark.parametrize("dtype", [*SIGNED, POWERS])
def test_inputs_of_every_type_are_drawn_and_are_numbers(dtype: str) -> None:
    node = Node("Cast", [all_codes(dtype)], attributes={"to": int(TensorProto.FLOAT)}, opset=25)
    program = program_of("model", node.model(), ReadOptions())
    (drawn,) = Model(program, _nothing).example_feeds(seed=0)

    assert drawn.dtype == np.dtype(dtype)
    assert np.isfinite(drawn.astype(np.float32)).all()
    assert len(np.unique(drawn.astype(np.float32))) > 2


def _nothing(inputs: Sequence[Array]) -> Answer:
    raise AssertionError(f"{len(inputs)} inputs: not to be run")
