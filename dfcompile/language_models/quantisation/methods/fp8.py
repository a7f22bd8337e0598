"""``fp8``: weights in 8 bits with a scale per tensor or block, activations in 8 bits as well [hf]."""

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.scaled import FP8, FP32_BITS, block_of, floats
from dfcompile.language_models.quantisation.stated import Method, Stated, kept_names, uniform_rules
from dfcompile.language_models.quantisation.tensor_scheme import TensorScheme, format_of

_SCHEMES = ("dynamic", "static")


class _Keys(Struct, frozen=True):
    quant_method: object = None
    activation_scheme: str = "dynamic"
    weight_block_size: tuple[int, ...] | None = None
    modules_to_not_convert: tuple[str, ...] | None = None
    ignored_layers: tuple[str, ...] | None = None
    kv_cache_scheme: TensorScheme | str | None = None
    dequantize: bool = False
    fmt: object = None  # e4m3 or e5m2: 8 bits each
    scale_fmt: object = None  # powers of two, in 32 bits all the same


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:
    keys = read(_Keys, found, place)
    if keys.activation_scheme not in _SCHEMES:
        raise place.inside("activation_scheme").wrong(keys.activation_scheme, " or ".join(_SCHEMES))
    if keys.dequantize:
        raise place.inside("dequantize").unmodelled("weights that are widened when they are loaded")
    block = keys.weight_block_size
    weights = FP8 if block is None else floats(8, block_of(block, place.inside("weight_block_size")), FP32_BITS)
    lists = (("modules_to_not_convert", keys.modules_to_not_convert), ("ignored_layers", keys.ignored_layers))
    kept = kept_names(lists, place, head=True)
    return Stated(uniform_rules(weights, FP8, place), kept, _cache(keys.kv_cache_scheme, base, place))


def _cache(scheme: TensorScheme | str | None, base: NumberFormat, place: Place) -> NumberFormat | None:
    inside = place.inside("kv_cache_scheme")
    if isinstance(scheme, str):
        if scheme not in _SCHEMES:
            raise inside.wrong(scheme, " or ".join(_SCHEMES))
        return FP8
    return None if scheme is None else format_of(scheme, base, inside)


METHOD = Method("fp8", _stated)
