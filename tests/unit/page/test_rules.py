"""What holds of every page: no chart that a small table would say, short answers, one colour for each operator."""

import re
from collections.abc import Iterator

import pytest

from dfcompile.page.document import Content, html_page
from dfcompile.page.provenance import Provenance
from dfcompile.page.records import Record
from dfcompile.page.view import Axis, Chart, ChartKind, Colouring, Mark, View
from dfcompile.page.views import view_of
from dfcompile.report.plain_values import Json
from tests.unit.page.reports import (
    bounds_report,
    design_report,
    exploration_report,
    language_model_report,
    model_report,
    operators_report,
    sharded_report,
    swept_report,
)

RUN = Provenance("dfcompile model.py", (), ())
LONG_NAME = "a_model_whose_name_is_rather_long"


def samples() -> Iterator[tuple[str, dict[str, Json]]]:
    """Reports of all kinds, small and large."""
    yield "model", model_report(LONG_NAME)
    yield "sharded", sharded_report()
    for operators in (1, 2, 12, 200):
        yield f"{operators} operators", operators_report(operators)
    for counts in ((1,), (1, 2), (4, 8, 16), tuple(range(1, 60))):
        yield f"{len(counts)} numbers of PEs", swept_report(counts)
    for many in (0, 1, 2, 3, 4, 300):
        yield f"{many} points", exploration_report(many)
    for shapes, buffers in ((1, 1), (1, 12), (2, 12), (9, 20)):
        yield f"{shapes} shapes, {buffers} buffers", bounds_report(shapes, buffers)
    for steps, kernels in ((0, 0), (1, 1), (1, 6), (2, 6), (40, 20)):
        yield f"{steps} steps, {kernels} kernels", language_model_report(steps, kernels)
    for configurations in (1, 2, 3, 12):
        yield f"{configurations} configurations", design_report(configurations)
    change: Json = {
        "where": "w",
        "figure": "f",
        "base": 1,
        "value": 2,
        "change": 1.0,
        "report": "b",
        "is_headline": True,
    }
    for many in (0, 1, 9):
        changes = [{**change, "figure": f"f{at}"} for at in range(many)]  # type: ignore[dict-item]
        yield f"{many} changes", {
            "format": "dfcompile-comparison/1", "reports": ["a", "b"], "figures": 10, "changes": list(changes)
        }  # fmt: skip


SAMPLES = dict(samples())
every_view = pytest.mark.parametrize(
    "view", [pytest.param(view_of(Record(one)), id=name) for name, one in SAMPLES.items()]
)


@every_view
def test_no_chart_has_fewer_than_three_marks_and_no_line_fewer_than_three_places(view: View) -> None:
    for chart in view.charts:
        assert len([mark for mark in chart.marks if mark.y or chart.kind is ChartKind.GRID]) >= 3, chart.title
        if chart.kind in (ChartKind.LINES, ChartKind.DOTS):
            assert len({(mark.x, mark.y) for mark in chart.marks}) >= 4, chart.title
        if chart.kind in (ChartKind.LINES, ChartKind.BRACKET):
            assert len({mark.x for mark in chart.marks}) >= 3, chart.title


@pytest.mark.parametrize(
    ("kind", "marks", "is_drawn"),
    [
        (ChartKind.LINES, [(1, 1), (2, 1), (1, 2), (2, 2)], False),  # two lines of two points
        (ChartKind.LINES, [(1, 1), (2, 1), (3, 2), (4, 2)], True),
        (ChartKind.DOTS, [(1, 1), (1, 1), (1, 1), (2, 2)], False),  # one over the other
        (ChartKind.DOTS, [(1, 1), (1, 2), (2, 1), (2, 2)], True),
        (ChartKind.ROWS, [(1, 1), (2, 0), (3, 1)], False),
        (ChartKind.BARS, [(1, 1), (2, 1), (3, 1)], True),
        (ChartKind.BRACKET, [(1, 1), (1, 2), (2, 1), (2, 2)], False),
        (ChartKind.GRID, [(1, 0), (2, 0)], False),
    ],
)
def test_what_a_small_table_says_is_not_drawn(kind: ChartKind, marks: list[tuple[int, int]], is_drawn: bool) -> None:
    chart = Chart(kind, "t", "c", Axis("x"), Axis("y"), tuple(Mark(x, y) for x, y in marks))

    assert chart.is_worth_drawing is is_drawn


@every_view
def test_the_answer_is_a_short_sentence_without_options(view: View) -> None:
    assert 0 < len(view.answer) <= 160
    assert view.answer.endswith(".")
    assert "--" not in view.answer
    assert view.answer.count("=") <= 2  # a lowering by what it differs in
    assert len(view.question) <= 160


@every_view
def test_every_operator_that_is_drawn_has_one_colour_of_the_page(view: View) -> None:
    assert len(set(view.operators)) == len(view.operators)
    for chart in view.charts:
        if chart.colouring is not Colouring.SERIES:
            is_series = chart.colouring is Colouring.OPERATOR
            assert all((mark.series if is_series else mark.x) in view.operators for mark in chart.marks), chart.title


@every_view
def test_axes_are_of_equal_factors_only_where_all_figures_are_above_zero(view: View) -> None:
    for chart in view.charts:
        for axis, values in ((chart.x, [mark.x for mark in chart.marks]), (chart.y, [mark.y for mark in chart.marks])):
            assert not axis.is_log or all(float(value) > 0 for value in values), chart.title


@every_view
def test_figures_of_small_tables_have_at_most_four_digits_unless_they_are_whole_or_money(view: View) -> None:
    for table in view.tables:
        for column in table.columns:
            for cell in () if column.is_text or column.heading == "cost, USD" else column.cells:
                digits = re.sub(r"e-?\d+|[^0-9.]", "", cell).lstrip("0.")
                assert "." not in cell or len(digits.replace(".", "")) <= 4, (table.title, column.heading, cell)


@every_view
def test_small_tables_are_small_and_whole(view: View) -> None:
    for table in view.tables:
        assert 0 < len(table.rows) <= 60
        assert table.best is None or table.best < len(table.rows)
        assert all(len(row) == len(table.columns) for row in table.rows)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_page_says_the_answer_first_then_its_tables_and_has_each_chart_once(name: str) -> None:
    report = SAMPLES[name]
    view, text = view_of(Record(report)), html_page(Content(report, RUN))

    header = text.partition("</header>")[0]
    assert header.index('class="question"') < header.index('class="answer"')
    assert header.count("<h3>") == len(view.tables)
    drawn = re.findall(r'data-chart="(\d+)"', text)
    assert sorted(map(int, drawn)) == list(range(len(view.charts)))
    assert text == html_page(Content(report, RUN))
