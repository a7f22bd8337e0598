"""Exchanges and shares of random shardings on random networks are what the audit finds anew, and nothing else is."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.audit.comparing import ROUNDING, expect
from dfcompile.audit.mapping.exchanges import ShardedGraph
from dfcompile.dfmodel_backend.check.machines import ChipNetwork
from dfcompile.dfmodel_backend.machine.cost import roofs_of
from dfcompile.dfmodel_backend.machine.network.topologies import network_cost_usd, network_power_w
from dfcompile.dfmodel_backend.sharding.graphs import SharedGraph, SplitGraph
from dfcompile.errors import VerificationError
from dfcompile.records import replace
from tests.examples import examples
from tests.unit.dfmodel_backend.inter_chip.test_chip_counts import networked
from tests.unit.dfmodel_backend.machine.network.named_topologies import NAMED
from tests.unit.dfmodel_backend.sharding.tiny_programs import random_program, random_system

SEEDS = st.integers(0, 2**40)


def drawn(seed: int) -> tuple[SplitGraph, SharedGraph, ShardedGraph]:
    """Return a program under a sharding: as it is split, and as the audit sees it."""
    rng = random.Random(seed)
    program, system = random_program(rng, 6), random_system(rng)
    split = SplitGraph(program.graph, system)
    sharding = {kernel.name: rng.choice(split.choices[kernel.name]) for kernel in program.graph.kernels}
    return split, split.shared(sharding), ShardedGraph(program.graph, system, sharding)


@examples(100)
@given(SEEDS)
def test_exchanges_take_what_the_audit_finds(seed: int) -> None:
    _, shared, audited = drawn(seed)
    figures = audited.recounted("exchanges", shared.exchanges)

    for exchange, found in zip(shared.exchanges, figures, strict=True):
        assert (exchange.message_bytes, exchange.moved_bytes) == (found.message_bytes, found.moved_bytes)
        expect("time", exchange.time_ns, found.time_ns, ROUNDING)


@examples(100)
@given(SEEDS)
def test_a_chip_has_what_the_audit_finds(seed: int) -> None:
    _, shared, audited = drawn(seed)
    found = audited.share(shared.exchanges)

    for kernel, other in zip(found.kernels, shared.graph.kernels, strict=True):
        assert (kernel.outer * kernel.m, kernel.k, kernel.n) == (other.outer * other.m, other.k, other.n)
    assert [one.size_bytes for one in found.tensors] == [one.size_bytes for one in shared.graph.tensors]


@examples(50)
@given(SEEDS, st.randoms())
def test_no_exchange_can_be_left_out(seed: int, rng: random.Random) -> None:
    _, shared, audited = drawn(seed)
    if not shared.exchanges:
        return
    place = rng.randrange(len(shared.exchanges))

    with pytest.raises(VerificationError, match=r"nobody (has|completes)"):
        audited.recounted("exchanges", (*shared.exchanges[:place], *shared.exchanges[place + 1 :]))


@pytest.mark.parametrize("kind", [*NAMED, "r_r_sw", "sw_r"])
def test_networks_cost_and_carry_what_the_audit_finds(kind: str) -> None:
    for counts in ((2, 2, 3, 2), (3, 4, 2, 3)):
        system = networked(kind, *counts[: len(kind.split("_"))])
        system = replace(system, chips=2)
        found = ChipNetwork(system.network)

        assert found.price_usd == pytest.approx(network_cost_usd(system.network), rel=1e-12)
        assert found.power_w == pytest.approx(network_power_w(system.network), rel=1e-12)
        assert found.received_gb_per_s * 1e9 == pytest.approx(roofs_of(system).network_bytes_per_s, rel=1e-12)
