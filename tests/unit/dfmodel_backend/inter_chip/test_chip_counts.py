"""Graphs of models on several chips: parts of networks, exchanges along several dimensions, shares, degrees."""

import math
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend import ChipCounts, DataflowGraph, MappingOptions, Overlap, System, TensorKind
from dfcompile.dfmodel_backend.inter_chip.conversions import TensorGroup
from dfcompile.dfmodel_backend.machine.network.collective_times import exchange_ns_per_byte
from dfcompile.dfmodel_backend.machine.network.topologies import topology
from dfcompile.dfmodel_backend.machine.system import Collective, Dimension, Network
from dfcompile.dfmodel_backend.sharding.graphs import WHOLE, share_graph
from dfcompile.dfmodel_backend.solve.sharding_search import Found, ShardingSearch
from dfcompile.errors import InfeasibleError, UserError
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.dfmodel_backend.graphs import elementwise, floats, graphs, machine, machines, split_gemm

GB_PER_S = 10.0


def networked(kind: str, *chips: int, alone: System | None = None) -> System:
    dimensions = tuple(Dimension(count, GB_PER_S, 0.1) for count in chips)
    return replace(alone or machine(), network=Network(kind, dimensions, 1.0, 1.0, 0.1, link_latency_ns=3.0))


def extents(system: System, chips: int) -> list[tuple[str, tuple[int, ...]]]:
    return [
        (part.network.kind, tuple(dimension.chips for dimension in part.network.dimensions))
        for part in system.parts(chips)
    ]


def test_parts_take_few_dimensions_and_inner_ones_first() -> None:
    assert extents(networked("r_sw", 4, 8), 4) == [("r", (4,)), ("sw", (4,)), ("r_sw", (2, 2))]
    assert extents(networked("r_r", 4, 4), 16) == [("r_r", (4, 4))]
    assert extents(networked("r_r", 4, 4), 5) == []


def test_more_chips_than_a_network_has_are_refused() -> None:
    with pytest.raises(UserError, match="system 'test': found 17 chips against the 4 x 4 of its network"):
        networked("r_r", 4, 4).require_chips(17)


@pytest.mark.parametrize("collective", [Collective.ALL_REDUCE, Collective.ALL_GATHER])
def test_a_torus_reduces_as_many_bytes_as_one_ring_of_all_chips(collective: Collective) -> None:
    phases = 2 if collective is Collective.ALL_REDUCE else 1
    latency_ns = phases * (3 + 3) * 3.0
    group = TensorGroup.of(networked("r_r", 4, 4))

    assert group.time_ns(collective, 1600.0) == pytest.approx(phases * 15 / 16 * 1600 / GB_PER_S + latency_ns)


def test_in_a_hierarchy_the_whole_tensor_passes_each_gateway() -> None:
    group = TensorGroup.of(networked("r_sw", 4, 2))

    assert group.time_ns(Collective.ALL_GATHER, 1600.0) == pytest.approx(
        (3 / 4 + 1 / 2) * 1600 / GB_PER_S + (3 + 1) * 3.0
    )


@pytest.mark.parametrize("chips", [2, 4, 6, 8])
def test_an_exchange_on_a_ring_takes_the_load_of_its_busiest_link(chips: int) -> None:
    loads = dict.fromkeys([(chip, way) for chip in range(chips) for way in (1, -1)], 0.0)
    for start in range(chips):
        for hops in range(1, chips):
            ways = [(hops, 1)] if hops < chips - hops else [(chips - hops, -1)]
            if 2 * hops == chips:
                ways = [(hops, 1), (hops, -1)]
            for steps, way in ways:
                for step in range(steps):
                    loads[(start + way * step) % chips, way] += 1 / chips**2 / len(ways)

    assert exchange_ns_per_byte(topology("r"), [chips], [GB_PER_S]) == pytest.approx(max(loads.values()) / GB_PER_S)


def test_an_exchange_over_a_switch_leaves_through_one_port_and_a_full_group_has_a_link_to_each_chip() -> None:
    assert exchange_ns_per_byte(topology("sw"), [4], [GB_PER_S]) == pytest.approx(3 / 16 / GB_PER_S)
    assert exchange_ns_per_byte(topology("fc"), [4], [GB_PER_S]) == pytest.approx(1 / 16 / GB_PER_S)


def one_product(m: int, outer: int = 1) -> DataflowGraph:
    return DataflowGraph.of(
        "one",
        (split_gemm("a", m, 4, 2, outer),),
        (
            floats("x", TensorKind.INPUT, 8, "", "a"),
            floats("w", TensorKind.WEIGHT, 4 * m * outer, "", "a"),
            floats("y", TensorKind.OUTPUT, 2 * m * outer, "a"),
        ),
    )


def test_a_share_that_does_not_divide_evenly_is_the_largest_one() -> None:
    graph = one_product(m=5)
    share = share_graph(graph, networked("r", 2).parts(2)[0], {"a": (0,)}).graph

    assert share.kernels[0].m == 3
    assert [one.size_bytes for one in share.tensors] == [32, 16 * 3, 8 * 3]


def test_products_that_chips_do_not_divide_leave_some_chips_with_fewer() -> None:
    """Four chips share six products as 2, 2, 2 and none, or 1.5 by other loops; they had been refused."""
    share = share_graph(one_product(m=2, outer=6), networked("r", 4).parts(4)[0], {"a": (0,)}).graph

    assert share.kernels[0].outer == 2
    found = ChipCounts(one_product(m=4, outer=6), networked("r", 8)).fastest(4)

    assert found.chips == 4


