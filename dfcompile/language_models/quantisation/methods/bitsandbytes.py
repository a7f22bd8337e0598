"""``bitsandbytes``: 8 bits with a scale per row, or 4 bits with one per 64 elements [hf]."""

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.scaled import FP32_BITS, INT8
from dfcompile.language_models.quantisation.stated import Method, Stated, kept_names, uniform_rules

_BLOCK = 64  # elements that share a scale of 32 bits
_BLOCKS = 256  # of which the scales, then of 8 bits, share one of 32, if they are quantised as well
_TYPES = ("fp4", "nf4")


class _Keys(Struct, frozen=True):
    quant_method: object = None
    load_in_4bit: bool = False
    load_in_8bit: bool = False
    bnb_4bit_quant_type: str = "fp4"
    bnb_4bit_use_double_quant: bool = False
    llm_int8_has_fp16_weight: bool = False
    llm_int8_skip_modules: tuple[str, ...] | None = None
    modules_to_not_convert: tuple[str, ...] | None = None
    _load_in_4bit: object = None  # the same again
    _load_in_8bit: object = None
    bnb_4bit_compute_dtype: object = None  # activations are converted to it, and are of 16 bits in any case
    bnb_4bit_quant_storage: object = None  # of what the bits are packed into
    llm_int8_enable_fp32_cpu_offload: object = None  # where modules may be
    llm_int8_threshold: object = None  # beyond which activations are multiplied in 16 bits


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    if keys.load_in_4bit and keys.load_in_8bit:
        raise place.inside("load_in_4bit").wrong(keys.load_in_4bit, "false, as load_in_8bit is true")
    if keys.llm_int8_has_fp16_weight and keys.load_in_8bit:
        raise place.inside("llm_int8_has_fp16_weight").unmodelled("weights of 16 bits beside those of 8")
    if keys.bnb_4bit_quant_type not in _TYPES:
        raise place.inside("bnb_4bit_quant_type").wrong(keys.bnb_4bit_quant_type, " or ".join(_TYPES))
    lists = (
        ("llm_int8_skip_modules", keys.llm_int8_skip_modules),
        ("modules_to_not_convert", keys.modules_to_not_convert),
    )
    kept = kept_names(lists, place, head=True)
    if keys.load_in_8bit:
        notes = ("bitsandbytes: outliers among activations, multiplied in 16 bits, are not counted",)
        return Stated(uniform_rules(INT8, INT8, place), kept, notes=notes)
    if keys.load_in_4bit:
        return Stated(uniform_rules(_four_bits(doubled=keys.bnb_4bit_use_double_quant), None, place), kept)
    return Stated((), kept)


def _four_bits(*, doubled: bool) -> NumberFormat:
    if doubled:
        return NumberFormat("int4", 4, group=_BLOCK * _BLOCKS, scale_bits=8 * _BLOCKS + FP32_BITS)
    return NumberFormat("int4", 4, group=_BLOCK, scale_bits=FP32_BITS)


METHOD = Method("bitsandbytes", _stated, marks=("load_in_4bit", "load_in_8bit"))
