"""``hqq``: integers in groups, each with a scale and a zero point of 16 bits [hf]."""

from collections.abc import Mapping

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.names import names_of
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.scaled import FP16_BITS, group_of, integers, width_of
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated, kept_names


class _Weights(Struct, frozen=True):
    nbits: int = 4
    group_size: int | None = 64
    channel_wise: bool = True
    axis: object = None
    optimize: object = None
    round_zero: object = None
    view_as_float: object = None


class _Tensors(Struct, frozen=True):
    weight_quant_params: _Weights
    scale_quant_params: object = None
    zero_quant_params: object = None
    offload_meta: bool = False


class _Keys(Struct, frozen=True):
    quant_config: Mapping[str, object]
    quant_method: object = None
    skip_modules: tuple[str, ...] | None = None
    modules_to_not_convert: tuple[str, ...] | None = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    inside = place.inside("quant_config")
    lists = (("skip_modules", keys.skip_modules), ("modules_to_not_convert", keys.modules_to_not_convert))
    kept = kept_names(lists, place, head=True)
    if any(name in keys.quant_config for name in _Tensors.__struct_fields__):
        return Stated((Rule(None, _form(keys.quant_config, inside), None, inside),), kept)
    rules = tuple(
        Rule(names_of([name], inside.inside(name)), _form(tensors, inside.inside(name)), None, inside.inside(name))
        for name, tensors in keys.quant_config.items()
    )
    return Stated(rules, kept)


def _form(found: object, place: Place) -> NumberFormat:
    tensors = read(_Tensors, found, place)
    for key, value in (("scale_quant_params", tensors.scale_quant_params),
                       ("zero_quant_params", tensors.zero_quant_params)):  # fmt: skip
        if value is not None:
            raise place.inside(key).unmodelled("scales and zero points that are quantised as well")
    if tensors.offload_meta:
        raise place.inside("offload_meta").unmodelled("scales and zero points outside of the chip's memory")
    weights, inside = tensors.weight_quant_params, place.inside("weight_quant_params")
    group = group_of(weights.group_size, inside.inside("group_size")) if weights.channel_wise else 0
    return integers(width_of(weights.nbits, inside.inside("nbits"), range(1, 9)), group, FP16_BITS, FP16_BITS)


METHOD = Method("hqq", _stated)
