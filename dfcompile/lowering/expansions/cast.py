"""ONNX Cast and CastLike: the same values in another data type."""

from dfcompile.frontend import NARROW_REALS, PACKED_BITS, element_kind, largest_real
from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.expansions.quantization import unpacked

_BYTES = ("float8_e4m3fn", "float8_e5m2")


def cast(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` in another data type: one element-wise task; a view if the type stays."""
    x, y = op.input(0), op.output()
    if x.dtype == y.dtype:
        build.view_as(x, y)
        return
    saturate = op.integer("saturate", 1) != 0
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
    if target in PACKED_BITS:
        kept = f"dace.int32(a) & {2 ** PACKED_BITS[target] - 1}"  # the lowest bits
        sign = 2 ** (PACKED_BITS[target] - 1)
        return kept if element_kind(target) == "u" else f"(({kept}) ^ {sign}) - {sign}"
    if target in _BYTES and saturate:
        largest = largest_real(target)
        return f"min({largest}, max(-{largest}, dace.float32(a)))"  # in this order a NaN stays one
    if NARROW_REALS & {source, target}:
        return "dace.float32(a)"  # these convert from and to single precision only
    return f"dace.{target}(a)"


EXPANSIONS = tuple(onnx_expansion(op_type, "map", default=True)(cast) for op_type in ("Cast", "CastLike"))
