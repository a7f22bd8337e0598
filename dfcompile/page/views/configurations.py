"""Charts of configurations, the sets of kernels that are on a chip together: of a mapping and of a design."""

from collections.abc import Iterator, Sequence

from dfcompile.page.phrases import column, share
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Guide, Mark, SmallTable
from dfcompile.report.text_tables import Column

_NAMES = 6  # of kernels in a tooltip
_FEW = 3  # configurations: a table says them


def limit_reasons(configurations: Sequence[Record]) -> Iterator[str]:
    """Yield which limit holds for which share of the time; nothing without any time."""
    times: dict[str, float] = {}
    for each in configurations:
        times[each.text("bound_by")] = times.get(each.text("bound_by"), 0.0) + (each.number("time_s") or 0.0)
    total = sum(times.values())
    ordered = sorted(((name, time) for name, time in times.items() if time), key=lambda pair: -pair[1])
    if len(ordered) == 1:
        yield f"Limited by {ordered[0][0]} all the time."
    elif ordered:
        said = [f"by {name} for {share(time / total)}" for name, time in ordered]
        yield f"Limited {said[0]} of the time, {', '.join(said[1:])}."


def configuration_charts(configurations: Sequence[Record], of: str) -> Iterator[Chart]:
    """Yield how long each configuration takes, by what bounds it, and its compute against its memory time.

    Args:
        configurations: in their order.
        of: what they belong to, for captions.
    """
    if not configurations:
        return
    bars, dots = [], []
    for place, one in enumerate(configurations):
        number, said = one.number("configuration"), (one.text("bound_by"), _kernels(one))
        bars.append(Mark(f"{place if number is None else number}", one.number("time_s") or 0, *said))
        dots.append(Mark(one.number("memory_s") or 0, one.number("compute_s") or 0, *said))
    caption = f"Of {of}; a bar per set of kernels that is on the chip together, coloured by what bounds it."
    title, axes = "Time of each configuration", (Axis("configuration"), Axis("time", "s"))
    yield Chart(ChartKind.BARS, title, caption, *axes, tuple(bars))
    most = max(max(float(mark.x), mark.y) for mark in dots)
    caption = "A dot per configuration: above the line it waits for compute, below for memory."
    title, axes = "Compute against memory time", (Axis("memory time", "s"), Axis("compute time", "s"))
    ridge = Guide("compute = memory", (0, most), (0, most))  # of a roofline
    yield Chart(ChartKind.DOTS, title, caption, *axes, tuple(dots), (ridge,))


def configuration_tables(configurations: Sequence[Record]) -> Iterator[SmallTable]:
    """Yield a table of a few configurations, which are no picture; of a single one the answer says all."""
    if not 1 < len(configurations) < _FEW:
        return
    parts = (("time", "time_s"), ("compute", "compute_s"), ("memory", "memory_s"), ("network", "network_s"))
    times = (column(name, [each.number(path) for each in configurations], "s") for name, path in parts)
    words = (("limited by", tuple(each.text("bound_by") for each in configurations)),
             ("kernels", tuple(map(_kernels, configurations))))  # fmt: skip
    said = (Column(name, cells, is_text=True) for name, cells in words)
    numbers = tuple(f"{at}" for at in range(len(configurations)))
    columns = (Column("configuration", numbers), *times, *said)
    yield SmallTable("Configurations, the sets of kernels that are on the chip together", columns)


def _kernels(configuration: Record) -> str:
    names = configuration.texts("kernels")
    if len(names) <= _NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMES - 1])} and {len(names) - _NAMES + 1} more"
