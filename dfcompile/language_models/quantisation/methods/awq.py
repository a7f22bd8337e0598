"""``awq``: integers in groups, each with a scale and a zero point [hf]."""

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


class _Fused(Keys, frozen=True):
    harmless = (
        "attention layernorm mlp use_alibi num_attention_heads num_key_value_heads hidden_size max_seq_len rope_theta"
    )


class _Keys(AutoRoundSettings, frozen=True, kw_only=True):
    harmless = "quant_method backend version do_fuse fuse_max_seq_len"
    bits: int | None = None
    w_bit: int | None = None  # an older name of bits
    group_size: int | None = None
    q_group_size: int | None = None  # an older name of group_size
    zero_point: bool = True
    lm_head: bool = False
    modules_to_not_convert: tuple[str, ...] | None = None
    modules_to_fuse: _Fused | None = None
    exllama_config: ExllamaSettings | None = None


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Keys, found, place)
    keys.check_data_type()
    bits, bits_key = _one(keys, "bits", "w_bit", 4)
    group, group_key = _one(keys, "group_size", "q_group_size", 128)
    width = width_of(bits, place.inside(bits_key), range(1, 9))
    form = scaled("int", width, group_of(group, place.inside(group_key)), FP16_BITS, width if keys.zero_point else 0)
    kept = (*(keys.modules_to_not_convert or ()), *(() if keys.lm_head else (HEAD,)))
    return Stated((Rule(place, form),), names_of(kept, place.inside("modules_to_not_convert")))


def _one(keys: _Keys, new: str, old: str, default: int) -> tuple[int, str]:
    """Return the value of a key or of its older name, and which of them has it."""
    value, older = getattr(keys, new), getattr(keys, old)
    if value is None:
        return default if older is None else older, old
    if older not in (None, value):
        raise keys.wrong(old, f"the {value} of {new}")
    return value, new


METHOD = Method("awq", _stated, marks=("w_bit", "q_group_size"))
