"""The report as text for people: the first screen, and sections of tables below it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from dfcompile.host.printable import printable
from dfcompile.options.shared import SECTIONS
from dfcompile.records import replace
from dfcompile.report.columns import NOTHING, Derived, table_columns
from dfcompile.report.figures import AssumptionSummary, HintSummary, Report, Result
from dfcompile.report.mapping_figures import ConfigurationSummary, MappingSummary, TrafficSummary
from dfcompile.report.operator_figures import AutomaticSummary, OptionSummary, RivalsSummary, best_options, gap_note
from dfcompile.report.screen import BEST, chips_column, labels, lowered, screen_lines
from dfcompile.report.text_tables import Column, Table, ends_of, folded, listed, page

_CHOSEN = "*"
_MOST_ROWS = 24  # of one number of processing elements, in the table; JSON has all
_NAMED_RULES = 4  # in a sentence; JSON has all
_WORTH = 20  # it is said what would bring one part in so many


def _operator_tables(report: Report) -> Iterator[Table]:
    """Yield what operators are lowered to, most work first, and what else they could be."""
    rows = [(result, group) for result in report.results for group in lowered(result)[:_MOST_ROWS]]
    if rows:
        labels = [Column("PEs", tuple(str(result.pes) for result, _ in rows))]
        if report.is_comparison:
            compared = tuple(report.compared_choices(result) for result, _ in rows)
            labels.append(Column("compared", compared, is_text=True))
        operators = tuple(ends_of(group.operators, NAMED_KERNELS) for _, group in rows)
        labels.append(Column("operators", operators, is_text=True))
        expansions = Column("expansions", tuple(group.expansions_text for _, group in rows), is_text=True)
        shares = Column("work\n%", tuple(f"{100 * group.share:.1f}" for _, group in rows))
        yield Table("operators", tuple(labels), (expansions, shares))
    yield from _option_tables(report)


def _option_tables(report: Report) -> Iterator[Table]:
    """Yield the table of what operators with several expansions could be, where they were chosen; longest first."""
    results = report.of_one_chip_count.results
    rows = [
        (result.pes, option)
        for result in results
        if result.automatic is not None
        for option in _longest(best_options(result.automatic.options))
    ]
    if rows and any(result.is_chosen for result in results):
        groups = (option.operators for _, option in rows)
        named = (names[0] if len(names) == 1 else f"{names[0]} … ({len(names)})" for names in groups)
        lowered = (" ".join(f"{key}={name}" for key, name in option.expansions.items()) for _, option in rows)
        labels = (
            Column("PEs", tuple(str(pes) for pes, _ in rows)),
            Column("operators", tuple(named), is_text=True),
            Column("", tuple(_CHOSEN if option.is_chosen else "" for _, option in rows)),
            Column("expansions", tuple(lowered), is_text=True),
        )
        yield Table("operators: what they could be", labels, table_columns("options", [option for _, option in rows]))


def _longest(options: Sequence[OptionSummary]) -> list[OptionSummary]:
    longest: dict[tuple[str, ...], int] = {}
    for option in options:
        longest[option.operators] = max(longest.get(option.operators, 0), option.work_cycles * len(option.operators))
    kept = sorted(options, key=lambda option: (not option.is_chosen, -longest[option.operators]))[:_MOST_ROWS]
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
    ways = ("by schedules", "excluded by bounds", "by estimates")
    counts = zip((rivals.scheduled, rivals.excluded, rivals.estimated), ways, strict=True)
    parts = ", ".join(f"{count} {what}" for count, what in counts if count)
    more = " (more: --expand auto)" if rivals.is_quick and rivals.estimated else ""
    return f"compared on {pes} PEs with uniform choices: {parts}{more}"


def _some(texts: Sequence[str], most: int = _NAMED_RULES) -> str:
    more = f" … ({len(texts)} rules)" if len(texts) > most else ""
    return " ".join(texts[:most]) + more


SCHEDULES: Final = ("schedule", "bounds")  # sections of a report on schedules alone
MOST_CONFIGURATIONS = 12  # of one mapping, in the table; JSON has all
NAMED_RULES = 3  # of a hint; JSON has all
MOST_WORST = 3  # operators that the table of traffic names; JSON has all
NAMED_KERNELS = 2  # of a configuration: the first and the last


def report_table(report: Report, width: int, *, verbose: bool = True, show: tuple[str, ...] = ()) -> str:
    """Return the report as text of at most ``width`` columns: the first screen, then what is asked for.

    Of a report without mappings, on schedules alone, the first screen is their tables.

    Args:
        report: on a model or on schedules.
        width: columns that a reader sees beside each other.
        verbose: whether the reader wants everything, such as the assumptions.
        show: sections that are wanted below the first screen, where not everything is.
    """
    asked = SECTIONS if verbose else show
    shown = asked if report.mapped else (*SCHEDULES, *(name for name in asked if name == "assumptions"))
    lines = screen_lines(report, width) if report.mapped else []
    for name in SECTIONS:
        if name in shown:
            lines += [*([""] if lines and lines[-1] else []), *_section_lines(report, name, width)]
    if not report.mapped and "assumptions" not in asked:
        lines += counted_assumptions(report.assumptions, width)
    return page(lines)


def _section_lines(report: Report, name: str, width: int) -> list[str]:
    if name == "assumptions":
        return assumption_lines(report.assumptions, width)[1:]
    lines = [line for table in section_tables(report, name) for line in table.lines(width)]
    return lines + [line for note in section_notes(report, name) for line in folded(printable(note), width)]


def section_tables(report: Report, name: str) -> tuple[Table, ...]:
    """Return the tables of a section."""
    return tuple(_TABLES[name](report)) if name in _TABLES else ()


def section_notes(report: Report, name: str) -> tuple[str, ...]:
    """Return what is to be said below the tables of a section, a text each."""
    return tuple(_NOTES[name](report)) if name in _NOTES else ()


def assumption_lines(assumptions: Sequence[AssumptionSummary], width: int) -> list[str]:
    """Return the assumptions."""
    return listed("assumptions", [f"{found.name}: {found.value} — {found.source}" for found in assumptions], width)


def counted_assumptions(assumptions: Sequence[AssumptionSummary], width: int) -> list[str]:
    """Return how many assumptions there are and how to see them."""
    return folded(f"{len(assumptions)} assumptions: -v lists them", width)


def _schedule_tables(report: Report) -> Iterator[Table]:
    scheduled = report.of_one_chip_count
    names, results = tuple(labels(scheduled)), scheduled.results
    yield Table(_contention_free("schedule", report), names, table_columns("schedule", results))
    if any(result.simulation is not None for result in results):
        after = "simulation.makespan_cycles"
        derived = Derived("scheduled\nmakespan", _scheduled_makespan, after), Derived("error\n%", _replay_error, after)
        yield Table("simulation", names, table_columns("simulation", results, derived))
    yield from _what_if_tables(report)


def _what_if_tables(report: Report) -> Iterator[Table]:
    """Yield what schedules take with other parts."""
    scheduled = report.of_one_chip_count
    rows = [(at, other) for at, result in enumerate(scheduled.results) for other in result.schedule.what_if]
    if rows:
        of_rows = (replace(column, cells=tuple(column.cells[at] for at, _ in rows)) for column in labels(scheduled))
        changes = Column("with", tuple(other.change for _, other in rows), is_text=True)
        yield Table("what if", (*of_rows, changes), table_columns("what-if", [other for _, other in rows]))


def _bound_tables(report: Report) -> Iterator[Table]:
    scheduled = report.of_one_chip_count
    columns = table_columns("bounds", scheduled.results)
    yield Table(_contention_free("bounds", report), tuple(labels(scheduled)), columns)


def _contention_free(title: str, report: Report) -> str:
    return f"{title} on the contention-free machine" if report.mapped else title


def _mapping_tables(report: Report) -> Iterator[Table]:
    mappings = [mapping for _, mapping in report.mapped]
    derived = [Derived("proof", _proof, after="ideal_time_s", is_text=True)]
    if any(found.chips_available > 1 for found in mappings):
        derived.append(Derived("chips\nused", lambda found: f"{found.chips} of {found.chips_available}"))
    yield Table("mapping", tuple(labels(report)), table_columns("mapping", mappings, derived))


def _time_tables(report: Report) -> Iterator[Table]:
    parts = [mapping.parts for _, mapping in report.mapped]
    # In one unit, as they add up.
    columns = table_columns("parts", parts, largest=max(mapping.time_s for _, mapping in report.mapped))
    yield Table("where the time goes", _chip_labels(report), columns)


def _traffic_tables(report: Report) -> Iterator[Table]:
    traffic = [result.traffic for result in report.results if result.traffic is not None]
    if len(traffic) == len(report.results):
        excess = Derived("excess in", _worst, after="ratio", is_text=True)
        yield Table("traffic", _chip_labels(report), table_columns("traffic", traffic, (excess,)))


def _chip_labels(report: Report) -> tuple[Column, ...]:
    return (*labels(report), *chips_column([mapping.chips_available for _, mapping in report.mapped]))


def _scheduled_makespan(result: Result) -> str:
    cycles = result.schedule.makespan_cycles
    return NOTHING if cycles is None else f"{cycles:,}"


def _replay_error(result: Result) -> str:
    """Return how far the scheduled makespan is above the replayed one, in percent of this."""
    real, planned = result.simulation.makespan_cycles if result.simulation else None, result.schedule.makespan_cycles
    return f"{100 * (real - planned) / real:.2f}" if real and planned is not None else NOTHING


def _proof(mapping: MappingSummary) -> str:
    return "optimal" if mapping.optimal else f"{100 * mapping.gap:.1f} % above the bound"


def _worst(traffic: TrafficSummary) -> str:
    """Return the operators with most of the excess, as tables show them."""
    excess = traffic.moved_bytes - (traffic.least_bytes or 0)
    if excess <= 0 or traffic.least_bytes is None:
        return "-"
    found = [op for op in traffic.operators[:MOST_WORST] if op.excess_bytes > 0]
    return ", ".join(f"{op.operator} {op.excess_bytes / excess:.0%}" for op in found)


def _configuration_tables(report: Report) -> Iterator[Table]:
    """Yield what is on the chip together; and what chips exchange: what several expansions exchange alike once."""
    rows = [
        (result, label, *row)
        for result, label in _by_mapping(report)
        for row in _configuration_rows(result.mapping.configurations if result.mapping else ())
    ]
    names = [*_machine_labels([result.machine for result, *_ in rows])]
    if report.is_comparison:
        names.append(Column("expansions", tuple(label for _, label, *_ in rows), is_text=True))
    names.append(Column("config", tuple(number for *_, number, _, _ in rows)))
    columns = table_columns("configurations", [figures for *_, figures, _ in rows])
    kernels = Column("kernels", tuple(kernels for *_, kernels in rows), is_text=True)
    yield Table("configurations", tuple(names), (*columns, kernels))
    found = [(result.machine, one) for result, mapping in report.mapped for one in mapping.exchanges]
    exchanges = tuple(dict.fromkeys(found))
    if exchanges:
        machines = _machine_labels([machine for machine, _ in exchanges])
        yield Table("exchanges", tuple(machines), table_columns("exchanges", [one for _, one in exchanges]))


def _machine_labels(machines: Sequence[tuple[int, int]]) -> Iterator[Column]:
    yield Column("PEs", tuple(str(pes) for pes, _ in machines))
    yield from chips_column([chips for _, chips in machines])


def _configuration_rows(
    configurations: Sequence[ConfigurationSummary],
) -> Iterator[tuple[str, ConfigurationSummary, str]]:
    """Yield number, figures and kernels of each configuration; of many the slowest, and the others together."""
    numbers = range(len(configurations))
    slowest = sorted(numbers, key=lambda number: -configurations[number].time_s)
    shown = numbers if len(numbers) <= MOST_CONFIGURATIONS else sorted(slowest[: MOST_CONFIGURATIONS - 1])
    for number in shown:
        yield str(number), configurations[number], ends_of(configurations[number].kernels, NAMED_KERNELS)
    others = [configurations[number] for number in numbers if number not in shown]
    if others:
        together = replace(
            others[0],  # of the figures those that the table has
            time_s=sum(found.time_s for found in others),
            dram_bytes=sum(found.dram_bytes for found in others),
            sram_bytes=max(found.sram_bytes for found in others),
            bound_by=", ".join(dict.fromkeys(found.bound_by for found in others)),
        )
        yield f"{len(others)} more", together, f"{sum(len(found.kernels) for found in others)} kernels"


def _by_mapping(report: Report) -> Iterator[tuple[Result, str]]:
    """Yield the first result of each different list of configurations, with the expansions that share it."""
    sharing: dict[tuple[tuple[int, int], tuple[ConfigurationSummary, ...]], list[Result]] = {}
    counts = Counter(result.machine for result in report.results)
    for result, mapping in report.mapped:
        sharing.setdefault((result.machine, mapping.configurations), []).append(result)
    for (machine, _), equal in sharing.items():
        everything = len(equal) == counts[machine]
        yield equal[0], "all" if everything else ", ".join(report.compared_choices(result) for result in equal)


def _schedule_notes(report: Report) -> Iterator[str]:
    """Yield what contention-free is, what stopped a schedule, and what marks the best of several."""
    yield from _two_schedules(report)
    for result in report.results:
        if result.simulation is not None and result.simulation.deadlock:
            yield f"deadlock on {report.where(result)}: {'; '.join(result.simulation.deadlock)}"
    if report.is_comparison:
        yield f"{BEST} least makespan of its number of PEs"
    elif any(result.schedule.choice for result in report.results):
        yield f"chosen: {report.results[0].schedule.choice}"


def _two_schedules(report: Report) -> Iterator[str]:
    """Yield that the schedule is another one than that of the first screen, where memory may take time."""
    if report.mapped:
        yield (
            "contention-free: memory has no limit and takes no time (--system contention-free). This is a schedule of "
            "its own; makespan and bound of the first table are of another one, made for the machine"
        )


def _bound_notes(report: Report) -> Iterator[str]:
    """Yield what the columns are, what separates makespans from the ideal, and which expansions may be better."""
    yield from _two_schedules(report)
    yield "gap: how far the makespan is above the lower bound beside it, which no schedule of these tasks beats"
    over = [(result, result.over_expansions) for result in report.results if result.over_expansions is not None]
    if over:
        tasks = ", divided into any tasks" if any(result.is_chosen for result, _ in over) else ""
        yield f"over expansions: lower bound under the best known expansion of each operator{tasks}"
    yield from LEGEND
    best = {id(result) for result in report.best.values()}
    for result, found in over:
        if id(result) in best and found.operators and result.schedule.makespan_cycles is not None:
            yield gap_note(report.where(result), result.pes, result.schedule.makespan_cycles, found.operators)
    for result, found in over:
        yield from (_hint(report, result, hint) for hint in found.hints if id(result) in best)


def _hint(report: Report, result: Result, hint: HintSummary) -> str:
    rules = _some([f"--expand {rule}" for rule in hint.expand], NAMED_RULES)
    operators = "an operator that takes" if hint.operators == 1 else f"{hint.operators} operators that take"
    cycles = f"{hint.hinted_bound_cycles:,} cycles instead of {hint.chosen_bound_cycles:,}"
    return f"hint on {report.where(result)}: {rules} may be better for {operators} at least {cycles}"


def _operator_notes(report: Report) -> Iterator[str]:
    """Yield what the automatic choice is, or would bring."""
    if any(result.is_chosen for result in report.results):
        yield CHOSEN_NOTE
    for result in report.best.values():
        if result.automatic is not None:
            count = len(result.automatic.options)
            if count > _MOST_ROWS:
                yield f"{report.where(result)}: {_MOST_ROWS} of {count} rows, first those that are chosen; JSON has all"
            yield from automatic_notes(result, result.automatic)


LEGEND: Final = (
    "T1: work of all tasks, one after another",
    "T_inf: longest chain of tasks on any number of PEs, if each waits for the one before it to end",
    "T_s_inf: the same where tasks stream at mean rates; a measure of the literature, no bound",
    "SSLR: makespan / T_s_inf",
)
_TABLES: Final[Mapping[str, Callable[[Report], Iterator[Table]]]] = {
    "schedule": _schedule_tables,
    "bounds": _bound_tables,
    "operators": _operator_tables,
    "mapping": _mapping_tables,
    "time": _time_tables,
    "traffic": _traffic_tables,
    "configurations": _configuration_tables,
}
_NOTES: Final[Mapping[str, Callable[[Report], Iterator[str]]]] = {
    "schedule": _schedule_notes,
    "bounds": _bound_notes,
    "operators": _operator_notes,
}
