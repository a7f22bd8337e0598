"""The page of an exploration: its Pareto set."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Final

from dfcompile.options.choice_file import choice_options
from dfcompile.page.phrases import column, counted, quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import Chart, ChartKind, Mark, SmallTable, TableColumn, View, spread
from dfcompile.report.traffic_bounds import size_text

# By objective: where it is, its name, its unit.
_AXES: Final = {
    "makespan": ("makespan_cycles", "makespan", "cycles"),
    "io": ("io_bytes", "I/O", "bytes"),
    "area": ("area_pes", "area", "PEs"),
    "energy": ("energy_j", "energy", "J"),
    "cost": ("cost_usd", "cost", "USD"),
}
_UNITS: Final = {"bytes": "B", "PEs": "", "cycles": "cycles", "USD": "USD", "J": "J"}
_MOST_ROWS: Final = 30
_MOST_LOWERINGS: Final = 6  # columns of the table of them


def exploration_view(report: Record) -> View:
    """Return the view of a ``dfcompile-exploration``."""
    front = sorted(report.parts("front"), key=lambda point: (point.number("makespan_cycles") or 0, _moved(point)))
    model = report.text("model") or "model"
    objectives = report.texts("objectives")
    axes = [axis for name, axis in _AXES.items() if name in objectives]
    question = f"Which lowerings and machines are best for {model} in {_listed([axis[1] for axis in axes])}?"
    lowerings = tuple(dict.fromkeys(point.text("expansions") for point in front))
    tables = tuple(_tables(front, axes, lowerings))
    options = tuple(_options(front, lowerings))
    return View(model, question, _answer(front), tuple(_reasons(report, front, axes)), tables, options,
                tuple(_charts(front, axes)))  # fmt: skip


def _moved(point: Record) -> float:
    return point.number("io_bytes") or 0


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _answer(front: Sequence[Record]) -> str:
    """Return the fastest point and the one that moves least; it is said where these are one, or all the same."""
    if not front:
        return "None was found."
    fastest, leanest = front[0], min(front, key=_moved)
    are = "is" if fastest.number("pes") == 1 else "are"
    found = f"{_machine(fastest)} {are} fastest ({counted(fastest.number('makespan_cycles') or 0, 'cycles')})"
    least = quantity(_moved(leanest), "B")
    if len(front) == 1:
        return f"One point is best in everything: {found}, {least} I/O."
    found = f"{len(front):,} points: {found}"
    if len({_moved(point) for point in front}) == 1:
        return f"{found}; all of them move {least}."
    moves = "moves" if leanest.number("pes") == 1 else "move"
    if _moved(fastest) == _moved(leanest):
        return f"{found} and {moves} the least ({least})."
    return f"{found}; {_machine(leanest)} {moves} the least ({least})."


def _machine(point: Record) -> str:
    pes, memory = point.number("pes") or 0, point.number("on_chip_memory_bytes")
    found = f"{pes:,} {'PE' if pes == 1 else 'PEs'}"
    return f"{found} with {size_text(int(memory))}" if memory else found


def _reasons(report: Record, front: Sequence[Record], axes: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    for path, name, _ in axes:
        values = {point.number(path) for point in front}
        if len(values) == 1 < len(front):
            yield f"All points have the same {name}."
    made, left, gap = report.number("schedules"), report.number("not_excluded"), report.number("gap")
    candidates = report.number("combinations") or 0
    factors = [f"{candidates:,} combinations of expansions"]
    for path, name in (("pes", "numbers of PEs"), ("granularities", "sizes of tasks")):
        candidates *= max(len(report.items(path)), 1)
        factors += [f"{len(report.items(path))} {name}"] if len(report.items(path)) > 1 else []
    memories = len(report.items("on_chip_memory_bytes"))
    said = f"{candidates:,} candidates" + (f": {' × '.join(factors)}" if len(factors) > 1 else "")
    said += f", each with {memories} sizes of memory" if memories > 1 else ""
    yield f"{said}." if made is None else f"{said}; {made:,} were scheduled."
    if gap == 0:
        yield "Proved: no candidate is as good as one of these points in everything and better in something."
    elif left is not None:
        tries, of_tries = report.number("tries"), report.number("of_tries")
        tried = f" ({tries:,} of {of_tries:,} tries made; --tries N makes more)" if tries and of_tries else ""
        limit = "without a limit" if gap is None else f"by at most {share(gap)}"
        yield (
            f"Not proved: bounds do not exclude {left:,} of the {candidates:,} candidates; one of them may be better "
            f"than some point in everything, {limit}{tried}."
        )
    too_many = report.texts("too_many_tasks")
    if too_many:
        yield f"Not scheduled, with too many tasks: {', '.join(too_many[:3])}{' …' if len(too_many) > 3 else ''}."
    yield from _finer(report.parts("finer_tasks"))


def _finer(finer: Sequence[Record]) -> Iterator[str]:
    """Yield what tasks in pieces would give where that is most."""
    gains = [
        (found / estimated, each.number("pes") or 0, each)
        for each in finer
        if (found := each.number("found_cycles")) and (estimated := each.number("estimated_cycles"))
    ]
    if gains:
        _, pes, most = max(gains, key=lambda gain: gain[:2])
        yield (
            f"Hint: only tasks as declared were looked at; in pieces about "
            f"{counted(most.number('estimated_cycles') or 0, 'cycles')} on {pes:,} PEs instead of "
            f"{most.number('found_cycles') or 0:,}: --granularity declared --granularity pieces={most.number('pieces')}"
        )


def _tables(
    front: Sequence[Record], axes: Sequence[tuple[str, str, str]], lowerings: Sequence[str]
) -> Iterator[SmallTable]:
    """Yield the front, the fastest first, and what its lowerings are."""
    if not front:
        return
    shown = front[:_MOST_ROWS]
    columns = [column("PEs", [point.number("pes") for point in shown], "")]
    if any(point.number("on_chip_memory_bytes") for point in shown):
        sizes = (size_text(int(point.number("on_chip_memory_bytes") or 0)) for point in shown)
        columns.append(TableColumn("on-chip memory", tuple(sizes)))
    for path, name, unit in axes:
        values = [point.number(path) for point in shown]
        if unit == "cycles":
            cells = (f"{value or 0:,}" + _steady(point) for value, point in zip(values, shown, strict=True))
            columns.append(TableColumn("makespan, cycles", tuple(cells)))
        else:
            columns.append(column(name, values, _UNITS[unit]))
    numbers = {lowering: f"{at + 1}" for at, lowering in enumerate(lowerings)}
    columns.append(TableColumn("lowering", tuple(numbers[point.text("expansions")] for point in shown)))
    if len({point.text("granularity") for point in shown}) > 1:
        columns.append(TableColumn("tasks", tuple(point.text("granularity") for point in shown), is_text=True))
    more = f" (the first {len(shown)} of {len(front):,})" if len(front) > len(shown) else ""
    yield SmallTable(f"The best points, the fastest first: no other is as good in everything{more}", tuple(columns), 0)
    yield from _lowerings(lowerings)


def _steady(point: Record) -> str:
    return " steady" if point.at("is_replayed") is False else ""


def _lowerings(lowerings: Sequence[str]) -> Iterator[SmallTable]:
    """Yield in what lowerings differ: a row per choice that is not the same in all, a column per lowering."""
    chosen = [dict(rule.partition("=")[::2] for rule in lowering.split()) for lowering in lowerings]
    keys = dict.fromkeys(key for one in chosen for key in one)
    differing = [key for key in keys if len({one.get(key) for one in chosen}) > 1]
    if differing:
        names = TableColumn("choice", tuple(differing), is_text=True)
        columns = (
            TableColumn(f"{at + 1}", tuple(one.get(key, "-") for key in differing), is_text=True)
            for at, one in enumerate(chosen[:_MOST_LOWERINGS])
        )
        yield SmallTable("Where the lowerings differ", (names, *columns))


def _options(front: Sequence[Record], lowerings: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of ``dfcompile MODEL`` that choose each lowering, on as many PEs as its fastest point has."""
    for at, lowering in enumerate(lowerings[:_MOST_LOWERINGS]):
        point = next(point for point in front if point.text("expansions") == lowering)
        tasks = [point.text("granularity")] if point.text("granularity") else []
        said = choice_options(lowering.split(), tasks)
        yield f"lowering {at + 1}", f"--pes {point.number('pes')} {said}"


def _charts(front: Sequence[Record], axes: Sequence[tuple[str, str, str]]) -> Iterator[Chart]:
    for across, up in combinations(axes, 2):
        marks = tuple(
            Mark(x, y, f"{point.number('pes')} PEs", _machine(point), name=_machine(point))
            for point in front
            if (x := point.number(up[0])) is not None and (y := point.number(across[0])) is not None
        )
        if len({mark.x for mark in marks}) > 1 and len({mark.y for mark in marks}) > 1:
            title = f"{across[1][0].upper()}{across[1][1:]} against {up[1]}"
            caption = "The points of the table; lower and further left is better."
            yield spread(ChartKind.DOTS, title, caption, up[1:], across[1:], marks)
