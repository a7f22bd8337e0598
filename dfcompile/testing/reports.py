"""Reports of every shape, small and written down: what tests of report formats need."""

from fractions import Fraction

from dfcompile.report.design.figures import (
    CorrectionSummary,
    DesignReport,
    DesignSummary,
    DramParts,
    KernelSummary,
    SearchSummary,
    StepSummary,
)
from dfcompile.report.figures import (
    AssumptionSummary,
    ExpansionsSummary,
    HintSummary,
    ModelSummary,
    Report,
    Result,
    ScheduleSummary,
    SimulationSummary,
    VerificationSummary,
)
from dfcompile.report.kernel_figures import KernelGroupSummary, RoofsSummary
from dfcompile.report.mapping_figures import (
    ConfigurationSummary,
    ExchangeSummary,
    IdealConfigurationSummary,
    IdealSummary,
    MappingSummary,
    PhaseSummary,
    TimePartsSummary,
)
from dfcompile.report.operator_figures import OperatorGapSummary
from dfcompile.report.report_format import AnyReport

HOSTILE = "conv|1\n\x1b[31m"  # a name that breaks lines and tables, and colours a terminal
ASSUMPTION = AssumptionSummary("cores", "16", "--pes")


def sample_reports() -> tuple[AnyReport, ...]:
    """Return a canonical DAG's report with a deadlock, one of a model with all parts and two results, a design's."""
    alone = Result(16, {}, _schedule(16, 1200), simulation=SimulationSummary(None, 3, 4, ("a waits for b",)))
    results = tuple(_result(pes, cycles) for pes, cycles in ((16, 1200), (128, 800)))
    dag = Report(ModelSummary("dag", 0, 0, 0, 0, 0), (alone,), (ASSUMPTION,))
    model = Report(ModelSummary(HOSTILE, 3, 3, 1, 1, 1), results, (ASSUMPTION,), (f"system {HOSTILE}: 100 GHz",))
    return dag, model, _design()


def _result(pes: int, cycles: int) -> Result:
    return Result(
        pes,
        {f"{HOSTILE}:MatMul": "mv"},
        _schedule(pes, cycles),
        ExpansionsSummary(
            500,
            Fraction(cycles, 500) - 1,
            (HintSummary((f"{HOSTILE}:MatMul=op",), 1, 700, 500),),
            (OperatorGapSummary(HOSTILE, 500 * pes, 100, 200, (cycles - 500) * pes - 300),),
        ),
        mapping=_mapping(),
        verification=VerificationSummary(1e-8, 2e-8, 0.5),
    )


def _schedule(pes: int, cycles: int) -> ScheduleSummary:
    return ScheduleSummary(
        partition="sb-rlx",
        timing="exact",
        barriers=True,
        makespan_cycles=cycles,
        non_streaming_makespan_cycles=1500,
        lower_bound_cycles=600,
        gap=Fraction(cycles, 600) - 1,
        total_work_cycles=3000,
        critical_path_cycles=700,
        streaming_depth_cycles=500,
        sslr=Fraction(cycles, 500),
        io_elements=64,
        io_bytes=256,
        spilled_elements=8,
        blocks=2,
        speedup=Fraction(3000, cycles),
        pe_utilization=Fraction(3000, cycles * pes),
        fifo_elements=9,
        tasks=20,
    )


def _mapping() -> MappingSummary:
    return MappingSummary(
        chips=1,
        chips_available=2,
        time_s=3e-6,
        bound_time_s=2e-6,
        ideal_time_s=1e-6,
        optimal=False,
        best_chain=True,
        gap=1 / 3,
        configs=2,
        dram_bytes=4096.0,
        sram_bytes=512,
        network_bytes=0.0,
        moved_bytes=0.0,
        cost_usd=12.5,
        power_w=1.5,
        energy_j=4.5e-6,
        utilization=0.25,
        parts=TimePartsSummary(1e-6, 1e-6, 2e-7, 3e-7, 0.0, 5e-7, 0.0),
        configurations=(
            ConfigurationSummary((HOSTILE,), 1e-6, 5e-7, 1e-6, 0.0, 4000, 512, "memory"),
            ConfigurationSummary(("a", "b", "c"), 2e-6, 2e-6, 1e-7, 0.0, 96, 64, "compute"),
        ),
        exchanges=(
            ExchangeSummary(HOSTILE, "a", ("b", "c"), "all-gather", (0,), "split by axis 0", "whole", 64, 192, 1e-7),
        ),
        phases=(PhaseSummary(0, 0, 500, 3), PhaseSummary(1, 500, 2500, 4)),
        kernels=(
            KernelGroupSummary((HOSTILE, "b"), 2, "MatMul", 4000, 64, 512, 16.0, 1e-6, 1e-6, 2e-9, 0.0, "compute"),
        ),
        roofs=RoofsSummary(4e9, 300e9, 0.0),
        ideal=IdealSummary(
            chips=2,
            configs=1,
            optimal=True,
            gap=0.0,
            bound_time_s=1e-6,
            dram_bytes=4096.0,
            network_bytes=64.0,
            solver="dp",
            solver_s=0.01,
            configurations=(IdealConfigurationSummary((HOSTILE, "a", "b", "c"), 1e-6, "memory"),),
        ),
    )


def _design() -> DesignReport:
    figures = DesignSummary(
        chips=8,
        tensor_parallel=4,
        pipeline_parallel=2,
        data_parallel=1,
        sequence_parallel=1,
        micro_batch=1,
        tiles=4,
        time_s=0.5,
        step_s=0.01,
        latency_s=0.2,
        utilization=0.3,
        flop=1e15,
        cost_usd=1e5,
        power_w=4000.0,
        energy_j=2000.0,
        sram_capacity_bytes=0.0,
        dram_bytes=1e9,
        dram_capacity_bytes=4e9,
        chip_flop_per_s=4e9,
        dram_bytes_per_s=3e11,
        dram_parts_bytes=DramParts(8e8, 0.0, 0.0, 2e8, 0.0, 0.0),
        dram_traffic_bytes=1e12,
        network_traffic_bytes=1e10,
        sharding_bytes=1e8,
    )
    step = StepSummary(0, 0, (HOSTILE, "b", "c"), 0.01, 0.01, 0.005, 0.001, "compute", 1e6, 1)
    return DesignReport(
        name=HOSTILE,
        figures=figures,
        search=SearchSummary(
            optimal=False, gap=0.1, bound_time_s=0.45, solver="intervals", solver_s=0.2, points=12, fused_points=3
        ),
        configurations=(step,),
        kernels=(KernelSummary(HOSTILE, 0, "M", 16, 8, 8, "", 2048.0, 512.0, 1e-6, "memory"),),
        placements=(),
        corrections=(CorrectionSummary("network-is-sum", "a sum", True, "time (s)", 0.5, 0.6),),  # noqa: FBT003  # a record
        assumptions=(ASSUMPTION,),
    )
