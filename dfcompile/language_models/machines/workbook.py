"""The cells of the first sheet of an XLSX file: formulas by the value that was saved with them."""

import io
import posixpath
import re
import zipfile
import zlib
from xml.parsers import expat

from dfcompile.errors import UserError

LARGEST_PART = 2**25  # bytes, unpacked
_SHARED, _NO_TEXTS = "xl/sharedStrings.xml", b"<sst/>"
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_MOST_ROWS = 10_000
_MOST_COLUMNS = 1_000


def workbook_rows(data: bytes, where: str) -> list[list[str]]:
    """Return the cells of the first sheet.

    Raises:
        UserError: it is no XLSX file, or too large.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            texts = _part(book, _SHARED, where) if _SHARED in book.namelist() else _NO_TEXTS
            shared = [text for _, text in _elements(texts, "si", "t")]
            return _cells(_part(book, _first_sheet(book, where), where), shared, where)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, expat.ExpatError) as error:
        raise UserError(f"{where}: not an XLSX file: {str(error).splitlines()[0]}") from error


def _first_sheet(book: zipfile.ZipFile, where: str) -> str:
    """Return the part that is the first tab, by the order that the workbook gives; its number says nothing of that."""
    names = book.namelist()
    parts = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
    if all(part in names for part in parts):
        tabs, targets = (_part(book, part, where) for part in parts)
        targets_of = {one.get("Id", ""): one.get("Target", "") for one, _ in _elements(targets, "Relationship")}
        for tab, _ in _elements(tabs, "sheet"):
            key = next((value for name, value in tab.items() if name.rpartition(":")[2] == "id"), "")
            target = posixpath.normpath(posixpath.join("/xl", targets_of.get(key, ""))).removeprefix("/")
            if target in names and "chartsheet" not in target:
                return target
    sheets = [name for name in names if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", name)]
    if not sheets:
        raise UserError(f"{where}: found no sheet in it")
    return min(sheets, key=lambda name: (len(name), name))


def _part(book: zipfile.ZipFile, name: str, where: str) -> bytes:
    if book.getinfo(name).file_size > LARGEST_PART:
        raise UserError(f"{where}: found a part of more than {LARGEST_PART} bytes against at most that many")
    return book.read(name)


def _elements(data: bytes, kind: str, *parts: str) -> list[tuple[dict[str, str], str]]:
    """Return attributes of the elements of a kind, and the text of some parts of each; namespaces are left out.

    Raises:
        expat.ExpatError: the document is none, or declares entities: an XLSX file has none.
    """
    found: list[tuple[dict[str, str], list[str]]] = []
    is_inside = is_part = False

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal is_inside, is_part
        bare = name.rpartition(":")[2]
        if bare == kind:
            found.append((attributes, []))
            is_inside = True
        is_part = is_inside and bare in parts

    def end(name: str) -> None:
        nonlocal is_inside, is_part
        is_part = False
        is_inside = is_inside and name.rpartition(":")[2] != kind

    def characters(text: str) -> None:
        if is_part:
            found[-1][1].append(text)

    def entity(*_: object) -> None:
        raise expat.ExpatError("it declares entities")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = characters, entity
    parser.Parse(data, True)  # noqa: FBT003  # expat's own: the last piece
    return [(attributes, "".join(texts)) for attributes, texts in found]


def _numbers(letters: str, digits: str) -> tuple[int, int]:
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(digits) - 1, column - 1


def _cells(data: bytes, shared: list[str], where: str) -> list[list[str]]:
    found: dict[tuple[int, int], str] = {}
    for attributes, text in _elements(data, "c", "v", "t"):
        at = _REFERENCE.fullmatch(attributes.get("r", ""))
        is_shared = attributes.get("t") == "s" and text.isdecimal() and int(text) < len(shared)
        shown = shared[int(text)] if is_shared else text
        if at is not None and shown:
            found[_numbers(at[1], at[2])] = shown.strip()
    rows = max((row for row, _ in found), default=-1) + 1
    columns = max((column for _, column in found), default=-1) + 1
    if rows > _MOST_ROWS or columns > _MOST_COLUMNS:
        raise UserError(f"{where}: found {rows} x {columns} cells against at most {_MOST_ROWS} x {_MOST_COLUMNS}")
    return [[found.get((row, column), "") for column in range(columns)] for row in range(rows)]
