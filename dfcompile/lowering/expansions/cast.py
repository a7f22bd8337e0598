"""ONNX Cast and CastLike: the same values in another data type."""

from collections.abc import Mapping
from types import MappingProxyType

from dfcompile.frontend import NARROW_REALS, PACKED_BITS, POWERS_OF_TWO, element_kind, largest_real
from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.expansions.quantization import unpacked

_BYTES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")

# Numbers of single precision as their bits, which as integers are in the order of the positive ones.
_MANTISSA = 0x7FFFFF
_LEAST, _LARGEST = 0x400000, 0x7F000000  # the least and the largest power of two: 2 ** -127, a subnormal, and 2 ** 127
_INFINITY, _MAGNITUDE = 0x7F800000, 0x7FFFFFFF
_NO_NUMBER = 255  # the code of it
# Whether the exponent is one larger than the bits say; between the least power and the next one, it is 0 in the bits.
_ROUNDED_UP: Mapping[str, str] = MappingProxyType(
    {
        "up": f"(({{bits}}) & {_MANTISSA}) > ({_LEAST} if ({{bits}}) <= {_MANTISSA} else 0)",
        "nearest": f"(({{bits}}) & {_MANTISSA}) >= ({_LEAST + _LEAST // 2} if ({{bits}}) <= {_MANTISSA} else {_LEAST})",
        "down": "False",
    }
)


def cast(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` in another data type: one element-wise task; a view if the type stays."""
    x, y = op.input(0), op.output()
    if x.dtype == y.dtype:
        build.view_as(x, y)
        return
    saturate = op.integer("saturate", 1) != 0
    if y.dtype == POWERS_OF_TWO:
        _to_powers_of_two(op, build, unpacked(build, x), saturate=saturate)
        return
    build.elementwise(_converted(x.dtype, y.dtype, saturate=saturate), [unpacked(build, x)], y)


def _converted(source: str, target: str, *, saturate: bool) -> str:
    """Return ``a``, of one type, in another one.

    Args:
        source: numpy name.
        target: numpy name.
        saturate: whether what is beyond the largest number of 8 bits becomes that, rather than infinite or no number.
    """
    if target == "bool":
        return "a != 0"
    if target in PACKED_BITS and element_kind(target) in "iu":
        kept = f"dace.int32(a) & {2 ** PACKED_BITS[target] - 1}"  # the lowest bits
        sign = 2 ** (PACKED_BITS[target] - 1)
        return kept if element_kind(target) == "u" else f"(({kept}) ^ {sign}) - {sign}"
    if target in _BYTES and saturate:
        largest = largest_real(target)
        return f"min({largest}, max(-{largest}, dace.float32(a)))"  # in this order a NaN stays one
    if NARROW_REALS & {source, target}:
        return "dace.float32(a)"  # these convert from and to single precision only
    return f"dace.{target}(a)"


def _to_powers_of_two(op: Operator, build: CanonicalFragment, x: Tensor, *, saturate: bool) -> None:
    """``Y = 2 ** k`` for the next k up, down, or nearest (up if half-way); what single precision does not hold is cast.

    Zero, what is negative and what is beyond the limits saturates, or becomes no number [onnx Cast]. One element-wise
    task on the bits, after one to single precision for operands of other types.
    """
    mode, y = op.choice("round_mode", "up", _ROUNDED_UP, ", ".join(map(repr, _ROUNDED_UP))), op.output()
    if x.dtype != "float32":
        x = build.computed("single", "dace.float32(a)", [x], x.shape, "float32")
    if saturate:
        kept = f"min(max(a, {_LEAST}), {_LARGEST})"
        beyond = f"(a & {_MAGNITUDE}) > {_INFINITY}"
    else:
        kept, beyond = "a", f"a < {_LEAST} or a > {_LARGEST}"
    rounded = _ROUNDED_UP[mode].format(bits=kept)
    bits = build.view(x, "bits", x.shape, "int32")
    source = f"{_NO_NUMBER} if {beyond} else (({kept}) >> 23) + (1 if {rounded} else 0)"
    build.view_as(build.computed("codes", source, [bits], y.shape, "uint8", step="exponent"), y)


EXPANSIONS = tuple(onnx_expansion(op_type, "map", default=True)(cast) for op_type in ("Cast", "CastLike"))
