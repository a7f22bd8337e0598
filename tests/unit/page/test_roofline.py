"""Rooflines have a dot per kernel, with the figures of the JSON, and lines that no dot is above."""

from math import inf

from dfcompile.page.records import Record
from dfcompile.page.view import Chart, Guide, Mark
from dfcompile.page.views import view_of
from dfcompile.page.views.roofline import design_roofline_charts, roof, roofline_charts
from dfcompile.report.plain_values import Json
from tests.unit.page.reports import kernel, model_report, sharded_report


def rooflines(report: dict[str, Json]) -> dict[str, Chart]:
    return {chart.title: chart for chart in view_of(Record(report)).charts if chart.title.startswith("Roofline")}


def test_a_dot_per_kernel_of_the_shortest_result() -> None:
    (chart,) = rooflines(model_report()).values()

    assert [(mark.x, mark.y, mark.series) for mark in chart.marks] == [
        (172800 / 4096, 172800 / 1.8479e-5, "compute"), (inf, 1e9, "compute"), (2.0, 2e9, "memory"),
        (0.25, 2.5e8, "memory"),
    ]  # fmt: skip
    assert [mark.label for mark in chart.marks] == [
        "conv1: 172,800 FLOP, 4,096 bytes of DRAM, 1.8479e-5 s",
        "conv1.relu, conv1.relu_1: 3,456 FLOP, 0 bytes of DRAM, 3.456e-6 s each",
        "fc: 2,000 FLOP, 1,000 bytes of DRAM, 1e-6 s",
        "add: 500 FLOP, 2,000 bytes of DRAM, 2e-6 s",
    ]
    assert chart.plain()["marks"]["x"] == [42.1875, None, 2.0, 0.25]  # type: ignore[index, call-overload]
    assert chart.x.is_log
    assert chart.y.is_log
    assert (chart.x.unit, chart.y.unit) == ("FLOP/B", "FLOP/s")


def test_exchanges_have_a_roofline_of_their_own() -> None:
    mapping = Record(sharded_report()).parts("results")[0].part("mapping")
    charts = {chart.title: chart for chart in roofline_charts(mapping, "it")}

    assert list(charts) == ["Roofline of kernels: DRAM", "Roofline of kernels: network"]
    network = charts["Roofline of kernels: network"]
    assert [(mark.x, mark.y) for mark in network.marks] == [(32.0, 2e9)]  # the other kernel exchanges nothing
    assert network.marks[0].label == "qkv: 2,000 FLOP, 1,000 bytes of DRAM, 62.5 bytes of the network, 1e-6 s"
    assert [guide.label for guide in network.guides] == ["network bandwidth", "peak"]


def test_lines_meet_at_the_ridge() -> None:
    dots = (Mark(0.5, 1.0), Mark(64.0, 2.0), Mark(inf, 3.0))

    assert tuple(roof(dots, ("bandwidth", 10.0), ("peak", 80.0))) == (
        Guide("bandwidth", (0.5, 8.0), (5.0, 80.0), is_named_first=True),
        Guide("peak", (8.0, 64.0), (80.0, 80.0)),
    )
    assert [guide.label for guide in roof(dots[1:], ("bandwidth", 10.0), ("peak", 80.0))] == ["peak"]
    assert [guide.x for guide in roof(dots[2:], ("bandwidth", 10.0), ("peak", 80.0))] == [(8.0, 16.0)]


def test_of_too_many_kernels_those_that_take_longest_are_shown_and_others_are_counted() -> None:
    kernels: list[Json] = [kernel([f"k{at}"], 100, 1, 1e-9 * (1 + at), "compute") for at in range(1501)]
    mapping: dict[str, Json] = {"kernels": kernels, "roofs": {"flop_per_s": 1e12, "dram_bytes_per_s": 1e12}}

    (chart,) = roofline_charts(Record(mapping), "it")
    assert len(chart.marks) == 1500
    assert chart.marks[0].label.startswith("k1: ")
    assert "1 kernels that take less time are in the table alone" in chart.caption


def test_what_computes_nothing_has_no_dot() -> None:
    mapping: dict[str, Json] = {
        "kernels": [kernel(["view"], 0, 8, 1e-9, "memory")], "roofs": {"flop_per_s": 1.0, "dram_bytes_per_s": 1.0}
    }  # fmt: skip

    assert list(roofline_charts(Record(mapping), "it")) == []


def test_kernels_of_a_design_have_dots_with_the_time_of_their_configuration() -> None:
    report: dict[str, Json] = {
        "format": "dfcompile-design/1",
        "name": "gpt",
        "figures": {"tensor_parallel": 1, "chip_flop_per_s": 1e12, "dram_bytes_per_s": 1e9},
        "kernels": [
            {"name": "qkv", "configuration": 0, "sharding": "-", "exchange": "", "flop": 4e6, "dram_bytes": 1e3,
             "time_s": 5e-5, "bound_by": "compute"},
            {"name": "add", "configuration": 0, "sharding": "-", "exchange": "", "flop": 512.0, "dram_bytes": 0.0,
             "time_s": 5e-5, "bound_by": "compute"},
        ],
    }  # fmt: skip

    (chart,) = design_roofline_charts(Record(report))
    assert [(mark.x, mark.y, mark.series) for mark in chart.marks] == [
        (4000.0, 8e10, "compute"), (inf, 512 / 5e-5, "compute")
    ]  # fmt: skip
    assert chart.marks[0].label == "qkv: 4,000,000 FLOP, 1,000 bytes of DRAM, 5e-5 s"
    assert [guide.label for guide in chart.guides] == ["peak"]
    (table,) = view_of(Record(report)).tables  # two dots are no picture
    assert table.rows == (
        ("qkv", "4.00 MFLOP", "1", "4,000", "50.0", "compute"), ("add", "512 FLOP", "0", "-", "50.0", "compute")
    )  # fmt: skip
