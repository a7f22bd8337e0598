"""Finds a device: shipped ones, spreadsheets ``FILE:NAME``, and the system files of all other commands."""

import tomllib
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from dfcompile.errors import UserError
from dfcompile.host.inputs import parsed_json, readable_bytes, readable_text
from dfcompile.language_models.machines.device import Device, LinkLevel, MemoryLevel
from dfcompile.language_models.machines.sheet import Sheet, csv_rows, sheet_of
from dfcompile.language_models.machines.workbook import workbook_rows

LARGEST_BYTES = 2**24
SHIPPED_FILES = ("devices.csv", "notebook_devices.csv")
SHEETS = (".csv", ".tsv", ".xlsx", ".json", ".toml")
_PARSERS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    ".json": ("JSON", parsed_json),
    ".toml": ("TOML", tomllib.loads),
}
_PACKAGE = "dfcompile.language_models.machines"


def shipped_devices() -> Mapping[str, Device]:
    """Return the devices that come with dfcompile, by name."""
    found: dict[str, Device] = {}
    for name in SHIPPED_FILES:
        found.update(sheet_of(csv_rows(files(_PACKAGE).joinpath(name).read_text(encoding="utf-8")), name).devices)
    return found


def find_device(asked: str, multiplies: tuple[str, ...] = ("bf16", "fp16")) -> tuple[Device, tuple[str, ...]]:
    """Find a device, and return warnings about its file.

    Args:
        asked: a shipped device's name, a spreadsheet's ``FILE`` or ``FILE:NAME``, or a system file or its name.
        multiplies: number formats that the one rate of a system file holds for.

    Raises:
        UserError: there is none of that name, or its file is wrong.
    """
    shipped = _shipped(asked)
    if shipped is not None:
        return shipped, ()
    path, name = _split(asked)
    if path is not None:
        sheet = read_sheet(path)
        return sheet.find(name, str(path)), sheet.warnings
    return _of_system_file(asked, multiplies)


def is_device(asked: str) -> bool:
    """Whether what is asked for is a shipped device or a spreadsheet's, and not a system file."""
    return _shipped(asked) is not None or _split(asked)[0] is not None


def _shipped(asked: str) -> Device | None:
    """Return the shipped device of a name, unless a file has that name."""
    found = next((device for name, device in shipped_devices().items() if name.lower() == asked.lower()), None)
    return None if found is None or Path(asked).exists() else found


def _split(asked: str) -> tuple[Path | None, str]:
    """Return the spreadsheet's path and the device's name, if it is one; a path may have colons itself."""
    if Path(asked).suffix.lower() in SHEETS:
        return Path(asked), ""
    before, colon, name = asked.rpartition(":")
    if colon and Path(before).suffix.lower() in SHEETS:
        return Path(before), name
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
    return sheet_of(_rows_of(document, where), where)


def _rows_of(document: object, where: str) -> list[list[str]]:
    """Return ``{name: {"cores": 8, "frequency [GHz]": 2.5}}`` as a sheet with a column per device."""
    if not isinstance(document, dict) or not all(isinstance(inner, dict) for inner in document.values()):
        raise UserError(f"{where}: found no mapping of devices to their keys")
    keys = list(dict.fromkeys(str(key) for inner in document.values() for key in inner))
    rows = [["name", *(str(name) for name in document)]]
    return rows + [[key, *(str(inner.get(key, "")) for inner in document.values())] for key in keys]


def _of_system_file(asked: str, multiplies: tuple[str, ...]) -> tuple[Device, tuple[str, ...]]:
    from dfcompile.dfmodel_backend.machine.system_file import read_system

    try:
        system = read_system(asked)
    except UserError as error:
        raise UserError(f"{error}; spreadsheets end in {', '.join(SHEETS)}, shipped devices are "
                        f"{', '.join(shipped_devices())}") from error  # fmt: skip
    chip, network = system.accelerator, system.network
    kinds = network.kind.split("_")
    device = Device(
        name=system.name,
        macs_per_s=dict.fromkeys(multiplies, chip.peak_gflops * 1e9 / 2),
        bytes_per_s=system.dram_gb_per_s * 1e9,
        capacity_bytes=int(system.dram_capacity_bytes),
        levels=(MemoryLevel("SRAM", int(chip.sram_bytes)),) if chip.sram_bytes else (),
        cores=chip.cores,
        frequency_hz=chip.frequency_ghz * 1e9,
        granule=(chip.lanes_per_core, 1, chip.stages_per_core),
        links=tuple(
            LinkLevel(kind, one.chips, one.link_bandwidth_gb_per_s * 1e9)
            for kind, one in zip(kinds, network.dimensions, strict=bool(network.dimensions))
        ),
        link_latency_s=network.link_latency_ns * 1e-9,
        tdp_w=chip.power_w,
        usd=chip.price_usd,
        notes=(f"system {system.name}: its file gives one rate, taken for {', '.join(multiplies)}",),
    )
    return device, system.warnings
