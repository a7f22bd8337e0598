"""What pages say: answers with the figures of the JSON, charts with all of its marks."""

import pytest

from dfcompile.page.phrases import quantity, share
from dfcompile.page.records import Record
from dfcompile.page.view import ChartKind, is_wide
from dfcompile.page.views import kind_of, view_of
from dfcompile.page.views.configurations import limit_reasons
from dfcompile.report.plain_values import Json
from tests.unit.page.reports import (
    bounds_report,
    exploration_report,
    language_model_report,
    model_report,
    result,
    sharded_report,
    swept_report,
)


def test_a_line_per_lowering_and_a_mark_per_result() -> None:
    charts = {chart.title: chart for chart in view_of(Record(swept_report((16, 32, 64)))).charts}

    lines = charts["Makespan against processing elements"]
    assert [(mark.x, mark.y, mark.series) for mark in lines.marks] == [
        (16, 4050, "MatMul=mv"), (16, 3750, "MatMul=ip"), (32, 2175, "MatMul=mv"), (32, 1875, "MatMul=ip"),
        (64, 1237, "MatMul=mv"), (64, 937, "MatMul=ip"),
    ]  # fmt: skip
    assert [mark.is_chosen for mark in lines.marks] == [False, False, False, False, False, True]
    assert "FIFOs against processing elements" not in charts  # the same everywhere
    brackets = [chart for chart in charts.values() if chart.kind is ChartKind.BRACKET]
    assert {mark.series for chart in brackets for mark in chart.marks} == {
        "proved bound", "ideal", "attained", "bound over all expansions"
    }  # fmt: skip


def test_results_are_a_table_in_one_unit_a_column_with_the_best_marked() -> None:
    table, configurations = view_of(Record(model_report())).tables

    assert [column.heading for column in table.columns] == [
        "PEs", "lowering", "makespan, cycles", "time, µs", "above bound, %", "I/O, kB", "FIFOs, elements", "cost, USD",
        "PEs busy, %",
    ]  # fmt: skip
    assert table.best == 3
    assert table.rows[3] == ("64", "MatMul=ip", "3,750", "3.75", "1.0", "4.06", "77", "308.00", "50.0")
    assert [column.heading for column in configurations.columns[:3]] == ["configuration", "time, µs", "compute, µs"]
    many = view_of(Record(swept_report(tuple(range(1, 41))))).tables[0]
    assert many.title == "The 16 shortest of 80 results"
    assert len(many.rows) == 16


def test_what_was_chosen_is_options_to_paste_and_no_part_of_the_answer() -> None:
    rules: list[Json] = [f"op{at}:MatMul=split-k{{parts={at}}}" for at in range(20)]
    chosen: Json = {
        "is_taken": True, "expand": rules, "granularity": ["pieces=16"], "published_cycles": 9000, "estimated_cycles": 1
    }  # fmt: skip
    expansions: Json = {"MatMul": "+".join(f"split-k{{parts={at}}}" for at in range(20))}
    results: list[Json] = [{**result(4, 3000, {}), "expansions": expansions, "automatic": chosen}]

    view = view_of(Record({**model_report(), "results": results}))
    assert view.answer == "4 PEs take 3,000 cycles (3.00 µs), 1.0 % above the proved bound; 4.00 kB I/O; 300 USD."
    ((name, options),) = view.options
    assert name == "what was chosen for 4 PEs"
    assert options.startswith("--pes 4 --expand op0:MatMul=split-k{parts=0} --expand op1:")
    assert options.endswith("--expand op19:MatMul=split-k{parts=19} --granularity pieces=16")
    assert (
        "Expansions and tasks were chosen for 4 PEs; published ones would take about 9,000 cycles, 3 times as many."
        in view.reasons
    )


def test_what_operators_are_lowered_to_is_the_first_reason_and_no_part_of_the_answer() -> None:
    lowerings: Json = [{"operators": ["fc1", "fc2"], "expansions": {"MatMul": "ip"}, "work_cycles": 900}]
    found = result(4, 3000, {})
    schedule = found["schedule"]
    assert isinstance(schedule, dict)
    results: list[Json] = [{**found, "lowerings": lowerings, "schedule": {**schedule, "total_work_cycles": 1000}}]

    view = view_of(Record({**model_report(), "results": results}))

    assert view.reasons[0] == "Lowering: MatMul=ip in fc1 and fc2 (90 % of the work)."
    assert "fc1" not in view.answer


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


