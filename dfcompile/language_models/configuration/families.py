"""How each family of models is made of its configuration's fields, which are filled in as its class does [hf]."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field

from dfcompile.errors import UserError
from dfcompile.language_models.model import Attention, DenseMlp, Experts, LatentAttention, Layer, Mask, Model, Reach
from dfcompile.records import replace

LARGEST = 2**62  # of any extent: beyond it is a slip, not a model
MOST_LAYERS = 10_000
_FULL = Reach()


class Fields(Struct):
    """The fields of one configuration.

    Collects notes of what was filled in.

    Attributes:
        values: of the configuration's file.
        defaults: of the class, for fields that the file leaves out.
        name: of the configuration.
        family: of models that it is of.
        where: names the configuration in errors.
        taken: notes so far.
    """

    values: Mapping[str, object]
    defaults: Mapping[str, object]
    name: str
    family: str
    where: str
    taken: list[str] = field(default_factory=list)

    def count(self, *names: str, derived: int | None = None, least: int = 1) -> int:
        """Return a whole number under the first of some names that the file has.

        Args:
            names: of the field, in order of preference.
            derived: what the class makes of other fields if the file has none, or null.
            least: that is possible.

        Raises:
            UserError: it is missing without a default, no whole number, or too small or large.
        """
        found = self._found(names, derived)
        if found is None:
            raise UserError(f"{self.where}: key {names[0]!r} is missing, and its class has no default")
        return self._whole(names[0], found, least)

    def optional(self, *names: str, least: int = 1) -> int:
        """Return a whole number, or 0 where the file says null, or says nothing and the class has none.

        Raises:
            UserError: it is no whole number, or too small or large.
        """
        is_null = any(name in self.values for name in names) and all(self.values.get(name) is None for name in names)
        found = None if is_null else self._found(names)
        return 0 if found is None else self._whole(names[0], found, least)

    def flag(self, name: str) -> bool:
        """Return a truth value.

        Raises:
            UserError: it is none.
        """
        found = self._found((name,))
        if not isinstance(found, bool):
            raise self.wrong(name, f"{_shown(found)} against true or false")
        return found

    def listed(self, name: str) -> Sequence[object] | None:
        """Return a list, or none where the file has none.

        Raises:
            UserError: it is something else.
        """
        found = self.values.get(name)
        if found is None:
            return None
        if not isinstance(found, list):
            raise self.wrong(name, f"{_shown(found)} against a list")
        return found

    def layers_in(self, name: str) -> frozenset[int] | None:
        """Return a list of numbers of layers, or none where the file has none.

        Raises:
            UserError: it is no list of whole numbers.
        """
        found = self.listed(name)
        for one in found or ():
            if type(one) is not int:
                raise self.wrong(name, f"{_shown(one)} in it against numbers of layers")
        return None if found is None else frozenset(one for one in found if isinstance(one, int))

    def per_layer(self, name: str, layers: int) -> tuple[str, ...] | None:
        """Return a list of one word per layer, or none where the file has none.

        Raises:
            UserError: it is no list of words, or of another length.
        """
        found = self.listed(name)
        if found is None:
            return None
        if len(found) != layers:
            raise self.wrong(name, f"{len(found)} entries against {layers} layers")
        return tuple(str(entry) for entry in found)

    def wrong(self, name: str, found: str) -> UserError:
        """Return the error that a field is wrong, with what was found against what."""
        return UserError(f"{self.where}: key {name!r}: found {found}")

    def _found(self, names: Sequence[str], derived: int | None = None) -> object:
        stated = next((self.values[name] for name in names if self.values.get(name) is not None), None)
        if stated is not None:
            return stated
        name = next((name for name in names if self.defaults.get(name) is not None), None)
        if derived is not None:
            self.taken.append(f"{names[0]} = {derived}: left out, derived as its class does")
            return derived
        if name is None:
            return None
        default = self.defaults[name]
        self.taken.append(f"{names[0]} = {_shown(default)}: left out, default of its class")
        return default

    def _whole(self, name: str, found: object, least: int) -> int:
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.wrong(name, f"{_shown(found)} against a whole number")
        if not least <= found <= LARGEST:
            raise self.wrong(name, f"{found} against {least} to 2^62")
        return found


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


Reader = Callable[[Fields], Model]


def _layer_count(fields: Fields, *names: str) -> int:
    layers = fields.count(*names)
    if layers > MOST_LAYERS:
        raise fields.wrong(names[0], f"{layers} against at most {MOST_LAYERS}")
    return layers


def _sizes(fields: Fields, *, derived: bool = False) -> tuple[int, int, int, int]:
    """Return hidden size, layers, heads and ``head_dim``; where the class derives it, heads must divide the first."""
    hidden, layers = fields.count("hidden_size"), _layer_count(fields, "num_hidden_layers")
    heads = fields.count("num_attention_heads")
    if fields.values.get("head_dim") is not None or not derived:
        return hidden, layers, heads, fields.count("head_dim")
    if hidden % heads:
        found = f"{heads} heads that do not divide hidden_size {hidden} (give head_dim)"
        raise fields.wrong("num_attention_heads", found)
    return hidden, layers, heads, fields.count("head_dim", derived=hidden // heads)


def _grouped_heads(fields: Fields, heads: int, *, as_many: bool = False) -> int:
    """Return the heads of keys and values, which must divide the query heads."""
    kv_heads = fields.count("num_key_value_heads", derived=heads if as_many else None)
    if heads % kv_heads:
        found = f"{kv_heads} heads that do not divide the {heads} of num_attention_heads"
        raise fields.wrong("num_key_value_heads", found)
    return kv_heads


def _reaches(fields: Fields, layers: int, reach: Reach, pattern: Callable[[int], bool]) -> tuple[Reach, ...]:
    """Return the reach of each layer: `layer_types` if the file has them, else where the pattern is true."""
    named = fields.per_layer("layer_types", layers)
    if named is None:
        return tuple(reach if pattern(layer) else _FULL for layer in range(layers))
    words = {"full_attention": _FULL, "sliding_attention": reach, "chunked_attention": reach}
    for word in named:
        if word not in words:
            raise fields.wrong("layer_types", f"{word!r} against {', '.join(words)}")
        if words[word] is not _FULL and not reach.extent:
            raise fields.wrong("layer_types", f"{word!r} without an extent for it")
    return tuple(words[word] for word in named)


def _window(extent: int) -> Reach:
    return Reach(Mask.WINDOW, extent) if extent else _FULL


def _layers(
    attention: Attention, reaches: Sequence[Reach], mlps: Sequence[DenseMlp | Experts], norms: int = 2
) -> tuple[Layer, ...]:
    """Return layers whose attention differs in its reach alone."""
    return tuple(Layer(replace(attention, reach=reach), mlp, norms) for reach, mlp in zip(reaches, mlps, strict=True))


def _model(fields: Fields, hidden: int, layers: tuple[Layer, ...], positions: int = 0) -> Model:
    return Model(
        name=fields.name,
        model_type=fields.family,
        hidden=hidden,
        vocabulary=fields.count("vocab_size"),
        layers=layers,
        tied=fields.flag("tie_word_embeddings"),
        positions=positions,
        norm_biases=layers[0].norm_biases,
        most_context=positions or fields.optional("max_position_embeddings"),
        notes=tuple(dict.fromkeys(fields.taken)),
    )


def _llama(fields: Fields) -> Model:
    hidden, layers, heads, dim = _sizes(fields, derived=True)
    bias = fields.flag("attention_bias")
    kv_heads = _grouped_heads(fields, heads, as_many=True)
    attention = Attention(heads, kv_heads, dim, dim, qkv_bias=bias, output_bias=bias)
    layer = Layer(attention, DenseMlp(fields.count("intermediate_size"), bias=fields.flag("mlp_bias")))
    return _model(fields, hidden, (layer,) * layers)


def _mistral(fields: Fields) -> Model:
    hidden, layers, heads, dim = _sizes(fields, derived=True)
    reach = _window(fields.optional("sliding_window"))
    attention = Attention(heads, _grouped_heads(fields, heads), dim, dim, reach)
    width = fields.count("intermediate_size")
    mlp = DenseMlp(width) if fields.family == "mistral" else _experts(fields, width)
    return _model(fields, hidden, (Layer(attention, mlp),) * layers)


def _experts(fields: Fields, width: int, *, bias: bool = False, shared_width: int = 0) -> Experts:
    count = fields.count("num_local_experts", "num_experts", "n_routed_experts")
    chosen = fields.count("num_experts_per_tok", "experts_per_token")
    if chosen > count:
        raise fields.wrong("num_experts_per_tok", f"{chosen} of {count} experts")
    return Experts(count, chosen, width, shared_width, router_bias=bias, bias=bias)


def _qwen(fields: Fields) -> Model:
    hidden, layers, heads, dim = _sizes(fields, derived=fields.family != "qwen3")
    kv_heads = _grouped_heads(fields, heads)
    windowed = fields.flag("use_sliding_window")
    reach = _window(fields.optional("sliding_window") if windowed else 0)
    if fields.family == "qwen3_moe":
        reaches: Sequence[Reach] = (reach,) * layers
    else:
        first = fields.count("max_window_layers", least=0) if windowed else layers
        reaches = _reaches(fields, layers, reach, lambda layer: layer >= first)
    if fields.family == "qwen2":
        attention = Attention(heads, kv_heads, dim, dim, qkv_bias=True)
    else:
        bias = fields.flag("attention_bias")
        attention = Attention(heads, kv_heads, dim, dim, qkv_bias=bias, output_bias=bias, norm_parameters=2 * dim)
    mlps: list[DenseMlp | Experts] = [DenseMlp(fields.count("intermediate_size"))] * layers
    if fields.family == "qwen3_moe":
        experts = _experts(fields, fields.count("moe_intermediate_size"))
        step, only = fields.count("decoder_sparse_step"), fields.layers_in("mlp_only_layers") or frozenset()
        mlps = [mlp if i in only or (i + 1) % step else experts for i, mlp in enumerate(mlps)]
    return _model(fields, hidden, _layers(attention, reaches, mlps))


def _deepseek(fields: Fields) -> Model:
    hidden, layers = fields.count("hidden_size"), _layer_count(fields, "num_hidden_layers")
    attention = LatentAttention(
        heads=fields.count("num_attention_heads"),
        q_rank=fields.optional("q_lora_rank"),
        kv_rank=fields.count("kv_lora_rank"),
        rope=fields.count("qk_rope_head_dim"),
        nope=fields.count("qk_nope_head_dim"),
        v_dim=fields.count("v_head_dim"),
        bias=fields.flag("attention_bias"),
    )
    width = fields.count("moe_intermediate_size")
    shared = fields.optional("n_shared_experts", least=0) * width
    experts, dense = _experts(fields, width, shared_width=shared), DenseMlp(fields.count("intermediate_size"))
    first, frequency = fields.count("first_k_dense_replace", least=0), fields.count("moe_layer_freq")
    if fields.optional("num_nextn_predict_layers", least=0):
        fields.taken.append("num_nextn_predict_layers: layers that predict further tokens are not modelled")
    made = tuple(Layer(attention, experts if i >= first and i % frequency == 0 else dense) for i in range(layers))
    return _model(fields, hidden, made)


def _gemma(fields: Fields) -> Model:
    hidden, layers, heads, dim = _sizes(fields)
    kv_heads, window = _grouped_heads(fields, heads), _window(fields.optional("sliding_window"))
    is_second = fields.family == "gemma2"
    period = 2 if is_second else fields.count("sliding_window_pattern", "_sliding_window_pattern")
    reaches = _reaches(fields, layers, window, lambda layer: (layer + 1) % period != 0)
    bias, norms = fields.flag("attention_bias"), 0 if is_second else 2 * dim
    attention = Attention(heads, kv_heads, dim, dim, qkv_bias=bias, output_bias=bias, norm_parameters=norms)
    mlp = DenseMlp(fields.count("intermediate_size"))
    return _model(fields, hidden, _layers(attention, reaches, (mlp,) * layers, norms=4))


def _llama4(fields: Fields) -> Model:
    hidden, layers, heads, dim = _sizes(fields)
    kv_heads, extent = _grouped_heads(fields, heads), fields.optional("attention_chunk_size")
    chunk = Reach(Mask.CHUNK, extent) if extent else _FULL
    interval = fields.count("no_rope_layer_interval")
    ropes = fields.per_layer("no_rope_layers", layers) if fields.listed("no_rope_layers") else None
    reaches = _reaches(
        fields, layers, chunk, lambda layer: (layer + 1) % interval != 0 if ropes is None else ropes[layer] != "0"
    )
    width, bias = fields.count("intermediate_size"), fields.flag("attention_bias")
    experts, dense = _experts(fields, width, shared_width=width), DenseMlp(fields.count("intermediate_size_mlp"))
    step, listed = fields.count("interleave_moe_layer_step"), fields.layers_in("moe_layers")
    sparse = listed if listed is not None else frozenset(range(step - 1, layers, step))
    attention = Attention(heads, kv_heads, dim, dim, qkv_bias=bias, output_bias=bias)
    mlps = [experts if i in sparse else dense for i in range(layers)]
    return _model(fields, hidden, _layers(attention, reaches, mlps))


def _gpt_oss(fields: Fields) -> Model:
    hidden, layers, heads, dim = _sizes(fields)
    kv_heads, window = _grouped_heads(fields, heads), _window(fields.optional("sliding_window"))
    reaches = _reaches(fields, layers, window, lambda layer: (layer + 1) % 2 != 0)
    bias = fields.flag("attention_bias")
    experts = _experts(fields, fields.count("intermediate_size"), bias=True)
    attention = Attention(heads, kv_heads, dim, dim, qkv_bias=bias, output_bias=bias, sinks=heads)
    return _model(fields, hidden, _layers(attention, reaches, (experts,) * layers))


def _gpt2(fields: Fields) -> Model:
    hidden, layers = fields.count("n_embd", "hidden_size"), _layer_count(fields, "n_layer", "num_hidden_layers")
    heads = fields.count("n_head", "num_attention_heads")
    if hidden % heads:
        raise fields.wrong("n_head", f"{heads} heads that do not divide n_embd {hidden}")
    dim = hidden // heads
    attention = Attention(heads, heads, dim, dim, qkv_bias=True, output_bias=True)
    mlp = DenseMlp(fields.count("n_inner", derived=4 * hidden), gated=False, bias=True)
    positions = fields.count("n_positions", "max_position_embeddings")
    return _model(fields, hidden, (Layer(attention, mlp, norm_biases=True),) * layers, positions)


FAMILIES: Mapping[str, Reader] = {
    **dict.fromkeys(("deepseek_v3", "kimi_k2"), _deepseek),
    **dict.fromkeys(("gemma2", "gemma3_text"), _gemma),
    "gpt2": _gpt2,
    "gpt_oss": _gpt_oss,
    "llama": _llama,
    "llama4_text": _llama4,
    **dict.fromkeys(("mistral", "mixtral"), _mistral),
    **dict.fromkeys(("qwen2", "qwen3", "qwen3_moe"), _qwen),
}
