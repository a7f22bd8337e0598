"""Kinds of dimensions are values: ours and a row of chips of nobody's keep to their links, and so do the checkers."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from dfcompile.dfmodel_backend import ChipCounts, DataflowGraph, MappingOptions, Overlap, TensorKind
from dfcompile.dfmodel_backend.check.collectives import check_exchanges, least_loads
from dfcompile.dfmodel_backend.check.designs import check_design
from dfcompile.dfmodel_backend.compatibility import RIGHT
from dfcompile.dfmodel_backend.design_file.reading import read_design
from dfcompile.dfmodel_backend.inter_chip.conversions import TensorGroup
from dfcompile.dfmodel_backend.machine.network.collective_times import (
    all_to_all_ns_per_byte,
    exchange_ns_per_byte,
    ns_per_byte,
)
from dfcompile.dfmodel_backend.machine.network.dimension_kind import FULLY_CONNECTED, RING, SWITCH, DimensionKind, Wires
from dfcompile.dfmodel_backend.machine.network.topologies import Topology, network_units, topology
from dfcompile.dfmodel_backend.machine.system import Collective, Dimension, Link, Network, System
from dfcompile.dfmodel_backend.machine.system_file import parse_system
from dfcompile.dfmodel_backend.options import DesignOptions
from dfcompile.dfmodel_backend.sharding.graphs import share_graph
from dfcompile.dfmodel_backend.solve.design_search import solve_design
from dfcompile.dfmodel_backend.workload.design import Design
from dfcompile.errors import PluginError, UserError
from dfcompile.records import replace
from dfcompile.testing import check_topology
from tests.locations import DESIGNS
from tests.unit.dfmodel_backend.graphs import elementwise, floats, machine, split_gemm
from tests.unit.dfmodel_backend.lines import LINE, install, line

__all__ = ["line"]  # a fixture

GB_PER_S = 10.0


def row_system(*chips: int, kind: str = "line") -> System:
    dimensions = tuple(Dimension(count, GB_PER_S, 0.1) for count in chips)
    return replace(machine(), network=Network(kind, dimensions, 1.0, 1.0, 0.1, link_latency_ns=3.0))


def contraction() -> DataflowGraph:
    return DataflowGraph.of(
        "contraction",
        (split_gemm("a", 1, 4000, 1), elementwise("b", 1)),
        (
            floats("x", TensorKind.INPUT, 4000, "", "a"),
            floats("w", TensorKind.WEIGHT, 4000, "", "a"),
            floats("y", TensorKind.INTERMEDIATE, 1, "a", "b"),
            floats("z", TensorKind.OUTPUT, 1, "b"),
        ),
    )


def busiest_link(chips: int) -> float:
    """The load of a row's busiest link, message by message."""
    loads: dict[tuple[int, int], int] = {}
    for start in range(chips):
        for end in range(chips):
            step = 1 if end > start else -1
            for hop in pairwise(range(start, end + step, step)) if start != end else ():
                loads[hop] = loads.get(hop, 0) + 1
    return max(loads.values())


@pytest.mark.parametrize("chips", [2, 4, 8, 16])
def test_a_row_of_chips_takes_the_time_of_its_busiest_link(chips: int, line: DimensionKind) -> None:
    """It took 1.0, the time of a fully connected group, for every kind that was not told apart."""
    group = Link(line.name, chips, 1.0, "TP", 0.0)

    assert ns_per_byte(Collective.ALL_TO_ALL, group) == busiest_link(chips) == chips**2 / 4
    assert ns_per_byte(Collective.ALL_GATHER, group) == (chips - 1) / chips
    assert ns_per_byte(Collective.ALL_REDUCE, group, separate_phases=True) == 2 * (chips - 1) / chips


