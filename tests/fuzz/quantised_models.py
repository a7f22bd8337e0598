"""Small language models with every matrix by the name that checkpoints give it, counted by hand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.fuzz.draw import Draw

HIDDEN, HEADS, KV_HEADS, WIDTH, VOCABULARY = 512, 8, 4, 64, 32_768
DENSE, EXPERT, COUNT = 1536, 256, 4
RANK, LATENT, ROPE, NOPE, VALUE = 256, 128, 32, 32, 32
GATED = ("gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of a model.

    Attributes:
        name: in checkpoints.
        kind: attention, mlp, experts, router, embedding or head.
        elements: of it.
    """

    name: str
    kind: str
    elements: int

    @property
    def layer(self) -> int:
        """Number of the layer; -1 where it stands in none."""
        return next((int(part) for part in self.name.split(".") if part.isdecimal()), -1)

    @property
    def is_shared(self) -> bool:
        return "shared_experts" in self.name


@dataclass(frozen=True, slots=True)
class DrawnModel:
    """A configuration, its matrices, and elements that a token leaves in all caches."""

    values: Mapping[str, object]
    matrices: tuple[Matrix, ...]
    cached: int

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(matrix.kind for matrix in self.matrices))

    def of_kind(self, kind: str) -> list[Matrix]:
        return [matrix for matrix in self.matrices if matrix.kind == kind]


def drawn_model(draw: Draw) -> DrawnModel:
    layers = draw.integer(1, 4)
    return draw.choice([_llama, _llama, _qwen, _latent, _mixtral, _gpt_oss, _gpt2])(layers, draw.chance(0.2))


def _common(kind: str, layers: int, tied: bool) -> dict[str, object]:
    return {
        "model_type": kind, "hidden_size": HIDDEN, "num_hidden_layers": layers, "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS, "head_dim": WIDTH, "intermediate_size": DENSE, "vocab_size": VOCABULARY,
        "tie_word_embeddings": tied, "max_position_embeddings": 4096, "attention_bias": False,
    }  # fmt: skip


def _ends(tied: bool, embedding: str = "model.embed_tokens") -> list[Matrix]:
    elements = HIDDEN * VOCABULARY
    return [Matrix(embedding, "embedding", elements), *([] if tied else [Matrix("lm_head", "head", elements)])]


def _attention(stem: str) -> list[Matrix]:
    columns = {"q": HEADS * WIDTH, "k": KV_HEADS * WIDTH, "v": KV_HEADS * WIDTH, "o": HEADS * WIDTH}
    return [Matrix(f"{stem}.self_attn.{one}_proj", "attention", HIDDEN * width) for one, width in columns.items()]


def _gated(stem: str, kind: str, width: int, names: tuple[str, ...] = GATED) -> list[Matrix]:
    return [Matrix(f"{stem}.{name}", kind, HIDDEN * width) for name in names]


def _llama(layers: int, tied: bool) -> DrawnModel:
    found = _ends(tied)
    for layer in range(layers):
        stem = f"model.layers.{layer}"
        found += [*_attention(stem), *_gated(f"{stem}.mlp", "mlp", DENSE)]
    return DrawnModel(_common("llama", layers, tied), tuple(found), layers * 2 * KV_HEADS * WIDTH)


def _with_experts(
    kind: str, layers: int, tied: bool, more: Mapping[str, object], room: str, router: str,
    names: tuple[str, ...] = GATED, width: int = EXPERT,
) -> DrawnModel:  # fmt: skip
    found = _ends(tied)
    for layer in range(layers):
        stem = f"model.layers.{layer}"
        found += [*_attention(stem), Matrix(f"{stem}.{router}", "router", HIDDEN * COUNT)]
        for expert in range(COUNT):
            found += _gated(f"{stem}.{room}.{expert}", "experts", width, names)
    values = {**_common(kind, layers, tied), "num_experts_per_tok": 2, **more}
    return DrawnModel(values, tuple(found), layers * 2 * KV_HEADS * WIDTH)


def _qwen(layers: int, tied: bool) -> DrawnModel:
    more = {"num_experts": COUNT, "moe_intermediate_size": EXPERT, "decoder_sparse_step": 1, "mlp_only_layers": []}
    return _with_experts("qwen3_moe", layers, tied, more, "mlp.experts", "mlp.gate")


def _mixtral(layers: int, tied: bool) -> DrawnModel:
    more = {"num_local_experts": COUNT, "sliding_window": None}
    room = "block_sparse_moe"
    return _with_experts("mixtral", layers, tied, more, f"{room}.experts", f"{room}.gate", ("w1", "w2", "w3"), DENSE)


def _gpt_oss(layers: int, tied: bool) -> DrawnModel:
    more = {"num_local_experts": COUNT, "sliding_window": 128, "attention_bias": True, "intermediate_size": EXPERT}
    return _with_experts("gpt_oss", layers, tied, more, "mlp.experts", "mlp.router")


def _latent(layers: int, tied: bool) -> DrawnModel:
    found = _ends(tied)
    projections = {
        "q_a_proj": HIDDEN * RANK, "q_b_proj": RANK * HEADS * (NOPE + ROPE), "o_proj": HEADS * VALUE * HIDDEN,
        "kv_a_proj_with_mqa": HIDDEN * (LATENT + ROPE), "kv_b_proj": LATENT * HEADS * (NOPE + VALUE),
    }  # fmt: skip
    for layer in range(layers):
        stem = f"model.layers.{layer}"
        found += [Matrix(f"{stem}.self_attn.{name}", "attention", size) for name, size in projections.items()]
        if layer == 0:
            found += _gated(f"{stem}.mlp", "mlp", DENSE)
            continue
        found.append(Matrix(f"{stem}.mlp.gate", "router", HIDDEN * COUNT))
        for expert in range(COUNT):
            found += _gated(f"{stem}.mlp.experts.{expert}", "experts", EXPERT)
        found += _gated(f"{stem}.mlp.shared_experts", "mlp", EXPERT)
    values = {
        **_common("deepseek_v3", layers, tied), "n_routed_experts": COUNT, "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT, "n_shared_experts": 1, "first_k_dense_replace": 1, "kv_lora_rank": LATENT,
        "q_lora_rank": RANK, "qk_rope_head_dim": ROPE, "qk_nope_head_dim": NOPE, "v_head_dim": VALUE,
        "moe_layer_freq": 1,
    }  # fmt: skip
    return DrawnModel(values, tuple(found), layers * (LATENT + ROPE))


def _gpt2(layers: int, tied: bool) -> DrawnModel:
    found = _ends(tied, "transformer.wte")
    for layer in range(layers):
        stem = f"transformer.h.{layer}"
        found += [
            Matrix(f"{stem}.attn.c_attn", "attention", HIDDEN * 3 * HIDDEN),
            Matrix(f"{stem}.attn.c_proj", "attention", HIDDEN * HIDDEN),
            Matrix(f"{stem}.mlp.c_fc", "mlp", HIDDEN * 4 * HIDDEN),
            Matrix(f"{stem}.mlp.c_proj", "mlp", HIDDEN * 4 * HIDDEN),
        ]
    values = {
        "model_type": "gpt2", "n_embd": HIDDEN, "n_layer": layers, "n_head": HEADS, "vocab_size": VOCABULARY,
        "n_positions": 1024, "tie_word_embeddings": tied,
    }  # fmt: skip
    return DrawnModel(values, tuple(found), layers * 2 * HIDDEN)


FAMILIES: tuple[Callable[[int, bool], DrawnModel], ...] = (_llama, _qwen, _latent, _mixtral, _gpt_oss, _gpt2)
