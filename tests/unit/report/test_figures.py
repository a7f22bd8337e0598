"""The report keeps its JSON contract, and its tables say what the JSON says."""

import csv
import json
from fractions import Fraction

import jsonschema
import pytest

from dfcompile.records import replace
from dfcompile.report.figure import filled
from dfcompile.report.figures import (
    AssumptionSummary,
    ModelSummary,
    Report,
    Result,
    ScheduleSummary,
    VerificationSummary,
    report_schema,
)
from dfcompile.report.mapping_figures import (
    ConfigurationSummary,
    IdealSummary,
    KernelGroupSummary,
    MappingSummary,
    PerfectStreamsSummary,
    PhaseSummary,
    RoofsSummary,
    StreamsConfigurationSummary,
    TimePartsSummary,
)
from dfcompile.report.plain_values import report_rows, rounded, rows_csv, to_json, to_record
from dfcompile.report.tables import report_table
from tests.report_schemas import validate

SCHEDULE = filled(
    ScheduleSummary,
    partition="sb-rlx",
    timing="exact",
    barriers=True,
    makespan_cycles=145_730,
    non_streaming_makespan_cycles=149_184,
    lower_bound_cycles=140_000,
    gap=Fraction(5730, 140_000),
    total_work_cycles=2_015_424,
    critical_path_cycles=38_000,
    streaming_depth_cycles=21_000,
    sslr=Fraction(145_730, 21_000),
    io_elements=129_474,
    io_bytes=517_896,
    spilled_elements=3_456,
    blocks=37,
    speedup=Fraction(1, 3),
    pe_utilization=Fraction(1, 48),
    fifo_elements=581,
    tasks=582,
)


def configuration(kernels: tuple[str, ...], time_s: float, bound_by: str) -> ConfigurationSummary:
    return ConfigurationSummary(kernels, time_s, time_s, time_s, 0.0, 4096, 512, bound_by)


CONFIGURATION = configuration(("conv1.im2col", "conv1.matmul", "conv1.bias"), 0.3, "memory")
KERNEL = KernelGroupSummary(
    kernels=("conv1.matmul", "conv2.matmul"),
    count=2,
    op="MatMul",
    flop=172_800,
    dram_bytes=4096,
    chip_bytes=8192,
    network_bytes=0.0,
    time_s=0.2,
    compute_s=0.2,
    memory_s=0.1,
    network_s=0.0,
    bound_by="compute",
)
MAPPING = MappingSummary(
    machine="canonical",
    chips=1,
    chips_available=1,
    time_s=0.1 + 0.2,
    bound_time_s=0.3,
    ideal_time_s=0.2,
    optimal=True,
    best_chain=True,
    gap=0.0,
    configs=1,
    dram_bytes=4096.0,
    sram_bytes=512,
    network_bytes=0.0,
    moved_bytes=0.0,
    cost_usd=12.5,
    power_w=1.5,
    energy_j=0.45,
    utilization=0.25,
    parts=TimePartsSummary(0.1, 0.05, 0.05, 0.05, 0.03, 0.02, 0.0),
    configurations=(CONFIGURATION,),
    exchanges=(),
    phases=(PhaseSummary(0, 0, 145730, 582),),
    kernels=(KERNEL,),
    roofs=RoofsSummary(32e9, 300e9, 0.0),
    ideal=IdealSummary("memory", 0.1, 0.2, 0.01),
    perfect_streams=PerfectStreamsSummary(
        time_s=0.25,
        chips=1,
        configs=1,
        optimal=True,
        gap=0.0,
        bound_time_s=0.2,
        dram_bytes=4096.0,
        network_bytes=0.0,
        solver="dp",
        solver_s=0.012345,
        configurations=(StreamsConfigurationSummary(("conv1.matmul",), 0.2, "memory"),),
    ),
)
RESULT = Result(16, {"MatMul": "mv"}, 300_000_000, SCHEDULE, mapping=MAPPING)
REPORT = Report(
    ModelSummary("lenet", nodes=13, nodes_costed=13, nodes_as_tasks=11, nodes_as_views=1, nodes_folded=1),
    (RESULT,),
    (AssumptionSummary("accelerator.frequency_ghz", "1", "dematteis23"),),
)


