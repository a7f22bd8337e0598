"""``fp8``: weights in 8 bits with a scale per tensor or block, activations in 8 bits as well [hf]."""

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, read
from dfcompile.language_models.quantisation.scaled import FP8, FP32_BITS, block_of, scaled
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated, kept_names
from dfcompile.language_models.quantisation.tensor_scheme import TensorScheme, format_of

_SCHEMES = ("dynamic", "static")


class _Keys(Keys, frozen=True):
    # The format is e4m3 or e5m2, of 8 bits each; scales may be powers of two, in 32 bits all the same.
    harmless = "quant_method fmt scale_fmt"
    activation_scheme: str = "dynamic"
    weight_block_size: tuple[int, ...] | None = None
    modules_to_not_convert: tuple[str, ...] | None = None
    ignored_layers: tuple[str, ...] | None = None
    kv_cache_scheme: TensorScheme | str | None = None
    dequantize: bool = False


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:
    keys = read(_Keys, found, place)
    keys.require("activation_scheme", _SCHEMES)
    keys.refuse("dequantize", what="weights that are widened when they are loaded")
    block = keys.weight_block_size
    weights = FP8 if block is None else scaled("fp", 8, block_of(block, place.inside("weight_block_size")), FP32_BITS)
    kept = kept_names(keys, "modules_to_not_convert", "ignored_layers", head=True)
    kv = keys.kv_cache_scheme
    if isinstance(kv, str):
        keys.require("kv_cache_scheme", _SCHEMES)
    return Stated((Rule(place, weights, FP8),), kept, FP8 if isinstance(kv, str) else format_of(kv, base))


METHOD = Method("fp8", _stated)
