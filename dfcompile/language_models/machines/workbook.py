"""The cells of the first sheet of an XLSX file: formulas by the value that was saved with them."""

import io
import posixpath
import re
import zipfile
import zlib
from xml.parsers import expat

from dfcompile.errors import UserError

LARGEST_PART = 2**25  # bytes, unpacked
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
            names = book.namelist()
            shared = _shared(_part(book, "xl/sharedStrings.xml", where)) if "xl/sharedStrings.xml" in names else []
            return _cells(_part(book, _first_sheet(book, where), where), shared, where)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, expat.ExpatError) as error:
        raise UserError(f"{where}: not an XLSX file: {str(error).splitlines()[0]}") from error


def _first_sheet(book: zipfile.ZipFile, where: str) -> str:
    """Return the part that is the first tab, by the order that the workbook gives; its number says nothing of that."""
    names = book.namelist()
    parts = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
    if all(part in names for part in parts):
        tabs, targets = (_Elements(_part(book, part, where)) for part in parts)
        targets_of = {one.get("Id", ""): one.get("Target", "") for one in targets.of("Relationship")}
        for tab in tabs.of("sheet"):
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


class _Reader:
    """Collects texts within one kind of element; an entity of the document's own is refused by the parser."""

    def __init__(self, data: bytes) -> None:
        self.texts: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.EntityDeclHandler = self.entity
        self.parser.Parse(data, True)  # noqa: FBT003  # expat's own: the last piece

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def characters(self, text: str) -> None:
        """Keep characters of an element."""
        self.texts.append(text)

    def entity(self, *_: object) -> None:
        """Refuse entities: an XLSX file has none."""
        raise expat.ExpatError("it declares entities")


class _Elements(_Reader):
    """Keeps the attributes of all elements."""

    def __init__(self, data: bytes) -> None:
        self._found: list[tuple[str, dict[str, str]]] = []
        super().__init__(data)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._found.append((name.rpartition(":")[2], attributes))

    def of(self, kind: str) -> list[dict[str, str]]:
        """Return the attributes of the elements of a kind, in their order."""
        return [attributes for name, attributes in self._found if name == kind]


class _SharedTexts(_Reader):
    def __init__(self, data: bytes) -> None:
        self.found: list[str] = []
        self._is_text = False
        super().__init__(data)

    def start(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002  # expat's own signature
        self._is_text = name.endswith("t") and name.rpartition(":")[2] == "t"
        if name.rpartition(":")[2] == "si":
            self.texts = []

    def characters(self, text: str) -> None:
        if self._is_text:
            self.texts.append(text)

    def end(self, name: str) -> None:
        self._is_text = False
        if name.rpartition(":")[2] == "si":
            self.found.append("".join(self.texts))


class _SheetCells(_Reader):
    def __init__(self, data: bytes, shared: list[str]) -> None:
        self.found: dict[tuple[int, int], str] = {}
        self._shared = shared
        self._at, self._kind, self._is_value = "", "", False
        super().__init__(data)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        bare = name.rpartition(":")[2]
        if bare == "c":
            self._at, self._kind, self.texts = attributes.get("r", ""), attributes.get("t", ""), []
        self._is_value = bare in ("v", "t")

    def characters(self, text: str) -> None:
        if self._is_value:
            self.texts.append(text)

    def end(self, name: str) -> None:
        self._is_value = False
        if name.rpartition(":")[2] != "c":
            return
        text, at = "".join(self.texts), _REFERENCE.fullmatch(self._at)
        if self._kind == "s" and text.isdecimal() and int(text) < len(self._shared):
            text = self._shared[int(text)]
        if at is not None and text:
            self.found[_numbers(at[1], at[2])] = text.strip()


def _numbers(letters: str, digits: str) -> tuple[int, int]:
    column = 0
    for letter in letters:
        column = column * 26 + ord(letter) - ord("A") + 1
    return int(digits) - 1, column - 1


def _shared(data: bytes) -> list[str]:
    return _SharedTexts(data).found


def _cells(data: bytes, shared: list[str], where: str) -> list[list[str]]:
    found = _SheetCells(data, shared).found
    rows = max((row for row, _ in found), default=-1) + 1
    columns = max((column for _, column in found), default=-1) + 1
    if rows > _MOST_ROWS or columns > _MOST_COLUMNS:
        raise UserError(f"{where}: found {rows} x {columns} cells against at most {_MOST_ROWS} x {_MOST_COLUMNS}")
    return [[found.get((row, column), "") for column in range(columns)] for row in range(rows)]
