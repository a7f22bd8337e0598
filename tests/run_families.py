"""Small models of many families, run by `transformers` without weights: what their caches hold, and what they compute.

``python -m tests.run_families`` writes `tests/data/llm/run_families.jsonl` anew: of each model a prompt and one more
token on the meta device. `held` is the bytes of keys and values that the second step has of all layers, `flops` what
PyTorch's counter counts of both steps, without rotations of positions.
"""

import json
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.configuration.rows import ROWS
from tests.built_families import drawn, drawn_other, variations

Case: TypeAlias = tuple[dict[str, object], int, int]  # fields, tokens of prompts, and how many there are

RUN = Path(__file__).parent / "data" / "llm" / "run_families.jsonl"
FAMILIES = (
    "llama", "mistral", "gpt2", "gpt_neox", "falcon", "phi3", "mixtral", "olmo2", "olmo3", "cohere2", "starcoder2",
    "bloom", "gemma", "gptj", "olmoe", "opt", "exaone4", "granite", "t5", "whisper", "bart", "qwen2_5_vl_text",
    "gemma3n_text", "gemma4_text", "deepseek_v3", "deepseek_v32", "glm_moe_dsa",
)  # fmt: skip
VARIATIONS = 3
SCRIPT = """
import json, sys, torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import (
    AutoModelForCausalLM, AutoModelForImageTextToText, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq
)
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

SEEING = {  # text models that have a head only as part of one that sees as well
    "qwen2_5_vl_text": ("qwen2_5_vl", {"depth": 1, "hidden_size": 16, "num_heads": 2, "fullatt_block_indexes": [0]}),
}


def watched(layer, held, name):
    update = getattr(layer, name)

    def updated(*given, **named):
        found = update(*given, **named)
        held.append(sum(one.nbytes for one in found[:2]) if isinstance(found, tuple) else found.nbytes)
        return found

    setattr(layer, name, updated)


for line in sys.stdin:
    values, prompt, count, encoded = json.loads(line)
    outer, tower = SEEING.get(values["model_type"], ("", {}))
    if outer:
        tower |= {"intermediate_size": 8, "out_hidden_size": values["hidden_size"]}
        tied, part = values["tie_word_embeddings"], values["hidden_size"] // values["num_attention_heads"] // 8
        sections = [2 * part, part, part]
        values["rope_parameters"] = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": sections}
        values = {"model_type": outer, "text_config": values, "vision_config": tower, "tie_word_embeddings": tied}
    config = CONFIG_MAPPING[values.pop("model_type")](**values, attn_implementation="eager")
    kinds = (AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq) if encoded else (AutoModelForCausalLM,)
    kinds = (AutoModelForImageTextToText,) if outer else kinds
    (kind,) = (kind for kind in kinds if type(config) in kind._model_mapping)
    held, flops, cache = [], [], None
    with torch.device("meta"), torch.no_grad():
        model = kind.from_config(config, dtype=torch.bfloat16, experts_implementation="batched_mm")
        model.eval()
        given, name = {}, "input_ids"
        if encoded:
            given["encoder_outputs"] = (torch.zeros((count, encoded, config.d_model), dtype=torch.bfloat16),)
            name = "decoder_input_ids"
        for length in (prompt, 1):
            crossed = getattr(cache, "cross_attention_cache", None)  # is not added to
            held += [layer.keys.nbytes + layer.values.nbytes for layer in crossed.layers] if crossed else []
            own = getattr(cache, "self_attention_cache", cache)
            for layer in () if cache is None else own.layers:
                watched(layer, held, "update")
                if hasattr(layer, "update_indexer"):
                    watched(layer, held, "update_indexer")
            given |= {name: torch.zeros((count, length), dtype=torch.long), "past_key_values": cache}
            if outer:
                given["position_ids"] = torch.zeros((3, count, length), dtype=torch.long)
            with FlopCounterMode(display=False) as counter:
                done = model(**given, use_cache=True)
            cache = done.past_key_values
            modules = counter.get_flop_counts().items()
            rotated = sum(sum(one.values()) for name, one in modules if name.endswith("rotary_emb"))
            flops.append(counter.get_total_flops() - rotated)
    print(json.dumps([sum(held), flops]), flush=True)
"""


def small(draw: random.Random, family: str) -> Case:
    """Return the fields of a small model with room for its prompt, tokens of prompts, and how many there are."""
    values = drawn(draw, family) if family in ROWS else drawn_other(draw, family)
    positions = ROWS[family].positions if family in ROWS else ()
    if family == "falcon":
        # Of the other decoder its class keeps each key once per query head.
        values |= dict.fromkeys(("num_kv_heads", "num_ln_in_parallel_attn")) | {"new_decoder_architecture": False}
    if family == "gemma4_text":
        values["hidden_size_per_layer_input"] = values["hidden_size_per_layer_input"] or 8  # its class runs no other
    if "kv_lora_rank" in values:
        values["num_key_value_heads"] = values["num_attention_heads"]  # latents are made to so many
    return values | dict.fromkeys(positions, 64), draw.randint(5, 40), draw.randint(1, 4)


def write_runs(target: Path, script: str, asked: Sequence[Case], lines: Iterable[object]) -> None:
    """Write what a script tells of each of the lines: bytes held and operations of a model, a prompt and a count."""
    given = "\n".join(map(json.dumps, lines))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], input=given, capture_output=True, text=True, check=False
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (done.stderr[-2000:], asked[len(found)])
    rows = (
        {"values": values, "prompt": prompt, "count": count, "held": held, "flops": flops}
        for (values, prompt, count), (held, flops) in zip(asked, found, strict=True)
    )
    target.write_text("".join(json.dumps(row) + "\n" for row in rows))


def main() -> int:
    """Write the file."""
    asked = [one for family in FAMILIES for one in variations(small, family, VARIATIONS)]
    encoders = [model_of(Configuration("drawn", "drawn", values)).encoder_tokens for values, _, _ in asked]
    write_runs(RUN, SCRIPT, asked, ([*one, encoded] for one, encoded in zip(asked, encoders, strict=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
