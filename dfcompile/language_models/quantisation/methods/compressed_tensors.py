"""``compressed-tensors``: groups of modules, each with schemes of weights and activations [compressed-tensors]."""

from collections.abc import Mapping

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.names import names_of
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.stated import Method, Stated
from dfcompile.language_models.quantisation.tensor_scheme import Group, TensorScheme, format_of, rules_of

_PACKED = (
    "float-quantized", "int-quantized", "mixed-precision", "mxfp4-pack-quantized", "mxfp8-quantized",
    "naive-quantized", "nvfp4-pack-quantized", "pack-quantized",
)  # fmt: skip
_DENSE = ("dense", "")


class _Sparsity(Struct, frozen=True):
    format: str = "dense"
    global_sparsity: object = None
    ignore: object = None
    registry_requires_subclass: object = None
    sparsity_structure: object = None
    targets: object = None


class _Transforms(Struct, frozen=True):
    config_groups: Mapping[str, object] = {}


class _Keys(Struct, frozen=True):
    config_groups: Mapping[str, Group] | None = None
    format: str | None = None
    ignore: tuple[str, ...] | None = None
    kv_cache_scheme: TensorScheme | None = None
    sparsity_config: _Sparsity | None = None
    transform_config: _Transforms | None = None
    quant_method: object = None
    global_compression_ratio: object = None
    quantization_status: object = None
    run_compressed: object = None
    version: object = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:
    keys = read(_Keys, found, place)
    if keys.sparsity_config is not None and keys.sparsity_config.format not in _DENSE:
        raise place.inside("sparsity_config").unmodelled("sparse weights")
    if keys.transform_config is not None and keys.transform_config.config_groups:
        raise place.inside("transform_config").unmodelled("products that transform activations")
    groups = place.inside("config_groups")
    formats = [(keys.format, place)] + [
        (group.format, groups.inside(name)) for name, group in (keys.config_groups or {}).items()
    ]
    for packed, inside in formats:
        if packed is not None and packed not in _PACKED:
            raise inside.inside("format").unknown(packed, _PACKED)
    if keys.config_groups is None and keys.kv_cache_scheme is None:
        raise groups.wrong(None, "groups of modules")
    kv, caches = keys.kv_cache_scheme, place.inside("kv_cache_scheme")
    return Stated(
        rules_of(keys.config_groups or {}, base, groups),
        names_of(keys.ignore or (), place.inside("ignore")),
        None if kv is None else format_of(kv, base, caches),
    )


METHOD = Method("compressed-tensors", _stated)
