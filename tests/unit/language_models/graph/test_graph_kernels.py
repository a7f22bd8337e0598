"""Rules that keep a literal reading of a graph from counting what nobody computes or moves."""

import importlib.util

import pytest

from dfcompile.api.language_models import graph_page
from dfcompile.errors import UserError
from dfcompile.language_models.configuration.reading import Configuration, model_of, read_configuration
from dfcompile.language_models.footprint import kv_elements_per_token, parameters_of
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.graph.exported import NEEDED, exported_trace
from dfcompile.language_models.graph.kernels import (
    APPEND,
    CACHE,
    INPUT,
    PARAMETER,
    GraphKernel,
    Trace,
    TraceNode,
    graph_kernels,
    total_macs,
)
from dfcompile.language_models.steps.batch import Sequences, decode_batch, prefill_batch
from dfcompile.language_models.steps.kernel import Latent, StepChoices
from dfcompile.language_models.steps.step import step_of
from dfcompile.options.language_models import LanguageOptions

TOKENS = 64
FAMILIES = (
    "llama-3.1-8b", "qwen3-0.6b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "gemma-2-2b", "gemma-3-1b", "gpt2",
    "gpt-oss-20b", "llama-4-scout-17b-16e", "qwen2.5-72b", "mistral-7b",
)  # fmt: skip


def traced(*nodes: tuple[str, str, tuple[str, ...], tuple[int, ...]], scope: str = "") -> tuple[GraphKernel, ...]:
    return graph_kernels(Trace(tuple(TraceNode(*node, scope) for node in nodes)))


def test_products_know_their_operands() -> None:
    linear, product = traced(
        ("w", PARAMETER, (), (12, 8)),
        ("x", INPUT, (), (2, 5, 8)),
        ("y", "linear", ("x", "w"), (2, 5, 12)),
        ("t", "transpose", ("y",), (2, 12, 5)),
        ("z", "matmul", ("y", "t"), (2, 5, 5)),
    )

    assert (linear.kind, linear.m, linear.k, linear.n, linear.macs) == ("Ma_Mw", 10, 8, 12, 960)
    assert (product.kind, product.batch, product.macs) == ("Ma_Ma", 2, 2 * 5 * 12 * 5)


def test_n1_copies_of_keys_for_heads_are_a_broadcast() -> None:
    (kernel,) = traced(
        ("q", INPUT, (), (4, 32, 1, 128)),
        ("k", INPUT, (), (4, 8, 100, 128)),
        ("k1", "unsqueeze", ("k",), (4, 8, 1, 100, 128)),
        ("k2", "expand", ("k1",), (4, 8, 4, 100, 128)),
        ("k3", "reshape", ("k2",), (4, 32, 100, 128)),
        ("y", "scaled_dot_product_attention", ("q", "k3", "k3"), (4, 32, 1, 128)),
    )

    assert (kernel.kind, kernel.m, kernel.batch) == ("Va_Mqa", 4, 32)
    assert kernel.second_elements == 2 * 4 * 8 * 100 * 128
    assert kernel.macs == 4 * 32 * 100 * 256


def test_n2_new_tokens_behind_a_cache_are_an_append_and_no_copy() -> None:
    append, attention = traced(
        ("past", CACHE, (), (4, 8, 99, 128)),
        ("new", INPUT, (), (4, 8, 1, 128)),
        ("q", INPUT, (), (4, 8, 1, 128)),
        ("k", "cat", ("past", "new"), (4, 8, 100, 128)),
        ("y", "scaled_dot_product_attention", ("q", "k", "k"), (4, 8, 1, 128)),
    )

    assert (append.kind, append.second_elements, append.macs) == ("KVCache", 4 * 8 * 128, 0)
    assert attention.kind == "Va_Mkv"


def test_n3_chosen_experts_are_rows_of_one_product() -> None:
    (grouped,) = traced(
        ("w", PARAMETER, (), (8, 16, 32)), ("x", INPUT, (), (20, 16)), ("o", INPUT, (), (8,)),
        ("y", "grouped_mm", ("x", "w", "o"), (20, 32)),
    )  # fmt: skip
    (gathered,) = traced(
        ("w", PARAMETER, (), (8, 16, 32)), ("x", INPUT, (), (20, 1, 16)), ("at", INPUT, (), (20,)),
        ("g", "index", ("w", "at"), (20, 16, 32)), ("y", "bmm", ("x", "g"), (20, 1, 32)),
    )  # fmt: skip

    assert (grouped.m, grouped.macs, grouped.second_elements) == (20, 20 * 16 * 32, 8 * 16 * 32)
    assert (gathered.m, gathered.batch, gathered.macs) == (20, 1, 20 * 16 * 32)
    assert gathered.second_elements == 8 * 16 * 32


