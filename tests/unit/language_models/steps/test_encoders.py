"""Decoders that attend to an encoder: kernels, caches and shares by hand, and what is refused of them."""

import json
from pathlib import Path

import pytest

from dfcompile.api.language_models import graph_page, llm
from dfcompile.errors import InfeasibleError, UserError
from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.footprint import (
    encoder_kv_elements,
    kv_elements_per_token,
    layer_kv_bytes,
    layer_weight_bytes,
)
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.model import Model, with_encoder
from dfcompile.language_models.parallel.degrees import Degrees, share_of_layer
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import StepChoices
from dfcompile.language_models.steps.step import layer_kernels
from dfcompile.options.language_models import LanguageOptions

BF16 = uniform(FORMATS["bf16"])
TINY = {  # Whisper's, with a vocabulary of 100
    "model_type": "whisper", "d_model": 384, "decoder_layers": 4, "decoder_attention_heads": 6,
    "decoder_ffn_dim": 1536, "vocab_size": 100, "max_source_positions": 1500, "max_target_positions": 448,
}  # fmt: skip


def model(**changed: object) -> Model:
    return model_of(Configuration("tiny", "tiny", {**TINY, **changed}))


def macs(batch: Batch) -> dict[str, int]:
    made = layer_kernels(model().layers[0], 384, batch, BF16, StepChoices())
    return {one.name: one.macs for one in made}


def test_keys_and_values_of_an_encoder_are_made_where_sequences_begin() -> None:
    first = macs(Batch("first", (Sequences(0, 4, 3),)))
    mixed = macs(Batch("later", (Sequences(4, 4, 3), Sequences(9, 1, 5))))

    assert first["cross_kv_proj"] == 3 * 1500 * 384 * 2 * 384
    assert first["cross_q_proj"] == first["cross_o_proj"] == 12 * 384 * 384
    assert first["cross_attention_prefill"] == 2 * 384 * 12 * 1500
    assert "cross_kv_proj" not in mixed
    assert mixed["cross_attention_prefill"] == 2 * 384 * 12 * 1500
    assert mixed["cross_attention_decode"] == 2 * 384 * 5 * 1500


def test_caches_hold_an_encoder_once_per_sequence() -> None:
    step = Batch("decode", (Sequences(9, 1, 5), Sequences(99, 1, 2)))

    per_token, encoded = kv_elements_per_token(model()), encoder_kv_elements(model())
    assert (per_token, encoded) == (4 * 768, 4 * 768 * 1500)
    assert sum(layer_kv_bytes(layer, step, BF16) for layer in model().layers) == 2 * (
        per_token * (5 * 10 + 2 * 100) + encoded * 7
    )
    assert encoder_kv_elements(with_encoder(model(), 30)) * 50 == encoded


def test_tensor_groups_share_heads_of_both() -> None:
    (layer, *_), batch = model().layers, Batch("first", (Sequences(0, 4, 3), Sequences(9, 1, 5)))
    share = share_of_layer(layer, Degrees(tensor=3))

    whole, part = (layer_kernels(one, 384, batch, BF16, StepChoices()) for one in (layer, share))
    assert [one.macs for one in whole] == [3 * one.macs for one in part]
    assert layer_kv_bytes(layer, batch, BF16) == 3 * layer_kv_bytes(share, batch, BF16)
    shared, full = (layer_weight_bytes(one, 384, BF16) for one in (share, layer))
    assert 0 < 3 * shared - full < full // 100  # norms and the last biases are everywhere
    with pytest.raises(InfeasibleError, match="2 chips that share a sequence against 1"):
        share_of_layer(layer, Degrees(sequence=2))


def test_the_tokens_of_an_encoder_are_those_of_the_option(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(TINY))
    run = llm(str(path), "h100-sxm", decode=("200x16",), encoder_tokens=750)

    assert run.to_record()["model"]["encoder_tokens"] == 750  # type: ignore[index, call-overload]
    assert "4,608,000 per sequence of its encoder" in run.tables(120, verbose=False)
    assert "of the decoder, 4 layers" in run.tables(120, verbose=False)
    with pytest.raises(UserError, match="--encoder-tokens: found 1501 against at most 1500 of"):
        llm(str(path), "h100-sxm", decode=("200x16",), encoder_tokens=1501)
    with pytest.raises(UserError, match="--shared-prefix: found 'whisper', whose layers attend to an encoder"):
        llm(str(path), "h100-sxm", decode=("200x16",), shared_prefix=8)
    with pytest.raises(UserError, match="--from-graph: found 'whisper', whose layers attend to an encoder"):
        graph_page(LanguageOptions(config=str(path), prefill=("8",), from_graph=True), 80)
    with pytest.raises(UserError, match="found 5 against gpt2, which attends to no encoder"):
        llm("gpt2", "h100-sxm", decode=("200x16",), encoder_tokens=5)
    path.write_text(json.dumps(TINY | {"quantization_config": {"quant_method": "fp8"}}))
    with pytest.raises(UserError, match="quantised weights: found 'whisper', whose modules are not known by name"):
        llm(str(path), "h100-sxm", decode=("200x16",))


def test_t5_takes_any_number_of_tokens_and_says_which() -> None:
    t5 = model_of(Configuration("t5", "t5", {"model_type": "t5"}))

    assert t5.encoder_tokens == 512
    assert t5.most_encoded == t5.most_context == 0
    assert "encoder: 512 tokens taken, for no field says how many (--encoder-tokens)" in t5.notes
    with pytest.raises(UserError, match="key 'feed_forward_proj': found 5 against"):
        model_of(Configuration("t5", "t5", {"model_type": "t5", "feed_forward_proj": 5}))
