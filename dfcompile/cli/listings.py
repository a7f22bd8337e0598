"""Lists what is registered and where it comes from: expansions, passes, operators, systems, kinds of plug-ins."""

import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Final

from dfcompile.canonical_dag import DagPass, registered_dag_passes
from dfcompile.canonical_dag.dag_pass import DAG_PASSES
from dfcompile.dfmodel_backend import System, named_systems, read_named_system
from dfcompile.dfmodel_backend.fusion.fusion_solver import SOLVERS
from dfcompile.dfmodel_backend.machine.named_systems import SYSTEMS, NamedSystem
from dfcompile.dfmodel_backend.machine.network.topologies import DIMENSION_KINDS
from dfcompile.errors import UserError, nearest
from dfcompile.expansion_names import base_name, natural_order, told_names
from dfcompile.frontend import CANONICAL, ONNX
from dfcompile.frontend.operator_claims import Cover, operator_claims
from dfcompile.frontend.reading import FILE_KINDS
from dfcompile.host.printable import printable
from dfcompile.language_models.configuration.reading import read_model, shipped_names
from dfcompile.language_models.footprint import parameters_of
from dfcompile.language_models.machines.device import Device
from dfcompile.language_models.machines.finding import shipped_devices
from dfcompile.lowering import Expansion, ExpansionTable, LoweringPass, registered_expansions, registered_passes
from dfcompile.lowering.expansion import EXPANSIONS
from dfcompile.lowering.lowering_pass import PASSES
from dfcompile.lowering.operators.base import fields_of
from dfcompile.plugins import KindListing, Plugin, is_own
from dfcompile.report.text_tables import INDENT, Column, folded, listing_lines, page
from dfcompile.scheduler.partitioner import PARTITIONERS

DEFAULT = "*"
CONDITIONAL = "+"
MARKS = f"{DEFAULT} taken where --expand names none; {CONDITIONAL} taken instead where its description says so"
TITLES = MappingProxyType({ONNX: "operators of ONNX", CANONICAL: "canonical operators"})


def expansions_listing(width: int, operator: str | None = None, *, verbose: bool = False) -> str:
    """Return what operators may be expanded to; the default of each operator type is marked.

    Args:
        width: of the page, in columns.
        operator: type whose expansions are listed with what they do; ``None``: of all types the names alone.
        verbose: list those of all types with what they do.

    Raises:
        UserError: there is no such type.
    """
    table = registered_expansions()
    types = sorted({op_type for _, op_type in table.by_operator})
    if operator is not None and operator not in types:
        raise UserError(f"expansions: no operator type {operator!r}{nearest(operator, types)}")
    if operator is None and not verbose:
        return _expansion_names(table, width)
    listed = []
    for dialect, title in TITLES.items():
        rows = []
        for plugin in table.plugins:
            found, origin = plugin.value, plugin.origin
            named = table.by_operator.get((dialect, found.op_type), {})
            values = sorted((name for name in named if base_name(name) == base_name(found.name)), key=natural_order)
            if operator in (None, found.op_type) and found.dialect == dialect and found.name == values[0]:
                mark = _mark(found, named)
                rows.append((found.op_type, mark, *told_names(values), origin, found.source, _plain(found.summary)))
        if rows:
            headings = ("operator", "", "name", "origin", "source", "what it does")
            listed.append(f"{title}\n" + _table(headings, rows, width))
    return "\n".join((*listed, page(folded(MARKS, width))))


def _mark(found: Expansion, named: Collection[str]) -> str:
    return DEFAULT if found.is_default or len(named) == 1 else "" if found.condition is None else CONDITIONAL


def _expansion_names(table: ExpansionTable, width: int) -> str:
    """Return a row per operator type with several expansions, and the names of the others."""
    parts = []
    for dialect, title in TITLES.items():
        rows, single = [], []
        for op_type in table.op_types(dialect):
            named = table.by_operator[dialect, op_type]
            marks = {base_name(name): _mark(found, named) for name, found in named.items()}
            if len(marks) == 1:
                single.append(op_type)
            else:
                told = told_names(named)
                rows.append((op_type, ", ".join(f"{name}{marks[base_name(name)]}" for name in told)))
        parts.append(f"{title}\n" + _table(("operator", "expansions"), rows, width))
        parts.append(page(folded(f"with one expansion: {', '.join(single)}", width)))
    more = "what each does: dfcompile expansions OPERATOR, such as Conv; of all: dfcompile expansions -v"
    return "\n".join((*parts, page([*folded(MARKS, width), *folded(more, width)])))


def passes_listing(width: int) -> str:
    """Return a table of every pass with its options and their defaults: of programs by their level, and of DAGs."""
    plugins: tuple[Plugin[LoweringPass] | Plugin[DagPass], ...]
    plugins = *registered_passes().plugins, *registered_dag_passes().plugins
    rows = []
    for plugin in plugins:
        found = plugin.value
        level = "dag" if isinstance(found, DagPass) else found.level.name.lower()
        settings = ", ".join(map(str, found.settings))
        rows.append((found.name, level, settings, plugin.origin, found.source, _plain(found.summary)))
    return _table(("name", "level", "options", "origin", "source", "what it does"), rows, width)


def ops_listing(width: int) -> str:
    """Return a table of every operator type and its expansions, those of ONNX first, of the others, and of fields."""
    table = registered_expansions()
    rows = [
        (dialect, op_type, ", ".join(told_names(table.by_operator[dialect, op_type])))
        for dialect in (ONNX, CANONICAL)
        for op_type in table.op_types(dialect)
    ]
    fields = [
        (op_type, found.name, found.default, _plain(found.meaning))
        for op_type, operator in sorted(table.operators.items())
        for found in fields_of(operator)
    ]
    others = [
        (claim.op_type, ": ".join(filter(None, (claim.cover.value, claim.reason))))
        for claim in operator_claims(frozenset(table.op_types(ONNX)))
        if claim.cover is not Cover.EXPANSIONS
    ]
    parts = [
        _table(("level", "operator", "expansions"), rows, width),
        "other operators of ONNX",
        _table(("operator", "how"), others, width),
        "fields of canonical operators",
        _table(("operator", "field", "default", "meaning"), fields, width),
    ]
    return "\n".join(parts)


