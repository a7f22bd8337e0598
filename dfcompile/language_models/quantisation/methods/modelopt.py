"""``modelopt``: NVIDIA's algorithms by name, of all modules or of each [modelopt]."""

import math
from collections.abc import Mapping

from msgspec import Struct

from dfcompile.language_models.formats import FORMATS, NumberFormat
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.names import Names, names_of
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.scaled import FP8, FP32_BITS, INT8, floats, group_of, integers
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated, kept_names
from dfcompile.language_models.quantisation.tensor_scheme import Group, TensorScheme, format_of, rules_of

_MIXED = "MIXED_PRECISION"


class _Algorithm(Struct, frozen=True):
    """What an algorithm makes of a matrix and of what is multiplied with it.

    Attributes:
        element: of a matrix.
        group: elements that share a scale, unless the file says it; 0: a row or the tensor.
        scale_bits: of a scale; 0: of the configuration's dtype.
        activations: none where they stay as they are.
        is_block: whether the group is a block of two extents, which no key changes.
    """

    element: str
    group: int = 0
    scale_bits: int = 0
    activations: NumberFormat | None = None
    is_block: bool = False


_MXFP8 = floats(8, 32, 8)
_ALGORITHMS: Mapping[str, _Algorithm] = {
    "FP8": _Algorithm("fp8", activations=FP8),
    "FP8_PER_CHANNEL_PER_TOKEN": _Algorithm("fp8", activations=FP8),
    "FP8_PB_WO": _Algorithm("fp8", 128 * 128, FP32_BITS, is_block=True),
    "FP8_BLOCK_SCALES": _Algorithm("fp8", 128 * 128, FP32_BITS, FP8, is_block=True),
    "MXFP8": _Algorithm("fp8", 32, 8, _MXFP8),
    "NVFP4": _Algorithm("fp4", 16, 8, FORMATS["nvfp4"]),
    "NVFP4_AWQ": _Algorithm("fp4", 16, 8, FORMATS["nvfp4"]),
    "W4A16_NVFP4": _Algorithm("fp4", 16, 8),
    "W4A8_NVFP4_FP8": _Algorithm("fp4", 32, 8, FP8),
    "W4A8_MXFP4_FP8": _Algorithm("fp4", 32, 8, FP8),
    "W4A16_AWQ": _Algorithm("int4", 128),
    "INT4_AWQ": _Algorithm("int4", 128),
    "W4A8_AWQ": _Algorithm("int4", 128, activations=FP8),
    "W4A16": _Algorithm("int4"),
    "W8A16": _Algorithm("int8"),
    "W8A8_SQ_PER_CHANNEL": _Algorithm("int8", activations=INT8),
    "INT8": _Algorithm("int8", activations=INT8),
    "INT8_SQ": _Algorithm("int8", activations=INT8),
}
_CACHES: Mapping[str, NumberFormat] = {"FP8": FP8, "INT8": INT8, "NVFP4": FORMATS["nvfp4"]}


class _Producer(Struct, frozen=True):
    name: object = None
    version: object = None


class _Group(Group, frozen=True, kw_only=True):
    has_zero_point: bool = False
    pre_quant_scale: object = None  # of rows of activations


class _OneLayer(Struct, frozen=True):
    quant_algo: str
    group_size: int | None = None
    awq_block_size: int | None = None
    has_zero_point: bool | None = None
    pre_quant_scale: object = None


class _Keys(Struct, frozen=True):
    quant_algo: str | None = None
    group_size: int | None = None
    has_zero_point: bool | None = None
    kv_cache_quant_algo: str | None = None
    kv_cache_scheme: TensorScheme | str | None = None
    exclude_modules: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    quantized_layers: Mapping[str, _OneLayer] | None = None
    config_groups: Mapping[str, _Group] | None = None
    quant_method: object = None
    producer: _Producer | None = None
    pre_quant_scale: object = None  # of rows of activations
    smoothquant_val: object = None


