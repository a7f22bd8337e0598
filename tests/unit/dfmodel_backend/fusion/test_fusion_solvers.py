"""Every solver finds the same optimum, and the checker accepts what each of them returns."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend import (
    DataflowGraph,
    Mapping,
    MappingOptions,
    Overlap,
    System,
    TensorKind,
    check_mapping,
    fusion_solvers,
    map_graph,
)
from dfcompile.dfmodel_backend.columns import members_of
from dfcompile.dfmodel_backend.fusion.fuse import pair_arcs
from dfcompile.dfmodel_backend.intra_chip.graph_model import GraphModel
from dfcompile.dfmodel_backend.intra_chip.set_times import set_figures
from dfcompile.dfmodel_backend.milp import Outcome
from dfcompile.errors import InfeasibleError
from tests.examples import examples
from tests.unit.dfmodel_backend.graphs import chain, elementwise, evaluate_mapping, graphs, machine, machines, tensor

EXACT = ("dp", "cbc", "highs")


def brute_force_time_s(graph: DataflowGraph, system: System, options: MappingOptions) -> float | None:
    """Try every assignment of kernels to configurations."""
    names = [kernel.name for kernel in graph.kernels]
    times = []
    for places in itertools.product(range(options.max_configurations or len(names)), repeat=len(names)):
        if sorted(set(places)) != list(range(len(set(places)))):
            continue
        if any(places[source] > places[target] for source, target in graph.ends):
            continue
        assignment = tuple(
            tuple(name for name, place in zip(names, places, strict=True) if place == number)
            for number in range(max(places) + 1)
        )
        try:
            figures = evaluate_mapping(graph, system, assignment, options)
        except InfeasibleError:
            continue
        capacity = system.dram_capacity_bytes
        if not capacity or all(config.dram_live_bytes <= capacity for config in figures.configs):
            times.append(figures.time_s)
    return min(times, default=None)


def checked_time_s(graph: DataflowGraph, system: System, options: MappingOptions) -> float | None:
    try:
        mapping = map_graph(graph, system, options)
    except InfeasibleError:
        return None
    check_mapping(graph, system, mapping)
    assert mapping.bound_time_s <= mapping.figures.time_s
    return mapping.figures.time_s


@examples(20)
@given(
    graph=graphs(),
    system=machines(),
    overlap=st.sampled_from(Overlap),
    utilization=st.sampled_from([0.0, 0.7]),
    configurations=st.integers(0, 3),
)
def test_shortest_path_arc_flow_and_brute_force_agree(
    graph: DataflowGraph, system: System, overlap: Overlap, utilization: float, configurations: int
) -> None:
    def options(solver: str) -> MappingOptions:
        return MappingOptions(
            solver=solver, overlap=overlap, compute_utilization=utilization, max_configurations=configurations
        )

    expected = brute_force_time_s(graph, system, options("dp"))
    for solver in EXACT:
        found = checked_time_s(graph, system, options(solver))

        assert (found is None) == (expected is None), solver
        assert found is None or found == pytest.approx(expected, rel=1e-6), solver


@examples(30)
@given(graph=graphs(most=9), system=machines(), overlap=st.sampled_from(Overlap))
def test_interval_cuts_are_valid_and_never_below_the_optimum(
    graph: DataflowGraph, system: System, overlap: Overlap
) -> None:
    exact = checked_time_s(graph, system, MappingOptions(overlap=overlap))
    cut = checked_time_s(graph, system, MappingOptions(overlap=overlap, solver="intervals"))

    if cut is not None:
        assert exact is not None
        assert cut >= exact * (1 - 1e-12)


def test_too_many_down_sets_fall_back_to_intervals_with_a_bound() -> None:
    kernels = tuple(elementwise(f"k{number}", 8) for number in range(12))
    graph = DataflowGraph.of("independent", kernels, ())

    mapping = map_graph(graph, machine(cores=3), MappingOptions(max_down_sets=100))

    check_mapping(graph, machine(cores=3), mapping)
    assert mapping.solver == "intervals"
    assert not mapping.optimal or mapping.gap == 0.0
    assert mapping.figures.time_s == pytest.approx(32e-9)  # 12 kernels of 8 elements: 96 cycles on 3 cores
    assert mapping.bound_time_s == pytest.approx(32e-9)


def test_same_mapping_twice() -> None:
    graph = chain()

    def settled(solver: str) -> Mapping:
        return map_graph(graph, machine(sram_bytes=300), MappingOptions(solver=solver))

    for solver in fusion_solvers().by_name:
        assert settled(solver).figures.configs == settled(solver).figures.configs


@pytest.mark.parametrize("solver", EXACT)
def test_sram_of_a_fraction_of_a_byte_holds_weight_tiles(solver: str) -> None:
    """`a` fits 32 bytes only with its weights in tiles, and the capacity is no whole number of bytes."""
    mapping = map_graph(chain(), machine(sram_bytes=32.7), MappingOptions(solver=solver))

    assert [config.weight_tiles for config in mapping.figures.configs] == [4, 1]


@pytest.mark.parametrize("solver", EXACT)
def test_an_elementwise_kernel_alone_may_cut_its_weight(solver: str) -> None:
    """A table of positions, say: 400 bytes of weights against 110 of SRAM; what streams in is read once per part."""
    tensors = (
        tensor("x", TensorKind.INPUT, 400, "", "a"),
        tensor("w", TensorKind.WEIGHT, 400, "", "a"),
        tensor("y", TensorKind.OUTPUT, 400, "a"),
    )
    graph = DataflowGraph.of("positions", (elementwise("a", 100),), tensors)
    system = machine(sram_bytes=110)

    mapping = map_graph(graph, system, MappingOptions(solver=solver))

    check_mapping(graph, system, mapping)
    (config,) = mapping.figures.configs
    assert config.weight_tiles == 4
    assert config.dram_read_bytes == 4 * 400 + 400


def test_a_program_that_is_stopped_without_a_solution_hands_over_to_the_shortest_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dfcompile.dfmodel_backend.fusion.solvers.built_in.solve", lambda *_: Outcome.NOTHING)
    graph = chain()

    mapping = map_graph(graph, machine(sram_bytes=80), MappingOptions(solver="cbc"))

    check_mapping(graph, machine(sram_bytes=80), mapping)
    assert mapping.solver == "dp"
    assert mapping.figures.time_s == map_graph(graph, machine(sram_bytes=80)).figures.time_s
    assert mapping.optimal


@pytest.mark.parametrize("solver", ["cbc", "highs"])
def test_a_program_at_its_limit_of_nodes_says_no_more_than_is_proved(solver: str) -> None:
    kernels = tuple(elementwise(f"k{number}", 5 + number * 3) for number in range(6))
    graph = DataflowGraph.of("independent", kernels, ())

    best = map_graph(graph, machine(cores=3))
    mapping = map_graph(graph, machine(cores=3), MappingOptions(solver=solver, max_nodes=1))

    check_mapping(graph, machine(cores=3), mapping)
    assert mapping.bound_time_s <= best.figures.time_s <= mapping.figures.time_s
    assert not mapping.optimal or mapping.figures.time_s == best.figures.time_s


@examples(10)
@given(
    graph=graphs(),
    system=machines(),
    overlap=st.sampled_from(Overlap),
    utilization=st.sampled_from([0.0, 0.7]),
    configurations=st.integers(0, 3),
)
def test_of_equally_fast_mappings_every_solver_takes_the_same(
    graph: DataflowGraph, system: System, overlap: Overlap, utilization: float, configurations: int
) -> None:
    """Fewest DRAM bytes, then fewest configurations."""

    def found(solver: str) -> tuple[int, int, int] | None:
        options = MappingOptions(
            solver=solver, overlap=overlap, compute_utilization=utilization, max_configurations=configurations
        )
        try:
            mapping = map_graph(graph, system, options)
        except InfeasibleError:
            return None
        return round(mapping.figures.time_s * 1e15), mapping.figures.dram_bytes, len(mapping.figures.configs)

    expected = found("dp")
    for solver in EXACT:
        assert found(solver) == expected, solver


@examples(30)
@given(graph=graphs(most=7), system=machines(), most=st.integers(0, 60), configurations=st.integers(0, 3))
def test_a_budget_never_claims_more_than_is_proved(
    graph: DataflowGraph, system: System, most: int, configurations: int
) -> None:
    exact = checked_time_s(graph, system, MappingOptions(max_configurations=configurations))
    options = MappingOptions(max_configurations=configurations, max_arcs=most)
    try:
        mapping = map_graph(graph, system, options)
    except InfeasibleError:
        return

    assert exact is not None
    assert mapping.bound_time_s <= exact * (1 + 1e-12) <= mapping.figures.time_s * (1 + 2e-12)
    assert not mapping.optimal or mapping.figures.time_s == pytest.approx(exact, rel=1e-12)


def figures_of(model: GraphModel, before: int, kernels: int) -> tuple[float, float] | None:
    """Return time and DRAM bytes of a set that runs after others, or None if it breaks a limit."""
    earlier, members = members_of((before, kernels), len(model.works))[:, None, :]
    (time_ns,), (dram_bytes,) = (column.tolist() for column in set_figures(model, members))
    fits = math.isfinite(time_ns) and model.waiting_bytes(earlier, members)[0] <= model.dram_room
    return (time_ns, dram_bytes) if fits else None


@examples(40)
@given(
    graph=graphs(most=7), system=machines(), overlap=st.sampled_from(Overlap), utilization=st.sampled_from([0.0, 0.7])
)
def test_columns_have_the_figures_of_each_set(
    graph: DataflowGraph, system: System, overlap: Overlap, utilization: float
) -> None:
    options = MappingOptions(overlap=overlap, compute_utilization=utilization)
    model = GraphModel(graph, system.machine, options)
    lattice = model.shape.lattice(1000)
    assert lattice is not None
    down_sets = tuple(lattice)
    expected = {
        (before, after): figures
        for before in down_sets
        for after in down_sets
        if before & ~after == 0 and before != after
        for figures in [figures_of(model, before, before ^ after)]
        if figures is not None
    }

    alone = set_figures(model, np.eye(len(model.works), dtype=bool))
    arcs = pair_arcs(model, down_sets, model.shape.most_kernels, 10**6, alone)

    assert arcs is not None
    pairs = zip(arcs.before.tolist(), arcs.after.tolist(), strict=True)
    figures = zip(arcs.time_ns.tolist(), arcs.dram_bytes.tolist(), strict=True)
    found = {(down_sets[one], down_sets[other]): pair for (one, other), pair in zip(pairs, figures, strict=True)}
    assert found == expected


@examples(30)
@given(graphs(), machines())
def test_intervals_hold_all_chains_of_a_line(graph: DataflowGraph, system: System) -> None:
    """Kernels one after the other have one order, whose prefixes are all down-sets."""
    tensors = tuple(
        tensor(f"t{number}", TensorKind.INTERMEDIATE, 40, one.name, other.name)
        for number, (one, other) in enumerate(itertools.pairwise(graph.kernels))
    )
    line = DataflowGraph.of("line", graph.kernels, tensors)

    exact = checked_time_s(line, system, MappingOptions())
    cut = checked_time_s(line, system, MappingOptions(solver="intervals"))

    assert cut == exact
