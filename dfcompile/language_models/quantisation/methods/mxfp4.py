"""``mxfp4``: experts in 4 bits, 32 of which share a scale of 8 bits [hf]."""

from dfcompile.language_models.formats import FORMATS, NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, read
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated, kept_names


class _Keys(Keys, frozen=True):
    harmless = "quant_method"
    modules_to_not_convert: tuple[str, ...] | None = None
    dequantize: bool = False


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    keys.refuse("dequantize", what="weights that are widened when they are loaded")
    return Stated((Rule(place, FORMATS["mxfp4"], classes=("experts",)),), kept_names(keys, "modules_to_not_convert"))


METHOD = Method("mxfp4", _stated)
