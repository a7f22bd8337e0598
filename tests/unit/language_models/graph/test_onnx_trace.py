"""Graphs in ONNX files: every way in which exporters write products and attention has the work of the closed form."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dfcompile.api.language_models import graph_page
from dfcompile.cli.main import main
from dfcompile.errors import UserError
from dfcompile.language_models.graph.kernels import GraphKernel, graph_kernels, total_macs
from dfcompile.language_models.graph.onnx_trace import trace_of_model
from dfcompile.options.language_models import LanguageOptions

HIDDEN, HEADS, KV, DIM, WIDTH, VOCABULARY = 32, 4, 2, 16, 24, 50
TINY = {
    "model_type": "llama", "hidden_size": HIDDEN, "intermediate_size": WIDTH, "num_hidden_layers": 1, "head_dim": DIM,
    "num_attention_heads": HEADS, "num_key_value_heads": KV, "vocab_size": VOCABULARY, "tie_word_embeddings": False,
    "max_position_embeddings": 4096,
}  # fmt: skip
MICROSOFT = "com.microsoft"


def layer(
    attention: list[onnx.NodeProto], batch: int, new: int, past: int, products: str = "MatMul"
) -> onnx.ModelProto:
    """One layer: embedding, projections, an attention of ``q``, ``k``, ``v`` into ``mixed``, an MLP and a head."""
    held: list[onnx.TensorProto] = [
        numpy_helper.from_array(np.zeros((VOCABULARY, HIDDEN), np.float32), "table"),
        numpy_helper.from_array(np.zeros(batch, np.int32) + past + new - 1, "seqlens"),
        numpy_helper.from_array(np.array(past + new, np.int32), "total"),
    ]
    nodes = [helper.make_node("Gather", ["table", "ids"], ["x"], "/embed/Gather")]

    def product(source: str, depth: int, columns: int, made: str) -> None:
        name = f"/model/layers.0/{made}/{products}"
        if products == "MatMulNBits":
            shape = (columns, -(-depth // 16), 8)
            held.append(numpy_helper.from_array(np.zeros(shape, np.uint8), f"{made}.w"))
            held.append(numpy_helper.from_array(np.zeros(columns * shape[1], np.float32), f"{made}.s"))
            read = [source, f"{made}.w", f"{made}.s"]
            nodes.append(helper.make_node(products, read, [made], name, domain=MICROSOFT, K=depth, N=columns, bits=4,
                                          block_size=16))  # fmt: skip
            return
        held.append(numpy_helper.from_array(np.zeros((depth, columns), np.float32), f"{made}.w"))
        nodes.append(helper.make_node(products, [source, f"{made}.w"], [made], name))

    product("x", HIDDEN, HEADS * DIM, "q")
    product("x", HIDDEN, KV * DIM, "k")
    product("x", HIDDEN, KV * DIM, "v")
    nodes += attention
    product("mixed", HEADS * DIM, HIDDEN, "o")
    product("o", HIDDEN, WIDTH, "gate")
    product("o", HIDDEN, WIDTH, "up")
    nodes.append(helper.make_node("Mul", ["gate", "up"], ["active"], "/model/layers.0/mul"))
    product("active", WIDTH, HIDDEN, "down")
    product("down", HIDDEN, VOCABULARY, "logits")
    kinds = [helper.make_tensor_value_info("ids", TensorProto.INT64, (batch, new))]
    if past:
        shape = (batch, KV, past, DIM)
        kinds += [helper.make_tensor_value_info(f"past_{word}", TensorProto.FLOAT, shape) for word in ("key", "value")]
    made = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, (batch, new, VOCABULARY))]
    graph = helper.make_graph(nodes, "tiny", kinds, made, held)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets)


def grouped(past: int) -> list[onnx.NodeProto]:
    read = ["q", "k", "v", *(("past_key", "past_value") if past else ("", "")), "seqlens", "total"]
    made = ["mixed", "present_key", "present_value"]
    return [helper.make_node("GroupQueryAttention", read, made, "/model/layers.0/attn/GQA", domain=MICROSOFT,
                             num_heads=HEADS, kv_num_heads=KV)]  # fmt: skip


def standard(past: int) -> list[onnx.NodeProto]:
    read = ["q", "k", "v", *(("", "past_key", "past_value") if past else ())]
    made = ["mixed", *(("present_key", "present_value") if past else ())]
    return [helper.make_node("Attention", read, made, "/model/layers.0/attn/Attention", q_num_heads=HEADS,
                             kv_num_heads=KV)]  # fmt: skip


def closed(batch: int, new: int, past: int) -> int:
    tokens = batch * new
    projected = HIDDEN * DIM * (2 * HEADS + 2 * KV) + 3 * HIDDEN * WIDTH + HIDDEN * VOCABULARY
    return tokens * (projected + 2 * HEADS * DIM * (past + new))


def named(kernels: tuple[GraphKernel, ...], op: str) -> list[GraphKernel]:
    return [one for one in kernels if one.op == op]


@pytest.mark.parametrize("attention", [grouped, standard])
@pytest.mark.parametrize(("batch", "new", "past"), [(1, 7, 0), (3, 1, 9), (2, 4, 5)])
@pytest.mark.parametrize("products", ["MatMul", "MatMulNBits"])
def test_p4_a_graph_in_onnx_has_the_macs_of_the_closed_form(
    attention: object, batch: int, new: int, past: int, products: str
) -> None:
    assert callable(attention)
    trace = trace_of_model(layer(attention(past), batch, new, past, products), Path(), {})
    kernels = graph_kernels(trace)
    (mixed,) = named(kernels, "scaled_dot_product_attention")

    assert total_macs(kernels) == closed(batch, new, past)
    assert trace.cache_elements == 2 * batch * past * KV * DIM
    assert mixed.second_elements == 2 * batch * (past + new) * KV * DIM
    assert (mixed.m, mixed.batch) == (new * HEADS // KV, batch * KV)
    assert sum(one.count for one in named(kernels, "append")) == (2 if past else 0)
    assert all(one.kind in ("Ma_Mw", "Va_Mw") for one in kernels if one.op in ("matmul", "linear"))


def test_n1_heads_of_an_attention_that_has_as_many_keys_are_not_grouped() -> None:
    node = helper.make_node(
        "MultiHeadAttention", ["q", "kw", "vw"], ["mixed"], "mha", domain=MICROSOFT, num_heads=HEADS
    )
    widen = [helper.make_node("Concat", [name, name], [f"{name}w"], f"widen_{name}", axis=2) for name in ("k", "v")]
    kernels = graph_kernels(trace_of_model(layer([*widen, node], 2, 3, 0), Path(), {}))

    assert total_macs(kernels) == closed(2, 3, 0)
    assert named(kernels, "scaled_dot_product_attention")[0].batch == 2 * HEADS


def test_the_command_holds_a_file_against_its_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY))
    onnx.save(layer(grouped(9), 3, 1, 9), str(tmp_path / "tiny.onnx"))
    words = ["llm", "--config", str(tmp_path), "--from-onnx", str(tmp_path / "tiny.onnx")]

    assert main([*words, "--decode", "10x3"]) == 0
    text = capsys.readouterr().out
    assert f"MACs of the graph: {closed(3, 1, 9):,}, as the closed form" in text
    assert f"elements of the cache: {2 * 3 * 9 * KV * DIM:,}, as the closed form" in text
    assert main([*words, "--decode", "12x3"]) == 1
    assert "--from-onnx: the graph of" in capsys.readouterr().err
    assert main(["llm", "--config", str(tmp_path), "--from-onnx", str(tmp_path / "no.onnx"), "--decode", "10"]) == 1
    assert "--from-onnx: cannot" not in capsys.readouterr().out


def test_what_multiplies_otherwise_is_refused_by_name() -> None:
    node = helper.make_node("Einsum", ["q", "q"], ["mixed"], "/attn/Einsum", equation="bqh,bqh->bqh")
    with pytest.raises(UserError, match=r"--from-onnx: node 'attn\.Einsum': found Einsum against MatMul, Gemm"):
        trace_of_model(layer([node], 1, 2, 0), Path(), {})
    with pytest.raises(UserError, match="--from-onnx: found no single prompt"):
        graph_page(LanguageOptions("gpt2", from_onnx=Path("x.onnx")), 80)
