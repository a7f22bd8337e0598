"""The page of an exploration: its Pareto set."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from dfcompile.page.phrases import counted, quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import Chart, ChartKind, Mark, View, spread

_AXES: Final = {  # by objective; what was not asked for is in the table
    "makespan": ("makespan_cycles", "makespan", "cycles"),
    "io": ("io_bytes", "I/O", "bytes"),
    "area": ("area_pes", "area", "PEs"),
    "energy": ("energy_j", "energy", "J"),
    "cost": ("cost_usd", "cost", "USD"),
}


def exploration_view(report: Record) -> View:
    """Return the view of a ``dfcompile-exploration``."""
    front = report.parts("front")
    model = report.text("model") or "model"
    objectives = report.texts("objectives")
    question = f"Which lowerings and machines for {model} are not beaten in {' and '.join(objectives)}?"
    answer, charts = _answer(front, report.number("gap")), tuple(_charts(front, objectives))
    return View(model, question, answer, tuple(_reasons(report)), charts)


def _answer(front: Sequence[Record], gap: float | None) -> str:
    if not front:
        return "None was found."
    shortest = min(front, key=lambda point: point.number("makespan_cycles") or 0)
    leanest = min(front, key=lambda point: point.number("io_bytes") or 0)
    found = f"{counted(len(front), 'points' if len(front) > 1 else 'point')}: {_named(shortest)} is the shortest"
    found += f", {_named(leanest)} moves the least" if leanest is not shortest else " and moves the least"
    return f"{found}; what is open is at most {share(gap)} better." if gap else f"{found}."


def _named(point: Record) -> str:
    makespan, moved, pes = (point.number(name) or 0 for name in ("makespan_cycles", "io_bytes", "pes"))
    return f"{pes:,} PEs with {point.text('expansions')} ({counted(makespan, 'cycles')}, {quantity(moved, 'B')})"


def _reasons(report: Record) -> Iterator[str]:
    tries, of_tries = report.number("tries"), report.number("of_tries")
    combined, left = report.number("combinations"), report.number("not_excluded")
    if tries is not None and of_tries is not None:
        yield f"{tries:,} of at most {of_tries:,} candidates were scheduled."
    if combined is not None and left is not None:
        yield f"Of {combined:,} combinations {left:,} are not excluded by a bound."


def _charts(front: Sequence[Record], objectives: Sequence[str]) -> Iterator[Chart]:
    for across, up in combinations([axis for name, axis in _AXES.items() if name in objectives], 2):
        marks = tuple(
            Mark(x, y, f"{point.number('pes')} PEs", point.text("expansions"))
            for point in front
            if (x := point.number(up[0])) is not None and (y := point.number(across[0])) is not None
        )
        if len({mark.x for mark in marks}) > 1 and len({mark.y for mark in marks}) > 1:
            title = f"{across[1][0].upper()}{across[1][1:]} against {up[1]}"
            caption = "Points that are not beaten; lower and further left is better."
            yield spread(ChartKind.DOTS, title, caption, up[1:], across[1:], marks)
