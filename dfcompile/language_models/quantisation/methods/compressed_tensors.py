"""``compressed-tensors``: groups of modules, each with schemes of weights and activations [compressed-tensors]."""

from collections.abc import Mapping

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, read
from dfcompile.language_models.quantisation.stated import Method, Stated, names_of
from dfcompile.language_models.quantisation.tensor_scheme import Group, TensorScheme, format_of, rules_of

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


class _Keys(Keys, frozen=True):
    harmless = "quant_method global_compression_ratio quantization_status run_compressed version"
    config_groups: Mapping[str, Group] | None = None
    format: str | None = None
    ignore: tuple[str, ...] | None = None
    kv_cache_scheme: TensorScheme | None = None
    sparsity_config: _Sparsity | None = None
    transform_config: _Transforms | None = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:
    keys = read(_Keys, found, place)
    if keys.sparsity_config is not None and keys.sparsity_config.format not in _DENSE:
        raise place.inside("sparsity_config").unmodelled("sparse weights")
    if keys.transform_config is not None and keys.transform_config.config_groups:
        raise place.inside("transform_config").unmodelled("products that transform activations")
    stated: tuple[_Keys | Group, ...] = (keys, *(keys.config_groups or {}).values())
    for packed in stated:
        packed.inside("format").check(packed.format, _PACKED)
    if keys.config_groups is None and keys.kv_cache_scheme is None:
        raise keys.wrong("config_groups", "groups of modules")
    rules = rules_of(keys.config_groups, base)
    return Stated(rules, names_of(keys.ignore or (), place.inside("ignore")), format_of(keys.kv_cache_scheme, base))


METHOD = Method("compressed-tensors", _stated)
