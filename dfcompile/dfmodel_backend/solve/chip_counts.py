"""Maps a dataflow graph on one chip, or on as many of those at hand as give the least time."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import takewhile

import numpy as np
from msgspec import Struct

from dfcompile.dfmodel_backend.check.collectives import check_exchanges
from dfcompile.dfmodel_backend.check.mappings import check_mapping
from dfcompile.dfmodel_backend.check.recomputation import recompute_mapping
from dfcompile.dfmodel_backend.evaluate.graphs import Mapping, configurations_of, total_figures
from dfcompile.dfmodel_backend.fusion.fuse import GraphProblem
from dfcompile.dfmodel_backend.fusion.fusion_problem import Fusion
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver, find_solver
from dfcompile.dfmodel_backend.inter_chip.conversions import TensorGroup
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.intra_chip.set_times import tiles_alone
from dfcompile.dfmodel_backend.machine.system import Amount, System
from dfcompile.dfmodel_backend.options import DEFAULT_SOLVER, NS_PER_S, Assumption, MappingOptions, Timed, gap_above
from dfcompile.dfmodel_backend.sharding.graphs import Sharding, SharedGraph
from dfcompile.dfmodel_backend.solve.sharding_search import TIE, Found, ShardingSearch
from dfcompile.dfmodel_backend.workload.graph import DataflowGraph, Exchange
from dfcompile.errors import InfeasibleError
from dfcompile.host.stages import counted
from dfcompile.plugins import is_own
from dfcompile.records import replace


def map_graph(
    graph: DataflowGraph, system: System, options: MappingOptions | None = None, solver: FusionSolver | None = None
) -> Mapping:
    """Fuse the kernels of a graph into configurations of one chip, in the least time.

    Of equally fast ones they are those with the fewest DRAM bytes, then the fewest. Budgets count work, never time. If
    down-sets or pairs of them are too many, they are the best along a few topological orders; if an integer program is
    too large, or stops at its limit of nodes without a solution, another one is taken.

    Args:
        graph: to map.
        system: of which one chip is used.
        options: of the mapping.
        solver: None: the one that the options name.

    Raises:
        InfeasibleError: a kernel does not fit the chip, or no chain of configurations fits; the message names the
            kernel, the limit and what would be enough.
        UserError: there is no such solver.
        PluginError: a plug-in's solver failed.
        InternalError: a solver of ours failed.
    """
    chosen = options or MappingOptions()
    started = time.perf_counter()
    model = GraphModel(graph, system.machine, chosen)
    require_kernels_fit(model, system.accelerator.sram)
    asked = solver or find_solver(chosen.solver)
    nothing = Fusion((), 0.0, is_optimal=True, solver=chosen.solver)
    found = asked.solve(GraphProblem(model, chosen)) if graph.kernels else nothing
    if found.chain is None:
        raise no_chain_error(model) if found.is_optimal or is_own(asked.module) else asked.found_nothing()
    bound_ns = model.least_ns()
    solver_s = time.perf_counter() - started
    figures = total_figures(graph, system, configurations_of(model, [kernels for kernels in found.chain if kernels]))
    optimal = found.is_optimal or figures.time_s * NS_PER_S <= bound_ns
    bound_s = figures.time_s if optimal else min(figures.time_s, bound_ns / NS_PER_S)
    return Mapping(
        figures=figures,
        optimal=optimal,
        gap=gap_above(bound_s, figures.time_s),
        bound_time_s=bound_s,
        solver=found.solver,
        solver_s=solver_s,
        options=chosen,
        assumptions=(*graph.assumptions, *_assumptions(system, chosen)),
        system=system.one_chip,
    )


def _assumptions(system: System, options: MappingOptions) -> tuple[Assumption, ...]:
    chip = system.accelerator
    if options.compute_utilization > 0:
        compute = Assumption("compute", f"{options.compute_utilization} of the peak", "option compute_utilization")
    else:
        compute = Assumption(
            "compute", "cores are split so that the slowest kernel is fastest; no pipeline fill", "[ko24, section 4]"
        )
    return (
        Assumption("system", system.name, "--system" if system.name != "canonical" else "default"),
        *system.sources,
        Assumption("chips", "1", "the graph is not sharded"),
        Assumption("cores", str(chip.cores), "--pes"),
        compute,
        Assumption("overlap in a configuration", options.overlap.value, "option overlap [ko24]"),
        Assumption(
            "tiles",
            "streamed operands pass through SRAM in equal tiles, as many as needed to fit; two tiles of each "
            "tensor at the border of a configuration, levels + 1 between two kernels",
            "[ko24, section 4]; the count per configuration is dfcompile's",
        ),
    )


def require_kernels_fit(model: GraphModel, sram: Amount) -> None:
    """Check that each kernel fits the chip alone: then kernel by kernel is a mapping, if DRAM holds it.

    Args:
        model: of the chip.
        sram: as the system file gives it.

    Raises:
        InfeasibleError: naming the kernel, its SRAM and what the chip would need.
    """
    for number, work in enumerate(model.works):
        if tiles_alone(model, number) is None:
            needed = int(model.sram_alone(number, model.most_weight_tiles[number]))
            raise InfeasibleError(
                f"kernel {work.name!r}: needs {needed} bytes of SRAM, alone and in the finest tiles, "
                f"against {_number(model.sram_capacity)} of the chip ({_remedy(sram, needed)})"
            )


def no_chain_error(model: GraphModel) -> InfeasibleError:
    """Return the error for kernels that fit one by one but not in sequence: DRAM or the count of configurations."""
    count, capacity = len(model.works), model.machine.dram_bytes
    live = model.waiting_bytes(np.tri(count, k=-1, dtype=bool), np.eye(count, dtype=bool)) + model.always_bytes
    worst = int(live.max(initial=0))
    if capacity and worst > capacity:
        name = model.works[int(np.argmax(live))].name
        return InfeasibleError(
            f"kernel {name!r}: found {worst} bytes alive in DRAM, kernel by kernel, against {_number(capacity)} "
            f"of the chip (give dram.capacity_bytes at least {worst}, or more chips)"
        )
    return InfeasibleError(
        f"graph: no mapping in at most {model.options.max_configurations} configurations fits SRAM and cores "
        f"(expected up to {count} configurations)"
    )


def _remedy(sram: Amount, needed: int) -> str:
    if sram.per_core and sram.value > 0:
        return f"at least {math.ceil(needed / sram.value)} cores, or accelerator.sram_bytes_per_core of more"
    return f"accelerator.sram_bytes of at least {needed}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.1f}"


EVERY_UP_TO = 8  # larger numbers only if they are likely to be of use


class _Found(Struct, frozen=True, eq=False):
    """A mapping, a time that none on so many chips beats, and on several chips its share and search."""

    mapping: Mapping
    bound_s: float
    share: SharedGraph | None = None
    search: ShardingSearch | None = None

    @property
    def time_s(self) -> float:
        return self.mapping.figures.time_s


class SplitOnChips(Struct, frozen=True, eq=False):
    """Ways to split a graph over a number of chips.

    Attributes:
        part: of the system: the chips in use.
        shardings: of least ideal time, then of least exchange where that is another one.
        shared: gives what one chip has under a sharding.
    """

    part: System
    shardings: tuple[Sharding, ...]
    shared: Callable[[Sharding], SharedGraph]

    @property
    def chips(self) -> tuple[int, ...]:
        """Along each dimension of the network."""
        return tuple(dimension.chips for dimension in self.part.network.dimensions)

    @property
    def kernels(self) -> tuple[str, ...]:
        """Names of the kernels that are split or whole."""
        return tuple(self.shardings[0])


class ChipCounts:
    """Maps a graph on chips of a system; what is found for a number of chips is kept."""

    def __init__(
        self, graph: DataflowGraph, system: System, options: MappingOptions | None = None, asked: Sequence[int] = ()
    ) -> None:
        """Prepare; nothing is mapped yet.

        Args:
            graph: to map.
            system: with all its chips.
            options: of the mappings.
            asked: the numbers of chips of the run; with each, those are tried that are for the ones before it.
        """
        self.asked = tuple(asked)
        self._graph = graph
        self._system = system
        self._options = options or MappingOptions()
        self._on, self._searches = cache(self._find_on), cache(self._prepare)

    def fastest(self, chips: int) -> Mapping:
        """Shard the graph over numbers of chips up to ``chips``, fuse each share, and keep the fastest.

        Every number up to `EVERY_UP_TO`, powers of two, and divisors of ``chips`` are tried, and what is for the
        numbers asked for before, so that more chips at hand are never slower than those; only divisors, of which a
        report tells, are searched if their bound says that they are not faster. They lie along one dimension of the
        network or more, as is fastest. Ties go to fewer chips, then to fewer dimensions.
        Every mapping that is spoken of is checked, and the figures of the one that is kept are recomputed from its
        assignment. They are those of all chips in use.

        Raises:
            UserError: the system has fewer chips.
            InfeasibleError: no number of chips holds the graph; the message is that of the most chips tried.
            VerificationError: a mapping breaks a rule, or a figure is not what the evaluator says.
        """
        tried, fastest = self._tried(chips)
        time_s = fastest.time_s
        bound_s = min(one.bound_s for one in tried.values() if isinstance(one, _Found))  # of all shardings on them
        bound_s, is_optimal = (time_s, True) if bound_s >= time_s * (1 - TIE) else (bound_s, False)
        best = replace(fastest.mapping, optimal=is_optimal, bound_time_s=bound_s, gap=gap_above(bound_s, time_s))
        recompute_mapping(self._graph, best.system, best)
        told = {
            count: replace(fastest, mapping=best) if one is fastest else one
            for count, one in tried.items()
            if one is fastest or _is_told(count, chips)
        }
        for one in told.values():
            if isinstance(one, _Found):
                system = one.mapping.system
                if one.share is None:
                    check_mapping(self._graph, system, one.mapping)
                else:
                    check_mapping(one.share.graph, system, one.mapping, self._graph)
                    check_exchanges(one.share.graph, system)
        if chips == 1:
            return best
        kept = tuple(one for one in best.assumptions if one.name != "chips")
        return replace(best, assumptions=(*kept, *_explanation(told, best, chips)))

    def fastest_count(self, chips: int) -> int:
        """Return how many chips the fastest mapping uses.

        Raises:
            UserError: the system has fewer chips.
            InfeasibleError: no number of chips holds the graph.
        """
        return self._tried(chips)[1].mapping.chips

    def split_on(self, count: int) -> SplitOnChips | InfeasibleError:
        """Return the shardings on so many chips, two or more, that may be the best; or why there is none."""
        if not self._system.parts(count):
            return InfeasibleError(f"graph: the network has no part of {count} chips")
        found = self._on(count)
        if isinstance(found, InfeasibleError) or found.search is None:
            return found if isinstance(found, InfeasibleError) else InfeasibleError(f"graph: {count} chips")
        best = dict(found.mapping.sharding)
        least = found.search.of_least_exchange()
        return SplitOnChips(found.mapping.system, (best,) if least == best else (best, least), found.search.shared)

    def _tried(self, chips: int) -> tuple[dict[int, _Found | InfeasibleError], _Found]:
        """Return what is found for numbers of chips up to ``chips``, and the fastest of it."""
        self._system.require_chips(chips)
        counts = {
            count: None
            for asked in (*takewhile(chips.__ne__, self.asked), chips)
            for count in range(1, chips + 1)
            if count <= asked and (count <= EVERY_UP_TO or count & (count - 1) == 0 or asked % count == 0)
        }
        tried: dict[int, _Found | InfeasibleError] = {}
        fastest: _Found | None = None
        for count in counted(sorted(counts)):
            if not self._system.parts(count):
                continue
            if fastest is not None and not _is_told(count, chips):
                enough_s = fastest.time_s * (1 - TIE)
                if all(search.bound_s >= enough_s for search in self._searches(count)):
                    continue
            tried[count] = one = self._on(count)
            if isinstance(one, _Found) and (fastest is None or one.time_s < fastest.time_s):
                fastest = one
        if fastest is None:
            raise next(one for one in reversed(tried.values()) if isinstance(one, InfeasibleError))
        return tried, fastest

    def _find_on(self, count: int) -> _Found | InfeasibleError:
        """Return the fastest mapping on so many chips, or why there is none."""
        try:
            if count > 1:
                return self._fastest_part(count)
            mapping = map_graph(self._graph, self._system.one_chip, self._options)
            return _Found(mapping, mapping.bound_time_s)
        except InfeasibleError as error:
            return error

    def _fastest_part(self, count: int) -> _Found:
        """Return the fastest mapping on parts of so many chips."""
        best: tuple[Found, ShardingSearch] | None = None
        bound_s = math.inf
        refused: InfeasibleError | None = None
        searches = self._searches(count)
        for search in searches:
            known_s = math.inf if best is None else best[0].mapping.figures.time_s
            found, least_s, error = search.best(known_s, len(searches))
            bound_s = min(bound_s, least_s)
            refused = refused or error
            if found is not None and (best is None or found.rank < best[0].rank):
                best = found, search
        if best is None:
            raise refused or InfeasibleError(f"graph: no mapping on {count} chips")
        found, search = best
        return _Found(self._of_all_chips(found, search.system), bound_s, found.share, search)

    def _prepare(self, count: int) -> tuple[ShardingSearch, ...]:
        """Return the search on each part of so many chips; one that takes as long as another one is left out."""
        different: dict[tuple[object, ...], System] = {}
        for part in self._system.parts(count):
            different.setdefault(TensorGroup.of(part).likeness, part)
        options = replace(self._options, solver=DEFAULT_SOLVER)

        def search(part: System) -> ShardingSearch:
            return ShardingSearch(self._graph, part, self._options, lambda share: map_graph(share.graph, part, options))

        return tuple(map(search, different.values()))

    def _of_all_chips(self, found: Found, part: System) -> Mapping:
        """Return the mapping with the figures of all chips, by the solver that was asked for."""
        mapping, share = found.mapping, found.share
        if self._options.solver != DEFAULT_SOLVER:
            mapping = map_graph(share.graph, part, self._options)
        return replace(
            mapping,
            figures=total_figures(self._graph, part, mapping.figures.configs, share),
            system=part,
            chips=part.chips,
            sharding=share.sharding,
            network_chips=TensorGroup.of(part).chips,
        )


def _is_told(count: int, chips: int) -> bool:
    """Return whether a report on so many chips says what a smaller number takes."""
    return chips > 1 and chips % count == 0


def _explanation(told: dict[int, _Found | InfeasibleError], best: Mapping, chips: int) -> Iterator[Assumption]:
    """Say what the divisors of the number of chips, and the fastest number, would take, and what their time is of."""
    for count, found in told.items():
        name = f"{count} of {chips} chips"
        if isinstance(found, InfeasibleError):
            yield Assumption(f"{name}, not possible", str(found), "--chips")
            continue
        fastest = ", the fastest" if found.mapping is best else ""
        yield Assumption(f"{name}{fastest}", times_in_words(found.time_s, found.mapping.figures.configs), "--chips")
    yield from exchanges_in_words("exchange", best.figures.exchanges, best.chips)
    yield Assumption(
        "kernels on several chips",
        "split so that the mapping takes the least time; an all-reduce is a reduce-scatter and an all-gather; "
        "a chip's share is rounded up; a kernel that is not split runs on every chip, and its operations count once",
        "[ko24, section 3]",
    )


def times_in_words(time_s: float, configurations: Sequence[Timed]) -> str:
    """Return how long configurations take, and their compute, memory and network."""
    kinds = ("compute", "memory", "network")
    sums = [sum(float(getattr(one, f"{kind}_ns")) for one in configurations) / 1e3 for kind in kinds]
    listed = ", ".join(f"{kind} {total:.4g}" for kind, total in zip(kinds, sums, strict=True))
    return f"{time_s * 1e6:.4g} µs: {listed} µs"


def exchanges_in_words(what: str, exchanges: Sequence[Exchange], chips: int) -> Iterator[Assumption]:
    """Say what each exchange does, and how long it takes."""
    for one in exchanges:
        along = " and ".join(str(dimension) for dimension in one.dimensions)
        readers = f"for {', '.join(one.readers)}" if one.readers else "as an output of the model"
        yield Assumption(
            f"{what} of {one.tensor!r} on {chips} chips",
            f"{one.kind} of {one.message_bytes:,} bytes along dimension {along} of the network, from {one.before} to "
            f"{one.after}, {readers}: {one.time_ns / 1e3:.4g} µs, {one.moved_bytes:,} bytes moved",
            "[ko24, section 3]",
        )