class _File(Struct, frozen=True):
    """A file of its own, hf_quant_config.json."""

    quantization: Mapping[str, object]
    producer: _Producer | None = None
    quant_method: object = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:
    if isinstance(found, Mapping) and "quantization" in found:
        file = read(_File, found, place)
        return _stated(file.quantization, base, place.inside("quantization"))
    keys = read(_Keys, found, place)
    lists = (("exclude_modules", keys.exclude_modules), ("ignore", keys.ignore))
    return Stated(_rules(keys, base, place), kept_names(lists, place), _cache(keys, base, place))


def _rules(keys: _Keys, base: NumberFormat, place: Place) -> tuple[Rule, ...]:
    groups = place.inside("config_groups")
    stated = rules_of(keys.config_groups or {}, base, groups)
    algorithm = keys.quant_algo.upper() if keys.quant_algo is not None else None
    if algorithm == _MIXED and keys.quantized_layers:
        layers = place.inside("quantized_layers")
        return tuple(_of_layer(name, one, base, layers.inside(name)) for name, one in keys.quantized_layers.items())
    if algorithm is None or algorithm == _MIXED:
        if algorithm is not None and not stated:
            raise place.inside("quantized_layers").wrong(None, f"layers, as quant_algo is {_MIXED}")
        return stated
    if keys.quantized_layers:
        raise place.inside("quantized_layers").wrong(list(keys.quantized_layers), f"none, as quant_algo is {algorithm}")
    size = keys.group_size if keys.group_size is not None else _common_group(keys.config_groups or {})
    rule = _of_algorithm(keys.quant_algo or "", size, base, place, None, has_zero=keys.has_zero_point or False)
    for other in stated:
        if other.weights is not None and rule.weights is not None and other.weights.bits != rule.weights.bits:
            raise other.place.inside("weights").wrong(
                other.weights.bits, f"the {rule.weights.bits} bits of {algorithm}"
            )
    return (rule,)


def _of_layer(name: str, one: _OneLayer, base: NumberFormat, place: Place) -> Rule:
    size = one.group_size if one.group_size is not None else one.awq_block_size
    return _of_algorithm(
        one.quant_algo, size, base, place, names_of([name], place), has_zero=one.has_zero_point or False
    )


def _of_algorithm(
    name: str, size: int | None, base: NumberFormat, place: Place, names: Names | None, *, has_zero: bool
) -> Rule:
    """Return the rule of an algorithm for some modules, or all."""
    algorithm = _ALGORITHMS.get(name.upper())
    if algorithm is None:
        raise place.inside("quant_algo").unknown(name, (*_ALGORITHMS, _MIXED))
    group = algorithm.group
    if size:
        inside = place.inside("group_size")
        if algorithm.is_block or not group:
            if size != (math.isqrt(group) or -1):
                raise inside.wrong(size, f"{math.isqrt(group) or 'none'}, as quant_algo is {name}")
        else:
            group = group_of(size, inside)
    scale, is_integer = algorithm.scale_bits or base.bits, algorithm.element.startswith("int")
    bits = int(algorithm.element.removeprefix("int").removeprefix("fp"))
    made = integers(bits, group, scale, bits if has_zero else 0) if is_integer else floats(bits, group, scale)
    return Rule(names, made, algorithm.activations, place)


def _common_group(groups: Mapping[str, _Group]) -> int | None:
    """Return the group size of weights that the first group with one states."""
    sizes = (group.weights.group_size for group in groups.values() if group.weights is not None)
    return next((size for size in sizes if size is not None), None)


def _cache(keys: _Keys, base: NumberFormat, place: Place) -> NumberFormat | None:
    scheme, inside = keys.kv_cache_scheme, place.inside("kv_cache_scheme")
    if isinstance(scheme, TensorScheme):
        return format_of(scheme, base, inside)
    for name, at in ((keys.kv_cache_quant_algo, place.inside("kv_cache_quant_algo")), (scheme, inside)):
        if name is not None:
            if name.upper() not in _CACHES:
                raise at.unknown(name, _CACHES)
            return _CACHES[name.upper()]
    return None


METHOD = Method(
    "modelopt", _stated, other_names=("modelopt_fp4", "modelopt_mixed", "modelopt_mxfp8"), marks=("quantization",)
)
