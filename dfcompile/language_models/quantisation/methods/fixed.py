"""Methods of fixed formats: ``fp8`` and ``fbgemm_fp8`` of 8 bits, ``mxfp4``, and ``bitsandbytes`` of 8 or 4 bits."""

from dfcompile.language_models.formats import FORMATS, NumberFormat
from dfcompile.language_models.quantisation.keys import Place, read
from dfcompile.language_models.quantisation.stated import Method, MethodKeys, Rule, Stated, kept_names
from dfcompile.language_models.quantisation.tensor_scheme import (
    FP8,
    FP32_BITS,
    INT8,
    TensorScheme,
    block_of,
    format_of,
    scaled,
)

_WIDENED = "weights that are widened when they are loaded"
_SCHEMES = ("dynamic", "static")


class _Fp8(MethodKeys, frozen=True):
    """Weights in 8 bits with a scale per tensor or block, activations in 8 bits as well."""

    # The format is e4m3 or e5m2, of 8 bits each; scales may be powers of two, in 32 bits all the same.
    harmless = "fmt scale_fmt"
    activation_scheme: str = "dynamic"
    weight_block_size: tuple[int, ...] | None = None
    ignored_layers: tuple[str, ...] | None = None
    kv_cache_scheme: TensorScheme | str | None = None
    dequantize: bool = False


def _fp8(found: object, base: NumberFormat, place: Place) -> Stated:
    keys = read(_Fp8, found, place)
    keys.require("activation_scheme", _SCHEMES)
    keys.refuse("dequantize", what=_WIDENED)
    block = keys.weight_block_size
    weights = FP8 if block is None else scaled("fp", 8, block_of(block, place.inside("weight_block_size")), FP32_BITS)
    kept = kept_names(keys, "modules_to_not_convert", "ignored_layers", head=True)
    kv = keys.kv_cache_scheme
    if isinstance(kv, str):
        keys.require("kv_cache_scheme", _SCHEMES)
    return Stated((Rule(place, weights, FP8),), kept, FP8 if isinstance(kv, str) else format_of(kv, base))


FP8_METHOD = Method("fp8", _fp8)


class _Fbgemm(MethodKeys, frozen=True):
    """Weights in 8 bits with a scale per row, activations with one per token."""

    harmless = "activation_scale_ub"  # a bound of the scales of activations


def _fbgemm(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Fbgemm, found, place)
    return Stated((Rule(place, FP8, FP8),), kept_names(keys, "modules_to_not_convert", head=True))


FBGEMM = Method("fbgemm_fp8", _fbgemm)


class _Mxfp4(MethodKeys, frozen=True):
    """Experts in 4 bits, 32 of which share a scale of 8 bits."""

    dequantize: bool = False


def _mxfp4(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Mxfp4, found, place)
    keys.refuse("dequantize", what=_WIDENED)
    return Stated((Rule(place, FORMATS["mxfp4"], classes=("experts",)),), kept_names(keys, "modules_to_not_convert"))


MXFP4 = Method("mxfp4", _mxfp4)


_BLOCK = 64  # elements that share a scale of 32 bits
_BLOCKS = 256  # of which the scales, then of 8 bits, share one of 32, if they are quantised as well
_TYPES = ("fp4", "nf4")


class _Bits(MethodKeys, frozen=True):
    """8 bits with a scale per row, or 4 bits with one per 64 elements."""

    # The first two say the same again. Activations are converted to the compute_dtype, and are of 16 bits in any case;
    # bits are packed into the storage; beyond the threshold activations are multiplied in 16 bits.
    harmless = (
        "_load_in_4bit _load_in_8bit bnb_4bit_compute_dtype bnb_4bit_quant_storage llm_int8_enable_fp32_cpu_offload "
        "llm_int8_threshold"
    )
    load_in_4bit: bool = False
    load_in_8bit: bool = False
    bnb_4bit_quant_type: str = "fp4"
    bnb_4bit_use_double_quant: bool = False
    llm_int8_has_fp16_weight: bool = False
    llm_int8_skip_modules: tuple[str, ...] | None = None


def _bits(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Bits, found, place)
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


BITSANDBYTES = Method("bitsandbytes", _bits, marks=("load_in_4bit", "load_in_8bit"))
