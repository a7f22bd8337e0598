"""``torchao``: PyTorch's configurations by name, of all modules or of each [torchao]."""

from collections.abc import Mapping

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import read
from dfcompile.language_models.quantisation.names import Names, names_of
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.scaled import FP8, INT8, block_of, floats, group_of, integers, width_of
from dfcompile.language_models.quantisation.stated import Method, Rule, Stated, kept_names

_ZERO_BITS = 16  # real zero points, of the dtype of scales


class _Config(Struct, frozen=True):
    """What a configuration makes of a matrix and of what is multiplied with it.

    Attributes:
        bits: of a weight; 0: as `weight_dtype` says.
        group: elements that share a scale, unless the file says it; 0: a row or the tensor.
        zero_bits: of a zero point beside a scale.
        activations: none where they stay as they are.
        is_integer: or a floating-point number.
    """

    bits: int
    group: int = 0
    zero_bits: int = 0
    activations: NumberFormat | None = None
    is_integer: bool = True


_CONFIGS: Mapping[str, _Config] = {
    "int4weightonly": _Config(4, 128, _ZERO_BITS),
    "int8weightonly": _Config(8),
    "int8dynamicactivationint8weight": _Config(8, activations=INT8),
    "int8dynamicactivationint4weight": _Config(4, 32, activations=INT8),
    "intxweightonly": _Config(0),
    "int8dynamicactivationintxweight": _Config(0, 32, activations=INT8),
    "float8weightonly": _Config(8, is_integer=False),
    "float8dynamicactivationfloat8weight": _Config(8, activations=FP8, is_integer=False),
    "float8staticactivationfloat8weight": _Config(8, activations=FP8, is_integer=False),
    "float8dynamicactivationint4weight": _Config(4, 128, activations=FP8),
}
_BY_NAME = ("modulefqnto", "fqnto")
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_OF_ROWS = ("PerTensor", "PerRow", "PerAxis", "PerToken")


class _Tagged(Struct, frozen=True, rename="_{}".format):
    """A value of a class: a configuration, a dtype, a layout, a granularity."""

    type: str
    data: object = None
    version: object = None


class _Granularity(Struct, frozen=True):
    axis: object = None
    dim: object = None
    block_size: tuple[int, ...] | None = None
    group_size: int | None = None


class _Layout(Struct, frozen=True):
    """In which order elements are packed."""

    blocksize: object = None
    dtype: object = None
    inner_k_tiles: object = None
    mm_config: object = None
    pack_dim: object = None
    target: object = None


class _Multiplied(Struct, frozen=True):
    """How floating-point numbers of 8 bits are multiplied."""

    emulate: object = None
    pad_inner_dim: object = None
    use_fast_accum: object = None


class _Settings(Struct, frozen=True, kw_only=True):
    """Settings of a configuration."""

    group_size: int | None = None
    granularity: _Tagged | tuple[_Tagged, ...] | None = None
    weight_granularity: _Tagged | None = None
    weight_dtype: _Tagged | str | None = None
    layout: _Tagged | tuple[object, ...] | None = None
    activation_dtype: _Tagged | str | None = None
    # How weights were found, and which kernels multiply.
    act_mapping_type: _Tagged | str | None = None
    activation_value_lb: object = None
    activation_value_ub: object = None
    float8_packing_format: _Tagged | str | None = None
    inner_k_tiles: object = None
    int4_choose_qparams_algorithm: _Tagged | str | None = None
    int4_packing_format: _Tagged | str | None = None
    intx_choose_qparams_algorithm: _Tagged | str | None = None
    intx_packing_format: _Tagged | str | None = None
    kernel_preference: _Tagged | str | None = None
    mapping_type: _Tagged | str | None = None
    mm_config: _Tagged | None = None
    packing_format: _Tagged | str | None = None
    preserve_zero: object = None
    scale: object = None
    scale_dtype: _Tagged | str | None = None
    set_inductor_config: object = None
    use_hqq: object = None
    version: object = None
    weight_mapping_type: _Tagged | str | None = None
    weight_only_decode: object = None
    weight_scale_dtype: _Tagged | str | None = None
    zero_point_domain: _Tagged | str | None = None


class _ByName(Struct, frozen=True):
    module_fqn_to_config: Mapping[str, object] | None = None
    fqn_to_config: Mapping[str, object] | None = None
    version: object = None


class _Only(Struct, frozen=True):
    default: object


class _Keys(Struct, frozen=True):
    quant_type: str | Mapping[str, object]
    quant_method: object = None
    quant_type_kwargs: Mapping[str, object] | None = None
    modules_to_not_convert: tuple[str, ...] | None = None
    include_input_output_embeddings: bool = False
    untie_embedding_weights: bool = False


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:
    keys = read(_Keys, found, place)
    for key, value in (("include_input_output_embeddings", keys.include_input_output_embeddings),
                       ("untie_embedding_weights", keys.untie_embedding_weights)):  # fmt: skip
        if value:
            raise place.inside(key).unmodelled("a quantised embedding")
    kept = kept_names((("modules_to_not_convert", keys.modules_to_not_convert),), place, head=True)
    inside = place.inside("quant_type")
    if isinstance(keys.quant_type, str):
        rule = _rule(keys.quant_type, keys.quant_type_kwargs or {}, base, inside, place.inside("quant_type_kwargs"))
        return Stated((rule,), kept)
    if keys.quant_type_kwargs:
        raise place.inside("quant_type_kwargs").wrong(keys.quant_type_kwargs, "none, as quant_type has its own")
    default, at = read(_Only, keys.quant_type, inside).default, inside.inside("default")
    tagged = read(_Tagged, default, at)
    if _plain(tagged.type) not in _BY_NAME:
        return Stated((_of_tagged(default, base, at),), kept)
    return Stated(_by_name(tagged.data, base, at.inside("_data")), kept)


