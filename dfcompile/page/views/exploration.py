"""The page of an exploration: its Pareto set."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from msgspec import Struct

from dfcompile.options.choice_file import choice_options
from dfcompile.page.phrases import column, quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import Chart, ChartKind, Mark, SmallTable, View, spread
from dfcompile.report.text_tables import Column
from dfcompile.report.traffic_bounds import size_text


class _Objective(Struct, frozen=True):
    """What a point is good in.

    Attributes:
        path: of the figure.
        name: of it.
        unit: of it on an axis.
        short: the unit with a prefix.
        best: what points with the least of it do, several and one.
    """

    path: str
    name: str
    unit: str
    short: str
    best: tuple[str, str]

    def of(self, point: Record) -> float:
        """Return the figure of a point."""
        return point.number(self.path) or 0

    def said(self, point: Record) -> str:
        """Return the figure of a point as one reads it."""
        value = self.of(point)
        return f"{value:,} cycles" if self.unit == "cycles" else quantity(value, self.short).strip()


_OBJECTIVES = {
    "makespan": _Objective("makespan_cycles", "makespan", "cycles", "cycles", ("are fastest", "is fastest")),
    "io": _Objective("io_bytes", "I/O", "bytes", "B", ("move the least", "moves the least")),
    "area": _Objective("area_pes", "area", "PEs", "", ("are smallest", "is smallest")),
    "energy": _Objective("energy_j", "energy", "J", "J", ("need the least energy", "needs the least energy")),
    "cost": _Objective("cost_usd", "cost", "USD", "USD", ("cost the least", "costs the least")),
}
_MOST_ROWS = 30
_MOST_LOWERINGS = 6  # columns of the table of them


def exploration_view(report: Record) -> View:
    """Return the view of a ``dfcompile-exploration``."""
    objectives = [one for name, one in _OBJECTIVES.items() if name in report.texts("objectives")]
    front = sorted(report.parts("front"), key=lambda point: [one.of(point) for one in objectives])
    model = report.text("model") or "model"
    question = f"Which lowerings and machines are best for {model} in {_listed([one.name for one in objectives])}?"
    lowerings = tuple(dict.fromkeys(point.text("expansions") for point in front))
    answer, tables = _answer(front, objectives), tuple(_tables(front, objectives, lowerings))
    same = (one.name for one in objectives if len({one.of(point) for point in front}) == 1 < len(front))
    ties = (f"All points have the same {name}." for name in same if name not in answer)
    reasons, options = (*ties, *_reasons(report)), tuple(_options(front, lowerings))
    return View(model, question, answer, reasons, tables, options, tuple(_charts(front, objectives)))


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _answer(front: Sequence[Record], objectives: Sequence[_Objective]) -> str:
    """Return the best points in the first two objectives; it is said where these are one, or all the same."""
    if not front or not objectives:
        return "None was found."
    first, *others = objectives
    best = front[0]
    found = f"{_machine(best)} {first.best[best.number('pes') == 1]} ({first.said(best)})"
    if len(front) == 1:
        figures = (f"{one.said(best)} {one.name}" for one in others[:1])
        return f"One point is best in everything: {', '.join((found, *figures))}."
    found = f"{len(front):,} points: {found}"
    if not others:
        return f"{found}."
    second = others[0]
    other = min(front, key=lambda point: (second.of(point), first.of(point)))
    if len({second.of(point) for point in front}) == 1:
        return f"{found}; all have the same {second.name} ({second.said(other)})."
    best_in = f"{second.best[other.number('pes') == 1]} ({second.said(other)})"
    return (
        f"{found} and {best_in}." if second.of(best) == second.of(other) else f"{found}; {_machine(other)} {best_in}."
    )


def _machine(point: Record) -> str:
    pes, memory = point.number("pes") or 0, point.number("on_chip_memory_bytes")
    found = f"{pes:,} {'PE' if pes == 1 else 'PEs'}"
    return f"{found} with {size_text(int(memory))}" if memory else found


def _reasons(report: Record) -> Iterator[str]:
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
        tries = report.number("tries")
        tried = f" ({tries:,} tries made; --tries N makes more)" if tries else ""
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
            f"{most.number('estimated_cycles') or 0:,} cycles on {pes:,} PEs instead of "
            f"{most.number('found_cycles') or 0:,}: --granularity declared --granularity pieces={most.number('pieces')}"
        )


def _tables(
    front: Sequence[Record], objectives: Sequence[_Objective], lowerings: Sequence[str]
) -> Iterator[SmallTable]:
    """Yield the front, the fastest first, and what its lowerings are."""
    if not front:
        return
    shown = front[:_MOST_ROWS]
    columns = [column("PEs", [point.number("pes") for point in shown], "")]
    if any(point.number("on_chip_memory_bytes") for point in shown):
        sizes = (size_text(int(point.number("on_chip_memory_bytes") or 0)) for point in shown)
        columns.append(Column("on-chip memory", tuple(sizes)))
    for one in objectives:
        if one.unit == "cycles":
            cells = (f"{one.of(point):,}" + (" steady" if point.at("is_replayed") is False else "") for point in shown)
            columns.append(Column("makespan, cycles", tuple(cells)))
        else:
            columns.append(column(one.name, [one.of(point) for point in shown], one.short))
    numbers = {lowering: f"{at + 1}" for at, lowering in enumerate(lowerings)}
    columns.append(Column("lowering", tuple(numbers[point.text("expansions")] for point in shown)))
    if len({point.text("granularity") for point in shown}) > 1:
        columns.append(Column("tasks", tuple(point.text("granularity") for point in shown), is_text=True))
    more = f" (the first {len(shown)} of {len(front):,})" if len(front) > len(shown) else ""
    yield SmallTable(f"The best points: no other is as good in everything{more}", tuple(columns), 0)
    yield from _lowerings(lowerings)


def _lowerings(lowerings: Sequence[str]) -> Iterator[SmallTable]:
    """Yield in what lowerings differ: a row per choice that is not the same in all, a column per lowering."""
    chosen = [dict(rule.partition("=")[::2] for rule in lowering.split()) for lowering in lowerings]
    keys = dict.fromkeys(key for one in chosen for key in one)
    differing = [key for key in keys if len({one.get(key) for one in chosen}) > 1][:_MOST_ROWS]
    if differing:
        names = Column("choice", tuple(differing), is_text=True)
        columns = (
            Column(f"{at + 1}", tuple(one.get(key, "-") for key in differing), is_text=True)
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


def _charts(front: Sequence[Record], objectives: Sequence[_Objective]) -> Iterator[Chart]:
    for up, across in combinations(objectives, 2):
        marks = tuple(
            Mark(across.of(point), up.of(point), f"{point.number('pes')} PEs", _machine(point), name=_machine(point))
            for point in front
        )
        if len({mark.x for mark in marks}) > 1 and len({mark.y for mark in marks}) > 1:
            title = f"{up.name[0].upper()}{up.name[1:]} against {across.name}"
            caption = "The points of the table; lower and further left is better."
            axes = (across.name, across.unit), (up.name, up.unit)
            yield spread(ChartKind.DOTS, title, caption, *axes, marks)