def test_the_fastest_part_of_the_network_is_taken() -> None:
    """Along two dimensions latencies are shorter than along one: 1 + 1 hops against 3."""
    graph = DataflowGraph.of(
        "contraction",
        (replace(split_gemm("a", 1, 4000, 1), outputs=("t",)), elementwise("b", 1)),
        (
            floats("x", TensorKind.INPUT, 4000, "", "a"),
            floats("w", TensorKind.WEIGHT, 4000, "", "a"),
            floats("t", TensorKind.INTERMEDIATE, 1, "a", "b"),
            floats("y", TensorKind.OUTPUT, 1, "b"),
        ),
    )
    found = ChipCounts(graph, networked("r_r", 4, 4), MappingOptions(overlap=Overlap.NO_OVERLAP)).fastest(4)

    assert found.chips == 4
    assert found.figures.configs[0].network_ns == pytest.approx(2 * (1 + 1) * 3.0 + 4 * 2 * 3 / 4 / GB_PER_S)


@pytest.mark.parametrize(("kind", "is_alike"), [("r_r", True), ("fc_fc", False), ("sw_sw", False)])
def test_dimensions_of_a_grid_may_change_places(kind: str, is_alike: bool) -> None:
    """Then each way to split takes as long with its dimensions in the other order, and one order is searched."""
    graph = DataflowGraph.of(
        "two products",
        (
            replace(split_gemm("a", 7, 5, 6), outputs=("t",)),
            replace(split_gemm("b", 5, 7, 6), inputs=("v", "t")),
        ),
        (
            floats("x", TensorKind.INPUT, 30, "", "a"),
            floats("w", TensorKind.WEIGHT, 35, "", "a"),
            floats("t", TensorKind.INTERMEDIATE, 42, "a", "b"),
            floats("v", TensorKind.WEIGHT, 35, "", "b"),
            floats("y", TensorKind.OUTPUT, 30, "b"),
        ),
    )
    one, other = (networked(kind, *chips).parts(6)[-1] for chips in ((2, 3), (3, 2)))
    loops = (WHOLE, 0, 1, 2)
    times = {
        (part.network.dimensions[0].chips, *split): sum(
            exchange.time_ns for exchange in share_graph(graph, part, {"a": split[:2], "b": split[2:]}).exchanges
        )
        for part in (one, other)
        for split in product(loops, repeat=4)
        if max(map(len, (split[:2], split[2:]))) == len({*split[:2]}) == len({*split[2:]})
    }
    is_same = all(
        math.isclose(time_ns, times[3, split[1], split[0], split[3], split[2]])
        for (chips, *split), time_ns in times.items()
        if chips == 2
    )

    assert (TensorGroup.of(one).likeness == TensorGroup.of(other).likeness) == is_same == is_alike


@examples(20)
@given(graphs(4), machines(), st.sampled_from([("r", (6,)), ("r_r", (2, 3)), ("r_sw", (2, 3)), ("fc", (6,))]))
def test_more_chips_at_hand_are_never_slower(
    graph: DataflowGraph, alone: System, network: tuple[str, tuple[int, ...]]
) -> None:
    counts = ChipCounts(graph, networked(network[0], *network[1], alone=alone), asked=range(1, 7))
    times: list[float] = []
    for chips in counts.asked:
        try:
            found = counts.fastest(chips)
        except InfeasibleError:
            assert not times
            continue
        times.append(found.figures.time_s)

        assert found.chips <= chips

    assert times == sorted(times, reverse=True)


def test_answers_depend_on_the_run_and_not_on_what_was_asked_before() -> None:
    """Twelve is neither a power of two nor a divisor of 16: it is tried where the run has it before 16."""
    graph, system = one_product(m=12), networked("r", 16)
    counts = ChipCounts(graph, system, asked=(12, 16))
    forwards = [counts.fastest(chips).figures for chips in (12, 16)]
    counts = ChipCounts(graph, system, asked=(12, 16))

    assert [counts.fastest(chips).figures for chips in (16, 12)] == forwards[::-1]
    assert counts.fastest_count(16) == counts.fastest(16).chips == 12
    assert ChipCounts(graph, system).fastest(16).chips != 12


def test_numbers_of_chips_of_which_nothing_is_told_are_searched_only_if_they_may_be_faster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of one element nothing can be split."""
    searched: list[int] = []

    class Noted(ShardingSearch):
        def __init__(self, graph: DataflowGraph, part: System, *rest: Any) -> None:
            super().__init__(graph, part, *rest)
            self.chips = part.chips

        def best(self, *known: Any) -> tuple[Found | None, float, InfeasibleError | None]:
            searched.append(self.chips)
            return super().best(*known)

    monkeypatch.setattr("dfcompile.dfmodel_backend.solve.chip_counts.ShardingSearch", Noted)
    tensors = (floats("x", TensorKind.INPUT, 1, "", "a"), floats("y", TensorKind.OUTPUT, 1, "a"))
    found = ChipCounts(DataflowGraph.of("one", (elementwise("a", 1),), tensors), networked("r", 8)).fastest(8)

    assert found.chips == 1
    assert searched == [2, 4, 8]