def systems_listing(width: int) -> str:
    """Return a table of the machines that are known by name, and of devices of language models.

    Systems whose files are broken are left out.
    """
    rows = [_system_row(named, system) for named, system in _read_systems().items() if isinstance(system, System)]
    devices = [_device_row(device) for device in shipped_devices().values()]
    parts = [
        "machines of all commands",
        _table(("name", "chips", "cores", "lanes x stages", "GHz", "DRAM GB/s", "origin"), rows, width),
        *folded("devices of dfcompile llm, which takes the machines above as well", width),
        _table(("name", "TFLOP/s by number format", "memory GiB", "memory GB/s", "link GB/s"), devices, width),
    ]
    return "\n".join(parts)


def _device_row(device: Device) -> Sequence[str]:
    rates = (f"{name} {2 * rate / 1e12:,.0f}" for name, rate in device.macs_per_s.items())
    return (
        device.name,
        ", ".join(rates),
        f"{device.capacity_bytes / 2**30:,.4g}" if device.capacity_bytes else "unknown",
        f"{device.bytes_per_s / 1e9:,.5g}",
        ", ".join(f"{link.bytes_per_s / 1e9:,.4g}" for link in device.links) or "unknown",
    )


def configs_listing(width: int) -> str:
    """Return a table of the configurations of language models that are known by name."""
    rows = []
    for name in shipped_names():
        model = read_model(name)
        held = parameters_of(model)
        amounts = (f"{count / 1e9:,.4g}" for count in (held.total, held.active))
        rows.append((name, model.model_type, *amounts, str(len(model.layers)), f"{model.hidden:,}"))
    headings = ("name", "architecture", "parameters 10^9", "of a token 10^9", "layers", "hidden")
    return _table(headings, rows, width)


def _system_row(named: NamedSystem, system: System) -> Sequence[str]:
    chip = system.accelerator
    return (
        named.name,
        f"{system.chips:,}",
        "as many as --pes" if system.is_per_core else f"{chip.cores:,}",
        f"{chip.lanes_per_core} x {chip.stages_per_core}",
        f"{chip.frequency_ghz:g}",
        "unlimited" if system.is_dram_unlimited else f"{system.dram_gb_per_s:,g}",
        named.origin,
    )


def systems_faults() -> tuple[str, ...]:
    """Return a line for each package of systems that cannot be imported, and for each file that is broken."""
    broken = (system for system in _read_systems().values() if isinstance(system, UserError))
    return (*map(str, named_systems().faults), *map(str, broken))


def _read_systems() -> dict[NamedSystem, System | UserError]:
    found: dict[NamedSystem, System | UserError] = {}
    for named in named_systems().by_name.values():
        try:
            found[named] = read_named_system(named)
        except UserError as error:
            found[named] = error
    return found


def _plain(docstring: str) -> str:
    return docstring.replace("``", "")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> str:
    return page(_lines(headings, rows, width))


def _lines(headings: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> list[str]:
    columns = zip(headings, zip(*rows, strict=True), strict=True)
    return listing_lines([Column(heading, cells, is_text=True) for heading, cells in columns], width)


KINDS: Final[tuple[Callable[[], KindListing], ...]] = (
    FILE_KINDS.listed,
    EXPANSIONS.listed,
    PASSES.listed,
    DAG_PASSES.listed,
    PARTITIONERS.listed,
    SOLVERS.listed,
    DIMENSION_KINDS.listed,
    SYSTEMS.listed,
)


def plugins_listing(width: int, *, verbose: bool = False) -> str:
    """Return the kinds of plug-ins and what is found of each; our own are only counted, unless ``verbose``.

    Args:
        width: of the page, in columns.
        verbose: list our own as well, and the tracebacks of what cannot be imported.
    """
    kinds = [listed() for listed in KINDS]
    rows = []
    for kind in kinds:
        own = sum(is_own(origin) for _, origin in kind.plugins)
        rows.append((kind.plural, kind.groups[0], str(own), str(len(kind.plugins) - own)))
    lines = _lines(("kind", "entry-point group", "own", "plug-ins"), rows, width)
    lines += [line for kind in kinds for line in _found(kind, width, verbose=verbose)]
    lines += _failed(kinds, width, verbose=verbose)
    return page(lines)


def _found(kind: KindListing, width: int, *, verbose: bool) -> Iterator[str]:
    shown = [(name, origin) for name, origin in kind.plugins if verbose or not is_own(origin)]
    if shown:
        yield ""
        yield f"{kind.plural} of {', '.join(kind.groups)}"
        yield from _lines(("name", "origin"), shown, width)


def _failed(kinds: list[KindListing], width: int, *, verbose: bool) -> Iterator[str]:
    faults = {str(fault): fault for kind in kinds for fault in kind.faults}
    clashes = [kind.clash for kind in kinds if kind.clash]
    if faults or clashes:
        yield ""
        yield "what cannot be used"
    for line, fault in faults.items():
        yield from folded(printable(line), width, INDENT)
        if verbose:
            traced = "".join(traceback.format_exception(fault.error)).splitlines()
            yield from (f"{INDENT}{printable(text)}" for text in traced)
    for clash in clashes:
        yield from folded(printable(clash), width, INDENT)
