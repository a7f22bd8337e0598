"""Checks for solvers of fusion, for systems, and for kinds of dimensions of their networks.

Chains of random graphs are held against the shortest path, which is exact; figures of systems are plausible and have
sources.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random

from dfcompile.canonical_dag import Kernel, KernelVariant
from dfcompile.dfmodel_backend import (
    ChipCounts,
    DataflowGraph,
    MappingOptions,
    Overlap,
    System,
    Tensor,
    TensorKind,
    Use,
    check_mapping,
    load_system,
    map_graph,
    named_systems,
    read_named_system,
)
from dfcompile.dfmodel_backend.check.collectives import LeastLoads, least_loads
from dfcompile.dfmodel_backend.evaluate.graphs import Mapping
from dfcompile.dfmodel_backend.fusion.fusion_solver import FusionSolver
from dfcompile.dfmodel_backend.fusion.solvers.built_in import DP
from dfcompile.dfmodel_backend.machine.network import collective_times
from dfcompile.dfmodel_backend.machine.network.dimension_kind import DimensionKind, Figure
from dfcompile.dfmodel_backend.machine.network.topologies import Topology, network_units
from dfcompile.dfmodel_backend.machine.system import ONE_CHIP, Accelerator, Amount, Collective, Dram
from dfcompile.errors import InfeasibleError


def random_graph(random: Random, kernels: int) -> DataflowGraph:
    """Return a graph of so many kernels: products with weights and elementwise ones, each read by any later ones."""
    made = []
    tensors = [_tensor("x", TensorKind.INPUT, random.randrange(300), "", ["k0", "k1"][:kernels])]
    for number in range(kernels):
        name = f"k{number}"
        if random.random() < 0.5:  # half of them
            m, k, n = (random.randint(1, 6) for _ in range(3))
            made.append(Kernel(name, "MatMul", name, "mv", KernelVariant.GEMM_INPUT1_WEIGHT, 1, m, k, n, (), ()))
            tensors.append(_tensor(f"w{number}", TensorKind.WEIGHT, random.randrange(300), "", [name]))
        else:
            variant, elements = KernelVariant.ELEMENTWISE_INPUT1, random.randint(1, 30)
            made.append(Kernel(name, "Elementwise", name, "map", variant, 1, elements, 1, 1, (), ()))
        readers = [f"k{later}" for later in range(number + 1, kernels) if random.randrange(3) == 0]
        kind = TensorKind.INTERMEDIATE if readers and random.randrange(2) else TensorKind.OUTPUT
        tensors.append(_tensor(f"t{number}", kind, random.randrange(300), name, readers))
    return DataflowGraph.of("random", tuple(made), tuple(tensors))


def random_system(random: Random) -> System:
    """Return a chip of few cores whose SRAM and DRAM are small or unlimited."""
    cores, lanes, sram = random.randint(1, 8), random.randint(1, 2), Amount(random.choice([0, 300, 600, 1200]))
    chip = Accelerator(cores, lanes, 1, 1.0, sram=sram, price=Amount(100.0), power=Amount(10.0))
    dram = Dram(Amount(random.choice([0.5, 2.0, 8.0, 100.0])), Amount(random.choice([0, 0, 1200, 2500])), 1.0, 0.5)
    return System("random", 1, chip, dram, ONE_CHIP, ())


def _tensor(name: str, kind: TensorKind, size_bytes: int, source: str, readers: list[str]) -> Tensor:
    return Tensor(name, kind, size_bytes, source, tuple(Use(reader, 0) for reader in readers))


GRAPHS = 40
MOST_KERNELS = 7
TOLERANCE = 1e-9  # relative


def check_solver(solver: FusionSolver, *, graphs: int = GRAPHS, seed: int = 0) -> None:
    """Check a solver of fusion on random graphs of up to 7 kernels, on chips of little SRAM and DRAM.

    * Valid: each chain holds every kernel once, none before one that it waits for, and keeps the limits of cores, SRAM
      and DRAM; the independent checker accepts the mapping.
    * Honest: no chain is faster than the optimum, and a mapping that claims to be optimal is as fast. A solver that is
      exact finds a chain wherever there is one, and claims it.
    * Deterministic: a second time gives the same chain.

    Args:
        solver: to check.
        graphs: how many are drawn.
        seed: of the graphs.

    Raises:
        AssertionError: naming the graph, found against what.
        PluginError: the solver raises, or its chain is none.
    """
    random = Random(seed)  # noqa: S311  # graphs, no secrets
    for number in range(graphs):
        graph, system = random_graph(random, random.randint(1, MOST_KERNELS)), random_system(random)
        overlap, utilization = random.choice(list(Overlap)), random.choice([0.0, 0.7])
        most = random.randint(0, 3)
        options = MappingOptions(overlap=overlap, compute_utilization=utilization, max_configurations=most)
        where = f"solver {solver.name!r}: graph {number}"
        best, found = (_mapping(one, graph, system, options) for one in (DP, solver))
        if best is None:
            assert found is None, f"{where}: found {found} where nothing fits"
            continue
        if found is None:
            assert not solver.is_exact, f"{where}: found nothing, but {_sets(best)} fit"
            continue
        check_mapping(graph, system, found)
        again = _mapping(solver, graph, system, options)
        repeated = "nothing" if again is None else _sets(again)
        assert repeated == _sets(found), f"{where}: found {repeated} the second time against {_sets(found)}"
        least_s, found_s = best.figures.time_s, found.figures.time_s
        assert found_s >= least_s * (1 - TOLERANCE), f"{where}: found {found_s} s against at least {least_s}"
        assert found.optimal or not solver.is_exact, f"{where}: an exact solver does not claim the optimum"
        if found.optimal:
            said = f"claims the optimum, but {_sets(found)} take {found_s} s against {least_s} of {_sets(best)}"
            assert math.isclose(found_s, least_s, rel_tol=TOLERANCE), f"{where}: {said}"


def _mapping(solver: FusionSolver, graph: DataflowGraph, system: System, options: MappingOptions) -> Mapping | None:
    try:
        return map_graph(graph, system, options, solver)
    except InfeasibleError:
        return None


def _sets(mapping: Mapping) -> str:
    return " | ".join(" ".join(config.kernels) for config in mapping.figures.configs)


CHIPS = (2, 3, 4, 6, 8, 16)
GB_PER_S = 10.0
GROWING: tuple[Figure, ...] = ("gathered_shares", "exchanged_messages", "hops", "paid_links", "ports", "cut")


def check_topology(kind: DimensionKind, chips: Sequence[int] = CHIPS) -> None:
    """Check a kind of dimension against the graph of its links, for groups of several sizes.

    * Links: all chips are joined; as many links are paid as there are, or each at both of its ends; no chip has fewer
      ports, and no cut through the middle fewer links, than the kind says.
    * Collectives: no link carries less than what must cross the narrowest cut. An all-gather brings every chip the
      shares of all others; an all-reduce in two phases sends ``2 (N - 1) / N`` of the tensor from each chip; an
      all-to-all sends a message from each chip to each other; hops reach the farthest chip.
    * Monotony: every byte takes time, links of twice the bandwidth take half of it, more chips carry no less.
    * A chip alone exchanges nothing and takes no links.
    * Symmetry: a grid takes the same time whichever of its dimensions is called the first.

    Args:
        kind: to check.
        chips: sizes of groups, ascending, each of at least 2 chips.

    Raises:
        AssertionError: saying what was found against what.
        PluginError: a function of the kind raises, or returns no number.
    """
    for count in chips:
        _check_group(kind, count, _least_loads(kind, count))
        _check_times(kind, count)
    for figure in GROWING:
        found = [kind.count(figure, count) for count in chips]
        assert found == sorted(found), f"{kind}: {figure} of {list(chips)} chips: found {found} against ascending"
    alone = Topology((kind,))
    for both in (collective_times.all_to_all_ns_per_byte, collective_times.exchange_ns_per_byte):
        taken_ns = both(alone, (1,), (GB_PER_S,))
        assert taken_ns == 0, f"{kind}: one chip: found {taken_ns} ns against 0"
    assert not any(network_units(alone, (1,), (GB_PER_S,)).link_gb_per_s), f"{kind}: one chip: its links are paid"
    if kind.forms_grid:
        _check_grid(kind)


def _least_loads(kind: DimensionKind, chips: int) -> LeastLoads:
    try:
        return least_loads(kind.wires_of(chips), chips)
    except ValueError as error:
        raise AssertionError(f"{kind}: {chips} chips: {error}") from error


def _check_group(kind: DimensionKind, chips: int, least: LeastLoads) -> None:
    where = f"{kind}: {chips} chips"
    paid = kind.count("paid_links", chips)
    wanted = f"{least.links} links, or {least.ends} ends of them"
    assert paid in (least.links, least.ends), f"{where}: found {paid} links that are paid against {wanted}"
    assert kind.count("switch_ports", chips, False) <= kind.count("switch_ports", chips, True)
    gathered = max(least.gathered_shares, least.reduced_shares / 2)
    bounds: dict[Figure, float] = {"exchanged_messages": least.exchanged_messages, "hops": least.hops}
    bounds |= {"gathered_shares": gathered, "sent_once": 1.0, "broadcast": 1.0}
    for figure, bound in bounds.items():
        found = kind.count(figure, chips)
        wanted = f"at least {bound} over the narrowest cut of its links"
        assert found >= bound * (1 - TOLERANCE), f"{where}: {figure}: found {found} against {wanted}"
    limits: dict[Figure, int] = {"ports": least.ports}
    if chips % 2 == 0:
        limits["cut"] = least.cut
    for figure, limit in limits.items():
        found = kind.count(figure, chips)
        assert 0 < found <= limit, f"{where}: {figure}: found {found} against at most {limit} of its links"


def _check_times(kind: DimensionKind, chips: int) -> None:
    for collective in Collective:
        slow, fast = (
            collective_times.once_ns_per_byte(collective, kind, chips, gb_per_s)
            for gb_per_s in (GB_PER_S, 2 * GB_PER_S)
        )
        where = f"{kind}: {chips} chips: {collective}"
        is_wanted = (slow > 0) == (collective is not Collective.NONE)
        assert is_wanted, f"{where}: found {slow} ns per byte against more than 0"
        said = f"found {fast} ns per byte over links of twice the bandwidth against half of {slow}"
        assert math.isclose(fast, slow / 2, rel_tol=TOLERANCE), f"{where}: {said}"


def _check_grid(kind: DimensionKind) -> None:
    shape = Topology((kind, kind))
    for both in (collective_times.all_to_all_ns_per_byte, collective_times.exchange_ns_per_byte):
        one, other = (both(shape, chips, (GB_PER_S, GB_PER_S)) for chips in ((2, 4), (4, 2)))
        said = f"found {one} ns against {other} of 4 x 2"
        assert math.isclose(one, other, rel_tol=TOLERANCE), f"{kind}: 2 x 4 chips: {said}"
    for dimension in (0, 1):
        links = [network_units(shape, chips, (1.0, 1.0)).link_gb_per_s[dimension] for chips in ((2, 4), (4, 2))]
        sizes = [chips[dimension] for chips in ((2, 4), (4, 2))]
        expected = [8 // size * kind.count("paid_links", size) for size in sizes]
        assert links == expected, f"{kind}: a grid: found {links} links against {expected}"


GRAPHS = 5
KERNELS = 5
MOST_CHIPS = 4


def check_system(name: str | Path) -> System:
    """Check a system file and return the system.

    * It is read without an error, and no figure is beyond what machines have.
    * Each figure of the accelerator and of the DRAM says where it comes from.
    * Small graphs can be mapped on it, on one core and on all, and on several chips if it has a network; the
      independent checker accepts every mapping.

    Args:
        name: that ``--system`` would be given: of a system of an installed package, or a path.

    Raises:
        AssertionError: saying what was found against what.
        UserError: the file is broken, or there is none.
    """
    known = named_systems().by_name
    system = read_named_system(known[name]) if isinstance(name, str) and name in known else load_system(name)
    assert not system.warnings, f"{name}: found {system.warnings[0]}"
    for figure in system.sources:
        where = f"{name}: {figure.name}"
        assert figure.source != f"system {system.name}", f"{where}: found no source against one in 'sources'"
    random = Random(0)  # noqa: S311  # graphs, no secrets
    mapped, dimensions = 0, system.network.dimensions
    # A number of chips that the network has a part of.
    chips = max(count for count in range(1, MOST_CHIPS + 1) if system.parts(count)) if dimensions else 1
    for _ in range(GRAPHS):
        graph = random_graph(random, KERNELS)
        for cores in {1: None, system.accelerator.cores: None}:
            mapped += _is_mapped(ChipCounts(graph, system.with_cores(cores)), 1)
        if chips > 1:
            mapped += _is_mapped(ChipCounts(graph, system), chips)
    assert mapped, f"{name}: found no small graph that fits it"
    return system


def _is_mapped(counts: ChipCounts, chips: int) -> bool:
    try:
        counts.fastest(chips)
    except InfeasibleError:
        return False
    return True
