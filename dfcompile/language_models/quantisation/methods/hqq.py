"""``hqq``: integers in groups, each with a scale and a zero point of 16 bits [hf]."""

from collections.abc import Mapping

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, fields_of, read
from dfcompile.language_models.quantisation.scaled import FP16_BITS, group_of, scaled, width_of
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated, kept_names, names_of


class _Weights(Keys, frozen=True):
    harmless = "axis optimize round_zero view_as_float"
    nbits: int = 4
    group_size: int | None = 64
    channel_wise: bool = True


class _Tensors(Keys, frozen=True):
    weight_quant_params: _Weights
    scale_quant_params: object = None
    zero_quant_params: object = None
    offload_meta: bool = False


class _Keys(Keys, frozen=True):
    harmless = "quant_method"
    quant_config: Mapping[str, object]
    skip_modules: tuple[str, ...] | None = None
    modules_to_not_convert: tuple[str, ...] | None = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    inside = place.inside("quant_config")
    kept = kept_names(keys, "skip_modules", "modules_to_not_convert", head=True)
    if any(name in keys.quant_config for name in fields_of(_Tensors)):
        return Stated((Rule(inside, _form(keys.quant_config, inside)),), kept)
    placed = ((name, inside.inside(name), tensors) for name, tensors in keys.quant_config.items())
    rules = (Rule(at, _form(tensors, at), names=names_of([name], at)) for name, at, tensors in placed)
    return Stated(tuple(rules), kept)


def _form(found: object, place: Place) -> NumberFormat:
    tensors = read(_Tensors, found, place)
    what = "scales and zero points that are quantised as well"
    tensors.refuse("scale_quant_params", "zero_quant_params", what=what)
    tensors.refuse("offload_meta", what="scales and zero points outside of the chip's memory")
    weights = tensors.weight_quant_params
    group = group_of(weights.group_size, weights.inside("group_size")) if weights.channel_wise else 0
    return scaled("int", width_of(weights.nbits, weights.inside("nbits"), range(1, 9)), group, FP16_BITS, FP16_BITS)


METHOD = Method("hqq", _stated)
