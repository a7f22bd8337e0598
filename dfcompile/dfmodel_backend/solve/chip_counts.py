"""Maps a dataflow graph on several chips: as many of those at hand as give the least time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from dfcompile.dfmodel_backend.assumption import Assumption
from dfcompile.dfmodel_backend.check.exchanges import check_exchanges
from dfcompile.dfmodel_backend.check.mappings import check
from dfcompile.dfmodel_backend.check.recomputation import recompute_mapping
from dfcompile.dfmodel_backend.evaluate.graphs import shared_figures
from dfcompile.dfmodel_backend.evaluate.mapping import Mapping
from dfcompile.dfmodel_backend.machine.system import System
from dfcompile.dfmodel_backend.options import MappingOptions
from dfcompile.dfmodel_backend.sharding.graphs import Sharding, find_sharding, require_whole_products, share_graph
from dfcompile.dfmodel_backend.solve.mapper import map_graph
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph
from dfcompile.errors import InfeasibleError

EVERY_UP_TO = 8  # larger numbers only if they are likely to be of use


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """A mapping, the chips that it uses, and what one of them has of the graph."""

    mapping: Mapping
    part: System
    share: DataflowGraph


class ChipCounts:
    """Maps a graph on chips of a system; what is found for a number of chips is kept."""

    def __init__(self, graph: DataflowGraph, system: System, options: MappingOptions | None = None) -> None:
        self._graph = graph
        self._system = system
        self._options = options or MappingOptions()
        self._found: dict[int, _Found | InfeasibleError] = {}
        self._sharding: Sharding | None = None

    def fastest(self, chips: int) -> Mapping:
        """Shard the graph over numbers of chips up to ``chips``, fuse each share, and keep the fastest.

        Every number up to `EVERY_UP_TO`, powers of two, divisors of ``chips``, and what was asked for before is tried,
        so that more chips at hand are never slower than those asked for before. They lie along one dimension of the
        network or more, as is fastest. Ties go to fewer chips, then to fewer dimensions.
        Every mapping is checked, and the figures of the one that is kept are recomputed from its assignment. They are
        those of all chips in use.

        Raises:
            UserError: the system has fewer chips.
            InfeasibleError: no number of chips holds the graph; the message is that of the most chips tried.
            VerificationError: a mapping breaks a rule, or a figure is not what the evaluator says.
        """
        self._system.require_chips(chips)
        tried = {count: self._on(count) for count in self._candidates(chips) if self._system.parts(count)}
        found = [one for one in tried.values() if isinstance(one, _Found)]
        if not found:
            raise next(one for one in reversed(tried.values()) if isinstance(one, InfeasibleError))
        fastest = min(found, key=lambda one: (one.mapping.time_s, one.mapping.chips))
        best = fastest.mapping
        recompute_mapping(self._graph, fastest.share, fastest.part, best)
        if chips == 1:
            return best
        kept = tuple(one for one in best.assumptions if one.name != "chips")
        return replace(best, assumptions=(*kept, *_explanation(tried, best, chips)))

    def _candidates(self, chips: int) -> Iterator[int]:
        for count in range(1, chips + 1):
            is_power = count & (count - 1) == 0
            if count <= EVERY_UP_TO or is_power or chips % count == 0 or count in self._found:
                yield count

    def _on(self, count: int) -> _Found | InfeasibleError:
        """Return the fastest mapping on so many chips, or why there is none."""
        if count not in self._found:
            try:
                self._found[count] = min(self._mappings(count), key=lambda found: found.mapping.time_s)
            except InfeasibleError as error:
                self._found[count] = error
        return self._found[count]

    def _mappings(self, count: int) -> Iterator[_Found]:
        """Yield the mapping on each part of so many chips but those whose exchanges are all slower than another's."""
        known: list[DataflowGraph] = []
        for part in self._system.parts(count):
            share = self._share(part)
            if not any(_is_never_slower(other, share) for other in known):
                known.append(share)
                yield _Found(_mapping(self._graph, part, share, self._options), part, share)

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
    figures = shared_figures(graph, share, system, mapping.configs)
    return replace(
        mapping,
        chips=system.chips,
        flop=figures.flop,
        dram_bytes=figures.dram_bytes,
        network_bytes=figures.network_bytes,
        cost_usd=figures.cost_usd,
        power_w=figures.power_w,
        energy_j=figures.energy_j,
        utilization=figures.utilization,
    )


def _explanation(tried: dict[int, _Found | InfeasibleError], best: Mapping, chips: int) -> Iterator[Assumption]:
    """Say what the divisors of the number of chips, and the fastest number, would take, and what their time is of."""
    for count, found in tried.items():
        name = f"{count} of {chips} chips"
        mapping = None if isinstance(found, InfeasibleError) else found.mapping
        if chips % count and mapping is not best:
            continue
        if isinstance(found, InfeasibleError):
            yield Assumption(f"{name}, not possible", str(found), "--chips")
            continue
        parts = ", ".join(f"{kind} {_part(found.mapping, f'{kind}_ns')}" for kind in ("compute", "memory", "network"))
        fastest = ", the fastest" if mapping is best else ""
        yield Assumption(f"{name}{fastest}", f"{found.mapping.time_s * 1e6:.4g} µs: {parts} µs", "--chips")
    yield Assumption(
        "kernels on several chips",
        "split so that the fewest bytes move between chips; an all-reduce is a reduce-scatter and an all-gather; "
        "a chip's share is rounded up",
        "[ko24, section 3]",
    )


def _part(mapping: Mapping, kind: str) -> str:
    total = sum(float(getattr(config, kind)) for config in mapping.configs)
    return f"{total / 1e3:.4g}"
