"""The modules of a model that hold matrices, as checkpoints call them [hf]."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from dfcompile.language_models.model import DenseMlp, LatentAttention, Layer, Model

LINEAR, ROUTER, EMBEDDING = "Linear", "Router", "Embedding"
_GATED = ("gate_proj", "up_proj", "down_proj")


class Module(Struct, frozen=True):
    """A module with one matrix.

    Attributes:
        names: that files give it; a model inside a larger one has a longer one.
        kind: of module.
        weights: class of the matrix, as `--dtype` has it.
        layer: that it belongs to; -1 where it belongs to none.
    """

    names: tuple[str, ...]
    kind: str
    weights: str
    layer: int = -1


def _below(stem: str, names: Sequence[str] = _GATED) -> tuple[str, ...]:
    return tuple(f"{stem}.{name}" for name in names)


def _either(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}|{other}" for name, other in zip(names, others, strict=True))


class _Naming(Struct, frozen=True):
    """How a family names its modules, after the number of the layer.

    Attributes:
        attention: the products around attention.
        mlp: of a dense layer.
        experts: of an expert, whose number stands for ``{}``; further names of the same after ``|``.
        shared: the shared experts.
        router: that chooses experts.
        layers: what all of them stand in.
    """

    attention: tuple[str, ...] = _below("self_attn", ("q_proj", "k_proj", "v_proj", "o_proj"))
    mlp: tuple[str, ...] = _below("mlp")
    experts: tuple[str, ...] = _below("mlp.experts.{}")
    shared: tuple[str, ...] = _below("mlp.shared_experts")
    router: str = "mlp.gate"
    layers: str = "model.layers"


_FUSED = ("gate_up_proj", "gate_up_proj", "down_proj")  # where all experts of a layer are one module
_NAMINGS: Mapping[str, _Naming] = {
    "gpt2": _Naming(("attn.c_attn", "attn.c_proj"), ("mlp.c_fc", "mlp.c_proj"), layers="transformer.h"),
    "gpt_oss": _Naming(experts=_either(_below("mlp.experts.{}"), _below("mlp.experts", _FUSED)), router="mlp.router"),
    "llama4_text": _Naming(
        mlp=_below("feed_forward"),
        experts=_either(_below("feed_forward.experts.{}"), _below("feed_forward.experts", _FUSED)),
        shared=_below("feed_forward.shared_expert"),
        router="feed_forward.router",
    ),
    "mixtral": _Naming(
        experts=_either(_below("block_sparse_moe.experts.{}", ("w1", "w3", "w2")), _below("mlp.experts.{}")),
        router="block_sparse_moe.gate|mlp.gate",
    ),
}
_LATENT = ("self_attn.kv_a_proj_with_mqa", "self_attn.kv_b_proj", "self_attn.o_proj")


def modules_of(model: Model, experts: Iterable[int]) -> Iterator[Module]:
    """Yield all modules with matrices: of layers, the embedding, and the head if it is not the embedding.

    Args:
        model: whose.
        experts: of each layer that are yielded.
    """
    naming = _NAMINGS.get(model.model_type, _Naming())
    listed = sorted(experts)
    for number, layer in enumerate(model.layers):
        for tails, kind, weights in _of_layer(layer, naming, listed):
            stems = [f"{naming.layers}.{number}.{tail}" for tail in tails.split("|")]
            yield Module(_within(stems), kind, weights, number)
    root = naming.layers.partition(".")[0]
    yield Module(_within([f"{root}.{'wte' if root == 'transformer' else 'embed_tokens'}"]), EMBEDDING, "embedding")
    if not model.tied:
        yield Module(("lm_head", "language_model.lm_head"), LINEAR, "head")


def _of_layer(layer: Layer, naming: _Naming, experts: Sequence[int]) -> Iterator[tuple[str, str, str]]:
    """Yield names without the layer, kind and class of the modules of a layer."""
    attention = naming.attention
    if isinstance(layer.attention, LatentAttention):
        asked = ("self_attn.q_a_proj", "self_attn.q_b_proj") if layer.attention.q_rank else ("self_attn.q_proj",)
        attention = (*asked, *_LATENT)
    yield from ((tail, LINEAR, "attention") for tail in attention)
    if isinstance(layer.mlp, DenseMlp):
        yield from ((tail, LINEAR, "mlp") for tail in naming.mlp)
        return
    yield naming.router, ROUTER, "router"
    for expert in (str(expert) for expert in experts if expert < layer.mlp.count):
        yield from ((tail.replace("{}", expert), LINEAR, "experts") for tail in naming.experts)
    if layer.mlp.shared_width:
        yield from ((tail, LINEAR, "mlp") for tail in naming.shared)


def _within(stems: Sequence[str]) -> tuple[str, ...]:
    """Return names of modules, and those that they have where the model is part of one that sees or hears as well."""
    wrapped: list[str] = []
    for stem in stems:
        if stem.startswith("model."):
            wrapped += (f"model.language_model.{stem.removeprefix('model.')}", f"language_model.{stem}")
        else:
            wrapped.append(stem.removeprefix("transformer."))
    return (*stems, *wrapped)
