"""The report, frozen: each figure with its unit, its meaning and the tables that show it (docs/report-format.md)."""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from operator import attrgetter
from types import MappingProxyType
from typing import Final

from dfcompile.records import replace
from dfcompile.report.figure import figure, record
from dfcompile.report.mapping_figures import MappingSummary, TrafficSummary
from dfcompile.report.operator_figures import AutomaticSummary, LoweringSummary, OperatorGapSummary
from dfcompile.report.plain_values import Json, schema_of

FORMAT: Final = "dfcompile-report/4"
_STUCK: Final = ((None, "deadlock"),)


@record()
class ModelSummary:
    """The model and how each of its nodes is accounted for."""

    name: str = figure("of the model")
    nodes: int = figure("of the model", unit="nodes")
    nodes_costed: int = figure(
        "accounted for, in one of the three ways below; all of them, or the run is an error", unit="nodes"
    )
    nodes_as_tasks: int = figure("became tasks", unit="nodes")
    nodes_as_views: int = figure("move no data, such as a reshape", unit="nodes")
    nodes_folded: int = figure("depend on constants alone, computed when the model is read", unit="nodes")


def length_ratio(makespan: int | None, other: int) -> Fraction | None:
    """Return a makespan over another length; ``None`` in a deadlock, 1 where there is nothing to divide by."""
    if makespan is None:
        return None
    return Fraction(makespan, other) if other else Fraction(1)


@record("what-if")
class WhatIfSummary:
    """The schedule on a machine with another part: the same tasks on the same PEs, with the same FIFOs."""

    change: str = figure("the part, as `--what-if` has it, or `together`: all of them")
    makespan_cycles: int | None = figure("of the replay; `null`: a deadlock", heading="makespan\ncycles", words=_STUCK)
    ratio: Fraction | None = figure(
        "the same / the makespan of the schedule; `null` in a deadlock", heading="times\nas long", cell=".3f"
    )
    anew_cycles: int | None = figure("of a schedule made for this machine", heading="made anew\ncycles", words=_STUCK)


@record("schedule")
class ScheduleSummary:
    """A streaming schedule and its figures [dematteis23]."""

    partition: str = figure("name of the partitioner that filled the spatial blocks")
    timing: str = figure(
        "what the times are: `exact`, of a replay with the FIFOs of the schedule; or `steady`, from mean intervals",
        choices=("steady", "exact"),
        heading="times",
        after="makespan_cycles",
        hidden="exact",
    )
    barriers: bool = figure("whether a spatial block waits for the end of the one before", of="barrier")
    makespan_cycles: int | None = figure(
        "until the last task has emitted its last element; `null` if the schedule ends in a deadlock",
        heading="makespan\ncycles",
        table=("schedule", "bounds"),
        words=_STUCK,
    )
    non_streaming_makespan_cycles: int = figure(
        "the same when every edge goes through memory", heading="non-\nstreaming\ncycles"
    )
    lower_bound_cycles: int = figure(
        "that no streaming schedule on that many PEs can fall below", heading="lower bound\ncycles", table="bounds"
    )
    gap: Fraction | None = figure(
        "(makespan − lower bound) / lower bound; 0: the schedule is optimal for this lowering; `null` in a "
        "deadlock, and where steady times would leave none",
        heading="gap\n%",
        table=("schedule", "bounds"),
        cell=".1%",
    )
    total_work_cycles: int = figure("T1: all tasks one after another", heading="T1\ncycles", table="bounds")
    critical_path_cycles: int = figure(
        "T_inf: on any number of PEs, without streaming", heading="T_inf\ncycles", table="bounds"
    )
    streaming_depth_cycles: int = figure(
        "T_s_inf: on any number of PEs, with streaming; the longest path of streaming components",
        heading="T_s_inf\ncycles",
        table="bounds",
    )
    sslr: Fraction | None = figure(
        "streaming schedule length ratio: makespan / `streaming_depth_cycles`. A published measure and no "
        "bound: tasks that need not wait for a whole component can bring it below 1",
        heading="SSLR",
        table="bounds",
        cell=".2f",
        of=lambda one: length_ratio(one.makespan_cycles, one.streaming_depth_cycles),
    )
    io_elements: int = figure("sum of the volumes of all edges that touch a buffer node", heading="I/O\nelements")
    io_bytes: int = figure("the same in bytes", heading="I/O\nbytes")
    spilled_elements: int = figure(
        "sum of the volumes of edges between two tasks that the schedule sends through memory; not part of "
        "`io_elements`",
        heading="spilled\nelements",
    )
    blocks: int = figure("spatial blocks", unit="blocks", heading="blocks")
    speedup: Fraction | None = figure("work of all tasks / makespan", heading="speedup", after="gap", cell=".2f")
    pe_utilization: Fraction | None = figure("speedup / PEs", heading="PE util.\n%", after="speedup", cell=".1%")
    fifo_elements: int = figure("capacity of all FIFOs together", heading="FIFO\nelements", after="spilled_elements")
    tasks: int = figure("computational nodes", unit="tasks", heading="tasks")
    choice: str | None = figure(
        "options of `dfcompile schedule` that give this schedule, where it was chosen among several", default=None
    )
    steady_error: Fraction | None = figure(
        "where a replay is too large: by how much a sample takes longer in a replay than planned, of what "
        "streams together, or with shorter streams",
        heading="error of\na sample %",
        after="timing",
        cell="+.2%",
        hidden=None,
        of="sample.error",
        default=None,
    )
    what_if: tuple[WhatIfSummary, ...] = figure("with `--what-if`: the schedule with other parts", default=())


