"""Finds a device: shipped ones, spreadsheets ``FILE:NAME``, and the system files of all other commands."""

import io
import posixpath
import re
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree as ET

from dfcompile.errors import UserError
from dfcompile.host.inputs import parsed_json, readable_bytes, readable_text
from dfcompile.language_models.machines.device import Device, LinkLevel, MemoryLevel
from dfcompile.language_models.machines.sheet import Sheet, csv_rows, sheet_of

LARGEST_PART = 2**25  # bytes, unpacked
_SHARED, _NO_TEXTS = "xl/sharedStrings.xml", b"<sst/>"
_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_MOST_ROWS = 10_000
_MOST_COLUMNS = 1_000
LARGEST_BYTES = 2**24
SHIPPED_FILES = ("devices.csv", "notebook_devices.csv")
SHEETS = (".csv", ".tsv", ".xlsx", ".json", ".toml")
_PARSERS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    ".json": ("JSON", parsed_json),
    ".toml": ("TOML", tomllib.loads),
}
_PACKAGE = "dfcompile.language_models.machines"
# What reading a broken workbook raises.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, ET.ParseError)


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
    except _BROKEN as error:
        reason = (str(error) or "it ends early").splitlines()[0]
        raise UserError(f"{where}: not an XLSX file: {reason}") from error


def _first_sheet(book: zipfile.ZipFile, where: str) -> str:
    """Return the part that is the first tab, by the order that the workbook gives; its number says nothing of that."""
    names = book.namelist()
    parts = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
    if all(part in names for part in parts):
        tabs, targets = (_part(book, part, where) for part in parts)
        targets_of = {one.get("Id", ""): one.get("Target", "") for one, _ in _elements(targets, "Relationship")}
        for tab, _ in _elements(tabs, "sheet"):
            key = next((value for name, value in tab.items() if _bare(name) == "id"), "")
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


def _elements(data: bytes, kind: str, *parts: str) -> Iterator[tuple[Mapping[str, str], str]]:
    """Yield attributes of the elements of a kind, and the text of some parts of each, whatever their namespace.

    Raises:
        ET.ParseError: the document is none.
        ValueError: it declares entities: an XLSX file has none.
    """
    if b"<!ENTITY" in data:
        raise ValueError("it declares entities")
    for found in ET.fromstring(data).iterfind(f".//{{*}}{kind}"):  # noqa: S314  # no entities
        yield found.attrib, "".join(part.text or "" for part in found.iter() if _bare(part.tag) in parts)


def _bare(name: str) -> str:
    """Return the name of an element or an attribute without its namespace."""
    return name.rpartition("}")[2]


def _cells(data: bytes, shared: list[str], where: str) -> list[list[str]]:
    found: dict[tuple[int, int], str] = {}
    for attributes, text in _elements(data, "c", "v", "t"):
        at = _REFERENCE.fullmatch(attributes.get("r", ""))
        is_shared = attributes.get("t") == "s" and text.isdecimal() and int(text) < len(shared)
        shown = shared[int(text)] if is_shared else text
        if at is not None and shown:
            column = 0
            for letter in at[1]:
                column = column * 26 + ord(letter) - ord("A") + 1
            found[int(at[2]) - 1, column - 1] = shown.strip()
    rows, columns = (max((place[axis] for place in found), default=-1) + 1 for axis in (0, 1))
    if rows > _MOST_ROWS or columns > _MOST_COLUMNS:
        raise UserError(f"{where}: found {rows} x {columns} cells against at most {_MOST_ROWS} x {_MOST_COLUMNS}")
    return [[found.get((row, column), "") for column in range(columns)] for row in range(rows)]


