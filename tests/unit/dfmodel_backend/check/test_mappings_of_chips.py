"""The checker adds up what all chips of a mapping do, and what they exchange."""

from typing import Any

import pytest

from dfcompile.dfmodel_backend import ChipCounts, DataflowGraph, Exchange, Mapping, System, TensorKind, check_mapping
from dfcompile.dfmodel_backend.check.collectives import check_exchanges
from dfcompile.dfmodel_backend.check.recomputation import recompute_mapping
from dfcompile.dfmodel_backend.evaluate.graphs import evaluate_sharding
from dfcompile.dfmodel_backend.sharding.graphs import SharedGraph, share_graph
from dfcompile.dfmodel_backend.workload.graph import ExchangeKind
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from tests.unit.dfmodel_backend.graphs import elementwise, figure_of, floats, split_gemm, with_figure
from tests.unit.dfmodel_backend.inter_chip.test_chip_counts import networked

TOTALS = {
    "dram_bytes": "dram bytes",
    "network_bytes": "network bytes",
    "moved_bytes": "moved bytes",
    "flop": "flop",
    "cost_usd": "cost",
    "power_w": "power",
    "energy_j": "energy",
    "utilization": "utilization",
}


def contraction() -> DataflowGraph:
    """One row of 4,000 products of a weight, which all chips share; the sums are added, and every chip needs them."""
    return DataflowGraph.of(
        "contraction",
        (replace(split_gemm("a", 2, 4000, 2), outputs=("t",)), elementwise("b", 4)),
        (
            floats("x", TensorKind.INPUT, 8000, "", "a"),
            floats("w", TensorKind.WEIGHT, 8000, "", "a"),
            floats("t", TensorKind.INTERMEDIATE, 4, "a", "b"),
            floats("y", TensorKind.OUTPUT, 4, "b"),
        ),
    )


@pytest.fixture(scope="module")
def part() -> System:
    return networked("r", 4).parts(4)[0]


@pytest.fixture(scope="module")
def mapping() -> Mapping:
    return ChipCounts(contraction(), networked("r", 4)).fastest(4)


@pytest.fixture(scope="module")
def share(part: System, mapping: Mapping) -> SharedGraph:
    return share_graph(contraction(), part, dict(mapping.sharding))


def test_totals_are_those_of_all_chips(mapping: Mapping, part: System) -> None:
    """By hand: each chip reads a quarter of both operands and writes four sums; the all-reduce is of 16 bytes."""
    assert mapping.chips == 4
    assert mapping.figures.dram_bytes == 4 * (2 * 8000 + 16)
    assert mapping.figures.network_bytes == 16
    assert mapping.figures.moved_bytes == 2 * 3 * 16
    assert mapping.figures.flop == 2 * 4 * 4000 + 4
    assert mapping.figures.cost_usd == pytest.approx(4 * 101 + 4 * 10 + 0 * part.chips)
    assert mapping.figures.energy_j == pytest.approx(mapping.figures.power_w * mapping.figures.time_s)
    assert mapping.figures.utilization == pytest.approx(mapping.figures.flop / (mapping.figures.time_s * 4 * 8e9))
    (exchange,) = mapping.figures.exchanges
    assert exchange.kind == ExchangeKind.ALL_REDUCE
    assert exchange.readers == ("b",)
    assert exchange.time_ns == pytest.approx(2 * 3 / 4 * 16 / 10 + 2 * 3 * 3.0)


@pytest.mark.parametrize("factor", [0.5, 2])
@pytest.mark.parametrize("field", TOTALS)
def test_every_total_is_added_up_again(
    mapping: Mapping, share: SharedGraph, part: System, field: str, factor: float
) -> None:
    check_mapping(share.graph, part, mapping, contraction())
    changed: dict[str, Any] = {field: figure_of(mapping, field) * factor}

    with pytest.raises(VerificationError, match=f"^{TOTALS[field]}: found"):
        check_mapping(share.graph, part, with_figure(mapping, **changed), contraction())
    with pytest.raises(VerificationError, match=f"^figure {field}: found"):
        recompute_mapping(contraction(), part, with_figure(mapping, **changed))


