"""Rotary embedding: pairs of elements turned by an angle that depends on the position of their token."""

import numpy as np

from dfcompile.lowering.canonical_fragment import CanonicalFragment
from dfcompile.lowering.node import Operator
from dfcompile.lowering.operators import Concat, Copy, Lookup
from dfcompile.lowering.tensor import Tensor


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
    part = x if width == 2 * half else _columns(build, x, (0, 2 * half), f"{name}_part")
    pairs = (half, 2) if interleaved else (2, half)
    by_pair = build.view(part, f"{name}_pairs", (batch, length, heads, *pairs))
    partners, rotated = (build.array(f"{name}_{each}", by_pair.shape, x.dtype) for each in ("partners", "rotated"))
    read = ("i0", "i1", "i2", "i3", "1 - i4") if interleaved else ("i0", "i1", "i2", "1 - i3", "i4")
    build.add(Copy(read=read), [by_pair], partners, step=f"{name}_partners")
    signs = build.parameter(f"{name}_signs", np.array([-1, 1], x.dtype))
    angles, sign = ((0, 1, 3), (4,)) if interleaved else ((0, 1, 4), (3,))
    operands, axes = [by_pair, partners, cosines, sines, signs], [range(5), range(5), angles, angles, sign]
    build.elementwise("a * c + b * e * d", operands, rotated, axes=axes, step=f"{name}_rotate")
    turned = build.view(rotated, f"{name}_turned", part.shape)
    if part is x:
        return turned
    rest = _columns(build, x, (2 * half, width), f"{name}_rest")
    result = build.array(name, x.shape, x.dtype)
    build.add(Concat(3), [turned, rest], result, step=name)
    return result


def angles_at(
    op: Operator, build: CanonicalFragment, tables: tuple[Tensor, Tensor], places: Tensor
) -> tuple[Tensor, ...]:
    """Return cosines and sines ``[b or 1, s, r/2]`` of tables ``[positions, r/2]`` at the places ``[b or 1, s]``.

    Raises:
        UnsupportedOpError: a place that is known is none of the tables.
    """
    rows = tables[0].shape[0]
    known = None if places.value is None else places.value.astype(np.int64)
    if known is not None and not ((known >= -rows) & (known < rows)).all():
        raise op.unsupported(f"positions {known.min()} to {known.max()} against tables of {rows}")
    found = []
    for name, table in zip(("cosines", "sines"), tables, strict=True):
        shape = (*places.shape, table.shape[1])
        if known is not None and table.value is not None:
            found.append(build.parameter(name, table.value[known]))
            continue
        found.append(build.array(name, shape, table.dtype))
        build.add(Lookup(0), [table, places], found[-1], step=name)
    return tuple(found)


def _columns(build: CanonicalFragment, x: Tensor, columns: tuple[int, int], name: str) -> Tensor:
    first, last = columns
    part = build.array(name, (*x.shape[:3], last - first), x.dtype)
    build.add(Copy(read=("i0", "i1", "i2", f"{first} + i3")), [x], part, step=name)
    return part
