"""Formats whose elements share scales in groups.

And how compressed-tensors, and others after it, state the format of one tensor [compressed-tensors].
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.language_models.formats import FORMATS, NumberFormat
from dfcompile.language_models.quantisation.keys import Keys, Place
from dfcompile.language_models.quantisation.stated import Rule, names_of

MOST_BITS = 16
LARGEST_GROUP = 2**20
FP32_BITS, FP16_BITS = 32, 16
FP8, INT8 = FORMATS["fp8"], FORMATS["int8"]
_NARROW = {16: "nvfp4", 32: "mxfp4"}  # FP4, by the elements that share a scale of 8 bits


class Recipe(Struct, frozen=True):
    """What a named algorithm makes of a matrix and of what is multiplied with it.

    Attributes:
        kind: of a weight, ``int`` or ``fp``.
        bits: of a weight; 0: as the file says.
        group: elements that share a scale, unless the file says it; 0: a row or the tensor.
        scale_bits: of a scale; 0: of the configuration's dtype.
        zero_bits: of a zero point beside a scale.
        activations: none where they stay as they are.
    """

    kind: str
    bits: int
    group: int = 0
    scale_bits: int = 0
    zero_bits: int = 0
    activations: NumberFormat | None = None


def scaled(kind: str, bits: int, group: int, scale_bits: int, zero_bits: int = 0) -> NumberFormat:
    """Return a format of integers or floating-point numbers.

    Args:
        kind: ``int`` or ``fp``.
        bits: of an element.
        group: elements that share a scale; 0: a row, a column or the whole tensor, whose scales are not counted.
        scale_bits: of a scale.
        zero_bits: of the zero point that stands beside a scale of integers.
    """
    name = f"{kind}{bits}"
    if name == "fp4" and scale_bits == 8:
        name = _NARROW.get(group, name)
    if not group:
        return NumberFormat(name, bits)
    return NumberFormat(name, bits, group, scale_bits + (zero_bits if kind == "int" else 0))


def width_of(bits: int, place: Place, among: Sequence[int] = range(1, MOST_BITS + 1)) -> int:
    """Return the bits of an element.

    Raises:
        UserError: no format has so many.
    """
    if bits not in among:
        shown = f"{among[0]} to {among[-1]}" if isinstance(among, range) else ", ".join(map(str, among))
        raise place.wrong(bits, f"{shown} bits")
    return bits


def group_of(size: int | None, place: Place) -> int:
    """Return the elements that share a scale; 0 where none or -1 is said: a row, a column or the tensor.

    Raises:
        UserError: another number.
    """
    if size is None or size == -1:
        return 0
    if not 1 <= size <= LARGEST_GROUP:
        raise place.wrong(size, f"1 to {LARGEST_GROUP:,} elements, or -1")
    return size


def block_of(extents: Sequence[int], place: Place) -> int:
    """Return the elements of a block of two extents, which share a scale.

    Raises:
        UserError: there are not two of them, or no positive ones.
    """
    if len(extents) != 2 or min(extents) < 1:
        raise place.wrong(list(extents), "two positive extents")
    return group_of(extents[0] * extents[1], place)


_SCALE_BITS = {
    "uint8": 8, "int8": 8, "float8_e4m3fn": 8, "float8_e8m0fnu": 8, "float16": 16, "bfloat16": 16, "float32": 32,
}  # fmt: skip
_ATTENTION = ("re:.*self_attn$", "re:.*self_attn", "self_attn")  # the module itself has no matrix
_STRATEGIES = ("tensor", "channel", "token", "group", "tensor_group", "block", "attn_head")


class TensorScheme(Keys, frozen=True, kw_only=True):
    """The format of a tensor; zero points are packed as the elements are.

    Attributes:
        num_bits: of an element.
        type: ``int`` or ``float``.
        symmetric: whether there are no zero points.
        strategy: what shares a scale.
        group_size: elements that share a scale, if groups do.
        block_structure: extents of what shares a scale, if blocks do.
        dynamic: whether scales are found when it is used.
        scale_dtype: of scales; none: the configuration's dtype, or 8 bits beside elements of 4.
    """

    harmless = "zp_dtype actorder observer observer_kwargs"
    num_bits: int = 8
    type: str = "int"
    symmetric: bool = True
    strategy: str | None = None
    group_size: int | None = None
    block_structure: tuple[int, ...] | str | None = None
    dynamic: bool | str = False
    scale_dtype: str | None = None


def format_of(scheme: TensorScheme | None, base: NumberFormat) -> NumberFormat | None:
    """Return the format that a scheme states, if there is one.

    Raises:
        UserError: its type, strategy, or extents are none.
    """
    if scheme is None:
        return None
    group, scale_bits = _group(scheme), _scale_bits(scheme, base)
    kind = scheme.type.lower()
    if kind == "int":
        bits = width_of(scheme.num_bits, scheme.inside("num_bits"))
        return scaled("int", bits, group, scale_bits, 0 if scheme.symmetric else bits)
    if kind != "float":
        raise scheme.wrong("type", "int or float")
    return scaled("fp", width_of(scheme.num_bits, scheme.inside("num_bits"), (4, 8)), group, scale_bits)


def _group(scheme: TensorScheme) -> int:
    strategy = scheme.strategy and scheme.strategy.lower()
    scheme.inside("strategy").check(strategy, _STRATEGIES)
    size = group_of(scheme.group_size, scheme.inside("group_size"))
    if strategy in ("group", "tensor_group") and not size:
        raise scheme.wrong("group_size", f"the elements of a group, as strategy is {strategy}")
    if size and strategy not in (None, "group", "tensor_group"):
        raise scheme.wrong("group_size", f"none, as strategy is {strategy}")
    extents = scheme.block_structure
    if extents is None:
        if strategy == "block":
            raise scheme.wrong("block_structure", "two extents, as strategy is block")
        return size
    if strategy != "block":
        raise scheme.wrong("block_structure", f"none, as strategy is {strategy}")
    if isinstance(extents, str):
        words = extents.split("x")
        if not all(word.isdecimal() and len(word) < 9 for word in words):
            raise scheme.wrong("block_structure", "two extents such as 128x128")
        extents = tuple(map(int, words))
    return block_of(extents, scheme.inside("block_structure"))


def _scale_bits(scheme: TensorScheme, base: NumberFormat) -> int:
    if scheme.scale_dtype is None:
        return 8 if scheme.type.lower() == "float" and scheme.num_bits == 4 else base.bits
    name = scheme.scale_dtype.removeprefix("torch.")
    return scheme.inside("scale_dtype").known(scheme.scale_dtype, _SCALE_BITS, name)


class Group(Keys, frozen=True, kw_only=True):
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


def rules_of(groups: Mapping[str, Group] | None, base: NumberFormat) -> tuple[Rule, ...]:
    """Return a rule for each group.

    Raises:
        UserError: as `format_of`; a group is of no weights, or says what is not modelled.
    """
    # Names hold before classes of modules do, as where compressed-tensors looks for the group of a module.
    ordered = sorted((groups or {}).values(), key=lambda group: all(target.isalnum() for target in group.targets))
    return tuple(_rule(group, base) for group in ordered)


def _rule(group: Group, base: NumberFormat) -> Rule:
    group.refuse("output_activations", what="quantised results")
    if all(target in _ATTENTION or target.endswith("Attention") for target in group.targets):
        raise group.inside("targets").unmodelled("attention with quantised queries, keys and values")
    if group.weights is None and group.input_activations is not None:
        raise group.wrong("weights", "a format, as input_activations has one")
    names = names_of(group.targets, group.inside("targets"))
    if group.weights is not None and group.weights.dynamic:
        raise group.weights.inside("dynamic").unmodelled("weights that are quantised whenever they are used")
    return Rule(group.place, format_of(group.weights, base), format_of(group.input_activations, base), names)
