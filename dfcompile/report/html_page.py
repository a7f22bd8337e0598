"""A report as HTML, for notebooks: the tables and notes of its text form."""

from html import escape

from dfcompile.host.printable import printable
from dfcompile.options.shared import SECTIONS
from dfcompile.report.design.figures import AnyReport, DesignReport
from dfcompile.report.design.tables import design_notes, design_tables
from dfcompile.report.screen import answer, repetition_tables, result_table, verification_notes
from dfcompile.report.tables import SCHEDULES, section_notes, section_tables
from dfcompile.report.text_tables import Column, Table


def report_html(report: AnyReport) -> str:
    """Return a report as a piece of HTML, without scripts and styles but alignment."""
    if isinstance(report, DesignReport):
        tables, notes = design_tables(report), tuple(design_notes(report))
    else:
        names, first = (SECTIONS, (result_table(report),)) if report.mapped else (SCHEDULES, ())
        sections = (table for name in names for table in section_tables(report, name))
        tables = (*first, *repetition_tables(report), *sections)
        below = (note for name in names for note in section_notes(report, name))
        notes = (*((answer(report),) if report.mapped else ()), *below, *verification_notes(report))
    parts = [_table(table) for table in tables]
    return "\n".join(["<div>", *parts, *(f"<p>{escape(printable(note))}</p>" for note in notes), "</div>\n"])


def _table(table: Table) -> str:
    columns = (*table.labels, *table.columns)
    heads = "".join(_cell("th", " ".join(column.heading.split("\n")), column) for column in columns)
    rows = zip(*(column.shown for column in columns), strict=True)
    lines = [f"<table>\n<caption>{escape(table.title)}</caption>", f"<tr>{heads}</tr>"]
    for row in rows:
        cells = "".join(_cell("td", text, column) for text, column in zip(row, columns, strict=True))
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</table>"])


def _cell(tag: str, text: str, column: Column) -> str:
    return f'<{tag} style="text-align: {"left" if column.is_text else "right"}">{escape(text)}</{tag}>'
