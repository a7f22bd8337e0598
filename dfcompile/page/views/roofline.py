"""Kernels under the roofs of the machine: what they compute per byte, and how fast; how chips split their arrays."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import inf

from dfcompile.page.phrases import column, exact
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Guide, Mark, SmallTable
from dfcompile.records import replace
from dfcompile.report.plain_values import Json
from dfcompile.report.text_tables import Column, first_of

_NAMES = 4  # of equal kernels in a tooltip
_FEW = 4  # kernels: a table says them
_MOST_DOTS = 1500  # more are no picture any more; the table has all
_ROWS = 80  # kernels: more are in the table
_DIMENSIONS = {name: f"dimension {name}" for name in "OMKN"}
_SPLIT = re.compile(r"split by (axis \d+)")


def roofline_charts(mapping: Record, of: str) -> Iterator[Chart]:
    """Yield the rooflines of a mapping's kernels: of DRAM, and of the network if chips exchange anything.

    Args:
        mapping: of a result.
        of: what it belongs to, for captions.
    """
    groups = [group for group in mapping.parts("kernels") if group.number("flop") and group.number("time_s")]
    shown = first_of(groups, _MOST_DOTS, lambda group: -(group.number("count") or 1) * (group.number("time_s") or 0))
    left = sum(map(_count, groups)) - sum(map(_count, shown))
    peak = mapping.number("roofs.flop_per_s")
    ways = (
        ("DRAM", "dram_bytes", mapping.number("roofs.dram_bytes_per_s"), "nothing through DRAM", shown),
        ("network", "network_bytes", mapping.number("roofs.network_bytes_per_s"), "",
         [group for group in shown if group.number("network_bytes")]),
    )  # fmt: skip
    for name, path, bandwidth, beyond, dots in ways:
        marks = tuple(_dot(group, path) for group in dots)
        if marks and bandwidth and peak:
            title, caption = f"Roofline of kernels: {name}", _caption(name, of, beyond, left)
            across = Axis(f"operations per byte of {name}", "FLOP/B", is_log=True, beyond=beyond)
            up = Axis("attained", "FLOP/s", is_log=True)
            guides = roof(marks, (f"{name} bandwidth", bandwidth), ("peak", peak))
            yield Chart(ChartKind.DOTS, title, caption, across, up, marks, tuple(guides))


def _count(group: Record) -> int:
    return int(group.number("count") or 1)


def design_roofline_charts(report: Record) -> Iterator[Chart]:
    """Yield the roofline of a design's kernels."""
    caption = (
        "Of one chip. A dot per kernel: its operations per byte that it moves to and from DRAM against how fast it "
        "does them, coloured by what bounds its configuration, whose kernels run together. Dots above the lines are of "
        "files that leave something out of account. To the right of the dotted line: kernels whose data stays on the "
        "chip."
    )
    for chart in roofline_charts(design_mapping(report), ""):
        yield replace(chart, caption=caption)


def design_mapping(report: Record) -> Record:
    """Return the kernels of a design as those of a mapping."""
    flop, moved = (report.at(f"figures.{name}_per_s") for name in ("chip_flop", "dram_bytes"))
    kernels: list[Json] = [{**dict(one.values), "kernels": [one.text("name")]} for one in report.parts("kernels")]
    return Record({"kernels": kernels, "roofs": {"flop_per_s": flop, "dram_bytes_per_s": moved}})


def kernel_tables(mapping: Record) -> Iterator[SmallTable]:
    """Yield a table of a few kernels, which are no picture."""
    kernels = [group for group in mapping.parts("kernels") if group.number("flop") and group.number("time_s")]
    if not 0 < len(kernels) < _FEW:
        return
    named = Column("kernel", tuple(", ".join(group.texts("kernels")[:_NAMES]) for group in kernels), is_text=True)
    flop, moved, times = ([group.number(path) for group in kernels] for path in ("flop", "dram_bytes", "time_s"))
    ratios = [None if not b or a is None else a / b for a, b in zip(flop, moved, strict=True)]
    limited = Column("limited by", tuple(group.text("bound_by") for group in kernels), is_text=True)
    figures = column("operations", flop, "FLOP"), column("DRAM", moved, "B"), column("operations per byte", ratios, "")
    yield SmallTable("Kernels of one chip", (named, *figures, column("time", times, "s"), limited))


def _caption(name: str, of: str, beyond: str, left: int) -> str:
    bytes_ = "that it moves to and from DRAM" if name == "DRAM" else "that its exchanges bring to a chip"
    return (
        f"Of {of}, on one chip. A dot per kernel, equal ones together: its operations per byte {bytes_} against how "
        "fast it does them, coloured by what bounds it. Above the flat line are only kernels that join many streams in "
        "a cycle."
        + (" To the right of the dotted line: kernels whose data stays on the chip." if beyond else "")
        + ("" if beyond else " Kernels that exchange nothing are left out.")
        + (f" {left:,} kernels that take less time are in the table alone." if left else "")
    )


def _dot(group: Record, path: str) -> Mark:
    flop, moved, time = (group.number(name) or 0 for name in ("flop", path, "time_s"))
    return Mark(flop / moved if moved else inf, flop / time, group.text("bound_by"), _said(group))


def _said(group: Record) -> str:
    """Return the names of a group, and its figures as JSON has them."""
    names = group.texts("kernels")
    count = int(group.number("count") or len(names))
    named = ", ".join(names[:_NAMES]) + (f" and {count - _NAMES:,} more" if count > _NAMES else "")
    network = group.number("network_bytes")
    figures = [
        f"{exact(group.number('flop') or 0)} FLOP",
        f"{exact(group.number('dram_bytes') or 0)} bytes of DRAM",
        *([f"{exact(network)} bytes of the network"] if network else []),
        f"{exact(group.number('time_s') or 0)} s",
    ]
    return f"{named}: {', '.join(figures)}{' each' if count > 1 else ''}"


def roof(dots: Sequence[Mark], bandwidth: tuple[str, float], peak: tuple[str, float]) -> Iterator[Guide]:
    """Yield the lines over dots: a bandwidth as far as the ridge, then the peak.

    Args:
        dots: of a roofline.
        bandwidth: name, and bytes per s.
        peak: name, and operations per s.
    """
    ridge = peak[1] / bandwidth[1]
    places = [float(dot.x) for dot in dots if dot.x != inf] or [ridge]
    least, most = min(places), max(places)
    if least < ridge:
        yield Guide(bandwidth[0], (least, ridge), (least * bandwidth[1], peak[1]), is_named_first=True)
    yield Guide(peak[0], (ridge, max(most, 2 * ridge)), (peak[1], peak[1]))


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
        marks.append(Mark(column, 0, _kind(held), _held(layout, held, chips), row=row))
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


def _held(layout: Record, held: Sequence[str], chips: tuple[float | int, ...]) -> str:
    pairs = zip(held, chips, strict=True)
    parts = [f"{each} {'on' if each == 'whole' else 'over'} {count:,} chips" for each, count in pairs]
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
