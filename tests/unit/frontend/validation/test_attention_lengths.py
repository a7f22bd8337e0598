"""Numbers of tokens that attentions with a cache are told: dfcompile and onnxruntime refuse the same ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.frontend.onnx.onnxruntime_evaluation import evaluated
from tests.examples import examples
from tests.onnx_nodes import Array, Attribute, Node, random
from tests.onnx_text import program_from_model

WIDTH = 16


@st.composite
def group_queries(draw: st.DrawFn) -> Node:
    """Draw a GroupQueryAttention that is told any lengths, half of the time those of its operands."""
    batch = draw(st.integers(1, 2))
    length = draw(st.integers(1, 3 if batch == 1 else 1))  # more tokens of several batches onnxruntime has not
    past = draw(st.none() | st.integers(1, 4))
    total = draw(st.just((past or 0) + length) | st.integers(1, 7))
    last = draw(st.just([total - 1] * batch) | st.lists(st.integers(0, 7), min_size=batch, max_size=batch))
    operands: list[Array | None] = [random((batch, length, heads * WIDTH)) for heads in (2, 1, 1)]
    operands += [None if past is None else random((batch, 1, past, WIDTH))] * 2
    operands += [np.array(last, np.int32), np.array(total, np.int32)]
    attributes: dict[str, Attribute] = {"num_heads": 2, "kv_num_heads": 1}
    if draw(st.booleans()):
        attributes["do_rotary"] = 1
        operands += [random((draw(st.sampled_from([8, total, total - 1 or 1])), WIDTH // 2))] * 2
    return Node("GroupQueryAttention", operands, (5, 6), attributes, (1, 1, 1), domain="com.microsoft")


@st.composite
def multi_heads(draw: st.DrawFn) -> Node:
    """Draw a MultiHeadAttention whose keys stand apart by head, perhaps wider than the values."""
    length, keys, width = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.sampled_from([4, 4, 3]))
    operands = [random((1, length, 8)), random((1, 2, keys, 4)), random((1, 2, keys, width))]
    return Node("MultiHeadAttention", operands, (), {"num_heads": 2}, domain="com.microsoft")


@examples(150)
@given(group_queries() | multi_heads())
def test_as_onnxruntime(node: Node) -> None:
    model = node.model()
    refused = ""
    try:
        program_from_model(model)
    except UserError as error:
        refused = str(error)

    assert bool(refused) == (evaluated(model, node.feeds) is None), refused


def _told(total: int, last: int) -> Node:
    operands = [random((1, 1, 32)), *[random((1, 1, 16))] * 2, *[random((1, 1, 6, 16))] * 2]
    lengths = [np.array([last], np.int32), np.array(total, np.int32)]
    attributes = {"num_heads": 2, "kv_num_heads": 1}
    return Node("GroupQueryAttention", [*operands, *lengths], (5, 6), attributes, domain="com.microsoft")


@pytest.mark.parametrize(
    ("total", "last", "message"),
    [
        (9, 8, r"'total_sequence_length' is 9 against 7 \(6 in 'past_key' and 1 new\), or 1 to 6 within the cache"),
        (7, 7, r"'seqlens_k' is 7 against 0 to 6 \(tokens less one\)"),
    ],
)
def test_message(total: int, last: int, message: str) -> None:
    with pytest.raises(UserError, match=f"^node 'op': {message}$"):
        program_from_model(_told(total, last).model())
