"""Lists the kinds of plug-ins: entry-point groups, what was found with its origin, and what cannot be imported."""

import traceback
from collections.abc import Callable, Iterator
from typing import Final

from dfcompile.canonical_dag.dag_pass import DAG_PASSES
from dfcompile.dfmodel_backend.fusion.registry import SOLVERS
from dfcompile.dfmodel_backend.machine.named_systems import systems_listed
from dfcompile.dfmodel_backend.machine.network.topologies import DIMENSION_KINDS
from dfcompile.frontend.reading import FILE_KINDS
from dfcompile.host.printable import printable
from dfcompile.lowering.registry import EXPANSIONS, PASSES
from dfcompile.plugins import ImportFault, KindListing, is_own
from dfcompile.report.report_format import REPORT_FORMATS
from dfcompile.report.text_tables import Column, folded, listing_lines, page
from dfcompile.scheduler.partitioner import PARTITIONERS

KINDS: Final[tuple[Callable[[], KindListing], ...]] = (
    FILE_KINDS.listed,
    EXPANSIONS.listed,
    PASSES.listed,
    DAG_PASSES.listed,
    PARTITIONERS.listed,
    SOLVERS.listed,
    DIMENSION_KINDS.listed,
    systems_listed,
    REPORT_FORMATS.listed,
)
_INDENT = "   "


def plugins_listing(width: int, *, verbose: bool = False) -> str:
    """Return the kinds of plug-ins and what is found of each; our own are only counted, unless ``verbose``.

    Args:
        width: of the page, in columns.
        verbose: list our own as well, and the tracebacks of what cannot be imported.
    """
    kinds = [listed() for listed in KINDS]
    own = [sum(is_own(origin) for _, origin in kind.plugins) for kind in kinds]
    rows = [
        (kind.plural, kind.groups[0], str(count), str(len(kind.plugins) - count))
        for kind, count in zip(kinds, own, strict=True)
    ]
    headings = ("kind", "entry-point group", "own", "plug-ins")
    columns = [
        Column(text, tuple(cells), is_text=True) for text, cells in zip(headings, zip(*rows, strict=True), strict=True)
    ]
    lines = listing_lines(columns, width)
    lines += [line for kind in kinds for line in _found(kind, width, verbose=verbose)]
    lines += _failed(kinds, width, verbose=verbose)
    return page(lines)


def _found(kind: KindListing, width: int, *, verbose: bool) -> Iterator[str]:
    shown = [(name, origin) for name, origin in kind.plugins if verbose or not is_own(origin)]
    if shown:
        yield ""
        yield f"{kind.plural} of {', '.join(kind.groups)}"
        names, origins = zip(*shown, strict=True)
        yield from listing_lines([Column("name", names, is_text=True), Column("origin", origins, is_text=True)], width)


def _failed(kinds: list[KindListing], width: int, *, verbose: bool) -> Iterator[str]:
    faults = {str(fault): fault for kind in kinds for fault in kind.faults}
    clashes = [kind.clash for kind in kinds if kind.clash]
    if faults or clashes:
        yield ""
        yield "what cannot be used"
    for line, fault in faults.items():
        yield from folded(printable(line), width, _INDENT)
        if verbose:
            yield from trace_lines(fault)
    for clash in clashes:
        yield from folded(printable(clash), width, _INDENT)


def trace_lines(fault: ImportFault) -> Iterator[str]:
    """Yield the traceback of a module that cannot be imported, from the module on."""
    for line in "".join(traceback.format_exception(fault.error)).splitlines():
        yield f"{_INDENT}{printable(line)}"
