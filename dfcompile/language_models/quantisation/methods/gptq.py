"""``gptq``: integers in groups, each with a scale and, unless symmetric, a zero point [hf]."""

from collections.abc import Mapping

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, read
from dfcompile.language_models.quantisation.scaled import (
    FP16_BITS,
    AutoRoundSettings,
    ExllamaSettings,
    group_of,
    scaled,
    width_of,
)
from dfcompile.language_models.quantisation.stated import HEAD, Method, Rule, Stated, names_of

_FORMATS = ("gptq", "gptq_v2", "marlin", "bitblas")  # the same bits in another order
_BLOCKS = ("model.layers", "transformer.h", "model.language_model.layers", "language_model.model.layers")
_MADE = "act_group_aware damp_auto_increment damp_percent desc_act mse static_groups"


class _Changed(Keys, frozen=True):
    """What is different for the modules of a pattern."""

    harmless = _MADE
    bits: int | None = None
    group_size: int | None = None
    sym: bool | None = None


class _Keys(AutoRoundSettings, frozen=True, kw_only=True):
    # How it was made (meta is free by definition), which kernels multiply, and how files are packed.
    harmless = (
        f"{_MADE} cache_block_outputs meta method model_name_or_path model_seqlen module_name_preceding_first_block "
        "pad_token_id quant_method quantizer tokenizer true_sequential backend disable_exllama is_marlin_format "
        "max_input_length model_file_base_name pack_dtype use_cuda_fp16 use_exllama"
    )
    bits: int = 4
    group_size: int | None = 128
    sym: bool = True
    lm_head: bool = False
    dynamic: Mapping[str, _Changed] | None = None
    modules_in_block_to_quantize: tuple[tuple[str, ...] | str, ...] | None = None
    block_name_to_quantize: str | None = None
    modules_to_not_convert: tuple[str, ...] | None = None
    format: str | None = None
    checkpoint_format: str | None = None
    rotation: str | None = None
    adapter: object = None
    exllama_config: ExllamaSettings | None = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    keys.check_data_type()
    for key, value in (("format", keys.format), ("checkpoint_format", keys.checkpoint_format)):
        if value is not None and value.lower() not in _FORMATS:
            raise place.inside(key).unknown(value, _FORMATS)
    for key in ("rotation", "adapter"):
        if getattr(keys, key):
            raise place.inside(key).unmodelled("further products beside those of the model")
    keys.inside("block_name_to_quantize").check(keys.block_name_to_quantize, _BLOCKS)
    kept, rules = [*(keys.modules_to_not_convert or ()), *(() if keys.lm_head else (HEAD,))], []
    for pattern, changed in (keys.dynamic or {}).items():
        inside = place.inside("dynamic").inside(pattern)
        if pattern.startswith("-:"):
            kept.append(f"re:{pattern.removeprefix('-:')}")
        else:
            changes = names_of([f"re:{pattern.removeprefix('+:')}"], inside)
            rules.append(Rule(inside, _form(keys, changed), names=changes))
    inside = place.inside("modules_in_block_to_quantize")
    listed = keys.modules_in_block_to_quantize or ()
    blocks = [name for one in listed for name in ((one,) if isinstance(one, str) else one)]
    names = names_of((*blocks, HEAD), inside) if listed else None
    rules.append(Rule(inside, _form(keys, _Changed(place=place)), names=names))
    lists = "dynamic" if keys.dynamic else "modules_to_not_convert"
    return Stated(tuple(rules), names_of(kept, place.inside(lists)))


def _form(keys: _Keys, changed: _Changed) -> NumberFormat:
    bits = keys.bits if changed.bits is None else changed.bits
    group = keys.group_size if changed.group_size is None else changed.group_size
    is_symmetric = keys.sym if changed.sym is None else changed.sym
    width = width_of(bits, changed.inside("bits"), range(1, 9))
    return scaled("int", width, group_of(group, changed.inside("group_size")), FP16_BITS, 0 if is_symmetric else width)


METHOD = Method("gptq", _stated, marks=("desc_act",))
