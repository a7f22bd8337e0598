"""``quark``: AMD's specifications of weights, inputs and results, global and of named layers [quark]."""

from collections.abc import Mapping

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.names import names_of
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.scaled import block_of, floats, group_of, integers
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated

_FLOATS = {"fp8_e4m3": 8, "fp8_e5m2": 8, "fp6_e3m2": 6, "fp6_e2m3": 6, "fp4": 4}
_INTEGERS = {"int8": 8, "uint8": 8, "int4": 4, "uint4": 4, "int3": 3, "int2": 2}
_SCALES = {"float32": 32, "float16": 16, "bfloat16": 16, "float8_e5m3": 8, "float8_e8m0fnu": 8, "pof2": 8}
_SCHEMES = ("per_tensor", "per_channel", "per_group", "per_block")
_MX_GROUP = 32
_HARMLESS = ("awq", "gptq", "gptaq", "smooth", "autosmoothquant", "qronos")  # they change values of weights alone
_CACHED = ("k_proj", "v_proj")


class _Spec(Struct, frozen=True, kw_only=True):
    """The format of a tensor."""

    dtype: str
    qscheme: str | None = None
    group_size: int | None = None
    block_size: tuple[int, ...] | None = None
    symmetric: bool | None = True
    scale_type: str | None = None
    scale_format: str | None = None
    mx_element_dtype: str | None = None
    # When and how scales are found, along which axis.
    axis: object = None
    ch_axis: object = None
    dynamic: object = None
    enable_buffer_reuse: object = None
    is_dynamic: object = None
    is_scale_quant: object = None
    max_input_numel: object = None
    observer_cls: object = None
    qat_spec: object = None
    round_method: object = None
    scale_calculation_mode: object = None
    zero_point_type: object = None


class _Layer(Struct, frozen=True):
    """The formats of a layer's tensors."""

    weight: _Spec | None = None
    input_tensors: _Spec | None = None
    output_tensors: _Spec | None = None
    bias: _Spec | None = None
    target_device: object = None


class _Algorithm(Struct, frozen=True):
    """How weights were found: settings of all algorithms together."""

    name: str
    alpha: object = None
    block_size: object = None
    compute_scale_loss: object = None
    damp_percent: object = None
    desc_act: object = None
    inside_layer_modules: object = None
    model_decoder_layers: object = None
    num_attention_heads: object = None
    num_key_value_heads: object = None
    scale_clamp_min: object = None
    scaling_layers: object = None
    static_groups: object = None
    true_sequential: object = None


class _Export(Struct, frozen=True):
    weight_format: str = "real_quantized"
    kv_cache_group: object = None
    min_kv_scale: object = None
    pack_method: object = None
    weight_merge_groups: object = None


class _Keys(Struct, frozen=True):
    global_quant_config: _Layer | None = None
    layer_quant_config: Mapping[str, _Layer] | None = None
    layer_type_quant_config: Mapping[str, _Layer] | None = None
    kv_cache_quant_config: Mapping[str, _Layer] | None = None
    softmax_quant_spec: _Spec | None = None
    exclude: tuple[str, ...] | None = None
    algo_config: tuple[_Algorithm, ...] | _Algorithm | None = None
    export: _Export | None = None
    quant_method: object = None
    keep_prequantized_layers: object = None
    kv_cache_group: object = None
    kv_cache_post_rope: object = None
    log_severity_level: object = None
    min_kv_scale: object = None
    pack_method: object = None
    quant_mode: object = None
    shared_scale_groups: object = None
    sync_moe_expert_input_amax: object = None
    version: object = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:
    keys = read(_Keys, found, place)
    _check(keys, place)
    rules, caches = [], []
    for key, layers in (("layer_quant_config", keys.layer_quant_config),
                        ("layer_type_quant_config", keys.layer_type_quant_config)):  # fmt: skip
        for name, layer in (layers or {}).items():
            inside = place.inside(key).inside(name)
            rules.append(_rule(layer, base, inside, [name]))
            if layer.output_tensors is not None:
                if not name.endswith(_CACHED):
                    raise inside.inside("output_tensors").unmodelled("quantised results")
                caches.append(_form(layer.output_tensors, base, inside.inside("output_tensors")))
    everywhere = place.inside("global_quant_config")
    if keys.global_quant_config is None:
        raise everywhere.wrong(None, "a mapping")
    if keys.global_quant_config.output_tensors is not None:
        raise everywhere.inside("output_tensors").unmodelled("quantised results")
    rules.append(_rule(keys.global_quant_config, base, everywhere, None))
    kept = names_of(keys.exclude or (), place.inside("exclude"))
    return Stated(tuple(rules), kept, _cache(keys, caches, base, place))


