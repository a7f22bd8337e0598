"""Products of integers of 8 bits are exact whatever the processor, as onnxruntime's are where it has VNNI."""

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, parser

from dfcompile.frontend.onnx import onnxruntime_evaluation
from dfcompile.frontend.onnx.onnxruntime_evaluation import (
    PRODUCTS,
    evaluated,
    has_products,
    products_saturate,
    with_unsigned_operands,
)
from tests.examples import examples
from tests.onnx_nodes import Array, Node
from tests.quantised_nodes import Quantised

LEFT = np.full((2, 8), 255, np.uint8)  # pairs of their products with 127 exceed 16 bits
RIGHT = np.full((8, 3), 127, np.int8)
ONE, ZERO, NONE = np.array(1, np.float32), np.array(0, np.uint8), np.zeros((), np.int8)


def test_the_largest_products_are_exact() -> None:
    """Whether or not this processor saturates: 255 * 127 * 8."""
    node = Node("MatMulInteger", [LEFT, RIGHT])
    answer = evaluated(node.model(), node.feeds)

    assert answer is not None
    assert np.array_equal(answer[1][0], np.full((2, 3), 255 * 127 * 8))


def saturated(left: Array, right: Array) -> Array:
    """A double of a processor without VNNI: products are added up in pairs, of 16 bits."""
    pairs = left.astype(int)[:, :, None] * right.astype(int)[None]
    sums = np.clip(pairs.reshape(len(left), -1, 2, right.shape[1]).sum(2), -(2**15), 2**15 - 1).sum(1)
    return np.asarray(sums, np.int32)


@pytest.mark.parametrize("is_exact", [True, False])
def test_a_processor_that_saturates_is_recognised(is_exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Double:
        def __call__(self, _: onnx.ModelProto, feeds: dict[str, Array]) -> tuple[str, tuple[Array, ...]]:
            a, b = feeds["a"], feeds["b"]
            return "double", (a.astype(np.int32) @ b.astype(np.int32) if is_exact else saturated(a, b),)

    monkeypatch.setattr(onnxruntime_evaluation, "_evaluated", Double())

    assert products_saturate.__wrapped__() is not is_exact


@examples(40)
@given(st.integers(0, 2**32), st.booleans())
def test_shifted_operands_change_no_result(seed: int, has_zeros: bool) -> None:
    """Of numbers so small that no processor saturates, the shifted product is what onnxruntime has of the original."""
    drawn = Quantised(seed)
    a, b = drawn.steps("uint8", (3, 4)) % 64, drawn.steps("int8", (4, 5)) % 64
    zeros = (drawn.steps("uint8", ()) % 64, drawn.steps("int8", ())) if has_zeros else ()
    x, w = drawn.steps("uint8", (1, 2, 5, 5)) % 64, drawn.steps("int8", (3, 2, 2, 2)) % 64
    scaled_w, scaled_b = (w, drawn.scale((3,)), np.zeros(3, np.int8)), (b, drawn.scale(), NONE)
    result = drawn.scale((), 0.5, 5.0), drawn.steps("uint8", ())
    nodes = [
        Node("MatMulInteger", [a, b, *zeros]),
        Node("ConvInteger", [x, w, *zeros], attributes={"pads": [1, 0, 0, 1]}),
        Node("QLinearMatMul", [a, ONE, ZERO, *scaled_b, *result], opset=21),
        Node("QLinearConv", [x, ONE, ZERO, *scaled_w, *result]),
        Node("QLinearConv", [x, ONE, ZERO, *scaled_w, *result], domain="com.microsoft"),
        Node("QGemm", [a, ONE, ZERO, *scaled_b, None, *result], domain="com.microsoft"),
        Node("MatMulIntegerToFloat", [a, b, ONE, ONE, *zeros], domain="com.microsoft"),
        Node("DynamicQuantizeMatMul", [a.astype(np.float32) / 64, b, ONE, *zeros[1:]], domain="com.microsoft"),
    ]
    assert {node.op_type for node in nodes} == set(PRODUCTS)
    for node in nodes:
        model = node.model()
        changed = with_unsigned_operands(model)
        ours, theirs = (onnxruntime_evaluation._evaluated(each, node.feeds) for each in (changed, model))

        assert ours is not None
        assert theirs is not None
        assert len(changed.graph.node) > 1, node.op_type
        difference = ours[1][0].astype(np.float64) - theirs[1][0].astype(np.float64)
        assert np.abs(difference).max() <= (1e-4 if node.op_type.endswith(("Float", "DynamicQuantizeMatMul")) else 0)


def test_products_in_branches_and_functions_are_found() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "own": 1]>
        g (bool c, uint8[2, 8] a, int8[8, 3] b) => (int32[2, 3] y) {
            y = If (c) <
                then_branch = yes () => (int32[2, 3] z) { z = own.twice (a, b) },
                else_branch = no () => (int32[2, 3] w) { w = MatMulInteger (a, b) }
            >
        }
        <domain: "own", opset_import: ["": 17]> twice (u, v) => (r) { q = MatMulInteger (u, v) r = Add (q, q) }"""
    )
    feeds = {"c": np.array(True), "a": LEFT, "b": RIGHT}
    changed = with_unsigned_operands(model)

    assert has_products(model)
    for is_twice in (True, False):
        answer = onnxruntime_evaluation._evaluated(changed, {**feeds, "c": np.array(is_twice)})
        assert answer is not None
        assert np.array_equal(answer[1][0], np.full((2, 3), 255 * 127 * 8 * (1 + is_twice)))


@pytest.mark.parametrize(("left", "right"), [("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8")])
def test_other_products_stay_as_they_are(left: str, right: str) -> None:
    node = Node("MatMulInteger", [LEFT.astype(left), RIGHT.astype(right)])

    assert with_unsigned_operands(node.model()).graph == onnx.shape_inference.infer_shapes(node.model()).graph
    assert not has_products(helper.make_model(helper.make_graph([], "none", [], [])))
