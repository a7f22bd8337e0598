"""The report format, on reports of every shape."""

from dfcompile.report.report_format import Page, registered_formats
from dfcompile.testing import check_report_format, sample_reports


def test_every_report_is_written() -> None:
    check_report_format("markdown")


def test_one_line_per_figure_and_one_column_per_result() -> None:
    markdown = registered_formats().by_name["markdown"]
    lines = markdown.text_of(sample_reports()[1], Page()).splitlines()

    assert lines[:2] == ["| pes | 16 | 128 |", "| --- | ---: | ---: |"]
    assert "| makespan_cycles | 1200 | 800 |" in lines