def test_n4_experts_that_are_all_computed_count_as_those_that_are_chosen() -> None:
    (kernel,) = traced(
        ("w", PARAMETER, (), (16, 8, 24)), ("x", INPUT, (), (5, 8)), ("r", INPUT, (), (5, 16)),
        ("k", "topk", ("r",), (5, 1)), ("s", "scatter", ("r", "k"), (5, 16)), ("c", "repeat", ("x",), (80, 8)),
        ("m", "mul", ("c", "s"), (80, 8)), ("v", "view", ("m",), (16, 5, 8)), ("y", "bmm", ("v", "w"), (16, 5, 24)),
        scope="model.layers.0.feed_forward.experts",
    )  # fmt: skip

    assert (kernel.name, kernel.macs) == ("model.layers.*.feed_forward.experts", 5 * 1 * 8 * 24)


def test_equal_layers_are_folded() -> None:
    nodes = [TraceNode("x", INPUT, (), (5, 8))]
    for layer in range(3):
        nodes.append(TraceNode(f"w{layer}", PARAMETER, (), (12, 8)))
        nodes.append(TraceNode(f"y{layer}", "linear", ("x", f"w{layer}"), (5, 12), f"layers.{layer}.mlp"))
    (kernel,) = graph_kernels(Trace(tuple(nodes)))

    assert (kernel.name, kernel.count, total_macs((kernel,))) == ("layers.*.mlp", 3, 3 * 480)


def shortened(name: str) -> Configuration:
    """The configuration with two layers, all else as published: one dense and one of experts in DeepSeek's."""
    found = read_configuration(name)
    values = {key: value for key, value in found.values.items() if key != "layer_types"}
    values |= {key: 2 for key in ("num_hidden_layers", "n_layer") if key in values}
    values |= {key: 1 for key in ("first_k_dense_replace",) if key in values}
    return Configuration(name, name, values)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_graph_of_a_family_has_the_macs_of_the_closed_form(name: str) -> None:
    """At full width; where transformers is not installed, that is what the command says."""
    configuration = shortened(name)
    model = model_of(configuration)
    if any(importlib.util.find_spec(package) is None for package in NEEDED):
        with pytest.raises(UserError, match=r"--from-graph: needs .*transformers"):
            exported_trace(configuration.values, Sequences(0, TOKENS), name)
        return
    found = total_macs(graph_kernels(exported_trace(configuration.values, Sequences(0, TOKENS), name)))
    choices = StepChoices(causal=False, latent=Latent.NAIVE)

    assert found == step_of(model, prefill_batch(str(TOKENS), all_rows=True), uniform(FORMATS["bf16"]), choices).macs
    assert parameters_of(model).total > 0


@pytest.mark.parametrize("name", FAMILIES)
def test_p4_the_graph_of_a_decode_has_the_macs_and_the_cache_of_the_closed_form(name: str) -> None:
    """At full width, behind a cache that is an input; where transformers is not installed, the command says so."""
    configuration = shortened(name)
    model, batch = model_of(configuration), decode_batch(f"{TOKENS}x3")
    if any(importlib.util.find_spec(package) is None for package in NEEDED):
        with pytest.raises(UserError, match=r"--from-graph: needs .*transformers"):
            exported_trace(configuration.values, Sequences(TOKENS - 1, 1, 3), name)
        return
    trace = exported_trace(configuration.values, Sequences(TOKENS - 1, 1, 3), name)
    choices = StepChoices(causal=False, latent=Latent.NAIVE)

    assert total_macs(graph_kernels(trace)) == step_of(model, batch, uniform(FORMATS["bf16"]), choices).macs
    assert trace.cache_elements == 3 * (TOKENS - 1) * kv_elements_per_token(model)
    assert sum(one.count for one in graph_kernels(trace) if one.op == APPEND) == 2 * len(model.layers)


def test_what_a_graph_cannot_be_asked_is_one_line() -> None:
    with pytest.raises(UserError, match="found no single prompt"):
        graph_page(LanguageOptions("gpt2", prefill=("8", "16")), 120)
    with pytest.raises(UserError, match="found no single prompt"):
        graph_page(LanguageOptions("gpt2", prefill=("8",), decode=("16",)), 120)
    with pytest.raises(UserError, match="--from-graph: decode 8,9x2: found sequences of 2 lengths against one"):
        graph_page(LanguageOptions("gpt2", decode=("8,9x2",)), 120)
    with pytest.raises(UserError, match="found a prompt of 200 tokens against a window of 128"):
        graph_page(LanguageOptions("gpt-oss-20b", prefill=("200",)), 120)
