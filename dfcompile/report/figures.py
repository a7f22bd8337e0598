"""The report: what a run found out, frozen, and its JSON contract (docs/report-format.md)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from types import MappingProxyType
from typing import Final, TypeAlias

from dfcompile.host.printable import json_text

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

FORMAT: Final = "dfcompile-report/1"
SIGNIFICANT_DIGITS = 12  # of every number that is no integer: more would be noise of the order of summation


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """The model and how each of its nodes is accounted for."""

    name: str
    nodes: int
    nodes_as_tasks: int
    nodes_as_views: int  # move no data: a reshape
    nodes_folded: int  # depend on constants alone: computed when the model is read

    @property
    def nodes_costed(self) -> int:
        """Nodes that are accounted for in one of the three ways; fewer than ``nodes`` would be an error earlier."""
        return self.nodes_as_tasks + self.nodes_as_views + self.nodes_folded


@dataclass(frozen=True, slots=True)
class ScheduleSummary:
    """A streaming schedule and its figures [dematteis23]."""

    partition: str  # name of the partitioner
    timing: str  # steady or exact
    barriers: bool  # between spatial blocks
    makespan_cycles: int
    non_streaming_makespan_cycles: int
    lower_bound_cycles: int  # no streaming schedule on that many processing elements is shorter
    gap: Fraction  # (makespan - bound) / bound
    total_work_cycles: int  # T1: all tasks one after another
    critical_path_cycles: int  # T_inf: any number of processing elements, without streaming
    streaming_depth_cycles: int  # T_s_inf: any number of processing elements, with streaming
    sslr: Fraction  # makespan / T_s_inf
    io_elements: int  # volumes of all edges that touch a buffer node
    io_bytes: int
    spilled_elements: int  # volumes of edges between tasks that the schedule sends through memory
    blocks: int
    speedup: Fraction  # work of all tasks / makespan
    pe_utilization: Fraction  # speedup / processing elements
    fifo_elements: int
    tasks: int


@dataclass(frozen=True, slots=True)
class SimulationSummary:
    """What a replay of a schedule with its FIFOs found."""

    makespan_cycles: int | None  # None in a deadlock
    read_stall_cycles: int  # of all tasks, waiting for elements
    write_stall_cycles: int  # of all tasks, waiting for places
    deadlock: tuple[str, ...]  # who waits for whom, closed to a cycle; empty if all goes well


@dataclass(frozen=True, slots=True)
class ConfigurationSummary:
    """One configuration of a mapping: kernels that are on the chip together [ko24]."""

    kernels: tuple[str, ...]
    time_s: float
    bound_by: str  # compute, memory or network: the largest of the three times


@dataclass(frozen=True, slots=True)
class MappingSummary:
    """Figures of a mapping to a machine [ko24]."""

    time_s: float
    dram_bytes: float
    network_bytes: float
    cost_usd: float
    power_w: float
    energy_j: float
    utilization: float
    optimal: bool
    gap: float  # (time - bound) / time
    bound_time_s: float
    solver: str
    solver_s: float
    configurations: tuple[ConfigurationSummary, ...]
    chips: int = 1  # in use: as many of those available as give the least time
    chips_available: int = 1


@dataclass(frozen=True, slots=True)
class HintSummary:
    """An expansion that may be better than the chosen one."""

    expand: tuple[str, ...]  # values of --expand
    operators: int  # that it is about
    chosen_bound_cycles: int  # what these operators take at least as they are, one after another
    hinted_bound_cycles: int  # the same with this expansion


@dataclass(frozen=True, slots=True)
class ExpansionsSummary:
    """How good the schedule is beside what other expansions could give."""

    lower_bound_cycles: int  # no streaming schedule of any lowering by known expansions is shorter
    gap: Fraction  # (makespan - that bound) / that bound
    hints: tuple[HintSummary, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """What one choice of expansions gives on one number of processing elements."""

    pes: int
    expansions: Mapping[str, str]
    schedule: ScheduleSummary
    mapping: MappingSummary | None  # a canonical DAG from a file is scheduled only
    over_expansions: ExpansionsSummary | None = None  # None where options change what expansions give
    simulation: SimulationSummary | None = None  # None if not asked for
    max_abs_error: float | None = None  # lowered model against the reference; None if not asked for


@dataclass(frozen=True, slots=True)
class AssumptionSummary:
    """A figure that the results rest on and that the model does not say."""

    name: str
    value: str
    source: str


@dataclass(frozen=True, slots=True)
class Report:
    """All results of a run."""

    model: ModelSummary
    results: tuple[Result, ...]
    assumptions: tuple[AssumptionSummary, ...]
    warnings: tuple[str, ...] = ()  # what is probably not as it was meant

    @property
    def best(self) -> Mapping[int, Result]:
        """Per number of processing elements the result of least makespan; among equals the first."""
        best: dict[int, Result] = {}
        for result in self.results:
            known = best.get(result.pes)
            if known is None or result.schedule.makespan_cycles < known.schedule.makespan_cycles:
                best[result.pes] = result
        return MappingProxyType(best)


def report_schema() -> dict[str, Json]:
    """Return the JSON Schema of the report, as shipped with the package."""
    schema: dict[str, Json] = json.loads(
        files("dfcompile.report").joinpath("report.schema.json").read_text(encoding="utf-8")
    )
    return schema


def to_json(report: Report) -> str:
    """Return the report as JSON text: the same bytes for the same input, but for ``solver_s``."""
    return json_text(to_record(report), indent=2) + "\n"


def to_record(report: Report) -> dict[str, Json]:
    """Return the report as the plain values of its JSON contract."""
    model = report.model
    record: dict[str, Json] = {
        "format": FORMAT,
        "model": {
            "name": model.name,
            "nodes": model.nodes,
            "nodes_costed": model.nodes_costed,
            "nodes_as_tasks": model.nodes_as_tasks,
            "nodes_as_views": model.nodes_as_views,
            "nodes_folded": model.nodes_folded,
        },
        "results": [_result_record(result) for result in report.results],
        "assumptions": [
            {"name": found.name, "value": found.value, "source": found.source} for found in report.assumptions
        ],
    }
    return {**record, "warnings": list(report.warnings)} if report.warnings else record


def _result_record(result: Result) -> dict[str, Json]:
    record: dict[str, Json] = {
        "pes": result.pes,
        "expansions": dict(result.expansions),
        "schedule": _schedule_record(result.schedule),
    }
    if result.over_expansions is not None:
        record["over_expansions"] = _expansions_record(result.over_expansions)
    if result.simulation is not None:
        record["simulation"] = _simulation_record(result.simulation)
    if result.mapping is not None:
        record["mapping"] = _mapping_record(result.mapping)
    if result.max_abs_error is not None:
        record["verification"] = {"max_abs_error": rounded(result.max_abs_error)}
    return record


def _schedule_record(schedule: ScheduleSummary) -> dict[str, Json]:
    return {
        "partition": schedule.partition,
        "timing": schedule.timing,
        "barriers": schedule.barriers,
        "makespan_cycles": schedule.makespan_cycles,
        "non_streaming_makespan_cycles": schedule.non_streaming_makespan_cycles,
        "lower_bound_cycles": schedule.lower_bound_cycles,
        "gap": rounded(schedule.gap),
        "total_work_cycles": schedule.total_work_cycles,
        "critical_path_cycles": schedule.critical_path_cycles,
        "streaming_depth_cycles": schedule.streaming_depth_cycles,
        "sslr": rounded(schedule.sslr),
        "io_elements": schedule.io_elements,
        "io_bytes": schedule.io_bytes,
        "spilled_elements": schedule.spilled_elements,
        "blocks": schedule.blocks,
        "speedup": rounded(schedule.speedup),
        "pe_utilization": rounded(schedule.pe_utilization),
        "fifo_elements": schedule.fifo_elements,
        "tasks": schedule.tasks,
    }


def _expansions_record(found: ExpansionsSummary) -> dict[str, Json]:
    return {
        "lower_bound_cycles": found.lower_bound_cycles,
        "gap": rounded(found.gap),
        "hints": [_hint_record(hint) for hint in found.hints],
    }


def _hint_record(hint: HintSummary) -> dict[str, Json]:
    return {
        "expand": list(hint.expand),
        "operators": hint.operators,
        "chosen_bound_cycles": hint.chosen_bound_cycles,
        "hinted_bound_cycles": hint.hinted_bound_cycles,
    }


def _simulation_record(simulation: SimulationSummary) -> dict[str, Json]:
    return {
        "makespan_cycles": simulation.makespan_cycles,
        "read_stall_cycles": simulation.read_stall_cycles,
        "write_stall_cycles": simulation.write_stall_cycles,
        "deadlock": list(simulation.deadlock),
    }


def _mapping_record(mapping: MappingSummary) -> dict[str, Json]:
    return {
        "chips": mapping.chips,
        "chips_available": mapping.chips_available,
        "time_s": rounded(mapping.time_s),
        "configs": len(mapping.configurations),
        "dram_bytes": rounded(mapping.dram_bytes),
        "network_bytes": rounded(mapping.network_bytes),
        "cost_usd": rounded(mapping.cost_usd),
        "power_w": rounded(mapping.power_w),
        "energy_j": rounded(mapping.energy_j),
        "utilization": rounded(mapping.utilization),
        "optimal": mapping.optimal,
        "gap": rounded(mapping.gap),
        "bound_time_s": rounded(mapping.bound_time_s),
        "solver": mapping.solver,
        "solver_s": round(mapping.solver_s, 3),
        "configurations": [
            {"kernels": list(found.kernels), "time_s": rounded(found.time_s), "bound_by": found.bound_by}
            for found in mapping.configurations
        ],
    }


def rounded(value: float | Fraction) -> float | int:
    """Return a number with 12 significant digits, as an integer if it is one: the one rule for all figures.

    >>> rounded(Fraction(1, 3)), rounded(0.1 + 0.2), rounded(4.0)
    (0.333333333333, 0.3, 4)
    """
    if isinstance(value, int):
        return value
    short = float(f"{float(value):.{SIGNIFICANT_DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short
