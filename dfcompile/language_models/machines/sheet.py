"""Spreadsheets of devices: one row each, or one column each; units stand in the headings."""

import csv
import math
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from dfcompile.errors import UserError, nearest
from dfcompile.language_models.machines.columns import KNOWN, names_in, quantity_of
from dfcompile.language_models.machines.device import Device, LinkLevel, MemoryLevel
from dfcompile.language_models.machines.units import UNITS, Quantity, heading_of
from dfcompile.records import replace

MOST_CELLS = 100_000
_EXTENTS = re.compile(r"(\d+)x(\d+)(?:x(\d+))?")
_COMMENT = "#"

Values = Mapping[str, float | str]


class Sheet(Struct, frozen=True):
    """Devices of a file by name, and what of it was not understood."""

    devices: Mapping[str, Device]
    warnings: tuple[str, ...]

    def find(self, name: str, where: str) -> Device:
        """Return the device of a name; an empty name is the only one.

        Raises:
            UserError: there is none of that name, or several and no name.
        """
        if not name and len(self.devices) == 1:
            return next(iter(self.devices.values()))
        if name not in self.devices:
            asked = f"unknown device {name!r}{nearest(name, self.devices)}" if name else (
                f"found {len(self.devices)} devices against one (append :NAME, of {', '.join(self.devices)})"
            )  # fmt: skip
            raise UserError(f"{where}: {asked}")
        return self.devices[name]


class _Cell(Struct, frozen=True):
    where: str
    text: str


