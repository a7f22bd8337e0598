"""``fbgemm_fp8``: weights in 8 bits with a scale per row, activations with one per token [hf]."""

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.scaled import FP8
from dfcompile.language_models.quantisation.stated import Method, Stated, kept_names, uniform_rules


class _Keys(Struct, frozen=True):
    quant_method: object = None
    modules_to_not_convert: tuple[str, ...] | None = None
    activation_scale_ub: object = None  # bound of the scales of activations


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    kept = kept_names((("modules_to_not_convert", keys.modules_to_not_convert),), place, head=True)
    return Stated(uniform_rules(FP8, FP8, place), kept)


METHOD = Method("fbgemm_fp8", _stated)
