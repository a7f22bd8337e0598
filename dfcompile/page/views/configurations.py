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
    yield Chart(
        ChartKind.BARS,
        "Time of each configuration",
        f"Of {of}; a bar per set of kernels that is on the chip together, coloured by what bounds it.",
        Axis("configuration"),
        Axis("time", "s"),
        tuple(
            Mark(
                f"{place if number is None else number}",
                each.number("time_s") or 0,
                each.text("bound_by"),
                _kernels(each),
            )
            for place, (number, each) in enumerate(zip(numbers, configurations, strict=True))
        ),
    )
    marks = tuple(
        Mark(each.number("memory_s") or 0, each.number("compute_s") or 0, each.text("bound_by"), _kernels(each))
        for each in configurations
    )
    most = max(max(float(mark.x), mark.y) for mark in marks)
    yield Chart(
        ChartKind.DOTS,
        "Compute against memory time",
        "A dot per configuration: above the line it waits for compute, below for memory.",
        Axis("memory time", "s"),
        Axis("compute time", "s"),
        marks,
        (Guide("compute = memory", (0, most), (0, most)),),  # as the ridge of a roofline
    )


def _kernels(configuration: Record) -> str:
    names = configuration.texts("kernels")
    if len(names) <= _NAMES:
        return ", ".join(names)
    return f"{', '.join(names[: _NAMES - 1])} and {len(names) - _NAMES + 1} more"
