"""Operators of onnxruntime's own domain against onnxruntime."""

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from dfcompile.errors import UnsupportedOpError
from dfcompile.frontend.onnx import onnxruntime_evaluation
from dfcompile.lowering import Choice
from tests.examples import examples
from tests.interpreter import interpret
from tests.onnx_nodes import Array, Attribute, Node, assert_same, check_node, lowered, random, scopes

sizes = st.integers(1, 3)


def contributed(
    op_type: str,
    *operands: Array | None,
    attributes: dict[str, Attribute] | None = None,
    constants: tuple[int, ...] = (),
    results: tuple[int, ...] = (1,),
) -> Node:
    return Node(op_type, operands, constants, attributes, results, domain="com.microsoft")


@pytest.mark.parametrize(
    "node",
    [
        contributed("Gelu", random((2, 3, 4))),
        contributed("BiasGelu", random((2, 3, 4)), random((4,), seed=1)),
        contributed("FastGelu", random((2, 3, 4)), random((4,), seed=1)),
        contributed("FastGelu", random((2, 3, 4))),
        contributed("QuickGelu", random((2, 3)), attributes={"alpha": 1.5}),
        contributed("QuickGelu", random((5,))),
    ],
    ids=lambda node: f"{node.op_type}{len(node.operands)}",
)
def test_activation_is_one_task(node: Node) -> None:
    assert scopes(check_node(node)) == ["op"]


@examples(20)
@given(st.tuples(*[st.booleans()] * 4), sizes, sizes, sizes, st.sampled_from([1.0, 0.5]))
def test_product_of_operands_transposed_in_any_way(
    flags: tuple[bool, bool, bool, bool], n: int, k: int, m: int, alpha: float
) -> None:
    names = ("transA", "transB", "transBatchA", "transBatchB")
    attributes: dict[str, Attribute] = {name: int(flag) for name, flag in zip(names, flags, strict=True)}
    shapes = []
    for rows, columns, is_transposed, is_apart in ((n, k, flags[0], flags[2]), (k, m, flags[1], flags[3])):
        first, last = (columns, rows) if is_transposed else (rows, columns)
        shapes.append((first, 2, last) if is_apart else (2, first, last))
    operands = [random(shape, seed=seed) for seed, shape in enumerate(shapes)]
    program = lowered(contributed("FusedMatMul", *operands, attributes={**attributes, "alpha": alpha}).model())
    a, b = (
        np.swapaxes(np.moveaxis(x, 0, 1) if apart else x, 1, 2) if turned else np.moveaxis(x, 0, 1) if apart else x
        for x, turned, apart in zip(operands, flags[:2], flags[2:], strict=True)
    )

    found = interpret(program, {"x0": operands[0], "x1": operands[1]})
    assert_same(found, {"y0": (alpha * (a @ b)).astype(np.float32)}, 1e-5, 1e-5)


