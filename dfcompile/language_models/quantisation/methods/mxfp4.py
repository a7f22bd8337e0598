"""``mxfp4``: experts in 4 bits, 32 of which share a scale of 8 bits [hf]."""

from msgspec import Struct

from dfcompile.language_models.formats import FORMATS, NumberFormat
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.stated import Method, Stated, kept_names, uniform_rules


class _Keys(Struct, frozen=True):
    quant_method: object = None
    modules_to_not_convert: tuple[str, ...] | None = None
    dequantize: bool = False


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    if keys.dequantize:
        raise place.inside("dequantize").unmodelled("weights that are widened when they are loaded")
    kept = kept_names((("modules_to_not_convert", keys.modules_to_not_convert),), place)
    return Stated(uniform_rules(FORMATS["mxfp4"], None, place, ("experts",)), kept)


METHOD = Method("mxfp4", _stated)
