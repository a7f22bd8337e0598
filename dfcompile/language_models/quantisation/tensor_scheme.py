"""How compressed-tensors, and others after it, state the format of one tensor [compressed-tensors]."""

from collections.abc import Mapping

from msgspec import Struct

from dfcompile.language_models.formats import NumberFormat
from dfcompile.language_models.quantisation.names import names_of
from dfcompile.language_models.quantisation.place import Place
from dfcompile.language_models.quantisation.scaled import block_of, floats, group_of, integers, width_of
from dfcompile.language_models.quantisation.stated import Rule

_SCALE_BITS = {
    "uint8": 8, "int8": 8, "float8_e4m3fn": 8, "float8_e8m0fnu": 8, "float16": 16, "bfloat16": 16, "float32": 32,
}  # fmt: skip
_ATTENTION = ("re:.*self_attn$", "re:.*self_attn", "self_attn")  # the module itself has no matrix
_STRATEGIES = ("tensor", "channel", "token", "group", "tensor_group", "block", "attn_head")


class TensorScheme(Struct, frozen=True, kw_only=True):
    """The format of a tensor.

    Attributes:
        num_bits: of an element.
        type: ``int`` or ``float``.
        symmetric: whether there are no zero points.
        strategy: what shares a scale.
        group_size: elements that share a scale, if groups do.
        block_structure: extents of what shares a scale, if blocks do.
        dynamic: whether scales are found when it is used.
        scale_dtype: of scales; none: the configuration's dtype, or 8 bits beside elements of 4.
        zp_dtype: of zero points, which are packed as the elements are.
        actorder: order of columns while it was made.
        observer: that found the scales.
        observer_kwargs: of the observer.
    """

    num_bits: int = 8
    type: str = "int"
    symmetric: bool = True
    strategy: str | None = None
    group_size: int | None = None
    block_structure: tuple[int, ...] | str | None = None
    dynamic: bool | str = False
    scale_dtype: str | None = None
    zp_dtype: object = None
    actorder: object = None
    observer: object = None
    observer_kwargs: object = None


def format_of(scheme: TensorScheme, base: NumberFormat, place: Place) -> NumberFormat:
    """Return the format that a scheme states.

    Raises:
        UserError: its type, strategy, or extents are none.
    """
    group, scale_bits = _group(scheme, place), _scale_bits(scheme, base, place)
    kind = scheme.type.lower()
    if kind == "int":
        bits = width_of(scheme.num_bits, place.inside("num_bits"))
        return integers(bits, group, scale_bits, 0 if scheme.symmetric else bits)
    if kind != "float":
        raise place.inside("type").wrong(scheme.type, "int or float")
    return floats(width_of(scheme.num_bits, place.inside("num_bits"), (4, 8)), group, scale_bits)


def weights_of(scheme: TensorScheme, base: NumberFormat, place: Place) -> NumberFormat:
    """Return the format of weights.

    Raises:
        UserError: as `format_of`; or they are quantised each time that they are used.
    """
    if scheme.dynamic:
        raise place.inside("dynamic").unmodelled("weights that are quantised whenever they are used")
    return format_of(scheme, base, place)


def _group(scheme: TensorScheme, place: Place) -> int:
    strategy = scheme.strategy and scheme.strategy.lower()
    if strategy is not None and strategy not in _STRATEGIES:
        raise place.inside("strategy").unknown(strategy, _STRATEGIES)
    size = group_of(scheme.group_size, place.inside("group_size"))
    if strategy in ("group", "tensor_group") and not size:
        raise place.inside("group_size").wrong(scheme.group_size, f"the elements of a group, as strategy is {strategy}")
    if size and strategy not in (None, "group", "tensor_group"):
        raise place.inside("group_size").wrong(scheme.group_size, f"none, as strategy is {strategy}")
    if scheme.block_structure is None:
        if strategy == "block":
            raise place.inside("block_structure").wrong(None, "two extents, as strategy is block")
        return size
    inside = place.inside("block_structure")
    if strategy != "block":
        raise inside.wrong(scheme.block_structure, f"none, as strategy is {strategy}")
    extents = scheme.block_structure
    if isinstance(extents, str):
        words = extents.split("x")
        if not all(word.isdecimal() and len(word) < 9 for word in words):
            raise inside.wrong(extents, "two extents such as 128x128")
        extents = tuple(map(int, words))
    return block_of(extents, inside)


def _scale_bits(scheme: TensorScheme, base: NumberFormat, place: Place) -> int:
    if scheme.scale_dtype is None:
        return 8 if scheme.type.lower() == "float" and scheme.num_bits == 4 else base.bits
    name = scheme.scale_dtype.removeprefix("torch.")
    if name not in _SCALE_BITS:
        raise place.inside("scale_dtype").unknown(scheme.scale_dtype, _SCALE_BITS)
    return _SCALE_BITS[name]


class Group(Struct, frozen=True, kw_only=True):
    """Modules of one format.

    Attributes:
        targets: modules, or classes of them.
        weights: format of their matrices.
        input_activations: format of what is multiplied with them.
        output_activations: format of results.
        format: in which files pack them.
    """

    targets: tuple[str, ...] = ("Linear",)
    weights: TensorScheme | None = None
    input_activations: TensorScheme | None = None
    output_activations: TensorScheme | None = None
    format: str | None = None


def rules_of(groups: Mapping[str, Group], base: NumberFormat, place: Place) -> tuple[Rule, ...]:
    """Return a rule for each group.

    Raises:
        UserError: as `format_of`; a group is of no weights, or says what is not modelled.
    """
    # Names hold before classes of modules do, as where compressed-tensors looks for the group of a module.
    ordered = sorted(groups.items(), key=lambda item: all(target.isalnum() for target in item[1].targets))
    return tuple(_rule(group, base, place.inside(name)) for name, group in ordered)


def _rule(group: Group, base: NumberFormat, place: Place) -> Rule:
    if group.output_activations is not None:
        raise place.inside("output_activations").unmodelled("quantised results")
    targets = place.inside("targets")
    if all(target in _ATTENTION or target.endswith("Attention") for target in group.targets):
        raise targets.unmodelled("attention with quantised queries, keys and values")
    if group.weights is None and group.input_activations is not None:
        raise place.inside("weights").wrong(None, "a format, as input_activations has one")
    inputs = place.inside("input_activations")
    return Rule(
        names_of(group.targets, targets),
        None if group.weights is None else weights_of(group.weights, base, place.inside("weights")),
        None if group.input_activations is None else format_of(group.input_activations, base, inputs),
        place,
    )
