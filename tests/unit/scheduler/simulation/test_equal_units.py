"""Units of one shape are replayed once, whenever they begin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.scheduler.simulation import NEVER, Replay, simulate, simulator
from dfcompile.scheduler.simulation.replay import UnitTimes
from dfcompile.scheduler.simulation.stretch import StreamingUnit
from dfcompile.scheduler.simulation.unit_replay import replay_unit
from tests.unit.scheduler.simulation.test_twins import units
from tests.unit.scheduler.streams import stream_graph


@given(units(), st.integers(0, 10**12), st.booleans())
def test_what_begins_later_ends_as_much_later(
    case: tuple[StreamingUnit, tuple[int, ...]], cycles: int, details: bool
) -> None:
    unit, release = case
    later = tuple(NEVER if cycle == NEVER else cycle + cycles for cycle in release)

    assert replay_unit(unit, later, details=details) == replay_unit(unit, release, details=details).later(cycles)


def test_equal_layers_are_replayed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four pairs of tasks, block after block, then a slower one."""
    pairs = [("a", "b", 8), ("c", "d", 8), ("e", "f", 8), ("g", "h", 8), ("i", "j", 16)]
    dag = stream_graph([
        edge
        for writer, reader, volume in pairs
        for edge in ((writer.upper(), writer, 8), (writer, reader, volume), (reader, reader.upper(), volume))
    ])  # fmt: skip
    names = [dag.node_name(node) for node in range(dag.nodes_count)]
    block = np.array(
        [next(n for n, pair in enumerate(pairs) if name.lower() in pair[:2]) for name in names], dtype=np.int32
    )
    task = dag.is_computational
    streamed = task[dag.edge_source] & task[dag.edge_target]
    replay = Replay(
        pe=np.where(task, np.arange(dag.nodes_count), -1).astype(np.int32),
        order=np.arange(dag.nodes_count),
        streamed=streamed,
        fifo_capacity=np.where(streamed, 2, 0),
        block=block,
        barrier=True,
    )
    replayed = []

    def counted(unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> UnitTimes:
        replayed.append(release)
        return replay_unit(unit, release, details=details)

    monkeypatch.setattr(simulator, "replay_unit", counted)
    found = simulate(dag, replay)
    length = found.end[names.index("b")] - found.start[names.index("a")]

    assert len(replayed) == 2
    assert [int(found.start[names.index(writer)]) for writer, _, _ in pairs] == [n * length for n in range(5)]
