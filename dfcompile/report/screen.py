"""The first screen of a report on a model: the answer, a table, the lowering, what limits it, the choice, two hints."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dfcompile.errors import UserError
from dfcompile.host.printable import printable
from dfcompile.options.choice_file import choice_options, choice_text
from dfcompile.options.shared import SECTIONS
from dfcompile.options.words import MicroBatches
from dfcompile.report.columns import table_columns
from dfcompile.report.figures import MicroBatchesSummary, Report, Result, VerificationSummary, elements
from dfcompile.report.mapping_figures import MappingSummary
from dfcompile.report.operator_figures import Lowered, lowered_texts
from dfcompile.report.text_tables import NO_TIME_S, Column, Table, folded, scaled

BEST: Final = "*"


def labels(report: Report) -> list[Column]:
    """Return the columns that tell results apart: the number of processing elements and what is compared.

    Expansions that were chosen for each number of elements are no such thing: the first screen has them.
    """
    results = report.results
    columns = [Column("PEs", tuple(str(result.pes) for result in results))]
    if report.is_comparison:
        best = {id(result) for result in report.best.values()}
        columns.append(Column("", tuple(BEST if id(result) in best else "" for result in results)))
    chosen = () if report.is_comparison else {key for result in results for key in result.expansions}
    keys = [key for key in report.compared if key not in chosen]
    named = {key: tuple(result.variation.get(key, "-") for result in results) for key in keys}
    return [*columns, *(Column(key, names, is_text=True) for key, names in named.items())]


def chips_column(available: Sequence[int]) -> Iterator[Column]:
    """Yield the numbers of chips at hand, if results differ in them."""
    if len(set(available)) > 1:
        yield Column("chips", tuple(map(str, available)))


WIDTH: Final = 100  # columns of the first screen
_LOWERING_LINES: Final = 2  # of what one number of PEs is lowered to
_MUCH: Final = 0.1  # of the work is worth another line
_CHOICE_LINES: Final = 2  # of a choice that is printed whole
_FAR_ABOVE = 0.1  # of the bound is worth a longer search
_FASTER: Final = 1.05  # times as fast is worth saying
_FAR: Final = 3  # times an ideal: percentages are hard to read there
# Where the time of PEs goes that do not work, in words; see `TimePartsSummary`.
IDLE: Final = {
    "idle_elements_s": "too few parallel tasks", "waiting_s": "waiting for arrays", "throttled_s": "slower streams",
    "whole_blocks_s": "uneven tasks",
}  # fmt: skip
_LITTLE_EFFECT: Final = 1e-3  # of inputs on outputs: ten times what single precision may lose
_IDEALS: Final = (("compute", "least work"), ("memory", "least DRAM traffic"), ("chain", "longest chain"))


def screen_lines(report: Report, width: int) -> list[str]:
    """Return what is printed first of a report with mappings, in lines of at most ``width`` columns, or `WIDTH`."""
    width = min(width, WIDTH)
    lines = [*folded(answer(report), width), "", *result_table(report).lines(width)[2:]]
    lines += [line for table in repetition_tables(report) for line in table.lines(width)]
    for text in _lowerings(report, width):
        lines += text
    best = {id(result) for result in report.best.values()}
    for result, mapping in report.mapped:
        if id(result) in best:
            lines += folded(_limit(report, result, mapping), width)
    for result, mapping in report.mapped:
        if id(result) in best and result.micro_batches is not None:
            rounds = -(-result.runs // result.micro_batches.at_once)
            each = f"{_time(mapping.time_s / rounds)} each"
            lines += folded(printable(f"{report.where(result)}: {_parts(result.micro_batches)}, {each}"), width)
    for note in (*verification_notes(report), *_choices(report, width), *_hints(report)):
        lines += folded(note, width)
    return lines


def repetition_tables(report: Report) -> Iterator[Table]:
    """Yield what several iterations take, where they are asked for."""
    if any(result.repetition is not None for result in report.results):
        kept = report.of_one_chip_count
        columns = table_columns("repeated", kept.results)
        yield Table("repeated on the contention-free machine", tuple(labels(kept)), columns)


def answer(report: Report) -> str:
    """Return the sentence that answers: how much of the model, which machine, how fast on how many PEs."""
    model = report.model
    operators = model.nodes - model.nodes_as_views - model.nodes_folded
    fastest, *others = sorted(report.best.values(), key=_cost)
    mapping = fastest.mapping
    assert mapping is not None
    takes = "takes" if fastest.pes == 1 else "take"
    chips = f" on each of {mapping.chips} chips" if mapping.chips > 1 else ""
    lowering = report.compared_choices(fastest)
    said = f"{model.name}: {model.nodes_as_tasks:,} of {operators:,} operators lowered; on the {mapping.machine} "
    said += f"machine {elements(fastest.pes)}{chips} {takes} {_time(mapping.time_s)}" + (
        f" with {lowering}" if lowering else ""
    )
    if fastest.micro_batches is not None:
        said += f" in {_parts(fastest.micro_batches)}"
    slowest = others[-1] if others else fastest
    times = (slowest.makespan_cycles or 0) / (fastest.makespan_cycles or 1)
    return printable(said + (f", {times:.1f} times as fast as {slowest.pes:,}" if times >= _FASTER else ""))


def _parts(found: MicroBatchesSummary) -> str:
    at_once = f", {found.at_once:,} at once" if found.at_once > 1 else ""
    return f"{found.count:,} micro-batches of {found.dimension}={found.size}{at_once}"


def _cost(result: Result) -> tuple[int, int]:
    return result.makespan_cycles or 0, result.pes


def _time(seconds: float) -> str:
    column = scaled("{}s", [seconds])
    return f"{column.cells[0]} {column.heading}"


def result_table(report: Report) -> Table:
    """Return the table of the first screen: what each result takes on the machine, and costs."""
    results, mappings = zip(*report.mapped, strict=True)
    is_compared = report.is_comparison
    first = sorted(results, key=_cost)[:1] if len(results) > 1 else []
    best = {id(result) for result in (report.best.values() if is_compared else first)}
    cycles = ("-" if result.makespan_cycles is None else f"{result.makespan_cycles:,}" for result in results)
    busy = (f"{100 * one.parts.work_s / one.time_s:.1f}" if one.time_s else "-" for one in mappings)
    label_columns = (
        Column("PEs", tuple(f"{result.pes:,}" for result in results)),
        *_chips(mappings),
        *([Column("", tuple(BEST if id(result) in best else "" for result in results))] if best else []),
        *([Column("lowering", tuple(map(report.compared_choices, results)), is_text=True)] if is_compared else []),
    )
    columns = (
        Column("makespan\ncycles", tuple(cycles)),
        scaled("time\n{}s", [mapping.time_s for mapping in mappings]),
        Column("above\nbound %", tuple(f"{100 * mapping.gap:.1f}" for mapping in mappings)),
        scaled("I/O\n{}B", [float(result.runs * result.schedule.io_bytes) for result in results]),
        scaled("DRAM\n{}B", [mapping.dram_bytes for mapping in mappings]),
        Column("cost\nUSD", tuple(f"{mapping.cost_usd:,.2f}" for mapping in mappings)),
        Column("PEs\nbusy %", tuple(busy)),
    )
    return Table("results", label_columns, columns)


def _chips(mappings: Sequence[MappingSummary]) -> Iterator[Column]:
    """Yield the chips in use where there are several, beside those at hand where some are not used."""
    if any(mapping.chips_available > 1 for mapping in mappings):
        is_all = all(mapping.chips == mapping.chips_available for mapping in mappings)
        cells = (f"{one.chips}" if is_all else f"{one.chips} of {one.chips_available}" for one in mappings)
        yield Column("chips", tuple(cells))


def _lowerings(report: Report, width: int) -> Iterator[list[str]]:
    """Yield what the best results are lowered to, in a few lines each; numbers of PEs with one lowering together."""
    alike: dict[tuple[str, ...], list[Result]] = {}
    for result in report.best.values():
        alike.setdefault(tuple(lowered_texts(lowered(result))), []).append(result)
    which = "best lowering" if report.is_comparison else "lowering"
    for texts, results in alike.items():
        where = f"{which} on {elements(*(result.pes for result in results))}"
        told = [folded(printable(f"{where}: {text}"), width) for text in texts]
        at = _last_within(told, _LOWERING_LINES)
        if sum(group.share for group in lowered(results[0])[at + 1 :]) >= _MUCH:
            at = _last_within(told, _LOWERING_LINES + 1)
        yield told[at]


def _last_within(texts: Sequence[Sequence[str]], lines: int) -> int:
    """Return the place of the last text of so many lines at most, else of the first."""
    return max((at for at, text in enumerate(texts) if len(text) <= lines), default=0)


def lowered(result: Result) -> tuple[Lowered, ...]:
    """Return what the operators of a result are lowered to, with their parts of all work."""
    work = result.schedule.total_work_cycles or 1
    return tuple(Lowered(one.operators, one.expansions, one.work_cycles / work) for one in result.lowerings)


def _limit(report: Report, result: Result, mapping: MappingSummary) -> str:
    """Return what limits a result, how far it is from the ideal, and what is proved."""
    of = {kind: sum(one.time_s for one in mapping.configurations if one.bound_by == kind)
          for kind in dict.fromkeys(one.bound_by for one in mapping.configurations)}  # fmt: skip
    kind = f"{max(of, key=lambda name: of[name])}-bound" if of else "nothing to do"
    idle = mostly_idle({name: getattr(mapping.parts, name) for name in ("work_s", *IDLE)})
    kind = f"mostly idle ({idle})" if idle and kind == "compute-bound" else kind
    ideal, why = mapping.ideal_time_s, dict(_IDEALS)[mapping.ideal.bound_by]
    above = f"{_above(mapping.time_s / ideal)} the ideal of {_time(ideal)} ({why})" if ideal > NO_TIME_S else ""
    proof = "at the proved bound" if mapping.optimal else f"{_above(1 + mapping.gap)} the bound"
    said = (f"{report.where(result)}: {kind}", above, proof)
    return printable(", ".join(text for text in said if text))


def mostly_idle(parts: Mapping[str, float]) -> str:
    """Return why PEs work less than half of the time in which memory does not hold them up; empty if they do not.

    Args:
        parts: `work_s` and those of `IDLE`, as `TimePartsSummary` has them.
    """
    most = max(IDLE, key=lambda name: parts[name])
    return IDLE[most] if parts["work_s"] < sum(parts[name] for name in IDLE) else ""


def _above(times: float) -> str:
    return f"{max(100 * (times - 1), 0.0):.1f} % above" if times < _FAR else f"{times:.1f} times"


def verification_notes(report: Report) -> Iterator[str]:
    """Yield how far lowered models are from the original, each lowering once."""
    seen: dict[str, VerificationSummary] = {}
    for result in report.results:
        if result.verification is not None:
            label = f"on {elements(result.pes)}" if result.is_chosen else report.compared_choices(result)
            seen[label] = result.verification
    for label, found in seen.items():
        which = f" {label}" if label else ""
        part = f"{found.max_rel_error:.2g} of the largest value"
        yield printable(f"verified{which}: error {found.max_abs_error:.2g} at most, {part} (reference: the original)")
    effects = [found.effect_of_inputs for found in seen.values() if found.effect_of_inputs is not None]
    if effects and max(effects) < _LITTLE_EFFECT:
        yield (
            f"verified against outputs that hardly depend on inputs: other inputs change them by {max(effects):.1g} of "
            "the largest value, so errors before the last operators may stay unseen (weights that let values through)"
        )


def saved_choice(report: Report) -> str:
    """Return the file of what was chosen on each number of processing elements.

    Raises:
        UserError: nothing was, or a name of the user's does not fit in a line.
    """
    taken = _taken(report)
    if not taken:
        raise UserError("--save-choice: nothing was chosen (leave out --choice, and rules without --expand auto)")
    if any(printable(options) != options for options in taken.values()):
        raise UserError("--save-choice: found a control character in the name of an operator, which a line cannot have")
    return choice_text(printable(report.model.name), taken)


def _taken(report: Report) -> dict[int, str]:
    return {
        result.pes: choice_options(result.automatic.expand, result.automatic.granularity, _kept(result))
        for result in report.results
        if result.automatic is not None and result.is_chosen
    }


def _kept(result: Result) -> tuple[str, ...]:
    found = result.micro_batches
    return () if found is None else (str(MicroBatches(found.dimension, found.size, found.at_once)),)


def _choices(report: Report, width: int) -> Iterator[str]:
    """Yield the choice of each number of PEs where all are short, else how to keep them."""
    said = [printable(f"chosen for {elements(pes)}: {options}") for pes, options in _taken(report).items()]
    if all(len(folded(text, width)) <= _CHOICE_LINES for text in said):
        yield from said
    elif said:
        yield "chosen for each number of PEs: --save-choice FILE writes the choice, --choice FILE takes it"


def _may_gain(result: Result) -> bool:
    """Return whether a quick choice is so far above its bound that more of a search may find a faster one."""
    rivals = result.automatic.rivals if result.automatic is not None and result.is_chosen else None
    is_quick = rivals is not None and rivals.is_quick
    return is_quick and result.mapping is not None and result.mapping.gap >= _FAR_ABOVE


def _hints(report: Report) -> Iterator[str]:
    """Yield what may be much faster, and how to see more."""
    gains = [
        (result.schedule.makespan_cycles / result.automatic.estimated_cycles, result.pes)
        for result in report.best.values()
        if result.automatic is not None and not result.is_chosen
        if result.schedule.makespan_cycles and result.automatic.estimated_cycles
    ]
    times, pes = max(gains, default=(1.0, 0))
    if times >= _FASTER:
        yield f"hint: --expand auto may be {times:.1f} times as fast on {elements(pes)}"
    elif far := [result.pes for result in report.best.values() if _may_gain(result)]:
        yield f"hint: --expand auto compares more lowerings on {elements(*far)}, and takes longer"
    yield f"more: --show {', '.join(SECTIONS)} or -v"
