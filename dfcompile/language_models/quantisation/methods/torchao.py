"""``torchao``: PyTorch's configurations by name, of all modules or of each [torchao]."""

from collections.abc import Mapping

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place, read, value_of
from dfcompile.language_models.quantisation.stated import Method, MethodKeys, Names, Rule, Stated, kept_names, names_of
from dfcompile.language_models.quantisation.tensor_scheme import FP8, INT8, Recipe, block_of, group_of, scaled, width_of

_ZERO_BITS = 16  # real zero points, of the dtype of scales


_CONFIGS: Mapping[str, Recipe] = {
    "int4weightonly": Recipe("int", 4, 128, zero_bits=_ZERO_BITS),
    "int8weightonly": Recipe("int", 8),
    "int8dynamicactivationint8weight": Recipe("int", 8, activations=INT8),
    "int8dynamicactivationint4weight": Recipe("int", 4, 32, activations=INT8),
    "intxweightonly": Recipe("int", 0),
    "int8dynamicactivationintxweight": Recipe("int", 0, 32, activations=INT8),
    "float8weightonly": Recipe("fp", 8),
    "float8dynamicactivationfloat8weight": Recipe("fp", 8, activations=FP8),
    "float8staticactivationfloat8weight": Recipe("fp", 8, activations=FP8),
    "float8dynamicactivationint4weight": Recipe("int", 4, 128, activations=FP8),
}
_BY_NAME = ("modulefqnto", "fqnto")
_REST = "_default"  # modules that no name is of
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_OF_ROWS = ("PerTensor", "PerRow", "PerAxis", "PerToken")


class _Tagged(Keys, frozen=True, rename="_{}".format):
    """A value of a class: a configuration, a dtype, a layout, a granularity."""

    harmless = "_version"
    type: str
    data: object = None


class _Granularity(Keys, frozen=True):
    harmless = "axis dim"
    block_size: tuple[int, ...] | None = None
    group_size: int | None = None


class _Layout(Keys, frozen=True):
    """In which order elements are packed."""

    harmless = "blocksize dtype inner_k_tiles mm_config pack_dim target"


class _Multiplied(Keys, frozen=True):
    """How floating-point numbers of 8 bits are multiplied."""

    harmless = "emulate pad_inner_dim use_fast_accum"


# How weights were found, and which kernels multiply: words, or values of a class.
_FOUND = (
    "act_mapping_type float8_packing_format int4_choose_qparams_algorithm int4_packing_format "
    "intx_choose_qparams_algorithm intx_packing_format kernel_preference mapping_type packing_format scale_dtype "
    "weight_mapping_type weight_scale_dtype zero_point_domain"
)


class _Settings(Keys, frozen=True, kw_only=True):
    """Settings of a configuration."""

    harmless = (
        f"{_FOUND} activation_value_lb activation_value_ub inner_k_tiles preserve_zero scale set_inductor_config "
        "use_hqq version weight_only_decode"
    )
    group_size: int | None = None
    granularity: _Tagged | tuple[_Tagged, ...] | None = None
    weight_granularity: _Tagged | None = None
    weight_dtype: _Tagged | str | None = None
    layout: _Tagged | tuple[object, ...] | None = None
    activation_dtype: _Tagged | str | None = None
    mm_config: _Tagged | None = None


class _ByName(Keys, frozen=True):
    harmless = "version"
    module_fqn_to_config: Mapping[str, object] | None = None
    fqn_to_config: Mapping[str, object] | None = None


class _Only(Keys, frozen=True):
    default: object


class _Keys(MethodKeys, frozen=True):
    quant_type: str | Mapping[str, object]
    quant_type_kwargs: Mapping[str, object] | None = None
    include_input_output_embeddings: bool = False
    untie_embedding_weights: bool = False


