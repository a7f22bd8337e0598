"""Schemes of tensors: ``compressed-tensors``, and ``modelopt``, NVIDIA's algorithms [compressed-tensors, modelopt]."""

import math
from collections.abc import Mapping

from dfcompile.language_models.formats import FORMATS, NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, read
from dfcompile.language_models.quantisation.stated import Method, Names, Rule, Stated, kept_names, names_of
from dfcompile.language_models.quantisation.tensor_scheme import (
    FP8,
    FP32_BITS,
    INT8,
    Group,
    Recipe,
    TensorScheme,
    format_of,
    group_of,
    rules_of,
    scaled,
)

_MIXED = "MIXED_PRECISION"
_BLOCK = 128 * 128  # of two extents, which no key changes


_MXFP8 = scaled("fp", 8, 32, 8)
_ALGORITHMS: Mapping[str, Recipe] = {
    "FP8": Recipe("fp", 8, activations=FP8),
    "FP8_PER_CHANNEL_PER_TOKEN": Recipe("fp", 8, activations=FP8),
    "FP8_PB_WO": Recipe("fp", 8, _BLOCK, FP32_BITS),
    "FP8_BLOCK_SCALES": Recipe("fp", 8, _BLOCK, FP32_BITS, activations=FP8),
    "MXFP8": Recipe("fp", 8, 32, 8, activations=_MXFP8),
    "NVFP4": Recipe("fp", 4, 16, 8, activations=FORMATS["nvfp4"]),
    "NVFP4_AWQ": Recipe("fp", 4, 16, 8, activations=FORMATS["nvfp4"]),
    "W4A16_NVFP4": Recipe("fp", 4, 16, 8),
    "W4A8_NVFP4_FP8": Recipe("fp", 4, 32, 8, activations=FP8),
    "W4A8_MXFP4_FP8": Recipe("fp", 4, 32, 8, activations=FP8),
    "W4A16_AWQ": Recipe("int", 4, 128),
    "INT4_AWQ": Recipe("int", 4, 128),
    "W4A8_AWQ": Recipe("int", 4, 128, activations=FP8),
    "W4A16": Recipe("int", 4),
    "W8A16": Recipe("int", 8),
    "W8A8_SQ_PER_CHANNEL": Recipe("int", 8, activations=INT8),
    "INT8": Recipe("int", 8, activations=INT8),
    "INT8_SQ": Recipe("int", 8, activations=INT8),
}
_CACHES: Mapping[str, NumberFormat] = {"FP8": FP8, "INT8": INT8, "NVFP4": FORMATS["nvfp4"]}


class _Producer(Keys, frozen=True):
    harmless = "name version"


class _Group(Group, frozen=True, kw_only=True):
    harmless = "pre_quant_scale"  # of rows of activations
    has_zero_point: bool = False


class _OneLayer(Keys, frozen=True):
    harmless = "pre_quant_scale"
    quant_algo: str
    group_size: int | None = None
    awq_block_size: int | None = None
    has_zero_point: bool | None = None


class _Keys(Keys, frozen=True):
    harmless = "quant_method pre_quant_scale smoothquant_val"
    quant_algo: str | None = None
    group_size: int | None = None
    has_zero_point: bool | None = None
    kv_cache_quant_algo: str | None = None
    kv_cache_scheme: TensorScheme | str | None = None
    exclude_modules: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    quantized_layers: Mapping[str, _OneLayer] | None = None
    config_groups: Mapping[str, _Group] | None = None
    producer: _Producer | None = None


class _File(Keys, frozen=True):
    """A file of its own, hf_quant_config.json."""

    harmless = "quant_method"
    quantization: Mapping[str, object]
    producer: _Producer | None = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:
    if isinstance(found, Mapping) and "quantization" in found:
        return _stated(read(_File, found, place).quantization, base, place.inside("quantization"))
    keys = read(_Keys, found, place)
    return Stated(_rules(keys, base), kept_names(keys, "exclude_modules", "ignore"), _cache(keys, base))


def _rules(keys: _Keys, base: NumberFormat) -> tuple[Rule, ...]:
    stated = rules_of(keys.config_groups, base)
    name, layers = keys.quant_algo or "", keys.quantized_layers
    algorithm = None if keys.quant_algo is None else name.upper()
    if algorithm == _MIXED and layers:
        return tuple(_of_layer(one, base, names_of([name], one.place)) for name, one in layers.items())
    if algorithm == _MIXED and not stated:
        raise keys.inside("quantized_layers").wrong(None, f"layers, as quant_algo is {_MIXED}")
    if algorithm in (None, _MIXED):
        return stated
    if layers:
        raise keys.inside("quantized_layers").wrong(list(layers), f"none, as quant_algo is {algorithm}")
    size = keys.group_size if keys.group_size is not None else _common_group(keys.config_groups or {})
    rule = _of_algorithm(name, size, base, keys.place, has_zero=keys.has_zero_point)
    for other in stated:
        if other.weights is not None and rule.weights is not None and other.weights.bits != rule.weights.bits:
            expected = f"the {rule.weights.bits} bits of {algorithm}"
            raise other.place.inside("weights").wrong(other.weights.bits, expected)
    return (rule,)


