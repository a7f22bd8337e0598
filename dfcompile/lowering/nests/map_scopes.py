"""Map scopes made quickly: what ``SDFGState.add_mapped_tasklet`` adds, in a fraction of its time."""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

import dace
from dace.properties import CodeBlock
from dace.sdfg.nodes import AccessNode, Map, MapEntry, MapExit, Tasklet
from dace.sdfg.state import SDFGState
from dace.subsets import Range

from dfcompile.frontend import Prototype, WholeMemlets, untyped_connectors

_KEPT = 4096  # prototypes: some MB


def add_map_scope(
    state: SDFGState,
    whole: WholeMemlets,
    label: str,
    loops: Mapping[str, int],
    reads: Mapping[str, tuple[AccessNode, dace.Memlet]],
    code: str,
    result: str,
    write: tuple[AccessNode, dace.Memlet],
) -> tuple[Tasklet, MapEntry]:
    """Add a map scope of one tasklet to a state and connect it to access nodes; its nodes are copies of one scope's.

    The memlets outside of the scope are whole arrays: DaCe would find the exact ones by walking through all of the
    state for each scope, and nothing needs them.

    Args:
        state: to add it to.
        whole: of the state's program.
        label: of the tasklet; an identifier.
        loops: parameters and their extents, at least one.
        reads: variable of the tasklet -> where it comes from, one node per array, with a memlet of its own.
        code: of the tasklet, in Python.
        result: variable of the tasklet that is written.
        write: where it goes, with a memlet of its own.
    """
    target, memlet = write
    sources = sorted({node.data: node for node, _ in reads.values()}.items())
    connectors = {"in_connectors": untyped_connectors(reads), "out_connectors": untyped_connectors([result])}
    entries, tasklets, exits = _scope()
    tasklet = tasklets.copy(label=label, code=CodeBlock(code), **connectors)
    around = _map(tuple(loops.values())).copy(label=f"{label}_map", params=list(loops))
    entry = entries.copy(map=around, **_ports([array for array, _ in sources]))
    exit_ = exits.copy(map=around, **_ports([target.data]))
    state.add_nodes_from([entry, tasklet, exit_])
    for array, node in sources:
        state.add_edge(node, None, entry, f"IN_{array}", whole.of(array))
    for variable, (node, inner) in sorted(reads.items()):
        state.add_edge(entry, f"OUT_{node.data}", tasklet, variable, inner)
    if not reads:
        state.add_nedge(entry, tasklet, dace.Memlet())
    outer = whole.of(target.data)
    outer.wcr = memlet.wcr
    # An edge outside of the scope comes first: DaCe follows it when the one inside is added.
    state.add_edge(exit_, f"OUT_{target.data}", target, None, outer)
    state.add_edge(tasklet, result, exit_, f"IN_{target.data}", memlet)
    return tasklet, entry


@cache
def _scope() -> tuple[Prototype[MapEntry], Prototype[Tasklet], Prototype[MapExit]]:
    entry, exit_ = (kind(Map("map", [], Range([]))) for kind in (MapEntry, MapExit))
    return Prototype(entry), Prototype(Tasklet("tasklet")), Prototype(exit_)


@lru_cache(_KEPT)
def _map(extents: tuple[int, ...]) -> Prototype[Map]:
    return Prototype(Map("map", [], Range([(0, extent - 1, 1) for extent in extents])))


def _ports(arrays: Sequence[str]) -> dict[str, dict[str, dace.typeclass]]:
    """Return the connectors of a scope's border, through which whole arrays pass."""
    ends = (("in_connectors", "IN"), ("out_connectors", "OUT"))
    return {kind: untyped_connectors(f"{end}_{array}" for array in arrays) for kind, end in ends}
