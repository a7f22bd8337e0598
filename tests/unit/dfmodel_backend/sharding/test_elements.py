"""Figures of shardings against all chips played out: what moves, what lies where, and the values that come out."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.dfmodel_backend.sharding.graphs import SplitGraph
from dfcompile.dfmodel_backend.workload.graph import ExchangeKind
from tests.examples import examples
from tests.unit.dfmodel_backend.sharding.element_simulator import ElementSimulator, reference
from tests.unit.dfmodel_backend.sharding.tiny_programs import Integers, Program, random_program, random_system

SEEDS = st.integers(0, 2**40)


def random_values(program: Program, rng: random.Random) -> dict[str, Integers]:
    return {
        tensor.name: np.array([rng.randint(-3, 3) for _ in range(tensor.elements)], np.int64)
        for tensor in program.graph.tensors
        if not tensor.source
    }


@examples(60)
@given(SEEDS)
def test_figures_are_those_of_all_chips_played_out(seed: int) -> None:
    """`PROPERTY_EXAMPLES=17` plays more than 1,000 programs."""
    rng = random.Random(seed)
    program, system = random_program(rng, 6), random_system(rng)
    split = SplitGraph(program.graph, system)
    sharding = {kernel.name: rng.choice(split.choices[kernel.name]) for kernel in program.graph.kernels}
    shared = split.shared(sharding)
    values = random_values(program, rng)
    played = ElementSimulator(program, split, sharding).run(values)

    assert shared.network_bytes == played.message_bytes
    assert shared.moved_bytes == played.moved_bytes
    expected = reference(program, values)
    for name, found in played.outputs.items():
        assert [found[offset] for offset in range(len(found))] == expected[name].tolist()
    for tensor in shared.graph.tensors:
        most = played.most_bytes[tensor.name]
        # What lies in DRAM for several readers counts once for each of them, unless that is more than all.
        assert tensor.size_bytes == most if tensor.source else tensor.size_bytes >= most


def test_every_kind_of_exchange_is_played() -> None:
    """Otherwise the property above would say little."""
    kinds: dict[tuple[ExchangeKind, int], int] = {}
    for seed in range(60):
        rng = random.Random(seed)
        program, system = random_program(rng, 6), random_system(rng)
        split = SplitGraph(program.graph, system)
        sharding = {kernel.name: rng.choice(split.choices[kernel.name]) for kernel in program.graph.kernels}
        for exchange in split.shared(sharding).exchanges:
            key = (exchange.kind, len(exchange.dimensions))
            kinds[key] = kinds.get(key, 0) + 1

    assert {kind for kind, _ in kinds} == set(ExchangeKind) - {ExchangeKind.SLICE}
    assert {count for _, count in kinds} == {1, 2}
