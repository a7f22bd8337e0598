"""Parts of arrays: what a memlet or a view sees of a window."""

from collections.abc import Sequence

import dace

from dfcompile.errors import UserError
from dfcompile.frontend.dace_program.places import Affine, Affines, Window, steps_of


def part_of(
    window: Window, subset: "dace.subsets.Subset | None", symbols: Affines, *, keeps_ones: bool = False
) -> Window:
    """Return the window of a memlet, without dimensions in which it is one element.

    Args:
        window: of which it is a part.
        subset: of the memlet; all if there is none.
        symbols: value of each symbol.
        keeps_ones: a dimension in which the window has one element itself stays.

    Raises:
        UserError: the part depends on data.
    """
    indices, sizes = _ranges(subset, window, symbols)
    kept = [axis for axis, size in enumerate(sizes) if size > 1 or (keeps_ones and window.shape[axis] == 1)]
    return _renumbered(window, indices, kept, tuple(sizes[axis] for axis in kept), range(len(kept)))


def seen_as(
    window: Window,
    subset: "dace.subsets.Subset | None",
    shape: tuple[int, ...],
    symbols: Affines,
    name: str,
) -> Window:
    """Return a window under another shape: that of the subset with other dimensions of extent 1.

    Raises:
        UserError: the shape has other dimensions, or the part depends on data.
    """
    indices, sizes = _ranges(subset, window, symbols)
    wide = [axis for axis, size in enumerate(sizes) if size > 1]
    if [sizes[axis] for axis in wide] != [extent for extent in shape if extent > 1]:
        raise UserError(f"{name!r} sees {sizes} elements as {list(shape)} against the same dimensions")
    return _renumbered(window, indices, wide, shape, [number for number, extent in enumerate(shape) if extent > 1])


def _ranges(subset: "dace.subsets.Subset | None", window: Window, symbols: Affines) -> tuple[list[Affine], list[int]]:
    """Return the index of each dimension of a window, of its own dimensions, and how many there are of it."""
    if subset is None:
        return [{f"d{axis}": 1} if size > 1 else {} for axis, size in enumerate(window.shape)], list(window.shape)
    indices, sizes = list[Affine](), list[int]()
    for axis, bounds in enumerate(subset.ndrange()):
        steps = steps_of(bounds, symbols)
        if steps is None or steps[2] < 1:
            raise UserError(f"part [{subset}] depends on data against a part of constant size")
        first, stride, size = steps
        sizes.append(size)
        indices.append({**first, f"d{axis}": stride} if size > 1 else first)
    return indices, sizes


def _renumbered(
    window: Window, indices: Sequence[Affine], kept: Sequence[int], shape: tuple[int, ...], numbers: Sequence[int]
) -> Window:
    """Return a part of a window whose dimensions are some of the window's, under new numbers."""
    names = {f"d{axis}": f"d{number}" for axis, number in zip(kept, numbers, strict=True)}
    return window.part([{names.get(key, key): step for key, step in index.items()} for index in indices], shape)
