"""``fbgemm_fp8``: weights in 8 bits with a scale per row, activations with one per token [hf]."""

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, read
from dfcompile.language_models.quantisation.scaled import FP8
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated, kept_names


class _Keys(Keys, frozen=True):
    harmless = "quant_method activation_scale_ub"  # a bound of the scales of activations
    modules_to_not_convert: tuple[str, ...] | None = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    return Stated((Rule(place, FP8, FP8),), kept_names(keys, "modules_to_not_convert", head=True))


METHOD = Method("fbgemm_fp8", _stated)
