"""ONNX DepthToSpace and SpaceToDepth: channels and positions trade places."""

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion


@onnx_expansion("DepthToSpace", "copy", default=True)
def depth_to_space(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, c, h*s + p, w*s + q] = X[b, p*s*d + q*d + c, h, w]`` for depth d (DCR), one task."""
    x, y, size = op.input(0), op.output(), op.integer("blocksize", 1)
    batch, channels, height, width = x.shape
    depth = channels // (size * size)
    if _mode(op) == "DCR":
        shape, order = (batch, size, size, depth, height, width), (0, 3, 4, 1, 5, 2)
    else:
        shape, order = (batch, depth, size, size, height, width), (0, 1, 4, 2, 5, 3)
    _permute(build, x, shape, order, y)


@onnx_expansion("SpaceToDepth", "copy", default=True)
def space_to_depth(op: Operator, build: CanonicalFragment) -> None:
    """``Y[b, p*s*d + q*d + c, h, w] = X[b, c, h*s + p, w*s + q]`` for d channels (DCR), one task."""
    x, y, size = op.input(0), op.output(), op.integer("blocksize", 1)
    batch, channels, height, width = x.shape
    shape = (batch, channels, height // size, size, width // size, size)
    _permute(build, x, shape, (0, 3, 5, 1, 2, 4) if _mode(op) == "DCR" else (0, 1, 3, 5, 2, 4), y)


def _mode(op: Operator) -> str:
    mode = op.text("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        raise op.unsupported(f"attribute 'mode' is {mode!r} against 'DCR' or 'CRD'")
    return mode


def _permute(build: CanonicalFragment, x: Tensor, shape: tuple[int, ...], order: tuple[int, ...], y: Tensor) -> None:
    split = build.view(x, "split", shape)
    read = [f"i{order.index(axis)}" for axis in range(len(shape))]
    build.view_as(build.copied("permuted", split, read, [shape[axis] for axis in order], step=""), y)
