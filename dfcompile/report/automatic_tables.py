"""The automatic choice for people: what each operator could be, and what to change and what it brings."""

from collections.abc import Iterator, Sequence
from typing import Final

from dfcompile.report.automatic_figures import AutomaticSummary, OptionSummary, best_options
from dfcompile.report.columns import table_columns
from dfcompile.report.figures import Result
from dfcompile.report.text_tables import Column, Table

_CHOSEN = "*"
_MOST_ROWS = 24  # of one number of processing elements, in the table; JSON has all
_NAMED_RULES = 4  # in a sentence; JSON has all
_WORTH = 20  # it is said what would bring one part in so many


def option_tables(results: Sequence[Result]) -> Iterator[Table]:
    """Yield the table of what the operators with several expansions could be, those that take longest first."""
    rows = [
        (result.pes, option)
        for result in results
        if result.automatic is not None
        for option in _longest(best_options(result.automatic.options))
    ]
    if rows:
        labels = (
            Column("PEs", tuple(str(pes) for pes, _ in rows)),
            Column("operators", tuple(_named(option.operators) for _, option in rows), is_text=True),
            Column("", tuple(_CHOSEN if option.is_chosen else "" for _, option in rows)),
            Column("expansions", tuple(_expansions(option) for _, option in rows), is_text=True),
        )
        yield Table("operators", labels, table_columns("options", [option for _, option in rows]))


def _longest(options: Sequence[OptionSummary]) -> list[OptionSummary]:
    longest: dict[tuple[str, ...], int] = {}
    for option in options:
        longest[option.operators] = max(longest.get(option.operators, 0), option.work_cycles * len(option.operators))
    kept = sorted(options, key=lambda option: -longest[option.operators])[:_MOST_ROWS]
    return [option for option in options if option in kept]


def _named(operators: Sequence[str]) -> str:
    return operators[0] if len(operators) == 1 else f"{operators[0]} … ({len(operators)})"


def _expansions(option: OptionSummary) -> str:
    return " ".join(f"{op_type}={name}" for op_type, name in option.expansions.items())


CHOSEN_NOTE: Final = (
    "chosen: expansions and tasks that no option names, for each number of PEs; --expand published takes the published "
    "ones"
)


def automatic_notes(result: Result, found: AutomaticSummary) -> Iterator[str]:
    """Yield what was chosen and what it brought, or what to change and what that would bring."""
    makespan = result.schedule.makespan_cycles
    if found.is_taken:
        rules = _some([f"--expand {rule}" for rule in found.expand])
        tasks = _some([f"--granularity {each}" for each in found.granularity])
        yield f"chosen on {result.pes} PEs: {rules} {tasks}{_brought(makespan, found.published_cycles)}"
        if found.rivals is not None:
            yield _compared(result.pes, found)
    elif makespan is not None and (makespan - found.estimated_cycles) * _WORTH >= makespan:
        yield (
            f"hint on {result.pes} PEs: --expand auto may take {found.estimated_cycles:,} cycles instead of "
            f"{makespan:,}{_fewer(makespan, found.estimated_cycles)}, with {_changes(found.expand)}"
        )


def _brought(makespan: int | None, published: int | None) -> str:
    if makespan is None or published is None:
        return ""
    return f"; as published it would take about {published:,} cycles{_times(published, makespan)}"


def _times(longer: int, shorter: int) -> str:
    return f", {longer / shorter:.1f} times as many" if shorter else ""


def _changes(rules: Sequence[str]) -> str:
    return f"{_some(rules)}, and other tasks" if rules else "other tasks"


def _fewer(longer: int, shorter: int) -> str:
    return f" ({longer / shorter:.1f} times fewer)" if shorter else ""


def _compared(pes: int, found: AutomaticSummary) -> str:
    assert found.rivals is not None
    parts = [
        f"{count} {what}"
        for count, what in (
            (found.rivals.scheduled, "by schedules"),
            (found.rivals.excluded, "excluded by bounds"),
            (found.rivals.estimated, "by estimates"),
        )
        if count
    ]
    more = " (more: --expand auto)" if found.rivals.is_quick and found.rivals.estimated else ""
    return f"compared on {pes} PEs with uniform choices: {', '.join(parts)}{more}"


def _some(texts: Sequence[str]) -> str:
    more = f" … ({len(texts)} rules)" if len(texts) > _NAMED_RULES else ""
    return " ".join(texts[:_NAMED_RULES]) + more
