"""Padding with a constant, and the canonical Pad."""

from dfcompile.lowering import MapFragment, Operator, expansion


@expansion("Pad", "fill", source="onnx", default=True)
def pad_with_fill(op: Operator, build: MapFragment) -> None:
    """A task fills the whole result, another one copies the data into its place."""
    x, y = op.input(0), op.output()
    pads = op.integers("pads")
    outer = {f"i{axis}": extent for axis, extent in enumerate(y.shape)}
    inner = {f"i{axis}": extent for axis, extent in enumerate(x.shape)}
    place = [f"{name} + {begin}" for name, begin in zip(inner, pads, strict=False)]
    value = op.attributes.get("value", 0)
    build.map("fill", loops=outer, reads={}, write=(y, list(outer)), code=repr(value))
    build.map("", loops=inner, reads={"x": (x, list(inner))}, write=(y, place), code="x", after_write=True)