def _of_layer(one: _OneLayer, base: NumberFormat, names: Names) -> Rule:
    size = one.group_size if one.group_size is not None else one.awq_block_size
    return _of_algorithm(one.quant_algo, size, base, one.place, names, has_zero=one.has_zero_point)


def _of_algorithm(
    name: str, size: int | None, base: NumberFormat, place: Place, names: Names | None = None, *, has_zero: bool | None
) -> Rule:
    """Return the rule of an algorithm for some modules, or all."""
    algorithm = _ALGORITHMS.get(name.upper())
    if algorithm is None:
        raise place.inside("quant_algo").unknown(name, (*_ALGORITHMS, _MIXED))
    group = algorithm.group
    if size:
        inside = place.inside("group_size")
        if group in (0, _BLOCK):
            if size != (math.isqrt(group) or -1):
                raise inside.wrong(size, f"{math.isqrt(group) or 'none'}, as quant_algo is {name}")
        else:
            group = group_of(size, inside)
    bits, scale = algorithm.bits, algorithm.scale_bits or base.bits
    form = scaled(algorithm.kind, bits, group, scale, bits if has_zero else 0)
    return Rule(place, form, algorithm.activations, names)


def _common_group(groups: Mapping[str, _Group]) -> int | None:
    """Return the group size of weights that the first group with one states."""
    sizes = (group.weights.group_size for group in groups.values() if group.weights is not None)
    return next((size for size in sizes if size is not None), None)


def _cache(keys: _Keys, base: NumberFormat) -> NumberFormat | None:
    if isinstance(keys.kv_cache_scheme, TensorScheme):
        return format_of(keys.kv_cache_scheme, base)
    for key, name in (("kv_cache_quant_algo", keys.kv_cache_quant_algo), ("kv_cache_scheme", keys.kv_cache_scheme)):
        if name is not None:
            return keys.inside(key).known(name, _CACHES, name.upper())
    return None


METHOD = Method(
    "modelopt", _stated, other_names=("modelopt_fp4", "modelopt_mixed", "modelopt_mxfp8"), marks=("quantization",)
)


_PACKED = (
    "float-quantized", "int-quantized", "mixed-precision", "mxfp4-pack-quantized", "mxfp8-quantized",
    "naive-quantized", "nvfp4-pack-quantized", "pack-quantized",
)  # fmt: skip
_DENSE = ("dense", "")


class _Sparsity(Keys, frozen=True):
    harmless = "global_sparsity ignore registry_requires_subclass sparsity_structure targets"
    format: str = "dense"


class _Transforms(Keys, frozen=True):
    config_groups: Mapping[str, object] = {}


class _CompressedTensors(Keys, frozen=True):
    harmless = "quant_method global_compression_ratio quantization_status run_compressed version"
    config_groups: Mapping[str, Group] | None = None
    format: str | None = None
    ignore: tuple[str, ...] | None = None
    kv_cache_scheme: TensorScheme | None = None
    sparsity_config: _Sparsity | None = None
    transform_config: _Transforms | None = None


def _compressed_tensors(found: object, base: NumberFormat, place: Place) -> Stated:
    keys = read(_CompressedTensors, found, place)
    if keys.sparsity_config is not None and keys.sparsity_config.format not in _DENSE:
        raise place.inside("sparsity_config").unmodelled("sparse weights")
    if keys.transform_config is not None and keys.transform_config.config_groups:
        raise place.inside("transform_config").unmodelled("products that transform activations")
    stated: tuple[_CompressedTensors | Group, ...] = (keys, *(keys.config_groups or {}).values())
    for packed in stated:
        packed.inside("format").check(packed.format, _PACKED)
    if keys.config_groups is None and keys.kv_cache_scheme is None:
        raise keys.wrong("config_groups", "groups of modules")
    rules = rules_of(keys.config_groups, base)
    return Stated(rules, names_of(keys.ignore or (), place.inside("ignore")), format_of(keys.kv_cache_scheme, base))


COMPRESSED_TENSORS = Method("compressed-tensors", _compressed_tensors)
