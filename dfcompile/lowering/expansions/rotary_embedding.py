"""RotaryEmbedding, ONNX's (opset 23 and later) and onnxruntime's.

Pairs of elements are turned by an angle that depends on the position of their token.
"""

import numpy as np

from dfcompile.lowering import CanonicalFragment, Operator, Tensor, onnx_expansion
from dfcompile.lowering.operators import Concat, Copy, Elementwise, Lookup


@onnx_expansion("RotaryEmbedding", "map", default=True)
def rotary_embedding(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X * cos -+ partner(X) * sin``: a copy gives each element its partner, an element-wise task rotates."""
    tables, places = (op.input(1), op.input(2)), op.optional_input(3)
    _rotate_all(op, build, tables if places is None else angles_at(op, build, tables, places))


@onnx_expansion("com.microsoft.RotaryEmbedding", "map", source="onnxruntime", default=True)
def contributed_rotary_embedding(op: Operator, build: CanonicalFragment) -> None:
    """``Y = X * cos -+ partner(X) * sin``, with the tables after the positions, or after that of the first token."""
    op.check_unknown(attributes={"is_packed_batching": 0})
    op.refuse_if(op.real("scale", 1.0) != 1.0, f"attribute 'scale' is {op.real('scale', 1.0)} against 1")
    x, places = op.input(0), op.input(1)
    length = x.shape[1] if x.rank == 3 else x.shape[2]
    if places.elements == 1:  # the position of the first token
        steps = np.arange(length, dtype=np.int64).reshape(1, length)
        if places.value is not None:
            places = build.parameter("positions", steps + places.value.astype(np.int64).reshape(1, 1))
        else:
            operands = [places, build.parameter("steps", steps)]
            places = build.made("positions", Elementwise("a + b"), operands, (1, length), "int64")
    _rotate_all(op, build, angles_at(op, build, (op.input(2), op.input(3)), places))


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
        half = f"half of {wanted or width} elements of {width}"
        raise op.unsupported(f"tables of {cosines.shape[2]} angles against {half}")
    by_head = (x.shape[0], x.shape[1], heads, width) if is_flat else (x.shape[0], x.shape[2], x.shape[1], width)
    is_view = is_flat or 1 in x.shape[1:3]
    moved = ("i0", "i2", "i1", "i3")
    tokens = build.view(x, "tokens", by_head) if is_view else build.copied("tokens", x, moved, by_head)
    rotated = rotate(build, tokens, cosines, sines, interleaved=op.integer("interleaved", 0) != 0, name="rotated")
    if is_view:
        build.view_as(rotated, y)
    else:
        build.add(Copy(read=moved), [rotated], y, step="heads")


def rotate(
    build: CanonicalFragment, x: Tensor, cosines: Tensor, sines: Tensor, *, interleaved: bool, name: str
) -> Tensor:
    """Return X with its first elements rotated: ``Y[i] = X[i] * cos[p] -+ X[partner of i] * sin[p]`` for pair p.

    One copy gives each element its partner, one element-wise task rotates; what is not rotated is copied beside.

    Args:
        build: what is built.
        x: ``[b, s, n, h]``.
        cosines: ``[b or 1, s, r/2]``, for the first r elements of h.
        sines: of the same shape.
        interleaved: whether pairs are neighbours; else an element of the first half of the r and one of the second.
        name: of the result.
    """
    half, (batch, length, heads, width) = cosines.shape[2], x.shape
    part = build.part(f"{name}_part", x, 3, 0, 2 * half)
    pairs = (half, 2) if interleaved else (2, half)
    by_pair = build.view(part, f"{name}_pairs", (batch, length, heads, *pairs))
    read = ("i0", "i1", "i2", "i3", "1 - i4") if interleaved else ("i0", "i1", "i2", "1 - i3", "i4")
    partners = build.copied(f"{name}_partners", by_pair, read, by_pair.shape)
    signs = build.parameter(f"{name}_signs", np.array([-1, 1], x.dtype))
    angles, sign = ((0, 1, 3), (4,)) if interleaved else ((0, 1, 4), (3,))
    operands, axes = [by_pair, partners, cosines, sines, signs], [range(5), range(5), angles, angles, sign]
    step, source = f"{name}_rotate", "a * c + b * e * d"
    rotated = build.computed(f"{name}_rotated", source, operands, by_pair.shape, x.dtype, axes=axes, step=step)
    turned = build.view(rotated, f"{name}_turned", part.shape)
    if part is x:
        return turned
    rest = build.part(f"{name}_rest", x, 3, 2 * half, width)
    return build.made(name, Concat(3), [turned, rest], x.shape, x.dtype)


def angles_at(op: Operator, build: CanonicalFragment, tables: tuple[Tensor, Tensor], at: Tensor) -> tuple[Tensor, ...]:
    """Return cosines and sines ``[b or 1, s, r/2]`` of tables ``[positions, r/2]`` at the places ``[b or 1, s]``.

    Raises:
        UnsupportedOpError: a place that is known is none of the tables.
    """
    rows = tables[0].shape[0]
    known = None if at.value is None else at.value.astype(np.int64)
    if known is not None and not ((known >= -rows) & (known < rows)).all():
        raise op.unsupported(f"positions {known.min()} to {known.max()} against tables of {rows}")
    found = []
    for name, table in zip(("cosines", "sines"), tables, strict=True):
        shape = (*at.shape, table.shape[1])
        if known is not None and table.value is not None:
            found.append(build.parameter(name, table.value[known]))
        else:
            found.append(build.made(name, Lookup(0), [table, at], shape, table.dtype))
    return tuple(found)