def _by_name(found: object, base: NumberFormat, place: Place) -> tuple[Rule, ...]:
    """Return the rules of a table of modules: names hold before expressions, and these before the default."""
    table = read(_ByName, found, place)
    key = "module_fqn_to_config" if table.module_fqn_to_config is not None else "fqn_to_config"
    configs = table.module_fqn_to_config or table.fqn_to_config or {}
    rules = []
    for name, config in sorted(configs.items(), key=lambda item: item[0].startswith("re:")):
        at = place.inside(key).inside(name)
        if name == "_default":
            continue
        names = names_of([name], at, whole=True)
        rules.append(Rule(names, None, None, at) if config is None else _of_tagged(config, base, at, names))
    default = configs.get("_default")
    if default is not None:
        rules.append(_of_tagged(default, base, place.inside(key).inside("_default")))
    return tuple(rules)


def _of_tagged(found: object, base: NumberFormat, place: Place, names: Names | None = None) -> Rule:
    tagged = read(_Tagged, found, place)
    at = place.inside("_data")
    if tagged.data is not None and not isinstance(tagged.data, Mapping):
        raise at.wrong(tagged.data, "a mapping")
    return _rule(tagged.type, tagged.data or {}, base, place.inside("_type"), at, names)


def _rule(
    name: str, data: Mapping[str, object], base: NumberFormat, place: Place, inside: Place, names: Names | None = None
) -> Rule:
    config = _CONFIGS.get(_plain(name))
    if config is None:
        raise place.unknown(name, _CONFIGS)
    settings = read(_Settings, data, inside)
    _check(settings, config, inside)
    group = config.group
    if settings.group_size is not None:
        group = group_of(settings.group_size, inside.inside("group_size"))
    for key, value in (("granularity", settings.granularity), ("weight_granularity", settings.weight_granularity)):
        if value is not None:
            group = _granularity(value, inside.inside(key))
    bits = config.bits or _bits(settings.weight_dtype, inside.inside("weight_dtype"))
    form = integers(bits, group, base.bits, config.zero_bits) if config.is_integer else floats(bits, group, base.bits)
    return Rule(names, form, config.activations, place)


def _check(settings: _Settings, config: _Config, place: Place) -> None:
    at = place.inside("layout")
    match settings.layout:
        case _Tagged():
            name, data, inside = settings.layout.type, settings.layout.data, at.inside("_data")
        case (str() as name, data):
            inside = at.inside(1)
        case None:
            name, data, inside = "", None, at
        case _:
            raise at.wrong(settings.layout, "a layout's name and settings")
    if "sparse" in name.lower():
        raise at.unmodelled("sparse weights")
    read(_Layout, {} if data is None else data, inside)
    if settings.mm_config is not None:
        read(_Multiplied, settings.mm_config.data or {}, place.inside("mm_config").inside("_data"))
    for key, value in (("weight_dtype", settings.weight_dtype), ("activation_dtype", settings.activation_dtype)):
        if value is not None and config.bits and _dtype(value, place.inside(key)) not in _FLOAT8:
            raise place.inside(key).wrong(_dtype(value, place.inside(key)), ", ".join(_FLOAT8))


def _granularity(found: _Tagged | tuple[_Tagged, ...], place: Place) -> int:
    """Return the elements of weights that share a scale; of two granularities the second is theirs."""
    tagged = found[-1] if isinstance(found, tuple) and found else found
    if not isinstance(tagged, _Tagged):
        raise place.wrong([], "a granularity")
    data = read(_Granularity, {} if tagged.data is None else tagged.data, place.inside("_data"))
    if tagged.type == "PerGroup":
        return group_of(data.group_size, place.inside("_data").inside("group_size"))
    if tagged.type == "PerBlock":
        return block_of(data.block_size or (), place.inside("_data").inside("block_size"))
    if tagged.type not in _OF_ROWS:
        raise place.inside("_type").unknown(tagged.type, (*_OF_ROWS, "PerGroup", "PerBlock"))
    return 0


def _bits(dtype: _Tagged | str | None, place: Place) -> int:
    name = "int8" if dtype is None else _dtype(dtype, place)
    digits = name.removeprefix("u").removeprefix("int")
    if not digits.isdecimal() or len(digits) > 2:
        raise place.wrong(name, "int1 to int8")
    return width_of(int(digits), place, range(1, 9))


def _dtype(found: _Tagged | str, place: Place) -> str:
    name = found.data if isinstance(found, _Tagged) else found
    if not isinstance(name, str):
        raise place.inside("_data").wrong(name, "a dtype")
    return name.removeprefix("torch.")


def _plain(name: str) -> str:
    return name.replace("_", "").lower().removesuffix("config")


METHOD = Method("torchao", _stated)
