"""Of a workbook the first tab is read, whatever its parts are called and numbered."""

import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.errors import UserError
from dfcompile.language_models.machines.finding import workbook_rows
from tests.examples import examples

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PARTS = ("worksheets/sheet1.xml", "worksheets/sheet2.xml", "worksheets/sheet10.xml", "worksheets/data.xml", "/xl/a.xml")


def book_of(tabs: list[str]) -> bytes:
    """Return a workbook whose tabs are these parts, each with its place among them in its one cell."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as book:
        for place, part in enumerate(tabs):
            name = part[1:] if part.startswith("/") else f"xl/{part}"
            book.writestr(name, f'<worksheet xmlns="{MAIN}"><c r="A1"><v>{place}</v></c></worksheet>')
        sheets = "".join(f'<sheet name="t{n}" sheetId="{9 - n}" r:id="x{n}"/>' for n in range(len(tabs)))
        book.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{LINKS}"><sheets>{sheets}</sheets></workbook>'
        )
        links = "".join(f'<Relationship Id="x{n}" Target="{part}"/>' for n, part in enumerate(tabs))
        book.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{links}</Relationships>")
    return file.getvalue()


@examples(40)
@given(st.permutations(PARTS), st.integers(1, 5))
def test_the_first_tab_is_read(tabs: list[str], count: int) -> None:
    assert workbook_rows(book_of(tabs[:count]), "x.xlsx") == [["0"]]


def test_a_workbook_without_sheets_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.xlsx", "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>")

    with pytest.raises(UserError, match=r"x\.xlsx: found no sheet in it"):
        workbook_rows((tmp_path / "x.xlsx").read_bytes(), "x.xlsx")


@pytest.mark.parametrize(
    ("place", "byte", "message"),
    [(29, 8, "(it ends early|Overlapped entries: .*)"), (-6, 255, "negative seek value -[0-9]+")],  # newer libraries
)
def test_a_damaged_archive_is_refused_in_one_line(place: int, byte: int, message: str) -> None:
    data = bytearray(book_of([PARTS[0]]))
    data[place] = byte

    with pytest.raises(UserError, match=rf"^x\.xlsx: not an XLSX file: {message}$"):
        workbook_rows(bytes(data), "x.xlsx")
