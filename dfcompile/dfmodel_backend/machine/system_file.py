"""Reads system files: YAML, checked field by field."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.machine.machine import Dimension, Network
from dfcompile.dfmodel_backend.machine.named_systems import NamedSystem, named_systems
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.plausibility import implausible
from dfcompile.dfmodel_backend.machine.system import ONE_CHIP, UNLIMITED_GB_PER_S, Accelerator, Amount, Dram, System
from dfcompile.errors import UserError, nearest
from dfcompile.host.inputs import STANDARD_INPUT, read_text
from dfcompile.host.reasons import reason_of
from dfcompile.records import replace

_WHOLE_MESSAGE = "whole_message"  # of an error that says what was found by itself
LARGEST_BYTES = 2**17  # a thousand times a system's; the YAML library takes a second for it
SHOWN = 60  # characters of a value in an error


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("expected a finite number")
    return value


def _unlimited_as(number: float) -> AfterValidator:
    return AfterValidator(lambda value: number if value == math.inf else _finite(value))


Count = Annotated[int, Field(ge=1, le=10**9, strict=True)]
Positive = Annotated[float, Field(gt=0, strict=True), AfterValidator(_finite)]
NotNegative = Annotated[float, Field(ge=0, strict=True), AfterValidator(_finite)]
Capacity = Annotated[float, Field(ge=0, strict=True), _unlimited_as(0.0)]  # 0 and .inf: unlimited
Rate = Annotated[float, Field(gt=0, strict=True), _unlimited_as(UNLIMITED_GB_PER_S)]  # .inf: unlimited
Text = Annotated[str, Field(strict=True)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _AcceleratorModel(_Model):
    cores: Count = 1
    lanes_per_core: Count
    stages_per_core: Count
    frequency_ghz: Positive
    sram_bytes: Capacity | None = None
    sram_bytes_per_core: Capacity | None = None
    price_usd: NotNegative | None = None
    price_usd_per_core: NotNegative | None = None
    power_w: NotNegative | None = None
    power_w_per_core: NotNegative | None = None


class _DramModel(_Model):
    bandwidth_gb_per_s: Rate | None = None
    bandwidth_gb_per_s_per_core: Rate | None = None
    capacity_bytes: Capacity = 0.0
    price_usd_per_gb_per_s: NotNegative = 0.0
    power_w_per_gb_per_s: NotNegative = 0.0


class _DimensionModel(_Model):
    chips: Count
    link_bandwidth_gb_per_s: Positive
    link_power_w_per_gb_per_s: NotNegative = 0.0


class _NetworkModel(_Model):
    kind: Text
    dimensions: tuple[_DimensionModel, ...]
    link_price_usd_per_gb_per_s: NotNegative = 0.0
    switch_price_usd_per_gb_per_s: NotNegative = 0.0
    switch_power_w_per_gb_per_s: NotNegative = 0.0
    link_latency_ns: NotNegative = 0.0

    @field_validator("kind")
    @classmethod
    def _is_known(cls, kind: str) -> str:
        try:
            topology(kind)
        except UserError as error:
            raise PydanticCustomError(_WHOLE_MESSAGE, "{message}", {"message": str(error)}) from error
        return kind

    @field_validator("dimensions")
    @classmethod
    def _is_one_per_shape(
        cls, dimensions: tuple[_DimensionModel, ...], network: ValidationInfo
    ) -> tuple[_DimensionModel, ...]:
        kind = network.data.get("kind")
        expected = 0 if kind is None else len(topology(kind).kinds)
        if kind is not None and len(dimensions) != expected:
            message = f"found {len(dimensions)} dimensions against the {expected} of kind {kind!r}"
            raise PydanticCustomError(_WHOLE_MESSAGE, "{message}", {"message": message})
        return dimensions


class _SystemModel(_Model):
    name: Text
    chips: Count = 1
    accelerator: _AcceleratorModel
    dram: _DramModel
    network: _NetworkModel | None = None
    sources: dict[Text, Text] = Field(default_factory=dict)


def read_system(asked: str) -> System:
    """Read a system file: a path, or a name (``.yaml`` or not).

    Names are those of the files that are shipped, and of those in packages behind ``dfcompile.systems``.

    Raises:
        UserError: no such file or name, broken YAML, an unknown key (with the nearest known one), a missing key, or a
            value of the wrong type or range; the message names file, line and key.
    """
    path = Path(asked)
    if path.name == asked and asked != STANDARD_INPUT and path.suffix in ("", ".yaml") and not path.exists():
        return read_named_system(named_systems().find(path.stem))
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
    document = _document(text, where)
    try:
        model = _SystemModel.model_validate(document)
    except ValidationError as error:
        # A misspelled key is also a missing one: the misspelling is what helps.
        details = sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
        raise UserError(_explain(details[0], document, where)) from error
    _require_joined(model, document, where)
    system = _system(model, document, where)
    for key in ("price_usd_per_gb_per_s", "power_w_per_gb_per_s") if system.is_dram_unlimited else ():
        if value := getattr(system.dram, key):
            raise UserError(
                f"{where}:{_line(document, ['dram', key])}: key 'dram.{key}': found {value:g} against 0, since the "
                "bandwidth is unlimited"
            )
    return replace(system, warnings=tuple(f"{where}: {found}" for found in implausible(system)))


def _require_joined(model: _SystemModel, document: CommentedMap, where: str) -> None:
    """Check that the chips of a file, if it says how many, are those of its network.

    Raises:
        UserError: they are not.
    """
    dimensions = model.network.dimensions if model.network is not None else ()
    joined = math.prod(dimension.chips for dimension in dimensions)
    if "chips" not in model.model_fields_set or model.chips == joined:
        return
    sizes = " x ".join(str(dimension.chips) for dimension in dimensions) or "1"
    hint = "" if dimensions else " (key 'network' says how chips are joined)"
    raise UserError(
        f"{where}:{_line(document, ['chips'])}: key 'chips': found {model.chips} against the {sizes} of "
        f"{'its network' if dimensions else 'a file without a network'}{hint}"
    )


def _document(text: str, where: str) -> CommentedMap:
    try:
        document = YAML(typ="rt").load(text)
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
    if not isinstance(document, CommentedMap):
        raise UserError(f"{where}:1: found no keys against name, accelerator, dram")
    return document


def _explain(detail: ErrorDetails, document: CommentedMap, where: str) -> str:
    location = detail["loc"]
    key = ".".join(str(step) for step in location)
    at = f"{where}:{_line(document, location)}"
    if detail["type"] == "extra_forbidden":
        # the keys of the innermost part
        models: dict[str, type[BaseModel]] = {
            "accelerator": _AcceleratorModel,
            "dram": _DramModel,
            "network": _NetworkModel,
            "dimensions": _DimensionModel,
        }
        model: type[BaseModel] = _SystemModel
        for step in location[:-1]:
            model = models.get(str(step), model)
        return f"{at}: unknown key {key!r}{nearest(str(location[-1]), sorted(model.model_fields))}"
    if detail["type"] == "missing":
        return f"{at}: key {key!r} is missing"
    if detail["type"] == _WHOLE_MESSAGE:
        return f"{at}: key {key!r}: {detail['msg']}"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{at}: key {key!r}: found {_shown(detail['input'])} against: {message[0].lower()}{message[1:]}"


def _shown(value: object) -> str:
    """Return a value as an error shows it; a mapping or list may be endless, for YAML can repeat its parts."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**SHOWN else "a number of many digits"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _line(document: CommentedMap, location: Sequence[int | str]) -> int:
    """Return the line of the deepest part of ``location`` that the file has."""
    line = 1
    node: object = document
    for step in location:
        if isinstance(node, CommentedMap) and step in node:
            line = node.lc.key(step)[0] + 1
            node = node[step]
        elif isinstance(node, CommentedSeq) and isinstance(step, int) and step < len(node):
            line = node.lc.item(step)[0] + 1
            node = node[step]
        else:
            break
    return int(line)


