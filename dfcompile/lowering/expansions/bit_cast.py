"""ONNX BitCast: the same bits as another data type."""

from dfcompile.frontend import PACKED_BITS
from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion


@onnx_expansion("BitCast", "view", default=True)
def bit_cast(op: Operator, build: CanonicalFragment) -> None:
    """The bits as they are: no data moves; a copy where the result must be an array of its own."""
    x, y = op.input(0), op.output()
    if PACKED_BITS.keys() & {x.dtype, y.dtype} and x.dtype != y.dtype:
        raise op.unsupported(f"result {y} of {x} against types of whole bytes")
    if x.element_bytes != y.element_bytes:
        raise op.unsupported(f"result {y} against a type as wide")
    build.view_as(x, y)
