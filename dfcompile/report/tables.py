"""The report as tables for people: schedule, mapping, what bounds each configuration, coverage, assumptions."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dfcompile.host.printable import printable
from dfcompile.report.figures import (
    AssumptionSummary,
    ConfigurationSummary,
    ExpansionsSummary,
    HintSummary,
    MappingSummary,
    Report,
    Result,
    ScheduleSummary,
    SimulationSummary,
)
from dfcompile.report.text_tables import Column, folded, listed, page, scaled, table_lines

BEST = "*"
MOST_CONFIGURATIONS = 12  # of one mapping, in the table; JSON has all
NAMED_RULES = 3  # of a hint; JSON has all
NAMED_KERNELS = 2  # of a configuration: the first and the last


def report_table(report: Report, width: int, *, verbose: bool = True) -> str:
    """Return the report as text of at most ``width`` columns; assumptions are counted, with ``verbose`` listed."""
    scheduled = _one_number_of_chips(report)
    labels = _labels(scheduled)
    lines = table_lines("schedule", labels, _schedule_columns(scheduled.results), width)
    lines += table_lines("bounds", labels, _bound_columns(scheduled.results), width)
    simulations = [result.simulation for result in scheduled.results if result.simulation is not None]
    if simulations:
        lines += table_lines("simulation", labels, _simulation_columns(scheduled.results, simulations), width)
    labels = _labels(report)
    mappings = [result.mapping for result in report.results if result.mapping is not None]
    if mappings:
        lines += table_lines("mapping", labels, _mapping_columns(mappings), width)
        lines += table_lines("configurations", *_configuration_columns(report), width)
    for note in _notes(report):
        lines += folded(printable(note), width)
    return page([*lines, *assumption_lines(report.assumptions, width, verbose=verbose)])


def assumption_lines(assumptions: Sequence[AssumptionSummary], width: int, *, verbose: bool) -> list[str]:
    """Return the assumptions, or how many there are and how to see them."""
    if not verbose:
        return folded(f"{len(assumptions)} assumptions: -v lists them", width)
    return listed("assumptions", [f"{found.name}: {found.value} — {found.source}" for found in assumptions], width)


def _one_number_of_chips(report: Report) -> Report:
    """Return the report with the results of one number of chips: a schedule is that of one chip."""
    first = next((result.mapping.chips_available for result in report.results if result.mapping is not None), 1)
    kept = tuple(
        result for result in report.results if result.mapping is None or result.mapping.chips_available == first
    )
    return replace(report, results=kept)


def _labels(report: Report) -> list[Column]:
    """Return what tells results apart: the number of processing elements and the compared expansions."""
    results = report.results
    columns = [Column("PEs", tuple(str(result.pes) for result in results))]
    compared = _compared(report)
    if compared:
        best = {id(result) for result in report.best.values()}
        columns.append(Column("", tuple(BEST if id(result) in best else "" for result in results)))
    named = (tuple(_variation(result).get(key, "-") for result in results) for key in compared)
    return [*columns, *(Column(key, names, is_text=True) for key, names in zip(compared, named, strict=True))]


def _is_comparison(report: Report) -> bool:
    return len(_compared(report)) > 0


def _compared(report: Report) -> tuple[str, ...]:
    """Return what results differ in: expansions, the partitioner."""
    variations = [_variation(result) for result in report.results]
    keys = dict.fromkeys(key for variation in variations for key in variation)
    return tuple(key for key in keys if len({variation.get(key) for variation in variations}) > 1)


def _variation(result: Result) -> Mapping[str, str]:
    return {**result.expansions, "partition": result.schedule.partition}


def _compared_label(report: Report, result: Result) -> str:
    found = {key: _variation(result).get(key, "-") for key in _compared(report)}
    return " ".join(f"{key}={name}" for key, name in found.items())


def _schedule_columns(results: Sequence[Result]) -> list[Column]:
    schedules = [result.schedule for result in results]
    gaps = [found.gap if over is None else over.gap for found, over in _beside_bounds(results)]

    def column(heading: str, value: Callable[[ScheduleSummary], str]) -> Column:
        return Column(heading, tuple(value(schedule) for schedule in schedules))

    return [
        column("makespan\ncycles", lambda found: f"{found.makespan_cycles:,}"),
        column("non-\nstreaming\ncycles", lambda found: f"{found.non_streaming_makespan_cycles:,}"),
        Column("gap\n%", tuple(map(_percent, gaps))),
        column("speedup", lambda found: f"{float(found.speedup):.2f}"),
        column("PE util.\n%", lambda found: f"{100 * float(found.pe_utilization):.1f}"),
        column("I/O\nelements", lambda found: f"{found.io_elements:,}"),
        column("I/O\nbytes", lambda found: f"{found.io_bytes:,}"),
        column("spilled\nelements", lambda found: f"{found.spilled_elements:,}"),
        column("FIFO\nelements", lambda found: f"{found.fifo_elements:,}"),
        column("blocks", lambda found: f"{found.blocks:,}"),
        column("tasks", lambda found: f"{found.tasks:,}"),
    ]


def _beside_bounds(results: Sequence[Result]) -> Iterator[tuple[ScheduleSummary, ExpansionsSummary | None]]:
    return ((result.schedule, result.over_expansions) for result in results)


def _bound_columns(results: Sequence[Result]) -> list[Column]:
    schedules = [result.schedule for result in results]

    def column(heading: str, value: Callable[[ScheduleSummary], str]) -> Column:
        return Column(heading, tuple(value(schedule) for schedule in schedules))

    known = [over for _, over in _beside_bounds(results) if over is not None]
    over_expansions = [
        Column("over expansions\ncycles", tuple(f"{over.lower_bound_cycles:,}" for over in known)),
        Column("gap\n%", tuple(_percent(over.gap) for over in known)),
    ]
    return [
        column("makespan\ncycles", lambda found: f"{found.makespan_cycles:,}"),
        column("lower bound\ncycles", lambda found: f"{found.lower_bound_cycles:,}"),
        column("gap\n%", lambda found: _percent(found.gap)),
        *(over_expansions if known else []),
        column("T1\ncycles", lambda found: f"{found.total_work_cycles:,}"),
        column("T_inf\ncycles", lambda found: f"{found.critical_path_cycles:,}"),
        column("T_s_inf\ncycles", lambda found: f"{found.streaming_depth_cycles:,}"),
        column("SSLR", lambda found: f"{float(found.sslr):.2f}"),
    ]


def _percent(share: Fraction) -> str:
    return f"{100 * float(share):.1f}"


def _simulation_columns(results: Sequence[Result], simulations: Sequence[SimulationSummary]) -> list[Column]:
    makespans = [
        (result.schedule.makespan_cycles, found.makespan_cycles)
        for result, found in zip(results, simulations, strict=True)
    ]
    return [
        Column("makespan\ncycles", tuple("deadlock" if real is None else f"{real:,}" for _, real in makespans)),
        Column("scheduled\nmakespan", tuple(f"{planned:,}" for planned, _ in makespans)),
        Column(
            "error\n%", tuple(f"{100 * (real - planned) / real:.2f}" if real else "-" for planned, real in makespans)
        ),
        Column("waiting for\nelements", tuple(f"{found.read_stall_cycles:,}" for found in simulations)),
        Column("waiting for\nplaces", tuple(f"{found.write_stall_cycles:,}" for found in simulations)),
    ]


def _mapping_columns(mappings: Sequence[MappingSummary]) -> list[Column]:
    chips = [Column("chips\nused", tuple(f"{found.chips} of {found.chips_available}" for found in mappings))]
    return [
        *(chips if any(found.chips_available > 1 for found in mappings) else []),
        scaled("time\n{}s", [found.time_s for found in mappings]),
        Column("configs", tuple(f"{len(found.configurations):,}" for found in mappings)),
        Column("DRAM\nbytes", tuple(f"{found.dram_bytes:,.0f}" for found in mappings)),
        Column("network\nbytes", tuple(f"{found.network_bytes:,.0f}" for found in mappings)),
        Column("util.\n%", tuple(f"{100 * found.utilization:.1f}" for found in mappings)),
        Column("cost\nUSD", tuple(f"{found.cost_usd:,.2f}" for found in mappings)),
        scaled("power\n{}W", [found.power_w for found in mappings]),
        scaled("energy\n{}J", [found.energy_j for found in mappings]),
        Column("proof", tuple(_proof(found) for found in mappings), is_text=True),
    ]


def _proof(mapping: MappingSummary) -> str:
    return f"optimal ({mapping.solver})" if mapping.optimal else f"gap {100 * mapping.gap:.2g} % ({mapping.solver})"


@dataclass(frozen=True, slots=True)
class _ConfigurationRow:
    pes: int
    label: str
    number: str
    time_s: float
    bound_by: str
    kernels: str


def _configuration_columns(report: Report) -> tuple[list[Column], list[Column]]:
    """Return what tells configurations apart, and what they are."""
    rows = [row for result, label in _by_mapping(report) for row in _configuration_rows(result, label)]
    labels = [Column("PEs", tuple(str(row.pes) for row in rows))]
    if _is_comparison(report):
        labels.append(Column("expansions", tuple(row.label for row in rows), is_text=True))
    labels.append(Column("config", tuple(row.number for row in rows)))
    return labels, [
        scaled("time\n{}s", [row.time_s for row in rows]),
        Column("bound by", tuple(row.bound_by for row in rows), is_text=True),
        Column("kernels", tuple(row.kernels for row in rows), is_text=True),
    ]


def _configuration_rows(result: Result, label: str) -> Iterator[_ConfigurationRow]:
    """Yield a row per configuration; of many, the slowest ones and the sum of the others."""
    configurations = result.mapping.configurations if result.mapping else ()
    numbers = range(len(configurations))
    slowest = sorted(numbers, key=lambda number: -configurations[number].time_s)
    shown = numbers if len(numbers) <= MOST_CONFIGURATIONS else sorted(slowest[: MOST_CONFIGURATIONS - 1])
    for number in shown:
        found = configurations[number]
        yield _ConfigurationRow(result.pes, label, str(number), found.time_s, found.bound_by, _span(found.kernels))
    others = [configurations[number] for number in numbers if number not in shown]
    if others:
        count = f"{len(others)} more"
        bound_by = ", ".join(dict.fromkeys(found.bound_by for found in others))
        kernels = f"{sum(len(found.kernels) for found in others)} kernels"
        yield _ConfigurationRow(result.pes, label, count, sum(found.time_s for found in others), bound_by, kernels)


def _by_mapping(report: Report) -> Iterator[tuple[Result, str]]:
    """Yield the first result of each different list of configurations, with the expansions that share it."""
    sharing: dict[tuple[int, tuple[ConfigurationSummary, ...]], list[Result]] = {}
    for result in report.results:
        if result.mapping is not None:
            sharing.setdefault((result.pes, result.mapping.configurations), []).append(result)
    for (pes, _), equal in sharing.items():
        everything = len(equal) == sum(result.pes == pes for result in report.results)
        label = "all" if everything else ", ".join(_compared_label(report, result) for result in equal)
        yield equal[0], label


def _hint(report: Report, result: Result, hint: HintSummary) -> str:
    where = " ".join(word for word in (f"{result.pes} PEs", _compared_label(report, result)) if word)
    rules = " ".join(f"--expand {rule}" for rule in hint.expand[:NAMED_RULES])
    more = f" … ({len(hint.expand)} rules)" if len(hint.expand) > NAMED_RULES else ""
    operators = "an operator that takes" if hint.operators == 1 else f"{hint.operators} operators that take"
    return (
        f"hint on {where}: {rules}{more} may be better for {operators} at least {hint.hinted_bound_cycles:,} cycles "
        f"instead of {hint.chosen_bound_cycles:,}"
    )


def _span(kernels: Sequence[str]) -> str:
    if len(kernels) <= NAMED_KERNELS:
        return ", ".join(kernels)
    return f"{kernels[0]} … {kernels[-1]} ({len(kernels)})"


def _notes(report: Report) -> Iterable[str]:
    model = report.model
    if model.nodes:
        yield (
            f"{model.name}: {model.nodes_costed} of {model.nodes} nodes costed "
            f"({model.nodes_as_tasks} as tasks, {model.nodes_as_views} as views, {model.nodes_folded} folded)"
        )
    yield "gap: the makespan above what every streaming schedule on that many PEs takes at least"
    over = [(result, result.over_expansions) for result in report.results if result.over_expansions is not None]
    if over:
        yield "over expansions: under the best known expansion of each operator; the first table has the gap to this"
    best = {id(result) for result in report.best.values()}
    for result, found in over:
        yield from (_hint(report, result, hint) for hint in found.hints if id(result) in best)
    for result in report.results:
        if result.simulation is not None and result.simulation.deadlock:
            where = " ".join(word for word in (f"{result.pes} PEs", _compared_label(report, result)) if word)
            yield f"deadlock on {where}: {'; '.join(result.simulation.deadlock)}"
    if _is_comparison(report):
        yield f"{BEST} least makespan of its number of PEs"
    seen: dict[str, float] = {}
    for result in report.results:
        if result.max_abs_error is not None:
            seen[_compared_label(report, result)] = result.max_abs_error
    for label, error in seen.items():
        yield f"verified{f' {label}' if label else ''}: maximal absolute error {error:.2g} against the reference"
