"""Integers in groups, each with a scale and perhaps a zero point: ``awq``, ``gptq`` and ``hqq`` [hf]."""

from collections.abc import Mapping

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, fields_of, read
from dfcompile.language_models.quantisation.stated import HEAD, Method, MethodKeys, Rule, Stated, kept_names, names_of
from dfcompile.language_models.quantisation.tensor_scheme import FP16_BITS, group_of, scaled, width_of


class _Exllama(Keys, frozen=True):
    """Of kernels."""

    harmless = "version max_input_len max_batch_size"


class _AutoRound(MethodKeys, frozen=True, kw_only=True):
    """How weights were found; ``scale_dtype`` is of the tuning: files have scales of 16 bits.

    Attributes:
        data_type: of weights; others than ``int`` are no format of the method that the file names.
        lm_head: whether the head is quantised as well.
        exllama_config: of kernels.
    """

    harmless = (
        "amp autoround_version batch_size dataset enable_minmax_tuning enable_norm_bias_tuning enable_quanted_input "
        "gradient_accumulate_steps iters low_cpu_mem_usage low_gpu_mem_usage lr minmax_lr not_use_best_mse nsamples "
        "quant_block_list sampler scale_dtype seqlen to_quant_block_names train_bs"
    )
    data_type: str | None = None
    lm_head: bool = False
    exllama_config: _Exllama | None = None

    def kept(self) -> tuple[str, ...]:
        """Return the modules that stay as they are.

        Raises:
            UserError: weights are no integers.
        """
        if self.data_type is not None:
            self.require("data_type", ("int",))
        return *(self.modules_to_not_convert or ()), *(() if self.lm_head else (HEAD,))


def _integers(bits: int, bits_at: Place, group: int | None, group_at: Place, *, has_zero: bool) -> NumberFormat:
    """Return the format of packed integers whose zero points, if they have any, are packed as well."""
    width = width_of(bits, bits_at, range(1, 9))
    return scaled("int", width, group_of(group, group_at), FP16_BITS, width if has_zero else 0)


class _Fused(Keys, frozen=True):
    harmless = (
        "attention layernorm mlp use_alibi num_attention_heads num_key_value_heads hidden_size max_seq_len rope_theta"
    )


class _Awq(_AutoRound, frozen=True, kw_only=True):
    harmless = "backend version do_fuse fuse_max_seq_len"
    bits: int | None = None
    w_bit: int | None = None  # an older name of bits
    group_size: int | None = None
    q_group_size: int | None = None  # an older name of group_size
    zero_point: bool = True
    modules_to_fuse: _Fused | None = None


def _awq(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Awq, found, place)
    kept = keys.kept()
    bits, bits_key = _one(keys, "bits", "w_bit", 4)
    group, group_key = _one(keys, "group_size", "q_group_size", 128)
    form = _integers(bits, place.inside(bits_key), group, place.inside(group_key), has_zero=keys.zero_point)
    return Stated((Rule(place, form),), names_of(kept, place.inside("modules_to_not_convert")))


def _one(keys: _Awq, new: str, old: str, default: int) -> tuple[int, str]:
    """Return the value of a key or of its older name, and which of them has it."""
    value, older = getattr(keys, new), getattr(keys, old)
    if value is None:
        return default if older is None else older, old
    if older not in (None, value):
        raise keys.wrong(old, f"the {value} of {new}")
    return value, new


AWQ = Method("awq", _awq, marks=("w_bit", "q_group_size"))


_FORMATS = ("gptq", "gptq_v2", "marlin", "bitblas")  # the same bits in another order
_BLOCKS = ("model.layers", "transformer.h", "model.language_model.layers", "language_model.model.layers")
_MADE = "act_group_aware damp_auto_increment damp_percent desc_act mse static_groups"


class _Changed(Keys, frozen=True):
    """What is different for the modules of a pattern."""

    harmless = _MADE
    bits: int | None = None
    group_size: int | None = None
    sym: bool | None = None