@record()
class HintSummary:
    """An expansion that may be better than the chosen one."""

    expand: tuple[str, ...] = figure("values of `--expand`")
    operators: int = figure("that the hint is about", unit="operators", least=1)
    chosen_bound_cycles: int = figure(
        "what these operators take at least as they are lowered, each alone, one after another", of="chosen_cycles"
    )
    hinted_bound_cycles: int = figure("the same with the expansion of the hint", of="hinted_cycles")


@record("bounds")
class ExpansionsSummary:
    """How good the schedule is beside what other expansions could give."""

    lower_bound_cycles: int = figure(
        "that no streaming schedule on that many PEs can fall below, whichever of the known expansions the "
        "operators are lowered by ([how](scheduling.md#bounds)); where expansions are chosen also into however many "
        "tasks they are divided",
        heading="over expansions\ncycles",
        after="schedule.gap",
    )
    gap: Fraction | None = figure(
        "(`schedule.makespan_cycles` − this bound) / this bound",
        heading="gap\n%",
        after="over_expansions.lower_bound_cycles",
        cell=".1%",
    )
    hints: tuple[HintSummary, ...] = figure("expansions that may save at least a twentieth of the makespan")
    operators: tuple[OperatorGapSummary, ...] = figure(
        "what separates the makespan from the ideal, the least work of all operators shared by the PEs; all "
        "four figures of all operators together are makespan × PEs; absent in a deadlock and of steady times",
        default=(),
    )


@record("simulation")
class SimulationSummary:
    """What a replay of a schedule with its FIFOs found."""

    makespan_cycles: int | None = figure("of the replay; `null`: a deadlock", heading="makespan\ncycles", words=_STUCK)
    read_stall_cycles: int = figure(
        "that started tasks waited for elements, summed over edges", heading="waiting for\nelements"
    )
    write_stall_cycles: int = figure(
        "that tasks waited for places in FIFOs, summed over edges", heading="waiting for\nplaces"
    )
    deadlock: tuple[str, ...] = figure(
        "the links of one cycle of tasks that wait for one another, as texts; empty if the replay ended"
    )


@record()
class VerificationSummary:
    """How far the lowered model is from a reference."""

    max_abs_error: float = figure(
        "the largest absolute difference to the [reference](command-line.md#verification) on one input", of="absolute"
    )
    max_rel_error: float = figure(
        "the largest difference as a part of the largest value of the same output; absolute if that is 0", of="relative"
    )
    effect_of_inputs: float | None = figure(
        "how much the reference's outputs change, as a part of their largest value, if the values of each "
        "input come in another order: where it is small the comparison says little; null if that is no valid input"
    )


