"""What models with recurrent mixers keep and compute, against those that transformers and PyTorch have of them.

Where transformers has no kernel of a mixer it computes otherwise, or by what the counter does not count; the difference
is stated here, mixer by mixer.
"""

import json
from typing import Any

import pytest

from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.footprint import layer_kv_bytes
from dfcompile.language_models.formats import FORMATS, uniform
from dfcompile.language_models.mixer import Mixer, Rule
from dfcompile.language_models.steps.batch import Batch, Sequences
from dfcompile.language_models.steps.kernel import Latent, StepChoices
from dfcompile.language_models.steps.step import step_of
from tests.run_hybrids import FAMILIES, RUN, VARIATIONS

ROWS = [json.loads(line) for line in RUN.read_text().splitlines()]
CHOICES = StepChoices(causal=False, latent=Latent.NAIVE)
BF16 = uniform(FORMATS["bf16"])


def more_of_a_prompt(mixer: Mixer, tokens: int) -> int:
    """Multiply-accumulates of a sequence that the counter has of a prompt beyond those of the kernels."""
    heads, key, value, states = mixer.heads, mixer.key_dim, mixer.value_dim, mixer.state_elements
    convolution = (
        mixer.channels * mixer.taps * max(0, mixer.taps - 1)
    )  # of tokens that are filled in after the last one
    match mixer.rule:
        case Rule.SELECTIVE | Rule.LRU:
            return convolution - tokens * states  # updates of states are no products there
        case Rule.DUAL:
            alone = (heads - mixer.groups) * key * tokens * mixer.chunk  # every head has keys of its own
            chunks = tokens // mixer.chunk
            return convolution + alone + (chunks + 1) ** 2 * heads * key * value  # states of all pairs of chunks
        case Rule.DELTA:
            pairs = tokens * (mixer.chunk - 1) // 2
            solved = pairs * heads * (key + value)  # triangular systems, which are not counted
            if not mixer.key_decays:
                return convolution - solved
            # Keys with keys and with queries are elementwise there; the inverse of a system is multiplied.
            seen = tokens * mixer.chunk * heads
            return convolution - solved - 2 * seen * key + seen * (key + value)
        case _:
            return convolution


def more_of_a_token(mixer: Mixer) -> int:
    """The same of one more token."""
    convolution = mixer.channels * mixer.taps  # the result before is computed again
    if mixer.rule is Rule.LRU:
        return -convolution - mixer.state_elements  # all is elementwise there
    products = {Rule.SELECTIVE: 1, Rule.DUAL: 1, Rule.DELTA: 3}  # of an element of a state, that are elementwise there
    return convolution - products.get(mixer.rule, 0) * mixer.state_elements


def test_20_families_were_run() -> None:
    assert [row["values"]["model_type"] for row in ROWS] == [name for name in FAMILIES for _ in range(VARIATIONS)]
    assert len(FAMILIES) == 20


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["values"]["model_type"]))
def test_caches_and_operations_are_those_of_the_models(row: dict[str, Any]) -> None:
    model = model_of(Configuration("drawn", "drawn", row["values"]))
    tokens, count = row["prompt"], row["count"]
    prompt = Batch("prompt", (Sequences(0, tokens, count, head_rows=tokens),))
    decode = Batch("decode", (Sequences(tokens, 1, count),))
    whole, one = (step_of(model, batch, BF16, CHOICES).macs for batch in (prompt, decode))

    assert sum(layer_kv_bytes(layer, decode, BF16) for layer in model.layers) == row["held"]
    assert 2 * (whole + count * sum(more_of_a_prompt(mixer, tokens) for mixer in model.mixers)) == row["flops"][0]
    assert 2 * (one + count * sum(map(more_of_a_token, model.mixers))) == row["flops"][1]
