"""ONNX Attention and RotaryEmbedding under each expansion, against ONNX's reference implementation."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UnsupportedOpError
from dfcompile.lowering import Choice
from dfcompile.lowering import attention as blocks
from tests.examples import examples
from tests.onnx_nodes import Array, Attribute, Node, check_node, random, scopes

EXPANSIONS = ("unfused", "flash")
Expansion = Literal["unfused", "flash"]
sizes = st.integers(1, 3)


@st.composite
def attentions(draw: st.DrawFn) -> Node:
    """Draw an Attention of any of its forms."""
    batch, shared, groups, queries, keys = (draw(sizes) for _ in range(5))
    width, value_width, before = (draw(sizes) for _ in range(3))
    heads, attributes = groups * shared, dict[str, Attribute]()
    shapes = [(batch, heads, queries, width), (batch, groups, keys, width), (batch, groups, keys, value_width)]
    if draw(st.booleans()):
        attributes |= {"q_num_heads": heads, "kv_num_heads": groups}
        operands = [random((b, s, n * h), seed=seed) for seed, (b, n, s, h) in enumerate(shapes)]
    else:
        operands = [random(shape, seed=seed) for seed, shape in enumerate(shapes)]
    every: list[Array | None] = [*operands, None, None, None, None]
    results = [1]
    if draw(st.booleans()):
        every[4:6] = [random((b, n, before, h), seed=7) for b, n, _, h in shapes[1:]]
        results += [1, 1]
        keys += before
    elif draw(st.booleans()):
        every[6] = draw(st.integers(1, keys)) + np.zeros(batch, np.int64)
    if draw(st.booleans()):
        mask = draw(st.sampled_from([(queries, keys), (heads, queries, keys), (batch, 1, queries, keys)]))
        every[3] = random(mask, draw(st.sampled_from(["bool", "float32"])), seed=draw(st.integers(0, 9)))
    for name, values in (("is_causal", [0, 1]), ("scale", [0.5, 1.0]), ("softcap", [0.0, 2.0])):
        if draw(st.booleans()):
            attributes[name] = draw(st.sampled_from(values))
    for name in ("left_window_size", "right_window_size"):
        if draw(st.integers(0, 3)) == 0:
            attributes[name] = draw(st.integers(-1, 2))
    while every[-1] is None:
        every.pop()
    return Node("Attention", every, (), attributes, results, opset=25)


@pytest.mark.parametrize("expansion", EXPANSIONS)
@examples(20)
@given(node=attentions())
def test_attention_of_any_form(expansion: Expansion, node: Node) -> None:
    check_node(node, choices=[Choice("Attention", expansion)], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [0, 1])
def test_blocks_of_keys_never_meet_in_one_array(causal: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LEAST_BLOCK", 4)
    operands = [random((1, 2, length, 4), seed=length) for length in (3, 10, 10)]
    mask = random((3, 10), "bool", seed=5)
    node = Node("Attention", [*operands, mask], (), {"is_causal": causal}, opset=23)
    program = check_node(node, choices=[Choice("Attention", "flash")], rtol=1e-4)
    scores = [array.shape for name, array in program.sdfg.arrays.items() if "exponentials" in name]

    assert scores == [(1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 2)]


def test_heads_that_share_keys_are_rows_of_one_product() -> None:
    node = Node("Attention", [random((1, heads, 3, 4), seed=heads) for heads in (4, 2, 2)], opset=23)
    program = check_node(node)
    products = [array.shape for name, array in program.sdfg.arrays.items() if name.endswith("_scores")]

    assert products == [(1, 2, 6, 3)]
    assert "op.max" in scopes(program)


def test_all_scores_are_no_result_of_blocks() -> None:
    node = Node("Attention", [random((1, 1, 2, 4), seed=seed) for seed in range(3)], results=(1, 0, 0, 1), opset=23)
    check_node(node)
    refused = (
        r"^operator 'op': Attention=flash does not fit: the result 'qk_matmul_output' is of all scores against those "
        r"of a block \(add --expand op:Attention=unfused\)$"
    )
    with pytest.raises(UnsupportedOpError, match=refused):
        check_node(node, choices=[Choice("Attention", "flash")])


def test_precision_that_no_array_has_is_refused() -> None:
    operands = [random((1, 1, 2, 4), seed=seed) for seed in range(3)]
    with pytest.raises(UnsupportedOpError, match=r"'softmax_precision' is 16 against 1 \(float32\)"):
        check_node(Node("Attention", operands, attributes={"softmax_precision": 16}, opset=23))


@st.composite
def rotations(draw: st.DrawFn) -> Node:
    """Draw a RotaryEmbedding of any of its forms."""
    batch, heads, length, half = (draw(sizes) for _ in range(4))
    rest, positions = draw(st.sampled_from([0, 0, 2])), draw(st.booleans())
    width, attributes = 2 * half + rest, dict[str, Attribute]()
    if rest:
        attributes["rotary_embedding_dim"] = 2 * half
    if draw(st.booleans()):
        attributes["interleaved"] = 1
    flat = draw(st.booleans())
    if flat:
        attributes["num_heads"] = heads
    data = random((batch, length, heads * width) if flat else (batch, heads, length, width))
    table = (length + 2, half) if positions else (batch, length, half)
    operands: list[Array] = [data, random(table, seed=1), random(table, seed=2)]
    if positions:
        places = draw(st.lists(st.integers(0, length + 1), min_size=batch * length, max_size=batch * length))
        operands.append(np.array(places, np.int64).reshape(batch, length))
    constants = draw(st.sampled_from([(), (1, 2), (1, 2, 3), (3,)])) if positions else ()
    return Node("RotaryEmbedding", operands, constants, attributes, opset=23)


@examples(20)
@given(rotations())
def test_rotary_embedding_of_any_form(node: Node) -> None:
    check_node(node)


def test_position_behind_the_tables_is_refused() -> None:
    operands = [random((1, 1, 1, 2)), random((3, 1)), random((3, 1)), np.array([[3]])]
    with pytest.raises(UnsupportedOpError, match=r"node 'op': RotaryEmbedding.*positions 3 to 3 against tables of 3"):
        check_node(Node("RotaryEmbedding", operands, [1, 2, 3], opset=23))


def test_a_masked_score_of_infinity_is_undefined() -> None:
    """ONNX adds negative infinity to what the mask excludes, which leaves nothing of a positive one."""
    q, k, v = (np.ones((1, 1, 1, 2), np.float32), np.ones((1, 1, 2, 2), np.float32), random((1, 1, 2, 2), seed=1))
    k[0, 0, 0] = np.inf

    check_node(
        Node("Attention", [q, k, v, np.array([[False, True]])], opset=23), np.full((1, 1, 1, 2), np.nan, np.float32)
    )