def test_a_language_model_says_what_limits_its_kernels_and_which_take_longest() -> None:
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
        "kernels": kernels, "assumptions": ["prefills are not counted"],
    }  # fmt: skip

    view = view_of(Record({"format": "dfcompile-language-model/1", "steps": [step]}))
    assert view.answer == "decode takes 84 s on 4 chips; prefills are not counted."
    assert view.reasons == (
        (
            "decode: what limits its kernels, by their time: memory 81.0 %, compute 19.0 %; the longest are "
            "ffn (76.2 %), qkv (19.0 %), head (4.8 %)."
        ),
        "decode: tp=4 is the best of 6 ways to share the model among chips; 1 of them do not fit.",
    )


def test_what_the_time_of_a_step_rests_on_is_said_even_where_the_answer_has_no_room() -> None:
    rest = "a sentence that is rather long, so that " * 4
    step: Json = {"step": "decode", "chips": 4, "time_s": 84.0, "assumptions": [rest]}

    view = view_of(Record({"format": "dfcompile-language-model/1", "steps": [step]}))
    assert view.answer == "decode takes 84 s on 4 chips."
    assert view.reasons == (f"decode: {rest}.",)


def test_the_time_of_a_step_is_stacked_by_kernel_with_exchanges_and_what_is_left() -> None:
    report = language_model_report(2)
    steps: list[Json] = [
        {**step.values, "time_s": 2 * (step.number("time_s") or 0)} for step in Record(report).parts("steps")
    ]

    for scale, told in ((1, report), (2, {**report, "steps": steps})):
        chart = next(chart for chart in view_of(Record(told)).charts if chart.kind is ChartKind.ROWS)
        first = {mark.series: mark.y for mark in chart.marks if mark.x.startswith("decode 0: ")}  # type: ignore[union-attr]
        time = 32e-6 * 21 + 1e-4
        assert first["kernel5"] == pytest.approx(100 * 32e-6 * 6 / time / scale, rel=1e-3)
        assert first["exchanges between chips"] == pytest.approx(100 * 1e-4 / time / scale, rel=1e-3)
        assert ("waiting and the rest" in first) is (scale == 2)
        assert sum(first.values()) == pytest.approx(100, rel=1e-3)
        assert "store" not in first  # runs beside others


