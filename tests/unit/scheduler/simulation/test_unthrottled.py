"""A replay task by task, of FIFOs that are never full, is the replay stretch by stretch."""

from random import Random

import numpy as np
import pytest

from dfcompile.canonical_dag import CanonicalDag, topological_order
from dfcompile.generators.canonical_dags import cholesky, fft, gaussian
from dfcompile.records import replace
from dfcompile.scheduler.simulation import Replay, Simulation, simulate, unit_replay
from tests.unit.scheduler.streams import all_streamed, stream_graph

GRAPHS = (gaussian(4, 17, 1), cholesky(4, 64, 2), fft(4, 8, 3), gaussian(3, 3, 4))


def a_replay(dag: CanonicalDag, choice: Random) -> Replay:
    """Tasks on random elements in the order of the graph; most edges stream, through FIFOs that hold all."""
    place = np.empty(dag.nodes_count, dtype=np.int64)
    place[topological_order(dag)] = np.arange(dag.nodes_count)
    elements = choice.randint(1, 5)
    pe = [choice.randrange(elements) if is_task else -1 for is_task in dag.is_computational.tolist()]
    between = dag.is_computational[dag.edge_source] & dag.is_computational[dag.edge_target]
    streamed = between & np.array([choice.random() < 0.8 for _ in range(dag.edges_count)])
    whole = np.maximum(dag.edge_volume, 1)
    return Replay(np.array(pe, dtype=np.int32), place, streamed, whole, np.zeros(dag.nodes_count, dtype=np.int32))


def columns(found: Simulation) -> tuple[list[int], ...]:
    return tuple(
        column.tolist() for column in (found.start, found.end, found.read_stall, found.write_stall, found.peak)
    )


@pytest.mark.parametrize("seed", range(12))
def test_both_ways_find_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choice = Random(seed)
    for dag in GRAPHS:
        whole = a_replay(dag, choice)
        held = replace(whole, fifo_capacity=np.maximum(simulate(dag, whole).peak, 1))
        small = replace(whole, fifo_capacity=np.maximum(dag.edge_volume // 2, 1))
        found = [simulate(dag, each) for each in (whole, held, small)]
        with monkeypatch.context() as patch:
            patch.setattr(unit_replay, "runs_in_turn", lambda _unit: False)
            expected = [simulate(dag, each) for each in (whole, held, small)]

        for one, other in zip(found, expected, strict=True):
            assert columns(one) == columns(other)
            assert bool(one.deadlock) == bool(other.deadlock)
        assert found[0].end.tolist() == found[1].end.tolist()


def test_lanes_that_do_the_same_end_as_they_do_stretch_by_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four lanes of two tasks into a join, a fifth of other volumes; after the join a task on a lane's element."""
    lanes = [(f"a{lane}", f"b{lane}", 12 if lane < 4 else 6) for lane in range(5)]
    dag = stream_graph([
        *(
            edge
            for first, second, volume in lanes
            for edge in (("IN", first, 24), (first, second, volume), (second, "join", 4))
        ),
        ("join", "last", 4), ("last", "OUT", 4),
    ])  # fmt: skip
    number = {dag.node_name(node): node for node in range(dag.nodes_count)}
    replay = all_streamed(dag, 24)
    pe = replay.pe.copy()
    pe[number["last"]] = pe[number["a1"]]
    order = np.empty(dag.nodes_count, dtype=np.int64)
    order[topological_order(dag)] = np.arange(dag.nodes_count)
    found = simulate(dag, replace(replay, pe=pe, order=order))
    monkeypatch.setattr(unit_replay, "runs_in_turn", lambda _unit: False)

    assert columns(found) == columns(simulate(dag, replace(replay, pe=pe, order=order)))