def _check(keys: _Keys, place: Place) -> None:
    """Check that nothing is said that has no figures here."""
    if keys.softmax_quant_spec is not None:
        raise place.inside("softmax_quant_spec").unmodelled("quantised scores")
    listed = keys.algo_config if isinstance(keys.algo_config, tuple) else (keys.algo_config,)
    for algorithm in listed:
        if algorithm is not None and algorithm.name not in _HARMLESS:
            raise place.inside("algo_config").unmodelled(f"the products that {algorithm.name!r} adds")
    if keys.export is not None and keys.export.weight_format != "real_quantized":
        raise place.inside("export").inside("weight_format").wrong(keys.export.weight_format, "real_quantized")


def _rule(layer: _Layer, base: NumberFormat, place: Place, names: list[str] | None) -> Rule:
    if layer.bias is not None:
        raise place.inside("bias").unmodelled("quantised biases")
    if layer.weight is None and layer.input_tensors is not None:
        raise place.inside("weight").wrong(None, "a format, as input_tensors has one")
    inputs = place.inside("input_tensors")
    return Rule(
        None if names is None else names_of(names, place),
        None if layer.weight is None else _form(layer.weight, base, place.inside("weight")),
        None if layer.input_tensors is None else _form(layer.input_tensors, base, inputs),
        place,
    )


def _cache(keys: _Keys, caches: list[NumberFormat], base: NumberFormat, place: Place) -> NumberFormat | None:
    """Return the format of keys and values, which are the results of the products that make them."""
    inside = place.inside("kv_cache_quant_config")
    for name, layer in (keys.kv_cache_quant_config or {}).items():
        if layer.output_tensors is None:
            raise inside.inside(name).inside("output_tensors").wrong(None, "a format")
        caches.append(_form(layer.output_tensors, base, inside.inside(name).inside("output_tensors")))
    if len(set(caches)) > 1:
        raise inside.unmodelled("keys and values of several formats")
    return caches[0] if caches else None


def _form(spec: _Spec, base: NumberFormat, place: Place) -> NumberFormat:
    name = spec.dtype.lower()
    if name == "mx":
        name = (spec.mx_element_dtype or "").lower()
        return floats(_known(name, _FLOATS, place.inside("mx_element_dtype")), _group(spec, place) or _MX_GROUP, 8)
    if name in _FLOATS:
        group = _group(spec, place)
        if name == "fp4" and not group:
            group = _MX_GROUP
        return floats(_FLOATS[name], group, _scale_bits(spec, 8 if _FLOATS[name] < 8 else base.bits, place))
    bits = _known(name, {**_FLOATS, **_INTEGERS, "mx": 0}, place.inside("dtype"))
    zero = 0 if spec.symmetric in (None, True) else bits
    return integers(bits, _group(spec, place), _scale_bits(spec, base.bits, place), zero)


def _group(spec: _Spec, place: Place) -> int:
    if spec.qscheme is not None and spec.qscheme not in _SCHEMES:
        raise place.inside("qscheme").unknown(spec.qscheme, _SCHEMES)
    if spec.qscheme == "per_block" or (spec.qscheme is None and spec.block_size is not None):
        return block_of(spec.block_size or (), place.inside("block_size"))
    group = group_of(spec.group_size, place.inside("group_size"))
    if spec.qscheme == "per_group" and not group and spec.group_size is None:
        raise place.inside("group_size").wrong(None, "the elements of a group, as qscheme is per_group")
    return group if spec.qscheme in (None, "per_group") else 0


def _scale_bits(spec: _Spec, default: int, place: Place) -> int:
    if spec.scale_format is not None:
        if spec.scale_format.lower() == "e8m0":
            return 8
        if spec.scale_format.lower() not in ("float32", "e4m3", "e5m3"):
            raise place.inside("scale_format").wrong(spec.scale_format, "e8m0, e4m3, e5m3, float32")
        return 32 if spec.scale_format.lower() == "float32" else 8
    if spec.scale_type is None or spec.scale_type == "float":
        return default
    return _known(spec.scale_type, _SCALES, place.inside("scale_type"))


def _known(name: str, table: Mapping[str, int], place: Place) -> int:
    if name not in table:
        raise place.unknown(name, table)
    return table[name]


METHOD = Method("quark", _stated)
