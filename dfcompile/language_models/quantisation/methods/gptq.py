"""``gptq``: integers in groups, each with a scale and, unless symmetric, a zero point [hf]."""

from collections.abc import Mapping

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.auto_round import AutoRoundSettings, check_data_type
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.names import names_of
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.scaled import FP16_BITS, group_of, integers, width_of
from dfcompile.language_models.quantisation.stated import HEAD, Method, Rule, Stated

_FORMATS = ("gptq", "gptq_v2", "marlin", "bitblas")  # the same bits in another order
_BLOCKS = ("model.layers", "transformer.h", "model.language_model.layers", "language_model.model.layers")


class _Changed(Struct, frozen=True):
    """What is different for the modules of a pattern."""

    bits: int | None = None
    group_size: int | None = None
    sym: bool | None = None
    desc_act: object = None
    act_group_aware: object = None
    damp_percent: object = None
    damp_auto_increment: object = None
    mse: object = None
    static_groups: object = None


class _Exllama(Struct, frozen=True):
    version: object = None
    max_input_len: object = None
    max_batch_size: object = None


class _Keys(AutoRoundSettings, frozen=True, kw_only=True):
    quant_method: object = None
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
    # How it was made.
    act_group_aware: object = None
    cache_block_outputs: object = None
    damp_auto_increment: object = None
    damp_percent: object = None
    desc_act: object = None
    meta: object = None  # free by definition
    method: object = None
    model_name_or_path: object = None
    model_seqlen: object = None
    module_name_preceding_first_block: object = None
    mse: object = None
    pad_token_id: object = None
    quantizer: object = None
    static_groups: object = None
    tokenizer: object = None
    true_sequential: object = None
    # Which kernels multiply, and how files are packed.
    backend: object = None
    disable_exllama: object = None
    exllama_config: _Exllama | None = None
    is_marlin_format: object = None
    max_input_length: object = None
    model_file_base_name: object = None
    pack_dtype: object = None
    use_cuda_fp16: object = None
    use_exllama: object = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    check_data_type(keys, place)
    for key, value in (("format", keys.format), ("checkpoint_format", keys.checkpoint_format)):
        if value is not None and value.lower() not in _FORMATS:
            raise place.inside(key).unknown(value, _FORMATS)
    for key, added in (("rotation", keys.rotation), ("adapter", keys.adapter)):
        if added:
            raise place.inside(key).unmodelled("further products beside those of the model")
    block = keys.block_name_to_quantize
    if block is not None and block not in _BLOCKS:
        raise place.inside("block_name_to_quantize").unknown(block, _BLOCKS)
    kept, rules = [*(keys.modules_to_not_convert or ()), *(() if keys.lm_head else (HEAD,))], []
    for pattern, changed in (keys.dynamic or {}).items():
        inside = place.inside("dynamic").inside(pattern)
        if pattern.startswith("-:"):
            kept.append(f"re:{pattern.removeprefix('-:')}")
        else:
            changes = names_of([f"re:{pattern.removeprefix('+:')}"], inside)
            rules.append(Rule(changes, _form(keys, changed, inside), None, inside))
    inside = place.inside("modules_in_block_to_quantize")
    listed = keys.modules_in_block_to_quantize
    blocks = None if not listed else [name for one in listed for name in ((one,) if isinstance(one, str) else one)]
    names = None if blocks is None else names_of((*blocks, HEAD), inside)
    rules.append(Rule(names, _form(keys, _Changed(), place), None, inside))
    lists = "dynamic" if keys.dynamic else "modules_to_not_convert"
    return Stated(tuple(rules), names_of(kept, place.inside(lists)))


def _form(keys: _Keys, changed: _Changed, place: Place) -> NumberFormat:
    bits = keys.bits if changed.bits is None else changed.bits
    group = keys.group_size if changed.group_size is None else changed.group_size
    is_symmetric = keys.sym if changed.sym is None else changed.sym
    width = width_of(bits, place.inside("bits"), range(1, 9))
    return integers(width, group_of(group, place.inside("group_size")), FP16_BITS, 0 if is_symmetric else width)


METHOD = Method("gptq", _stated, marks=("desc_act",))
