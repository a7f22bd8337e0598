"""What changed between reports of one kind: every figure that is not the same in all of them, and where it stands.

Results, operators and kernels are matched by what names them, not by their places: one that is new shifts no other.
Where all reports have one result, these are matched whatever they were asked; where they have one of each number of
processing elements, whatever expansions they have, which may have been chosen.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict

from dfcompile.errors import UserError
from dfcompile.host.printable import printable
from dfcompile.page.records import Record
from dfcompile.page.views import kind_of
from dfcompile.report.plain_values import Json, rounded
from dfcompile.report.text_tables import Column, Table, folded, page

SCHEMA = "dfcompile-comparison/1"
# What tells a record of a list from the others, as far as it has them; otherwise its place does.
_IDENTITY = (
    "pes", "expansions", "chips_available", "partition", "on_chip_memory_bytes", "granularity", "choices", "step",
    "name", "part", "operator", "operators", "expand", "kernels", "pieces", "configuration", "buffer_bytes", "switch",
)  # fmt: skip
_EXPANSIONS = frozenset(["expansions"])
_NESTED = (("schedule", "partition"), ("mapping", "chips_available"))
_TIMES_OF_OUR_OWN = frozenset(["solver_s"])  # how long a solver took says nothing of the model

# What one asks for first: figures of a result itself, not of its operators and configurations.
_HEADLINES = (
    "makespan_cycles", "time_s", "io_bytes", "cost_usd", "energy_j", "fifo_elements", "lower_bound_cycles",
)  # fmt: skip
_EXPANDED = " expansions"  # where results say what operators are lowered to
_LOWERINGS = " lowerings "
_THERE = "is there"  # what is said of a record of a list, so that one that is missing is one line
_SCHEDULE = ": schedule"
_RESULTS = (_SCHEDULE, ": mapping", "figures", ":")

Leaf = bool | int | float | str | None
Place = tuple[str, str]  # where a figure stands, and its name
# A value of a report, of a list of plain values as a text; and the records of lists that it stands in, outermost first.
_Held = tuple[Leaf, tuple[str, ...]]


class Change(Struct, frozen=True):
    """A figure that is not the same in a report as in the first.

    Attributes:
        report: name of the report.
        where: that it stands, such as ``results pes=16: schedule``; empty: at the top.
        figure: its name in JSON, which carries the unit.
        base: its value in the first report.
        value: its value in this one; of what is in one of them alone the other is ``None``.
    """

    report: str
    where: str
    figure: str
    base: Leaf
    value: Leaf

    @property
    def change(self) -> float | int | None:
        """The value over that of the first report, minus one; ``None`` where there is no such ratio."""
        numbers = [each for each in (self.base, self.value) if isinstance(each, int | float)]
        if len(numbers) < 2 or isinstance(self.base, bool) or isinstance(self.value, bool) or not numbers[0]:
            return None
        return rounded(numbers[1] / numbers[0] - 1)

    @property
    def is_headline(self) -> bool:
        """Whether it is a figure of a result itself that one asks for first."""
        if (self.figure, self.where.endswith(_SCHEDULE)) == ("makespan_cycles", True):
            return False  # of the contention-free machine, or the same as the result's
        return self.figure in _HEADLINES and self.where.count(":") <= 1 and self.where.endswith(_RESULTS)


class Comparison(Struct, frozen=True):
    """Reports beside each other.

    Attributes:
        kind: of the reports.
        names: of the reports, the first is what others are held against.
        figures: how many figures they have, those that are the same included.
        changes: in the order of the reports' JSON.
    """

    kind: str
    names: tuple[str, ...]
    figures: int
    changes: tuple[Change, ...]

    def record(self) -> dict[str, Json]:
        """Return the comparison as JSON has it."""
        return {
            "format": SCHEMA,
            "kind": self.kind,
            "base": self.names[0],
            "reports": list(self.names),
            "figures": self.figures,
            "changes": [
                {**asdict(change), "change": change.change, "is_headline": change.is_headline}
                for change in self.changes
            ],
        }


def compare_reports(reports: Sequence[tuple[str, Record]]) -> Comparison:
    """Return what is not the same in reports as in the first of them.

    Args:
        reports: two or more pairs of a name and a report.

    Raises:
        UserError: they are not of one kind.
    """
    kinds = {name: kind_of(report) for name, report in reports}
    (first, base), *others = reports
    for name, kind in kinds.items():
        if kind != kinds[first]:
            raise UserError(f"report {name!r}: found a {kind} against a {kinds[first]}, as {first!r} is")
    values = [report for _, report in reports]
    lists = [name for name in base.values if all(report.items(name) for report in values)]
    single = frozenset(name for name in lists if all(len(report.items(name)) == 1 for report in values))
    told = frozenset(name for name in lists if all(_are_distinct(report.parts(name)) for report in values))
    known = dict(_walk(_unlisted(base, single), "", (), told))
    changes: list[Change] = []
    seen = set(known)
    for name, report in others:
        held = dict(_walk(_unlisted(report, single), "", (), told))
        seen |= set(held)
        changes += _changes(name, known, held)
    return Comparison(kinds[first], tuple(name for name, _ in reports), len(seen), tuple(changes))


def _unlisted(report: Record, single: frozenset[str]) -> dict[str, Json]:
    """Return a report with the only record of a list in its place, where every report has one."""
    values: dict[str, Json] = {}
    for name, value in report.values.items():
        records = report.parts(name) if name in single else ()
        values[f"{name}:" if records else name] = dict(records[0].values) if records else value
    return values


def _are_distinct(records: Sequence[Record]) -> bool:
    """Return whether other names than their expansions tell records apart."""
    named = [_identity(record.values, _EXPANSIONS) for record in records]
    return len(named) > 0 and all(named) and len(set(named)) == len(named)


def _changes(name: str, known: Mapping[Place, _Held], held: Mapping[Place, _Held]) -> Iterator[Change]:
    """Yield what is not the same; of a record that only one of them has, that alone."""
    alone = {where for where, figure in known.keys() ^ held.keys() if figure == _THERE}
    for place in dict.fromkeys((*known, *held)):
        before, after = known.get(place), held.get(place)
        there = before or after
        if before != after and there is not None and alone.isdisjoint(there[1]):
            yield Change(name, *place, None if before is None else before[0], None if after is None else after[0])


def _walk(
    record: Mapping[str, Json], where: str, around: tuple[str, ...], told: frozenset[str] = frozenset()
) -> Iterator[tuple[Place, _Held]]:
    """Yield all figures of a record; in the lists that are ``told``, expansions do not tell records apart."""
    for name, value in record.items():
        if name in _TIMES_OF_OUR_OWN:
            continue
        inner = f"{where} {name}".lstrip()
        if isinstance(value, dict):
            yield from _walk(value, inner, around)
        elif not isinstance(value, list):
            yield (where, name), (value, around)
        elif value and all(isinstance(each, dict) for each in value):
            records = [each for each in value if isinstance(each, dict)]
            yield from _records(records, inner, around, _EXPANSIONS if name in told else frozenset())
        else:
            yield (where, name), (_joined(value), around)


def _records(
    records: Sequence[Mapping[str, Json]], where: str, around: tuple[str, ...], unsaid: frozenset[str]
) -> Iterator[tuple[Place, _Held]]:
    taken: dict[str, int] = {}
    for place, record in enumerate(records):
        named = _identity(record, unsaid) or f"{place}"
        taken[named] = taken.get(named, 0) + 1
        again = f" #{taken[named]}" if taken[named] > 1 else ""
        found = f"{where} {named}{again}:"
        yield (found, _THERE), (True, around)
        yield from _walk(record, found, (*around, found))


def _identity(record: Mapping[str, Json], unsaid: frozenset[str]) -> str:
    names = (name for name in _IDENTITY if name not in unsaid and record.get(name) not in (None, "", [], {}))
    found = [(name, record[name]) for name in names]
    for part, name in _NESTED:
        inner = record.get(part)
        if isinstance(inner, dict) and name in inner:
            found.append((name, inner[name]))
    return ", ".join(f"{name}={_joined(value)}" for name, value in found)


def _joined(value: Json) -> str:
    if isinstance(value, list):
        return ", ".join(map(_joined, value))
    if isinstance(value, dict):
        return " ".join(f"{key}={_joined(held)}" for key, held in value.items())
    return str(value)


MOST_ROWS = 24  # of the table; the other forms have all
CHANGE_NAMES = ("report", "where", "figure", "base", "value", "change")


def comparison_rows(comparison: Comparison) -> list[dict[str, Json]]:
    """Return a row per change."""
    return [{name: getattr(change, name) for name in CHANGE_NAMES} for change in comparison.changes]


def comparison_table(comparison: Comparison, width: int) -> str:
    """Return a comparison as a table for people, what they ask for first."""
    changes = comparison.changes
    if not changes:
        return page(folded(f"no difference: all {comparison.figures:,} figures are the same", width))
    shown = sorted(changes, key=_weight)[:MOST_ROWS]
    several = len(comparison.names) > 2
    labels = (Column("where", tuple(change.where or "-" for change in shown), is_text=True),)
    columns = (
        *([Column("report", tuple(change.report for change in shown), is_text=True)] if several else []),
        Column("figure", tuple(change.figure for change in shown), is_text=True),
        Column("before", tuple(_cell(change.base) for change in shown), is_text=_has_texts(shown)),
        Column("after", tuple(_cell(change.value) for change in shown), is_text=_has_texts(shown)),
        Column("change\n%", tuple("-" if one.change is None else f"{100 * one.change:+.2f}" for one in shown)),
    )
    lines = [line for text in _choices(comparison) for line in folded(printable(text), width)]
    title = f"against {comparison.names[0]}, results and largest changes first"
    lines += [*([""] if lines else []), *Table(title, labels, columns).lines(width)]
    rest = len(changes) - len(shown)
    told = f"{len(changes):,} differences among {comparison.figures:,} figures"
    told += f"; {rest:,} smaller ones are left out (--format csv, json or --html has them)" if rest else ""
    return page([*lines, *folded(told, width)])


def _weight(change: Change) -> tuple[int, int, bool, float]:
    """Order changes: what one asks for first, other figures of results, then those of operators and parts.

    Of each the largest shares come first, then those that have none.
    """
    share = change.change is None, -abs(change.change or 0.0)
    if change.is_headline:
        return 0, _HEADLINES.index(change.figure), *share
    return 1, change.where.count(":"), *share


def _choices(comparison: Comparison) -> Iterator[str]:
    """Yield what operators are lowered to otherwise, a text for each result; nothing where that is the same."""
    several = len(comparison.names) > 2
    changed: dict[str, list[str]] = {}
    for change in comparison.changes:
        where = f"{change.report}: {change.where}" if several else change.where
        if change.where.endswith(_EXPANDED):
            told = f"{change.figure} {_cell(change.base)} -> {_cell(change.value)}"
            changed.setdefault(where.removesuffix(_EXPANDED), []).append(told)
        elif change.figure == _THERE and _LOWERINGS in change.where:
            changed.setdefault(where.partition(_LOWERINGS)[0], [])
    for where, types in changed.items():
        yield f"lowering changed, {where} {'; '.join(types) or 'the same expansions of other operators'}"


def _has_texts(changes: Sequence[Change]) -> bool:
    return any(isinstance(value, str) for change in changes for value in (change.base, change.value))


def _cell(value: Leaf) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) else printable(value)
