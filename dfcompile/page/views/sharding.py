"""Which axis of which array is split over which chips, kernel by kernel."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Mark

_ROWS = 80  # kernels: more are in the table
_DIMENSIONS = {name: f"dimension {name}" for name in "OMKN"}
_SPLIT = re.compile(r"split by (axis \d+)")


def sharding_chart(layouts: Sequence[Record], chips: tuple[float | int, ...], of: str) -> Iterator[Chart]:
    """Yield how the chips of a mapping hold what each kernel reads and writes, if there are several.

    Args:
        layouts: of all kernels.
        chips: along each dimension of the network.
        of: what they belong to, for captions.
    """
    if not layouts:
        return
    seen: Counter[tuple[str, str]] = Counter()
    marks: list[Mark] = []
    kernels = list(dict.fromkeys(layout.text("kernel") for layout in layouts))
    for layout in layouts:
        kernel, access = layout.text("kernel"), layout.text("access")
        if kernels.index(kernel) >= _ROWS:
            break
        seen[kernel, access] += 1
        held = layout.texts("held")
        column = f"{'reads' if access == 'read' else 'writes'} {seen[kernel, access]}"
        row = f"{layout.number('configuration')} · {kernel}"
        marks.append(Mark(column, 0, _kind(held), _said(layout, held, chips), row=row))
    left = len(kernels) - _ROWS
    caption = (
        f"Of {of}, on {' × '.join(f'{count:,}' for count in chips)} chips. A row per kernel, after the number of its "
        "configuration; a cell per array that it reads or writes: the axis that is split over the chips, whole where "
        "every chip has all of it, partial where chips still have to combine what they have."
        + (f" {left:,} more kernels are in the table." if left > 0 else "")
    )
    title = "Sharding: which axis of which array is split over chips"
    yield Chart(ChartKind.GRID, title, caption, Axis("array"), Axis("kernel"), tuple(marks))


def _kind(held: Sequence[str]) -> str:
    """Return what a cell is coloured by: the axes that are split, or that none is."""
    axes = [found[1] for each in held if (found := _SPLIT.match(each))]
    if any(each.startswith("partial") for each in held):
        axes.append("partial")
    return " and ".join(dict.fromkeys(axes)) or "whole"


def _said(layout: Record, held: Sequence[str], chips: tuple[float | int, ...]) -> str:
    parts = [
        f"{each} over {count:,} chips" if each != "whole" else f"whole on {count:,} chips"
        for each, count in zip(held, chips, strict=True)
    ]
    own, all_ = layout.number("chip_elements") or 0, layout.number("elements") or 0
    return f"{layout.text('tensor')}: {'; '.join(parts)}; {own:,} of {all_:,} elements on a chip"


def design_sharding_chart(kernels: Sequence[Record], chips: float) -> Iterator[Chart]:
    """Yield which dimension of each kernel of a design is split over a tensor parallel group, if there is one.

    Args:
        kernels: of the design.
        chips: of a group.
    """
    if chips <= 1 or not any(kernel.text("sharding") in _DIMENSIONS for kernel in kernels):
        return
    split = (_DIMENSIONS.get(kernel.text("sharding"), "whole") for kernel in kernels)
    said = (f"exchanges: {kernel.text('exchange')}" if kernel.text("exchange") else "no exchange" for kernel in kernels)
    rows = (f"{kernel.number('configuration')} · {kernel.text('name')}" for kernel in kernels)
    columns = zip(split, said, rows, strict=True)
    marks = tuple(Mark("split", 0, series, label, row=row) for series, label, row in columns)
    title = "Sharding: which dimension of which kernel is split over chips"
    caption = (
        f"Over the {chips:,} chips of a tensor parallel group. A kernel is O products of M × K by K × N; a row each, "
        "after the number of its configuration."
    )
    yield Chart(ChartKind.GRID, title, caption, Axis("dimension"), Axis("kernel"), marks)
