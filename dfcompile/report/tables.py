"""The report as tables for people: schedule, mapping, what bounds each configuration, coverage, assumptions."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from dfcompile.host.printable import printable
from dfcompile.records import replace
from dfcompile.report.automatic_tables import CHOSEN_NOTE, automatic_notes, option_tables
from dfcompile.report.columns import NOTHING, Derived, table_columns
from dfcompile.report.figures import (
    AssumptionSummary,
    HintSummary,
    Report,
    Result,
    VerificationSummary,
)
from dfcompile.report.mapping_figures import ConfigurationSummary, MappingSummary
from dfcompile.report.operator_figures import gap_note
from dfcompile.report.text_tables import Column, Table, folded, listed, page
from dfcompile.report.traffic_figures import TrafficSummary

BEST = "*"
LITTLE_EFFECT = 1e-3  # of inputs on outputs: ten times what single precision may lose
MOST_CONFIGURATIONS = 12  # of one mapping, in the table; JSON has all
NAMED_RULES = 3  # of a hint; JSON has all
MOST_WORST = 3  # operators that the table of traffic names; JSON has all
NAMED_KERNELS = 2  # of a configuration: the first and the last


def report_table(report: Report, width: int, *, verbose: bool = True) -> str:
    """Return the report as text of at most ``width`` columns; assumptions are counted, with ``verbose`` listed."""
    lines = [line for table in report_tables(report) for line in table.lines(width)]
    for note in report_notes(report):
        lines += folded(printable(note), width)
    return page([*lines, *assumption_lines(report.assumptions, width, verbose=verbose)])


def report_tables(report: Report) -> tuple[Table, ...]:
    """Return the tables of a report: schedule, bounds, and what else it has."""
    scheduled = _one_number_of_chips(report)
    labels, results = tuple(_labels(scheduled)), scheduled.results
    sampled = STEADY if any(result.schedule.steady_error is not None for result in results) else ()
    tables = [
        Table("schedule", labels, table_columns("schedule", results, (*SCHEDULE, *sampled))),
        Table("bounds", labels, table_columns("bounds", results)),
    ]
    if any(result.automatic is not None and result.automatic.is_taken for result in results):
        tables.extend(option_tables(results))
    if any(result.simulation is not None for result in results):
        tables.append(Table("simulation", labels, table_columns("simulation", results, SIMULATION)))
    if any(result.repetition is not None for result in results):
        tables.append(Table("repeated", labels, table_columns("repeated", results)))
    mappings = [result.mapping for result in report.results if result.mapping is not None]
    if mappings:
        chips = SEVERAL_CHIPS if any(found.chips_available > 1 for found in mappings) else ()
        columns = table_columns("mapping", mappings, (*MAPPING, *chips))
        tables.append(Table("mapping", tuple(_labels(report)), columns))
        tables.extend(_attained_tables(report))
    return tuple(tables)


def _attained_tables(report: Report) -> Iterator[Table]:
    """Yield where attained times go, what bounds each configuration, and what chips exchange."""
    attained = replace(report, results=tuple(result for result in report.results if result.mapping is not None))
    mappings = [result.mapping for result in attained.results if result.mapping is not None]
    labels = [*_labels(attained), *_chips_column([mapping.chips_available for mapping in mappings])]
    yield Table("where the time goes", tuple(labels), table_columns("parts", [mapping.parts for mapping in mappings]))
    traffic = [result.traffic for result in attained.results if result.traffic is not None]
    if len(traffic) == len(mappings):
        yield Table("traffic", tuple(labels), table_columns("traffic", traffic, TRAFFIC))
    yield _configuration_table(attained)
    if any(mapping.exchanges for mapping in mappings):
        yield _exchange_table(attained)


def _chips_column(available: Sequence[int]) -> Iterator[Column]:
    """Yield the numbers of chips at hand, if results differ in them."""
    if len(set(available)) > 1:
        yield Column("chips", tuple(map(str, available)))


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
    if _is_comparison(report):
        best = {id(result) for result in report.best.values()}
        columns.append(Column("", tuple(BEST if id(result) in best else "" for result in results)))
    named = (tuple(_variation(result).get(key, "-") for result in results) for key in compared)
    return [*columns, *(Column(key, names, is_text=True) for key, names in zip(compared, named, strict=True))]


def _is_comparison(report: Report) -> bool:
    """Return whether results of one machine differ in their choices: those of several may have been chosen."""
    counts = Counter(map(_machine, report.results))
    return max(counts.values(), default=0) > 1 and len(_compared(report)) > 0


def _compared(report: Report) -> tuple[str, ...]:
    """Return what results differ in: expansions, the partitioner."""
    variations = [_variation(result) for result in report.results]
    keys = dict.fromkeys(key for variation in variations for key in variation)
    return tuple(key for key in keys if len({variation.get(key) for variation in variations}) > 1)


def _variation(result: Result) -> Mapping[str, str]:
    choice = result.schedule.choice
    return {**result.expansions, **({"options": choice} if choice else {"partition": result.schedule.partition})}


def _compared_label(report: Report, result: Result) -> str:
    if not _is_comparison(report):
        return ""
    found = {key: _variation(result).get(key, "-") for key in _compared(report)}
    return " ".join(f"{key}={name}" for key, name in found.items())


def _where(report: Report, result: Result) -> str:
    """Return what tells a result from the others."""
    return " ".join(word for word in (f"{result.pes} PEs", _compared_label(report, result)) if word)


def _scheduled_makespan(result: Result) -> str:
    cycles = result.schedule.makespan_cycles
    return NOTHING if cycles is None else f"{cycles:,}"


def _replay_error(result: Result) -> str:
    """Return how far the scheduled makespan is above the replayed one, in percent of this."""
    real, planned = result.simulation.makespan_cycles if result.simulation else None, result.schedule.makespan_cycles
    return f"{100 * (real - planned) / real:.2f}" if real and planned is not None else NOTHING


def _gap(result: Result) -> str:
    """Return the gap that counts: to what other expansions could give, where that is known."""
    gap = result.schedule.gap if result.over_expansions is None else result.over_expansions.gap
    return NOTHING if gap is None else f"{100 * float(gap):.1f}"


def _steady_error(result: Result) -> str:
    error = result.schedule.steady_error
    return NOTHING if error is None else f"{100 * float(error):+.2f}"


def _chips(mapping: MappingSummary) -> str:
    return f"{mapping.chips} of {mapping.chips_available}"


def _proof(mapping: MappingSummary) -> str:
    return "optimal" if mapping.optimal else f"{100 * mapping.gap:.1f} % above the bound"


def _worst(traffic: TrafficSummary) -> str:
    """Return the operators with most of the excess, as tables show them."""
    excess = traffic.moved_bytes - (traffic.least_bytes or 0)
    if excess <= 0 or traffic.least_bytes is None:
        return "-"
    found = [op for op in traffic.operators[:MOST_WORST] if op.excess_bytes > 0]
    return ", ".join(f"{op.operator} {op.excess_bytes / excess:.0%}" for op in found)


SCHEDULE: Final = (Derived("gap\n%", _gap, after="schedule.non_streaming_makespan_cycles"),)
STEADY: Final = (Derived("error of\na sample %", _steady_error, after="schedule.timing"),)
SIMULATION: Final = (
    Derived("scheduled\nmakespan", _scheduled_makespan, after="simulation.makespan_cycles"),
    Derived("error\n%", _replay_error, after="simulation.makespan_cycles"),
)
MAPPING: Final = (Derived("proof", _proof, after="ideal_time_s", is_text=True),)
TRAFFIC: Final = (Derived("excess in", _worst, after="ratio", is_text=True),)
SEVERAL_CHIPS: Final = (Derived("chips\nused", _chips),)


class _ConfigurationRow(Struct, frozen=True):
    pes: int
    chips: int
    label: str
    number: str
    figures: ConfigurationSummary
    kernels: str


def _configuration_table(report: Report) -> Table:
    rows = [row for result, label in _by_mapping(report) for row in _configuration_rows(result, label)]
    labels = [Column("PEs", tuple(str(row.pes) for row in rows)), *_chips_column([row.chips for row in rows])]
    if _is_comparison(report):
        labels.append(Column("expansions", tuple(row.label for row in rows), is_text=True))
    labels.append(Column("config", tuple(row.number for row in rows)))
    kernels = Column("kernels", tuple(row.kernels for row in rows), is_text=True)
    columns = table_columns("configurations", [row.figures for row in rows])
    return Table("configurations", tuple(labels), (*columns, kernels))


def _configuration_rows(result: Result, label: str) -> Iterator[_ConfigurationRow]:
    """Yield a row per configuration; of many, the slowest ones and the sum of the others."""
    configurations = result.mapping.configurations if result.mapping else ()
    chips = result.mapping.chips_available if result.mapping else 1
    numbers = range(len(configurations))
    slowest = sorted(numbers, key=lambda number: -configurations[number].time_s)
    shown = numbers if len(numbers) <= MOST_CONFIGURATIONS else sorted(slowest[: MOST_CONFIGURATIONS - 1])
    for number in shown:
        found = configurations[number]
        yield _ConfigurationRow(result.pes, chips, label, str(number), found, _span(found.kernels))
    others = [configurations[number] for number in numbers if number not in shown]
    if others:
        names = tuple(name for found in others for name in found.kernels)
        bound_by = ", ".join(dict.fromkeys(found.bound_by for found in others))
        together = ConfigurationSummary(
            kernels=names,
            time_s=sum(found.time_s for found in others),
            compute_s=sum(found.compute_s for found in others),
            memory_s=sum(found.memory_s for found in others),
            network_s=sum(found.network_s for found in others),
            dram_bytes=sum(found.dram_bytes for found in others),
            sram_bytes=max(found.sram_bytes for found in others),
            bound_by=bound_by,
        )
        yield _ConfigurationRow(result.pes, chips, label, f"{len(others)} more", together, f"{len(names)} kernels")


def _by_mapping(report: Report) -> Iterator[tuple[Result, str]]:
    """Yield the first result of each different list of configurations, with the expansions that share it."""
    sharing: dict[tuple[int, int, tuple[ConfigurationSummary, ...]], list[Result]] = {}
    counts = Counter(_machine(result) for result in report.results)
    for result in report.results:
        if result.mapping is not None:
            sharing.setdefault((*_machine(result), result.mapping.configurations), []).append(result)
    for (pes, chips, _), equal in sharing.items():
        everything = len(equal) == counts[pes, chips]
        label = "all" if everything else ", ".join(_compared_label(report, result) for result in equal)
        yield equal[0], label


def _machine(result: Result) -> tuple[int, int]:
    """Return processing elements and chips at hand."""
    return result.pes, result.mapping.chips_available if result.mapping else 1


def _exchange_table(report: Report) -> Table:
    """Return what chips exchange; what several expansions exchange alike is shown once."""
    rows = list(
        dict.fromkeys(
            (_machine(result), exchange)
            for result in report.results
            if result.mapping is not None
            for exchange in result.mapping.exchanges
        )
    )
    labels = [Column("PEs", tuple(str(pes) for (pes, _), _ in rows)), *_chips_column([chips for (_, chips), _ in rows])]
    return Table("exchanges", tuple(labels), table_columns("exchanges", [exchange for _, exchange in rows]))


def _choice_notes(report: Report) -> Iterator[str]:
    """Yield what marks the best of several results, or which of several schedules was chosen."""
    if _is_comparison(report):
        yield f"{BEST} least makespan of its number of PEs"
    elif any(result.schedule.choice for result in report.results):
        yield f"chosen: {report.results[0].schedule.choice}"


def _hint(report: Report, result: Result, hint: HintSummary) -> str:
    rules = " ".join(f"--expand {rule}" for rule in hint.expand[:NAMED_RULES])
    more = f" … ({len(hint.expand)} rules)" if len(hint.expand) > NAMED_RULES else ""
    operators = "an operator that takes" if hint.operators == 1 else f"{hint.operators} operators that take"
    cycles = f"{hint.hinted_bound_cycles:,} cycles instead of {hint.chosen_bound_cycles:,}"
    return f"hint on {_where(report, result)}: {rules}{more} may be better for {operators} at least {cycles}"


def _span(kernels: Sequence[str]) -> str:
    if len(kernels) <= NAMED_KERNELS:
        return ", ".join(kernels)
    return f"{kernels[0]} … {kernels[-1]} ({len(kernels)})"


def _expansion_notes(report: Report) -> Iterator[str]:
    """Yield what the automatic choice is, or would bring, and which expansions may be better than the named ones."""
    over = [(result, result.over_expansions) for result in report.results if result.over_expansions is not None]
    if over:
        divided = any(result.automatic is not None and result.automatic.is_taken for result, _ in over)
        tasks = ", divided into any tasks" if divided else ""
        yield (
            f"over expansions: under the best known expansion of each operator{tasks}; the first table has the gap to "
            "this"
        )
    if any(result.automatic is not None and result.automatic.is_taken for result in report.results):
        yield CHOSEN_NOTE
    best = {id(result) for result in report.best.values()}
    for result in report.results:
        if id(result) in best and result.automatic is not None:
            yield from automatic_notes(result, result.automatic)
    for result, found in over:
        if id(result) in best and found.operators and result.schedule.makespan_cycles is not None:
            yield gap_note(_where(report, result), result.pes, result.schedule.makespan_cycles, found.operators)
    for result, found in over:
        yield from (_hint(report, result, hint) for hint in found.hints if id(result) in best)


def report_notes(report: Report) -> Iterator[str]:
    """Yield what is to be said below the tables, a text each."""
    model = report.model
    if model.nodes:
        yield (
            f"{model.name}: {model.nodes_costed} of {model.nodes} nodes costed "
            f"({model.nodes_as_tasks} as tasks, {model.nodes_as_views} as views, {model.nodes_folded} folded)"
        )
    yield "gap: the makespan above what every streaming schedule on that many PEs takes at least"
    yield from _expansion_notes(report)
    for result in report.results:
        if result.simulation is not None and result.simulation.deadlock:
            yield f"deadlock on {_where(report, result)}: {'; '.join(result.simulation.deadlock)}"
    yield from _choice_notes(report)
    seen: dict[str, VerificationSummary] = {}
    for result in report.results:
        if result.verification is not None:
            is_chosen = result.automatic is not None and result.automatic.is_taken
            seen[f"on {result.pes} PEs" if is_chosen else _compared_label(report, result)] = result.verification
    for label, found in seen.items():
        which = f" {label}" if label else ""
        part = f"{found.max_rel_error:.2g} of the largest value"
        yield f"verified{which}: error {found.max_abs_error:.2g} at most, {part} (reference: the original)"
    effects = [found.effect_of_inputs for found in seen.values() if found.effect_of_inputs is not None]
    if effects and max(effects) < LITTLE_EFFECT:
        yield (
            f"verified against outputs that hardly depend on inputs: other inputs change them by {max(effects):.1g} of "
            "the largest value, so errors before the last operators may stay unseen (weights that let values through)"
        )
