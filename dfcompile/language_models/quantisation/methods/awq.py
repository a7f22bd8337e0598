"""``awq``: integers in groups, each with a scale and a zero point [hf]."""

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.auto_round import AutoRoundSettings, check_data_type
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.names import names_of
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.scaled import FP16_BITS, group_of, integers, width_of
from dfcompile.language_models.quantisation.stated import HEAD, Method, Stated, uniform_rules


class _Exllama(Struct, frozen=True):
    version: object = None
    max_input_len: object = None
    max_batch_size: object = None


class _Fused(Struct, frozen=True):
    attention: object = None
    layernorm: object = None
    mlp: object = None
    use_alibi: object = None
    num_attention_heads: object = None
    num_key_value_heads: object = None
    hidden_size: object = None
    max_seq_len: object = None
    rope_theta: object = None


class _Keys(AutoRoundSettings, frozen=True, kw_only=True):
    quant_method: object = None
    bits: int | None = None
    w_bit: int | None = None  # an older name of bits
    group_size: int | None = None
    q_group_size: int | None = None  # an older name of group_size
    zero_point: bool = True
    lm_head: bool = False
    modules_to_not_convert: tuple[str, ...] | None = None
    # Which kernels multiply, and how files are packed.
    backend: object = None
    version: object = None
    do_fuse: object = None
    fuse_max_seq_len: object = None
    modules_to_fuse: _Fused | None = None
    exllama_config: _Exllama | None = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    check_data_type(keys, place)
    bits = _one(keys.bits, keys.w_bit, 4, place.inside("w_bit"), "bits")
    group = _one(keys.group_size, keys.q_group_size, 128, place.inside("q_group_size"), "group_size")
    width = width_of(bits, place.inside("bits" if keys.bits is not None else "w_bit"), range(1, 9))
    size = group_of(group, place.inside("group_size" if keys.group_size is not None else "q_group_size"))
    form = integers(width, size, FP16_BITS, width if keys.zero_point else 0)
    kept = (*(keys.modules_to_not_convert or ()), *(() if keys.lm_head else (HEAD,)))
    return Stated(uniform_rules(form, None, place), names_of(kept, place.inside("modules_to_not_convert")))


def _one(new: int | None, old: int | None, default: int, place: Place, name: str) -> int:
    if new is not None and old is not None and new != old:
        raise place.wrong(old, f"the {new} of {name}")
    return new if new is not None else old if old is not None else default


METHOD = Method("awq", _stated, marks=("w_bit", "q_group_size"))
