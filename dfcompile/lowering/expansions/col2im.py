"""ONNX Col2Im, and the canonical Col2im: windows that are added up where they overlap."""

from math import prod

from dfcompile.lowering import CanonicalFragment, CanonicalNode, MapFragment, Operator, expansion, onnx_expansion
from dfcompile.lowering.operators import Col2im, Copy, Reduction
from dfcompile.lowering.operators.convolution import window_places


@onnx_expansion("Col2Im", "map", default=True)
def col2im(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c, stride*y + dilation*k - pad …] += X[b, (c, k…), (y…)]``: one task adds up, one crops the pads."""
    x, y = op.input(0), op.output()
    image, kernel = op.static_integers(1, "image_shape") or (), op.static_integers(2, "block_shape") or ()
    rank = len(image)
    strides, dilations = op.integers("strides", (1,) * rank), op.integers("dilations", (1,) * rank)
    pads = op.integers("pads", (0,) * (2 * rank))
    padded = [image[axis] + pads[axis] + pads[axis + rank] for axis in range(rank)]
    spans = [dilation * (size - 1) + 1 for dilation, size in zip(dilations, kernel, strict=True)]
    counts = [(extent - span) // stride + 1 for extent, span, stride in zip(padded, spans, strides, strict=True)]
    channels = x.shape[1] // prod(kernel)
    if min(counts) < 1 or x.shape != (x.shape[0], channels * prod(kernel), prod(counts)):
        raise op.unsupported(f"{x} against [batch, a multiple of {prod(kernel)}, {prod(counts)}]")
    windows = build.view(x, "windows", (x.shape[0], channels, *kernel, *counts))
    summed = build.array("summed", (x.shape[0], channels, *padded)) if any(pads) else y
    build.add(Col2im(strides, dilations), [windows], summed, step="sum" if any(pads) else "")
    if any(pads):
        places = (f"{pads[axis]} + i{2 + axis}" for axis in range(rank))
        build.add(Copy(read=("i0", "i1", *places)), [summed], y, step="crop")


@expansion(Col2im, "map", source="onnx", default=True)
def col2im_map(op: CanonicalNode[Col2im], build: MapFragment) -> None:
    """One task adds every element of the windows to its place, in the order in which they are stored."""
    x, y = op.input(0), op.output()
    rank = y.rank - 2
    spatial = [f"{letter}{axis}" for letter in "ky" for axis in range(rank)]
    loops = dict(zip(["b", "c", *spatial], x.shape, strict=True))
    places = "b", "c", *window_places(op.operator.strides, op.operator.dilations)
    build.map("", loops=loops, reads={"x": (x, list(loops))}, write=(y, places), code="x", accumulate=Reduction.SUM)
