"""RotaryEmbedding, ONNX's (opset 23 and later) and onnxruntime's."""

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.operators import Copy, Elementwise
from dfcompile.lowering.rotary import angles_at, rotate


@onnx_expansion("RotaryEmbedding", "map", default=True)
def rotary_embedding(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X * cos -+ partner(X) * sin``: a copy gives each element its partner, an element-wise task rotates."""
    tables, places = (op.input(1), op.input(2)), op.optional_input(3)
    angles = tables if places is None else angles_at(op, build, tables, places)
    _rotate_all(op, build, angles)


@onnx_expansion("com.microsoft.RotaryEmbedding", "map", source="onnxruntime", default=True)
def contributed_rotary_embedding(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X * cos -+ partner(X) * sin``, with the tables after the positions, or after that of the first token."""
    if op.integer("is_packed_batching", 0):
        raise op.unsupported("attribute 'is_packed_batching' is 1 against 0")
    if op.real("scale", 1.0) != 1.0:
        raise op.unsupported(f"attribute 'scale' is {op.real('scale', 1.0)} against 1")
    x, places = op.input(0), op.input(1)
    length = x.shape[1] if x.rank == 3 else x.shape[2]
    if places.elements == 1:
        places = _from(build, places, length)
    _rotate_all(op, build, angles_at(op, build, (op.input(2), op.input(3)), places))


def _from(build: CanonicalFragment, first: Tensor, length: int) -> Tensor:
    """Return ``[1, s]``: the positions from the first one on."""
    steps = np.arange(length, dtype=np.int64).reshape(1, length)
    if first.value is not None:
        return build.parameter("positions", steps + first.value.astype(np.int64).reshape(1, 1))
    positions = build.array("positions", (1, length), "int64")
    build.add(Elementwise("a + b"), [first, build.parameter("steps", steps)], positions, step="positions")
    return positions


def _rotate_all(op: Operator, build: CanonicalFragment, angles: tuple[Tensor, ...]) -> None:
    x, y = op.input(0), op.output()
    cosines, sines = angles
    is_flat = x.rank == 3
    heads = op.integer("num_heads", 0)
    wanted = op.integer("rotary_embedding_dim", 0)
    if is_flat and not heads:
        # onnxruntime tells the width of a head from its tables, which then rotate all of it.
        heads = x.shape[2] // (2 * cosines.shape[2]) if not wanted else 0
    if is_flat and (heads < 1 or x.shape[2] % heads):
        raise op.unsupported(f"attribute 'num_heads' is {heads} against a divisor of {x.shape[2]} columns")
    width = x.shape[2] // heads if is_flat else x.shape[3]
    if 2 * cosines.shape[2] != (wanted or width) or (wanted or width) > width:
        raise op.unsupported(
            f"tables of {cosines.shape[2]} angles against half of {wanted or width} elements of {width}"
        )
    by_head = (x.shape[0], x.shape[1], heads, width) if is_flat else (x.shape[0], x.shape[2], x.shape[1], width)
    if is_flat or 1 in x.shape[1:3]:
        tokens = build.view(x, "tokens", by_head)
    else:
        tokens = build.array("tokens", by_head)
        build.add(Copy(read=("i0", "i2", "i1", "i3")), [x], tokens, step="tokens")
    rotated = rotate(build, tokens, cosines, sines, interleaved=op.integer("interleaved", 0) != 0, name="rotated")
    if is_flat or 1 in x.shape[1:3]:
        build.view_as(rotated, y)
    else:
        build.add(Copy(read=("i0", "i2", "i1", "i3")), [rotated], y, step="heads")