def _stated(found: object, base: NumberFormat, place: Place) -> Stated:
    keys = read(_Keys, found, place)
    keys.refuse("include_input_output_embeddings", "untie_embedding_weights", what="a quantised embedding")
    kept = kept_names(keys, "modules_to_not_convert", head=True)
    inside = place.inside("quant_type")
    if isinstance(keys.quant_type, str):
        rule = _rule(keys.quant_type, keys.quant_type_kwargs or {}, base, inside, place.inside("quant_type_kwargs"))
        return Stated((rule,), kept)
    if keys.quant_type_kwargs:
        raise keys.wrong("quant_type_kwargs", "none, as quant_type has its own")
    only = read(_Only, keys.quant_type, inside)
    tagged = read(_Tagged, only.default, only.inside("default"))
    if _plain(tagged.type) not in _BY_NAME:
        return Stated((_of_tagged(tagged, base),), kept)
    # The rules of a table of modules: names hold before expressions, and these before the default.
    table = read(_ByName, tagged.data, tagged.inside("_data"))
    key = "module_fqn_to_config" if table.module_fqn_to_config is not None else "fqn_to_config"
    configs = table.module_fqn_to_config or table.fqn_to_config or {}
    rules = []
    for name, config in sorted(configs.items(), key=lambda item: (item[0] == _REST, item[0].startswith("re:"))):
        at = table.inside(key).inside(name)
        names = None if name == _REST else names_of([name], at, whole=True)
        if config is not None:
            rules.append(_of_tagged(read(_Tagged, config, at), base, names))
        elif names is not None:
            rules.append(Rule(at, None, names=names))
    return Stated(tuple(rules), kept)


def _of_tagged(tagged: _Tagged, base: NumberFormat, names: Names | None = None) -> Rule:
    at = tagged.inside("_data")
    if tagged.data is not None and not isinstance(tagged.data, Mapping):
        raise at.wrong(tagged.data, "a mapping")
    return _rule(tagged.type, tagged.data or {}, base, tagged.inside("_type"), at, names)


def _rule(
    name: str, data: Mapping[str, object], base: NumberFormat, place: Place, inside: Place, names: Names | None = None
) -> Rule:
    config = place.known(name, _CONFIGS, _plain(name))
    settings = read(_Settings, data, inside)
    for key in _FOUND.split():
        value_of(_Tagged | str | None, data.get(key), inside.inside(key))
    _check(settings, config)
    asked = group_of(settings.group_size, settings.inside("group_size"))
    group = config.group if settings.group_size is None else asked
    for key in ("granularity", "weight_granularity"):
        if getattr(settings, key) is not None:
            group = _granularity(getattr(settings, key), settings.inside(key))
    bits = config.bits or _bits(settings.weight_dtype, settings.inside("weight_dtype"))
    return Rule(place, scaled(config.kind, bits, group, base.bits, config.zero_bits), config.activations, names)


def _check(settings: _Settings, config: Recipe) -> None:
    at = settings.inside("layout")
    match settings.layout:
        case _Tagged() as tagged:
            name, data, inside = tagged.type, tagged.data, tagged.inside("_data")
        case (str() as name, data):
            inside = at.inside(1)
        case None:
            name, data, inside = "", None, at
        case _:
            raise settings.wrong("layout", "a layout's name and settings")
    if "sparse" in name.lower():
        raise at.unmodelled("sparse weights")
    read(_Layout, {} if data is None else data, inside)
    if settings.mm_config is not None:
        read(_Multiplied, settings.mm_config.data or {}, settings.mm_config.inside("_data"))
    for key in ("weight_dtype", "activation_dtype"):
        value, inside = getattr(settings, key), settings.inside(key)
        if value is not None and config.bits and _dtype(value, inside) not in _FLOAT8:
            raise inside.wrong(_dtype(value, inside), ", ".join(_FLOAT8))


def _granularity(found: _Tagged | tuple[_Tagged, ...], place: Place) -> int:
    """Return the elements of weights that share a scale; of two granularities the second is theirs."""
    tagged = found[-1] if isinstance(found, tuple) and found else found
    if not isinstance(tagged, _Tagged):
        raise place.wrong([], "a granularity")
    data = read(_Granularity, {} if tagged.data is None else tagged.data, place.inside("_data"))
    if tagged.type == "PerGroup":
        return group_of(data.group_size, data.inside("group_size"))
    if tagged.type == "PerBlock":
        return block_of(data.block_size or (), data.inside("block_size"))
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
