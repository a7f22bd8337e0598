"""``quark``: AMD's specifications of weights, inputs and results, global and of named layers [quark]."""

from collections.abc import Mapping

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, read
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated, names_of
from dfcompile.language_models.quantisation.tensor_scheme import block_of, group_of, scaled

_FLOATS = {"fp8_e4m3": 8, "fp8_e5m2": 8, "fp6_e3m2": 6, "fp6_e2m3": 6, "fp4": 4}
_INTEGERS = {"int8": 8, "uint8": 8, "int4": 4, "uint4": 4, "int3": 3, "int2": 2}
_SCALES = {"float32": 32, "float16": 16, "bfloat16": 16, "float8_e5m3": 8, "float8_e8m0fnu": 8, "pof2": 8}
_SCALE_FORMATS = {"e8m0": 8, "e4m3": 8, "e5m3": 8, "float32": 32}
_SCHEMES = ("per_tensor", "per_channel", "per_group", "per_block")
_MX_GROUP = 32
_HARMLESS = ("awq", "gptq", "gptaq", "smooth", "autosmoothquant", "qronos")  # they change values of weights alone
_CACHED = ("k_proj", "v_proj")


class _Spec(Keys, frozen=True, kw_only=True):
    """The format of a tensor."""

    # When and how scales are found, along which axis.
    harmless = (
        "axis ch_axis dynamic enable_buffer_reuse is_dynamic is_scale_quant max_input_numel observer_cls qat_spec "
        "round_method scale_calculation_mode zero_point_type"
    )
    dtype: str
    qscheme: str | None = None
    group_size: int | None = None
    block_size: tuple[int, ...] | None = None
    symmetric: bool | None = True
    scale_type: str | None = None
    scale_format: str | None = None
    mx_element_dtype: str | None = None


class _Layer(Keys, frozen=True):
    """The formats of a layer's tensors."""

    harmless = "target_device"
    weight: _Spec | None = None
    input_tensors: _Spec | None = None
    output_tensors: _Spec | None = None
    bias: _Spec | None = None


class _Algorithm(Keys, frozen=True):
    """How weights were found: settings of all algorithms together."""

    harmless = (
        "alpha block_size compute_scale_loss damp_percent desc_act inside_layer_modules model_decoder_layers "
        "num_attention_heads num_key_value_heads scale_clamp_min scaling_layers static_groups true_sequential"
    )
    name: str


class _Export(Keys, frozen=True):
    harmless = "kv_cache_group min_kv_scale pack_method weight_merge_groups"
    weight_format: str = "real_quantized"


class _Keys(Keys, frozen=True):
    harmless = (
        "quant_method keep_prequantized_layers kv_cache_group kv_cache_post_rope log_severity_level min_kv_scale "
        "pack_method quant_mode shared_scale_groups sync_moe_expert_input_amax version"
    )
    global_quant_config: _Layer | None = None
    layer_quant_config: Mapping[str, _Layer] | None = None
    layer_type_quant_config: Mapping[str, _Layer] | None = None
    kv_cache_quant_config: Mapping[str, _Layer] | None = None
    softmax_quant_spec: _Spec | None = None
    exclude: tuple[str, ...] | None = None
    algo_config: tuple[_Algorithm, ...] | _Algorithm | None = None
    export: _Export | None = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:
    keys = read(_Keys, found, place)
    _check(keys)
    rules, caches = [], []
    for layers in (keys.layer_quant_config, keys.layer_type_quant_config):
        for name, layer in (layers or {}).items():
            rules.append(_rule(layer, base, [name]))
            if name.endswith(_CACHED):
                caches.append(_form(layer.output_tensors, base))
            else:
                layer.refuse("output_tensors", what="quantised results")
    everywhere = keys.global_quant_config
    if everywhere is None:
        raise keys.wrong("global_quant_config", "a mapping")
    everywhere.refuse("output_tensors", what="quantised results")
    rules.append(_rule(everywhere, base, None))
    kept = names_of(keys.exclude or (), keys.inside("exclude"))
    for layer in (keys.kv_cache_quant_config or {}).values():
        if layer.output_tensors is None:
            raise layer.wrong("output_tensors", "a format")
        caches.append(_form(layer.output_tensors, base))
    # Keys and values are the results of the products that make them.
    forms = list(dict.fromkeys(form for form in caches if form is not None))
    if len(forms) > 1:
        raise keys.inside("kv_cache_quant_config").unmodelled("keys and values of several formats")
    return Stated(tuple(rules), kept, forms[0] if forms else None)


def _check(keys: _Keys) -> None:
    """Check that nothing is said that has no figures here."""
    keys.refuse("softmax_quant_spec", what="quantised scores")
    listed = keys.algo_config if isinstance(keys.algo_config, tuple) else (keys.algo_config,)
    for algorithm in listed:
        if algorithm is not None and algorithm.name not in _HARMLESS:
            raise keys.inside("algo_config").unmodelled(f"the products that {algorithm.name!r} adds")
    if keys.export is not None:
        keys.export.require("weight_format", ("real_quantized",))


def _rule(layer: _Layer, base: NumberFormat, names: list[str] | None) -> Rule:
    layer.refuse("bias", what="quantised biases")
    if layer.weight is None and layer.input_tensors is not None:
        raise layer.wrong("weight", "a format, as input_tensors has one")
    found = None if names is None else names_of(names, layer.place)
    return Rule(layer.place, _form(layer.weight, base), _form(layer.input_tensors, base), found)


def _form(spec: _Spec | None, base: NumberFormat) -> NumberFormat | None:
    if spec is None:
        return None
    name = spec.dtype.lower()
    if name == "mx":
        bits = spec.inside("mx_element_dtype").known((spec.mx_element_dtype or "").lower(), _FLOATS)
        return scaled("fp", bits, _group(spec) or _MX_GROUP, 8)
    if name in _FLOATS:
        bits = _FLOATS[name]
        group = _group(spec) or (_MX_GROUP if name == "fp4" else 0)
        return scaled("fp", bits, group, _scale_bits(spec, 8 if bits < 8 else base.bits))
    bits = spec.inside("dtype").known(name, {**_FLOATS, **_INTEGERS, "mx": 0})
    zero = 0 if spec.symmetric in (None, True) else bits
    return scaled("int", bits, _group(spec), _scale_bits(spec, base.bits), zero)


def _group(spec: _Spec) -> int:
    spec.inside("qscheme").check(spec.qscheme, _SCHEMES)
    if spec.qscheme == "per_block" or (spec.qscheme is None and spec.block_size is not None):
        return block_of(spec.block_size or (), spec.inside("block_size"))
    group = group_of(spec.group_size, spec.inside("group_size"))
    if spec.qscheme == "per_group" and not group and spec.group_size is None:
        raise spec.wrong("group_size", "the elements of a group, as qscheme is per_group")
    return group if spec.qscheme in (None, "per_group") else 0


def _scale_bits(spec: _Spec, default: int) -> int:
    if spec.scale_format is not None:
        if spec.scale_format.lower() not in _SCALE_FORMATS:
            raise spec.wrong("scale_format", ", ".join(_SCALE_FORMATS))
        return _SCALE_FORMATS[spec.scale_format.lower()]
    if spec.scale_type is None or spec.scale_type == "float":
        return default
    return spec.inside("scale_type").known(spec.scale_type, _SCALES)


METHOD = Method("quark", _stated)
