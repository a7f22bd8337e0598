"""Devices from spreadsheets: both orientations, every format, and one line for what is wrong."""

import json
import zipfile
from pathlib import Path

import pytest

from dfcompile.errors import UserError
from dfcompile.language_models.machines.finding import find_device, read_sheet, shipped_devices
from dfcompile.language_models.machines.sheet import csv_rows, sheet_of

WIDE = """name,cores,frequency [GHz],macs_per_cycle_per_core.bf16,memory.bandwidth [GB/s],memory.capacity [GiB],array
one,4,2,100,500,16,16 x 16
two,8,1,50,250,,
"""


def transposed(text: str) -> str:
    return "\n".join(",".join(cells) for cells in zip(*csv_rows(text), strict=True))


def workbook(path: Path, rows: list[list[str]]) -> None:
    """An XLSX file as spreadsheets write it: shared texts, and a formula with its saved value."""
    texts = [cell for row in rows for cell in row if not cell.replace(".", "").isdigit()]
    cells = "".join(
        f'<row r="{y}">' + "".join(
            f'<c r="{chr(65 + x)}{y}" t="s"><v>{texts.index(cell)}</v></c>' if cell in texts
            else f'<c r="{chr(65 + x)}{y}"><f>1+1</f><v>{cell}</v></c>'
            for x, cell in enumerate(row) if cell
        ) + "</row>"
        for y, row in enumerate(rows, start=1)
    )  # fmt: skip
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("xl/worksheets/sheet1.xml", f"<worksheet {space}><sheetData>{cells}</sheetData></worksheet>")
        shared = "".join(f"<si><t>{text}</t></si>" for text in texts)
        book.writestr("xl/sharedStrings.xml", f"<sst {space}>{shared}</sst>")


def test_p2_rows_and_columns_and_all_files_say_the_same(tmp_path: Path) -> None:
    rows = csv_rows(WIDE)
    expected = sheet_of(rows, "x").devices
    (tmp_path / "a.csv").write_text(WIDE)
    (tmp_path / "b.csv").write_text(transposed(WIDE))
    (tmp_path / "c.tsv").write_text(WIDE.replace(",", "\t"))
    workbook(tmp_path / "d.xlsx", rows)
    made = {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[1:]}
    (tmp_path / "e.json").write_text(json.dumps(made))
    lines = [
        f"[{name}]\n" + "".join(f'"{key}" = "{cell}"\n' for key, cell in cells.items()) for name, cells in made.items()
    ]
    (tmp_path / "f.toml").write_text("\n".join(lines))

    for file in sorted(tmp_path.iterdir()):
        assert read_sheet(file).devices == expected, file.name
    assert find_device(f"{tmp_path / 'd.xlsx'}:two")[0] == expected["two"]
    assert expected["one"].macs_per_s == {"bf16": 4 * 2e9 * 100}
    assert (expected["one"].capacity_bytes, expected["one"].granule) == (16 * 2**30, (16, 1, 16))


def test_unknown_headings_are_warned_of() -> None:
    sheet = sheet_of(csv_rows(WIDE.replace("array", "aray")), "x.csv")

    assert sheet.warnings == ("x.csv:G1: unknown heading 'aray' (did you mean 'array'?): left out",)


BAD = (
    ("[GHz]", "", r"x\.csv:C1: 'frequency' has no unit against .*\(write frequency \[Hz\]\)"),
    ("[GB/s]", "[GHz]", r"x\.csv:E1: 'memory\.bandwidth' has unit 'GHz' against"),
    ("500", "fast", r"x\.csv:E2: 'memory\.bandwidth': found 'fast' against a number"),
    ("500", "-1", r"x\.csv:E2: 'memory\.bandwidth': found -1 against a number above 0"),
    ("500", "", r"x\.csv:A2: 'memory\.bandwidth' is missing"),
    ("100", "", r"x\.csv:A2: found no rate against"),
    ("16 x 16", "16", r"x\.csv:A2: 'array': found '16' against ROWSxCOLUMNS"),
    ("two", "one", r"x\.csv:A3: found 'one' twice against once"),
    ("name", "nome", r"x\.csv:A1: found 'nome' against the heading name"),
    ("8,1,50", "8.5,1,50", r"x\.csv:A3: 'cores': found 8\.5 against a whole number"),
)


@pytest.mark.parametrize(("found", "written", "message"), BAD)
def test_a_wrong_spreadsheet_names_its_cell(found: str, written: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        sheet_of(csv_rows(WIDE.replace(found, written, 1)), "x.csv")

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["x.xlsx", "x.json", "x.toml", "x.csv"])
@pytest.mark.parametrize("data", [b"", b"\x00\xff", b"PK\x03\x04", b"[]", b"<a>"])
def test_what_is_no_spreadsheet_is_one_line(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(data)

    with pytest.raises(UserError) as caught:
        read_sheet(path)
    assert "\n" not in str(caught.value)


def test_entities_of_a_workbook_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.xlsx"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("xl/worksheets/sheet1.xml", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>')

    with pytest.raises(UserError, match=r"x\.xlsx: not an XLSX file: it declares entities"):
        read_sheet(path)


def test_devices_are_found_by_name_whatever_their_case() -> None:
    assert find_device("nvl-ax")[0].name == "NVL-AX"
    assert {"NVL-AX", "JGS", "a100-sxm", "h100-sxm", "h200-sxm"} <= set(shipped_devices())
    with pytest.raises(UserError, match=r"system 'h1000': no such file or known system .* shipped devices are"):
        find_device("h1000")
    with pytest.raises(UserError, match=r"unknown device 'three' \(known: one, two\)"):
        sheet_of(csv_rows(WIDE), "x").find("three", "x")
    with pytest.raises(UserError, match="found 2 devices against one"):
        sheet_of(csv_rows(WIDE), "x").find("", "x")