def render(report: Report, form: str, width: int) -> str:
    return rows_csv(report_rows(report)) if form == "csv" else report_table(report, width)


def faster(result: Result, makespan_cycles: int, **expansions: str) -> Result:
    schedule = replace(result.schedule, makespan_cycles=makespan_cycles)
    return replace(result, expansions=expansions, makespan_cycles=makespan_cycles, schedule=schedule)


def test_json_follows_the_schema_that_is_shipped() -> None:
    verified = replace(
        REPORT,
        results=(replace(RESULT, verification=VerificationSummary(1e-8, 2e-8, 0.5)), replace(RESULT, mapping=None)),
    )

    validate(to_record(REPORT), report_schema)
    validate(to_record(verified), report_schema)


def test_schema_refuses_what_the_contract_does_not_know() -> None:
    record = to_record(REPORT)
    record["made_up"] = 1

    with pytest.raises(jsonschema.ValidationError, match="made_up"):
        validate(record, report_schema)


def test_json_names_of_the_contract() -> None:
    record = json.loads(to_json(REPORT))
    result = record["results"][0]

    assert (list(record), record["format"]) == (["format", "model", "results", "assumptions"], "dfcompile-report/4")
    assert list(result) == ["pes", "expansions", "makespan_cycles", "schedule", "mapping"]
    assert record["model"]["nodes_costed"] == record["model"]["nodes"] == 13


def test_numbers_have_no_float_noise() -> None:
    result = json.loads(to_json(REPORT))["results"][0]

    assert (result["mapping"]["time_s"], result["schedule"]["speedup"]) == (0.3, 0.333333333333)


@pytest.mark.parametrize(
    ("value", "expected"), [(7, 7), (4096.0, 4096), (Fraction(2, 3), 0.666666666667), (1e-300, 1e-300), (1e300, 1e300)]
)
def test_one_rule_rounds_all_figures(value: float | Fraction, expected: float) -> None:
    assert rounded(value) == expected


def test_figure_that_is_no_number_is_refused() -> None:
    broken = replace(REPORT, results=(replace(RESULT, mapping=replace(MAPPING, time_s=float("nan"))),))

    with pytest.raises(ValueError, match="Out of range float values"):
        to_json(broken)


def test_only_the_seconds_of_the_solver_differ_between_runs() -> None:
    again = replace(
        REPORT,
        results=(
            replace(RESULT, mapping=replace(MAPPING, perfect_streams=replace(MAPPING.perfect_streams, solver_s=7.0))),
        ),
    )
    lines = zip(to_json(REPORT).splitlines(), to_json(again).splitlines(), strict=True)

    assert [left.strip() for left, right in lines if left != right] == ['"solver_s": 0.012,']


def test_best_is_the_least_makespan_of_each_number_of_pes() -> None:
    results = (
        faster(RESULT, 30, MatMul="mv"),
        faster(RESULT, 20, MatMul="op"),
        faster(RESULT, 20, MatMul="ip"),
        replace(faster(RESULT, 10, MatMul="mv"), pes=128),
    )
    best = replace(REPORT, results=results).best

    assert {pes: result.expansions["MatMul"] for pes, result in best.items()} == {16: "op", 128: "mv"}


def test_csv_has_one_row_per_result_with_units_in_the_headings() -> None:
    report = replace(REPORT, results=(RESULT, faster(RESULT, 7, MatMul="op")))
    rows = list(csv.DictReader(render(report, "csv", 120).splitlines()))

    assert [(row["pes"], row["expansions"], row["makespan_cycles"]) for row in rows] == [
        ("16", "MatMul=mv", "300000000"),
        ("16", "MatMul=op", "7"),
    ]
    assert {"time_s", "dram_bytes", "cost_usd", "power_w", "energy_j", "mapping_gap", "mapping_utilization"} <= set(
        rows[0]
    )