def csv_rows(text: str, where: str = "spreadsheet") -> list[list[str]]:
    """Return the cells of a text with commas, semicolons or tabs between them.

    Raises:
        UserError: there is none; the message has ``where``.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(_COMMENT)]
    first = lines[0] if lines else ""
    delimiter = max(",;\t", key=first.count)
    try:
        return [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter)]
    except csv.Error as error:
        raise UserError(f"{where}: not a table: {error}") from error


def sheet_of(rows: Sequence[Sequence[str]], where: str) -> Sheet:
    """Make devices of cells; the first cell is ``name``, in a heading over rows or beside columns.

    Raises:
        UserError: no heading ``name``, an unknown unit, a number without one, a missing key, or a value out of range;
            the message names the cell.
    """
    if sum(map(len, rows)) > MOST_CELLS:
        raise UserError(f"{where}: found more than {MOST_CELLS} cells against at most that many")
    if not rows or not rows[0] or heading_of(rows[0][0])[0] != "name":
        found = rows[0][0] if rows and rows[0] else ""
        raise UserError(f"{where}:A1: found {found!r} against the heading name")
    down = len(rows) > 1 and quantity_of(heading_of(rows[1][0] if rows[1] else "")[0]) is not None
    across = len(rows[0]) > 1 and quantity_of(heading_of(rows[0][1])[0]) is not None
    if down and not across:
        width = max(map(len, rows))
        table = [[_cell(rows, row, column, where) for row in range(len(rows))] for column in range(width)]
    else:
        table = [[_cell(rows, row, column, where) for column in range(len(rows[0]))] for row in range(len(rows))]
    return _devices(table, where)


def _cell(rows: Sequence[Sequence[str]], row: int, column: int, where: str) -> _Cell:
    text = rows[row][column] if column < len(rows[row]) else ""
    letters, left = "", column
    while left >= 0:
        letters, left = chr(ord("A") + left % 26) + letters, left // 26 - 1
    return _Cell(f"{where}:{letters}{row + 1}", text)


def _devices(table: Sequence[Sequence[_Cell]], where: str) -> Sheet:
    headings, warnings = table[0], []
    for heading in headings:
        key = heading_of(heading.text)[0]
        if key and quantity_of(key) is None:
            warnings.append(f"{heading.where}: unknown heading {key!r}{nearest(key, KNOWN)}: left out")
    devices: dict[str, Device] = {}
    for row in table[1:]:
        if not any(cell.text for cell in row):
            continue
        device = device_of(_values(headings, row), row[0].where)
        if device.name in devices:
            raise UserError(f"{row[0].where}: found {device.name!r} twice against once")
        devices[device.name] = device
    if not devices:
        raise UserError(f"{where}: found no devices below the headings")
    return Sheet(devices, tuple(warnings))


def _values(headings: Sequence[_Cell], row: Sequence[_Cell]) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    for heading, cell in zip(headings, row, strict=True):
        key, unit = heading_of(heading.text)
        quantity = quantity_of(key)
        if quantity is None or not cell.text:
            continue
        if key in values:
            raise UserError(f"{heading.where}: found heading {key!r} twice against once")
        values[key] = value_of(key, cell.text, unit, quantity, heading.where, cell.where)
    return values


def value_of(key: str, text: str, unit: str, quantity: Quantity, heading: str, where: str) -> float | str:
    """Return a cell in bytes, seconds, MACs, W, pJ or as a text.

    Raises:
        UserError: it needs a unit and has none, has one that is not known, or is no number above 0.
    """
    if quantity in (Quantity.TEXT, Quantity.EXTENTS):
        return text
    scale = 1.0
    if quantity in UNITS:
        known = UNITS[quantity]
        if not unit:
            raise UserError(
                f"{heading}: {key!r} has no unit against {_some(known)} (write {key} [{next(iter(known))}])"
            )
        if unit not in known:
            raise UserError(f"{heading}: {key!r} has unit {unit!r} against {_some(known)}")
        scale = known[unit]
    try:
        number = float(text.replace("_", ""))
    except ValueError as error:
        raise UserError(f"{where}: {key!r}: found {text[:60]!r} against a number") from error
    if not math.isfinite(number) or number <= 0 or (quantity is Quantity.SHARE and number > 1):
        expected = "a share of at most 1" if quantity is Quantity.SHARE else "a number above 0"
        raise UserError(f"{where}: {key!r}: found {text[:60]} against {expected}")
    return number * scale


def _some(known: Mapping[str, float]) -> str:
    names = [name for name in known if name[0] in "GTµupnWU" or len(name) <= 2]
    return ", ".join(names[:6])


def device_of(values: Values, where: str) -> Device:
    """Make a device of values in base units.

    Raises:
        UserError: a key is missing or of the wrong kind.
    """
    cores = _count(values, "cores", where)
    frequency = _number(values, "frequency", 0.0)
    rates = {form: _number(values, f"peak.{form}", 0.0) for form in names_in(values, "peak")}
    for form in names_in(values, "macs_per_cycle_per_core"):
        if not frequency:
            raise UserError(f"{where}: 'frequency' is missing against macs_per_cycle_per_core.{form}")
        rates.setdefault(form, cores * frequency * _number(values, f"macs_per_cycle_per_core.{form}", 0.0))
    if not rates:
        raise UserError(f"{where}: found no rate against peak.FORMAT or macs_per_cycle_per_core.FORMAT")
    for needed in ("name", "memory.bandwidth"):
        if needed not in values:
            raise UserError(f"{where}: {needed!r} is missing")
    name = str(values["name"])
    device = Device(
        name=name,
        macs_per_s=rates,
        bytes_per_s=_number(values, "memory.bandwidth", 0.0),
        capacity_bytes=round(_number(values, "memory.capacity", 0.0)),
        levels=_levels(values),
        cores=cores,
        frequency_hz=frequency,
        granule=_granule(values, where),
    )
    source = values.get("source")
    return replace(
        device,
        compute_efficiency=_number(values, "eff.compute", 1.0),
        memory_efficiency=_number(values, "eff.memory", 1.0),
        launch_s=_number(values, "launch", 0.0),
        offload=_offload(values, where),
        vector_per_s=_number(values, "vector", 0.0),
        links=_links(values, where),
        link_latency_s=max((_number(values, f"link.{one}.latency", 0.0) for one in _link_names(values)), default=0.0),
        tdp_w=_number(values, "tdp", 0.0),
        idle_w=_number(values, "idle", 0.0),
        pj_per_mac={form: _number(values, f"energy.mac.{form}", 0.0) for form in names_in(values, "energy.mac")},
        pj_per_byte=_number(values, "memory.energy", 0.0),
        link_pj_per_byte=max((_number(values, f"link.{one}.energy", 0.0) for one in _link_names(values)), default=0.0),
        vector_pj=_number(values, "energy.vector", 0.0),
        usd=_number(values, "price", 0.0),
        notes=(f"system {name}: {source}",) if source else (),
    )


def _levels(values: Values) -> tuple[MemoryLevel, ...]:
    found = [
        MemoryLevel(
            level,
            round(_number(values, f"memory.{level}.capacity", 0.0)),
            _number(values, f"memory.{level}.bandwidth", math.inf),
            round(_number(values, f"memory.{level}.shared_by", 0.0)),
            _number(values, f"memory.{level}.energy", 0.0),
            _number(values, f"memory.{level}.usable", 1.0),
        )
        for level in names_in(values, "memory", ".capacity")
    ]
    return tuple(sorted(found, key=lambda level: -level.capacity_bytes * max(1, bool(level.shared_by) * 1)))


def _offload(values: Values, where: str) -> MemoryLevel | None:
    if not any(key.startswith("offload.") for key in values):
        return None
    if "offload.bandwidth" not in values:
        raise UserError(f"{where}: 'offload.bandwidth' is missing")
    return MemoryLevel(
        "offload",
        round(_number(values, "offload.capacity", 0.0)),
        _number(values, "offload.bandwidth", 0.0),
        pj_per_byte=_number(values, "offload.energy", 0.0),
    )


def _links(values: Values, where: str) -> tuple[LinkLevel, ...]:
    links = []
    for name in _link_names(values):
        for needed in ("bandwidth", "topology", "size"):
            if f"link.{name}.{needed}" not in values:
                raise UserError(f"{where}: 'link.{name}.{needed}' is missing")
        links.append(
            LinkLevel(
                str(values[f"link.{name}.topology"]),
                _count(values, f"link.{name}.size", where),
                _number(values, f"link.{name}.bandwidth", 0.0),
            )
        )
    return tuple(links)


def _link_names(values: Values) -> list[str]:
    return list(dict.fromkeys(key.split(".")[1] for key in values if key.startswith("link.")))


def _granule(values: Values, where: str) -> tuple[int, int, int]:
    text = values.get("array")
    if text is None:
        return (1, 1, 1)
    found = _EXTENTS.fullmatch(str(text).replace(" ", ""))
    if found is None or "0" in found.groups():
        raise UserError(f"{where}: 'array': found {text!r} against ROWSxCOLUMNS or ROWSxDEPTHxCOLUMNS")
    if found[3] is None:
        return int(found[1]), 1, int(found[2])
    return int(found[1]), int(found[2]), int(found[3])


def _number(values: Values, key: str, default: float) -> float:
    found = values.get(key, default)
    assert not isinstance(found, str)
    return found


def _count(values: Values, key: str, where: str) -> int:
    found = _number(values, key, 1.0)
    if found != int(found):
        raise UserError(f"{where}: {key!r}: found {found} against a whole number")
    return int(found)
