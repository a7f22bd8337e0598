"""``bitsandbytes``: 8 bits with a scale per row, or 4 bits with one per 64 elements [hf]."""

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, read
from dfcompile.language_models.quantisation.scaled import FP32_BITS, INT8
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated, kept_names

_BLOCK = 64  # elements that share a scale of 32 bits
_BLOCKS = 256  # of which the scales, then of 8 bits, share one of 32, if they are quantised as well
_TYPES = ("fp4", "nf4")


class _Keys(Keys, frozen=True):
    # The first two say the same again. Activations are converted to the compute_dtype, and are of 16 bits in any case;
    # bits are packed into the storage; beyond the threshold activations are multiplied in 16 bits.
    harmless = (
        "_load_in_4bit _load_in_8bit bnb_4bit_compute_dtype bnb_4bit_quant_storage llm_int8_enable_fp32_cpu_offload "
        "llm_int8_threshold quant_method"
    )
    load_in_4bit: bool = False
    load_in_8bit: bool = False
    bnb_4bit_quant_type: str = "fp4"
    bnb_4bit_use_double_quant: bool = False
    llm_int8_has_fp16_weight: bool = False
    llm_int8_skip_modules: tuple[str, ...] | None = None
    modules_to_not_convert: tuple[str, ...] | None = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    if keys.load_in_4bit and keys.load_in_8bit:
        raise keys.wrong("load_in_4bit", "false, as load_in_8bit is true")
    if keys.load_in_8bit:
        keys.refuse("llm_int8_has_fp16_weight", what="weights of 16 bits beside those of 8")
    keys.require("bnb_4bit_quant_type", _TYPES)
    kept = kept_names(keys, "llm_int8_skip_modules", "modules_to_not_convert", head=True)
    if keys.load_in_8bit:
        notes = ("bitsandbytes: outliers among activations, multiplied in 16 bits, are not counted",)
        return Stated((Rule(place, INT8, INT8),), kept, notes=notes)
    if not keys.load_in_4bit:
        return Stated((), kept)
    twice = _BLOCK * _BLOCKS, 8 * _BLOCKS + FP32_BITS
    group, scale_bits = twice if keys.bnb_4bit_use_double_quant else (_BLOCK, FP32_BITS)
    return Stated((Rule(place, NumberFormat("int4", 4, group, scale_bits)),), kept)


METHOD = Method("bitsandbytes", _stated, marks=("load_in_4bit", "load_in_8bit"))