def test_table_shows_figures_coverage_bounds_and_assumptions() -> None:
    text = render(REPORT, "table", width=120)

    for expected in (
        "145,730",
        "149,184",
        "517,896",
        "11 of 11 operators lowered; on the canonical machine 16 PEs take 300.0 ms",
        "conv1.im2col … conv1.bias (3)",
        "memory",
        "optimal",
        "accelerator.frequency_ghz",
    ):
        assert expected in text
    assert max(map(len, text.splitlines())) <= 120


def test_table_marks_the_best_expansion_of_each_number_of_pes() -> None:
    slow, fast = faster(RESULT, 30, MatMul="mv"), faster(RESULT, 20, MatMul="op")
    text = render(replace(REPORT, results=(slow, fast)), "table", width=120)

    marked = [line.split() for line in text.splitlines() if " * " in line]
    assert [words[:3] for words in marked[1:]] == [["16", "*", "op"]] * 4  # schedule, bounds, mapping, time
    assert marked[0][:3] == ["16", "*", "MatMul=op"]


def test_table_says_what_was_verified() -> None:
    def text(effect: float | None) -> str:
        verified = replace(RESULT, verification=VerificationSummary(3.2e-8, 1.6e-8, effect))
        return " ".join(render(replace(REPORT, results=(verified,)), "table", width=200).split())

    assert "verified: error 3.2e-08 at most, 1.6e-08 of the largest value (reference: the original)" in text(0.5)
    assert "hardly depend" not in text(0.5) + text(None)
    assert "hardly depend on inputs: other inputs change them by 2e-07 of the largest value" in text(2e-7)


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_narrow_terminal_folds_texts_and_adds_tables_but_cuts_no_number_and_no_name(width: int) -> None:
    huge = replace(SCHEDULE, makespan_cycles=10**12, io_elements=10**13, io_bytes=4 * 10**13)
    results = (faster(RESULT, 30, MatMul="mv"), replace(RESULT, expansions={"MatMul": "x" * 90}, schedule=huge))
    text = render(replace(REPORT, results=results), "table", width)

    for number in ("1,000,000,000,000", "10,000,000,000,000", "40,000,000,000,000"):
        assert number in text
    assert "x" * 90 in text  # a name is to be copied: it stays whole, however narrow the terminal
    assert all(len(line) <= width for line in text.splitlines() if "x" * 90 not in line)


def test_configurations_that_expansions_share_are_listed_once() -> None:
    other = replace(MAPPING, configurations=(configuration(("conv1.matmul",), 0.3, "compute"),))
    results = (
        faster(RESULT, 30, MatMul="mv"),
        faster(RESULT, 20, MatMul="op"),
        replace(faster(RESULT, 20, MatMul="ip"), mapping=other),
        replace(faster(RESULT, 20, MatMul="mv"), pes=128),
    )
    text = render(replace(REPORT, results=results), "table", width=120)

    listed = text[text.index("configurations") :].splitlines()
    assert sum("conv1.im2col … conv1.bias (3)" in line for line in listed) == 2
    assert any("MatMul=mv, MatMul=op" in line for line in listed)
    assert any(line.split()[:2] == ["128", "all"] for line in listed)


def test_of_many_configurations_the_slowest_are_shown_and_the_others_summed() -> None:
    times_s = [1e-6 * (number % 7 + 1) for number in range(40)]
    configurations = tuple(
        configuration((f"kernel{number}",), time_s, "compute") for number, time_s in enumerate(times_s)
    )
    many = replace(RESULT, mapping=replace(MAPPING, configurations=configurations))
    text = render(replace(REPORT, results=(many,)), "table", width=120)

    rows = [line for line in text.splitlines() if "kernel" in line and "kernels" not in line]
    (others,) = [line.split() for line in text.splitlines() if "29 more" in line]
    assert len(rows) == 11
    assert "kernel6" in text  # one of the slowest
    assert "kernel7 " not in text  # one of the fastest
    assert others[:3] + others[4:] == ["16", "29", "more", f"{29 * 4096:,}", "512", "compute", "29", "kernels"]
    assert float(others[3]) == pytest.approx(1e6 * (sum(times_s) - sum(sorted(times_s)[-11:])))