@record("repeated")
class RepetitionSummary:
    """The schedule again and again on inputs of their own, iterations beside each other."""

    repeats: int = figure("iterations: `--repeat`", heading="iterations", least=1)
    pes_each: int = figure(
        "that one iteration is scheduled on: all, half of them, a quarter and so on, whatever gives the least makespan",
        unit="PEs",
        heading="PEs each",
        of="schedule.pes",
    )
    interval_cycles: int = figure("from the start of one iteration to that of the next", heading="interval\ncycles")
    least_interval_cycles: int = figure(
        "that no interval of this schedule falls below: every PE is busy", heading="least interval\ncycles"
    )
    makespan_cycles: int = figure("until the last iteration has ended", heading="makespan\ncycles")
    in_sequence_cycles: int = figure(
        "the same if an iteration started on all PEs when the one before has ended", heading="in sequence\ncycles"
    )
    in_flight: int = figure(
        "under way at once, at most; buffers and FIFOs are there as often", unit="iterations", heading="at once"
    )
    io_elements: int = figure("I/O of all iterations", heading="I/O\nelements")


@record("micro_batches")
class MicroBatchesSummary:
    """The parts that a model runs in, on groups of PEs; results of a part depend on it alone."""

    dimension: str = figure("of which a part has some indices: a name of `--dim`")
    size: int = figure("indices of the dimension in a part", unit="indices", least=1)
    count: int = figure("of them", unit="micro-batches", least=1)
    at_once: int = figure("on groups of PEs, each of which runs one after another", unit="micro-batches", least=1)


@record()
class Result:
    """What one choice of expansions gives on one number of processing elements."""

    pes: int = figure("processing elements", unit="PEs", least=1)
    expansions: Mapping[str, str] = figure(
        "`OP` → names of the expansions in effect, joined by `+`, for everything that offers a choice; "
        "`ORIGIN:OP` → name for single operators whose expansions are compared"
    )
    makespan_cycles: int | None = figure(
        "that the model takes on the machine: `mapping.time_s` in cycles of its clock, rounded up; of "
        "`dfcompile schedule` those of the schedule, `null` in a deadlock"
    )
    schedule: ScheduleSummary = figure(
        "figures of the streaming schedule on a machine whose memory takes no time (contention-free)"
    )
    lowerings: tuple[LoweringSummary, ...] = figure(
        "the operators that offer a choice, those with the same expansions together, most work first; absent from "
        "`dfcompile schedule`",
        default=(),
    )
    over_expansions: ExpansionsSummary | None = figure(
        "the schedule beside what other expansions could give; absent with `--passes`, `--volumes array` or "
        "another `--granularity`",
        prefix="expansions",
        default=None,
    )
    automatic: AutomaticSummary | None = figure(
        "what was chosen, or would be by `--expand auto`; absent of models with `--expand published` or rules "
        "alone that are large, or have `--passes`, `--volumes array` or another `--granularity`",
        default=None,
    )
    simulation: SimulationSummary | None = figure(
        "`dfcompile schedule` with `--simulate`: what the replay found", prefix="simulated", default=None
    )
    repetition: RepetitionSummary | None = figure(
        "with `--repeat`: the schedule repeated", prefix="repeated", default=None
    )
    mapping: MappingSummary | None = figure(
        "figures of the mapping to the machine; absent from `dfcompile schedule`", default=None
    )
    traffic: TrafficSummary | None = figure(
        "what the mapping moves beside the least possible; absent from `dfcompile schedule`", default=None
    )
    verification: VerificationSummary | None = figure("with `--verify`: lowered model and reference", default=None)
    micro_batches: MicroBatchesSummary | None = figure(
        "parts that the model runs in (`--micro-batches`); absent if it runs as a whole. `makespan_cycles`, `traffic`, "
        "and figures of `mapping` itself are of all; schedule, operators, configurations, phases, kernels, exchanges, "
        "roofs and perfect streams are of one part on one group of PEs",
        default=None,
    )

    @property
    def runs(self) -> int:
        """How often it runs what is scheduled."""
        return 1 if self.micro_batches is None else self.micro_batches.count

    @property
    def machine(self) -> tuple[int, int]:
        """Processing elements and chips at hand."""
        return self.pes, self.mapping.chips_available if self.mapping else 1

    @property
    def variation(self) -> Mapping[str, str]:
        """Its choices: expansions, and the partitioner or the options of the schedule."""
        choice = self.schedule.choice
        return {**self.expansions, **({"options": choice} if choice else {"partition": self.schedule.partition})}

    @property
    def is_chosen(self) -> bool:
        """Whether the model is lowered by the automatic choice."""
        return self.automatic is not None and self.automatic.is_taken


