"""The automatic choice for people: what each operator could be, and what to change and what it brings."""

from collections.abc import Iterator, Sequence
from typing import Final

from dfcompile.report.automatic_figures import AutomaticSummary, OptionSummary, RivalsSummary, best_options
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
        groups = (option.operators for _, option in rows)
        named = (names[0] if len(names) == 1 else f"{names[0]} … ({len(names)})" for names in groups)
        lowered = (" ".join(f"{key}={name}" for key, name in option.expansions.items()) for _, option in rows)
        labels = (
            Column("PEs", tuple(str(pes) for pes, _ in rows)),
            Column("operators", tuple(named), is_text=True),
            Column("", tuple(_CHOSEN if option.is_chosen else "" for _, option in rows)),
            Column("expansions", tuple(lowered), is_text=True),
        )
        yield Table("operators", labels, table_columns("options", [option for _, option in rows]))


def _longest(options: Sequence[OptionSummary]) -> list[OptionSummary]:
    longest: dict[tuple[str, ...], int] = {}
    for option in options:
        longest[option.operators] = max(longest.get(option.operators, 0), option.work_cycles * len(option.operators))
    kept = sorted(options, key=lambda option: -longest[option.operators])[:_MOST_ROWS]
    return [option for option in options if option in kept]


CHOSEN_NOTE: Final = (
    "chosen: expansions and tasks that no option names, for each number of PEs; --expand published takes the published "
    "ones"
)


def automatic_notes(result: Result, found: AutomaticSummary) -> Iterator[str]:
    """Yield what was chosen and what it brought, or what to change and what that would bring."""
    makespan, published, estimated = result.schedule.makespan_cycles, found.published_cycles, found.estimated_cycles
    if found.is_taken:
        brought = ""
        if makespan is not None and published is not None:
            times = f", {published / makespan:.1f} times as many" if makespan else ""
            brought = f"; as published it would take about {published:,} cycles{times}"
        rules = _some([f"--expand {rule}" for rule in found.expand])
        tasks = _some([f"--granularity {each}" for each in found.granularity])
        yield f"chosen on {result.pes} PEs: {rules} {tasks}{brought}"
        if found.rivals is not None:
            yield _compared(result.pes, found.rivals)
    elif makespan is not None and (makespan - estimated) * _WORTH >= makespan:
        fewer = f" ({makespan / estimated:.1f} times fewer)" if estimated else ""
        changes = f"{_some(found.expand)}, and other tasks" if found.expand else "other tasks"
        yield (
            f"hint on {result.pes} PEs: --expand auto may take {estimated:,} cycles instead of {makespan:,}{fewer}, "
            f"with {changes}"
        )


def _compared(pes: int, rivals: RivalsSummary) -> str:
    counts = (
        (rivals.scheduled, "by schedules"),
        (rivals.excluded, "excluded by bounds"),
        (rivals.estimated, "by estimates"),
    )
    parts = ", ".join(f"{count} {what}" for count, what in counts if count)
    more = " (more: --expand auto)" if rivals.is_quick and rivals.estimated else ""
    return f"compared on {pes} PEs with uniform choices: {parts}{more}"


def _some(texts: Sequence[str]) -> str:
    more = f" … ({len(texts)} rules)" if len(texts) > _NAMED_RULES else ""
    return " ".join(texts[:_NAMED_RULES]) + more