def test_a_mesh_is_a_product_of_rows(line: DimensionKind) -> None:
    mesh = topology("line_line")
    units = network_units(mesh, (4, 3), (10.0, 1.0))

    assert mesh.is_grid
    assert not mesh.is_torus
    assert units.link_gb_per_s == (3 * 3 * 10, 4 * 2 * 1)
    assert units.switch_gb_per_s == (0, 0)
    # 12 x 12 / 4 messages over the 3 links of the cut through 4 columns, or the 4 of the cut through 3 rows.
    assert all_to_all_ns_per_byte(mesh, (4, 3), (1.0, 1.0)) == 36 / 3
    assert exchange_ns_per_byte(mesh, (4, 3), (1.0, 1.0)) == 36 / 3 / 144


@pytest.mark.parametrize("kind", [RING, FULLY_CONNECTED, LINE], ids=str)
def test_kinds_keep_to_their_links(kind: DimensionKind) -> None:
    check_topology(kind)


def test_all_to_alls_over_a_switch_count_the_ports_of_both_halves() -> None:
    """[ko24] has N ports at the cut through a switch; of those the messages leave through one half's."""
    with pytest.raises(AssertionError, match=r"sw: 2 chips: exchanged_messages: found 0.5 against at least 1.0"):
        check_topology(SWITCH)
    check_topology(replace(SWITCH, exchanged_messages=lambda chips: chips - 1, cut=lambda chips: chips // 2))


BROKEN: list[tuple[str, Callable[..., object], str]] = [
    ("exchanged_messages", lambda _: 1.0, "line: 3 chips: exchanged_messages: found 1.0 against at least 2.0"),
    ("gathered_shares", lambda _: 1.0, "line: 3 chips: gathered_shares: found 1.0 against at least 2.0"),
    ("hops", lambda _: 1, "line: 3 chips: hops: found 1 against at least 2"),
    ("cut", lambda _: 2, "line: 2 chips: cut: found 2 against at most 1"),
    ("ports", lambda _: 2, "line: 2 chips: ports: found 2 against at most 1"),
    ("paid_links", lambda chips: chips, "line: 3 chips: found 3 links that are paid against 2 links, or 4 ends"),
    ("gathered_shares", lambda chips: 40 - chips, "line: gathered_shares of .*: found .* against ascending"),
    ("sent_once", lambda _: 0.5, "line: 2 chips: sent_once: found 0.5 against at least 1.0"),
    ("wires", lambda chips: [(0, 1)] * (chips - 1), "line: 3 chips: found no way from chip 0 to chip 2 over its links"),
    ("broadcast", lambda _: 0.0, "line: 2 chips: broadcast: found 0.0 against at least 1.0"),
]


@pytest.mark.parametrize(
    ("field", "function", "message"), BROKEN, ids=[f"{one[0]}-{n}" for n, one in enumerate(BROKEN)]
)
def test_a_kind_that_breaks_a_law_is_told_which(field: str, function: Callable[..., object], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_topology(replace(LINE, **{field: function}))  # type: ignore[arg-type]


def test_bounds_come_from_links_alone() -> None:
    """Two rows of three switches each with two chips: the cut is one link wide, wherever the switches stand."""
    wires = [(0, 6), (1, 6), (2, 7), (3, 7), (4, 8), (5, 8)]
    star = least_loads([*wires, (6, 9), (7, 9), (8, 9)], 6)

    assert star.hops == 1
    assert star.links == 9
    assert star.exchanged_messages == 5  # of a chip over its link; switches that are joined part nothing
    assert least_loads([(0, 1), (1, 2)], 3).exchanged_messages == 2
    with pytest.raises(ValueError, match="found no way from chip 0 to chip 2 over its links"):
        least_loads(wires, 6)


def test_a_row_of_chips_is_a_machine_to_map_on(line: DimensionKind) -> None:
    found = ChipCounts(contraction(), row_system(8), MappingOptions(overlap=Overlap.NO_OVERLAP)).fastest(4)
    ring = ChipCounts(contraction(), row_system(8, kind="r"), MappingOptions(overlap=Overlap.NO_OVERLAP)).fastest(4)

    assert found.chips == ring.chips == 4
    assert found.figures.time_s == ring.figures.time_s  # an all-reduce is as fast
    exchange = TensorGroup.of(row_system(8)).time_ns(Collective.ALL_TO_ALL, 6400.0)
    assert exchange == pytest.approx(16 * 6400 / 64 / GB_PER_S + 7 * 3.0)
    assert found.figures.cost_usd < ring.figures.cost_usd


def test_a_topology_that_is_too_fast_for_its_links_is_its_plug_ins_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def gathered_shares(_: float) -> float:
        return 0.01

    fast = replace(LINE, gathered_shares=gathered_shares, wires=foreign(LINE.wires))
    install(monkeypatch, fast)

    system = replace(row_system(8), network=replace(row_system(8).network, link_latency_ns=0.0))
    share = share_graph(contraction(), system, {"a": (0,)})
    message = (
        r"in topology mylab\.rows\.line: kernel 'a': all-reduce of 'y': exchanges 4 bytes in \S+ ns against at least"
    )
    with pytest.raises(PluginError, match=message):
        check_exchanges(share.graph, row_system(8))


@pytest.mark.parametrize(
    ("returned", "message"),
    [(-1.0, "found -1.0 against a number"), (float("nan"), "found nan against"), ("3", "found '3' against")],
)
def test_what_is_no_number_is_named(returned: object, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, replace(LINE, exchanged_messages=lambda _: returned, wires=foreign(LINE.wires)))  # type: ignore[arg-type,return-value]

    with pytest.raises(PluginError, match=f"in topology mylab.rows.line: exchanged_messages of 8 chips: {message}"):
        ns_per_byte(Collective.ALL_TO_ALL, Link("line", 8, 1.0, "TP", 0.0))


def test_what_raises_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, replace(LINE, hops=lambda chips: chips // 0, wires=foreign(LINE.wires)))

    with pytest.raises(PluginError, match=r"in topology mylab\.rows\.line: ZeroDivisionError: "):
        ChipCounts(contraction(), row_system(8)).fastest(4)


def foreign(function: Callable[[int], Wires]) -> Callable[[int], Wires]:
    """The same function, as if a package of a third party had it."""

    def wires(chips: int) -> Wires:
        return function(chips)

    wires.__module__ = "mylab.rows"
    return wires


def designs_on(kind: str) -> Design:
    design = read_design(DESIGNS / "serve_gpt3_prefill_genz_f10_4x.txt")
    links = tuple(replace(link, shape=kind) for link in design.machine.links)
    name = "_".join(link.shape for link in links)
    return replace(design, machine=replace(design.machine, links=links, topology=name))


def test_the_checker_bounds_designs_on_networks_that_it_does_not_know(line: DimensionKind) -> None:
    solution = solve_design(designs_on("line"), DesignOptions())
    steps = solution.figures.steps
    number = next(place for place, step in enumerate(steps) if step.network_ns > 0)

    check_design(solution.design, solution.decision, solution.figures, RIGHT)
    short = replace(steps[number], network_ns=steps[number].network_ns / 2)
    figures = replace(solution.figures, steps=(*steps[:number], short, *steps[number + 1 :]))
    with pytest.raises(PluginError, match=rf"configuration {number}: network: found \S+ against at least \S+"):
        check_design(solution.design, solution.decision, figures, RIGHT)


def test_system_files_name_the_kinds_that_there_are(line: DimensionKind) -> None:
    text = """
name: row
accelerator: {lanes_per_core: 1, stages_per_core: 1, frequency_ghz: 1, sram_bytes: 0}
dram: {bandwidth_gb_per_s: 1}
network: {kind: KIND, dimensions: [{chips: 4, link_bandwidth_gb_per_s: 1}]}
"""

    assert parse_system(text.replace("KIND", "line"), "row.yaml").network.kind == "line"
    message = r"row.yaml:5: key 'network.kind': topology 'mesh': unknown \(known: fc, line, r, sw\)"
    with pytest.raises(UserError, match=message):
        parse_system(text.replace("KIND", "mesh"), "row.yaml")


def test_names_of_kinds_have_no_underscore() -> None:
    with pytest.raises(ValueError, match="topology 'two_rows': found this name against small letters and digits alone"):
        replace(LINE, name="two_rows")
    assert Topology((LINE, SWITCH)).name == "line_sw"
