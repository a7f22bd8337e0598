"""Report formats: ours pass the checks for everybody, and what a bad one does is told."""

import csv
import io
import json

import pytest

from dfcompile.cli.main import main
from dfcompile.errors import PluginError, UserError
from dfcompile.records import replace
from dfcompile.report.html_page import report_html
from dfcompile.report.plain_values import to_record
from dfcompile.report.report_format import AnyReport, Page, Render, ReportFormat, registered_formats
from dfcompile.testing import check_report_format, sample_reports

DESIGN = "tests/data/dfmodel/fft_a100_1024.txt"
NAMES = ("csv", "json", "table")


def test_formats_of_our_own() -> None:
    found = registered_formats()

    assert tuple(found.by_name) == NAMES
    assert [form.media_type for form in found.by_name.values()] == ["text/csv", "application/json", "text/plain"]


@pytest.mark.parametrize("name", NAMES)
def test_our_own_pass_the_checks_for_everybody(name: str) -> None:
    check_report_format(name)


def test_json_is_all_of_the_report() -> None:
    for report in sample_reports():
        assert json.loads(registered_formats().by_name["json"].text_of(report, Page())) == to_record(report)


def test_csv_of_a_design_is_one_row() -> None:
    text = registered_formats().by_name["csv"].text_of(sample_reports()[2], Page())
    (row,) = csv.DictReader(io.StringIO(text))

    assert (row["chips"], row["time_s"], row["points"]) == ("8", "0.5", "3")


def test_the_page_tells_how_much_is_written() -> None:
    table = registered_formats().by_name["table"]
    report = sample_reports()[0]

    assert "1 assumptions: -v lists them" in table.text_of(report, Page(verbose=False))
    assert " cores: 16 — --pes" in table.text_of(report, Page(verbose=True))
    assert max(map(len, table.text_of(report, Page(60)).splitlines())) <= 60


def broken(report: AnyReport, _page: Page) -> str:
    return str(report.format)[10**6]


def of_bytes(_report: AnyReport, _page: Page) -> str:
    return b"bytes"  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("render", "reason"),
    [
        (broken, "in report format otherlab.forms.broken: IndexError: string index out of range"),
        (of_bytes, "in report format otherlab.forms.of_bytes: found a value of type bytes against a text"),
    ],
)
def test_a_format_that_fails_is_its_own_fault(render: Render, reason: str) -> None:
    form = ReportFormat("forms", "text/x-forms", "otherlab24", "otherlab.forms", render)

    with pytest.raises(PluginError, match=f"^{reason}$"):
        form.text_of(sample_reports()[0], Page())


def endless(_report: AnyReport, _page: Page) -> str:
    return "no line end"


def coloured(report: AnyReport, _page: Page) -> str:
    return f"{report.format}\x1b[31m\n"


def test_the_checker_finds_what_a_text_must_not_be() -> None:
    form = replace(registered_formats().by_name["json"], name="mine", module="otherlab.forms", render=endless)

    with pytest.raises(AssertionError, match="mine of dfcompile-report/4: no line end at the end"):
        check_report_format(form)
    with pytest.raises(AssertionError, match=r"control characters \['\\x1b'\]"):
        check_report_format(replace(form, render=coloured))
    with pytest.raises(UserError, match="report format 'mien': unknown"):
        check_report_format("mien")


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
