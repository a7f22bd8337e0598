"""Tasks that do the same at the same times are replayed once, and nobody can tell."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dfcompile.scheduler.simulation import NEVER, simulate
from dfcompile.scheduler.simulation import unit_replay as replaying
from dfcompile.scheduler.simulation.access_sequence import Rows
from dfcompile.scheduler.simulation.stretch import StreamingUnit
from dfcompile.scheduler.simulation.unit_replay import replay_unit, without_twins
from tests.examples import examples
from tests.unit.scheduler.streams import all_streamed, stream_graph


class Sketch:
    """A unit in the making; tasks come after those that they read from."""

    def __init__(self) -> None:
        self.nodes: list[tuple[int, int]] = []
        self.edges: list[tuple[int, int, int]] = []

    def task(self, reads: int, writes: int) -> int:
        self.nodes.append((reads, writes))
        return len(self.nodes) - 1

    def unit(
        self, waits: dict[int, list[int]], ports: int, pipelines: list[int] | None = None, *, is_reversed: bool = False
    ) -> StreamingUnit:
        nodes = range(len(self.nodes))
        pipeline, nothing = tuple(pipelines or [0 for _ in nodes]), tuple(0 for _ in nodes)
        sources, targets = [source for source, _, _ in self.edges], [target for _, target, _ in self.edges]
        rows = ([max(ends.count(node) - 1, 0) // ports for node in nodes] for ends in (targets, sources))
        return StreamingUnit(
            nodes=tuple(nodes),
            edges=tuple(range(len(self.edges))),
            reads=tuple(reads for reads, _ in self.nodes),
            writes=tuple(writes for _, writes in self.nodes),
            source=tuple(source for source, _, _ in self.edges),
            target=tuple(target for _, target, _ in self.edges),
            capacity=tuple(capacity for _, _, capacity in self.edges),
            waits=tuple(tuple(waits.get(node, [])) for node in nodes),
            rows=tuple(map(Rows, *rows)),
            read_at=tuple(targets[:edge].count(target) // ports for edge, target in enumerate(targets)),
            write_at=tuple(sources[:edge].count(source) // ports for edge, source in enumerate(sources)),
            forward=tuple(pipeline[end] for end in (targets if is_reversed else sources)),
            hop_cycles=0,
            filling=pipeline if is_reversed else nothing,
            draining=nothing if is_reversed else pipeline,
        )


@st.composite
def units(draw: st.DrawFn) -> tuple[StreamingUnit, tuple[int, ...]]:
    """Draw tasks in a row, each with some that only it reads from or writes to, many of them alike."""
    sketch, before = Sketch(), None
    factor, few = draw(st.sampled_from([1, 40])), st.integers(1, 4)
    reads = draw(few) * factor
    for _ in range(draw(st.integers(1, 3))):
        writes = draw(few) * factor
        ways = [(1, 1), (2, 1), (1, 2)]  # volume and capacity of a task on the side
        before_it, behind_it = draw(st.lists(st.sampled_from(ways), max_size=5)), draw(st.lists(st.sampled_from(ways)))
        sources = [sketch.task(volume * factor, reads) for volume, _ in before_it]
        hub = sketch.task(reads, writes)
        sketch.edges += [(node, hub, capacity) for node, (_, capacity) in zip(sources, before_it, strict=True)]
        if before is not None:
            sketch.edges.insert(draw(st.integers(0, len(sketch.edges))), (before, hub, draw(few)))
        sketch.edges += [(hub, sketch.task(writes, volume * factor), capacity) for volume, capacity in behind_it]
        before, reads = hub, writes
    count = len(sketch.nodes)
    waiting = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=3))
    waits: dict[int, list[int]] = {}
    for first, second in waiting:
        if first != second:
            waits.setdefault(max(first, second), []).append(min(first, second))
    release = draw(st.lists(st.sampled_from([0, 0, 0, 3, NEVER]), min_size=count, max_size=count))
    if draw(st.booleans()):
        release = [0] * count
    pipelines = draw(st.lists(st.sampled_from([0, 0, 0, 2, 5]), min_size=count, max_size=count))
    if draw(st.booleans()):
        pipelines = [0] * count
    unit = sketch.unit(waits, draw(st.sampled_from([9, 9, 3, 1])), pipelines, is_reversed=draw(st.booleans()))
    return unit, tuple(release)


@examples(120)
@given(units())
def test_times_are_those_of_a_replay_of_all(case: tuple[StreamingUnit, tuple[int, ...]]) -> None:
    unit, release = case
    whole = replay_unit(unit, release, details=True)
    found = replay_unit(unit, release, details=False)

    assert (found.start, found.end, found.stuck) == (whole.start, whole.end, whole.stuck)
    assert found.read_stall == found.write_stall == found.peak == tuple(0 for _ in unit.edges)


def test_one_of_many_readers_is_replayed_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = stream_graph([("in", "hub", 8), *(("hub", f"r{number}", 8) for number in range(50)), ("hub", "last", 8)])
    replay = all_streamed(dag, 1)
    seen: list[int] = []

    class Counted(replaying._UnitReplay):
        def __init__(self, unit: StreamingUnit, release: tuple[int, ...], *, details: bool) -> None:
            seen.append(len(unit.nodes))
            super().__init__(unit, release, details=details)

    monkeypatch.setattr(replaying, "_UnitReplay", Counted)
    few, all_of_them = simulate(dag, replay, details=False), simulate(dag, replay)

    assert seen == [2, 52]
    np.testing.assert_array_equal(few.end, all_of_them.end)


def test_what_differs_in_anything_is_nobodys_twin() -> None:
    sketch = Sketch()
    hub = sketch.task(4, 4)
    sketch.edges = [(hub, sketch.task(4, 4), 1), (hub, sketch.task(4, 4), 2), (hub, sketch.task(4, 2), 2)]
    sketch.edges += [(hub, sketch.task(4, 2), 2) for _ in range(5)]
    unit = sketch.unit({5: [1]}, ports=9, pipelines=[0, 0, 0, 0, 0, 0, 0, 0, 3])
    release = (0, 0, 0, 0, 0, 0, 0, 9, 9)
    few, begins, by = without_twins(unit, release)

    # Another capacity; another volume; one twin; a wait; another again; a later release; another pipeline.
    assert by == (0, 1, 2, 3, 3, 4, 5, 6, 7)
    assert few.waits == ((), (), (), (), (1,), (), (), ())
    assert tuple(begins[number] for number in by) == release
