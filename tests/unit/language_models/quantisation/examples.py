"""Examples of configurations with what they state, and small models that they are of."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dfcompile.language_models.configuration.reading import Configuration, model_of
from dfcompile.language_models.formats import NumberFormat, Precision
from dfcompile.language_models.model import Model
from dfcompile.language_models.quantisation.precision import precision_of

Keys = dict[str, object]
SMALL: Keys = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 160, "tie_word_embeddings": False,
}  # fmt: skip
LLAMA: Keys = {"model_type": "llama", **SMALL}
EXPERTS: Keys = {
    "model_type": "qwen3_moe", **SMALL, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
}  # fmt: skip
LATENT: Keys = {
    "model_type": "deepseek_v3", **SMALL, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "n_shared_experts": 1, "first_k_dense_replace": 1, "kv_lora_rank": 16, "q_lora_rank": 24, "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8, "v_head_dim": 16,
}  # fmt: skip


def model(values: Mapping[str, object]) -> Model:
    return model_of(Configuration("small", "small", values))


def read(
    stated: object, values: Mapping[str, object] = LLAMA, dtype: str = "bfloat16"
) -> tuple[Precision, tuple[str, ...]]:
    return precision_of({**values, "dtype": dtype, "quantization_config": stated}, model(values), "x")


def bits(form: NumberFormat) -> float:
    """Bits of an element with its share of scales and zero points."""
    return 8 * form.bytes_of(2**24) / 2**24


@dataclass(frozen=True, slots=True)
class Example:
    """A configuration and what it states.

    Attributes:
        stated: the configuration.
        bits: of a weight of an MLP, with scales and zero points.
        activations: name of their format.
        kv: name of the format of caches.
        head: bits of a weight of the head.
        attention: bits of a weight of attention, if not those of an MLP.
        free: paths of mappings whose keys are free.
    """

    stated: Keys
    bits: float
    activations: str = "bf16"
    kv: str = "bf16"
    head: float = 16
    attention: float | None = None
    free: tuple[str, ...] = field(default=())

    def check(self) -> None:
        precision, _ = read(self.stated)

        assert bits(precision.mlp) == self.bits
        assert bits(precision.attention) == (self.bits if self.attention is None else self.attention)
        assert (precision.activations.name, precision.kv.name) == (self.activations, self.kv)
        assert bits(precision.head) == self.head
        assert (precision.embedding.name, precision.router.name, precision.vectors.name) == ("bf16", "bf16", "bf16")


def places(found: object, path: str = "quantization_config") -> Iterator[tuple[str, object]]:
    """Yield every value below a configuration, with the keys that lead to it."""
    yield path, found
    if isinstance(found, dict):
        for key, value in found.items():
            yield from places(value, f"{path}.{key}")


def changed(stated: Keys, path: str, value: object, *, added: str = "") -> Keys:
    """Return a configuration with another value at a path, or with a key added to the mapping there."""
    made: Keys = json.loads(json.dumps(stated))  # no two places share a mapping
    for name, holder in list(places(made)):
        if isinstance(holder, dict) and (name == path if added else path in {f"{name}.{key}" for key in holder}):
            holder[added or path.removeprefix(f"{name}.")] = value
            return made
    raise AssertionError(path)
