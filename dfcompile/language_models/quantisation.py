"""Number formats that a configuration states in ``quantization_config`` [hf]."""

from collections.abc import Mapping

from dfcompile.errors import UserError
from dfcompile.language_models.formats import FORMATS, NumberFormat, Precision, number_format, uniform
from dfcompile.records import replace

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_SCALE_BITS = 16
_METHODS = ("awq", "bitsandbytes", "compressed-tensors", "fp8", "gptq", "mxfp4")


def precision_of(values: Mapping[str, object], where: str) -> tuple[Precision, tuple[str, ...]]:
    """Return the formats that a configuration states, and notes of what was assumed.

    Quantisation changes the matrices of layers; embedding, head and router stay as the configuration's dtype, as
    checkpoints have them.

    Raises:
        UserError: an unknown dtype or method, or a missing or wrong key of it.
    """
    named = values.get("dtype", values.get("torch_dtype"))
    notes: tuple[str, ...] = ()
    if named is None:
        base, notes = FORMATS["bf16"], ("dtype = bf16: left out",)
    elif isinstance(named, str) and named.removeprefix("torch.") in _DTYPES:
        base = FORMATS[_DTYPES[named.removeprefix("torch.")]]
    else:
        raise UserError(f"{where}: key 'dtype': found {named!r} against {', '.join(_DTYPES)}")
    found = values.get("quantization_config")
    if found is None:
        return uniform(base), notes
    if not isinstance(found, Mapping):
        raise UserError(f"{where}: key 'quantization_config': found {found!r} against a mapping")
    method = found.get("quant_method")
    if method == "mxfp4":
        return replace(uniform(base), experts=number_format("mxfp4")), (*notes, "experts in mxfp4, as configured")
    weights = _weights(str(method), found, where)
    kept = _kept(found)
    precision = replace(
        uniform(base),
        attention=base if "self_attn" in kept else weights,
        mlp=base if "mlp" in kept else weights,
        experts=weights,
    )
    return precision, (*notes, f"matrices of layers in {weights.name}, as configured ({method})")


def _weights(method: str, found: Mapping[str, object], where: str) -> NumberFormat:
    match method:
        case "fp8":
            block = found.get("weight_block_size")
            if not isinstance(block, list):
                return FORMATS["fp8"]
            extents = [_whole(one, "weight_block_size", where) for one in block]
            area = 1
            for extent in extents:
                area *= extent
            return NumberFormat("fp8", 8, group=area, scale_bits=32)
        case "awq" | "gptq":
            bits = _whole(found.get("bits", 4), "bits", where)
            group = found.get("group_size", 128)
            zeros = bits if method == "awq" or not found.get("sym", True) else 0
            return _integers(bits, group, zeros, where)
        case "bitsandbytes":
            return _integers(4, 64, 0, where) if found.get("load_in_4bit") else FORMATS["int8"]
        case "compressed-tensors":
            return _compressed(found, where)
    raise UserError(f"{where}: unknown quant_method {method!r} against {', '.join(_METHODS)}")


def _compressed(found: Mapping[str, object], where: str) -> NumberFormat:
    groups = found.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    if not isinstance(weights, Mapping):
        raise UserError(f"{where}: key 'config_groups': found no weights in it")
    bits = _whole(weights.get("num_bits"), "num_bits", where)
    if weights.get("type") == "float":
        return NumberFormat(f"fp{bits}", bits)
    return _integers(bits, weights.get("group_size"), 0, where)


def _integers(bits: int, group: object, zeros: int, where: str) -> NumberFormat:
    name = f"int{bits}"
    if group is None or group == -1:
        return NumberFormat(name, bits)
    return NumberFormat(name, bits, group=_whole(group, "group_size", where), scale_bits=_SCALE_BITS + zeros)


def _whole(found: object, key: str, where: str) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or not 1 <= found <= 2**20:
        raise UserError(f"{where}: key 'quantization_config.{key}': found {found!r} against a whole number")
    return found


def _kept(found: Mapping[str, object]) -> frozenset[str]:
    """Return which of attention and MLP whole layers keep in the configuration's dtype."""
    listed = found.get("modules_to_not_convert", found.get("ignore"))
    names = [str(name) for name in listed] if isinstance(listed, list) else []
    return frozenset(word for word in ("self_attn", "mlp") if any(_ends_with(name, word) for name in names))


def _ends_with(name: str, word: str) -> bool:
    return name.rpartition(".")[2] == word and ("layers" in name or name == word)
