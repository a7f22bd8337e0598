"""Reads system files: YAML, checked field by field."""

import math
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from dfcompile.dfmodel_backend.machine.named_systems import OWN_FOLDER, NamedSystem, find_system
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.plausibility import implausible
from dfcompile.dfmodel_backend.machine.system import (
    ONE_CHIP,
    UNLIMITED_GB_PER_S,
    Accelerator,
    Amount,
    Count,
    Cycles,
    Dimension,
    Dram,
    Network,
    NotNegative,
    OnChipStreams,
    Positive,
    System,
)
from dfcompile.dfmodel_backend.options import Assumption
from dfcompile.errors import UserError, nearest
from dfcompile.host.inputs import STANDARD_INPUT, read_text
from dfcompile.host.printable import reason_of
from dfcompile.records import replace

LARGEST_BYTES = 2**17  # a thousand times a system's; the YAML library takes a second for it
SHOWN = 60  # characters of a value in an error

Location = Sequence[int | str]  # keys and places in lists that lead to a value
Unlimited = Annotated[float, Meta(ge=0)]  # also .inf


class _Accelerator(Struct, frozen=True, forbid_unknown_fields=True):
    lanes_per_core: Count
    stages_per_core: Count
    frequency_ghz: Positive
    cores: Count = 1
    sram_bytes: Unlimited | None = None
    sram_bytes_per_core: Unlimited | None = None
    price_usd: NotNegative | None = None
    price_usd_per_core: NotNegative | None = None
    power_w: NotNegative | None = None
    power_w_per_core: NotNegative | None = None


class _Dram(Struct, frozen=True, forbid_unknown_fields=True):
    bandwidth_gb_per_s: Annotated[float, Meta(gt=0)] | None = None
    bandwidth_gb_per_s_per_core: Annotated[float, Meta(gt=0)] | None = None
    capacity_bytes: Unlimited = 0.0
    price_usd_per_gb_per_s: NotNegative = 0.0
    power_w_per_gb_per_s: NotNegative = 0.0


