"""Recurrent mixers: published sizes, states, kernels counted token by token, shares of chips, refusals."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from dfcompile.errors import InfeasibleError, UserError
from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.footprint import (
    kv_elements_per_token,
    layer_kv_bytes,
    layer_weight_bytes,
    parameters_of,
    state_bytes_per_sequence,
    weight_bytes,
)
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.machines.finding import find_device
from dfcompile.language_models.mapping.layer_graph import layer_graph
from dfcompile.language_models.mixer import Mixer, Rule
from dfcompile.language_models.model import Model
from dfcompile.language_models.parallel.degrees import Degrees, share_of_layer
from dfcompile.language_models.parallel.deployment import Case, Deployments
from dfcompile.language_models.planner import Demand, plans
from dfcompile.language_models.quantisation.precision import precision_of
from dfcompile.language_models.steps.batch import Batch, Sequences, prefill_batch
from dfcompile.language_models.steps.kernel import Kernel, StepChoices, Work
from dfcompile.language_models.steps.mixer_kernels import mixer_kernels
from dfcompile.language_models.times.step_time import roofline
from dfcompile.records import replace

PUBLISHED = Path(__file__).parents[2] / "data" / "llm" / "published_hybrids.jsonl"
BF16 = uniform(FORMATS["bf16"])
DUAL = Mixer(Rule.DUAL, 6, 5, 2, 3, head_columns=1, taps=4, head_vectors=3, chunk=4)
FALCON = {"model_type": "falcon_h1", "hidden_size": 64, "mamba_d_ssm": 128, "mamba_n_heads": 8, "vocab_size": 100}
JAMBA = {"model_type": "jamba", "hidden_size": 64, "num_attention_heads": 8, "intermediate_size": 64, "vocab_size": 100}


def read(values: dict[str, Any]) -> Model:
    return model_of(Configuration("drawn", "drawn", values))


def mixed(mixer: Mixer, *groups: Sequences, causal: bool = True) -> dict[str, Kernel]:
    kernels = mixer_kernels(mixer, 7, Batch("batch", groups), BF16, StepChoices(causal=causal))
    return {kernel.name: kernel for kernel in kernels}


def test_published_models_have_the_parameters_that_they_are_published_with_and_that_transformers_builds() -> None:
    models = [json.loads(line) for line in PUBLISHED.read_text().splitlines()]

    assert len(models) == 12
    for one in models:
        total = parameters_of(read(one["values"])).total
        digits = len(one["billions"].partition(".")[2])
        assert (one["name"], total) == (one["name"], one["total"])
        assert f"{total / 1e9:.{digits}f}" == one["billions"], one["name"]


def test_a_state_does_not_grow_with_tokens_and_is_held_in_fp32() -> None:
    model = read({**FALCON, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2})
    (layer,) = model.layers
    channels, states = 128 + 2 * 256, 128 * 256

    def held(context: int, count: int = 1, drafted: int = 0) -> int:
        sequences = Sequences(context - 1 - drafted, 1 + drafted, count, drafted=drafted)
        return layer_kv_bytes(layer, Batch("decode", (sequences,)), BF16)

    assert kv_elements_per_token(model) == 2 * 2 * 16
    assert state_bytes_per_sequence(model, BF16) == 4 * states + 2 * 4 * channels
    assert held(10) == 10 * 128 + state_bytes_per_sequence(model, BF16)
    assert held(1000, 3) - held(10, 3) == 3 * 990 * 128
    assert held(10, drafted=2) - held(10) == 2 * state_bytes_per_sequence(model, BF16)  # each may be taken back


@pytest.mark.parametrize("tokens", [1, 3, 4, 5, 11])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("rule", [Rule.DUAL, Rule.DELTA])
def test_chunks_are_counted_as_pair_by_pair(tokens: int, rule: Rule, *, causal: bool) -> None:
    mixer = replace(DUAL, rule=rule)
    scan = mixed(mixer, Sequences(0, tokens, 2), causal=causal)["scan_prefill"]
    pairs = [
        (one, other)
        for one, other in itertools.product(range(tokens), repeat=2)
        if one // 4 == other // 4 and (other <= one or not causal)
    ]
    macs = 0
    for one, other in pairs:
        if rule is Rule.DUAL:
            macs += 2 * 3 + 6 * 5  # keys with queries of each group; with values of each head
        else:
            macs += 6 * (3 + 3 + 5)  # keys with keys and with queries, and with values
            macs += 6 * (3 + 5) * (other < one)  # the triangular system of keys and values
    macs += tokens * 6 * 3 * 5 * (2 if rule is Rule.DUAL else 3)

    assert scan.macs == 2 * macs
    assert scan.work is Work.CHUNKS
    assert (scan.kv_read_bytes, scan.kv_write_bytes) == (0, 2 * 4 * 6 * 3 * 5)


def test_a_decode_updates_and_reads_every_state_once() -> None:
    kernels = mixed(DUAL, Sequences(9, 1, 7), Sequences(0, 4))
    scan, convolution = kernels["scan_decode"], kernels["short_convolution"]

    assert list(kernels) == ["mixer_in", "short_convolution", "scan_decode", "scan_prefill", "mixer_out"]
    assert (scan.macs, scan.vector_elements) == (7 * 2 * 90, 7 * (90 + 30 + 30))
    assert (scan.kv_read_bytes, scan.kv_write_bytes) == (7 * 4 * 90, 7 * 4 * 90)
    assert kernels["mixer_in"].n == DUAL.opening == 2 * 30 + 2 * 2 * 3 + 6
    assert scan.act_in_bytes == 2 * 7 * DUAL.opening
    assert convolution.macs == 11 * (30 + 12) * 4
    assert (convolution.kv_read_bytes, convolution.kv_write_bytes) == (7 * 2 * 42 * 4, 8 * 2 * 42 * 4)


def test_mamba_makes_steps_keys_and_queries_of_its_values() -> None:
    mixer = Mixer(Rule.SELECTIVE, 10, 1, key_dim=3, rank=2, taps=4, head_vectors=5)
    kernels = mixed(mixer, Sequences(0, 5))

    assert (kernels["mixer_in"].n, kernels["x_proj"].n, kernels["dt_proj"].k) == (20, 2 + 2 * 3, 2)
    assert kernels["scan_prefill"].work is Work.RECURRENT
    assert kernels["scan_prefill"].macs == 5 * 2 * 30
    assert kernels["scan_prefill"].act_in_bytes == 2 * 5 * (20 + 10 + 6)


@pytest.mark.parametrize("values", [FALCON, JAMBA])
def test_chips_of_a_tensor_group_share_heads_and_hold_few_groups_each(values: dict[str, Any]) -> None:
    model = read(values)
    layer = next(one for one in model.layers if one.mixer is not None)
    share = share_of_layer(layer, Degrees(tensor=4))
    assert layer.mixer is not None
    assert share.mixer is not None
    whole, part = layer.mixer, share.mixer

    assert (part.inner, part.groups, part.state_elements) == (whole.inner // 4, 1, whole.state_elements // 4)
    # Mamba's matrices are all split; keys and queries of the one group of Mamba-2 are on every chip.
    again = 0 if whole.rank else 3 * 64 * whole.keyed
    assert part.weights(64) * 4 == whole.weights(64) + again
    assert layer_weight_bytes(share, 64, BF16) < layer_weight_bytes(layer, 64, BF16)


def test_mamba_exchanges_its_steps_as_well() -> None:
    device, batch, degrees = find_device("h100"), prefill_batch("64"), Degrees(tensor=4)
    model = read({**JAMBA, "num_hidden_layers": 3, "attn_layer_offset": 1, "expert_layer_offset": 1})
    case = Case(model, batch, device[0], BF16, StepChoices(), roofline)

    def sent(number: int) -> float:
        layer = model.layers[number]
        return Deployments(case, 4).exchanges(layer, share_of_layer(layer, degrees), degrees, batch)[1]

    assert sent(0) - sent(1) == 2 * 64 * 2 * (4 + 2 * 16) * 3 / 4  # a rank of 4, keys and queries of 16


def test_a_serving_plan_has_room_for_the_states_of_its_users() -> None:
    model = read({**FALCON, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2})
    one = state_bytes_per_sequence(model, BF16) + 704 * 2 * kv_elements_per_token(model)  # 640 and 64 tokens
    device = replace(find_device("h100")[0], capacity_bytes=weight_bytes(model, BF16) + 10 * one)
    case = Case(model, prefill_batch("1"), device, BF16, StepChoices(), roofline)

    assert plans(case, Demand(10, 640, 64), (1,))
    with pytest.raises(InfeasibleError, match="about 10 of 11 sequences fit"):
        plans(case, Demand(11, 640, 64), (1,))


def test_tokens_are_sent_to_experts_in_their_latent() -> None:
    values = {"model_type": "nemotron_h", "hybrid_override_pattern": "E", "hidden_size": 64, "n_routed_experts": 8}
    batch, degrees = prefill_batch("64"), Degrees(data=4, expert=4)

    def sent(**latent: int) -> float:
        model = read({**values, **latent})
        case = Case(model, batch, find_device("h100")[0], BF16, StepChoices(), roofline)
        return Deployments(case, 4).exchanges(model.layers[0], model.layers[0], degrees, batch)[1]

    assert sent() == 4 * sent(moe_latent_size=16)


@pytest.mark.parametrize(
    ("degrees", "message"),
    [
        (Degrees(tensor=3), "degrees: found attention heads 32, which 3 chips do not divide"),
        (Degrees(sequence=2), r"degrees: found a recurrent mixer \(mamba-2\), whose state follows all tokens before"),
        (Degrees(tensor=16), "degrees: found heads of mamba-2 8, which 16 chips do not divide"),
    ],
)
def test_degrees_that_a_mixer_cannot_have_are_refused(degrees: Degrees, message: str) -> None:
    with pytest.raises(InfeasibleError, match=message):
        share_of_layer(read(FALCON).layers[0], degrees)


def test_what_is_not_modelled_of_mixers_is_refused_by_the_name_of_the_layer() -> None:
    model, batch = read({**FALCON, "num_attention_heads": 4, "num_key_value_heads": 2}), prefill_batch("64")

    with pytest.raises(UserError, match="--map: found a layer of full attention and mamba-2, dense against attention"):
        layer_graph("layer", model.layers[0], 64, batch, BF16, StepChoices())
    quantised = {**FALCON, "quantization_config": {"quant_method": "fp8"}}
    with pytest.raises(UserError, match="quantised weights: found 'falcon_h1', whose modules are not known by name"):
        precision_of(quantised, model, "drawn")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("mamba_n_heads", {**FALCON, "mamba_d_head": 7}),
        ("mamba_n_groups", {**FALCON, "mamba_n_groups": 3}),
        ("linear_num_key_heads", {"model_type": "qwen3_next", "linear_num_key_heads": 3}),
        ("layer_types", {"model_type": "lfm2", "num_hidden_layers": 1, "layer_types": ["x"]}),
        ("layers_block_type", {"model_type": "nemotron_h"}),
        ("layers_block_type", {"model_type": "nemotron_h", "hybrid_override_pattern": ""}),
        ("layers_block_type", {"model_type": "nemotron_h", "hybrid_override_pattern": "M" * 10_001}),
        ("linear_attn_config", {"model_type": "kimi_linear", "linear_attn_config": [1]}),
        ("full_attn_layers", {"model_type": "kimi_linear", "linear_attn_config": {"full_attn_layers": 1}}),
        ("block_ffn_dim_multiplier", {"model_type": "lfm2", "block_ffn_dim_multiplier": float("nan")}),
        ("layers_block_type", {"model_type": "nemotron_h", "hybrid_override_pattern": "M?"}),
        ("mlp_bias", {"model_type": "nemotron_h", "hybrid_override_pattern": "ME", "mlp_bias": True}),
        ("sliding_window", {"model_type": "minimax", "sliding_window": 8}),
        ("layer_types", {"model_type": "qwen3_next", "layer_types": ["sliding_attention"], "num_hidden_layers": 1}),
        ("num_experts_per_token", {"model_type": "kimi_linear", "num_experts_per_token": 300}),
        ("lru_width", {"model_type": "recurrent_gemma", "lru_width": 11}),
        ("block_types", {"model_type": "recurrent_gemma", "block_types": ["x"]}),
        ("block_ffn_dim_multiplier", {"model_type": "lfm2", "block_ffn_dim_multiplier": "x"}),
    ],
)
def test_a_field_that_is_wrong_is_named(name: str, values: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"drawn: key '{name}': found"):
        read(values)


def test_layers_are_named_by_what_they_have() -> None:
    names = [kind.name for kind in read({"model_type": "nemotron_h", "hybrid_override_pattern": "M*-E"}).kinds]

    assert names == ["mamba-2", "full attention", "dense", "experts"]