def _amount(section: BaseModel, key: str, where: str, line: int, *, default: float | None) -> Amount:
    """Return the one of ``key`` and ``key_per_core`` that the file has."""
    whole: float | None = getattr(section, key)
    per_core: float | None = getattr(section, f"{key}_per_core")
    if whole is not None and per_core is not None:
        raise UserError(f"{where}:{line}: found both {key!r} and '{key}_per_core' against one of them")
    if per_core is not None:
        return Amount(per_core, per_core=True)
    if whole is None and default is None:
        raise UserError(f"{where}:{line}: key {key!r} is missing (or '{key}_per_core')")
    return Amount(whole if whole is not None else default or 0.0)


def _system(model: _SystemModel, document: Mapping[str, object], where: str) -> System:
    assert isinstance(document, CommentedMap)
    chip, dram, network = model.accelerator, model.dram, ONE_CHIP
    if model.network is not None:
        dimensions = tuple(Dimension(**dict(one)) for one in model.network.dimensions)
        network = Network(**{**dict(model.network), "dimensions": dimensions})
    chip_line, dram_line = _line(document, ["accelerator"]), _line(document, ["dram"])
    # Every figure of the file with the source that the file states for it, or for its section.
    sources = []
    for section in ("accelerator", "dram"):
        for key, value in document[section].items():
            if key == "cores":  # the caller may ask for another number
                continue
            source = model.sources.get(f"{section}.{key}", model.sources.get(section, f"system {model.name}"))
            sources.append(Assumption(f"{section}.{key}", "unlimited" if value == math.inf else str(value), source))
    return System(
        name=model.name,
        chips=model.chips,
        accelerator=Accelerator(
            **chip.model_dump(include={"cores", "lanes_per_core", "stages_per_core", "frequency_ghz"}),
            sram=_amount(chip, "sram_bytes", where, chip_line, default=None),
            price=_amount(chip, "price_usd", where, chip_line, default=0.0),
            power=_amount(chip, "power_w", where, chip_line, default=0.0),
        ),
        dram=Dram(
            bandwidth=_amount(dram, "bandwidth_gb_per_s", where, dram_line, default=None),
            capacity=Amount(dram.capacity_bytes),
            **dram.model_dump(include={"price_usd_per_gb_per_s", "power_w_per_gb_per_s"}),
        ),
        network=network,
        sources=tuple(sources),
    )
