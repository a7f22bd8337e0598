"""ONNX Cast and CastLike: the same values in another data type."""

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion


def cast(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X`` in another data type: one element-wise task; a view if the type stays."""
    x, y = op.input(0), op.output()
    if x.dtype == y.dtype:
        build.view_as(x, y)
        return
    if y.dtype == "bool":
        source = "a != 0"
    elif "float16" in (x.dtype, y.dtype):
        source = "dace.float32(a)"  # half precision converts from and to single precision only
    else:
        source = f"dace.{y.dtype}(a)"
    build.elementwise(source, [x], y)


EXPANSIONS = tuple(onnx_expansion(op_type, "map", default=True)(cast) for op_type in ("Cast", "CastLike"))