class _System(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    accelerator: _Accelerator
    dram: _Dram
    chips: Count = 1
    network: Network | None = None
    streams: OnChipStreams = OnChipStreams()
    sources: dict[str, str] = {}


_SECTIONS = {
    "accelerator": _Accelerator,
    "dram": _Dram,
    "network": Network,
    "dimensions": Dimension,
    "streams": OnChipStreams,
}
_PROBLEM = re.compile(r"(.*?)(?: - at `(key` in `)?\$(.*)`)?")  # of msgspec: what, and where
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`")
_LIMIT = re.compile(r"Expected `(\w+)(?: \| null)?`(?: (\S+) ([\d.e+]+))?.*")
_WORDS = {
    "int": "a whole number", "float": "a number", "str": "a text", "array": "a list", "object": "keys and their values",
    ">": " greater than ", ">=": " of at least ", "<=": " of at most ", repr(sys.float_info.max): "1.8e308",
}  # fmt: skip


class _File(Struct, frozen=True):
    """A file and what it says.

    Attributes:
        text: of the file.
        where: names it in errors.
        values: of its keys.
    """

    text: str
    where: str
    values: Mapping[str, Any]

    def wrong(self, location: Location, message: str) -> UserError:
        """Return the error with the line of the deepest part of ``location`` that the file has."""
        line, node = 1, _loaded("rt", self.text, self.where)  # knows the lines, and takes twice as long
        for step in location:
            if isinstance(node, CommentedMap) and step in node:
                line = node.lc.key(step)[0] + 1
            elif isinstance(node, CommentedSeq) and isinstance(step, int) and step < len(node):
                line = node.lc.item(step)[0] + 1
            else:
                break
            node = node[step]
        return UserError(f"{self.where}:{line}: {message}")

    def explained(self, problem: str) -> UserError:
        """Return the error for what is wrong with the values."""
        parsed = _PROBLEM.fullmatch(problem)
        assert parsed is not None
        told, is_key, path = parsed.groups("")
        location: list[int | str] = [int(one) if one.isdigit() else one for one in re.findall(r"[^.\[\]]+", path)]
        if is_key:
            return self.wrong(location, "found a key that is no text")
        if path.endswith("[...]"):
            location.append(self._wrong_entry(location))
        field = _FIELD.fullmatch(told)
        if field is not None:
            key = ".".join(map(str, (*location, field[2])))
            if field[1] == "missing required":
                return self.wrong(location, f"key {key!r} is missing")
            section = next((str(step) for step in reversed(location) if step in _SECTIONS), "")
            hint = nearest(field[2], sorted(_SECTIONS.get(section, _System).__struct_fields__))
            return self.wrong((*location, field[2]), f"unknown key {key!r}{hint}")
        value = self._value(location)
        limit = _LIMIT.fullmatch(told)
        expected = "a number" if limit is None else "".join(_WORDS.get(word, word) for word in limit.groups(""))
        key = ".".join(map(str, location))
        return self.wrong(location, f"key {key!r}: found {_shown(value)} against {expected}")

    def _value(self, location: Location) -> Any:
        value: Any = self.values
        for step in location:
            value = value[step]
        return value

    def _wrong_entry(self, location: Location) -> str:
        """Return the first key of a table of any keys whose value is wrong."""
        kind = str if location == ["sources"] else Cycles

        def is_wrong(value: object) -> bool:
            try:
                convert(value, kind)
            except ValidationError:
                return True
            return False

        return next(str(key) for key, value in self._value(location).items() if is_wrong(value))


def load_system(system: str | Path | None = None) -> System:
    """Return the machine of a file, or of a name; of nothing the canonical machine.

    Raises:
        UserError: as `read_system`.
    """
    return _canonical() if system is None else read_system(str(system))


@cache
def _canonical() -> System:
    """Return the machine of our own file, whatever files and packages there are of its name."""
    file = files(OWN_FOLDER).joinpath("canonical.yaml")
    return parse_system(file.read_text(encoding="utf-8"), file.name)


def read_system(asked: str) -> System:
    """Read a system file: a path, or a name (``.yaml`` or not).

    Names are those of the files that are shipped, and of those in packages behind ``dfcompile.systems``.

    Raises:
        UserError: no such file or name, broken YAML, an unknown key (with the nearest known one), a missing key, or a
            value of the wrong type or range; the message names file, line and key.
    """
    path = Path(asked)
    if path.name == asked and asked != STANDARD_INPUT and path.suffix in ("", ".yaml") and not path.exists():
        return read_named_system(find_system(path.stem))
    try:
        text = read_text(path, LARGEST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "not a text file"
        raise UserError(f"system file {asked!r}: cannot be read: {reason}") from error
    return parse_system(text, asked)


def read_named_system(system: NamedSystem) -> System:
    """Read the file of a system that is known by name.

    Raises:
        UserError: as `read_system`.
    """
    try:
        text = system.file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{system.where}: cannot be read: not a text file") from error
    if len(text) > LARGEST_BYTES:
        raise UserError(f"{system.where}: found {len(text)} characters against at most {LARGEST_BYTES}")
    return parse_system(text, system.where)


def parse_system(text: str, where: str) -> System:
    """Parse the text of a system file; ``where`` names it in errors.

    Raises:
        UserError: as `read_system`.
    """
    values = _loaded("safe", text, where)
    if not isinstance(values, Mapping):
        raise UserError(f"{where}:1: found no keys against name, accelerator, dram")
    file = _File(text, where, values)
    try:
        model = convert(file.values, _System)
    except ValidationError as error:
        raise file.explained(str(error)) from error
    _require_network(model, file)
    system = _system(model, file)
    for key in ("price_usd_per_gb_per_s", "power_w_per_gb_per_s") if system.is_dram_unlimited else ():
        if value := getattr(system.dram, key):
            raise file.wrong(
                ["dram", key], f"key 'dram.{key}': found {value:g} against 0, since the bandwidth is unlimited"
            )
    return replace(system, warnings=tuple(f"{where}: {found}" for found in implausible(system)))


def _require_network(model: _System, file: _File) -> None:
    """Check that a network is of known kinds, and that the chips of a file, if it says how many, are those of it.

    Raises:
        UserError: they are not.
    """
    dimensions = model.network.dimensions if model.network is not None else ()
    if model.network is not None:
        kind = model.network.kind
        try:
            expected = len(topology(kind).kinds)
        except UserError as error:
            raise file.wrong(["network", "kind"], f"key 'network.kind': {error}") from error
        if len(dimensions) != expected:
            found = f"found {len(dimensions)} dimensions against the {expected} of kind {kind!r}"
            raise file.wrong(["network", "dimensions"], f"key 'network.dimensions': {found}")
    if "chips" in file.values and model.chips != math.prod(dimension.chips for dimension in dimensions):
        sizes = " x ".join(str(dimension.chips) for dimension in dimensions)
        expected_chips = f"the {sizes} of its network" if dimensions else "the 1 of a file without a network"
        hint = "" if dimensions else " (key 'network' says how chips are joined)"
        raise file.wrong(["chips"], f"key 'chips': found {model.chips} against {expected_chips}{hint}")


def _loaded(kind: str, text: str, where: str) -> Any:
    try:
        return YAML(typ=kind, pure=True).load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{where}:{line}: broken YAML: {error.problem or 'not understood'}") from error
    except YAMLError as error:
        raise UserError(f"{where}: broken YAML: {str(error).splitlines()[0]}") from error
    except RecursionError as error:
        raise UserError(f"{where}: nested too deeply against name, accelerator, dram and their keys") from error
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
        # What looks like a number or a date, and is none; directives and tags that the library takes for granted.
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UserError(f"{where}: broken YAML: {reason}") from error


def _shown(value: object) -> str:
    """Return a value as an error shows it; a mapping or list may be endless, for YAML can repeat its parts."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**SHOWN else "a number of many digits"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _amount(file: _File, section: str, read: _Accelerator | _Dram, key: str, *, is_needed: bool = True) -> Amount:
    """Return the one of ``key`` and ``key_per_core`` that the file has."""
    whole: float | None = getattr(read, key)
    per_core: float | None = getattr(read, f"{key}_per_core")
    if whole is not None and per_core is not None:
        raise file.wrong([section], f"found both {key!r} and '{key}_per_core' against one of them")
    if whole is None and per_core is None and is_needed:
        raise file.wrong([section], f"key {key!r} is missing (or '{key}_per_core')")
    return Amount(whole or 0.0) if per_core is None else Amount(per_core, per_core=True)


def _limited(amount: Amount, number: float) -> Amount:
    """Return an amount with the number that stands for one without a limit."""
    return replace(amount, value=number) if math.isinf(amount.value) else amount


def _system(model: _System, file: _File) -> System:
    chip, dram = model.accelerator, model.dram
    # Every figure of the file with the source that the file states for it, or for its section.
    sources = []
    for section in ("accelerator", "dram"):
        for key, value in file.values[section].items():
            if key == "cores":  # the caller may ask for another number
                continue
            source = model.sources.get(f"{section}.{key}", model.sources.get(section, f"system {model.name}"))
            sources.append(Assumption(f"{section}.{key}", "unlimited" if value == math.inf else str(value), source))
    return System(
        name=model.name,
        chips=model.chips,
        accelerator=Accelerator(
            cores=chip.cores,
            lanes_per_core=chip.lanes_per_core,
            stages_per_core=chip.stages_per_core,
            frequency_ghz=chip.frequency_ghz,
            sram=_limited(_amount(file, "accelerator", chip, "sram_bytes"), 0.0),
            price=_amount(file, "accelerator", chip, "price_usd", is_needed=False),
            power=_amount(file, "accelerator", chip, "power_w", is_needed=False),
        ),
        dram=Dram(
            bandwidth=_limited(_amount(file, "dram", dram, "bandwidth_gb_per_s"), UNLIMITED_GB_PER_S),
            capacity=_limited(Amount(dram.capacity_bytes), 0.0),
            price_usd_per_gb_per_s=dram.price_usd_per_gb_per_s,
            power_w_per_gb_per_s=dram.power_w_per_gb_per_s,
        ),
        network=model.network or ONE_CHIP,
        streams=model.streams,
        sources=tuple(sources),
    )
