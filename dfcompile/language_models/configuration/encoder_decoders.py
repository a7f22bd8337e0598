"""Decoders that attend to an encoder and are no rows of the table: T5 and its relatives, and Llama 3.2 Vision [hf]."""

from dfcompile.language_models.configuration.composed import (
    composed,
    head_size,
    layer_count,
    model_of_layers,
    to_encoder,
)
from dfcompile.language_models.configuration.fields import Fields
from dfcompile.language_models.configuration.rows import ROWS
from dfcompile.language_models.model import Attention, DenseMlp, Layer, Model
from dfcompile.records import replace

IMAGE_TOKENS = 4 * 1601  # of an image of four tiles, as Llama 3.2 Vision was published
CROSSED = frozenset((3, 8, 13, 18, 23, 28, 33, 38))  # layers, counted from 0
SPECIAL = 8  # rows of the embedding beyond the vocabulary
T5_TOKENS = 512  # of the encoder, that T5 was trained with: its positions are relative, so that no field says any


def t5(fields: Fields) -> Model:
    """Return the decoder of T5: no biases, heads of any size, and a table of biases by distance.

    UMT5 has such a table in every layer, the others one for all.

    Raises:
        UserError: a field is missing or wrong.
    """
    hidden, layers = fields.count("d_model"), layer_count(fields, "num_decoder_layers", "num_layers")
    heads, dim = fields.count("num_heads"), fields.count("d_kv")
    activation = fields.stated("feed_forward_proj")
    if not isinstance(activation, str):
        raise fields.wrong("feed_forward_proj", f"{activation!r} against the name of an activation function")
    attention, distances = Attention(heads, heads, dim, dim), fields.count("relative_attention_num_buckets") * heads
    in_layers = fields.family == "umt5"
    layer = Layer(
        attention,
        DenseMlp(fields.count("d_ff"), gated=activation.startswith("gated-")),
        norms=3,
        extra_parameters=distances * in_layers,
        cross=to_encoder(attention, T5_TOKENS),
    )
    fields.taken.append(f"encoder: {T5_TOKENS} tokens taken, for no field says how many (--encoder-tokens)")
    model = model_of_layers(fields, hidden, (layer,) * layers)
    return replace(model, vectors=distances * (not in_layers), most_context=0)


def trocr(fields: Fields) -> Model:
    """Return the decoder of TrOCR, whose positions and norm of the embedding are fields.

    Raises:
        UserError: a field is missing or wrong.
    """
    row = replace(ROWS["bart"], embedding_norm=fields.flag("layernorm_embedding"), may_cross=True, encoder=())
    if not fields.flag("use_learned_position_embeddings"):
        row = replace(row, positions=(), further_positions=0)
    if "encoder" not in fields.values:
        raise fields.wrong("model_type", "'trocr' without the encoder of a 'vision-encoder-decoder'")
    return composed(replace(row, norms=2))(fields)


def mllama(fields: Fields) -> Model:
    """Return Llama 3.2 Vision: some layers attend to tokens of images instead of those of the text.

    Raises:
        UserError: a field is missing or wrong.
    """
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    heads, kv_heads = fields.count("num_attention_heads"), fields.count("num_key_value_heads")
    if heads % kv_heads:
        found = f"{kv_heads} heads that do not divide the {heads} of num_attention_heads"
        raise fields.wrong("num_key_value_heads", found)
    dim, mlp = head_size(fields, hidden, heads), DenseMlp(fields.count("intermediate_size"))
    attention, crossed = Attention(heads, kv_heads, dim, dim), fields.layers_in("cross_attention_layers")
    if crossed is None:
        crossed = CROSSED
        fields.taken.append(f"cross_attention_layers = {sorted(CROSSED)}: left out, default of its class")
    to_images = replace(to_encoder(attention, IMAGE_TOKENS), norm_parameters=2 * dim)
    own = Layer(attention, mlp)
    other = Layer(to_images, mlp, extra_parameters=2)  # gates of attention and MLP
    fields.taken.append(f"encoder: {IMAGE_TOKENS} tokens taken, of an image of four tiles (--encoder-tokens)")
    model = model_of_layers(fields, hidden, tuple(other if at in crossed else own for at in range(layers)))
    return replace(model, vectors=SPECIAL * hidden)