ACTIVATIONS = {
    "Relu": (),
    "Clip": (-0.5, 0.5),
    "HardSigmoid": (0.3, 0.4),
    "LeakyRelu": (0.25,),
    "Sigmoid": (),
    "Tanh": (),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_fused_activation_of_a_convolution(activation: str) -> None:
    attributes: dict[str, Attribute] = {"activation": activation, "pads": [1, 1, 1, 1]}
    if ACTIVATIONS[activation]:
        attributes["activation_params"] = ACTIVATIONS[activation]
    data, weights, bias = random((1, 2, 4, 4)), random((3, 2, 3, 3), seed=1), random((3,), seed=2)
    check_node(contributed("FusedConv", data, weights, bias, attributes=attributes))


def test_fused_sum_and_activation_of_a_convolution() -> None:
    shapes = ((1, 2, 4, 4), (3, 2, 3, 3), (3,), (1, 3, 2, 2))
    operands = [random(shape, seed=seed) for seed, shape in enumerate(shapes)]
    program = check_node(contributed("FusedConv", *operands, attributes={"activation": "Relu"}))

    assert [node.name for node in program.nodes] == ["op", "op.add", "op.relu"]


def test_fused_activation_of_a_gemm() -> None:
    attributes: dict[str, Attribute] = {"activation": "LeakyRelu", "activation_alpha": 0.25, "transB": 1, "alpha": 0.5}
    check_node(contributed("FusedGemm", random((3, 4)), random((5, 4), seed=1), random((5,)), attributes=attributes))


def test_fused_activation_that_is_not_known_is_refused() -> None:
    node = contributed("FusedGemm", random((3, 4)), random((4, 5)), attributes={"activation": "Swirl"})
    with pytest.raises(UnsupportedOpError, match=r"node 'op': attribute 'activation' is 'Swirl' against Clip, Elu"):
        lowered(node.model())


@pytest.mark.parametrize("op_type", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("skip", [(2, 3, 8), (1, 3, 8), (3, 8)])
@pytest.mark.parametrize("results", [(1,), (1, 0, 0, 1)])
def test_sum_and_normalisation(op_type: str, skip: tuple[int, ...], results: tuple[int, ...]) -> None:
    parameters = [random((8,), seed=seed) for seed in (2, 3, 4)]
    given_parameters = parameters if op_type.startswith("SkipLayer") else parameters[:2]
    check_node(contributed(op_type, random((2, 3, 8)), random(skip, seed=1), *given_parameters, results=results))


def test_result_of_training_is_refused() -> None:
    node = contributed("SkipLayerNormalization", *[random((2, 8))] * 2, random((8,)), results=(1, 1))
    with pytest.raises(UnsupportedOpError, match=r"the result 'mean' has no expansion"):
        lowered(node.model())


@pytest.mark.parametrize("op_type", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_normalisation_may_stand_in_the_domain_of_onnx(op_type: str) -> None:
    x, scale = random((2, 3, 4)), random((4,), seed=1)
    node = helper.make_node(op_type, ["x", "s"], ["y"], name="op", axis=-1, epsilon=0.01)
    inputs = [helper.make_tensor_value_info("x", 1, x.shape), helper.make_tensor_value_info("s", 1, scale.shape)]
    graph = helper.make_graph([node], "one", inputs, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    answer = onnxruntime_evaluation.evaluated(model, {"x": x, "s": scale})
    assert answer is not None

    assert_same(interpret(lowered(model), {"x": x, "s": scale}), {"y": answer[1][0]}, 1e-5, 1e-5)


@pytest.mark.parametrize("has_segments", [True, False])
@pytest.mark.parametrize("has_positions", [True, False])
def test_normalised_embedding(*, has_segments: bool, has_positions: bool) -> None:
    generator = np.random.default_rng(3)
    ids, positions = (generator.integers(0, 6, (2, 4)).astype(np.int32) for _ in range(2))
    words, places, segments = (random((rows, 8), seed=rows) for rows in (7, 6, 2))
    node = contributed(
        "EmbedLayerNormalization",
        ids,
        ids % 2 if has_segments else None,
        words,
        places,
        segments if has_segments else None,
        random((8,), seed=4),
        random((8,), seed=5),
        *([None, positions] if has_positions else []),
        results=(1, 0, 1),
    )
    check_node(node)


@st.composite
def masks(draw: st.DrawFn, batch: int, queries: int, keys: int) -> Array | None:
    kind = draw(st.sampled_from(["none", "keys", "queries", "lengths"]))
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    if kind == "none":
        return None
    if kind == "lengths":
        return generator.integers(1, keys + 1, batch).astype(np.int32)
    return generator.integers(0, 2, (batch, keys) if kind == "keys" else (batch, queries, keys)).astype(np.int32)


@st.composite
def multi_heads(draw: st.DrawFn) -> Node:
    """Draw a MultiHeadAttention of the forms that onnxruntime's CPU has as well."""
    batch, heads, queries, half, before = (draw(sizes) for _ in range(5))
    width, keys = 2 * half, draw(st.sampled_from([queries, 4]))
    has_past = draw(st.booleans())
    value_width = width if has_past else draw(st.sampled_from([width, 2]))
    total = keys + before * has_past
    attributes: dict[str, Attribute] = {"num_heads": heads}
    if keys == queries and draw(st.booleans()):
        attributes["unidirectional"] = 1
    if draw(st.booleans()):
        attributes["scale"] = 0.5
    operands: list[Array | None] = [
        random((batch, length, heads * wide), seed=length)
        for length, wide in ((queries, width), (keys, width), (keys, value_width))
    ]
    columns = heads * (2 * width + value_width)
    operands += [random((columns,), seed=5) if draw(st.booleans()) else None, draw(masks(batch, queries, total)), None]
    if draw(st.booleans()):
        operands[5] = random((1, heads, queries, total), seed=6)
    if has_past:
        operands += [random((batch, heads, before, wide), seed=wide) for wide in (width, value_width)]
    constants = (3,) if operands[3] is not None and draw(st.booleans()) else ()
    results = (1, 1, 1) if has_past else (1,)
    return contributed("MultiHeadAttention", *operands, attributes=attributes, constants=constants, results=results)


@st.composite
def projected(draw: st.DrawFn) -> Node:
    """Draw an Attention of onnxruntime's own domain."""
    batch, heads, length, half, before = (draw(sizes) for _ in range(5))
    has_past, width, inner = draw(st.booleans()), 2 * half, draw(sizes)
    value_width = width if has_past else draw(st.sampled_from([width, 2]))
    columns, total = heads * (2 * width + value_width), length + before * has_past
    attributes: dict[str, Attribute] = {"num_heads": heads, "unidirectional": draw(st.integers(0, 1))}
    if value_width != width:
        attributes["qkv_hidden_sizes"] = [heads * width, heads * width, heads * value_width]
    if draw(st.booleans()):
        attributes["mask_filter_value"] = -3.0
    operands: list[Array | None] = [
        random((batch, length, inner)), random((inner, columns), seed=1), random((columns,), seed=2),
        draw(masks(batch, length, total)),
    ]  # fmt: skip
    if has_past:
        operands.append(random((2, batch, heads, before, width), seed=3))
    return contributed("Attention", *operands, attributes=attributes, results=(1, 1) if has_past else (1,))


@st.composite
def group_queries(draw: st.DrawFn) -> Node:
    """Draw a GroupQueryAttention: of a prompt, of one more token, of batches with different pasts."""
    batch, groups, shared, past = (draw(sizes) for _ in range(4))
    kind = draw(st.sampled_from(["prompt", "prompt with a cache", "token", "token in a longer cache", "ragged"]))
    length = draw(sizes) if kind.startswith("prompt") else 1
    total = length if kind.startswith("prompt") else past + length
    stored = {"prompt": 0, "prompt with a cache": length + 1, "token": past}.get(kind, past + 2)
    width, heads = 16, groups * shared  # what the rotation of onnxruntime takes
    last = np.full(batch, total - 1, np.int32)
    if kind == "ragged":
        last[1:] = draw(st.lists(st.integers(0, total - 1), min_size=batch - 1, max_size=batch - 1))
    attributes: dict[str, Attribute] = {"num_heads": heads, "kv_num_heads": groups}
    choices: dict[str, Attribute] = {"scale": 0.5, "softcap": 1.5, "local_window_size": 2}
    attributes |= {name: value for name, value in choices.items() if draw(st.booleans())}
    operands: list[Array | None] = [
        random((batch, length, n * width), seed=seed) for seed, n in enumerate((heads, groups, groups))
    ]
    if draw(st.booleans()):
        operands = [random((batch, length, (heads + 2 * groups) * width)), None, None]
    operands += [random((batch, groups, stored, width), seed=seed) if stored else None for seed in (3, 4)]
    operands += [last, np.array(total, np.int32)]
    if draw(st.booleans()):
        attributes |= {"do_rotary": 1, "rotary_interleaved": draw(st.integers(0, 1))}
        operands += [random((8, width // 2), seed=seed) for seed in (5, 6)]
    constants = draw(st.sampled_from([(6,), (5, 6)]))
    return contributed("GroupQueryAttention", *operands, attributes=attributes, constants=constants, results=(1, 1, 1))


@pytest.mark.parametrize("expansion", ["unfused", "flash"])
@examples(10)
@given(node=st.one_of(multi_heads(), projected(), group_queries()))
def test_attention_of_any_form(expansion: str, node: Node) -> None:
    check_node(node, choices=[Choice(f"com.microsoft.{node.op_type}", expansion)], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("flat", [True, False])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(*, first: bool, flat: bool, interleaved: int) -> None:
    attributes: dict[str, Attribute] = {"interleaved": interleaved, **({"num_heads": 3} if flat else {})}
    places = np.array([2]) if first else np.array([[0, 5, 1, 3], [2, 2, 4, 0]])
    data = random((2, 4, 24) if flat else (2, 3, 4, 8))
    tables = random((6, 4), seed=1), random((6, 4), seed=2)
    check_node(contributed("RotaryEmbedding", data, places, *tables, attributes=attributes))


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("normalised", [0, 1])
def test_mixture_of_experts(activation: str, k: int, normalised: int) -> None:
    attributes: dict[str, Attribute] = {
        "k": k, "activation_type": activation, "normalize_routing_weights": normalised
    }  # fmt: skip
    shapes = ((1, 5, 4) if k == 2 else (5, 4), (5, 3), (3, 6, 4), (3, 6), (3, 4, 6), (3, 4))
    operands: list[Array | None] = [random(shape, seed=seed) for seed, shape in enumerate(shapes)]
    if normalised:
        operands[3], operands[5] = None, None
    check_node(contributed("MoE", *operands[: 5 if normalised else 6], attributes=attributes), rtol=1e-4)


def test_of_experts_that_are_rated_equally_the_first_are_taken() -> None:
    shapes = ((2, 4), (3, 6, 4), (3, 4, 6))
    x, first, second = (random(shape, seed=seed) for seed, shape in enumerate(shapes))
    rates = np.zeros((2, 3), np.float32)
    program = lowered(contributed("MoE", x, rates, first, None, second, attributes={"k": 2}).model())
    answers = np.maximum(x @ first.transpose(0, 2, 1), 0) @ second.transpose(0, 2, 1)

    found = interpret(program, {"x0": x, "x1": rates, "x2": first, "x4": second})
    assert_same(found, {"y0": (answers[0] + answers[1]) / 3}, 1e-5, 1e-5)


REFUSED = {
    "attribute 'activation_type' is 'swiglu' against gelu": contributed(
        "MoE", random((2, 4)), random((2, 3)), random((3, 6, 4)), None, random((3, 4, 3)),
        attributes={"activation_type": "swiglu"},
    ),
    "the operand 'head_sink'": contributed(
        "GroupQueryAttention", random((1, 1, 8)), random((1, 1, 8)), random((1, 1, 8)), None, None,
        np.zeros(1, np.int32), np.array(1, np.int32), None, None, None, None, random((1,)),
        attributes={"num_heads": 1, "kv_num_heads": 1}, constants=(6,),
    ),
    "operand 'total_sequence_length' is computed by the model": contributed(
        "GroupQueryAttention", random((1, 1, 8)), random((1, 1, 8)), random((1, 1, 8)), None, None,
        np.zeros(1, np.int32), np.array(1, np.int32), attributes={"num_heads": 1, "kv_num_heads": 1},
    ),
    "attribute 'do_rotary' is 1 against 0": contributed(
        "Attention", random((1, 2, 3)), random((3, 6)), random((6,)), attributes={"num_heads": 1, "do_rotary": 1}
    ),
    "attribute 'is_packed_batching' is 1 against 0": contributed(
        "RotaryEmbedding", random((1, 2, 4)), np.array([0]), random((2, 2)), random((2, 2)),
        attributes={"num_heads": 1, "is_packed_batching": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_form_that_has_no_expansion_is_refused_by_name(reason: str) -> None:
    with pytest.raises(UnsupportedOpError, match=rf"node 'op': com\.microsoft\.\w+\(.*{reason}"):
        lowered(REFUSED[reason].model())
