"""The report on a solved design, frozen, and its JSON contract (docs/report-format.md)."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from dfcompile.host.printable import json_text
from dfcompile.report.design.placement import PlacementSummary, placement_record
from dfcompile.report.figures import AssumptionSummary, Json, rounded

FORMAT: Final = "dfcompile-design/1"


@dataclass(frozen=True, slots=True)
class StepSummary:
    """One configuration, per input and layer."""

    number: int
    stage: int
    kernels: tuple[str, ...]
    time_s: float
    compute_s: float
    memory_s: float
    network_s: float
    bound_by: str
    sram_bytes: float
    weight_tiles: int


@dataclass(frozen=True, slots=True)
class KernelSummary:
    """One kernel and its share on one chip."""

    name: str
    configuration: int
    sharding: str  # O, M, K, N or - for none
    rows: int
    k: int
    n: int
    exchange: str  # what it all-reduces or its output is converted by; empty if nothing


@dataclass(frozen=True, slots=True)
class CorrectionSummary:
    """A figure that is another without one correction; see docs/dfmodel.md."""

    switch: str
    text: str
    is_applied: bool
    figure: str
    value: float
    other_value: float


@dataclass(frozen=True, slots=True)
class DesignReport:
    """Figures of a solved design; times of a batch unless said, memory of one chip."""

    name: str
    chips: int
    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    sequence_parallel: int
    micro_batch: int
    tiles: int
    time_s: float
    step_s: float
    latency_s: float
    utilization: float
    flop: float
    cost_usd: float
    power_w: float
    energy_j: float
    sram_capacity_bytes: float
    dram_bytes: float
    dram_capacity_bytes: float
    dram_parts_bytes: tuple[tuple[str, float], ...]
    dram_traffic_bytes: float
    network_traffic_bytes: float
    sharding_bytes: float
    optimal: bool
    gap: float
    bound_time_s: float
    solver: str
    solver_s: float
    points: int
    fused_points: int
    configurations: tuple[StepSummary, ...]
    kernels: tuple[KernelSummary, ...]
    placements: tuple[PlacementSummary, ...]  # none without a grid of PCUs and PMUs
    corrections: tuple[CorrectionSummary, ...]
    assumptions: tuple[AssumptionSummary, ...]
    warnings: tuple[str, ...] = ()  # what is probably not as it was meant


def design_schema() -> dict[str, Json]:
    """Return the JSON Schema of the report, as shipped with the package."""
    schema: dict[str, Json] = json.loads(
        files("dfcompile.report.design").joinpath("design.schema.json").read_text(encoding="utf-8")
    )
    return schema


def to_json(report: DesignReport) -> str:
    """Return the report as JSON text: the same bytes for the same input, but for ``solver_s``."""
    return json_text(to_record(report), indent=2) + "\n"


def to_record(report: DesignReport) -> dict[str, Json]:
    """Return the report as the plain values of its JSON contract."""
    record: dict[str, Json] = {
        "format": FORMAT,
        "name": report.name,
        "figures": _figures(report),
        "search": {
            "optimal": report.optimal,
            "gap": rounded(report.gap),
            "bound_time_s": rounded(report.bound_time_s),
            "solver": report.solver,
            "solver_s": round(report.solver_s, 3),
            "points": report.points,
            "fused_points": report.fused_points,
        },
        "configurations": [_step(step) for step in report.configurations],
        "kernels": [
            {
                "name": kernel.name,
                "configuration": kernel.configuration,
                "sharding": kernel.sharding,
                "rows": kernel.rows,
                "k": kernel.k,
                "n": kernel.n,
                "exchange": kernel.exchange,
            }
            for kernel in report.kernels
        ],
        "placements": [placement_record(placement) for placement in report.placements],
        "corrections": [
            {
                "switch": found.switch,
                "text": found.text,
                "applied": found.is_applied,
                "figure": found.figure,
                "value": rounded(found.value),
                "other_value": rounded(found.other_value),
            }
            for found in report.corrections
        ],
        "assumptions": [
            {"name": found.name, "value": found.value, "source": found.source} for found in report.assumptions
        ],
    }
    return {**record, "warnings": list(report.warnings)} if report.warnings else record


def _figures(report: DesignReport) -> dict[str, Json]:
    return {
        "chips": report.chips,
        "tensor_parallel": report.tensor_parallel,
        "pipeline_parallel": report.pipeline_parallel,
        "data_parallel": report.data_parallel,
        "sequence_parallel": report.sequence_parallel,
        "micro_batch": report.micro_batch,
        "tiles": report.tiles,
        "time_s": rounded(report.time_s),
        "step_s": rounded(report.step_s),
        "latency_s": rounded(report.latency_s),
        "utilization": rounded(report.utilization),
        "flop": rounded(report.flop),
        "cost_usd": rounded(report.cost_usd),
        "power_w": rounded(report.power_w),
        "energy_j": rounded(report.energy_j),
        "sram_capacity_bytes": rounded(report.sram_capacity_bytes),
        "dram_bytes": rounded(report.dram_bytes),
        "dram_capacity_bytes": rounded(report.dram_capacity_bytes),
        "dram_parts_bytes": {name: rounded(size) for name, size in report.dram_parts_bytes},
        "dram_traffic_bytes": rounded(report.dram_traffic_bytes),
        "network_traffic_bytes": rounded(report.network_traffic_bytes),
        "sharding_bytes": rounded(report.sharding_bytes),
    }


def _step(step: StepSummary) -> Json:
    return {
        "configuration": step.number,
        "stage": step.stage,
        "kernels": list(step.kernels),
        "time_s": rounded(step.time_s),
        "compute_s": rounded(step.compute_s),
        "memory_s": rounded(step.memory_s),
        "network_s": rounded(step.network_s),
        "bound_by": step.bound_by,
        "sram_bytes": rounded(step.sram_bytes),
        "weight_tiles": step.weight_tiles,
    }