@record()
class AssumptionSummary:
    """A figure that the results rest on and that the model does not say."""

    name: str = figure("what is assumed")
    value: str = figure("as a text")
    source: str = figure("a citation key ([references](references.md)), a file or an option")


@record()
class Report:
    """All results of a run."""

    format: str = figure("name and version of this contract", choices=(FORMAT,), default=FORMAT, init=False)
    model: ModelSummary = figure("the model and its coverage")
    results: tuple[Result, ...] = figure(
        "one entry per number of processing elements and combination of expansions, or partitioner; the "
        "former varies slowest",
        least=1,
    )
    assumptions: tuple[AssumptionSummary, ...] = figure(
        "figures that the results rest on and that the model does not say"
    )
    warnings: tuple[str, ...] = figure(
        "texts, only if there are any: what is probably not as it was meant, such as a frequency in MHz; "
        "they are printed as well",
        default=(),
    )

    @property
    def mapped(self) -> list[tuple[Result, MappingSummary]]:
        """The results with their mappings; none of a report on schedules alone."""
        return [(result, result.mapping) for result in self.results if result.mapping is not None]

    @property
    def compared(self) -> tuple[str, ...]:
        """What results differ in: expansions, the partitioner."""
        variations = [result.variation for result in self.results]
        keys = dict.fromkeys(key for variation in variations for key in variation)
        values = {key: {variation.get(key) for variation in variations} for key in keys}
        every = tuple(key for key in keys if len(values[key]) > 1)
        valued = tuple(key for key in every if len(values[key] - {None}) > 1)
        # What some have and others have not goes without saying where it follows from the rest.
        told, wanted = ({tuple(map(each.get, some)) for each in variations} for some in (valued, every))
        return valued if len(told) == len(wanted) else every

    @property
    def is_comparison(self) -> bool:
        """Whether results of one machine differ in their choices: those of several may have been chosen."""
        counts = Counter(result.machine for result in self.results)
        return max(counts.values(), default=0) > 1 and len(self.compared) > 0

    def compared_choices(self, result: Result) -> str:
        """Return the choices of a result in which others differ; empty if none are compared."""
        keys = self.compared if self.is_comparison else ()
        return " ".join(f"{key}={result.variation.get(key, '-')}" for key in keys)

    def where(self, result: Result) -> str:
        """Return what tells a result from the others."""
        return " ".join(filter(None, (elements(result.pes), self.compared_choices(result))))

    @property
    def of_one_chip_count(self) -> "Report":
        """The report with the results of one number of chips: a schedule is that of one chip."""
        _, first = self.results[0].machine
        return replace(self, results=tuple(result for result in self.results if result.machine[1] == first))

    @property
    def best(self) -> Mapping[int, Result]:
        """Per number of processing elements the result of least makespan, then of smallest FIFOs; no deadlock."""
        ending: dict[int, list[Result]] = {}
        for result in self.results:
            if result.makespan_cycles is not None:
                ending.setdefault(result.pes, []).append(result)
        costs = attrgetter("makespan_cycles", "schedule.fifo_elements")
        return MappingProxyType({pes: min(results, key=costs) for pes, results in ending.items()})


def elements(*counts: int) -> str:
    """Return one or several numbers of processing elements in words.

    >>> elements(1), elements(2048), elements(1, 2, 4)
    ('1 PE', '2,048 PEs', '1, 2 and 4 PEs')
    """
    *others, last = (f"{pes:,}" for pes in counts)
    said = f"{', '.join(others)} and {last}" if others else last
    return f"{said} PE" if counts == (1,) else f"{said} PEs"


def report_schema() -> dict[str, Json]:
    """Return the JSON Schema of the report."""
    return schema_of(Report, FORMAT)
