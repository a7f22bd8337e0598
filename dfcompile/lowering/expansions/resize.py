"""ONNX Resize by whole factors to the nearest element, which repeats elements."""

from dfcompile.lowering import CanonicalFragment, Operator, onnx_expansion
from dfcompile.lowering.operators import Copy

_CENTRED = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel")  # the nearest element is that of the same place


@onnx_expansion("Resize", "repeat", default=True)
def resize(op: Operator, build: CanonicalFragment) -> None:
    """``Y[f*i + r, …] = X[i, …]`` for r < f: one upsampler; a view if all factors are 1."""
    x, y = op.input(0), op.output()
    factors = [size // extent for size, extent in zip(y.shape, x.shape, strict=True)]
    _check(op, factors)
    if x.shape == y.shape:
        build.view_as(x, y)
        return
    # Loops: position and repetition of axis 0, of axis 1, …: the row order of the result.
    loops = tuple(count for extent, factor in zip(x.shape, factors, strict=True) for count in (extent, factor))
    read = tuple(f"i{2 * axis}" for axis in range(x.rank))
    write = tuple(f"{factor}*i{2 * axis} + i{2 * axis + 1}" for axis, factor in enumerate(factors))
    build.add(Copy(loops, read, write), [x], y)


def _check(op: Operator, factors: list[int]) -> None:
    """Check that the operator does nothing but repeat elements."""
    x, y = op.input(0), op.output()
    mode = op.text("mode", "nearest")
    if mode != "nearest":
        raise op.unsupported(f"attribute 'mode' is {mode!r} against 'nearest'")
    scales = op.optional_input(2)
    scaled = [] if scales is None or scales.value is None else [float(scale) for scale in scales.value.ravel()]
    is_whole = all(factor * extent == size for factor, extent, size in zip(factors, x.shape, y.shape, strict=True))
    if not is_whole or any(not scale.is_integer() for scale in scaled):
        raise op.unsupported(f"from {list(x.shape)} to {list(y.shape)} by {scaled or 'size'} against whole factors")
    coordinates = op.text("coordinate_transformation_mode", "half_pixel")
    rounding = op.text("nearest_mode", "round_prefer_floor")
    repeats = ("floor",) if coordinates == "asymmetric" else ("round_prefer_floor", "round_prefer_ceil")
    if coordinates not in ("asymmetric", *_CENTRED) or rounding not in repeats:
        raise op.unsupported(
            f"coordinates {coordinates!r} with rounding {rounding!r} against 'asymmetric' with 'floor' or 'half_pixel'"
        )
