"""The formats of a report: all of it as JSON, rows as CSV, tables that fit the page, none with a hostile name."""

import csv
import io
import json
from itertools import product

import pytest

from dfcompile.cli.main import main
from dfcompile.host.printable import printable
from dfcompile.report.design.figures import AnyReport
from dfcompile.report.design.tables import design_table
from dfcompile.report.figures import Report
from dfcompile.report.html_page import report_html
from dfcompile.report.plain_values import report_rows, rows_csv, to_json, to_record
from dfcompile.report.tables import report_table
from tests.sample_reports import sample_reports

DESIGN = "tests/data/dfmodel/fft_a100_1024.txt"
NAMES = ("csv", "json", "table")
WIDTHS = (20, 80, 200)


def text_of(report: AnyReport, form: str, width: int = 120, *, verbose: bool = True) -> str:
    match form:
        case "json":
            return to_json(report)
        case "csv":
            return rows_csv(report_rows(report))
    if isinstance(report, Report):
        return report_table(report, width, verbose=verbose)
    return design_table(report, width, verbose=verbose)


@pytest.mark.parametrize("name", NAMES)
def test_every_text_is_the_same_twice_ends_a_line_and_obeys_no_name(name: str) -> None:
    for report in sample_reports():
        for width, verbose in product(WIDTHS, (True, False)):
            text = text_of(report, name, width, verbose=verbose)

            assert text == text_of(report, name, width, verbose=verbose)
            assert text.endswith("\n")
            assert not {sign for sign in text if sign != "\n" and printable(sign) != sign}


def test_json_is_all_of_the_report() -> None:
    for report in sample_reports():
        assert json.loads(to_json(report)) == to_record(report)


def test_csv_of_a_design_is_one_row() -> None:
    (row,) = csv.DictReader(io.StringIO(text_of(sample_reports()[2], "csv")))

    assert (row["chips"], row["time_s"], row["points"]) == ("8", "0.5", "3")


def test_the_page_tells_how_much_is_written() -> None:
    report = sample_reports()[0]

    assert "1 assumptions: -v lists them" in text_of(report, "table", verbose=False)
    assert " cores: 16 — --pes" in text_of(report, "table")
    assert max(map(len, text_of(report, "table", 60).splitlines())) <= 60


def test_every_command_knows_the_formats(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["m.py", "--pes", "4"], ["schedule", "d.dag", "--pes", "4"], [DESIGN]):
        assert main([*words, "--format", "jsno"]) == 1
        assert capsys.readouterr().err == "dfcompile: error: --format 'jsno': unknown (did you mean 'json'?)\n"


def test_a_design_is_written_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([DESIGN, "--format", "csv"]) == 0
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.startswith("name,chips,tensor_parallel,")
    assert row.startswith("fft_a100_1024,1024,")


def test_html_has_the_tables_and_nothing_of_a_hostile_name() -> None:
    for report in sample_reports():
        page = report_html(report)

        assert page.count("<table>") == page.count("</table>") >= 2
        assert "\x1b" not in page
        assert "<td" in page
    assert "1,200</td>" in report_html(sample_reports()[0])
