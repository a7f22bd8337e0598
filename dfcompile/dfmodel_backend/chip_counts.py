"""Maps a dataflow graph on several chips: as many of those at hand as give the least time."""

from dataclasses import replace

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.checker import check
from dfcompile.dfmodel_backend.cost import cost_usd, power_w
from dfcompile.dfmodel_backend.graph import DataflowGraph
from dfcompile.dfmodel_backend.graph_shares import shard_graph
from dfcompile.dfmodel_backend.mapper import map_graph
from dfcompile.dfmodel_backend.mapping import Mapping
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.system import System
from dfcompile.errors import InfeasibleError


def map_on_chips(graph: DataflowGraph, system: System, chips: int, options: MappingOptions | None = None) -> Mapping:
    """Shard a graph over each number of chips that divides ``chips``, fuse each share, and keep the fastest.

    Ties go to fewer chips. Every mapping is checked. The figures are those of all chips in use.

    Raises:
        UserError: the system has fewer chips.
        InfeasibleError: no number of chips holds the graph; the message is that of all chips.
    """
    system.with_chips(chips)
    found: list[Mapping] = []
    problem: InfeasibleError | None = None
    for count in (count for count in range(1, chips + 1) if chips % count == 0):
        try:
            found.append(_mapping(graph, system.with_chips(count), options))
        except InfeasibleError as error:
            problem = error
    if not found:
        assert problem is not None
        raise problem
    best = min(found, key=lambda mapping: (mapping.time_s, mapping.chips))
    if chips == 1:
        return best
    kept = tuple(one for one in best.assumptions if one.name != "chips")
    return replace(best, assumptions=(*kept, *_explanation(found, best, chips)))


def _mapping(graph: DataflowGraph, system: System, options: MappingOptions | None) -> Mapping:
    share, _ = shard_graph(graph, system)
    mapping = map_graph(share, system, options)
    check(share, system, mapping)
    if system.chips == 1:
        return mapping
    power = power_w(system)
    peak_flop_per_s = system.accelerator.peak_gflops * 1e9 * system.chips
    return replace(
        mapping,
        chips=system.chips,
        flop=graph.flop,
        dram_bytes=mapping.dram_bytes * system.chips,
        network_bytes=round(sum(kernel.exchange_bytes for kernel in share.kernels)),
        cost_usd=cost_usd(system),
        power_w=power,
        energy_j=power * mapping.time_s,
        utilization=graph.flop / (mapping.time_s * peak_flop_per_s) if mapping.time_s else 0.0,
    )


def _explanation(found: list[Mapping], best: Mapping, chips: int) -> tuple[Assumption, ...]:
    """Say what each number of chips would take, and of what its time is made."""
    lines = [
        Assumption(
            f"{mapping.chips} of {chips} chips{', the fastest' if mapping is best else ''}",
            f"{mapping.time_s * 1e6:.4g} µs: compute {_part(mapping, 'compute_ns')}, memory "
            f"{_part(mapping, 'memory_ns')}, network {_part(mapping, 'network_ns')} µs",
            "--chips",
        )
        for mapping in found
    ]
    layout = Assumption(
        "kernels on several chips",
        "split so that the fewest bytes move between chips; an all-reduce is a reduce-scatter and an all-gather",
        "[ko24, section 3]",
    )
    return (*lines, layout)


def _part(mapping: Mapping, kind: str) -> str:
    total = sum(float(getattr(config, kind)) for config in mapping.configs)
    return f"{total / 1e3:.4g}"
