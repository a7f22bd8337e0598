"""Minimal FIFOs of each kind: with less in any of them, circuits take longer or end in a deadlock."""

from itertools import product

import numpy as np
import pytest

from dfcompile.canonical_dag import CanonicalDag
from dfcompile.canonical_dag.hardware import Hardware
from dfcompile.records import replace
from dfcompile.rtl.circuit import circuit_of
from dfcompile.rtl.folder import NamedCircuit
from dfcompile.rtl.simulation import installed_simulators
from dfcompile.scheduler.fifo import minimal_fifo_sizes
from dfcompile.scheduler.simulation import Replay
from tests.rtl.__main__ import counted_apart
from tests.strategies import with_operators
from tests.unit.scheduler.streams import all_streamed, bypass

INSTALLED = installed_simulators()
MACHINES = {
    "pass-through": Hardware(),
    "registered": Hardware(1),
    "registered, latency 1": Hardware(2),
    "pipelines": Hardware(0, 1, pipelines=(("Exp", 3),)),
    "elastic": Hardware(2, 1, 1),
}


def smaller(sizes: list[int]) -> list[tuple[int, ...]]:
    """All sizes of which none is larger, and one at least is smaller; FIFOs hold one element at least."""
    choices = (range(1, size + 1) if size else (0,) for size in sizes)
    return [one for one in product(*choices) if one != tuple(sizes)]


def circuit(dag: CanonicalDag, replay: Replay, sizes: tuple[int, ...] | list[int], name: str) -> NamedCircuit:
    return NamedCircuit(name, circuit_of(dag, replace(replay, fifo_capacity=np.array(sizes, dtype=np.int64))), None)


@pytest.mark.skipif(not INSTALLED, reason="neither Icarus, Yosys with g++, nor Verilator is installed")
def test_any_word_less_makes_circuits_slower_or_stops_them() -> None:
    """All forks and joins of up to three elements, with a reduction or an expansion on one of the two ways."""
    circuits: list[NamedCircuit] = []
    cases: list[tuple[str, int, int, int]] = []  # machine; circuits with FIFOs never full and minimal; and those after
    for (kind, hardware), volume, between in product(MACHINES.items(), (1, 2, 3), (1, 2, 3)):
        dag = with_operators(bypass(volume, [between]))
        replay = replace(all_streamed(dag, volume), hardware=hardware)
        sizes = minimal_fifo_sizes(dag, replay).tolist()
        name, first = f"c{len(cases)}", len(circuits)
        less = [circuit(dag, replay, one, f"{name}_{number}") for number, one in enumerate(smaller(sizes))]
        never_full = replay.unlimited(dag).fifo_capacity.tolist()
        circuits += [circuit(dag, replay, never_full, f"{name}_whole"), circuit(dag, replay, sizes, name), *less]
        cases.append((kind, first, first + 1, len(circuits)))
    cycles = counted_apart(circuits, INSTALLED[0])

    stuck, slower = set[str](), set[str]()
    for kind, whole, minimal, end in cases:
        least = cycles[minimal]
        assert least is not None
        assert least == cycles[whole]
        for found in cycles[minimal + 1 : end]:
            assert found is None or found > least
            (stuck if found is None else slower).add(kind)
    assert stuck == slower == MACHINES.keys()
