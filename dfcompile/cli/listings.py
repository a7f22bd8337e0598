"""Lists what is registered: expansions, passes, operators, systems, each with where it comes from."""

from collections.abc import Iterable, Sequence
from types import MappingProxyType

from dfcompile.canonical_dag import DagPass, registered_dag_passes
from dfcompile.dfmodel_backend import load_system, shipped_systems
from dfcompile.frontend import CANONICAL, ONNX
from dfcompile.lowering import LoweringPass, registered_expansions, registered_passes
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
            if found.dialect == dialect:
                alone = len(table.by_operator[dialect, found.op_type]) == 1
                mark = DEFAULT if found.is_default or alone else CONDITIONAL if found.condition is not None else ""
                rows.append((found.op_type, mark, found.name, origin, found.source, _plain(found.summary)))
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
    """Return a table of every operator type and its expansions, those of ONNX first."""
    table = registered_expansions()
    rows = [
        (dialect, op_type, ", ".join(sorted(table.by_operator[dialect, op_type])))
        for dialect in (ONNX, CANONICAL)
        for op_type in table.op_types(dialect)
    ]
    return _table(("level", "operator", "expansions"), rows, width)


def systems_listing(width: int) -> str:
    """Return a table of the machines that are shipped."""
    rows = []
    for name in shipped_systems():
        system = load_system(name)
        chip = system.accelerator
        rows.append(
            (
                name,
                f"{system.chips:,}",
                "as many as --pes" if system.is_per_core else f"{chip.cores:,}",
                f"{chip.lanes_per_core} x {chip.stages_per_core}",
                f"{chip.frequency_ghz:g}",
                f"{system.dram_gb_per_s:,g}",
            )
        )
    return _table(("name", "chips", "cores", "lanes x stages", "GHz", "DRAM GB/s"), rows, width)


def _plain(docstring: str) -> str:
    return docstring.replace("``", "")


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> str:
    columns = zip(headings, zip(*rows, strict=True), strict=True)
    return page(listing_lines([Column(heading, cells, is_text=True) for heading, cells in columns], width))