def test_chips_in_use_are_those_of_the_system(mapping: Mapping, share: SharedGraph, part: System) -> None:
    with pytest.raises(VerificationError, match=r"^chips: found 3 against 4"):
        check_mapping(share.graph, part, replace(mapping, chips=3), contraction())


DAMAGES: list[tuple[dict[str, Any], str]] = [
    ({"time_ns": 0.1}, "kernel 'a': all-reduce of 't': exchanges 16 bytes in 0.1 ns against at least"),
    ({"time_ns": 2.4}, "kernel 'a': all-reduce of 't': exchanges 16 bytes in 2.4 ns against at least"),  # without hops
    ({"moved_bytes": 97}, "kernel 'a': all-reduce of 't': moves 97 bytes against at most 96"),
    ({"moved_bytes": 0}, "kernel 'a': all-reduce of 't': moves 0 bytes against at most 96"),
    ({"source": "b"}, "exchange of 't': found source 'b'"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES, ids=[next(iter(damage)) for damage, _ in DAMAGES])
def test_an_exchange_that_cannot_be_is_told(
    share: SharedGraph, part: System, damage: dict[str, Any], message: str
) -> None:
    (exchange,) = share.exchanges
    damaged: Exchange = replace(exchange, **damage)
    check_exchanges(share.graph, part)

    with pytest.raises(VerificationError, match=message):
        check_exchanges(replace(share.graph, exchanges=(damaged,)), part)


CHARGES: list[tuple[dict[str, Any], str]] = [
    ({"time_ns": 100.0}, "configuration 0: network: found 20.4 against 100"),
    ({"message_bytes": 17}, "network bytes: found 16 against 17"),
    ({"moved_bytes": 97}, "moved bytes: found 96 against 97"),
]


@pytest.mark.parametrize(("damage", "message"), CHARGES, ids=[next(iter(damage)) for damage, _ in CHARGES])
def test_a_mapping_is_charged_for_its_exchanges(
    mapping: Mapping, share: SharedGraph, part: System, damage: dict[str, Any], message: str
) -> None:
    damaged = (replace(share.exchanges[0], **damage),)
    other = with_figure(mapping, exchanges=damaged)

    with pytest.raises(VerificationError, match=r"^exchanges: found 1 that are not the 1 of the graph"):
        check_mapping(share.graph, part, other, contraction())
    with pytest.raises(VerificationError, match=message):
        check_mapping(replace(share.graph, exchanges=damaged), part, other, contraction())


def test_an_exchange_is_of_the_configuration_that_makes_its_tensor(
    mapping: Mapping, share: SharedGraph, part: System
) -> None:
    """The sums are exchanged when the first configuration ends."""
    figures = evaluate_sharding(contraction(), part, dict(mapping.sharding), (("a",), ("b",)), mapping.options)
    gap = figures.time_s / mapping.bound_time_s - 1
    apart = replace(mapping, figures=figures, gap=gap, optimal=False)
    first, second = figures.configs
    check_mapping(share.graph, part, apart, contraction())
    late = replace(first, network_ns=0.0), replace(second, network_ns=first.network_ns)

    assert (first.network_ns, second.network_ns) == (share.exchanges[0].time_ns, 0)
    with pytest.raises(VerificationError, match=r"^configuration 0: network: found 0.0 against 20\.4"):
        check_mapping(share.graph, part, with_figure(apart, configs=late), contraction())


def test_a_weight_is_whole_under_a_split_of_what_shares_it() -> None:
    """Four products of one input with a matrix each: split by these, every chip has all of the input."""
    graph = DataflowGraph.of(
        "shared",
        (split_gemm("a", 8, 8, 4, outer=4),),
        (
            floats("w", TensorKind.INPUT, 256, "", "a"),
            floats("x", TensorKind.WEIGHT, 32, "", "a"),
            floats("y", TensorKind.OUTPUT, 128, "a"),
        ),
    )
    share = share_graph(graph, networked("r", 4).parts(4)[0], {"a": (0,)})

    assert [tensor.size_bytes for tensor in share.graph.tensors] == [256, 4 * 32, 128]
    assert share.exchanges == ()
