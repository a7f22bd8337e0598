"""Lists what is registered: expansions, passes, operators, systems, each with where it comes from."""

from collections.abc import Iterable, Sequence
from types import MappingProxyType

from dfcompile.canonical_dag import DagPass, registered_dag_passes
from dfcompile.dfmodel_backend import System, named_systems, read_named_system
from dfcompile.dfmodel_backend.machine.named_systems import NamedSystem
from dfcompile.errors import UserError
from dfcompile.expansion_names import base_name, natural_order, told_names
from dfcompile.frontend import CANONICAL, ONNX
from dfcompile.frontend.operator_claims import Cover, operator_claims
from dfcompile.lowering import LoweringPass, registered_expansions, registered_passes
from dfcompile.lowering.operators.description import fields_of
from dfcompile.report.text_tables import Column, folded, listing_lines, page

DEFAULT = "*"
CONDITIONAL = "+"
TITLES = MappingProxyType({ONNX: "operators of ONNX", CANONICAL: "canonical operators"})


def expansions_listing(width: int) -> str:
    """Return a table of every expansion per level; the default of each operator type is marked."""
    table = registered_expansions()
    listed = []
    for dialect, title in TITLES.items():
        rows = []
        for found, origin in ((plugin.value, plugin.origin) for plugin in table.plugins):
            named = table.by_operator.get((dialect, found.op_type), {})
            values = sorted((name for name in named if base_name(name) == base_name(found.name)), key=natural_order)
            if found.dialect == dialect and found.name == values[0]:
                mark = (
                    DEFAULT
                    if found.is_default or len(named) == 1
                    else CONDITIONAL
                    if found.condition is not None
                    else ""
                )
                rows.append((found.op_type, mark, *told_names(values), origin, found.source, _plain(found.summary)))
        listed.append(f"{title}\n" + _table(("operator", "", "name", "origin", "source", "what it does"), rows, width))
    conditional = f"{CONDITIONAL} taken instead where its description says so"
    marks = folded(f"{DEFAULT} taken where --expand names none; {conditional}", width)
    return "\n".join((*listed, page(marks)))


def passes_listing(width: int) -> str:
    """Return a table of every pass with its options and their defaults: of programs by their level, and of DAGs."""
    passes: list[tuple[LoweringPass | DagPass, str, str]] = [
        *((found.value, found.value.level.name.lower(), found.origin) for found in registered_passes().plugins),
        *((found.value, "dag", found.origin) for found in registered_dag_passes().plugins),
    ]
    rows = [
        (found.name, level, ", ".join(map(str, found.settings)), origin, found.source, _plain(found.summary))
        for found, level, origin in passes
    ]
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
    """Return a table of the machines that are known by name; those whose files are broken are left out."""
    rows = []
    for named, system in _read_systems().items():
        if isinstance(system, UserError):
            continue
        chip = system.accelerator
        rows.append(
            (
                named.name,
                f"{system.chips:,}",
                "as many as --pes" if system.is_per_core else f"{chip.cores:,}",
                f"{chip.lanes_per_core} x {chip.stages_per_core}",
                f"{chip.frequency_ghz:g}",
                "unlimited" if system.is_dram_unlimited else f"{system.dram_gb_per_s:,g}",
                named.origin,
            )
        )
    return _table(("name", "chips", "cores", "lanes x stages", "GHz", "DRAM GB/s", "origin"), rows, width)


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
    columns = zip(headings, zip(*rows, strict=True), strict=True)
    return page(listing_lines([Column(heading, cells, is_text=True) for heading, cells in columns], width))
