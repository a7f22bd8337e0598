"""Spreadsheets of devices: one row each, or one column each; units stand in the headings, vendors' are decimal."""

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, structs

from dfcompile.errors import UserError, nearest
from dfcompile.language_models.machines.device import Device, LinkLevel, MemoryLevel

_PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGTP", start=1)}
_HEADING = re.compile(r"\s*([^\[\]]*?)\s*(?:\[\s*([^\[\]]*?)\s*\])?\s*")
MOST_CELLS = 100_000
_EXTENTS = re.compile(r"(\d+)x(\d+)(?:x(\d+))?")
_COMMENT = "#"


class Quantity(Struct, frozen=True):
    """What a column measures.

    Attributes:
        units: that headings may have, with what makes base units of them; empty: it has none.
        is_text: or a number above 0.
        most: of a number.
    """

    units: Mapping[str, float] = {}
    is_text: bool = False
    most: float = math.inf


def _scaled(unit: str, *, binary: bool = False) -> dict[str, float]:
    prefixes = {**_PREFIXES, **_BINARY} if binary else _PREFIXES
    return {f"{prefix}{unit}": size for prefix, size in prefixes.items()}


_BYTES = {**_scaled("B", binary=True), "KB": 1e3}
TEXT, COUNT, SHARE = Quantity(is_text=True), Quantity(), Quantity(most=1.0)
BYTES, BANDWIDTH = Quantity(_BYTES), Quantity({f"{unit}/s": size for unit, size in _BYTES.items()})
FREQUENCY, ELEMENT_RATE = Quantity(_scaled("Hz")), Quantity(_scaled("op/s"))
RATE = Quantity({**_scaled("MAC/s"), **{unit: size / 2 for unit, size in _scaled("FLOP/s").items()}})
TIME = Quantity({"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9})
POWER = Quantity({"W": 1.0, "kW": 1e3, "mW": 1e-3})
ENERGY = Quantity({"pJ": 1.0, "fJ": 1e-3, "nJ": 1e3})
ENERGY_PER_BYTE = Quantity({"pJ/B": 1.0, "pJ/bit": 8.0})
MONEY = Quantity({"USD": 1.0, "$": 1.0})


def heading_of(text: str) -> tuple[str, str]:
    """Return the key and the unit of a heading such as ``frequency [GHz]``; no unit is empty."""
    found = _HEADING.fullmatch(text)
    return (found[1], found[2] or "") if found is not None else (text.strip(), "")


# What columns of a memory measure, and the fields of a `MemoryLevel` that they are; what those of a link measure.
_OF_MEMORIES: Mapping[str, tuple[Quantity, str]] = {
    "capacity": (BYTES, "capacity_bytes"),
    "bandwidth": (BANDWIDTH, "bytes_per_s"),
    "shared_by": (COUNT, "shared_by"),
    "energy": (ENERGY_PER_BYTE, "pj_per_byte"),
    "usable": (SHARE, "usable"),
}
_OF_LINKS: Mapping[str, Quantity] = {
    "bandwidth": BANDWIDTH, "latency": TIME, "topology": TEXT, "size": COUNT, "energy": ENERGY_PER_BYTE,
}  # fmt: skip
# What a column measures, and the field of a device that its value is as it stands; empty: none.
PLAIN: Mapping[str, tuple[Quantity, str]] = {
    "name": (TEXT, "name"),
    "source": (TEXT, ""),
    "compat": (TEXT, ""),
    "cores": (COUNT, ""),
    "frequency": (FREQUENCY, "frequency_hz"),
    "memory.capacity": (BYTES, "capacity_bytes"),
    "memory.bandwidth": (BANDWIDTH, "bytes_per_s"),
    "memory.energy": (ENERGY_PER_BYTE, "pj_per_byte"),
    **{f"offload.{key}": (_OF_MEMORIES[key][0], "") for key in ("capacity", "bandwidth", "energy")},
    "vector": (ELEMENT_RATE, "vector_per_s"),
    "energy.vector": (ENERGY, "vector_pj"),
    "array": (TEXT, ""),
    "eff.compute": (SHARE, "compute_efficiency"),
    "eff.memory": (SHARE, "memory_efficiency"),
    "launch": (TIME, "launch_s"),
    "tdp": (POWER, "tdp_w"),
    "idle": (POWER, "idle_w"),
    "price": (MONEY, "usd"),
}
NAMED = (
    (re.compile(r"macs_per_cycle_per_core\.(\w+)"), COUNT),
    (re.compile(r"peak\.(\w+)"), RATE),
    *((re.compile(rf"memory\.(\w+)\.{key}"), quantity) for key, (quantity, _) in _OF_MEMORIES.items()),
    *((re.compile(rf"link\.(\w+)\.{key}"), quantity) for key, quantity in _OF_LINKS.items()),
    (re.compile(r"energy\.mac\.(\w+)"), ENERGY),
)
KNOWN = (*PLAIN, "macs_per_cycle_per_core.bf16", "peak.bf16", "memory.L2.capacity", "link.NAME.bandwidth")


def quantity_of(key: str) -> Quantity | None:
    """Return what a key measures, or none if it is not known."""
    if key in PLAIN:
        return PLAIN[key][0]
    return next((quantity for pattern, quantity in NAMED if pattern.fullmatch(key)), None)


def names_in(keys: Mapping[str, object], prefix: str, suffix: str = "") -> Iterator[str]:
    """Yield the middle of keys ``prefix.NAME`` or ``prefix.NAME.suffix``, each once, in order."""
    pattern = re.compile(rf"{re.escape(prefix)}\.(\w+){re.escape(suffix)}")
    for key in keys:
        found = pattern.fullmatch(key)
        if found is not None:
            yield found[1]


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
    first = rows[0][0] if rows and rows[0] else ""
    if heading_of(first)[0] != "name":
        raise UserError(f"{where}:A1: found {first!r} against the heading name")
    down = len(rows) > 1 and quantity_of(heading_of(rows[1][0] if rows[1] else "")[0]) is not None
    across = len(rows[0]) > 1 and quantity_of(heading_of(rows[0][1])[0]) is not None
    is_transposed = down and not across
    columns = range(max(map(len, rows)) if is_transposed else len(rows[0]))
    cells = [[_cell(rows, row, column, where) for column in columns] for row in range(len(rows))]
    table: Sequence[Sequence[_Cell]] = list(zip(*cells, strict=True)) if is_transposed else cells
    warnings = []
    for heading in table[0]:
        key = heading_of(heading.text)[0]
        if key and quantity_of(key) is None:
            warnings.append(f"{heading.where}: unknown heading {key!r}{nearest(key, KNOWN)}: left out")
    devices: dict[str, Device] = {}
    for row in table[1:]:
        if not any(cell.text for cell in row):
            continue
        device = _device_of(_Row(_values(table[0], row), row[0].where))
        if device.name in devices:
            raise UserError(f"{row[0].where}: found {device.name!r} twice against once")
        devices[device.name] = device
    if not devices:
        raise UserError(f"{where}: found no devices below the headings")
    return Sheet(devices, tuple(warnings))


def _cell(rows: Sequence[Sequence[str]], row: int, column: int, where: str) -> _Cell:
    text = rows[row][column] if column < len(rows[row]) else ""
    letters, left = "", column
    while left >= 0:
        letters, left = chr(ord("A") + left % 26) + letters, left // 26 - 1
    return _Cell(f"{where}:{letters}{row + 1}", text)


def _values(headings: Sequence[_Cell], row: Sequence[_Cell]) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    for heading, cell in zip(headings, row, strict=True):
        key, unit = heading_of(heading.text)
        quantity = quantity_of(key)
        if quantity is None or not cell.text:
            continue
        if key in values:
            raise UserError(f"{heading.where}: found heading {key!r} twice against once")
        scale = _scale(key, unit, quantity, heading)
        values[key] = cell.text if quantity.is_text else scale * _amount(key, quantity, cell)
    return values


def _scale(key: str, unit: str, quantity: Quantity, heading: _Cell) -> float:
    """Return what a column is multiplied by to be in bytes, seconds, MACs, W or pJ.

    Raises:
        UserError: it needs a unit and has none, or one that is not known.
    """
    known = quantity.units
    if not known:
        return 1.0
    if unit in known:
        return known[unit]
    some = ", ".join([name for name in known if name[0] in "GTµupnWU" or len(name) <= 2][:6])
    if unit:
        raise UserError(f"{heading.where}: {key!r} has unit {unit!r} against {some}")
    raise UserError(f"{heading.where}: {key!r} has no unit against {some} (write {key} [{next(iter(known))}])")


def _amount(key: str, quantity: Quantity, cell: _Cell) -> float:
    """Return the number in a cell.

    Raises:
        UserError: it is none above 0, or a share above 1.
    """
    try:
        number = float(cell.text.replace("_", ""))
    except ValueError as error:
        raise UserError(f"{cell.where}: {key!r}: found {cell.text[:60]!r} against a number") from error
    if not math.isfinite(number) or not 0 < number <= quantity.most:
        expected = "a number above 0" if math.isinf(quantity.most) else "a share of at most 1"
        raise UserError(f"{cell.where}: {key!r}: found {cell.text[:60]} against {expected}")
    return number


class _Row(Struct, frozen=True):
    """The values of a device in base units, by key."""

    values: Mapping[str, float | str]
    where: str

    def number(self, key: str, default: float = 0.0) -> float:
        found = self.values.get(key, default)
        assert not isinstance(found, str)
        return found

    def count(self, key: str) -> int:
        found = self.number(key, 1.0)
        if found != int(found):
            raise UserError(f"{self.where}: {key!r}: found {found} against a whole number")
        return int(found)

    def need(self, *keys: str) -> None:
        for key in keys:
            if key not in self.values:
                raise UserError(f"{self.where}: {key!r} is missing")


def _device_of(row: _Row) -> Device:
    """Make a device.

    Raises:
        UserError: a key is missing or of the wrong kind.
    """
    values, number = row.values, row.number
    cores = row.count("cores")
    rates = {form: number(f"peak.{form}") for form in names_in(values, "peak")}
    for form in names_in(values, "macs_per_cycle_per_core"):
        if "frequency" not in values:
            raise UserError(f"{row.where}: 'frequency' is missing against macs_per_cycle_per_core.{form}")
        rates.setdefault(form, cores * number("frequency") * number(f"macs_per_cycle_per_core.{form}"))
    if not rates:
        raise UserError(f"{row.where}: found no rate against peak.FORMAT or macs_per_cycle_per_core.FORMAT")
    has_offload = any(key.startswith("offload.") for key in values)
    row.need("name", "memory.bandwidth", *(("offload.bandwidth",) if has_offload else ()))
    granule, source = _granule(row), values.get("source")
    levels = (_memory(row, f"memory.{name}", name) for name in names_in(values, "memory", ".capacity"))
    links = list(dict.fromkeys(key.split(".")[1] for key in values if key.startswith("link.")))
    device = Device(
        name="",
        macs_per_s=rates,
        bytes_per_s=0.0,
        levels=tuple(sorted(levels, key=lambda level: -level.capacity_bytes)),
        cores=cores,
        granule=granule,
        offload=_memory(row, "offload", "offload") if has_offload else None,
        links=tuple(_link(row, f"link.{name}") for name in links),
        link_latency_s=max((number(f"link.{name}.latency") for name in links), default=0.0),
        pj_per_mac={form: number(f"energy.mac.{form}") for form in names_in(values, "energy.mac")},
        link_pj_per_byte=max((number(f"link.{name}.energy") for name in links), default=0.0),
        notes=(f"system {values['name']}: {source}",) if source else (),
    )
    # Columns whose values are fields as they stand.
    stated = {field: values[key] for key, (_, field) in PLAIN.items() if field and key in values}
    return structs.replace(device, **{**stated, "capacity_bytes": round(number("memory.capacity"))})


def _memory(row: _Row, prefix: str, name: str) -> MemoryLevel:
    stated = {field: row.values.get(f"{prefix}.{key}") for key, (_, field) in _OF_MEMORIES.items()}
    known = {field: value for field, value in stated.items() if value is not None}
    whole = {_OF_MEMORIES[key][1]: round(row.number(f"{prefix}.{key}")) for key in ("capacity", "shared_by")}
    return structs.replace(MemoryLevel(name, 0), **{**known, **whole})


def _link(row: _Row, prefix: str) -> LinkLevel:
    row.need(f"{prefix}.bandwidth", f"{prefix}.topology", f"{prefix}.size")
    kind = str(row.values[f"{prefix}.topology"])
    return LinkLevel(kind, row.count(f"{prefix}.size"), row.number(f"{prefix}.bandwidth"))


def _granule(row: _Row) -> tuple[int, int, int]:
    text = row.values.get("array")
    if text is None:
        return (1, 1, 1)
    found = _EXTENTS.fullmatch(str(text).replace(" ", ""))
    if found is None or "0" in found.groups():
        raise UserError(f"{row.where}: 'array': found {text!r} against ROWSxCOLUMNS or ROWSxDEPTHxCOLUMNS")
    rows, second, third = found.groups()
    return (int(rows), 1, int(second)) if third is None else (int(rows), int(second), int(third))
