"""Gemma 3n and Gemma 4: inputs per layer, layers that share keys and values, states beside the token's own [hf]."""

from collections.abc import Sequence

from dfcompile.language_models.configuration.composed import FULL, layer_count, model_of_layers, reaches_of, window_of
from dfcompile.language_models.configuration.fields import Fields
from dfcompile.language_models.mixer import Operand, Product
from dfcompile.language_models.model import Attention, DenseMlp, Experts, Layer, Model, Reach
from dfcompile.records import replace

MOST_STATES = 64  # of a token


def gemma3n(fields: Fields) -> Model:
    """Return Gemma 3n: four states per token, of which a layer updates one and predicts the others (AltUp).

    Raises:
        UserError: a field is missing or wrong.
    """
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    dim, bias = fields.count("head_dim"), fields.flag("attention_bias")
    states, rank = fields.count("altup_num_inputs"), fields.count("laurel_rank")
    if states > MOST_STATES:
        raise fields.wrong("altup_num_inputs", f"{states} against at most {MOST_STATES}")
    window = window_of(fields.optional("sliding_window"))
    reaches = reaches_of(fields, layers, window, lambda layer: (layer + 1) % 5 != 0)
    attention = Attention(*_heads(fields), dim, dim, qkv_bias=bias, output_bias=bias, norm_parameters=2 * dim)
    router = Product("altup_router", hidden, states)
    beside = (
        router,
        Product("altup_coefficients", states, states * states),
        Product("altup_predict", states, states, hidden, Operand.ACTIVATIONS),
        Product("laurel_left", hidden, rank),
        Product("laurel_right", rank, hidden),
        replace(router, name="altup_router_again", of=Operand.BEFORE),
        Product("altup_correction", states, states),
    )
    per_layer = fields.count("hidden_size_per_layer_input")
    made = tuple(
        Layer(
            one,
            DenseMlp(width),
            norms=7,
            extra_parameters=hidden,
            products=(*beside, *_of_inputs(hidden, per_layer)),
            carried=states * hidden,
        )
        for one, width in zip(_sharing(fields, attention, reaches), _widths(fields, layers), strict=True)
    )
    if fields.stated("activation_sparsity_pattern") is None or fields.listed("activation_sparsity_pattern"):
        fields.taken.append("activation_sparsity_pattern: products are counted whole, as kernels run them")
    model = _with_inputs(fields, model_of_layers(fields, hidden, made), per_layer)
    projected = tuple(Product(f"altup_project_{state}", hidden, hidden) for state in range(1, states))
    closing = tuple(replace(one, name=one.name.replace("project", "unembed")) for one in projected)
    return replace(model, opening=(*model.opening, *projected), closing=closing)


def gemma4(fields: Fields) -> Model:
    """Return Gemma 4: full attention has larger heads, an MLP may stand beside experts.

    Raises:
        UserError: a field is missing or wrong, or says what is not modelled.
    """
    hidden, layers = fields.count("hidden_size"), layer_count(fields, "num_hidden_layers")
    for name, refused in (("use_bidirectional_attention", "all"), ("per_layer_config", None)):
        stated = fields.stated(name)
        if stated is not None and refused in (None, stated):
            raise fields.wrong(name, f"{str(stated)[:40]!r}, which is not modelled")
    window = window_of(fields.count("sliding_window"))
    reaches = (*reaches_of(fields, layers, window, lambda layer: (layer + 1) % 6 != 0)[:-1], FULL)
    heads, kv_heads = _heads(fields)
    dim, whole, bias = fields.count("head_dim"), fields.count("global_head_dim"), fields.flag("attention_bias")
    near = Attention(heads, kv_heads, dim, dim, qkv_bias=bias, output_bias=bias, norm_parameters=2 * dim)
    far = replace(near, qk_dim=whole, v_dim=whole, norm_parameters=2 * whole)
    if fields.flag("attention_k_eq_v"):
        fewer = fields.optional("num_global_key_value_heads") or kv_heads
        far = replace(far, kv_products=1, kv_heads=fields.dividing("num_global_key_value_heads", fewer, heads))
    attentions = _sharing(fields, near, reaches, far)
    per_layer = fields.optional("hidden_size_per_layer_input", least=0)
    width = fields.count("intermediate_size")
    doubles = fields.flag("use_double_wide_mlp")
    mixture = _mixture(fields, width) if fields.stated("enable_moe_block") else None
    made = []
    for one in attentions:
        wide = width * (1 + (doubles and not one.kv_products))
        mlp = DenseMlp(wide) if mixture is None else replace(mixture, shared_width=wide)
        norms = 4 + 3 * (mixture is not None) + (per_layer > 0)
        scales = hidden * (mixture is not None)  # of what the router reads
        made.append(Layer(one, mlp, norms, extra_parameters=scales, products=_of_inputs(hidden, per_layer)))
    model = model_of_layers(fields, hidden, tuple(made))
    return _with_inputs(fields, model, per_layer) if per_layer else model


def _heads(fields: Fields) -> tuple[int, int]:
    heads = fields.count("num_attention_heads")
    return heads, fields.dividing("num_key_value_heads", fields.count("num_key_value_heads"), heads)


def _mixture(fields: Fields, width: int) -> Experts:
    experts = fields.experts(("num_experts",), ("top_k_experts",))
    # Each expert has a scale, as many elements as a bias of the router.
    return Experts(*experts, fields.count("moe_intermediate_size"), width, router_bias=True)


def _widths(fields: Fields, layers: int) -> Sequence[int]:
    """Return the width of each layer's MLP: one for all, or a list."""
    if not isinstance(fields.stated("intermediate_size"), list):
        return (fields.count("intermediate_size"),) * layers
    widths = fields.per_layer("intermediate_size", layers) or ()
    if not all(width.isdecimal() and int(width) for width in widths):
        raise fields.wrong("intermediate_size", f"{widths} against whole numbers")
    return [int(width) for width in widths]


def _sharing(
    fields: Fields, attention: Attention, reaches: Sequence[Reach], far: Attention | None = None
) -> list[Attention]:
    """Return the attention of each layer; the last ones take keys and values of the last before them that is alike.

    ``far`` is that of layers that see all.
    """
    shared = fields.optional("num_kv_shared_layers", least=0)
    first = len(reaches) - shared
    if shared and set(reaches[: max(first, 0)]) != set(reaches):
        raise fields.wrong("num_kv_shared_layers", f"{shared}, of which some have no layer before to share with")
    made = [replace(far if far and reach is FULL else attention, reach=reach) for reach in reaches]
    borrowing = (replace(one, kv_products=0, norm_parameters=one.qk_dim) for one in made[first:])
    return [*made[:first], *borrowing]


def _of_inputs(hidden: int, per_layer: int) -> tuple[Product, ...]:
    """Return the products by which a layer takes in what it has of each token beside."""
    if not per_layer:
        return ()
    return Product("layer_input_gate", hidden, per_layer), Product("layer_input", per_layer, hidden)


def _with_inputs(fields: Fields, model: Model, per_layer: int) -> Model:
    """Return a model with a table of what each layer has of a token, and the product that adds to it."""
    width = per_layer * len(model.layers)
    return replace(
        model,
        row_tables=(width, fields.count("vocab_size_per_layer_input")),
        opening=(Product("layer_inputs", model.hidden, width),),
        vectors=model.vectors + per_layer,
    )
