"""Reads the configuration of a family that is a row of the table: layers, what they are made of, the model.

A part that a row knows and does not have here is refused by the name of its field.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import floordiv

from dfcompile.language_models.configuration.fields import Fields
from dfcompile.language_models.configuration.rows import Family, Said
from dfcompile.language_models.model import Attention, DenseMlp, Experts, LatentAttention, Layer, Mask, Model, Reach
from dfcompile.records import replace

MOST_LAYERS = 10_000
FULL = Reach()
EXPERT_COUNTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
EXPERTS_CHOSEN = ("num_experts_per_tok", "experts_per_token", "moe_k", "moe_topk")


def composed(row: Family) -> Callable[[Fields], Model]:
    """Return what reads the configurations of a row.

    Raises:
        UserError: when it does: a field is missing or wrong, or says what is not modelled.
    """

    def read(fields: Fields) -> Model:
        for name, needed in row.refused.items():
            found = fields.stated(name)
            if found is not None and found != needed:
                raise fields.wrong(name, f"{found!r}, which is not modelled, against {needed!r}")
        hidden, layers = fields.count(*row.hidden), layer_count(fields, *row.layers)
        attention = grouped_attention(row, fields, hidden)
        mlp = _mlp(row, fields, hidden)
        heads, kv_heads, dim = attention.heads, attention.kv_heads, attention.qk_dim
        sizes = (heads * dim, kv_heads * dim, dim, hidden, 0 if isinstance(mlp, Experts) else mlp.width, 1)
        norms = 1 if row.side_by_side and fields.flag(row.side_by_side) else row.norms
        cross = _cross(row, fields, attention)
        norms += cross is not None and not row.encoder
        layer = Layer(
            attention,
            mlp,
            norms + 2 * bool(row.more_norms and fields.flag(row.more_norms)),
            row.norm_biases,
            norm_weights=row.norm_weights,
            extra_parameters=sum(count * size for count, size in zip(row.extra, sizes, strict=True)),
            cross=cross,
        )
        reaches = _reaches(row, fields, layers)
        mlps = _mlps(row, fields, layers, mlp)
        differing = zip(reaches, mlps, strict=True)
        made = tuple(replace(layer, attention=replace(attention, reach=one), mlp=other) for one, other in differing)
        if row.mixing is not None:
            made = row.mixing(fields, made)
        positions = fields.count(*row.positions) + row.further_positions if row.positions else 0
        model = model_of_layers(fields, hidden, made, positions, tied=fields.flag(*row.tied))
        vocabulary = model.vocabulary if said(fields, row.head_bias) else 0
        vectors = vocabulary + (1 + row.norm_biases) * hidden * row.embedding_norm
        if not row.last_norm:
            model = replace(model, norm_weights=False, norm_biases=False)
        return replace(model, vectors=vectors, most_encoded=0 if "encoder" in fields.values else model.encoder_tokens)

    return read


def said(fields: Fields, stated: Said) -> bool:
    """Return a truth value of the class, or of a field of the file."""
    return fields.flag(stated) if isinstance(stated, str) else stated


def _cross(row: Family, fields: Fields, attention: Attention) -> Attention | None:
    """Return the attention to an encoder: of images if it is beside the decoder, else of as many tokens as are said."""
    if "encoder" in fields.values:
        if not (row.encoder or row.may_cross):
            raise fields.wrong("decoder", f"{fields.family!r}, which attends to no encoder")
        tokens, source = image_tokens(fields)
        # Others have the encoder's tokens projected before the layers.
        given = source if fields.stated("cross_attention_hidden_size") is not None else 0
        return replace(to_encoder(attention, tokens), source=given)
    return to_encoder(attention, fields.count(*row.encoder)) if row.encoder else None


def to_encoder(attention: Attention, tokens: int) -> Attention:
    """Return the same attention, to so many tokens of an encoder."""
    return replace(attention, reach=Reach(Mask.ENCODER, tokens))


def _number(fields: Fields, said: str | int, least: int = 0) -> int:
    return fields.optional(said, least=least) if isinstance(said, str) else said


def layer_count(fields: Fields, *names: str) -> int:
    """Return the number of layers.

    Raises:
        UserError: it is none, or too large.
    """
    layers = fields.count(*names)
    if layers > MOST_LAYERS:
        raise fields.wrong(names[0], f"{layers} against at most {MOST_LAYERS}")
    return layers


def head_size(fields: Fields, hidden: int, heads: int, name: str = "num_attention_heads") -> int:
    """Return ``head_dim``, or what the class derives: heads must divide the hidden size then.

    Raises:
        UserError: they do not.
    """
    if fields.stated("head_dim") is not None:
        return fields.count("head_dim")
    if hidden % heads:
        raise fields.wrong(name, f"{heads} heads that do not divide hidden_size {hidden} (give head_dim)")
    return fields.count("head_dim", derived=hidden // heads)


def grouped_attention(row: Family, fields: Fields, hidden: int) -> Attention:
    """Return the attention of a row, which sees all tokens.

    Raises:
        UserError: a field is missing or wrong.
    """
    heads = fields.count(*row.heads)
    dim = head_size(fields, hidden, heads, row.heads[0])
    kv_heads = heads
    if row.single_kv and fields.flag(row.single_kv):
        kv_heads = 1
    elif row.kv_heads:
        stated = fields.count(*row.kv_heads, derived=None if fields.has_default(*row.kv_heads) else heads)
        kv_heads = fields.dividing(row.kv_heads[0], stated, heads, row.heads[0])
    norms = 0
    if said(fields, row.qk_norm):
        norms = (heads + kv_heads if row.whole_norm else 2) * dim * (1 + (row.norm_biases and not row.whole_norm))
    return Attention(
        heads,
        kv_heads,
        dim,
        dim,
        qkv_bias=said(fields, row.qkv_bias),
        output_bias=said(fields, row.output_bias),
        norm_parameters=norms,
        sinks=heads * row.sinks,
        gate_dim=dim if row.gate else int(said(fields, row.head_gate)),
        gate_bias=said(fields, row.gate_bias),
        key_bias=row.key_bias,
    )


def latent_attention(fields: Fields, v_dim: int | None = None) -> LatentAttention:
    """Return the latent attention of a file.

    Args:
        fields: of the file.
        v_dim: elements of a value that the class derives, if the file does not say how many they are.

    Raises:
        UserError: a field is missing or wrong.
    """
    return LatentAttention(
        heads=fields.count("num_attention_heads"),
        q_rank=fields.optional("q_lora_rank"),
        kv_rank=fields.count("kv_lora_rank"),
        rope=fields.count("qk_rope_head_dim"),
        nope=fields.count("qk_nope_head_dim"),
        v_dim=fields.count("v_head_dim", derived=v_dim),
        bias=fields.flag("attention_bias"),
    )


def _mlp(row: Family, fields: Fields, hidden: int) -> DenseMlp | Experts:
    """Return the experts of a family, or its MLP."""
    mixture = row.experts
    if mixture is None:
        return _dense(row, fields, hidden)
    if mixture.least and fields.count(*EXPERT_COUNTS, least=0) < mixture.least:
        return DenseMlp(fields.count(mixture.shared_width)) if mixture.shared_width else _dense(row, fields, hidden)
    count, chosen = fields.experts(EXPERT_COUNTS, EXPERTS_CHOSEN)
    width = fields.count(mixture.width)
    shared = fields.optional(mixture.shared_width, least=0) if mixture.shared_width else 0
    shared += _number(fields, mixture.shared_count) * width
    gate = mixture.shared_gate and shared > 0
    return Experts(count, chosen, width, shared, router_bias=mixture.router_bias, shared_gate=gate)


def _dense(row: Family, fields: Fields, hidden: int) -> DenseMlp:
    width = fields.count(*row.width, derived=4 * hidden) if row.widens else fields.count(*row.width)
    if row.adjusted_width is not None:
        width = row.adjusted_width(fields, width)
    return DenseMlp(width, row.gated, said(fields, row.mlp_bias))


def _mlps(row: Family, fields: Fields, layers: int, mlp: DenseMlp | Experts) -> Sequence[DenseMlp | Experts]:
    """Return the MLP of every layer."""
    mixture = row.experts
    if mixture is None or isinstance(mlp, DenseMlp):
        return (mlp,) * layers
    first = _number(fields, mixture.first_dense)
    every = fields.count(mixture.every) if mixture.every else 1
    offset = fields.count(mixture.offset, least=0) if mixture.offset else every - 1
    none = (fields.layers_in(mixture.dense) if mixture.dense else None) or frozenset()
    last = fields.whole(mixture.last) if mixture.last else -1
    end = last if last >= 0 else layers + last

    def is_sparse(layer: int) -> bool:
        return first <= layer <= end and layer % every == offset and layer not in none

    sparse = sparse_layers(fields, layers, is_sparse)
    if all(sparse):
        return (mlp,) * layers
    dense = _dense(row, fields, fields.count(*row.hidden))
    return [mlp if one else dense for one in sparse]


def sparse_layers(fields: Fields, layers: int, pattern: Callable[[int], bool]) -> Sequence[bool]:
    """Return which layers have experts: `mlp_layer_types` if the file has them, else where the pattern is true.

    Raises:
        UserError: a type of layers that is unknown.
    """
    named = fields.per_layer("mlp_layer_types", layers)
    if named is None:
        return [pattern(layer) for layer in range(layers)]
    for word in named:
        if word not in ("dense", "sparse"):
            raise fields.wrong("mlp_layer_types", f"{word!r} against dense, sparse")
    return [word == "sparse" for word in named]


def _reaches(row: Family, fields: Fields, layers: int) -> Sequence[Reach]:
    windows = row.windows
    if windows is None:
        return (FULL,) * layers
    window = window_of(fields.optional("sliding_window"))
    period = 0
    if window is not FULL and fields.listed("layer_types") is None:
        period = _number(fields, windows.period)
    full, first = 0 if windows.is_first else period - 1, fields.count(windows.before, least=0) if windows.before else 0
    return reaches_of(fields, layers, window, lambda layer: layer >= first and (period == 0 or layer % period != full))


def window_of(extent: int) -> Reach:
    """Return a window of so many tokens; 0: there is none."""
    return Reach(Mask.WINDOW, extent) if extent else FULL


def reaches_of(fields: Fields, layers: int, reach: Reach, pattern: Callable[[int], bool]) -> tuple[Reach, ...]:
    """Return the reach of each layer: `layer_types` if the file has them, else where the pattern is true.

    Raises:
        UserError: a type of layers that is unknown, or has no extent.
    """
    named = fields.per_layer("layer_types", layers)
    if named is None:
        return tuple(reach if pattern(layer) else FULL for layer in range(layers))
    words = {"full_attention": FULL, "sliding_attention": reach, "chunked_attention": reach}
    for word in named:
        if word not in words:
            raise fields.wrong("layer_types", f"{word!r} against {', '.join(words)}")
        if words[word] is not FULL and not reach.extent:
            raise fields.wrong("layer_types", f"{word!r} without an extent for it")
    return tuple(words[word] for word in named)


def model_of_layers(
    fields: Fields, hidden: int, layers: tuple[Layer, ...], positions: int = 0, *, tied: bool | None = None
) -> Model:
    """Return the model of some layers, with what most classes call the rest."""
    return Model(
        name=fields.name,
        model_type=fields.family,
        hidden=hidden,
        vocabulary=fields.count("vocab_size"),
        layers=layers,
        tied=fields.flag("tie_word_embeddings") if tied is None else tied,
        positions=positions,
        norm_weights=layers[0].norm_weights,
        norm_biases=layers[0].norm_biases,
        most_context=positions or fields.optional("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"),
        notes=tuple(dict.fromkeys(fields.taken)),
    )


# Of a class: tokens beside those of patches, elements of a pixel's side of a patch, and of the image.
_BESIDE = {"vit": 1, "deit": 2, "beit": 1}
_DEFAULTS: Mapping[str, object] = {"image_size": 224, "patch_size": 16, "hidden_size": 768}
_SWIN: Mapping[str, object] = {"image_size": 224, "patch_size": 4, "embed_dim": 96, "depths": [2, 2, 6, 2]}


def image_tokens(fields: Fields) -> tuple[int, int]:
    """Return tokens of an image, and elements of each, of the encoder beside a decoder.

    Raises:
        UserError: an encoder that is not known, or a field that is wrong.
    """
    values = fields.nested("encoder")
    kind, known = values.get("model_type"), (*_BESIDE, "donut-swin")
    if kind not in known:
        raise fields.wrong("encoder", f"{str(kind)[:40]!r} against one of {', '.join(known)}")
    is_swin = kind == "donut-swin"
    defaults = _SWIN if is_swin else _DEFAULTS
    inner = replace(fields, values=values, defaults=defaults, family=str(kind), where=f"{fields.where}: encoder")
    patches = list(map(floordiv, _sides(inner, "image_size"), _sides(inner, "patch_size")))
    if not is_swin:
        return patches[0] * patches[1] + _BESIDE[str(kind)], inner.count("hidden_size")
    depths = inner.stated("depths")
    if not isinstance(depths, list) or not 0 < len(depths) <= 16:
        raise inner.wrong("depths", f"{str(depths)[:40]!r} against a list")
    for _ in depths[1:]:  # each stage but the last one merges four tokens, at borders fewer
        patches = [-(-side // 2) for side in patches]
    return patches[0] * patches[1], inner.count("embed_dim") * 2 ** (len(depths) - 1)


def _sides(fields: Fields, name: str) -> tuple[int, int]:
    """Return height and width: one number for both, or a list of two."""
    stated = fields.stated(name)
    if not isinstance(stated, list):
        return (fields.count(name),) * 2
    if len(stated) != 2 or not all(type(side) is int and 0 < side <= 2**20 for side in stated):
        raise fields.wrong(name, f"{str(stated)[:40]} against a number or two")
    return stated[0], stated[1]