class _Gptq(_AutoRound, frozen=True, kw_only=True):
    # How it was made (meta is free by definition), which kernels multiply, and how files are packed.
    harmless = (
        f"{_MADE} cache_block_outputs meta method model_name_or_path model_seqlen module_name_preceding_first_block "
        "pad_token_id quantizer tokenizer true_sequential backend disable_exllama is_marlin_format "
        "max_input_length model_file_base_name pack_dtype use_cuda_fp16 use_exllama"
    )
    bits: int = 4
    group_size: int | None = 128
    sym: bool = True
    dynamic: Mapping[str, _Changed] | None = None
    modules_in_block_to_quantize: tuple[tuple[str, ...] | str, ...] | None = None
    block_name_to_quantize: str | None = None
    format: str | None = None
    checkpoint_format: str | None = None
    rotation: str | None = None
    adapter: object = None


def _gptq(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Gptq, found, place)
    kept, rules = [*keys.kept()], []
    for key, value in (("format", keys.format), ("checkpoint_format", keys.checkpoint_format)):
        if value is not None and value.lower() not in _FORMATS:
            raise place.inside(key).unknown(value, _FORMATS)
    for key in ("rotation", "adapter"):
        if getattr(keys, key):
            raise place.inside(key).unmodelled("further products beside those of the model")
    keys.inside("block_name_to_quantize").check(keys.block_name_to_quantize, _BLOCKS)
    for pattern, changed in (keys.dynamic or {}).items():
        inside = place.inside("dynamic").inside(pattern)
        if pattern.startswith("-:"):
            kept.append(f"re:{pattern.removeprefix('-:')}")
        else:
            changes = names_of([f"re:{pattern.removeprefix('+:')}"], inside)
            rules.append(Rule(inside, _gptq_form(keys, changed), names=changes))
    inside = place.inside("modules_in_block_to_quantize")
    listed = keys.modules_in_block_to_quantize or ()
    blocks = [name for one in listed for name in ((one,) if isinstance(one, str) else one)]
    names = names_of((*blocks, HEAD), inside) if listed else None
    rules.append(Rule(inside, _gptq_form(keys, _Changed(place=place)), names=names))
    return Stated(tuple(rules), names_of(kept, place.inside("dynamic" if keys.dynamic else "modules_to_not_convert")))


def _gptq_form(keys: _Gptq, changed: _Changed) -> NumberFormat:
    bits = keys.bits if changed.bits is None else changed.bits
    group = keys.group_size if changed.group_size is None else changed.group_size
    has_zero = not (keys.sym if changed.sym is None else changed.sym)
    return _integers(bits, changed.inside("bits"), group, changed.inside("group_size"), has_zero=has_zero)


GPTQ = Method("gptq", _gptq, marks=("desc_act",))


class _Weights(Keys, frozen=True):
    harmless = "axis optimize round_zero view_as_float"
    nbits: int = 4
    group_size: int | None = 64
    channel_wise: bool = True


class _Tensors(Keys, frozen=True):
    weight_quant_params: _Weights
    scale_quant_params: object = None
    zero_quant_params: object = None
    offload_meta: bool = False


class _Hqq(MethodKeys, frozen=True):
    quant_config: Mapping[str, object]
    skip_modules: tuple[str, ...] | None = None


def _hqq(found: object, base: NumberFormat, place: Place) -> Stated:  # noqa: ARG001  # as of all methods
    keys = read(_Hqq, found, place)
    inside = place.inside("quant_config")
    kept = kept_names(keys, "skip_modules", "modules_to_not_convert", head=True)
    if any(name in keys.quant_config for name in fields_of(_Tensors)):
        return Stated((Rule(inside, _hqq_form(keys.quant_config, inside)),), kept)
    placed = ((name, inside.inside(name), tensors) for name, tensors in keys.quant_config.items())
    rules = (Rule(at, _hqq_form(tensors, at), names=names_of([name], at)) for name, at, tensors in placed)
    return Stated(tuple(rules), kept)


def _hqq_form(found: object, place: Place) -> NumberFormat:
    tensors = read(_Tensors, found, place)
    what = "scales and zero points that are quantised as well"
    tensors.refuse("scale_quant_params", "zero_quant_params", what=what)
    tensors.refuse("offload_meta", what="scales and zero points outside of the chip's memory")
    weights = tensors.weight_quant_params
    group = group_of(weights.group_size, weights.inside("group_size")) if weights.channel_wise else 0
    return scaled("int", width_of(weights.nbits, weights.inside("nbits"), range(1, 9)), group, FP16_BITS, FP16_BITS)


HQQ = Method("hqq", _hqq)
