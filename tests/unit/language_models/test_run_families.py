"""Bytes of caches and operations of small models, against those that transformers and PyTorch have of them."""

import json
from typing import Any

import pytest

from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.footprint import layer_kv_bytes
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.model import Mask
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import Latent, StepChoices
from dfcompile.language_models.steps.step import step_of
from tests.run_families import FAMILIES, RUN, VARIATIONS

ROWS = [json.loads(line) for line in RUN.read_text().splitlines()]
BF16 = uniform(FORMATS["bf16"])


def test_27_families_were_run() -> None:
    assert [row["values"]["model_type"] for row in ROWS] == [name for name in FAMILIES for _ in range(VARIATIONS)]
    assert len(FAMILIES) == 27


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["values"]["model_type"]))
def test_caches_and_operations_are_those_of_the_models(row: dict[str, Any]) -> None:
    model = model_of(Configuration("drawn", "drawn", row["values"]))
    prompt = Batch("prompt", (Sequences(0, row["prompt"], row["count"], head_rows=row["prompt"]),))
    decode = Batch("decode", (Sequences(row["prompt"], 1, row["count"]),))

    assert sum(layer_kv_bytes(layer, decode, BF16) for layer in model.layers) == row["held"]
    choices = StepChoices(causal=False, latent=Latent.NAIVE)
    whole, one = (2 * step_of(model, batch, BF16, choices).macs for batch in (prompt, decode))
    assert one == row["flops"][1]
    if all(attention.reach.mask is Mask.FULL for attention in model.attentions):
        assert whole == row["flops"][0]  # where a window hides pairs, PyTorch computes them all the same
