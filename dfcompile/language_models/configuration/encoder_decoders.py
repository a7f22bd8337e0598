"""Decoders that attend to an encoder and are no rows of the table: T5 and its relatives [hf]."""

from dfcompile.language_models.configuration.composed import layer_count, model_of_layers, to_encoder
from dfcompile.language_models.configuration.fields import Fields
from dfcompile.language_models.model import Attention, DenseMlp, Layer, Model
from dfcompile.records import replace

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