def test_the_memory_of_a_chip_is_weights_caches_and_what_is_left() -> None:
    chart = next(
        chart for chart in view_of(Record(language_model_report(1))).charts if chart.title == "Memory of a chip"
    )

    assert [(mark.series, mark.y) for mark in chart.marks] == [
        ("weights", 8 * 10**9), ("caches", 10**9 // 3), ("the rest", 8 * 10**10 - 8 * 10**9 - 10**9 // 3)
    ]  # fmt: skip


def test_a_deadlock_is_said_and_is_never_the_best() -> None:
    report = Record(model_report())
    results = report.parts("results")
    deadlock: Json = {"partition": "best", "makespan_cycles": None}
    dead: list[Json] = [{**result.values, "makespan_cycles": None, "schedule": deadlock} for result in results]

    some = view_of(Record({**report.values, "results": [dead[3], dict(results[0].values)]}))
    none = view_of(Record({**report.values, "results": dead}))
    assert some.answer.startswith("16 PEs with MatMul=mv take 9,000 cycles")
    told = view_of(
        Record({**report.values, "results": [{"pes": 4, "simulation": {"deadlock": ["'a' waits for 'b'"]}}]})
    )
    assert told.reasons == ("Deadlock: 'a' waits for 'b'.",)
    assert none.answer == "Every schedule stops for ever: FIFOs are too small (deadlock)."


def test_an_exploration_says_the_fastest_and_the_leanest_of_its_points() -> None:
    view = view_of(Record(exploration_report(300)))

    assert view.answer == (
        "300 points: 44 PEs with 3 KiB are fastest (970,100 cycles); 1 PE with 1 KiB moves the least (1.00 kB)."
    )
    assert view.tables[0].rows[0] == ("44", "3 KiB", "970,100", "3.09", "309", "1")
    assert view.tables[0].best == 0
    assert all(len(chart.marks) == 300 for chart in view.charts)
    assert [chart.title for chart in view.charts] == [
        "Makespan against I/O", "Makespan against area", "I/O against area"
    ]  # fmt: skip
    asked: dict[str, Json] = {**exploration_report(300), "objectives": ["io", "makespan"]}
    assert [chart.title for chart in view_of(Record(asked)).charts] == ["Makespan against I/O"]


def points(*figures: tuple[int, int, int]) -> dict[str, Json]:
    front: list[Json] = [
        {"pes": pes, "area_pes": 24, "makespan_cycles": cycles, "io_bytes": moved, "expansions": "MatMul=mv"}
        for pes, cycles, moved in figures
    ]
    return {**exploration_report(1), "front": front}


@pytest.mark.parametrize(
    ("front", "answer"),
    [
        (((4, 90, 7), (2, 99, 7)), "2 points: 4 PEs are fastest (90 cycles); all have the same I/O (7 B)."),
        (((4, 90, 7), (2, 99, 8)), "2 points: 4 PEs are fastest (90 cycles) and move the least (7 B)."),
        (((4, 90, 9), (8, 90, 7), (2, 99, 7)), "3 points: 8 PEs are fastest (90 cycles) and move the least (7 B)."),
        (((4, 90, 9), (2, 99, 8)), "2 points: 4 PEs are fastest (90 cycles); 2 PEs move the least (8 B)."),
        (((1, 90, 9),), "One point is best in everything: 1 PE is fastest (90 cycles), 9 B I/O."),
        ((), "None was found."),
    ],
)
def test_ties_of_an_exploration_are_told_right(front: tuple[tuple[int, int, int], ...], answer: str) -> None:
    view = view_of(Record(points(*front)))

    assert view.answer == answer
    assert ("All points have the same area." in view.reasons) is (len(front) > 1)


def test_an_answer_is_about_the_objectives_that_were_asked_for() -> None:
    report = points((4, 90, 9), (2, 99, 8))
    front: list[Json] = [
        {**point.values, "cost_usd": cost}
        for point, cost in zip(Record(report).parts("front"), (300.0, 200.0), strict=True)
    ]

    for objectives, answer in (
        (("makespan", "cost"), "2 points: 4 PEs are fastest (90 cycles); 2 PEs cost the least (200 USD)."),
        (("cost",), "2 points: 2 PEs cost the least (200 USD)."),
    ):
        assert view_of(Record({**report, "front": front, "objectives": list(objectives)})).answer == answer


def test_an_exploration_says_what_is_proved_and_how_many_candidates_there_are() -> None:
    reasons = view_of(Record(exploration_report(4))).reasons

    assert reasons == (
        (
            "162 candidates: 81 combinations of expansions × 2 numbers of PEs, each with 2 sizes of memory; 18 were "
            "scheduled."
        ),
        (
            "Not proved: bounds do not exclude 3 of the 162 candidates; one of them may be better than some point in "
            "everything, by at most 2.0 % (40 tries made; --tries N makes more)."
        ),
        (
            "Hint: only tasks as declared were looked at; in pieces about 3,000 cycles on 16 PEs instead of 9,000: "
            "--granularity declared --granularity pieces=64"
        ),
    )
    proved = view_of(Record({**exploration_report(4), "gap": 0})).reasons
    assert "Proved: no candidate is as good as one of these points in everything and better in something." in proved


def test_a_lowering_of_an_exploration_is_its_differences_and_options_to_paste() -> None:
    view = view_of(Record(exploration_report(2)))

    _, lowerings = view.tables
    assert lowerings.rows == (("conv1:Conv", "im2col", "-"), ("conv0:Conv", "-", "im2col"))
    assert view.options == (
        ("lowering 1", "--pes 2 --expand MatMul=mv --expand Conv=direct --expand conv1:Conv=im2col"),
        ("lowering 2", "--pes 1 --expand MatMul=mv --expand Conv=direct --expand conv0:Conv=im2col"),
    )


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
    moved, rate = view_of(Record({**bounds_report(1), "sram_bytes": 2000})).charts

    least, most = 1000 + 2**20 // 2**15, 1000 + 2**21 // 16
    assert [(guide.label, guide.x, guide.y) for guide in moved.guides] == [
        ("SRAM 2.00 kB", (2000, 2000), (least, most))
    ]  # fmt: skip
    assert [guide.x for guide in rate.guides] == [(2000, 2000)]
    assert all(chart.guides == () for chart in view_of(Record(bounds_report(1))).charts)


def test_bounds_show_what_is_proved_beside_the_best_tiling_of_every_shape() -> None:
    view = view_of(Record(bounds_report(2)))

    assert view.answer == (
        "At least 1.00 kB move for gemm 0,0,0 (buffer of 1.05 MB) and 2.00 kB for gemm 1,1,1 (buffer of 1.05 MB); "
        "smaller buffers move more."
    )
    moved, rate = view.charts
    for chart in view.charts:
        assert chart.dashed == (("gemm 0,0,0, proved", "gemm 0,0,0"), ("gemm 1,1,1, proved", "gemm 1,1,1"))
        assert {mark.series for mark in chart.marks} == {name for pair in chart.dashed for name in pair}
    proved = {mark.x: mark.y for mark in moved.marks if mark.series == "gemm 1,1,1, proved"}
    assert proved == {2 ** (4 + at): 2000 + 2**16 // 2**at for at in range(12)}
    tiling = {mark.x: mark.y for mark in moved.marks if mark.series == "gemm 1,1,1"}
    assert all(tiling[size] >= proved[size] for size in proved if size in tiling)
    first = next(mark for mark in rate.marks if mark.series == "gemm 0,0,0")
    assert first.y == pytest.approx(10**6 / (1000 + 2**21 // 16), rel=1e-3)
    assert not [column for table in view.tables for column in table.columns if "curve" in column.heading]


def test_what_is_proved_of_a_fused_chain_is_one_line() -> None:
    report = bounds_report(1)
    rows = Record(report).parts("operators")
    fusions: list[Json] = [
        {**row.values, "operator": "chain", "type": kind} for kind in ("unfused", "flash") for row in rows
    ]
    curve = Record(report).parts("curves")[0].values
    curves: list[Json] = [{**curve, "name": kind} for kind in ("unfused", "flash")]

    whole: list[Json] = [dict(row.values) for row in rows]
    for told in ({**report, "fusions": fusions}, {**report, "whole": whole}):
        view = view_of(Record({**told, "curves": curves}))
        assert view.charts[0].dashed == (("proved", "proved"),)
        assert len([mark for mark in view.charts[0].marks if mark.series == "proved"]) == 12


def test_kernels_of_a_design_say_which_dimension_is_split() -> None:
    kernels = [
        {"name": name, "configuration": 1, "sharding": split, "exchange": ""} for name, split in ("qO", "s-", "tM")
    ]
    report = {"format": "dfcompile-design/1", "name": "gpt", "figures": {"tensor_parallel": 8}, "kernels": kernels}

    (chart,) = view_of(Record({**report})).charts  # type: ignore[dict-item]  # lists of one type
    assert [(mark.row, mark.series) for mark in chart.marks] == [
        ("1 · q", "dimension O"), ("1 · s", "whole"), ("1 · t", "dimension M")
    ]  # fmt: skip
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


def test_what_limits_a_result_is_said_by_its_share_of_the_time() -> None:
    one, two = (Record({"bound_by": name, "time_s": time}) for name, time in (("memory", 3.0), ("compute", 1.0)))

    assert list(limit_reasons([one])) == ["Limited by memory all the time."]
    assert list(limit_reasons([two, one])) == ["Limited by memory for 75.0 % of the time, by compute for 25.0 %."]
    assert list(limit_reasons([Record({"bound_by": "memory", "time_s": 0})])) == []


def test_a_lowering_that_takes_a_few_cycles_more_says_how_many() -> None:
    results: list[Json] = [result(64, cycles, {"MatMul": name}) for name, cycles in (("ip", 37_591), ("mv", 37_594))]

    assert (
        "On 64 PEs, beside MatMul=ip: MatMul=mv takes 3 cycles longer, moves as much."
        in view_of(Record({**model_report(), "results": results})).reasons
    )