def shipped_devices() -> Mapping[str, Device]:
    """Return the devices that come with dfcompile, by name."""
    texts = ((name, files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")) for name in SHIPPED_FILES)
    return dict(item for name, text in texts for item in sheet_of(csv_rows(text), name).devices.items())


def find_device(asked: str, multiplies: tuple[str, ...] = ("bf16", "fp16")) -> tuple[Device, tuple[str, ...]]:
    """Find a device, and return warnings about its file.

    Args:
        asked: a shipped device's name, a spreadsheet's ``FILE`` or ``FILE:NAME``, or a system file or its name.
        multiplies: number formats that the one rate of a system file holds for.

    Raises:
        UserError: there is none of that name, or its file is wrong.
    """
    path, name = _split(asked)
    if (shipped := _shipped(asked)) is not None:
        return shipped, ()
    if path is None:
        return _of_system_file(asked, multiplies)
    sheet = read_sheet(path)
    return sheet.find(name, str(path)), sheet.warnings


def is_device(asked: str) -> bool:
    """Whether what is asked for is a shipped device or a spreadsheet's, and not a system file."""
    return _shipped(asked) is not None or _split(asked)[0] is not None


def _shipped(asked: str) -> Device | None:
    """Return the shipped device of a name, unless a file has that name."""
    found = next((device for name, device in shipped_devices().items() if name.lower() == asked.lower()), None)
    return None if found is None or Path(asked).exists() else found


def _split(asked: str) -> tuple[Path | None, str]:
    """Return the spreadsheet's path and the device's name, if it is one; a path may have colons itself."""
    before, _, name = asked.rpartition(":")
    for path, device in ((asked, ""), (before, name)):
        if Path(path).suffix.lower() in SHEETS:
            return Path(path), device
    return None, ""


def read_sheet(path: Path) -> Sheet:
    """Read a spreadsheet: CSV, TSV, XLSX, or the same keys in JSON or TOML, per device.

    Raises:
        UserError: it cannot be read, or `sheet_of`.
    """
    where, named = path.name, f"spreadsheet {str(path)!r}"
    if path.suffix.lower() == ".xlsx":
        return sheet_of(workbook_rows(readable_bytes(path, named, LARGEST_BYTES), where), where)
    text = readable_text(path, named, LARGEST_BYTES)
    if path.suffix.lower() not in _PARSERS:
        return sheet_of(csv_rows(text, where), where)
    word, parse = _PARSERS[path.suffix.lower()]
    try:
        document = parse(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not {word}: {str(error).splitlines()[0]}") from error
    # ``{name: {"cores": 8, "frequency [GHz]": 2.5}}`` is a sheet with a column per device.
    if not isinstance(document, dict) or not all(isinstance(inner, dict) for inner in document.values()):
        raise UserError(f"{where}: found no mapping of devices to their keys")
    keys = list(dict.fromkeys(str(key) for inner in document.values() for key in inner))
    rows = [["name", *(str(name) for name in document)]]
    rows += [[key, *(str(inner.get(key, "")) for inner in document.values())] for key in keys]
    return sheet_of(rows, where)


def _of_system_file(asked: str, multiplies: tuple[str, ...]) -> tuple[Device, tuple[str, ...]]:
    from dfcompile.dfmodel_backend.machine.system_file import read_system

    try:
        system = read_system(asked)
    except UserError as error:
        raise UserError(f"{error}; spreadsheets end in {', '.join(SHEETS)}, shipped devices are "
                        f"{', '.join(shipped_devices())}") from error  # fmt: skip
    chip, network = system.accelerator, system.network
    dimensions = zip(network.kind.split("_"), network.dimensions, strict=bool(network.dimensions))
    device = Device(
        name=system.name,
        macs_per_s=dict.fromkeys(multiplies, chip.peak_gflops * 1e9 / 2),
        bytes_per_s=system.dram_gb_per_s * 1e9,
        capacity_bytes=int(system.dram_capacity_bytes),
        levels=(MemoryLevel("SRAM", int(chip.sram_bytes)),) if chip.sram_bytes else (),
        cores=chip.cores,
        frequency_hz=chip.frequency_ghz * 1e9,
        granule=(chip.lanes_per_core, 1, chip.stages_per_core),
        links=tuple(LinkLevel(kind, one.chips, one.link_bandwidth_gb_per_s * 1e9) for kind, one in dimensions),
        link_latency_s=network.link_latency_ns * 1e-9,
        tdp_w=chip.power_w,
        usd=chip.price_usd,
        notes=(f"system {system.name}: its file gives one rate, taken for {', '.join(multiplies)}",),
    )
    return device, system.warnings
