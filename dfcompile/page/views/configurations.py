"""Charts of configurations, the sets of kernels that are on a chip together: of a mapping and of a design."""

from collections.abc import Iterator, Sequence

from dfcompile.page.phrases import share
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Guide, Mark

_NAMES = 6  # of kernels in a tooltip


def limits(configurations: Sequence[Record]) -> str:
    """Return which share of the time each limit has, as ``memory (60 %), compute (40 %)``; empty without any time."""
    times: dict[str, float] = {}
    for each in configurations:
        times[each.text("bound_by")] = times.get(each.text("bound_by"), 0.0) + (each.number("time_s") or 0.0)
    total = sum(times.values())
    ordered = sorted(times.items(), key=lambda pair: -pair[1])
    return ", ".join(f"{name} ({share(time / total)})" for name, time in ordered) if total else ""


def configuration_charts(configurations: Sequence[Record], of: str) -> Iterator[Chart]:
    """Yield how long each configuration takes, by what bounds it, and its compute against its memory time.

    Args:
        configurations: in their order.
        of: what they belong to, for captions.
    """
    if not configurations:
        return
    numbers = [each.number("configuration") for each in configurations]
    names = [f"{place if number is None else number}" for place, number in enumerate(numbers)]
    limit = [(each.text("bound_by"), _kernels(each)) for each in configurations]
    bars = tuple(
        Mark(name, each.number("time_s") or 0, *said)
        for name, each, said in zip(names, configurations, limit, strict=True)
    )
    caption = f"Of {of}; a bar per set of kernels that is on the chip together, coloured by what bounds it."
    title, axes = "Time of each configuration", (Axis("configuration"), Axis("time", "s"))
    yield Chart(ChartKind.BARS, title, caption, *axes, bars)
    dots = tuple(
        Mark(each.number("memory_s") or 0, each.number("compute_s") or 0, *said)
        for each, said in zip(configurations, limit, strict=True)
    )
    most = max(max(float(mark.x), mark.y) for mark in dots)
    caption = "A dot per configuration: above the line it waits for compute, below for memory."
    title, axes = "Compute against memory time", (Axis("memory time", "s"), Axis("compute time", "s"))
    ridge = Guide("compute = memory", (0, most), (0, most))  # of a roofline
    yield Chart(ChartKind.DOTS, title, caption, *axes, dots, (ridge,))


def _kernels(configuration: Record) -> str:
    names = configuration.texts("kernels")
    if len(names) <= _NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMES - 1])} and {len(names) - _NAMES + 1} more"
