"""Maps a dataflow graph on several chips: as many of those at hand as give the least time."""

from collections.abc import Iterator
from dataclasses import replace

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.check.exchanges import check_exchanges
from dfcompile.dfmodel_backend.check.mappings import check
from dfcompile.dfmodel_backend.evaluate.mapping import Mapping
from dfcompile.dfmodel_backend.machine.cost import cost_usd, power_w
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.sharding.graphs import Sharding, find_sharding, require_whole_products, share_graph
from dfcompile.dfmodel_backend.solve.mapper import map_graph
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import InfeasibleError

EVERY_UP_TO = 8  # larger numbers only if they are likely to be of use


class ChipCounts:
    """Maps a graph on chips of a system; what is found for a number of chips is kept."""

    def __init__(self, graph: DataflowGraph, system: System, options: MappingOptions | None = None) -> None:
        self._graph = graph
        self._system = system
        self._options = options or MappingOptions()
        self._found: dict[int, Mapping | InfeasibleError] = {}
        self._sharding: Sharding | None = None

    def fastest(self, chips: int) -> Mapping:
        """Shard the graph over numbers of chips up to ``chips``, fuse each share, and keep the fastest.

        Every number up to `EVERY_UP_TO`, powers of two, divisors of ``chips``, and what was asked for before is tried,
        so that more chips at hand are never slower than those asked for before. They lie along one dimension of the
        network or more, as is fastest. Ties go to fewer chips, then to fewer dimensions.
        Every mapping is checked. The figures are those of all chips in use.

        Raises:
            UserError: the system has fewer chips.
            InfeasibleError: no number of chips holds the graph; the message is that of the most chips tried.
        """
        self._system.require_chips(chips)
        tried = {count: self._on(count) for count in self._candidates(chips) if self._system.parts(count)}
        mappings = [one for one in tried.values() if isinstance(one, Mapping)]
        if not mappings:
            raise next(one for one in reversed(tried.values()) if isinstance(one, InfeasibleError))
        best = min(mappings, key=lambda mapping: (mapping.time_s, mapping.chips))
        if chips == 1:
            return best
        kept = tuple(one for one in best.assumptions if one.name != "chips")
        return replace(best, assumptions=(*kept, *_explanation(tried, best, chips)))

    def _candidates(self, chips: int) -> Iterator[int]:
        for count in range(1, chips + 1):
            is_power = count & (count - 1) == 0
            if count <= EVERY_UP_TO or is_power or chips % count == 0 or count in self._found:
                yield count

    def _on(self, count: int) -> Mapping | InfeasibleError:
        """Return the fastest mapping on so many chips, or why there is none."""
        if count not in self._found:
            try:
                self._found[count] = min(self._mappings(count), key=lambda mapping: mapping.time_s)
            except InfeasibleError as error:
                self._found[count] = error
        return self._found[count]

    def _mappings(self, count: int) -> Iterator[Mapping]:
        """Yield the mapping on each part of so many chips but those whose exchanges are all slower than another's."""
        known: list[DataflowGraph] = []
        for part in self._system.parts(count):
            share = self._share(part)
            if not any(_is_never_slower(other, share) for other in known):
                known.append(share)
                yield _mapping(self._graph, part, share, self._options)

    def _share(self, part: System) -> DataflowGraph:
        if part.chips == 1:
            return self._graph
        require_whole_products(self._graph, part.chips)
        if self._sharding is None:
            self._sharding = find_sharding(self._graph)
        return share_graph(self._graph, part, self._sharding)


def _is_never_slower(one: DataflowGraph, other: DataflowGraph) -> bool:
    pairs = zip(one.kernels, other.kernels, strict=True)
    return all(kernel.exchange_ns <= same.exchange_ns for kernel, same in pairs)


def _mapping(graph: DataflowGraph, system: System, share: DataflowGraph, options: MappingOptions) -> Mapping:
    mapping = map_graph(share, system, options)
    check(share, system, mapping)
    if system.chips == 1:
        return mapping
    check_exchanges(share, system)
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


def _explanation(tried: dict[int, Mapping | InfeasibleError], best: Mapping, chips: int) -> Iterator[Assumption]:
    """Say what the divisors of the number of chips, and the fastest number, would take, and what their time is of."""
    for count, found in tried.items():
        name = f"{count} of {chips} chips"
        if chips % count and found is not best:
            continue
        if isinstance(found, InfeasibleError):
            yield Assumption(f"{name}, not possible", str(found), "--chips")
            continue
        parts = ", ".join(f"{kind} {_part(found, f'{kind}_ns')}" for kind in ("compute", "memory", "network"))
        fastest = ", the fastest" if found is best else ""
        yield Assumption(f"{name}{fastest}", f"{found.time_s * 1e6:.4g} µs: {parts} µs", "--chips")
    yield Assumption(
        "kernels on several chips",
        "split so that the fewest bytes move between chips; an all-reduce is a reduce-scatter and an all-gather; "
        "a chip's share is rounded up",
        "[ko24, section 3]",
    )


def _part(mapping: Mapping, kind: str) -> str:
    total = sum(float(getattr(config, kind)) for config in mapping.configs)
    return f"{total / 1e3:.4g}"
