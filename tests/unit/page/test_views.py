"""What pages say: answers with the figures of the JSON, charts with all of its marks."""

import pytest

from dfcompile.page.phrases import quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import ChartKind, is_wide
from dfcompile.page.views import kind_of, view_of
from dfcompile.report.plain_values import Json
from tests.unit.page.reports import exploration_report, model_report, sharded_report


def test_a_line_per_choice_of_expansions_and_a_mark_per_result() -> None:
    charts = {chart.title: chart for chart in view_of(Record(model_report())).charts}

    lines = charts["Makespan against processing elements"]
    assert [(mark.x, mark.y, mark.series) for mark in lines.marks] == [
        (16, 9000, "MatMul=mv"), (16, 7000, "MatMul=ip"), (64, 4100, "MatMul=mv"), (64, 3750, "MatMul=ip")
    ]  # fmt: skip
    assert [mark.is_chosen for mark in lines.marks] == [False, False, False, True]
    assert "FIFOs against processing elements" not in charts  # the same everywhere
    brackets = [chart for chart in charts.values() if chart.kind is ChartKind.BRACKET]
    assert {mark.series for chart in brackets for mark in chart.marks} == {
        "proved bound", "ideal", "attained", "bound over all expansions"
    }  # fmt: skip


def test_why_the_best_is_best_and_what_may_be_better_is_said_with_the_figures_of_the_json() -> None:
    report = Record(model_report())
    hint: Json = {
        "expand": ["a:Conv=fft", "b:Conv=fft", "c:Conv=fft"], "chosen_bound_cycles": 3000, "hinted_bound_cycles": 1125
    }  # fmt: skip
    results: list[Json] = [dict(result.values) for result in report.parts("results")]
    best = Record(dict(report.parts("results")[3].values))
    beside: dict[str, Json] = {**best.part("over_expansions").values, "hints": [hint]}
    results[3] = {**best.values, "over_expansions": beside, "automatic": {"estimated_cycles": 375, "is_taken": False}}
    slow = report.parts("results")[2].values
    results[2] = {**slow, "pes": 32, "makespan_cycles": 4000, "mapping": {"cost_usd": 300}}
    results.append({**slow})

    reasons = view_of(Record({**report.values, "results": results})).reasons
    assert reasons[2:] == (
        "On 64 PEs, beside MatMul=ip: MatMul=mv takes 9.3 % longer, moves as much.",
        "MatMul=ip is the shortest on 2 of 3 numbers of PEs; else MatMul=mv on 32.",
        "32 PEs with MatMul=mv are nearly as fast: 4,000 cycles, 6.7 % longer, and cost 300 USD instead of 308.",
        "Most PE cycles go to conv1 (100 %); 29.4 % of all are idle, PEs without a task while others run.",
        (
            "--expand a:Conv=fft b:Conv=fft and 1 more rules (in the table of hints): the bound of these operators "
            "falls from 3,000 cycles to 1,125 cycles, 50.0 % of the makespan."
        ),
        (
            "--expand auto, which chooses expansions and tasks for each operator, is estimated at 375 cycles: 10 times "
            "fewer."
        ),
    )


def test_a_language_model_says_what_bounds_its_kernels_and_which_take_longest() -> None:
    kernels: list[Json] = [
        {"name": name, "count": count, "time_s": time, "bound": bound}
        for name, count, time, bound in (
            ("ffn", 32, 2.0, "Memory"),
            ("qkv", 32, 0.5, "Compute"),
            ("head", 1, 4, "Memory"),
        )
    ]
    step: Json = {
        "step": "decode", "chips": 4, "time_s": 84.0, "degrees": "tp=4", "degrees_tried": 6, "degrees_infeasible": 1,
        "kernels": kernels,
    }  # fmt: skip

    reasons = view_of(Record({"format": "dfcompile-language-model/1", "steps": [step]})).reasons
    assert reasons == (
        (
            "decode: of the time of kernels, by what bounds them: memory 81.0 %, compute 19.0 %; the longest are "
            "ffn (76.2 %), qkv (19.0 %), head (4.8 %)."
        ),
        "decode: tp=4 is the best of 6 ways to share the model among chips; 1 of them do not fit.",
    )


def test_a_deadlock_is_said_and_is_never_the_best() -> None:
    report = Record(model_report())
    results = report.parts("results")
    deadlock: Json = {"partition": "best", "makespan_cycles": None}
    dead: list[Json] = [{**result.values, "makespan_cycles": None, "schedule": deadlock} for result in results]

    some = view_of(Record({**report.values, "results": [dead[3], dict(results[0].values)]}))
    none = view_of(Record({**report.values, "results": dead}))
    assert some.answer.startswith("16 PEs with MatMul=mv Conv=im2col: 9,000 cycles")
    told = view_of(
        Record({**report.values, "results": [{"pes": 4, "simulation": {"deadlock": ["'a' waits for 'b'"]}}]})
    )
    assert told.reasons == ("Deadlock: 'a' waits for 'b'.",)
    assert none.answer == "Every schedule stops for ever: FIFOs are too small (deadlock)."


def test_an_exploration_says_the_shortest_and_the_leanest_of_its_points() -> None:
    view = view_of(Record(exploration_report(300)))

    assert view.answer.startswith("300 points: 44 PEs with MatMul=mv Conv=direct conv5:Conv=im2col (970,100 cycles")
    assert (
        "1 PEs with MatMul=mv Conv=direct conv0:Conv=im2col (1,000,000 cycles, 1.00 kB) moves the least" in view.answer
    )
    assert all(len(chart.marks) == 300 for chart in view.charts)
    assert [chart.title for chart in view.charts] == [
        "Makespan against I/O", "Makespan against area", "I/O against area"
    ]  # fmt: skip
    asked: dict[str, Json] = {**exploration_report(300), "objectives": ["io", "makespan"]}
    assert [chart.title for chart in view_of(Record(asked)).charts] == ["Makespan against I/O"]


def test_a_cell_for_each_array_of_a_kernel_says_which_axis_is_split_over_how_many_chips() -> None:
    (chart,) = (chart for chart in view_of(Record(sharded_report())).charts if chart.kind is ChartKind.GRID)

    assert [(mark.row, mark.x, mark.series, mark.label) for mark in chart.marks] == [
        ("0 · qkv", "reads 1", "axis 0",
         "x: split by axis 0 over 4 chips; whole on 2 chips; 1,024 of 4,096 elements on a chip"),
        ("0 · qkv", "reads 2", "whole", "w: whole on 4 chips; whole on 2 chips; 4,096 of 4,096 elements on a chip"),
        ("0 · qkv", "writes 1", "axis 0 and partial",
         ("y: split by axis 0 over 4 chips; partial over k, to be combined by sum over 2 chips; "
          "1,024 of 4,096 elements on a chip")),
    ]  # fmt: skip
    assert not [chart for chart in view_of(Record(model_report())).charts if chart.kind is ChartKind.GRID]


def test_ski_slopes_have_the_sram_of_the_chip_as_a_line() -> None:
    curve: Json = {"name": "gemm", "buffer_bytes": [16, 64], "traffic_bytes": [4000, 1000]}
    report: dict[str, Json] = {"schema": "dfcompile-bounds/1", "subject": "gemm", "curves": [curve], "sram_bytes": 2000}

    (chart,) = view_of(Record(report)).charts
    assert [(guide.label, guide.x, guide.y) for guide in chart.guides] == [("SRAM 2.00 kB", (2000, 2000), (1000, 4000))]
    (chart,) = view_of(Record({**report, "sram_bytes": None})).charts
    assert chart.guides == ()


def test_kernels_of_a_design_say_which_dimension_is_split() -> None:
    kernels = [{"name": name, "configuration": 1, "sharding": split, "exchange": ""} for name, split in ("qO", "s-")]
    report = {"format": "dfcompile-design/1", "name": "gpt", "figures": {"tensor_parallel": 8}, "kernels": kernels}

    (chart,) = view_of(Record({**report})).charts  # type: ignore[dict-item]  # lists of one type
    assert [(mark.row, mark.series) for mark in chart.marks] == [("1 · q", "dimension O"), ("1 · s", "whole")]
    alone = Record({**report, "figures": {"tensor_parallel": 1}})  # type: ignore[dict-item]  # lists of one type
    assert view_of(alone).charts == ()


@pytest.mark.parametrize(
    ("report", "kind"),
    [
        ({"format": "dfcompile-report/4"}, "dfcompile-report"),
        ({"schema": "dfcompile-bounds/1"}, "dfcompile-bounds"),
        ({"format": "dfcompile-language-model/1"}, "dfcompile-language-model"),
    ],
)
def test_a_report_says_its_kind(report: dict[str, str], kind: str) -> None:
    assert kind_of(Record(dict(report))) == kind


def test_figures_in_sentences() -> None:
    assert quantity(999.6, "B") == "1.00 kB"
    assert quantity(2e13, "B") == "20.0 TB"
    assert quantity(1e-12, "s") == "1e-12 s"
    assert share(float("inf")) == "without bound"
    assert is_wide((1.0, 6.0))
    assert not is_wide((0.0, 6.0))
    assert not is_wide(())
